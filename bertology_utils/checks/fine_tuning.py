"""Checks of the exercises of the chapter on fine-tuning."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .judging import as_array, ask, check, expect


@check("nothing at first, the input kept, and no negative number passes the middle.")
def adapter(answer: Callable) -> None:
    """``answer(states, down, up)``: states [T, D] after a bottleneck adapter."""
    draw = np.random.default_rng()
    for length, size, width in ((3, 6, 2), (7, 4, 4), (5, 8, 3)):
        states = draw.normal(size=(length, size))
        down, up = draw.normal(size=(size, width)), draw.normal(size=(width, size))
        first = as_array("the states", ask(answer, states, down, np.zeros_like(up)), states.shape)
        expect(
            not np.allclose(first, 0),
            "with `up` all zero everything is lost; the input should be kept beside the rest.",
        )
        expect(np.allclose(first, states), "with `up` all zero, nothing should change.")
        added = as_array("the states", ask(answer, states, down, up), states.shape) - states
        twice = as_array("the states", ask(answer, states, down, 2 * up), states.shape) - states
        expect(
            np.allclose(twice, 2 * added),
            "what is added should double with `up`: nothing bends it behind the bottleneck.",
        )
        # A piece whose bottleneck is negative throughout adds nothing.
        low = np.abs(states)
        shut = as_array("the states", ask(answer, low, -np.abs(down), up), states.shape)
        expect(
            np.allclose(shut, low),
            "negative numbers should not pass the middle; is there a ReLU in the bottleneck?",
        )
        wide = as_array("the states", ask(answer, low, np.abs(down), up), states.shape) - low
        expect(not np.allclose(wide, 0), "what comes out of the bottleneck should be added.")
        more = as_array("the states", ask(answer, 3 * low, np.abs(down), up), states.shape)
        expect(
            np.allclose(more - 3 * low, 3 * wide),
            "positive numbers should pass the middle as they are.",
        )
        other = states.copy()
        other[0] = draw.normal(size=size)
        changed = as_array("the states", ask(answer, other, down, up), states.shape)
        expect(
            np.allclose(changed[1:] - states[1:], added[1:]),
            "every piece should be treated by itself.",
        )


@check("marked entries are back at the start, and the mean is as it was.")
def mixout(answer: Callable) -> None:
    """``answer(weights, start, back, share)``: weights with some entries put back."""
    draw = np.random.default_rng()
    for shape, share in (((4, 5), 0.5), ((30,), 0.8), ((6, 2), 0.25)):
        weights, start = draw.normal(size=shape), draw.normal(size=shape)
        back = draw.uniform(size=shape) < share
        back.flat[0], back.flat[1] = True, False
        found = as_array("the weights", ask(answer, weights, start, back, share), shape)
        expect(
            not np.allclose(found[back], 0) or np.allclose(start[back], 0),
            "marked entries should go back to where they began, not to zero: that is dropout.",
        )
        expect(np.allclose(found[back], start[back]), "marked entries should be as at the start.")
        expect(
            not np.allclose(found[~back], weights[~back]),
            "if some entries go back and the others stay, the mean moves towards the start.",
        )
        # Each entry is back with probability `share`, so its mean follows from both cases.
        everywhere = np.ones(shape, bool)
        gone = as_array("the weights", ask(answer, weights, start, everywhere, share), shape)
        stays = as_array("the weights", ask(answer, weights, start, ~everywhere, share), shape)
        mean = share * gone + (1 - share) * stays
        expect(
            np.allclose(mean, weights),
            "on average over many choices of `back`, every entry should be what it was.",
        )
        expect(
            np.allclose(found, np.where(back, gone, stays)),
            "an entry should not depend on which others go back.",
        )


@check("one draw gives the mean, many give the maximum, and all between is in order.")
def best_of(answer: Callable) -> None:
    """``answer(scores, n)``: mean of the best of n draws with replacement."""
    draw = np.random.default_rng()
    for size in (2, 5, 12):
        scores = draw.permutation(draw.uniform(0.3, 0.9, size=size))

        def of(n: int, scores: np.ndarray = scores) -> float:
            return float(as_array("the result", ask(answer, scores, n), ()))

        expect(np.isclose(of(1), scores.mean()), "the best of one run is, on average, the mean.")
        expect(
            np.isclose(of(4000), scores.max()),
            "with very many draws the best is surely the highest score.",
        )
        found = [of(n) for n in (1, 2, 3, 5, 9)]
        expect(
            all(b > a for a, b in zip(found, found[1:], strict=False)),
            "more draws should bring a better best.",
        )
        pairs = np.maximum.outer(scores, scores)
        without = pairs[~np.eye(size, dtype=bool)].mean()
        expect(
            not (size > 2 and np.isclose(of(2), without)),
            "runs are drawn with replacement: the same one may come twice.",
        )
        expect(np.isclose(of(2), pairs.mean()), "the best of two is off; list all pairs of draws.")
        triples = np.maximum(pairs[:, :, None], scores)
        expect(np.isclose(of(3), triples.mean()), "the best of three is off.")
        moved = float(as_array("the result", ask(answer, 2 * scores + 1, 3), ()))
        expect(np.isclose(moved, 2 * of(3) + 1), "scores on another scale should give the same.")


@check("rows, columns and the rest are told apart, and shares are of the whole variance.")
def luck_parts(answer: Callable) -> None:
    """``answer(grid)``: shares of the variance that go with rows and with columns."""
    draw = np.random.default_rng()
    for rows, columns in ((4, 4), (3, 7), (6, 2)):
        by_row, by_column = draw.normal(size=rows), draw.normal(size=columns)
        only = np.repeat(by_row[:, None], columns, axis=1) + 0.7
        first, second = _shares(answer, only)
        expect(
            not (np.isclose(first, 0) and np.isclose(second, 1)),
            "rows and columns are the wrong way round.",
        )
        expect(
            np.isclose(first, 1) and np.isclose(second, 0),
            "if all runs of a row are alike, rows should explain everything, and columns nothing.",
        )
        both = by_row[:, None] + by_column[None]
        first, second = _shares(answer, both)
        expect(
            np.isclose(first + second, 1),
            "if effects of rows and columns add up, their shares should sum to 1; the correction "
            "for small samples gets in the way, and so does a mean of variances.",
        )
        expect(
            np.isclose(first, by_row.var() / (by_row.var() + by_column.var())),
            "the share of the rows is the variance of their means over the variance of all cells.",
        )
        noisy = both + draw.normal(size=both.shape)
        first, second = _shares(answer, noisy)
        expect(first + second < 1, "what only the pair explains should belong to neither.")
        turned = _shares(answer, noisy.T.copy())
        expect(
            np.allclose(turned, (second, first)),
            "turning the grid should exchange the two shares.",
        )


def _shares(answer: Callable, grid: np.ndarray) -> tuple[float, float]:
    reply = ask(answer, grid)
    expect(
        isinstance(reply, (tuple, list, np.ndarray)) and len(reply) == 2,
        "two numbers should come back: the share of the rows and that of the columns.",
    )
    first, second = (float(as_array("a share", part, ())) for part in reply)
    expect(-1e-9 <= min(first, second) and max(first, second) <= 1 + 1e-9, "shares lie in 0 to 1.")
    return first, second
