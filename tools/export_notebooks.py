"""Write every chapter as an .ipynb that runs in JupyterLab, VS Code, Colab and their like."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path

import nbformat

from bertology_utils.reproduce.chapters import Book, Chapter, environment_digest, read_book
from bertology_utils.writing import NotWrittenError, write_whole
from tools.repository import Repository, read_repository
from tools.run_cost import measured_cost

ROOT = Path(__file__).resolve().parent.parent

_FENCE = re.compile(r"^(?P<marks>:{3,}|`{3,})\{(?P<name>[\w:-]+)\} ?(?P<argument>.*)$")
# Under this name of its metadata, a notebook keeps the digest of the cells that were exported.
_EXPORTED = "bertology_cells"
_LABEL = re.compile(r"^\([\w:.-]+\)=\n?", re.MULTILINE)
_LINK_TO_LABEL = re.compile(r"\[(?P<text>[^\]]*)\]\(#[\w:.-]+\)")
_OPTION = re.compile(r"^:[\w-]+:.*$")
_ROLE = re.compile(r"\{(?P<name>[\w:-]+)\}`(?P<text>[^`]+)`")
_TARGET = re.compile(r"^(?P<text>.*?)\s*<(?P<target>[^<>]+)>$", re.DOTALL)
_CHECK = """# Run this cell first. It does nothing where all is there.
import importlib.util

needed = ("bertology_utils", "myst_nb")
missing = [name for name in needed if importlib.util.find_spec(name) is None]
"""
_SAY = """if missing:
    raise ModuleNotFoundError(
        f"no {' and no '.join(missing)} here. In a copy of the book's repository, run `make env` "
        "and choose .venv as this notebook's kernel; or install the package into this kernel: "
        '%pip install "PATH/TO/THE/REPOSITORY[book]"'
    )"""
_INSTALL = """if missing:
    import subprocess
    import sys

    # The package with its model (50 MB), and the packages it needs: a few minutes the first time.
    package = "{requirement}"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", package], check=True)
    importlib.invalidate_caches()"""
# What only the built page can show: its own outputs, its index, its page list.
_PAGE_ONLY = {"bibliography", "glue:figure", "contents", "index", "run-cost", "build-record",
              "tableofcontents"}  # fmt: skip


def plain_markdown(text: str) -> str:
    """Turn MyST directives and roles into Markdown that every notebook program shows.

    Boxes become quotations with their title in bold, roles become their text; what only the
    built page can show is left out.
    """
    lines, stack = [], []
    for line in text.splitlines():
        opening = _FENCE.match(line)
        if opening:
            name, argument = opening["name"], opening["argument"].strip()
            kind = "page" if name in _PAGE_ONLY else "math" if name == "math" else "box"
            stack.append((opening["marks"], kind))
            if kind == "math":
                lines.append("$$")
            elif kind == "box" and not _hidden(stack):
                title = argument or name.replace("-", " ").capitalize()
                lines.append(_quoted(f"**{title}**", stack))
                lines.append(_quoted("", stack))
        elif stack and line.strip() == stack[-1][0]:
            _, kind = stack.pop()
            lines.append("$$" if kind == "math" else "")
        elif _hidden(stack) or (stack and _OPTION.match(line)):
            continue
        else:
            lines.append(_quoted(line, stack))
    # Labels are the page's; a notebook has nothing that a link to one could lead to.
    text = _LINK_TO_LABEL.sub(r"\g<text>", _LABEL.sub("", "\n".join(lines)))
    return _ROLE.sub(_role_text, text).strip()


def _hidden(stack: list[tuple[str, str]]) -> bool:
    return any(kind == "page" for _, kind in stack)


def _quoted(line: str, stack: list[tuple[str, str]]) -> str:
    depth = sum(kind == "box" for _, kind in stack)
    return ("> " * depth + line).rstrip() if depth else line


def _role_text(match: re.Match) -> str:
    name, text = match["name"], match["text"]
    titled = _TARGET.match(text)
    if titled and titled["text"]:
        return titled["text"]
    if name.startswith("cite"):
        return "[" + text.replace(",", ", ") + "]"
    if name == "math":
        return f"${text}$"
    if name.startswith("glue"):
        # The name of a value that a cell of this notebook computes; its format is for the page.
        return f"`{text.partition(':')[0]}`"
    return f"`{text}`"


def first_cells(
    repository: Repository | None, cost: dict | None
) -> list[nbformat.NotebookNode]:
    """What a notebook says and does first: where its package comes from, and what a run costs."""
    if repository is None:
        source = "which lies in the book's repository"
        remedy = _SAY
    else:
        source = f"which lies in the book's repository, <{repository.url}>"
        remedy = _INSTALL.format(requirement=repository.requirement)
    text = (
        f"> A chapter of *BERTology, live*. It needs the package `bertology_utils`, {source}. "
        f"{measured_cost(cost)} Results are also shown, without running anything, on the book's "
        "pages."
    )
    return [nbformat.v4.new_markdown_cell(text), nbformat.v4.new_code_cell(_CHECK + remedy)]


def make_notebook(
    book: Book, chapter: Chapter, repository: Repository | None, cost: dict | None
) -> nbformat.NotebookNode:
    """Return a chapter as a notebook without outputs.

    Args:
        repository: where the notebook installs its package from, if it has to; None lets it say
            what is missing instead.
        cost: what the chapter's last run cost; None where that is not known.
    """
    source = chapter.notebook(book)
    notebook = nbformat.v4.new_notebook(
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        }
    )
    for number, cell in enumerate([*first_cells(repository, cost), *source.cells]):
        if cell.cell_type == "markdown":
            cell.source = plain_markdown(cell.source)
            if not cell.source:
                continue
        # A stable id, so that exporting twice gives the same file.
        seed = f"{chapter.docname}:{number}".encode()
        cell.id = hashlib.sha256(seed).hexdigest()[:12]
        notebook.cells.append(cell)
    notebook.metadata[_EXPORTED] = _cells_digest(notebook)
    nbformat.validate(notebook)
    return notebook


def write_notebook(notebook: nbformat.NotebookNode, path: Path) -> None:
    """Write a notebook; the same notebook always gives the same file."""
    write_whole(path, nbformat.writes(notebook) + "\n")


def file_name(chapter: Chapter) -> str:
    """Return what a chapter's notebook is called."""
    return f"{Path(chapter.docname).name}.ipynb"


def _cells_digest(notebook: nbformat.NotebookNode) -> str:
    cells = [[cell.cell_type, cell.source] for cell in notebook.cells]
    return hashlib.sha256(json.dumps(cells).encode()).hexdigest()


def is_readers(path: Path, new: nbformat.NotebookNode) -> bool:
    """Whether a notebook that lies there is worth more to its reader than ``new``.

    It is when its cells are not those that were exported, when it is none of ours, and when it
    holds the cells of ``new`` already, perhaps with results.
    """
    if not path.exists():
        return False
    try:
        old = nbformat.read(path, as_version=4)
        exported, now = old.metadata.get(_EXPORTED), _cells_digest(old)
    except (OSError, ValueError, AttributeError, nbformat.ValidationError):
        return True
    return exported != now or now == new.metadata[_EXPORTED]


def export(
    book: Book, folder: Path, repository: Repository | None, costs: dict[str, dict]
) -> list[Path]:
    """Write one notebook per chapter into ``folder`` and return those that were written.

    What a reader made of a notebook is left as it is (see :func:`is_readers`), and so is whatever
    else lies in the folder.

    Raises:
        NotWrittenError: the disk is full, or the folder takes nothing; what was there still is.
    """
    written = []
    for chapter in book.chapters:
        path = folder / file_name(chapter)
        notebook = make_notebook(book, chapter, repository, costs.get(chapter.docname))
        if not is_readers(path, notebook):
            write_notebook(notebook, path)
            written.append(path)
    return written


def last_costs(root: Path) -> dict[str, dict]:
    """Read what the chapters of this version cost when they ran.

    Empty before the first build, or when its notes are damaged.
    """
    store = root / "_build" / "executed" / environment_digest(root)[:16]
    try:
        costs = json.loads((store / "executions.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return costs if isinstance(costs, dict) else {}


def main() -> int:
    """Export this checkout's chapters."""
    folder, book = ROOT / "notebooks", read_book(ROOT)
    try:
        written = export(book, folder, read_repository(ROOT), last_costs(ROOT))
    except NotWrittenError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for chapter in book.chapters:
        path = folder / file_name(chapter)
        kept = "" if path in written else ": kept as it is (move it away for a fresh one)"
        print(f"{path.relative_to(ROOT)}{kept}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
