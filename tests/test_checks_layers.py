"""The checks of the chapter on layers: right answers pass, stubs and typical slips do not."""

import copy

import numpy as np
import pytest

from bertology_utils.checks import layers as check


def right_expected(cumulative):
    gains = np.diff(cumulative)
    return (np.arange(1, len(gains) + 1) * gains).sum() / gains.sum()


def right_spared(scores, task):
    layer = int(np.delete(scores, task, axis=0).mean(axis=0).argmax())
    return layer, scores[task, layer]


def right_put_back(tuned, original, layers):
    return {k: copy.deepcopy(original[k] if k in layers else tuned[k]) for k in tuned}


def right_cka(x, y):
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return np.sum((x.T @ y) ** 2) / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))


def stub(*_):
    raise NotImplementedError


RIGHT = [
    (check.expected_layer, right_expected),
    (check.spared_choice, right_spared),
    (check.put_back, right_put_back),
    (check.linear_cka, right_cka),
]


@pytest.mark.parametrize(("judge", "answer"), RIGHT, ids=lambda x: x.__name__)
def test_the_solution_passes_again_and_again(judge, answer):
    for _ in range(5):
        assert judge(answer), judge(answer).message


@pytest.mark.parametrize("judge", [judge for judge, _ in RIGHT], ids=lambda x: x.__name__)
def test_an_empty_stub_fails(judge):
    found = judge(stub)
    assert not found and "nothing is written" in found.message


def from_zero(cumulative):
    gains = np.diff(cumulative)
    return (np.arange(len(gains)) * gains).sum() / gains.sum()


def by_scores(cumulative):
    return (np.arange(len(cumulative)) * cumulative).sum() / cumulative.sum()


def clipped(cumulative):
    gains = np.diff(cumulative).clip(0)
    return (np.arange(1, len(gains) + 1) * gains).sum() / gains.sum()


def peeking(scores, task):
    layer = int(scores[task].argmax())
    return layer, scores[task, layer]


def mean_of_all(scores, task):
    layer = int(np.delete(scores, task, axis=0).mean(axis=0).argmax())
    return layer, scores[:, layer].mean()


def reversed_roles(tuned, original, layers):
    return {k: copy.deepcopy(tuned[k] if k in layers else original[k]) for k in tuned}


def no_copies(tuned, original, layers):
    made = dict(tuned)
    made.update({k: original[k] for k in layers})
    return made


def only_named(tuned, original, layers):
    return {k: copy.deepcopy(original[k]) for k in layers}


def not_centred(x, y):
    return np.sum((x.T @ y) ** 2) / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))


def rooted(x, y):
    return np.sqrt(right_cka(x, y))


@pytest.mark.parametrize(
    ("judge", "answer", "says"),
    [
        (check.expected_layer, from_zero, "count from 0"),
        (check.expected_layer, by_scores, "that layer should come out"),
        (check.expected_layer, clipped, "keep it as it is"),
        (check.spared_choice, peeking, "must be left out"),
        (check.spared_choice, mean_of_all, "the task that was left out"),
        (check.put_back, reversed_roles, "put back, too"),
        (check.put_back, no_copies, "hand back copies"),
        (check.put_back, only_named, "every layer"),
        (check.linear_cka, not_centred, "take the mean off"),
        (check.linear_cka, rooted, "square root"),
    ],
)
def test_typical_slips_are_named(judge, answer, says):
    for _ in range(3):
        found = judge(answer)
        assert not found
        assert says in found.message
