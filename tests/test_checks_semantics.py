"""Each check accepts a right answer, rejects an empty one, and says what is wrong with others."""

import numpy as np
import pytest

from bertology_utils.checks import semantics as check


def empty(*_):
    raise NotImplementedError


def order(scores):
    return np.mean((scores[:, 0] > scores[:, 1]) & (scores[:, 1] > scores[:, 2]))


def log_ratio(values, predicted, limit):
    wrong, far = (predicted - values) ** 2, values >= limit
    return 0.5 * np.log(wrong[far].mean() / wrong[~far].mean())


def split(people, held_out):
    train = [i for i, pair in enumerate(people) if not set(pair) & held_out]
    return train, [i for i, pair in enumerate(people) if set(pair) <= held_out]


RIGHT = {check.in_order: order, check.beyond: log_ratio, check.by_name: split}


@pytest.mark.parametrize("judge", RIGHT, ids=lambda judge: judge.__name__)
def test_right_passes_and_empty_fails(judge):
    for _ in range(5):
        assert judge(RIGHT[judge]), str(judge(RIGHT[judge]))
    assert "nothing is written" in judge(empty).message


WRONG = [
    (check.in_order, lambda s: np.mean(s[:, 0] > s[:, 1]), "beat the unrelated one too"),
    (check.in_order, lambda s: np.mean(s[:, 1] > s[:, 2]), "must beat the related one"),
    (check.in_order, lambda s: np.mean((s[:, 0] >= s[:, 1]) & (s[:, 1] > s[:, 2])), "equal scores"),
    (check.in_order, lambda s: np.sum((s[:, 0] > s[:, 1]) & (s[:, 1] > s[:, 2])), "should be 1"),
    (check.beyond, lambda v, p, m: 2 * log_ratio(v, p, m), "ratio of two errors in units"),
    (check.beyond, lambda v, p, m: log_ratio(v, p, m + 1e-9), "equal to the limit"),
    (
        check.beyond,
        lambda v, p, m: np.log(np.abs(p - v)[v >= m].mean() / np.abs(p - v)[v < m].mean()),
        "take squares before the mean",
    ),
    (check.beyond, lambda v, p, m: -log_ratio(v, p, m), "should give a positive number"),
    (
        check.by_name,
        lambda people, held: (
            [i for i, (a, _) in enumerate(people) if a not in held],
            [i for i, (a, _) in enumerate(people) if a in held],
        ),
        "look at both people",
    ),
    (
        check.by_name,
        lambda people, held: (
            split(people, held)[0],
            [i for i, pair in enumerate(people) if set(pair) & held],
        ),
        "also holds a known name",
    ),
    (check.by_name, lambda people, held: ([], []), "left out"),
]


@pytest.mark.parametrize(("judge", "answer", "message"), WRONG)
def test_typical_mistakes_are_named(judge, answer, message):
    found = judge(answer)
    assert not found
    assert message in found.message
