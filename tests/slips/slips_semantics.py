"""Typical mistakes in the exercises on semantics, and what their checks must say."""

import numpy as np


def log_ratio(values, predicted, limit):
    wrong, far = (predicted - values) ** 2, values >= limit
    return 0.5 * np.log(wrong[far].mean() / wrong[~far].mean())


def split(people, held_out):
    train = [i for i, pair in enumerate(people) if not set(pair) & held_out]
    return train, [i for i, pair in enumerate(people) if set(pair) <= held_out]


SLIPS = {
    "in_order": [
        (lambda s: np.mean(s[:, 0] > s[:, 1]), "beat the unrelated one too"),
        (lambda s: np.mean(s[:, 1] > s[:, 2]), "must beat the related one"),
        (lambda s: np.mean((s[:, 0] >= s[:, 1]) & (s[:, 1] > s[:, 2])), "equal scores"),
        (lambda s: np.sum((s[:, 0] > s[:, 1]) & (s[:, 1] > s[:, 2])), "should be 1"),
    ],
    "beyond": [
        (lambda v, p, m: 2 * log_ratio(v, p, m), "ratio of two errors in units"),
        (lambda v, p, m: log_ratio(v, p, m + 1e-9), "equal to the limit"),
        (
            lambda v, p, m: np.log(np.abs(p - v)[v >= m].mean() / np.abs(p - v)[v < m].mean()),
            "take squares before the mean",
        ),
        (lambda v, p, m: -log_ratio(v, p, m), "should give a positive number"),
    ],
    "by_name": [
        (
            lambda people, held: (
                [i for i, (a, _) in enumerate(people) if a not in held],
                [i for i, (a, _) in enumerate(people) if a in held],
            ),
            "look at both people",
        ),
        (
            lambda people, held: (
                split(people, held)[0],
                [i for i, pair in enumerate(people) if set(pair) & held],
            ),
            "also holds a known name",
        ),
        (lambda people, held: ([], []), "left out"),
    ],
}
