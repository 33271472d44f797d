"""The machinery of the checks: what goes wrong in an answer is said, and nothing is raised."""

import numpy as np
import pytest

from bertology_utils.checks import Wrong, as_array, ask, check, expect


@check("it is even.")
def even(answer):
    """Planted: the answer to 3 must be an even number."""
    reply = float(as_array("the answer", ask(answer, np.array([3.0])), ()))
    expect(reply % 2 == 0, "odd.")


@pytest.mark.parametrize(
    "answer, message",
    [
        (5, "the function itself"),
        (lambda x: None, "returns None"),
        (lambda x: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: 2, "raised TypeError"),
        (lambda x: "two", "should be numbers, not str"),
        (lambda x: [2, 2], "shape"),
        (lambda x: float("nan"), "infinite or not numbers"),
        (lambda x: x.fill(0) or 2, "changes what it is given"),
        (lambda x: 3, "odd"),
    ],
)
def test_what_goes_wrong_in_an_answer_is_said_and_nothing_is_raised(answer, message):
    feedback = even(answer)
    assert not feedback and message in feedback.message
    assert feedback.exercise == "even"


def test_a_right_answer_is_praised():
    feedback = even(lambda x: 4)
    assert feedback and feedback.message == "it is even."
    assert str(feedback) == "even: Right: it is even."


def test_mistakes_of_a_check_are_not_blamed_on_the_reader():
    @check("fine.")
    def broken(answer):
        raise KeyError("in the check")

    with pytest.raises(KeyError, match="in the check"):
        broken(lambda: 1)


def test_feedback_is_escaped():
    def markup(x):
        raise ValueError("<b>bold</b>")

    html = even(markup)._repr_html_()
    assert "&lt;b&gt;" in html and "<b>" not in html
    assert "Not yet" in html and "✗" in html


def test_expectations_can_be_used_alone():
    with pytest.raises(Wrong, match="too bad"):
        expect(False, "too bad")
    expect(True, "never said")
