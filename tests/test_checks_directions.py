"""The checks of the chapter on directions: right answers pass, stubs and typical slips do not."""

import numpy as np
import pytest

from bertology_utils.behaviour import fill, inv, mft
from bertology_utils.checks import directions as check


def right_rule(premise, hypothesis):
    def words(sentence):
        return {word.strip(".,;:!?") for word in sentence.lower().split()} - {""}

    return words(hypothesis) <= words(premise)


def right_cue(has_cue, labels):
    applicable = has_cue[:, 0] != has_cue[:, 1]
    if not applicable.any():
        return 0.0, 0.0
    right = has_cue[np.arange(len(labels)), labels]
    return right[applicable].mean(), applicable.mean()


def right_test():
    frame = "This {thing} was much {word} than I had {hoped}."
    slots = {"thing": ["film", "meal", "novel"], "hoped": ["hoped", "expected"]}
    good, bad = fill(frame, word=["better"], **slots), fill(frame, word=["worse"], **slots)
    return mft("comparison", {1: good, 0: bad})


def right_leaving(predict, words):
    whole = predict(words)
    said = int(np.argmax(whole))
    return np.array(
        [whole[said] - predict(words[:i] + words[i + 1 :])[said] for i in range(len(words))]
    )


def stub(*_):
    raise NotImplementedError


RIGHT = [
    (check.overlap_rule, right_rule),
    (check.cue_strength, right_cue),
    (check.comparison_test, right_test),
    (check.leave_one_out, right_leaving),
]


@pytest.mark.parametrize(("judge", "answer"), RIGHT, ids=lambda x: x.__name__)
def test_the_solution_passes_again_and_again(judge, answer):
    for _ in range(5):
        assert judge(answer), judge(answer).message


@pytest.mark.parametrize("judge", [judge for judge, _ in RIGHT], ids=lambda x: x.__name__)
def test_an_empty_stub_fails(judge):
    found = judge(stub)
    assert not found and "nothing is written" in found.message


def with_capitals(premise, hypothesis):
    return set(hypothesis.strip(".").split()) <= set(premise.strip(".").split())


def substrings(premise, hypothesis):
    return all(word in premise.lower() for word in hypothesis.lower().strip(".").split())


def of_all(has_cue, labels):
    applicable = has_cue[:, 0] != has_cue[:, 1]
    right = has_cue[np.arange(len(labels)), labels]
    return (right & applicable).mean(), applicable.mean()


def both_count(has_cue, labels):
    right = has_cue[np.arange(len(labels)), labels]
    return (right.mean() if has_cue.any() else 0.0), has_cue.any(1).mean()


def one_sided():
    return mft("x", {1: fill("The {a} was better than {b}.", a=list("abcd"), b=list("efg"))})


def wrong_type():
    return inv("x", [(f"It was better, {n}.", f"It was worse, {n}.") for n in range(12)])


def every_occurrence(predict, words):
    whole = predict(words)
    said = int(np.argmax(whole))
    return np.array([whole[said] - predict([v for v in words if v != w])[said] for w in words])


def turned(predict, words):
    return -right_leaving(predict, words)


@pytest.mark.parametrize(
    ("judge", "answer", "hint"),
    [
        (check.overlap_rule, with_capitals, "capital"),
        (check.overlap_rule, substrings, "whole words"),
        (check.cue_strength, of_all, "share of the applicable"),
        (check.cue_strength, both_count, "not applicable"),
        (check.comparison_test, one_sided, "negative and"),
        (check.comparison_test, wrong_type, "type INV"),
        (check.leave_one_out, every_occurrence, "twice"),
        (check.leave_one_out, turned, "sign"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_typical_slips_are_named(judge, answer, hint):
    found = judge(answer)
    assert not found and hint in found.message, found.message
