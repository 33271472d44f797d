"""The checks of the chapter on pruning: right answers pass, stubs and typical slips do not."""

import numpy as np
import pytest

from bertology_utils.checks import pruning as check


def right_mask(weights, share):
    keep = np.ones(weights.size, dtype=bool)
    keep[np.argsort(np.abs(weights).ravel())[: int(share * weights.size)]] = False
    return keep.reshape(weights.shape)


def right_gain(right, right_without):
    half = len(right) // 2
    gains = right_without - right
    head = int(gains[:, :half].mean(axis=1).argmax())
    return head, gains[head, half:].mean()


def right_overlap(one, other, k):
    a, b = ({int(i) for i in np.argsort(run.ravel())[-k:]} for run in (one, other))
    return len(a & b) / len(a | b)


def right_interaction(loss, parts):
    base = loss(set())
    return (loss(set(parts)) - base) - sum(loss({part}) - base for part in parts)


def stub(*_):
    raise NotImplementedError


RIGHT = [
    (check.magnitude_mask, right_mask),
    (check.gain_elsewhere, right_gain),
    (check.overlap, right_overlap),
    (check.interaction, right_interaction),
]


@pytest.mark.parametrize(("judge", "answer"), RIGHT, ids=lambda x: x.__name__)
def test_the_solution_passes_again_and_again(judge, answer):
    for _ in range(5):
        assert judge(answer), judge(answer).message


@pytest.mark.parametrize("judge", [judge for judge, _ in RIGHT], ids=lambda x: x.__name__)
def test_an_empty_stub_fails(judge):
    found = judge(stub)
    assert not found and "nothing is written" in found.message


def signed(weights, share):
    keep = np.ones(weights.size, dtype=bool)
    keep[np.argsort(weights.ravel())[: int(share * weights.size)]] = False
    return keep.reshape(weights.shape)


def inverted(weights, share):
    return ~right_mask(weights, share)


def peeking(right, right_without):
    half = len(right) // 2
    gains = right_without - right
    head = int(gains[:, half:].mean(axis=1).argmax())
    return head, gains[head, half:].mean()


def same_half(right, right_without):
    half = len(right) // 2
    gains = (right_without - right)[:, :half].mean(axis=1)
    return int(gains.argmax()), gains.max()


def over_k(one, other, k):
    a, b = ({int(i) for i in np.argsort(run.ravel())[-k:]} for run in (one, other))
    return len(a & b) / k


def least(one, other, k):
    a, b = ({int(i) for i in np.argsort(run.ravel())[:k]} for run in (one, other))
    return len(a & b) / len(a | b)


def no_base(loss, parts):
    return loss(set(parts)) - sum(loss({part}) for part in parts)


def turned(loss, parts):
    return -right_interaction(loss, parts)


@pytest.mark.parametrize(
    ("judge", "answer", "hint"),
    [
        (check.magnitude_mask, signed, "sign"),
        (check.magnitude_mask, inverted, "other way round"),
        (check.gain_elsewhere, peeking, "second half"),
        (check.gain_elsewhere, same_half, "half that chose"),
        (check.overlap, over_k, "union"),
        (check.overlap, least, "least important"),
        (check.interaction, no_base, "every term"),
        (check.interaction, turned, "sign"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_typical_slips_are_named(judge, answer, hint):
    for _ in range(3):
        found = judge(answer)
        assert not found and hint in found.message, found.message
