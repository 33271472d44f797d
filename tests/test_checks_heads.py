"""The checks of the chapter on heads: right answers pass, stubs and typical slips do not."""

import numpy as np
import pytest

from bertology_utils.checks import heads as check


def right_offset(pattern, offset):
    return np.diagonal(pattern, offset).mean()


def right_best(hits, counts):
    half = len(hits) // 2
    head = int(hits[:half].sum(axis=0).argmax())
    return head, hits[half:, head].sum() / counts[half:].sum()


def right_shares(pattern, values, output):
    moved = pattern * np.linalg.norm(values @ output, axis=1)
    return moved / moved.sum(axis=1, keepdims=True)


def stub(*_):
    raise NotImplementedError


RIGHT = [
    (check.offset_attention, right_offset),
    (check.held_out_best, right_best),
    (check.norm_shares, right_shares),
]


@pytest.mark.parametrize(("judge", "answer"), RIGHT, ids=lambda x: x.__name__)
def test_the_solution_passes_again_and_again(judge, answer):
    for _ in range(5):
        assert judge(answer), judge(answer).message


@pytest.mark.parametrize("judge", [judge for judge, _ in RIGHT], ids=lambda x: x.__name__)
def test_an_empty_stub_fails(judge):
    found = judge(stub)
    assert not found and "nothing is written" in found.message


def all_rows(pattern, offset):
    return np.diagonal(pattern, offset).sum() / len(pattern)


def turned(pattern, offset):
    return np.diagonal(pattern, -offset).mean()


def peeking(hits, counts):
    half = len(hits) // 2
    head = int(hits[half:].sum(axis=0).argmax())
    return head, hits[half:, head].sum() / counts[half:].sum()


def same_half(hits, counts):
    half = len(hits) // 2
    head = int(hits[:half].sum(axis=0).argmax())
    return head, hits[:half, head].sum() / counts[:half].sum()


def by_sentence(hits, counts):
    half = len(hits) // 2
    rates = hits / counts[:, None]
    head = int(rates[:half].mean(axis=0).argmax())
    return head, rates[half:, head].mean()


def only_weights(pattern, values, output):
    return pattern


def before_the_output(pattern, values, output):
    moved = pattern * np.linalg.norm(values, axis=1)
    return moved / moved.sum(axis=1, keepdims=True)


def not_shares(pattern, values, output):
    return pattern * np.linalg.norm(values @ output, axis=1)


@pytest.mark.parametrize(
    ("judge", "answer", "says"),
    [
        (check.offset_attention, all_rows, "should not count"),
        (check.offset_attention, turned, "wrong way round"),
        (check.held_out_best, peeking, "must stay unseen"),
        (check.held_out_best, same_half, "second half alone"),
        (check.held_out_best, by_sentence, "count as much as long ones"),
        (check.norm_shares, only_weights, "lengths do not seem to count"),
        (check.norm_shares, before_the_output, "after the output map"),
        (check.norm_shares, not_shares, "sum to 1"),
    ],
)
def test_typical_slips_are_named(judge, answer, says):
    for _ in range(3):
        found = judge(answer)
        assert not found
        assert says in found.message
