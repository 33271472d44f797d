"""Hostile inputs for the hardening tests, and how many of them are tried.

By default few and always the same, so that the tests take seconds and never surprise. With
``FUZZ_EXAMPLES=5000`` in the environment, new ones are drawn at every run; hypothesis then prints
how to repeat a failure.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

VARIABLE = "FUZZ_EXAMPLES"
_DEEP = os.environ.get(VARIABLE)

#: decorator of every property test
fuzz = settings(
    max_examples=int(_DEEP) if _DEEP else 25,
    derandomize=_DEEP is None,
    database=None,
    deadline=None,
    print_blob=True,
    report_multiple_bugs=False,
    # Shrinking a failure takes minutes: only where somebody asked for depth.
    phases=[*Phase] if _DEEP else [Phase.explicit, Phase.generate],
    # Files are written anew for each example, so one folder for all of them does no harm.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

#: any code point: all seventeen planes, control characters, lone surrogates
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=40)
#: what breaks programs most often
NASTY = (
    "", " ", "\t\n", "\x00", "a\x00b", "\x1b[31m", "\x7f\x80\x9f", "\ud800", "a\udfffb",
    "\udc80\ud800", "\ufeff", "\ufffe\uffff", "\U0010ffff", "\u200b\u200d", "\u202egnirts",
    "\u0301", "e\u0301" * 30, "\U0001f3f3\ufe0f\u200d\U0001f308", "\u1e9e\u0130\ufb01", "\u2028",
    "[CLS]", "[MASK]", "[MASK] [MASK]", "<mask>", "</s>", "[PAD]", "[UNK] [SEP]", "a" * 100_000,
    "the cat " * 12_500, "<script>alert(1)</script>", "\\(x\\)", "$x$", "{{ x }}", "%s%n", "../..",
)  # fmt: skip
#: texts, ordinary and hostile
texts = st.one_of(
    ANY_TEXT,
    st.sampled_from(NASTY),
    st.lists(st.sampled_from(["the", "cats", "barked", "[MASK]", ".", "\x00", "\u0301", "\ud800"]),
             max_size=12).map(" ".join),
)  # fmt: skip
#: things that are no texts
no_texts = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.binary(max_size=8),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2), st.just(object()),
)  # fmt: skip

#: values of a JSON file
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner,
                                                                max_size=4),
    max_leaves=12,
)  # fmt: skip


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail instead of waiting for something that hangs."""

    def late(number: int, frame: object) -> None:
        raise AssertionError(f"not done within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def tried(
    call: Callable[[], Any], *documented: type[Exception], seconds: float = 120
) -> tuple[Any, Exception | None]:
    """(result, None) of ``call``, or (None, error) when it raises a documented error.

    The error must say something, in one encodable text; all other errors go through.
    """
    with within(seconds):
        try:
            return call(), None
        except documented as error:
            # The type itself or a subclass of our own: a bare ValueError from elsewhere names
            # nothing of what was given.
            said = str(error)
            assert said.strip(), f"{type(error).__name__} without a message"
            said.encode()
            assert len(said) < 2000, "an error message is no place for a whole file"
            return None, error


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file of a folder with its content, to see that nothing was left or changed."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
