"""Masters in, notebooks out: what students get, and what the judge needs, for every assignment.

A master is one text file in ``assignments/masters`` (MyST Markdown, read by jupytext, with the
blocks of otter-grader in it; see ``assignments/README.md``). ``make assignments`` writes

``_build/assignments/NAME/student/``
    the notebook to give out: stubs, public tests
``_build/assignments/NAME/autograder/``
    the same with solutions and hidden tests, for the judge only
``_build/assignments/bertology_utils-*.whl``
    the package with its model, for machines that do not have it
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat
import yaml
from nbformat import NotebookNode, v4
from otter.assign import main as otter_assign
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bertology_utils.writing import NotWrittenError, whole_file, whole_folder

from .grading.assignment import SETUP_TAG, SOLUTION_TAG

ROOT = Path(__file__).resolve().parent.parent
MASTERS = ROOT / "assignments" / "masters"
OUTPUT = ROOT / "_build" / "assignments"

_EDGE = re.compile(r"#\s*(BEGIN|END) (SOLUTION|TESTS|PROMPT|QUESTION)")
#: what otter leaves in place of a solution
_ELLIPSIS = re.compile(r"(?m)^([ \t]+)\.\.\.[ \t]*$")
#: what stands there instead: a test of a function that returns None would say anything but that
_UNWRITTEN = (
    'raise NotImplementedError("nothing is written yet: put your code in place of this line")'
)
_KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
_CONFIG = """# ASSIGNMENT CONFIG
name: {name}
init_cell: false
export_cell: false
generate: false
run_tests: false
show_question_points: true
tests:
    ok_format: false
"""
_SETUP = '''# Run this cell first. It installs what is missing, and nothing where all is there.
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

if any(importlib.util.find_spec(name) is None for name in ("bertology_utils", "otter")):
    places = (pathlib.Path.cwd(), *pathlib.Path.cwd().parents[:2])
    wheels = [wheel for place in places for wheel in sorted(place.glob("{wheel}"))]
    if not wheels:
        raise FileNotFoundError("put {wheel}, which came with this notebook, next to it")
    pins = """{pins}""".split()
    command = [sys.executable, "-m", "pip", "install", "--quiet", str(wheels[-1]), *pins]
    subprocess.run(command, check=True)

import otter

# The public tests lie in the notebook itself; whatever its file is called now.
own = []
for path in sorted(pathlib.Path.cwd().glob("*.ipynb")):
    try:
        note = json.loads(path.read_text(encoding="utf-8"))["metadata"]
    except (ValueError, KeyError, TypeError):
        continue  # another file of that name, such as an empty one
    if note.get("bertology", {{}}).get("assignment") == "{name}":
        own.append(note)
if not own:
    raise FileNotFoundError("this notebook, {name}.ipynb, has to lie in the current folder")
tests = pathlib.Path(tempfile.mkdtemp())
for question, source in own[0]["otter"]["tests"].items():
    (tests / f"{{question}}.py").write_text(source, encoding="utf-8")
grader = otter.Notebook(tests_dir=str(tests))'''


class AssignmentError(ValueError):
    """A master that cannot be turned into an assignment; the message says where."""


@dataclass(frozen=True)
class Built:
    """The two notebooks of one assignment."""

    name: str
    student: Path
    autograder: Path


def find_master(name: str, folder: Path = MASTERS) -> Path:
    """The master called ``name``.

    Raises:
        AssignmentError: there is none; the message lists those there are.
    """
    path = folder / f"{name}.md"
    if not path.is_file():
        there = ", ".join(master.stem for master in masters(folder)) or "none"
        raise AssignmentError(f"no assignment {name!r}; there are: {there}")
    return path


def masters(folder: Path = MASTERS) -> list[Path]:
    """All masters, in order."""
    return sorted(folder.glob("*.md"))


def build(master: Path, output: Path = OUTPUT) -> Built:
    """Write ``output/NAME/student`` and ``output/NAME/autograder``; the same bytes each time.

    Raises:
        AssignmentError: the master is malformed, or something of the solutions or the hidden
            tests would reach the students.
    """
    name = master.stem
    with tempfile.TemporaryDirectory(prefix="assignment-") as folder:
        source, result = Path(folder, f"{name}.ipynb"), Path(folder, "result")
        notebook = read_master(master)
        _check_blocks(master.name, notebook)
        nbformat.write(notebook, source)
        try:
            otter_assign(str(source), str(result), no_pdfs=True, no_run_tests=True)
        except (ValueError, AssertionError, RuntimeError, TypeError, KeyError) as error:
            raise AssignmentError(f"{master.name}: {error}") from error
        except Exception as error:  # otter has exceptions of its own
            raise AssignmentError(f"{master.name}: {type(error).__name__}: {error}") from error
        written = written_questions(notebook)
        for kind in ("student", "autograder"):
            _finish(result / kind / source.name, name, written, stubs=kind == "student")
        found = leaks(notebook, result / "student")
        if found:
            raise AssignmentError(f"{master.name}: the students' copy holds {found[0]!r}")
        target = output / name
        with whole_folder(target, replace=True) as scratch:
            shutil.copytree(result, scratch, dirs_exist_ok=True)
    return Built(name, target / "student" / source.name, target / "autograder" / source.name)


def read_master(master: Path) -> NotebookNode:
    """The master as a notebook, with the configuration and the set-up cell put in."""
    notebook = jupytext.read(master, fmt="md:myst")
    if not notebook.cells or notebook.cells[0].cell_type != "markdown":
        raise AssignmentError(f"{master.name} does not begin with a title")
    setup = v4.new_code_cell(_setup_source(master.stem))
    setup.metadata["tags"] = [SETUP_TAG]
    config = v4.new_raw_cell(_CONFIG.format(name=master.stem))
    split = _first_block(notebook.cells[0])
    notebook.cells[:1] = [config, split[0], setup, *split[1:]]
    # Cells without ids until the end: new ones are random.
    notebook.nbformat_minor = 4
    for cell in notebook.cells:
        cell.pop("id", None)
    notebook.metadata = nbformat.from_dict({"kernelspec": _KERNEL})
    return notebook


def _check_blocks(name: str, notebook: NotebookNode) -> None:
    """Every block is closed before the next of its kind begins; otter itself does not mind."""
    raw = [source for kind, source in _pieces(notebook) if kind == "raw"]
    opened: list[str] = []
    questions = 0
    for edge in filter(None, (_EDGE.match(source) for source in raw)):
        if edge[1] == "BEGIN":
            if edge[2] in opened:
                raise AssignmentError(f"{name}: {edge[2]} begins inside of {edge[2]}")
            opened.append(edge[2])
            questions += edge[2] == "QUESTION"
        elif not opened or opened.pop() != edge[2]:
            raise AssignmentError(f"{name}: END {edge[2]} without its beginning")
    if opened:
        raise AssignmentError(f"{name}: {opened[-1]} has no end (question {questions})")
    if not questions:
        raise AssignmentError(f"{name}: no question")


def _first_block(cell: NotebookNode) -> list[NotebookNode]:
    """The first cell, cut before a block of otter, so that set-up comes after the opening."""
    head, fence, rest = cell.source.partition("```otter")
    cells = [v4.new_markdown_cell(head.strip())]
    return [*cells, v4.new_markdown_cell(fence + rest)] if fence else cells


def _setup_source(name: str) -> str:
    return _SETUP.format(
        wheel="bertology_utils-*.whl", pins=" ".join(student_pins()), name=name
    )


def student_pins() -> list[str]:
    """What a student's machine needs beside the package, pinned as the book's environment is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*(Requirement(line).name for line in project["dependencies"]), "otter-grader"]
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = {
        canonicalize_name(Requirement(line).name): line.strip()
        for line in lines
        if line.strip() and not line.startswith("#")
    }
    return [pins[canonicalize_name(name)] for name in sorted(wanted)]


def written_questions(master: NotebookNode) -> dict[str, float]:
    """Name and points of the questions that a person grades."""
    found = {}
    for block in re.findall(r"# BEGIN QUESTION\n(.*?)(?:```|\Z)", _raw_text(master), re.S):
        config = yaml.safe_load(block)
        if config.get("manual"):
            found[config["name"]] = config["points"]
    return found


def _raw_text(notebook: NotebookNode) -> str:
    return "\n```\n".join(cell.source for cell in notebook.cells if cell.cell_type != "code")


def _finish(path: Path, name: str, written: dict[str, float], *, stubs: bool) -> None:
    """Stable ids, no random or local parts; stubs say that they are stubs."""
    notebook = nbformat.read(path, as_version=4)
    notebook.nbformat_minor = 5
    notebook.metadata["language_info"] = {"name": "python"}
    notebook.metadata["bertology"] = {"assignment": name, "written": written}
    for number, cell in enumerate(notebook.cells):
        cell.id = hashlib.sha256(f"{name}:{number}".encode()).hexdigest()[:12]
        cell.source = "".join(cell.source)
        if stubs and cell.cell_type == "code":
            cell.source = _ELLIPSIS.sub(rf"\1{_UNWRITTEN}", cell.source)
    nbformat.validate(notebook)
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def leaks(master: NotebookNode, student: Path) -> list[str]:
    """Lines of solutions and hidden tests that stand somewhere in the students' folder.

    Lines that are meant to be seen as well (given code, prompts, public tests), and short ones
    such as ``return result``, do not count.
    """
    secret, public = secret_lines(master)
    seen = _bare("\n".join(sorted(public)))
    secret = {bare for line in secret if (bare := _bare(line)) not in seen}
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in sorted(student.rglob("*")) if path.is_file()
    )
    # A notebook keeps quotation marks and line ends escaped.
    text = _bare(text.replace('\\"', '"').replace("\\\\", "\\"))
    return sorted(line for line in secret if line and line in text)


def secret_lines(master: NotebookNode) -> tuple[set[str], set[str]]:
    """(what only the teacher sees, what everybody sees): lines of a master, by its blocks."""
    secret: set[str] = set()
    public: set[str] = set()
    inside = None
    for kind, source in _pieces(master):
        edge = _EDGE.match(source)
        if kind == "raw" and edge:
            if edge[2] in ("SOLUTION", "TESTS"):
                inside = edge[2] if edge[1] == "BEGIN" else None
        elif inside == "TESTS":
            into = secret if re.search(r"(?im)^(hidden: true|# hidden)", source) else public
            into.update(_long(_unparsed(source)))
        elif inside == "SOLUTION" and kind == "markdown":
            secret.update(_long(source))
        elif inside == "SOLUTION":
            _sort_solution(source, secret, public)
        else:
            public.update(source.splitlines())
    return secret, public


def _pieces(master: NotebookNode):
    for cell in master.cells:
        if cell.cell_type != "markdown":
            yield cell.cell_type, cell.source
            continue
        for number, part in enumerate(re.split(r"(?ms)^```otter\n(.*?)^```$", cell.source + "\n")):
            if part.strip():
                yield ("raw" if number % 2 else "markdown"), part.strip("\n")


def _sort_solution(source: str, secret: set[str], public: set[str]) -> None:
    solving = False
    for line in source.splitlines():
        if line.rstrip().endswith("# BEGIN SOLUTION") or "# BEGIN SOLUTION NO PROMPT" in line:
            solving = True
        elif line.rstrip().endswith("# END SOLUTION"):
            solving = False
        elif solving or "# SOLUTION" in line:
            secret.update(_long(line.partition("# SOLUTION")[0]))
        else:
            public.add(line)


def _unparsed(source: str) -> str:
    """A test as otter stores it: without comments, in Python's own layout."""
    return ast.unparse(ast.parse(source))


def _long(source: str) -> list[str]:
    return [line for line in source.splitlines() if len(_bare(line)) >= 16]


def _bare(line: str) -> str:
    return re.sub(r"\s+", "", line)


def build_wheel(output: Path = OUTPUT) -> Path:
    """The package as a wheel, for machines that do not have it; made offline."""
    with tempfile.TemporaryDirectory(prefix="wheel-") as folder:
        # setuptools leaves a build folder where it works, so it works on a copy.
        source = Path(folder, "source")
        source.mkdir()
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, source / name)
        shutil.copytree(ROOT / "bertology_utils", source / "bertology_utils",
                        ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
        command = [
            sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
            "--no-deps", "--no-build-isolation", "--wheel-dir", folder, str(source),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise AssignmentError(f"the wheel cannot be built: {done.stderr.strip()[-500:]}")
        (wheel,) = Path(folder).glob("bertology_utils-*.whl")
        with whole_file(output / wheel.name) as scratch:
            shutil.copyfile(wheel, scratch)
        for old in output.glob("bertology_utils-*.whl"):
            if old.name != wheel.name:
                old.unlink()
        return output / wheel.name


def main() -> int:
    """Build every assignment of this checkout, and the wheel."""
    try:
        for master in masters():
            print(build(master).student.relative_to(ROOT))
        print(build_wheel().relative_to(ROOT))
    except (AssignmentError, NotWrittenError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


__all__ = [
    "SOLUTION_TAG",
    "AssignmentError",
    "Built",
    "build",
    "build_wheel",
    "find_master",
    "leaks",
    "masters",
    "read_master",
]

if __name__ == "__main__":
    sys.exit(main())
