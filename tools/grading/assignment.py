"""What the judge knows of an assignment: its given cells, its questions, tests and points."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from otter.test_files import ExceptionTestFile, TestCase

#: tag that otter puts on the cells of a solution
SOLUTION_TAG = "otter_assign_solution_cell"
#: tag of the cell that installs what is missing
SETUP_TAG = "assignment-setup"
_CHECK = re.compile(r"\s*grader\.(check|check_all|export)\(")


@dataclass(frozen=True)
class Question:
    """One auto-graded question.

    Attributes:
        name: such as ``q1``.
        tests: public and hidden tests, each with its points.
    """

    name: str
    tests: tuple[TestCase, ...]

    @property
    def points(self) -> float:
        """The most that can be had."""
        return sum(test.points for test in self.tests)


@dataclass(frozen=True)
class Assignment:
    """An assignment as the judge needs it.

    Attributes:
        name: such as ``01_architecture``.
        given: sources of the code cells that are not the student's: imports, the model, data.
        questions: the auto-graded ones, in order.
        written: names of the questions that a person grades, and their points.
        digest: changes whenever a cell or a test does.
    """

    name: str
    given: tuple[str, ...]
    questions: tuple[Question, ...]
    written: dict[str, float]
    digest: str

    @property
    def points(self) -> float:
        """The most that can be had without the written questions."""
        return sum(question.points for question in self.questions)

    @property
    def imports(self) -> tuple[str, ...]:
        """Modules that the given cells import, the ``from`` ones included."""
        found: dict[str, None] = {}
        for node in ast.walk(ast.parse("\n".join(self.given))):
            if isinstance(node, ast.Import):
                found.update(dict.fromkeys(alias.name for alias in node.names))
            elif isinstance(node, ast.ImportFrom) and node.module:
                found[node.module] = None
        return tuple(found)


def load_assignment(path: Path) -> Assignment:
    """Read the notebook of an ``autograder`` folder that ``make assignments`` wrote.

    Raises:
        FileNotFoundError: there is none.
        ValueError: a notebook without tests, such as a student's copy of another format.
    """
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    tests = notebook.metadata.get("otter", {}).get("tests", {})
    if not tests:
        raise ValueError(f"{path} holds no tests; is it the autograder's copy?")
    questions = tuple(
        Question(name, tuple(ExceptionTestFile.from_string(source).test_cases))
        for name, source in sorted(tests.items())
    )
    return Assignment(
        name=path.stem,
        given=tuple(given_cells(notebook.cells)),
        questions=questions,
        written=dict(notebook.metadata.get("bertology", {}).get("written", {})),
        digest=hashlib.sha256(text.encode()).hexdigest()[:16],
    )


def given_cells(cells: Iterable[nbformat.NotebookNode]) -> list[str]:
    """Sources of the code cells that are neither set-up, nor solution, nor check."""
    return [
        cell.source
        for cell in cells
        if cell.cell_type == "code"
        and not {SOLUTION_TAG, SETUP_TAG} & set(cell.metadata.get("tags", ()))
        and not _CHECK.match(cell.source)
    ]
