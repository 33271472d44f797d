"""Typical mistakes in the exercises of the prerequisites, and what their checks must say."""

import numpy as np
from exercises import right_answers

RIGHT = right_answers("00_prerequisites")


def _cosine_without_one_norm(u, v):
    return u @ v / np.linalg.norm(u) ** 2


def _nearest_with_itself(table, words, word, k):
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    return [words[i] for i in np.argsort(-unit @ unit[words.index(word)])][:k]


def _nearest_by_product(table, words, word, k):
    order = np.argsort(-table @ table[words.index(word)])
    return [words[i] for i in order if words[i] != word][:k]


def _step_up(weights, inputs, labels, rate):
    return 2 * weights - RIGHT["gradient_step"](weights, inputs, labels, rate)


def _step_of_the_sum(weights, inputs, labels, rate):
    return RIGHT["gradient_step"](weights, inputs, labels, rate * len(labels))


def _step_by_sign(weights, inputs, labels, rate):
    return weights - rate * np.sign(weights - RIGHT["gradient_step"](weights, inputs, labels, 1.0))


def _frame_separator_in_second(first, second):
    pieces, segments = RIGHT["frame"](first, second)
    if second:
        segments[len(first) + 1] = 1
    return pieces, segments


def _frame_always_two(first, second):
    pieces = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
    return pieces, [0] * (len(first) + 2) + [1] * (len(second) + 1)


SLIPS = {
    "cosine": [
        (lambda u, v: u @ v, "itself should give 1"),
        (lambda u, v: abs(RIGHT["cosine"](u, v)), "-1"),
        (_cosine_without_one_norm, "exchanging"),
        (lambda u, v: 1.0, "opposite"),
    ],
    "nearest": [
        (_nearest_with_itself, "its own neighbour"),
        (_nearest_by_product, "a long vector is not a near one"),
        (lambda t, ws, w, k: RIGHT["nearest"](t, ws, w, k)[::-1], "first"),
    ],
    "gradient_step": [
        (_step_up, "smaller"),
        (_step_of_the_sum, "mean"),
        (_step_by_sign, "steeper|length of the step"),
        (lambda w, x, y, r: w, "smaller"),
    ],
    "frame": [
        (_frame_separator_in_second, "belongs to the text that it closes"),
        (_frame_always_two, "none for a text that is not there"),
        (lambda a, b: RIGHT["frame"](a, b)[0], "two lists"),
    ],
}
