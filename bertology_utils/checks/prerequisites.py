"""Checks of the exercises of the chapter before the first."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .judging import as_array, ask, check, expect


@check("symmetric, blind to length, 1 for the same direction, -1 for the opposite one.")
def cosine(answer: Callable) -> None:
    """``answer(u, v)`` is the cosine of the angle between two vectors."""
    draw = np.random.default_rng()
    for size in (2, 7, 300):
        u, v = draw.normal(size=(2, size)) * 10.0 ** draw.uniform(-2, 2)
        found = float(as_array("the cosine", ask(answer, u, v), ()))
        back = float(as_array("the cosine", ask(answer, v, u), ()))
        expect(np.isclose(found, back), "exchanging the two vectors should change nothing.")
        same = float(as_array("the cosine", ask(answer, u, u), ()))
        expect(np.isclose(same, 1), "a vector and itself should give 1.")
        longer = float(as_array("the cosine", ask(answer, 3 * u, 0.2 * v), ()))
        expect(np.isclose(found, longer), "making a vector longer should change nothing.")
        against = float(as_array("the cosine", ask(answer, u, -2 * u), ()))
        expect(np.isclose(against, -1), "a vector and its opposite should give -1.")
    angle = draw.uniform(0.2, 1.4)
    flat = np.array([np.cos(angle), np.sin(angle)])
    found = float(as_array("the cosine", ask(answer, np.array([2.0, 0.0]), flat), ()))
    expect(
        np.isclose(np.arccos(np.clip(found, -1, 1)), angle),
        "two vectors in the plane at a known angle should give the cosine of that angle.",
    )


@check("by direction, nearest first, without the word itself.")
def nearest(answer: Callable) -> None:
    """``answer(table, words, word, k)`` lists the k words nearest to a word by cosine."""
    draw = np.random.default_rng()
    for size in (6, 12):
        words = [f"w{i}" for i in draw.permutation(100)[:size]]
        angles = np.sort(draw.permutation(np.arange(1, 30))[: size - 1]) * 0.05
        # The word lies at angle 0; the others lie further and further away and are longer and
        # longer, so that products are the largest where cosines are the smallest.
        directions = np.array([0.0, *angles])
        order = draw.permutation(size)
        table = np.stack([np.cos(directions), np.sin(directions)], axis=1)
        table = table / np.maximum(table[:, :1], 0.01) * np.arange(1, size + 1)[:, None]
        table, names = table[order], [words[i] for i in order]
        k = int(draw.integers(2, size - 1))
        found = ask(answer, table, names, words[0], k)
        expect(isinstance(found, (list, tuple)), "a list of words should come back.")
        expect(all(word in names for word in found), "only words of the list should come back.")
        expect(words[0] not in found, "a word is not its own neighbour.")
        expect(len(found) == k, "as many words as asked for should come back.")
        expect(
            set(found) == set(words[1 : k + 1]),
            "other words are nearer; mind that a long vector is not a near one.",
        )
        expect(list(found) == words[1 : k + 1], "the nearest word should come first.")


@check("it goes downhill, by the mean gradient, and as far as the learning rate says.")
def gradient_step(answer: Callable) -> None:
    """``answer(weights, inputs, labels, rate)``: one step of gradient descent."""
    draw = np.random.default_rng()
    for n, size in ((5, 2), (40, 6)):
        inputs, weights = draw.normal(size=(n, size)), draw.normal(size=size)
        labels = (draw.uniform(size=n) < 0.5).astype(float)
        labels[:2] = 0, 1
        stay = as_array("the weights", ask(answer, weights, inputs, labels, 0.0), (size,))
        expect(np.allclose(stay, weights), "at a learning rate of 0 the weights should stay.")
        step = as_array("the weights", ask(answer, weights, inputs, labels, 1e-3), (size,))
        before, after = (_loss(w, inputs, labels) for w in (weights, step))
        expect(after < before, "a small step should make the loss smaller.")
        # The slope, by trying out: no formula of the gradient is needed to judge one.
        slope = np.array([
            (_loss(weights + shift, inputs, labels) - _loss(weights - shift, inputs, labels)) / 2e-5
            for shift in 1e-5 * np.eye(size)
        ])  # fmt: skip
        taken = (weights - step) / 1e-3
        along = taken @ slope / (np.linalg.norm(taken) * np.linalg.norm(slope))
        expect(along > 0.999, "there is a steeper way down.")
        expect(
            np.allclose(taken, slope, rtol=1e-3, atol=1e-6),
            "the direction is right, the length of the step is not: the loss is a mean.",
        )
        twice = as_array("the weights", ask(answer, weights, inputs, labels, 2e-3), (size,))
        expect(
            np.allclose(weights - twice, 2 * (weights - step), rtol=1e-6, atol=1e-12),
            "twice the learning rate should go twice as far.",
        )


def _loss(weights: np.ndarray, inputs: np.ndarray, labels: np.ndarray) -> float:
    scores = inputs @ weights
    return float(np.mean(np.logaddexp(0, scores) - labels * scores))


@check("special tokens, segments and lengths fit, for one text and for two.")
def frame(answer: Callable) -> None:
    """``answer(first, second)``: pieces and segments of one text (``second`` empty) or two."""
    draw = np.random.default_rng()
    for lengths in ((3, 0), (1, 0), (4, 2), (2, 5), (1, 1)):
        first, second = (
            [f"p{i}" for i in draw.integers(0, 1000, size=length)] for length in lengths
        )
        reply = ask(answer, first, second)
        expect(
            isinstance(reply, (list, tuple)) and len(reply) == 2,
            "two lists should come back: the pieces and their segments.",
        )
        pieces, segments = (list(part) for part in reply)
        expect(len(pieces) == len(segments), "every piece needs exactly one segment.")
        expect(pieces[:1] == ["[CLS]"], "every input begins with the same special token.")
        expect(pieces[-1:] == ["[SEP]"], "every input ends with the same special token.")
        text = [piece for piece in pieces if piece not in ("[CLS]", "[SEP]")]
        expect(text == first + second, "the pieces of the texts should all be there, in order.")
        expect(
            pieces.count("[SEP]") == (2 if second else 1),
            "one separator closes each text, and there is none for a text that is not there.",
        )
        expect(pieces.count("[CLS]") == 1, "[CLS] stands at the beginning only.")
        expect(set(segments) <= {0, 1}, "segments are numbered 0 and 1.")
        expect(
            segments == sorted(segments),
            "once the second segment has begun, the first does not come back.",
        )
        if not second:
            expect(not any(segments), "a single text is all of segment 0.")
            continue
        border = segments.index(1) if 1 in segments else -1
        expect(border > 0, "the second text should be of segment 1.")
        expect(
            border == len(first) + 2,
            "a separator belongs to the text that it closes, and [CLS] to the first.",
        )
