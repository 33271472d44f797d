"""Checks of the exercises of the chapter on world knowledge."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .judging import as_array, ask, check, expect


@check("every right answer is asked for by itself, and the others do not stand in its way.")
def precision(answer: Callable) -> None:
    """``answer(ranks, k)``: P@k from the ranks of all right answers of every fact."""
    draw = np.random.default_rng()

    def value(ranks: list[list[int]], k: int) -> float:
        return float(as_array("the precision", ask(answer, ranks, k), ()))

    single = draw.integers(2, 30, size=20).tolist()
    k = int(draw.integers(3, 12))
    hits = int(draw.integers(4, 9))
    single = [1 + i % k for i in range(hits)] + [k + rank for rank in single[hits:]]
    ranks = [[rank] for rank in draw.permutation(single).tolist()]
    expect(
        np.isclose(value([[1]], 1), 1) and np.isclose(value([[k + 1]], k), 0),
        "rank 1 is found by one guess, and rank k + 1 is not found by k guesses.",
    )
    expect(np.isclose(value([[k]], k), 1), "rank k is still among the first k.")
    expect(
        np.isclose(value(ranks, k), hits / 20),
        "with one right answer each, the share of facts found among the first k is wanted.",
    )
    expect(
        np.isclose(value([[1, 2, 3]], 1), 1),
        "three right answers in front: take the other two away, and each of them comes first.",
    )
    expect(
        np.isclose(value([[k + 1, k + 2, k + 3]], k), 0),
        "right answers only make way for those behind them; the best one gains nothing.",
    )
    expect(
        np.isclose(value([[9, 1]], 1), 0.5),
        "a fact with two right answers of which one is found counts one half.",
    )
    expect(
        np.isclose(value([[2, 1]], 1), value([[1, 2]], 1)),
        "the order in which the right answers are listed should not matter.",
    )
    expect(
        np.isclose(value([[1], [9, 1, 8, 7]], 1), (1 + 0.25) / 2),
        "every fact weighs the same, however many right answers it has.",
    )


@check("one guess, made on the training facts, for all test facts.")
def majority(answer: Callable) -> None:
    """``answer(train, test)``: share right when everything gets the usual training answer."""
    draw = np.random.default_rng()

    def share(train: list[str], test: list[str]) -> float:
        return float(as_array("the share", ask(answer, train, test), ()))

    words = [f"city{i}" for i in range(5)]
    for _ in range(5):
        usual, rare, *others = draw.permutation(words).tolist()
        train = [usual] * 7 + [rare] * 2 + others
        test = [usual] * int(draw.integers(2, 4)) + [rare] * 6 + others
        found = share(draw.permutation(train).tolist(), draw.permutation(test).tolist())
        expect(0 <= found <= 1, "a share lies between 0 and 1.")
        expect(
            not np.isclose(found, 6 / len(test)),
            "the guess has to be made before the test facts are seen.",
        )
        expect(
            not np.isclose(found, 7 / len(train)),
            "the guess comes from the training facts, but the share is that of the test facts.",
        )
        expect(
            np.isclose(found, test.count(usual) / len(test)),
            "the share of test facts whose answer is the most frequent training answer is wanted.",
        )
    expect(share(words[:2] * 2 + words[:1], words[2:]) == 0, "a guess can be wrong for all.")


@check("every pair of templates counts, and none is paired with itself.")
def consistency(answer: Callable) -> None:
    """``answer(choices)``: from T lists of N answers to [N] shares of template pairs that agree."""
    draw = np.random.default_rng()

    def shares(choices: list[list[str]]) -> np.ndarray:
        return as_array("the shares", ask(answer, choices), (len(choices[0]),))

    same = [["paris", "rome", "oslo"]] * 4
    expect(np.allclose(shares(same), 1), "if all templates agree, every share should be 1.")
    letters = [[f"{t}{n}" for n in range(5)] for t in "abcd"]
    expect(
        np.allclose(shares(letters), 0),
        "if no two templates agree, every share should be 0; a template agreeing with itself "
        "says nothing.",
    )
    odd = [["paris", "rome"], ["paris", "rome"], ["paris", "rome"], ["lima", "rome"]]
    expect(
        np.allclose(shares(odd)[1:], 1) and np.isclose(shares(odd)[0], 0.5),
        "one template of four differs: three of the six pairs still agree.",
    )
    expect(
        np.allclose(shares(odd[::-1]), shares(odd)),
        "the order of the templates should not matter; compare every pair, not only with the "
        "first.",
    )
    split = [["a"], ["a"], ["b"], ["b"]]
    expect(
        np.isclose(shares(split)[0], 1 / 3),
        "two and two: of the six pairs, two agree. Counting the largest group is not enough.",
    )
    choices = draw.choice(["x", "y", "z"], size=(5, 6))
    pairs = [(i, j) for i in range(5) for j in range(i)]
    wanted = np.mean([choices[i] == choices[j] for i, j in pairs], axis=0)
    expect(
        np.allclose(shares(choices.tolist()), wanted),
        "the share of pairs that agree is wanted, fact by fact.",
    )


@check("no fact helps to choose the template that is used on it.")
def on_others(answer: Callable) -> None:
    """``answer(hits, parts)``: [N] hits of the template that is best on the other parts."""
    draw = np.random.default_rng()
    # Hits of two templates in three parts of five facts. Over all facts the first is the better
    # one, but only because of the first part; on the other two parts alone it is the second.
    counts = np.array([[5, 2, 2], [1, 3, 3]])
    for _ in range(5):
        parts = draw.permutation(np.repeat([0, 1, 2], 5))
        better, other, _ = draw.permutation(3)
        hits = np.zeros((3, 15))
        for part, (many, few) in zip(draw.permutation(3), counts.T, strict=True):
            # From both ends of one order, so that no template is right wherever another one is.
            order = draw.permutation(np.flatnonzero(parts == part))
            hits[better, order[:many]] = hits[other, order[-few:]] = 1
        reply = as_array("the hits", ask(answer, hits, parts), (15,))
        same, wanted = np.empty(15), np.empty(15)
        for part in range(3):
            here = parts == part
            same[here] = hits[hits[:, here].mean(axis=1).argmax(), here]
            wanted[here] = hits[hits[:, ~here].mean(axis=1).argmax(), here]
        expect(set(np.unique(reply)) <= {0.0, 1.0}, "hits are 0 or 1, copied from the table.")
        expect(
            not np.array_equal(reply, same),
            "the template was chosen on the very facts that it is then judged on.",
        )
        expect(
            not np.array_equal(reply, hits[hits.mean(axis=1).argmax()]),
            "one template was chosen on all facts; leave out the part that it is judged on.",
        )
        expect(
            np.array_equal(reply, wanted),
            "for every part, take the template with the most hits on all other parts together.",
        )
