"""Write every chapter as an .ipynb that runs in JupyterLab, VS Code and their like."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
from pathlib import Path

import nbformat

from bertology_utils.reproduce.chapters import Book, read_book

ROOT = Path(__file__).resolve().parent.parent

_FENCE = re.compile(r"^(?P<marks>:{3,}|`{3,})\{(?P<name>[\w:-]+)\} ?(?P<argument>.*)$")
_OPTION = re.compile(r"^:[\w-]+:.*$")
_ROLE = re.compile(r"\{(?P<name>[\w:-]+)\}`(?P<text>[^`]+)`")
_TARGET = re.compile(r"^(?P<text>.*?)\s*<(?P<target>[^<>]+)>$", re.DOTALL)
# What only the built page can show: its own outputs, its index, its page list.
_PAGE_ONLY = {"bibliography", "glue:figure", "contents", "index", "run-cost", "tableofcontents"}


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
    return _ROLE.sub(_role_text, "\n".join(lines)).strip()


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


def export(book: Book, folder: Path) -> list[Path]:
    """Write one notebook per chapter into ``folder``, replacing what was there."""
    shutil.rmtree(folder, ignore_errors=True)
    written = []
    for chapter in book.chapters:
        source = chapter.notebook(book)
        notebook = nbformat.v4.new_notebook(
            metadata={
                "kernelspec": {
                    "name": "python3", "display_name": "Python 3", "language": "python"
                },
                "language_info": {"name": "python"},
            }
        )
        for number, cell in enumerate(source.cells):
            if cell.cell_type == "markdown":
                cell.source = plain_markdown(cell.source)
                if not cell.source:
                    continue
            # A stable id, so that exporting twice gives the same file.
            seed = f"{chapter.docname}:{number}".encode()
            cell.id = hashlib.sha256(seed).hexdigest()[:12]
            notebook.cells.append(cell)
        nbformat.validate(notebook)
        path = folder / f"{Path(chapter.docname).name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
        written.append(path)
    return written


def main() -> int:
    """Export this checkout's chapters."""
    for path in export(read_book(ROOT), ROOT / "notebooks"):
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
