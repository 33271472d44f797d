"""Notation, citation and change log agree with the chapters and the package."""

import re
import tomllib
from pathlib import Path

import yaml
from pybtex.database import parse_string

from bertology_utils.activations import SITES
from bertology_utils.reproduce.chapters import read_book

ROOT = Path(__file__).resolve().parent.parent
NOTATION = (ROOT / "chapters" / "notation.md").read_text(encoding="utf-8")
#: one symbol, with or without an index, such as $x_i$ or $\alpha_{ij}$
SYMBOL = re.compile(r"(?<![\\$])\$(\\?[A-Za-z]+?)(?:[_^](?:\w|\{[^}]*\}))?\$")


def symbols(text: str) -> set[str]:
    return set(SYMBOL.findall(text))


def test_every_symbol_of_the_chapters_is_in_the_notation():
    known = symbols(NOTATION) | set(re.findall(r"\$(f)\(x_j\)\$", NOTATION))
    assert {"i", "j", "x", "h", "q", "k", "v", r"\alpha", "z", "d", "n", "p"} <= known
    unknown = {}
    for chapter in read_book(ROOT).chapters:
        text = chapter.path.read_text(encoding="utf-8")
        prose = re.sub(r"^```\{code-cell\}.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        if new := symbols(prose) - known:
            unknown[chapter.docname] = new
    assert unknown == {}


def test_attention_weights_are_written_in_one_way():
    other = re.compile(r"(?<![A-Za-z\\])a_\{?ij\b")
    assert other.search(r"$$a_{ij} = 1") and not other.search(r"$\alpha_{ij}$ alpha_ij")
    pages = {page.name: page.read_text(encoding="utf-8") for page in ROOT.glob("chapters/*.md")}
    catalogues = ROOT.glob("locale/*/LC_MESSAGES/**/*.po")
    pages |= {str(page): page.read_text(encoding="utf-8") for page in catalogues}
    package = ROOT.glob("bertology_utils/**/*.py")
    pages |= {str(page): page.read_text(encoding="utf-8") for page in package}
    assert [name for name, text in pages.items() if other.search(text)] == []


def test_a_symbol_is_found_however_it_is_indexed():
    text = r"with $x_i$, $\alpha_{ij}$, $N$ and $p^{(T)}$; $a + b$ and $$c$$ are none, nor is \$d$"
    assert symbols(text) == {"x", r"\alpha", "N", "p"}


def test_the_letters_of_shapes_are_those_of_the_code():
    table = dict(re.findall(r"^\| ([A-Z]) \| (.+?) \|$", NOTATION, flags=re.MULTILINE))
    used = set(re.findall(r"[A-Z]", " ".join(site.shape for site in SITES.values())))
    assert used <= set(table)
    assert "`d_model`" in table["D"] and "`d_head`" in table["K"]
    named = set(re.findall(r"\| `(\w+)`", NOTATION))
    assert {"pattern", "q", "z", "mlp_act"} <= named & set(SITES)


def test_the_entry_to_copy_agrees_with_the_citation_file_and_the_bibliography():
    page = (ROOT / "chapters" / "cite.md").read_text(encoding="utf-8")
    entries = parse_string(re.search(r"```bibtex\n(.*?)```", page, re.DOTALL)[1], "bibtex").entries
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    book = entries["bertology_live"].fields
    assert book["title"].replace("{", "").replace("}", "") == citation["title"]
    assert (book["version"], book["license"]) == (citation["version"], citation["license"])
    library = parse_string((ROOT / "references.bib").read_text(encoding="utf-8"), "bibtex").entries
    (primer,) = citation["references"]
    for fields in (entries["rogers2020primer"].fields, library["rogers2020primer"].fields):
        assert fields["doi"] == primer["doi"]
        assert int(fields["year"]) == primer["year"]
        assert fields["pages"] == f"{primer['start']}--{primer['end']}"
        assert fields["title"].replace("{", "").replace("}", "") == primer["title"]


def test_the_change_log_begins_with_this_version_and_is_in_the_book():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (\d+\.\d+\.\d+)", text, flags=re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert versions[0] == project["version"]
    keys = [tuple(map(int, version.split("."))) for version in versions]
    assert keys == sorted(set(keys), reverse=True)
    assert "{include} ../CHANGELOG.md" in (ROOT / "chapters" / "changes.md").read_text()
    assert {"chapters/changes", "chapters/cite", "chapters/notation"} <= set(read_book(ROOT).pages)
