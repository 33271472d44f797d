"""Checks of the exercises of the chapter on semantics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .judging import as_array, ask, check, expect


@check("both comparisons count, ties do not, and only the order matters.")
def in_order(answer: Callable) -> None:
    """``answer(scores)``: the share of rows [N, 3] that fall strictly from left to right."""
    draw = np.random.default_rng()

    def share(scores: np.ndarray) -> float:
        return float(as_array("the share", ask(answer, scores), ()))

    falling = -np.sort(draw.normal(size=(7, 3)) ** 2, axis=1) - 1
    expect(np.isclose(share(falling), 1), "if every row falls, the share should be 1.")
    expect(np.isclose(share(falling[:, ::-1]), 0), "if every row rises, the share should be 0.")
    first = falling[:, [0, 2, 1]]
    expect(
        np.isclose(share(first), 0),
        "a right filler in front is not enough: the related one must beat the unrelated one too.",
    )
    last = falling[:, [1, 0, 2]]
    expect(
        np.isclose(share(last), 0),
        "an unrelated filler at the end is not enough: the right one must beat the related one.",
    )
    tied = falling.copy()
    tied[:, 1] = tied[:, 0]
    expect(np.isclose(share(tied), 0), "two equal scores are not in order.")
    wanted = int(draw.integers(2, 6))
    mixed = falling.copy()
    mixed[wanted:] = mixed[wanted:, ::-1]
    found = share(mixed)
    expect(np.isclose(found, wanted / 7), "if some rows fall, their share of all rows is wanted.")
    expect(
        np.isclose(share(5 * mixed - 3), found),
        "scores that are all stretched and moved alike keep their order, so the share must stay.",
    )


@check("0 where it errs alike, positive where it errs more beyond, and by the root of the squares.")
def beyond(answer: Callable) -> None:
    """``answer(values, predicted, limit)``: log of the error from ``limit`` up over that below."""
    draw = np.random.default_rng()
    limit = float(draw.integers(40, 60))
    values = np.concatenate([draw.uniform(0, limit - 1, 20), [limit], draw.uniform(limit, 99, 9)])
    order = draw.permutation(len(values))
    values = values[order]
    signs = draw.choice([-1.0, 1.0], size=len(values))
    far = values >= limit

    def ratio(errors: np.ndarray) -> float:
        reply = ask(answer, values, values + errors, limit)
        return float(as_array("the log ratio", reply, ()))

    same = ratio(2.0 * signs)
    expect(np.isclose(same, 0, atol=1e-6), "errors of one size everywhere should give 0.")
    worse = float(draw.uniform(3, 30))
    found = ratio(np.where(far, worse, 1.0) * signs)
    expect(found > 0, "larger errors beyond the limit should give a positive number.")
    away = np.where(far, worse, 1.0)
    expect(
        np.isclose(ratio(away), ratio(-away)) and np.isclose(ratio(away), found),
        "guessing too high and too low by as much are equally wrong.",
    )
    expect(
        not np.isclose(found, worse) and not np.isclose(found, 2 * np.log(worse)),
        "the logarithm of the ratio of two errors in units of the numbers is wanted.",
    )
    expect(
        np.isclose(found, np.log(worse)),
        "the number equal to the limit lies outside the trained range; natural logarithms, please.",
    )
    one_off = np.where(far, 0.0, 1.0) * signs
    places = np.flatnonzero(far)
    one_off[places[0]] = 10.0
    expect(
        np.isclose(ratio(one_off), np.log(10 / np.sqrt(len(places)))),
        "one large error should weigh more than many small ones: take squares before the mean.",
    )


@check("no held-out name is trained on, and no test item holds a known name.")
def by_name(answer: Callable) -> None:
    """``answer(people, held_out)``: rows for training and rows for testing."""
    draw = np.random.default_rng()
    for _ in range(3):
        names = [f"name{i}" for i in range(8)]
        held_out = set(draw.permutation(names)[:3].tolist())
        pairs = [(a, b) for a in names for b in names if a != b]
        chosen = draw.permutation(len(pairs))[:40]
        people = [pairs[i] for i in chosen]
        reply = ask(answer, people, held_out)
        expect(
            isinstance(reply, (list, tuple)) and len(reply) == 2,
            "two lists of row numbers should come back: training and test.",
        )
        train, test = ([int(i) for i in part] for part in reply)
        expect(
            all(0 <= i < len(people) for i in (*train, *test)),
            "row numbers count from 0 and end before the number of sentences.",
        )
        expect(not set(train) & set(test), "a sentence must not be in both parts.")
        expect(
            not any(set(people[i]) & held_out for i in train),
            "a held-out name is trained on: look at both people of every sentence.",
        )
        expect(
            all(set(people[i]) <= held_out for i in test),
            "a test sentence also holds a known name, so its score is not about unseen ones.",
        )
        expect(
            len(train) == sum(not set(pair) & held_out for pair in people)
            and len(test) == sum(set(pair) <= held_out for pair in people),
            "some sentences were left out that belong to one of the parts.",
        )
