"""Checks of the exercises of the chapter on training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import t as student_t

from .judging import as_array, ask, check, expect


@check("the shares, the places, and that the input stays as it was.")
def corrupt(answer: Callable) -> None:
    """``answer(ids, chosen, mask_id, n_words, rng)``: what a masked model is shown."""
    draw = np.random.default_rng()
    n, n_words = 8000, 500
    mask_id = n_words + 3
    ids = draw.integers(0, n_words, n)
    chosen = draw.random(n) < 0.3
    shown = as_array("what is shown", ask(answer, ids, chosen, mask_id, n_words, draw), (n,))
    expect(
        np.array_equal(shown[~chosen], ids[~chosen]),
        "a place that was not chosen shows something else.",
    )
    masked = float((shown[chosen] == mask_id).mean())
    kept = float((shown[chosen] == ids[chosen]).mean())
    expect(masked < 0.99, "every chosen place shows the mask; only 80% should.")
    expect(abs(masked - 0.8) < 0.04, f"{masked:.0%} of the chosen places show the mask, not 80%.")
    expect(
        kept > 0.03, "no chosen place keeps its word, though 10% should: those teach the model to "
        "form a vector for words that it can see.",
    )  # fmt: skip
    expect(abs(kept - 0.1) < 0.04, f"{kept:.0%} of the chosen places keep their word, not 10%.")
    swapped = shown[chosen & (shown != mask_id) & (shown != ids)]
    expect(
        swapped.min() >= 0 and swapped.max() < n_words, "a random word lies outside the vocabulary."
    )
    expect(len(set(swapped.tolist())) > 50, "random words should differ from place to place.")
    again = [
        np.asarray(ask(answer, ids, chosen, mask_id, n_words, np.random.default_rng(7)))
        for _ in range(2)
    ]
    expect(
        np.array_equal(*again), "with the same generator the answer differs: use no other chance."
    )


@check("the rise, the peak, the fall and where it ends.")
def learning_rate(answer: Callable) -> None:
    """``answer(step, warm, steps, peak)``: linear warm-up and decay."""
    draw = np.random.default_rng()
    for _ in range(4):
        warm = int(draw.integers(3, 20))
        steps = warm + int(draw.integers(20, 200))
        peak = float(draw.uniform(0.001, 0.1))
        rates = np.array([
            float(as_array("the rate", ask(answer, step, warm, steps, peak), ()))
            for step in range(1, steps + 1)
        ])  # fmt: skip
        expect(np.isclose(rates[warm - 1], peak), "the last step of the warm-up should reach peak.")
        expect(rates[0] > 0, "the first step has no rate at all: the count starts at 1.")
        rise = np.diff(np.concatenate([[0.0], rates[:warm]]))
        expect(np.allclose(rise, rise[0]), "the warm-up should rise in equal steps, from 0 on.")
        expect(rates[-1] > 0, "the last step has no rate left; 0 comes one step after the end.")
        fall = np.diff(np.concatenate([rates[warm - 1 :], [0.0]]))
        expect(
            np.allclose(fall, fall[0]),
            "after the peak it should fall in equal steps, to 0 one step after the end.",
        )


@check("the mean, the pairing, N - 1 and Student's t.")
def paired_difference(answer: Callable) -> None:
    """``answer(first, second)``: mean difference and half of the width of its interval."""
    draw = np.random.default_rng()
    for n in (3, 5, 12):
        # Spread out for certain: drawn at random, three runs may share their luck by chance.
        luck = 5 * draw.permutation(n)
        first = luck + draw.normal(1.0, 0.3, n)
        second = luck + draw.normal(0.0, 0.3, n)
        found = ask(answer, first, second)
        pair = as_array("the answer", found, (2,))
        gap = first - second
        expect(np.isclose(pair[0], gap.mean()), "the mean is not that of first minus second.")
        expect(pair[1] > 0, "half of a width is a positive number.")
        reach = student_t.ppf(0.975, n - 1) / np.sqrt(n)
        apart = reach * np.sqrt(first.var(ddof=1) + second.var(ddof=1))
        expect(
            not np.isclose(pair[1], apart) and pair[1] < apart / 2,
            "the interval is as wide as if the runs were not paired: what two runs of one seed "
            "share should cancel.",
        )
        expect(
            not np.isclose(pair[1], reach * gap.std()),
            "the standard deviation divides by N; from a sample it divides by N - 1.",
        )
        expect(
            not np.isclose(pair[1], 1.96 * gap.std(ddof=1) / np.sqrt(n), rtol=1e-2)
            and not np.isclose(pair[1], 2 * gap.std(ddof=1) / np.sqrt(n), rtol=1e-2),
            "1.96 is for many runs; with so few, Student's t is wider.",
        )
        expect(np.isclose(pair[1], reach * gap.std(ddof=1)), "the half width is not right.")


@check("the order, the copies, and that they can learn apart.")
def stack(answer: Callable) -> None:
    """``answer(layers)``: a model of twice the depth from a shallow one."""
    draw = np.random.default_rng()
    for n in (1, 2, 3):
        layers = [draw.normal(size=(3, 4)) for _ in range(n)]
        before = [layer.copy() for layer in layers]
        found = list(ask(answer, layers))
        expect(len(found) == 2 * n, f"from {n} layers come {len(found)}, not {2 * n}.")
        once = [np.array_equal(a, b) for a, b in zip(found, before + before, strict=True)]
        doubled = [np.array_equal(found[2 * i], found[2 * i + 1]) for i in range(n)]
        expect(
            all(once) or n == 1 or not all(doubled),
            "each layer stands on its own copy; the whole stack should stand on a copy of itself.",
        )
        expect(all(once), "the layers are not those of the shallow model, twice, from below.")
        found[0][...] = 7.0
        expect(
            np.array_equal(found[n], before[0]),
            "changing one copy changes the other: they are the same array.",
        )
        expect(
            np.array_equal(layers[0], before[0]), "changing the deep model changes the shallow one."
        )
