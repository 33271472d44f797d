"""Checks of the exercises of the chapter on heads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .judging import as_array, ask, check, expect


def _map(draw: np.random.Generator, length: int) -> np.ndarray:
    return draw.dirichlet(np.full(length, 0.5), size=length)


@check("the right diagonal, and only pieces that have such a neighbour.")
def offset_attention(answer: Callable) -> None:
    """``answer(pattern, offset)``: mean attention to the piece ``offset`` places away."""
    draw = np.random.default_rng()
    for length in (4, 11, 30):
        for offset in (-1, 0, 1, -3, 2):
            # All attention at the offset, as far as there is such a piece; the others look at
            # a place that is not there either.
            pure = np.zeros((length, length))
            for i in range(length):
                there = 0 <= i + offset < length
                pure[i, i + offset if there else (i + 1 if offset < 0 else i - 1)] = 1
            found = float(as_array("the mean", ask(answer, pure, offset), ()))
            other = float(as_array("the mean", ask(answer, pure, -offset), ()))
            expect(
                offset == 0 or not (np.isclose(other, 1) and not np.isclose(found, 1)),
                "the sign of the offset is the wrong way round: rows look, columns are looked at.",
            )
            expect(
                not np.isclose(found, (length - abs(offset)) / length) or offset == 0,
                "pieces without such a neighbour should not count in the mean.",
            )
            expect(
                np.isclose(found, 1),
                "if every piece that can looks only there, the mean should be 1.",
            )
            even = np.full((length, length), 1 / length)
            found = float(as_array("the mean", ask(answer, even, offset), ()))
            expect(np.isclose(found, 1 / length), "even attention should give 1 / T.")
            one, two = _map(draw, length), _map(draw, length)
            parts = [float(as_array("the mean", ask(answer, m, offset), ())) for m in (one, two)]
            both = float(as_array("the mean", ask(answer, (one + two) / 2, offset), ()))
            expect(
                np.isclose(both, np.mean(parts)),
                "the mean of two maps should give the mean of their numbers.",
            )


@check("chosen on one half, measured on the other, guesses counted and not sentences.")
def held_out_best(answer: Callable) -> None:
    """``answer(hits, counts)``: the head chosen on one half and its accuracy on the other."""
    draw = np.random.default_rng()
    for n, size in ((6, 3), (40, 12)):
        half = n // 2
        counts = draw.integers(4, 30, size=n)
        hits = draw.binomial(counts[:, None], draw.uniform(0.1, 0.4, size=size))
        lucky, steady = draw.choice(size, 2, replace=False)
        # One head is perfect where heads are chosen and useless after, another the reverse.
        hits[:half, lucky], hits[half:, lucky] = counts[:half], 0
        hits[:half, steady], hits[half:, steady] = 0, counts[half:]
        head, found = _chosen(answer, hits, counts, size)
        expect(
            head != steady,
            "the head was chosen with the help of the second half, which must stay unseen.",
        )
        expect(head == lucky, "another head is better on the first half.")
        expect(
            np.isclose(found, 0),
            "the accuracy should come from the second half alone; here the chosen head "
            "finds nothing there.",
        )
        # A head that is good in one long sentence beats one that is good in many short ones.
        counts = np.full(n, 2)
        counts[0] = 40 * n
        hits = np.zeros((n, size), int)
        hits[0, lucky], hits[1:, steady] = counts[0], 2
        counts[half], hits[half, lucky] = 30, 30
        head, found = _chosen(answer, hits, counts, size)
        expect(
            head == lucky,
            "accuracy is the share of all guesses; a mean over sentences lets short ones "
            "count as much as long ones.",
        )
        share = 30 / (30 + 2 * (n - half - 1))
        expect(
            np.isclose(found, share),
            "on the second half, too, all guesses count alike, whatever sentence they are from.",
        )


def _chosen(answer: Callable, hits: np.ndarray, counts: np.ndarray, size: int):
    reply = ask(answer, hits, counts)
    expect(
        isinstance(reply, (tuple, list)) and len(reply) == 2,
        "two things should come back: the head's number and its accuracy.",
    )
    head = float(as_array("the head", reply[0], ()))
    expect(head == int(head) and 0 <= head < size, f"the head should be one of 0 to {size - 1}.")
    found = float(as_array("the accuracy", reply[1], ()))
    expect(0 <= found <= 1, "an accuracy lies between 0 and 1.")
    return int(head), found


@check("rows sum to 1, and a weight counts as far as what it moves is long.")
def norm_shares(answer: Callable) -> None:
    """``answer(pattern, values, output)``: norm-weighted attention of one head, as shares."""
    draw = np.random.default_rng()
    for length, size, width in ((3, 2, 5), (9, 4, 12)):
        pattern = _map(draw, length) + 1e-3
        pattern /= pattern.sum(axis=1, keepdims=True)
        values, output = draw.normal(size=(length, size)), draw.normal(size=(size, width))
        shares = as_array("the shares", ask(answer, pattern, values, output), pattern.shape)
        expect((shares >= 0).all(), "shares should not be negative.")
        expect(np.allclose(shares.sum(axis=1), 1), "every row should sum to 1.")
        # An orthonormal output map keeps lengths, so with equal lengths weights are left alone.
        turn = np.linalg.qr(draw.normal(size=(width, size)))[0].T
        same = values / np.linalg.norm(values, axis=1, keepdims=True)
        plain = as_array("the shares", ask(answer, pattern, same, turn), pattern.shape)
        expect(
            np.allclose(plain, pattern),
            "if all moved vectors are equally long, shares should equal the weights.",
        )
        piece = int(draw.integers(length))
        longer = same.copy()
        longer[piece] *= 3
        grown = as_array("the shares", ask(answer, pattern, longer, turn), pattern.shape)
        odds = grown[:, piece] / (1 - grown[:, piece])
        before = pattern[:, piece] / (1 - pattern[:, piece])
        expect(
            not np.allclose(odds, before),
            "a vector three times as long should weigh more; lengths do not seem to count.",
        )
        expect(
            np.allclose(odds, 3 * before),
            "a vector three times as long should weigh three times as much in its column.",
        )
        # Directions that the output map does not pass on move nothing.
        deaf = output.copy()
        deaf[0] = 0
        unheard = np.where(np.arange(length)[:, None] == piece, 0.0, values)
        unheard[piece, 0] = 5.0
        silent = as_array("the shares", ask(answer, pattern, unheard, deaf), pattern.shape)
        expect(
            np.allclose(silent[:, piece], 0),
            "a value that the output map turns into nothing moves nothing; take the length "
            "after the output map.",
        )
