"""Typical mistakes in the exercises on training, and what their checks must say."""

import numpy as np
from scipy.stats import t


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


SLIPS = {
    "corrupt": [
        (always_masked, "only 80%"),
        (in_place, "work on a copy"),
        (everywhere, "not chosen"),
        (never_kept, "keeps its word"),
    ],
    "learning_rate": [
        (zero_first, "reach peak"),
        (ends_at_zero, "no rate left"),
    ],
    "paired_difference": [
        (unpaired, "not paired"),
        (normal, "Student's t"),
        (divided_by_n, "N - 1"),
        (turned, "first minus second"),
    ],
    "stack": [
        (shared, "the same array"),
        (each_doubled, "on its own copy"),
    ],
}
