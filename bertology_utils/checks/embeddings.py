"""Checks of the exercises of the chapter on embeddings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .judging import Wrong, as_array, ask, check, expect


@check("every pair of different rows counts once, by its cosine.")
def self_similarity(answer: Callable) -> None:
    """``answer(vectors)``: mean cosine over the pairs of different rows."""
    draw = np.random.default_rng()

    def value(vectors: np.ndarray) -> float:
        return float(as_array("the self-similarity", ask(answer, vectors), ()))

    row = draw.standard_normal(6)
    expect(np.isclose(value(np.stack([row] * 4)), 1), "for equal rows the mean cosine is 1.")
    expect(
        np.isclose(value(np.stack([row, 3 * row, 0.5 * row])), 1),
        "rows of one direction have the cosine 1, whatever their lengths.",
    )
    apart = value(np.eye(5))
    expect(
        not np.isclose(apart, 1 / 5),
        "for rows at right angles the mean is 0; a row's cosine with itself does not count.",
    )
    expect(np.isclose(apart, 0), "for rows at right angles the mean cosine is 0.")
    expect(
        np.isclose(value(np.stack([row, -row])), -1), "for two opposite rows the mean cosine is -1."
    )
    # Two equal rows and one at right angles to both: one pair of three has the cosine 1.
    three = np.array([[1.0, 0, 0], [2.0, 0, 0], [0, 0, 1.0]])
    expect(
        np.isclose(value(three), 1 / 3),
        "two equal rows and a third at right angles: one pair of the three has the cosine 1. "
        "Divide by the number of pairs of different rows.",
    )
    vectors = draw.standard_normal((7, 4)) + 1
    turn = np.linalg.qr(draw.standard_normal((4, 4)))[0]
    expect(
        np.isclose(value(vectors), value(vectors @ turn)),
        "turning all vectors together should change nothing.",
    )


@check("fitted on one set, applied to another; the strongest directions are gone.")
def all_but_the_top(answer: Callable) -> None:
    """``answer(fitted, vectors, k)``: vectors without mean and k directions of ``fitted``."""
    draw = np.random.default_rng()
    n, d = 40, 6
    scales = np.array([9.0, 5.0, 1.0, 0.8, 0.6, 0.4])
    turn = np.linalg.qr(draw.standard_normal((d, d)))[0]
    mean = 3 * draw.standard_normal(d) + 4
    fitted = (draw.standard_normal((n, d)) * scales) @ turn + mean
    vectors = draw.standard_normal((8, d)) + mean

    def without(k: int, some: np.ndarray = vectors, base: np.ndarray = fitted) -> np.ndarray:
        return as_array("the result", ask(answer, base, some, k), some.shape)

    plain = without(0)
    expect(
        not np.allclose(plain, vectors),
        "also for k = 0 the mean has to go.",
    )
    expect(
        not np.allclose(plain, vectors - vectors.mean(0)),
        "the mean to take away is that of `fitted`, not that of the vectors.",
    )
    expect(
        np.allclose(plain, vectors - fitted.mean(0)),
        "for k = 0 only the mean of `fitted` is taken away.",
    )
    for k in (1, 2):
        found = without(k)
        gone = np.linalg.matrix_rank(plain - found, tol=1e-6)
        expect(gone == k, f"for k = {k} the vectors should lose {k} direction(s), not {gone}.")
        again = without(k, fitted)
        left = np.linalg.svd(again - again.mean(0), compute_uv=False)[0]
        whole = np.linalg.svd(fitted - fitted.mean(0), compute_uv=False)
        expect(
            np.isclose(left, whole[k]),
            f"after taking {k} direction(s) off `fitted`, the strongest that is left should be the "
            "next one in order. Centre before you look for directions, and take the strongest.",
        )
        lost = plain - found
        expect(
            np.allclose((lost * found).sum(1), 0, atol=1e-6),
            "what is taken away should be at right angles to what is left; are your directions of "
            "length 1?",
        )
        expect(
            np.allclose(without(k, vectors[:1]), found[:1]),
            "the directions come from `fitted` alone: one vector more or less should not matter.",
        )


@check("the nearest by cosine, and none from one's own context.")
def neighbour_senses(answer: Callable) -> None:
    """``answer(vectors, senses, contexts)``: sense of the nearest occurrence elsewhere."""
    draw = np.random.default_rng()

    def given(vectors: np.ndarray, senses: list[str], contexts: np.ndarray) -> list[str]:
        reply = ask(answer, vectors, senses, contexts)
        try:
            found = [str(sense) for sense in reply]
        except TypeError:
            raise Wrong(f"a list of senses is wanted, not {type(reply).__name__}.") from None
        expect(len(found) == len(senses), f"{len(senses)} senses are wanted, not {len(found)}.")
        return found

    # Every occurrence is nearest to itself, then to one of its context, then to another sense.
    for _ in range(3):
        centres = np.linalg.qr(draw.standard_normal((6, 6)))[0]
        pair = np.array([0, 0, 1, 1, 2, 2])  # contexts of two variants each
        base = centres[pair] + 0.002 * draw.standard_normal((6, 6))
        base[2:4] += 0.5 * centres[0]  # context 1 leans to 0, context 2 to 1
        base[4:6] += 0.5 * centres[1]
        base /= np.linalg.norm(base, axis=1, keepdims=True)  # lengths are for later
        order = draw.permutation(6)
        senses = np.array(["a", "a", "b", "b", "c", "c"])[order].tolist()
        contexts = np.array([7, 7, 3, 3, 5, 5])[order]
        expected = np.array(["b", "b", "a", "a", "b", "b"])[order].tolist()
        found = given(base[order], senses, contexts)
        expect(
            found != senses,
            "every occurrence got its own sense here, though all occurrences of other contexts "
            "have other senses. An occurrence, or a variant of its sentence, vouched for itself.",
        )
        expect(found == expected, "not the nearest occurrence of another context was asked.")
    # A long vector has large products with everything, but no large cosines.
    vectors = np.array([[1.0, 0.0], [0.9, 0.1], [30.0, 40.0], [0.1, 1.0]])
    found = given(vectors, ["x", "y", "long", "z"], np.arange(4))
    expect(
        found[0] == "y",
        "a long vector attracted a neighbour that points elsewhere: compare directions, not "
        "products.",
    )
    expect(found == ["y", "x", "z", "long"], "not the nearest occurrence was asked.")


@check("the own word against the mean over all words, in logarithms that do not overflow.")
def information_bound(answer: Callable) -> None:
    """``answer(scores)``: InfoNCE bound from [N, N] log f."""
    draw = np.random.default_rng()

    def bound(scores: np.ndarray) -> float:
        return float(as_array("the bound", ask(answer, scores), ()))

    n = int(draw.integers(4, 9))
    nothing = bound(np.zeros((n, n)))
    expect(
        not np.isclose(nothing, -np.log(n)),
        "if f is the same for all, nothing is shared and the bound is 0. Under the fraction line "
        "stands a mean, not a sum.",
    )
    expect(np.isclose(nothing, 0), "if f is the same for all, the bound is 0.")
    sure = bound(np.where(np.eye(n) > 0, 60.0, 0.0))
    expect(
        np.isclose(sure, np.log(n)),
        "if every context is sure of its own word, the bound is log N, its largest value.",
    )
    scores = draw.standard_normal((n, n)) * 2
    shifted = scores + draw.standard_normal((n, 1)) * 3
    expect(
        np.isclose(bound(shifted), bound(scores)),
        "adding the same number to all scores of one context should change nothing: each context "
        "compares its own word with the other words (rows, not columns).",
    )
    swap = draw.permutation(n)
    expect(
        np.isclose(bound(scores[np.ix_(swap, swap)]), bound(scores)),
        "the order of the texts should not matter.",
    )
    two = np.log(np.array([[3.0, 1.0], [1.0, 1.0]]))
    expect(
        np.isclose(bound(two), np.log(1.5) / 2),
        "with f = 3 for the own word and 1 for the other, the mean is 2 and the first context "
        "gains log 1.5; the second gains nothing. Average f itself, not its logarithm.",
    )
    large = np.asarray(ask(answer, scores + 2000), float)
    expect(
        bool(np.isfinite(large).all() and np.isclose(large, bound(scores)).all()),
        "large scores overflow: exp(2000) is infinite. Add in logarithms.",
    )
