"""The checks of the chapter on training: right answers pass, stubs and typical slips do not."""

import numpy as np
import pytest
from scipy.stats import t

from bertology_utils.checks import training as check


def right_corrupt(ids, chosen, mask_id, n_words, rng):
    fate = rng.random(len(ids))
    words = rng.integers(0, n_words, len(ids))
    shown = np.where(chosen & (fate < 0.8), mask_id, ids)
    return np.where(chosen & (fate >= 0.8) & (fate < 0.9), words, shown)


def right_rate(step, warm, steps, peak):
    if step <= warm:
        return peak * step / warm
    return peak * (steps + 1 - step) / (steps + 1 - warm)


def right_difference(first, second):
    gap = np.asarray(first) - np.asarray(second)
    n = len(gap)
    return gap.mean(), t.ppf(0.975, n - 1) * gap.std(ddof=1) / np.sqrt(n)


def right_stack(layers):
    return [layer.copy() for layer in layers] + [layer.copy() for layer in layers]


def stub(*_):
    raise NotImplementedError


RIGHT = [
    (check.corrupt, right_corrupt),
    (check.learning_rate, right_rate),
    (check.paired_difference, right_difference),
    (check.stack, right_stack),
]


@pytest.mark.parametrize(("judge", "answer"), RIGHT, ids=lambda x: x.__name__)
def test_the_solution_passes_again_and_again(judge, answer):
    for _ in range(5):
        assert judge(answer), judge(answer).message


@pytest.mark.parametrize("judge", [judge for judge, _ in RIGHT], ids=lambda x: x.__name__)
def test_an_empty_stub_fails(judge):
    found = judge(stub)
    assert not found and "nothing is written" in found.message


def always_masked(ids, chosen, mask_id, n_words, rng):
    return np.where(chosen, mask_id, ids)


def in_place(ids, chosen, mask_id, n_words, rng):
    ids[chosen & (rng.random(len(ids)) < 0.8)] = mask_id
    return ids


def everywhere(ids, chosen, mask_id, n_words, rng):
    return right_corrupt(ids, np.ones(len(ids), bool), mask_id, n_words, rng)


def never_kept(ids, chosen, mask_id, n_words, rng):
    fate = rng.random(len(ids))
    words = (ids + 1 + rng.integers(0, n_words - 1, len(ids))) % n_words
    return np.where(chosen, np.where(fate < 0.8, mask_id, words), ids)


def zero_first(step, warm, steps, peak):
    return peak * (step - 1) / warm if step <= warm else right_rate(step, warm, steps, peak)


def ends_at_zero(step, warm, steps, peak):
    return peak * step / warm if step <= warm else peak * (steps - step) / (steps - warm)


def unpaired(first, second):
    n = len(first)
    spread = np.sqrt(np.var(first, ddof=1) + np.var(second, ddof=1))
    return np.mean(first) - np.mean(second), t.ppf(0.975, n - 1) * spread / np.sqrt(n)


def normal(first, second):
    gap = first - second
    return gap.mean(), 1.96 * gap.std(ddof=1) / np.sqrt(len(gap))


def divided_by_n(first, second):
    gap = first - second
    return gap.mean(), t.ppf(0.975, len(gap) - 1) * gap.std() / np.sqrt(len(gap))


def turned(first, second):
    return right_difference(second, first)


def shared(layers):
    return layers + layers


def each_doubled(layers):
    return [copy.copy() for layer in layers for copy in (layer, layer)]


WRONG = [
    (check.corrupt, always_masked, "only 80%"),
    (check.corrupt, in_place, "work on a copy"),
    (check.corrupt, everywhere, "not chosen"),
    (check.corrupt, never_kept, "keeps its word"),
    (check.learning_rate, zero_first, "reach peak"),
    (check.learning_rate, ends_at_zero, "no rate left"),
    (check.paired_difference, unpaired, "not paired"),
    (check.paired_difference, normal, "Student's t"),
    (check.paired_difference, divided_by_n, "N - 1"),
    (check.paired_difference, turned, "first minus second"),
    (check.stack, shared, "the same array"),
    (check.stack, each_doubled, "on its own copy"),
]


@pytest.mark.parametrize(
    ("judge", "answer", "word"), WRONG, ids=lambda x: getattr(x, "__name__", x)
)
def test_typical_slips_are_named(judge, answer, word):
    found = judge(answer)
    assert not found
    assert word in found.message
