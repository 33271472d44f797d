"""Typical mistakes in the exercises on world knowledge, and what their checks must say."""

from collections import Counter
from itertools import combinations

import numpy as np


def precision(ranks, k):
    found = [np.mean([r - i <= k for i, r in enumerate(sorted(own))]) for own in ranks]
    return np.mean(found)


def majority(train, test):
    (usual, _), *_ = Counter(train).most_common()
    return test.count(usual) / len(test)


def consistency(choices):
    pairs = list(combinations(np.array(choices), 2))
    return np.mean([a == b for a, b in pairs], axis=0)


def with_itself(choices):
    table = np.array(choices)
    return (table[:, None] == table[None]).mean(axis=(0, 1))


def with_the_first(choices):
    table = np.array(choices)
    return (table[1:] == table[:1]).mean(axis=0)


def largest_group(choices):
    return [max(Counter(own).values()) / len(own) for own in zip(*choices, strict=True)]


def peeking(hits, parts):
    out = np.empty(len(parts))
    for part in np.unique(parts):
        best = hits[:, parts == part].mean(axis=1).argmax()
        out[parts == part] = hits[best, parts == part]
    return out


SLIPS = {
    "precision": [
        (
            lambda r, k: np.mean([np.mean([x <= k for x in own]) for own in r]),
            "take the other two away",
        ),
        (lambda r, k: np.mean([min(own) <= k for own in r]), "counts one half"),
        (
            lambda r, k: np.mean(
                [[x - i <= k for i, x in enumerate(sorted(own))][-1] for own in r]
            ),
            "counts one half",
        ),
        (lambda r, k: precision(r, k - 1), "by one guess"),
        (
            lambda r, k: np.mean([x - i <= k for own in r for i, x in enumerate(sorted(own))]),
            "weighs the same",
        ),
        (
            lambda r, k: np.mean([np.mean([x - i <= k for i, x in enumerate(own)]) for own in r]),
            "order",
        ),
    ],
    "majority": [
        (lambda train, test: majority(test, test), "before the test facts are seen"),
        (lambda train, test: majority(train, train), "that of the test facts"),
        (lambda train, test: Counter(train).most_common(1)[0][0], "should be numbers"),
        (lambda train, test: majority(train, test) * len(test), "between 0 and 1"),
    ],
    "consistency": [
        (with_itself, "agreeing with itself"),
        (with_the_first, "of the six pairs still agree"),
        (largest_group, "should be 0"),
        (lambda choices: consistency(choices).mean(), "the shape"),
    ],
    "on_others": [
        (peeking, "judged on"),
        (lambda hits, parts: hits[hits.mean(axis=1).argmax()], "chosen on all facts"),
        (lambda hits, parts: hits.max(axis=0), "most hits on all other parts"),
    ],
}
