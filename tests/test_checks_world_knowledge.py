"""Each check accepts a right answer, rejects an empty one, and says what is wrong with others."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from bertology_utils.checks import world_knowledge as check


def empty(*_):
    raise NotImplementedError


def precision(ranks, k):
    found = [np.mean([r - i <= k for i, r in enumerate(sorted(own))]) for own in ranks]
    return np.mean(found)


def majority(train, test):
    (usual, _), *_ = Counter(train).most_common()
    return test.count(usual) / len(test)


def consistency(choices):
    pairs = list(combinations(np.array(choices), 2))
    return np.mean([a == b for a, b in pairs], axis=0)


def on_others(hits, parts):
    out = np.empty(len(parts))
    for part in np.unique(parts):
        best = hits[:, parts != part].mean(axis=1).argmax()
        out[parts == part] = hits[best, parts == part]
    return out


RIGHT = {
    check.precision: precision,
    check.majority: majority,
    check.consistency: consistency,
    check.on_others: on_others,
}


@pytest.mark.parametrize("judge", RIGHT, ids=lambda judge: judge.__name__)
def test_right_passes_and_empty_fails(judge):
    for _ in range(20):
        assert judge(RIGHT[judge]), str(judge(RIGHT[judge]))
    assert "nothing is written" in judge(empty).message


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


WRONG = [
    (check.precision, lambda r, k: np.mean([np.mean([x <= k for x in own]) for own in r]),
     "take the other two away"),
    (check.precision, lambda r, k: np.mean([min(own) <= k for own in r]), "counts one half"),
    (check.precision, lambda r, k: np.mean([[x - i <= k for i, x in enumerate(sorted(own))][-1]
                                            for own in r]), "counts one half"),
    (check.precision, lambda r, k: precision(r, k - 1), "by one guess"),
    (check.precision, lambda r, k: np.mean([x - i <= k for own in r
                                            for i, x in enumerate(sorted(own))]),
     "weighs the same"),
    (check.precision, lambda r, k: np.mean([np.mean([x - i <= k for i, x in enumerate(own)])
                                            for own in r]), "order"),
    (check.majority, lambda train, test: majority(test, test), "before the test facts are seen"),
    (check.majority, lambda train, test: majority(train, train), "that of the test facts"),
    (check.majority, lambda train, test: Counter(train).most_common(1)[0][0], "should be numbers"),
    (check.majority, lambda train, test: majority(train, test) * len(test), "between 0 and 1"),
    (check.consistency, with_itself, "agreeing with itself"),
    (check.consistency, with_the_first, "of the six pairs still agree"),
    (check.consistency, largest_group, "should be 0"),
    (check.consistency, lambda choices: consistency(choices).mean(), "the shape"),
    (check.on_others, peeking, "judged on"),
    (check.on_others, lambda hits, parts: hits[hits.mean(axis=1).argmax()], "chosen on all facts"),
    (check.on_others, lambda hits, parts: hits.max(axis=0), "most hits on all other parts"),
]  # fmt: skip


@pytest.mark.parametrize(("judge", "answer", "message"), WRONG)
def test_typical_mistakes_are_named(judge, answer, message):
    for _ in range(5):
        found = judge(answer)
        assert not found
        assert message in found.message


def test_a_fact_may_not_be_changed():
    def sorting(ranks, k):
        for own in ranks:
            own.sort()
        return precision(ranks, k)

    assert "changes what it is given" in check.precision(sorting).message
