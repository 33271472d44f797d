"""Checks of the exercises of the chapter on the limits of probing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .judging import as_array, ask, check, expect


@check("one label per word type, drawn with the frequencies of the real labels.")
def control_task(answer: Callable) -> None:
    """``answer(types, labels, rng)``: control labels for all words, one list."""
    draw = np.random.default_rng()
    types = [f"w{i}" for i in draw.integers(0, 400, size=3000)]
    labels = draw.choice(["rare", "common"], p=[0.2, 0.8], size=3000).tolist()
    found = _labels(ask(answer, types, labels, np.random.default_rng(1)), len(types))
    expect(set(found) <= set(labels), "only labels of the real task should be given out.")
    by_type: dict[str, set] = {}
    for word, label in zip(types, found, strict=True):
        by_type.setdefault(word, set()).add(label)
    expect(
        all(len(given) == 1 for given in by_type.values()),
        "a word type should keep its label wherever it occurs.",
    )
    share = np.mean([next(iter(given)) == "rare" for given in by_type.values()])
    # 400 draws at 0.2 have a deviation of 0.02; a fair coin lies fifteen deviations away.
    expect(
        abs(share - labels.count("rare") / len(labels)) < 0.1,
        f"{share:.0%} of the types got a label that {labels.count('rare') / len(labels):.0%} of "
        "the words have: the frequencies should be those of the real labels.",
    )
    again = _labels(ask(answer, types, labels, np.random.default_rng(2)), len(types))
    expect(again != found, "another generator should give other labels.")
    linked = [f"t{i % 40}" for i in range(800)]
    truth = ["even" if i % 2 == 0 else "odd" for i in range(800)]
    random = _labels(ask(answer, linked, truth, np.random.default_rng(3)), 800)
    agreement = np.mean([a == b for a, b in zip(random, truth, strict=True)])
    expect(agreement < 0.95, "the labels should be random, and these are the real ones.")


def _labels(reply: object, n: int) -> list:
    expect(isinstance(reply, (list, tuple, np.ndarray)), "a list of labels should come back.")
    found = list(reply)
    expect(len(found) == n, "every word should get one label.")
    expect(all(isinstance(label, str) for label in found), "labels should be those given.")
    return [str(label) for label in found]


@check("first block uniform, all others by the probabilities, in bits.")
def online_bits(answer: Callable) -> None:
    """``answer(n_first, n_classes, blocks)``: length of the online code in bits."""
    draw = np.random.default_rng()
    for classes in (2, 5, 16):
        first = int(draw.integers(3, 20))
        alone = float(as_array("the length", ask(answer, first, classes, []), ()))
        expect(
            np.isclose(alone, first * np.log2(classes)),
            "with nothing but the first block, every label costs as much as with equal odds.",
        )
        sizes = draw.integers(2, 30, size=3)
        blocks = [draw.uniform(0.05, 0.99, size=size) for size in sizes]
        full = float(as_array("the length", ask(answer, first, classes, blocks), ()))
        expect(full > alone, "every further label that is not certain should cost something.")
        sure = float(as_array("the length", ask(answer, first, classes, [np.ones(7)]), ()))
        expect(np.isclose(sure, alone), "a label that was certain to come should cost nothing.")
        half = float(as_array("the length", ask(answer, first, classes, [np.full(9, 0.5)]), ()))
        expect(
            not np.isclose(half - alone, 9 * np.log(2)),
            "nine labels with even odds cost nine bits; mind the base of the logarithm.",
        )
        expect(
            not np.isclose(half - alone, 1),
            "a code has to send every label: add up, do not average.",
        )
        expect(np.isclose(half - alone, 9), "nine labels with even odds should cost nine bits.")
        apart = sum(
            float(as_array("the length", ask(answer, first, classes, [block]), ())) - alone
            for block in blocks
        )
        expect(np.isclose(full - alone, apart), "the costs of the blocks should add up.")


@check("it removes all of the directions and nothing else.")
def remove(answer: Callable) -> None:
    """``answer(vectors, directions)``: vectors [n, D] without the span of directions [k, D]."""
    draw = np.random.default_rng()
    for n, width, k in ((20, 5, 1), (30, 12, 3)):
        vectors, directions = draw.normal(size=(n, width)), draw.normal(size=(k, width))
        directions *= draw.uniform(0.2, 5, size=(k, 1))
        found = as_array("the vectors", ask(answer, vectors, directions), (n, width))
        if k == 1:
            expect(
                np.allclose(found @ directions.T, 0, atol=1e-6),
                "something is left along the direction; it need not have the length 1.",
            )
        expect(
            np.allclose(found @ directions.T, 0, atol=1e-6),
            "something is left along the directions; they need not be at right angles.",
        )
        basis = np.linalg.svd(directions)[2]
        rest = basis[k:]
        expect(
            np.allclose(found @ rest.T, vectors @ rest.T, atol=1e-6),
            "what is at right angles to all of the directions should stay as it is.",
        )
        twice = as_array("the vectors", ask(answer, found, directions), (n, width))
        expect(np.allclose(twice, found, atol=1e-6), "doing it twice should change nothing more.")
    same = np.tile(draw.normal(size=(1, 6)), (2, 1))
    vectors = draw.normal(size=(9, 6))
    found = as_array("the vectors", ask(answer, vectors, same), (9, 6))
    expect(
        np.allclose(found @ same.T, 0, atol=1e-6) and np.linalg.matrix_rank(found) == 5,
        "a direction named twice should be removed once.",
    )


@check("best and worst are chosen on one part and compared on the other.")
def honest_gap(answer: Callable) -> None:
    """``answer(table, choose, test)``: gap between best and worst row of hits, without flattery."""
    draw = np.random.default_rng()
    gaps = []
    for _ in range(40):
        table = (draw.uniform(size=(6, 60)) < 0.5).astype(float)
        order = draw.permutation(60)
        choose, test = order[:30], order[30:]
        gaps.append(float(as_array("the gap", ask(answer, table, choose, test), ())))
    # Six equal coins: the naive gap is about 0.25 on thirty pairs, the honest one 0 +- 0.02.
    expect(
        abs(np.mean(gaps)) < 0.15,
        f"six ways that all guess come out {np.mean(gaps):.0%} apart on average: "
        "choosing and measuring on the same pairs flatters the gap.",
    )
    table = np.zeros((3, 40))
    table[1, :], table[2, ::2] = 1, 1
    found = float(as_array("the gap", ask(answer, table, np.arange(20), np.arange(20, 40)), ()))
    expect(np.isclose(found, 1), "a way that is always right and one that never is are 1 apart.")
    expect(min(gaps) < 0, "what was best on one part can be worse on the other: allow it.")
