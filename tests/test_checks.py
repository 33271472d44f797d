"""Checks of exercises: solutions on the pages pass, stubs and typical mistakes do not."""

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from bertology_utils.checks import Feedback, Wrong, architecture, as_array, ask, check, expect
from bertology_utils.checks import prerequisites as first
from bertology_utils.checks.judging import UNWRITTEN
from bertology_utils.reproduce.chapters import read_book

ROOT = Path(__file__).resolve().parent.parent
MODULES = {"chapters/00_prerequisites": first, "chapters/01_architecture": architecture}


def checks_of(module: ModuleType) -> set[str]:
    return {
        name for name, value in vars(module).items()
        if hasattr(value, "__wrapped__") and value.__module__ == module.__name__
    }  # fmt: skip


def cells(tag: str) -> list:
    """(check module, source) of the cells with a tag on the pages of the modules."""
    found = []
    for chapter in read_book(ROOT).chapters:
        if chapter.docname in MODULES:
            for cell in chapter.notebook(read_book(ROOT)).cells:
                if tag in cell.metadata.get("tags", []):
                    found.append((MODULES[chapter.docname], cell.source))
    return found


def run(module: ModuleType, source: str) -> Feedback:
    """Run a cell that ends with a call of a check, and return what the check says."""
    *body, call = source.strip().splitlines()
    names = {"np": np, "check": module}
    exec("\n".join(body), names)  # noqa: S102 our own pages
    return eval(call, names)


@pytest.mark.parametrize("tag, passes", [("exercise", False), ("solution", True)])
def test_every_check_has_a_stub_that_fails_and_a_solution_that_passes(tag, passes):
    judged = {module: set() for module in MODULES.values()}
    for module, source in cells(tag):
        feedback = run(module, source)
        assert bool(feedback) is passes, feedback
        assert passes or feedback.message == UNWRITTEN
        judged[module].add(feedback.exercise)
    assert judged == {module: checks_of(module) for module in MODULES.values()}


def solutions() -> dict[str, object]:
    """Name of a check -> the solution's function."""
    found = {}
    for module, source in cells("solution"):
        *body, call = source.strip().splitlines()
        names = {"np": np, "check": module}
        exec("\n".join(body), names)  # noqa: S102
        name, function = call.removeprefix("check.").rstrip(")").split("(")
        found[name] = names[function]
    return found


def test_solutions_pass_again_and_again():
    """Inputs are drawn afresh: a right answer must never be unlucky."""
    for name, function in solutions().items():
        judge = getattr(first, name, None) or getattr(architecture, name)
        for _ in range(3 if name == "count_parameters" else 25):
            assert judge(function), name


RIGHT = solutions()


def _cosine_without_one_norm(u, v):
    return u @ v / np.linalg.norm(u) ** 2


def _nearest_with_itself(table, words, word, k):
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    return [words[i] for i in np.argsort(-unit @ unit[words.index(word)])][:k]


def _nearest_by_product(table, words, word, k):
    order = np.argsort(-table @ table[words.index(word)])
    return [words[i] for i in order if words[i] != word][:k]


def _step_up(weights, inputs, labels, rate):
    return 2 * weights - RIGHT["gradient_step"](weights, inputs, labels, rate)


def _step_of_the_sum(weights, inputs, labels, rate):
    return RIGHT["gradient_step"](weights, inputs, labels, rate * len(labels))


def _step_by_sign(weights, inputs, labels, rate):
    return weights - rate * np.sign(weights - RIGHT["gradient_step"](weights, inputs, labels, 1.0))


def _frame_separator_in_second(first, second):
    pieces, segments = RIGHT["frame"](first, second)
    if second:
        segments[len(first) + 1] = 1
    return pieces, segments


def _frame_always_two(first, second):
    pieces = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
    return pieces, [0] * (len(first) + 2) + [1] * (len(second) + 1)


def _attend_unscaled(q, k, v, real):
    return RIGHT["attend"](q * np.sqrt(q.shape[1]), k, v, real)


def _attend_columns(q, k, v, real):
    scores = np.where(real, q @ k.T / np.sqrt(q.shape[1]), -1e9)
    pattern = np.exp(scores) / np.exp(scores).sum(axis=0, keepdims=True)
    return pattern, pattern @ v


def _attend_padding(q, k, v, real):
    return RIGHT["attend"](q, k, v, np.ones_like(real))


def _attend_swapped(q, k, v, real):
    return RIGHT["attend"](k, q, v, real)


def _wordpiece_shortest(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        mark = "##" if start else ""
        fits = [e for e in range(start + 1, len(word) + 1) if mark + word[start:e] in vocabulary]
        if not fits:
            return ["[UNK]"]
        pieces.append(mark + word[start : fits[0]])
        start = fits[0]
    return pieces


def _wordpiece_keeps_the_beginning(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        mark = "##" if start else ""
        fits = [e for e in range(len(word), start, -1) if mark + word[start:e] in vocabulary]
        if not fits:
            return [*pieces, "[UNK]"]
        pieces.append(mark + word[start : fits[0]])
        start = fits[0]
    return pieces


def _wordpiece_without_marks(word, vocabulary):
    return [piece.removeprefix("##") for piece in RIGHT["wordpiece"](word, vocabulary)]


def _mask_special_too(ids, special, mask_id, size, draw):
    return RIGHT["mask_pieces"](ids, np.zeros_like(special), mask_id, size, draw)


def _mask_always(ids, special, mask_id, size, draw):
    _, chosen = RIGHT["mask_pieces"](ids, special, mask_id, size, draw)
    return np.where(chosen, mask_id, ids), chosen


def _mask_shares_of_all(ids, special, mask_id, size, draw):
    chosen, new = (draw.random(len(ids)) < 0.15) & ~special, ids.copy()
    fate = draw.random(len(ids))
    new[chosen] = mask_id
    new[(fate < 0.1) & chosen] = ids[(fate < 0.1) & chosen]
    return new, chosen


def _mask_in_place(ids, special, mask_id, size, draw):
    new, chosen = RIGHT["mask_pieces"](ids, special, mask_id, size, draw)
    ids[:] = new
    return ids, chosen


def _count_without_biases(vocabulary, width, layers, hidden, positions, segments):
    layer = 4 * width * width + 2 * width * hidden + 4 * width
    tables = (vocabulary + positions + segments) * width
    return tables + 2 * width + layers * layer + width * width


def _count_without_pooler(*numbers):
    return RIGHT["count_parameters"](*numbers) - numbers[1] * (numbers[1] + 1)


MISTAKES = {
    "cosine": [
        (lambda u, v: u @ v, "itself should give 1"),
        (lambda u, v: abs(RIGHT["cosine"](u, v)), "-1"),
        (_cosine_without_one_norm, "exchanging"),
        (lambda u, v: 1.0, "opposite"),
    ],
    "nearest": [
        (_nearest_with_itself, "its own neighbour"),
        (_nearest_by_product, "a long vector is not a near one"),
        (lambda t, ws, w, k: RIGHT["nearest"](t, ws, w, k)[::-1], "first"),
    ],
    "gradient_step": [
        (_step_up, "smaller"),
        (_step_of_the_sum, "mean"),
        (_step_by_sign, "steeper"),
        (lambda w, x, y, r: w, "smaller"),
    ],
    "frame": [
        (_frame_separator_in_second, "belongs to the text that it closes"),
        (_frame_always_two, "none for a text that is not there"),
        (lambda a, b: RIGHT["frame"](a, b)[0], "two lists"),
    ],
    "attend": [
        (_attend_unscaled, "scaled"),
        (_attend_columns, "row by row"),
        (_attend_padding, "padding"),
        (_attend_swapped, "queries \\(rows\\)"),
    ],
    "wordpiece": [
        (_wordpiece_shortest, "longest"),
        (_wordpiece_keeps_the_beginning, "UNK|in the vocabulary|the word"),
        (_wordpiece_without_marks, "mark"),
    ],
    "mask_pieces": [
        (_mask_special_too, "special"),
        (_mask_always, "share of the paper"),
        (_mask_shares_of_all, "share of the paper"),
        (_mask_in_place, "changes what it is given"),
    ],
    "count_parameters": [
        (_count_without_biases, "more parameters"),
        (_count_without_pooler, "pooler"),
        (lambda *numbers: RIGHT["count_parameters"](*numbers) + numbers[1], "fewer"),
    ],
}


@pytest.mark.parametrize(
    "name, mistake, hint",
    [(name, *pair) for name, pairs in MISTAKES.items() for pair in pairs],
)
def test_typical_mistakes_are_found_and_named(name, mistake, hint):
    judge = getattr(first, name, None) or getattr(architecture, name)
    feedback = judge(mistake)
    assert not feedback
    assert re.search(hint, feedback.message), feedback.message


def test_every_check_is_tried_on_two_mistakes_or_more():
    known = set().union(*(checks_of(module) for module in MODULES.values()))
    assert set(MISTAKES) == known
    assert all(len(pairs) >= 2 for pairs in MISTAKES.values())


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
