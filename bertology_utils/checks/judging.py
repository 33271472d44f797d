"""How an answer to an exercise is judged: by its behaviour on fresh inputs, without a model answer.

A check is a function that asks the reader's function questions and *expects* properties of the
answers. It never shows what the right answer would have been.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ..page import page_style

#: what a stub raises until something is written
UNWRITTEN = "nothing is written yet: put your code in place of the line that raises."


class Wrong(Exception):
    """An answer does not behave as it should; the message says in what way."""


@dataclass(frozen=True)
class Feedback:
    """What a check says. True in a condition if the answer is right.

    Attributes:
        exercise: name of the exercise.
        passed: whether every expectation was met.
        message: the first expectation that was not met, or what was looked at.
    """

    exercise: str
    passed: bool
    message: str

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return f"{self.exercise}: {self._verdict} {self.message}"

    def _repr_html_(self) -> str:
        colour = "--bx-s2" if self.passed else "--bx-error"
        mark = "✓" if self.passed else "✗"
        return (
            f'{page_style()}<div class="bx bx-check"><p class="bx-text">'
            f'<strong style="color:var({colour})">{mark} {escape(self._verdict)}</strong> '
            f"{escape(self.message)}</p></div>"
        )

    @property
    def _verdict(self) -> str:
        return "Right:" if self.passed else "Not yet:"


def check(praise: str) -> Callable[[Callable], Callable[[Any], Feedback]]:
    """Make a check of a function that raises :class:`Wrong` for a wrong answer.

    Args:
        praise: what was looked at, for a right answer.

    The check takes the reader's function. Mistakes in the check itself are raised as they are:
    only questions put with :func:`ask` count as the reader's.
    """

    def decorate(judge: Callable[[Callable], None]) -> Callable[[Any], Feedback]:
        @functools.wraps(judge)
        def judged(answer: Callable) -> Feedback:
            if not callable(answer):
                kind = type(answer).__name__
                message = f"hand over the function itself; this is a {kind}."
                return Feedback(judge.__name__, False, message)
            try:
                judge(answer)
            except Wrong as wrong:
                return Feedback(judge.__name__, False, str(wrong))
            return Feedback(judge.__name__, True, praise)

        return judged

    return decorate


def ask(answer: Callable, *question: Any) -> Any:
    """Call the reader's function with copies; it must neither raise nor change what it is given.

    Raises:
        Wrong: it does.
    """
    given = copy.deepcopy(question)
    try:
        reply = answer(*given)
    except NotImplementedError:
        raise Wrong(UNWRITTEN) from None
    except Exception as error:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        raise Wrong(f"your function raised {text}") from error
    if not all(_same(a, b) for a, b in zip(given, question, strict=True)):
        raise Wrong("your function changes what it is given; work on a copy.")
    if reply is None:
        raise Wrong("your function returns None; did you forget to return the result?")
    return reply


def expect(condition: bool, otherwise: str) -> None:
    """Raise :class:`Wrong` with the message ``otherwise`` unless the condition holds."""
    if not condition:
        raise Wrong(otherwise)


def as_array(what: str, reply: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The reply as an array of finite numbers [*shape].

    Raises:
        Wrong: it is none.
    """
    try:
        array = np.asarray(reply, dtype=float)
    except (TypeError, ValueError):
        raise Wrong(f"{what} should be numbers, not {type(reply).__name__}.") from None
    if array.shape != shape:
        raise Wrong(f"{what} should have the shape {shape}, not {array.shape}.")
    if not np.isfinite(array).all():
        raise Wrong(f"{what} holds numbers that are infinite or not numbers.")
    return array


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    if isinstance(one, np.random.Generator):
        return True  # drawing from it is what it is for
    if callable(one):
        return True
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)
