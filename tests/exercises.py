"""The exercises as they stand on the pages: check, stub and solution of each."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from bertology_utils.checks import Feedback
from bertology_utils.reproduce.chapters import read_book

ROOT = Path(__file__).resolve().parent.parent
CHECKS = "bertology_utils.checks"


@dataclass(frozen=True)
class Exercise:
    """One exercise of a chapter.

    Attributes:
        chapter: name of the page.
        name: name of the check.
        stub, solution: the cells' sources; each ends with a call of the check.
    """

    chapter: str
    name: str
    stub: str
    solution: str

    def feedback(self, source: str) -> Feedback:
        """What the check says of a cell."""
        *body, call = source.strip().splitlines()
        names = self._names()
        exec("\n".join(body), names)  # noqa: S102 our own pages
        return eval(call, names)

    def answer(self) -> object:
        """The function of the solution."""
        *body, call = self.solution.strip().splitlines()
        names = self._names()
        exec("\n".join(body), names)  # noqa: S102
        return names[call.rstrip(")").split("(")[1]]

    def judge(self, answer: object) -> Feedback:
        """What the check says of a function."""
        return getattr(checks_of(self.chapter), self.name)(answer)

    def _names(self) -> dict[str, object]:
        names: dict[str, object] = {}
        exec(_imports(self.chapter), names)  # noqa: S102
        return names


@cache
def exercises() -> tuple[Exercise, ...]:
    """All exercises of the book, in its order."""
    found = []
    for chapter, cells in _pages().items():
        stubs, solutions = (
            [source for tags, source in cells if tag in tags] for tag in ("exercise", "solution")
        )
        assert len(stubs) == len(solutions), f"{chapter}: a stub or a solution is missing"
        for stub, solution in zip(stubs, solutions, strict=True):
            call = stub.strip().splitlines()[-1]
            name = call.removeprefix("check.").split("(")[0]
            found.append(Exercise(chapter, name, stub, solution))
    return tuple(found)


def right_answers(chapter: str) -> dict[str, object]:
    """Name of a check -> the function of its solution, for a chapter."""
    return {e.name: e.answer() for e in exercises() if e.chapter == chapter}


def checks_of(chapter: str) -> ModuleType:
    """The module of checks that a chapter imports."""
    (name,) = (
        alias.name
        for node in ast.walk(ast.parse(_imports(chapter)))
        if isinstance(node, ast.ImportFrom) and node.module == CHECKS
        for alias in node.names
    )
    return import_module(f"{CHECKS}.{name}")


def names_of_checks(module: ModuleType) -> set[str]:
    """The checks that a module defines."""
    return {
        name
        for name, value in vars(module).items()
        if hasattr(value, "__wrapped__") and value.__module__ == module.__name__
    }


@cache
def _pages() -> dict[str, list[tuple[list[str], str]]]:
    """Chapters with exercises -> (tags, source) of their code cells."""
    book = read_book(ROOT)
    pages = {}
    for chapter in book.chapters:
        cells = [
            (cell.metadata.get("tags", []), cell.source)
            for cell in chapter.notebook(book).cells
            if cell.cell_type == "code"
        ]
        if any("exercise" in tags for tags, _ in cells):
            pages[Path(chapter.docname).name] = cells
    return pages


@cache
def _imports(chapter: str) -> str:
    """All imports of a chapter, so that solutions see what readers see."""
    lines = []
    for _, source in _pages()[chapter]:
        try:
            tree = ast.parse(source)
        except SyntaxError:  # a magic command
            continue
        lines += [ast.unparse(n) for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    return "\n".join(lines)
