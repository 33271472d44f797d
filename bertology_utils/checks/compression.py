"""Checks of the exercises of the chapter on compression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .judging import as_array, ask, check, expect


@check("zero for a copy of the teacher, softened on both sides, and scaled by the temperature.")
def soft_target_loss(answer: Callable) -> None:
    """``answer(student, teacher, temperature)``: the loss of distillation for one text."""
    draw = np.random.default_rng()
    for classes in (2, 5):
        student, teacher = draw.normal(size=(2, classes)) * 3
        student[0] += 2.0

        def loss(one: np.ndarray, other: np.ndarray, temperature: float) -> float:
            return float(as_array("the loss", ask(answer, one, other, temperature), ()))

        expect(
            np.isclose(loss(teacher, teacher, 2.0), 0, atol=1e-9),
            "a student that answers exactly like its teacher should have a loss of 0; a cross-"
            "entropy has the teacher's own uncertainty left over.",
        )
        found = loss(student, teacher, 2.0)
        expect(found > 0, "a student that answers differently should have a positive loss.")
        expect(
            np.isclose(found, loss(student + 7.0, teacher - 3.0, 2.0)),
            "adding a number to all logits changes no probability and should change no loss.",
        )
        expect(
            np.isclose(loss(student + 2000.0, teacher, 2.0), found),
            "large logits should not overflow.",
        )
        plain = loss(student, teacher, 1.0)
        # With T^2 in front, loss(T z, T y, T) is T^2 times the loss at temperature 1.
        scaled = loss(3 * student, 3 * teacher, 3.0)
        expect(
            not np.isclose(scaled, plain),
            "softened losses get small; multiply by the squared temperature.",
        )
        expect(
            np.isclose(scaled, 9 * plain),
            "logits and temperature times 3 give the same softened answers, and the squared "
            "temperature in front makes the loss 9 times as large.",
        )
    # One class certain for the teacher, the student undecided: -log(1/2).
    sure, undecided = np.array([40.0, -40.0]), np.zeros(2)
    found = float(as_array("the loss", ask(answer, undecided, sure, 1.0), ()))
    expect(
        np.isclose(found, np.log(2)),
        "with a teacher that is certain and a student that is undecided between two answers, "
        "the loss is log 2; are student and teacher the wrong way round?",
    )


@check("nearest levels, a scale of its own for each row, and zero stays zero.")
def to_int8(answer: Callable) -> None:
    """``answer(weight)``: 8-bit codes and a scale for each row."""
    draw = np.random.default_rng()
    for rows, columns in ((3, 8), (12, 40)):
        weight = draw.normal(size=(rows, columns)) * 10.0 ** draw.integers(-3, 3, size=(rows, 1))
        weight[:, 0] = 0.0
        reply = ask(answer, weight)
        expect(
            isinstance(reply, (tuple, list)) and len(reply) == 2,
            "two things should come back: the codes and the scales.",
        )
        codes = as_array("the codes", reply[0], (rows, columns))
        scale = as_array("the scales", reply[1], (rows,))
        expect((codes == np.round(codes)).all(), "codes should be whole numbers.")
        expect((np.abs(codes) <= 127).all(), "codes should lie between -127 and 127.")
        expect((codes[:, 0] == 0).all(), "a weight of 0 should have the code 0.")
        expect((scale > 0).all(), "scales should be positive.")
        error = np.abs(codes * scale[:, None] - weight)
        step = np.abs(weight).max(axis=1, keepdims=True) / 127
        expect(
            (np.abs(codes).max(axis=1) == 127).all(),
            "the largest weight of every row should use the last level; here some rows waste "
            "levels. Does each row have its own scale?",
        )
        expect(
            (error <= 0.51 * step).all(),
            "no weight should be further than half a step from its level; round, do not cut off.",
        )


@check("what moves away from zero stays, on either side of it, over all steps together.")
def moved_away(answer: Callable) -> None:
    """``answer(weights, gradients, keep)``: which weights movement pruning keeps."""
    draw = np.random.default_rng()
    for steps, n in ((1, 24), (6, 40)):
        for signs in (np.ones(n), -np.ones(n)):
            weights = np.repeat((signs * draw.uniform(0.5, 2, size=n))[None], steps, axis=0)
            # Of the middling weights, so that neither the largest nor the smallest are right.
            middle = np.abs(weights[0]).argsort()[n // 4 : n - n // 4]
            away = np.zeros(n, dtype=bool)
            away[draw.choice(middle, n // 4, replace=False)] = True
            keep = int(away.sum())
            size = draw.uniform(0.1, 1, size=(steps, n))
            # The largest weight hardly moves: what moves most to zero are never the largest.
            size[:, np.abs(weights[0]).argmax()] = 1e-3
            gradients = np.where(away, -1, 1) * np.sign(weights) * size
            found = _kept(answer, weights, gradients, keep)
            expect(
                not np.array_equal(found, _top(np.abs(weights).sum(0), keep)),
                "size does not matter here; what counts is where training moves a weight.",
            )
            if (signs > 0).all():
                expect(
                    bool((found & away).any()),
                    "you keep what moves towards zero: a step goes against the gradient.",
                )
            expect(
                np.array_equal(found, away),
                "weights below zero move away from zero when they fall; the sign of the weight "
                "counts.",
            )
    # One large step away against many small ones back: the sum decides, not the last step.
    weights, gradients = np.ones((5, 6)), np.full((5, 6), 0.1)
    lucky = int(draw.integers(6))
    gradients[0, lucky], gradients[1:, lucky] = -9.0, 0.5
    expect(
        bool(_kept(answer, weights, gradients, 1)[lucky]),
        "scores add up over all steps, the first as well as the last.",
    )


def _top(scores: np.ndarray, keep: int) -> np.ndarray:
    chosen = np.zeros(len(scores), dtype=bool)
    chosen[np.argsort(scores)[len(scores) - keep :]] = True
    return chosen


def _kept(answer: Callable, weights: np.ndarray, gradients: np.ndarray, keep: int) -> np.ndarray:
    found = as_array("the mask", ask(answer, weights, gradients, keep), weights.shape[1:])
    expect(set(np.unique(found)) <= {0.0, 1.0}, "the mask should hold True and False only.")
    expect(int(found.sum()) == keep, f"{keep} weights should be kept, not {int(found.sum())}.")
    return found.astype(bool)


@check("ratios within rounds, and wild rounds do not matter.")
def speedup(answer: Callable) -> None:
    """``answer(full, small)``: how many times faster the small model is."""
    draw = np.random.default_rng()

    def ask_for(full: np.ndarray, small: np.ndarray) -> float:
        return float(as_array("the speed-up", ask(answer, full, small), ()))

    factor = draw.uniform(1.5, 4)
    small = np.full(9, 0.02)
    full = factor * small
    found = ask_for(full, small)
    expect(
        not np.isclose(found, 1 / factor), "a faster model should get a number above 1, not below."
    )
    expect(np.isclose(found, factor), "with constant times, the answer is their ratio.")
    # From round to round the machine runs at speeds of its own.
    load = np.array([1, 1, 1, 1, 1.3, 5, 5, 5, 8.0])
    shares = np.array([1.02, 0.98, 1, 1.01, 0.99, 1.04, 0.96, 1, 1.03])
    found = ask_for(factor * load, load * shares)
    expect(
        np.isclose(found, np.median(factor / shares), rtol=0.004),
        "load on the machine that slows down both runs of a round should cancel; compare within "
        "rounds before you summarise.",
    )
    wild = full.copy()
    wild[0] *= 100
    expect(
        np.isclose(ask_for(wild, small), factor),
        "one disturbed run in nine should not move the answer; a mean is moved by it.",
    )
