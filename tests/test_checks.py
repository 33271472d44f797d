"""The exercises of every chapter: solutions pass, stubs and typical mistakes do not."""

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from exercises import checks_of, exercises, names_of_checks

from bertology_utils.checks.judging import UNWRITTEN

sys.path.append(str(Path(__file__).with_name("slips")))

CHAPTERS = tuple(dict.fromkeys(exercise.chapter for exercise in exercises()))
every_exercise = pytest.mark.parametrize(
    "exercise", exercises(), ids=lambda exercise: f"{exercise.chapter}-{exercise.name}"
)


def slips_of(chapter: str) -> dict[str, list]:
    """Name of a check -> (wrong answer, pattern of what the check must say) of a chapter."""
    return import_module(f"slips_{chapter.partition('_')[2]}").SLIPS


@every_exercise
def test_an_empty_stub_fails(exercise):
    feedback = exercise.feedback(exercise.stub)
    assert not feedback and feedback.message == UNWRITTEN
    assert feedback.exercise == exercise.name


@every_exercise
def test_the_solution_passes_again_and_again(exercise):
    """Inputs are drawn afresh: a right answer must never be unlucky."""
    assert exercise.feedback(exercise.solution)
    answer = exercise.answer()
    for _ in range(8):
        feedback = exercise.judge(answer)
        assert feedback, feedback.message


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_check_is_on_the_page_and_tried_on_two_mistakes_or_more(chapter):
    known = names_of_checks(checks_of(chapter))
    assert {e.name for e in exercises() if e.chapter == chapter} == known
    slips = slips_of(chapter)
    assert set(slips) == known
    assert all(len(wrong) >= 2 for wrong in slips.values())
    assert 3 <= len(known) <= 6


@pytest.mark.parametrize(
    "exercise, answer, says",
    [(e, *slip) for e in exercises() for slip in slips_of(e.chapter)[e.name]],
    ids=lambda value: f"{value.chapter}-{value.name}" if hasattr(value, "judge") else None,
)
def test_typical_mistakes_are_found_and_named(exercise, answer, says):
    for _ in range(3):
        feedback = exercise.judge(answer)
        assert not feedback
        assert re.search(says, feedback.message), feedback.message
