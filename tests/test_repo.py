"""The files around the code: pins, contents, bibliography, commands and citation agree."""

import re
import subprocess
import tomllib
from importlib import metadata
from itertools import combinations
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from pybtex.database import parse_file

from bertology_utils.reproduce.chapters import read_book

ROOT = Path(__file__).resolve().parent.parent
PIN_FILES = tuple(sorted(path.name for path in ROOT.glob("requirements*.txt")))


def tracked_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def pins(name: str) -> dict[str, Requirement]:
    lines = [line.strip() for line in (ROOT / name).read_text().splitlines()]
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(requirement.name): requirement for requirement in found}


@pytest.mark.parametrize("name", PIN_FILES)
def test_every_requirement_is_pinned_to_one_version(name):
    for requirement in pins(name).values():
        assert re.fullmatch(r"==[^*,]+", str(requirement.specifier)), str(requirement)


def test_the_pin_files_do_not_contradict_each_other():
    for first, second in combinations(PIN_FILES, 2):
        assert not pins(first).keys() & pins(second).keys(), (first, second)


def test_the_pins_meet_what_the_package_declares():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = pins("requirements.txt")
    for line in project["dependencies"]:
        declared = Requirement(line)
        pin = pinned[canonicalize_name(declared.name)]
        (only,) = pin.specifier
        assert declared.specifier.contains(only.version), f"{pin} does not meet {declared}"


def test_installed_versions_are_the_pinned_ones():
    wrong = []
    for name, pin in pins("requirements.txt").items():
        (only,) = pin.specifier
        # torch's builds carry a local part, such as +cpu, that a pin leaves open.
        installed = Version(metadata.version(name)).public
        if installed != Version(only.version).public:
            wrong.append(f"{name} {installed}, pinned {only.version}")
    assert not wrong


def test_every_page_of_the_contents_exists_and_every_chapter_is_in_them():
    book = read_book(ROOT)
    assert len(set(book.pages)) == len(book.pages)
    on_disk = {f"chapters/{path.stem}" for path in ROOT.glob("chapters/*.md")}
    assert on_disk <= set(book.pages)
    numbered = {name for name in on_disk if re.match(r"chapters/\d\d_", name)}
    assert numbered <= {chapter.docname for chapter in book.chapters}, "a chapter without code"


#: Works that have neither a DOI nor an arXiv number: journals and proceedings without DOIs, a blog.
URL_ONLY = {
    "bengio2003neural",
    "gong2019efficient",
    "niu2022does",
    "rosset2020turing",
    "srivastava2014dropout",
}


def test_every_work_in_the_bibliography_can_be_found():
    library = parse_file(str(ROOT / "references.bib"))
    assert len(library.entries) >= 20
    dois = []
    for key, entry in library.entries.items():
        fields = entry.fields
        assert {"title", "year"} <= {name.lower() for name in fields}, key
        assert entry.persons, f"{key} has no author"
        doi, eprint, url = (fields.get(name) for name in ("doi", "eprint", "url"))
        assert doi or eprint or url, f"{key} has no doi, eprint or url"
        assert (doi or eprint) or key in URL_ONLY, f"{key} has a url only; has it no doi?"
        assert not doi or re.fullmatch(r"10\.\d{4,}/\S+", doi), f"{key}: {doi}"
        if eprint and fields.get("archiveprefix", "").lower() == "arxiv":
            assert re.fullmatch(r"\d{4}\.\d{4,5}|[a-z-]+/\d{7}", eprint), f"{key}: {eprint}"
        dois += [doi.lower()] if doi else []
    assert len(set(dois)) == len(dois), "two entries share a doi"


def test_the_pages_cite_only_works_in_the_bibliography():
    known = set(parse_file(str(ROOT / "references.bib")).entries)
    for docname in read_book(ROOT).pages:
        text = (ROOT / f"{docname}.md").read_text(encoding="utf-8")
        for keys in re.findall(r"\{cite:?[a-z]*\}`([^`]+)`", text):
            for key in keys.split(","):
                assert key.strip() in known, f"{docname} cites {key.strip()}"


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "chapters/run_it_yourself.md"])
def test_the_readme_and_its_like_name_only_commands_that_exist(name):
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    # In code only: prose may "make" anything.
    code = " ".join(re.findall(r"```sh\n.*?```|`[^`\n]+`", (ROOT / name).read_text(), re.DOTALL))
    named = set(re.findall(r"\bmake (?:[A-Z]+=\S+ )*([a-z-]+)", code))
    assert {"book"} <= named <= targets


def test_the_citation_file_is_complete():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= citation.keys()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"] == "MIT"
    assert "MIT License" in (ROOT / "LICENSE").read_text()


def test_no_file_names_a_folder_of_one_machine():
    # Written in parts, so that this file does not name them either.
    machine_local = re.compile("/" + r"(?:work|root|tmp|home|Users)/[A-Za-z0-9_.-]+")
    for path in tracked_files():
        if path.suffix in {".safetensors", ".png", ".onnx", ".xz"} or path.parent.name == "vendor":
            continue
        text = path.read_text(encoding="utf-8")
        found = machine_local.search(text)
        assert not found, f"{path.relative_to(ROOT)} names {found[0]}"


def test_no_weights_or_code_in_a_format_that_runs_when_loaded():
    unsafe = {".pt", ".pth", ".bin", ".pkl", ".pickle", ".joblib"}
    for path in tracked_files():
        assert path.suffix not in unsafe, path
