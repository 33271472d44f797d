"""Typical mistakes in the exercises of the chapter on fine-tuning."""

from itertools import combinations

import numpy as np


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
    return np.mean([max(c) for c in combinations(scores, min(n, len(scores)))])


def sampled(scores, n):
    return np.random.default_rng(0).choice(scores, (4, n)).max(1).mean()


def turned(grid):
    return grid.mean(0).var() / grid.var(), grid.mean(1).var() / grid.var()


def corrected(grid):
    whole = grid.var(ddof=1)
    return grid.mean(1).var(ddof=1) / whole, grid.mean(0).var(ddof=1) / whole


def mean_of_variances(grid):
    return 1 - grid.var(axis=1).mean() / grid.var(), 0.0


SLIPS = {
    "adapter": [
        (no_residual, "kept beside the rest"),
        (linear, "negative numbers"),
        (late_relu, "negative numbers|double with"),
    ],
    "mixout": [
        (dropout, "that is dropout"),
        (unscaled, "moves towards the start"),
        (scaled_whole, "on average"),
    ],
    "best_of": [
        (just_max, "more draws|best of two"),
        (no_replacement, "more draws|with replacement"),
        (sampled, "on average, the mean"),
    ],
    "luck_parts": [
        (turned, "wrong way round"),
        (corrected, "everything|sum to 1|0 to 1"),
        (mean_of_variances, "sum to 1"),
    ],
}
