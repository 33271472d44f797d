"""Judging one submission: the tests run here, the submission's functions run in its worker."""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from otter.test_files import TestCase

from . import codec
from .assignment import Assignment, Question
from .sandbox import Ended, Limits, Worker

GRADED, TIMEOUT, MEMORY, CRASHED = "graded", "timeout", "memory", "crashed"


@dataclass(frozen=True)
class Verdict:
    """What one submission got.

    Attributes:
        status: ``graded``, or what first went wrong: ``timeout``, ``memory`` or ``crashed``. A
            cell or a question that ends the process costs its own points only.
        points: question -> points.
        reasons: why points are missing, one line each.
    """

    status: str
    points: dict[str, float]
    reasons: tuple[str, ...]

    @property
    def total(self) -> float:
        """All points together."""
        return sum(self.points.values())


class SubmissionError(Exception):
    """A function of the submission raised something, or returned what cannot be handed over."""


class RemoteFunction:
    """A function that lives in a worker: arguments go there, the result comes back, as data."""

    def __init__(self, name: str, worker: Worker, shared: Mapping[str, Any], notes: list[str]):
        self.__name__ = name
        self._worker, self._shared, self._notes = worker, shared, notes

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        reply = self._worker.ask(
            call=self.__name__,
            arguments=codec.dumps(list(arguments), self._shared),
            options=codec.dumps(options, self._shared),
        )
        result = _value(reply, self._shared, self._notes)
        if result is None:
            raise SubmissionError(
                f"{self.__name__} returns None: is it still the stub, or is a return missing?"
            )
        return result

    def __deepcopy__(self, memory: dict) -> RemoteFunction:
        return self


def _value(reply: dict, shared: Mapping[str, Any], notes: list[str]) -> Any:
    notes += [f"refused: {what}" for what in _lines(reply.get("refused"))]
    if reply.get("memory"):
        raise Ended(MEMORY, "ran out of the memory that is allowed")
    if "error" in reply:
        kind, text = str(reply["error"])[:80], str(reply.get("message"))[:500]
        if kind == "NotImplementedError":
            raise NotImplementedError(text)
        if kind == "CodecError":
            raise SubmissionError(text)
        raise SubmissionError(f"your code raised {kind}: {text}".rstrip(": "))
    try:
        return codec.loads(reply["value"])
    except (codec.CodecError, KeyError, TypeError):
        raise SubmissionError("what came back cannot be read") from None


def given_names(assignment: Assignment) -> dict[str, Any]:
    """Run the cells that are not the student's, here, once: the judge's own model and data."""
    names: dict[str, Any] = {"__name__": "__judge__"}
    with contextlib.redirect_stdout(io.StringIO()):
        for source in assignment.given:
            exec(compile(source, f"<given cell of {assignment.name}>", "exec"), names)
    return names


def judge(
    cells: Sequence[str],
    assignment: Assignment,
    given: Mapping[str, Any],
    limits: Limits,
    *,
    hidden: Sequence[Path] = (),
    layers: Sequence[str] | None = None,
) -> Verdict:
    """Run a submission's code cells in a fresh worker and put the tests to it.

    A cell that ends the worker (an endless loop, too much memory) is left out of a new start; a
    question whose tests end it is given up, and the next one is asked after a new start. There
    are at most as many new starts as questions, so that the time is bounded.

    Args:
        cells: sources of the submission's code cells.
        assignment: tests and points.
        given: as :func:`given_names` returns it.
        limits: time and memory of one start.
        hidden: folders that the submission may not read.
        layers: layers of isolation; by default all that work here.
    """
    todo = _Todo(dict(enumerate(cells, 1)), list(assignment.questions))
    points = {question.name: 0.0 for question in assignment.questions}
    reasons: list[str] = []
    status = GRADED
    for _ in range(len(assignment.questions) + 1):
        worker = Worker(limits, hidden=hidden, preload=assignment.imports, layers=layers)
        try:
            with worker:
                todo.run_cells(worker, reasons)
                while todo.questions:
                    _put(todo.questions[0], worker, given, points, reasons)
                    del todo.questions[0]
            break
        except Ended as ended:
            status = ended.status if status == GRADED else status
            reasons.append(f"{todo.give_up()}: {ended.status}: {ended}")
            if ended.foul:
                break
    return Verdict(status, points, tuple(dict.fromkeys(reasons)))


@dataclass
class _Todo:
    """What a new start has to run and to ask.

    Attributes:
        cells: number -> source of the cells that have not ended a worker.
        questions: those that are still to be asked.
        running: number of the cell that runs; None while questions are asked.
    """

    cells: dict[int, str]
    questions: list[Question]
    running: int | None = None

    def run_cells(self, worker: Worker, reasons: list[str]) -> None:
        """Run all cells, one request each, so that the one that ends the worker is known."""
        for number, source in self.cells.items():
            self.running = number
            reasons += _of_cells(worker.ask(run=[source], first=number))
        self.running = None

    def give_up(self) -> str:
        """Leave out what ended the worker; its name."""
        if self.running is None:
            return self.questions.pop(0).name
        del self.cells[self.running]
        return f"cell {self.running}"


def _of_cells(reply: dict) -> list[str]:
    lines = [f"refused: {what}" for what in _lines(reply.get("refused"))]
    errors = reply.get("errors")
    for error in errors if isinstance(errors, list) else ():
        if not isinstance(error, dict):
            continue
        if error.get("memory"):
            raise Ended(MEMORY, "ran out of the memory that is allowed")
        lines.append(f"cell {error.get('cell')}: {str(error.get('line'))[:300]}")
    return lines


def _put(
    question: Question,
    worker: Worker,
    given: Mapping[str, Any],
    points: dict[str, float],
    reasons: list[str],
) -> None:
    for test in question.tests:
        failure = failure_of(test, Names(worker, given, reasons))
        if failure is None:
            points[question.name] += test.points
        else:
            reasons.append(f"{question.name}: {failure}")


def failure_of(test: TestCase, names: dict[str, Any]) -> str | None:
    """What a test says about the functions in ``names``: None when it passes.

    Raises:
        Ended: the worker behind the functions is gone.
    """
    try:
        test.body.call_func(names)
    except Ended:
        raise
    except Exception as error:
        return " ".join(str(error).split())[:400] or type(error).__name__
    return None


class Names(dict):
    """What a test's arguments are taken from: the judge's own names, else the submission's.

    A function of the submission comes as a :class:`RemoteFunction`, anything else as a copy.
    """

    def __init__(self, worker: Worker, given: Mapping[str, Any], notes: list[str]):
        super().__init__()
        self._worker, self._given, self._notes = worker, given, notes

    def get(self, name: str, default: Any = None) -> Any:
        if name in self._given:
            return self._given[name]
        (kind,) = self._worker.ask(kinds=[name]).get("kinds") or ("missing",)
        if kind == "function":
            return RemoteFunction(name, self._worker, self._given, self._notes)
        if kind == "value":
            return _value(self._worker.ask(value=name), self._given, self._notes)
        raise SubmissionError(f"{name} is not there; was its cell deleted, or does it fail?")

    def __deepcopy__(self, memory: dict) -> Names:
        return copy.copy(self)


def _lines(found: Any) -> list[str]:
    return [str(line)[:200] for line in found[:20]] if isinstance(found, list) else []
