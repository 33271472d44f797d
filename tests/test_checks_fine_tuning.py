"""The checks of the chapter on fine-tuning: right answers pass, stubs and typical slips do not."""

import numpy as np
import pytest

from bertology_utils.checks import fine_tuning as check


def right_adapter(states, down, up):
    return states + np.maximum(states @ down, 0) @ up


def right_mixout(weights, start, back, share):
    return start + np.where(back, 0, (weights - start) / (1 - share))


def right_best(scores, n):
    at_most = (np.arange(len(scores) + 1) / len(scores)) ** n
    return np.sort(scores) @ np.diff(at_most)


def right_parts(grid):
    return grid.mean(1).var() / grid.var(), grid.mean(0).var() / grid.var()


def stub(*_):
    raise NotImplementedError


RIGHT = [
    (check.adapter, right_adapter),
    (check.mixout, right_mixout),
    (check.best_of, right_best),
    (check.luck_parts, right_parts),
]


@pytest.mark.parametrize(("judge", "answer"), RIGHT, ids=lambda x: x.__name__)
def test_the_solution_passes_again_and_again(judge, answer):
    for _ in range(20):
        assert judge(answer), judge(answer).message


@pytest.mark.parametrize("judge", [judge for judge, _ in RIGHT], ids=lambda x: x.__name__)
def test_an_empty_stub_fails(judge):
    found = judge(stub)
    assert not found and "nothing is written" in found.message


def no_residual(states, down, up):
    return np.maximum(states @ down, 0) @ up


def linear(states, down, up):
    return states + states @ down @ up


def late_relu(states, down, up):
    return states + np.maximum(states @ down @ up, 0)


def dropout(weights, start, back, share):
    return np.where(back, 0, weights / (1 - share))


def unscaled(weights, start, back, share):
    return np.where(back, start, weights)


def scaled_whole(weights, start, back, share):
    return np.where(back, start, weights / (1 - share))


def just_max(scores, n):
    return np.max(scores) if n > 1 else np.mean(scores)


def no_replacement(scores, n):
    from itertools import combinations

    n = min(n, len(scores))
    if n > 3:
        return np.sort(scores)[-1] - 1e-3 / n if n < len(scores) else np.max(scores)
    return np.mean([max(c) for c in combinations(scores, n)])


def sampled(scores, n):
    return np.random.default_rng(0).choice(scores, (4, n)).max(1).mean()


def turned(grid):
    return right_parts(grid)[::-1]


def corrected(grid):
    return grid.mean(1).var(ddof=1) / grid.var(ddof=1), grid.mean(0).var(ddof=1) / grid.var(ddof=1)


def within(grid):
    return 1 - grid.mean(1).var() / grid.var(), 1 - grid.mean(0).var() / grid.var()


@pytest.mark.parametrize(
    ("judge", "answer", "says"),
    [
        (check.adapter, no_residual, "kept beside the rest"),
        (check.adapter, linear, "negative numbers"),
        (check.adapter, late_relu, ""),
        (check.mixout, dropout, "that is dropout"),
        (check.mixout, unscaled, "moves towards the start"),
        (check.mixout, scaled_whole, "on average"),
        (check.best_of, just_max, ""),
        (check.best_of, no_replacement, ""),
        (check.best_of, sampled, "on average, the mean"),
        (check.luck_parts, turned, "wrong way round"),
        (check.luck_parts, corrected, ""),
        (check.luck_parts, within, "wrong way round"),
    ],
)
def test_typical_slips_are_named(judge, answer, says):
    for _ in range(3):
        found = judge(answer)
        assert not found
        assert says in found.message
