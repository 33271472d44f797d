"""Typical mistakes in the exercises of architecture, and what their checks must say."""

import numpy as np
from exercises import right_answers

RIGHT = right_answers("01_architecture")


def _attend_unscaled(q, k, v, real):
    return RIGHT["attend"](q * np.sqrt(q.shape[1]), k, v, real)


def _attend_columns(q, k, v, real):
    scores = np.where(real, q @ k.T / np.sqrt(q.shape[1]), -1e9)
    pattern = np.exp(scores) / np.exp(scores).sum(axis=0, keepdims=True)
    return pattern, pattern @ v


def _attend_padding(q, k, v, real):
    return RIGHT["attend"](q, k, v, np.ones_like(real))


def _attend_swapped(q, k, v, real):
    return RIGHT["attend"](k, q, v, real)


def _wordpiece_shortest(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        mark = "##" if start else ""
        fits = [e for e in range(start + 1, len(word) + 1) if mark + word[start:e] in vocabulary]
        if not fits:
            return ["[UNK]"]
        pieces.append(mark + word[start : fits[0]])
        start = fits[0]
    return pieces


def _wordpiece_keeps_the_beginning(word, vocabulary):
    pieces, start = [], 0
    while start < len(word):
        mark = "##" if start else ""
        fits = [e for e in range(len(word), start, -1) if mark + word[start:e] in vocabulary]
        if not fits:
            return [*pieces, "[UNK]"]
        pieces.append(mark + word[start : fits[0]])
        start = fits[0]
    return pieces


def _wordpiece_without_marks(word, vocabulary):
    return [piece.removeprefix("##") for piece in RIGHT["wordpiece"](word, vocabulary)]


def _mask_special_too(ids, special, mask_id, size, draw):
    return RIGHT["mask_pieces"](ids, np.zeros_like(special), mask_id, size, draw)


def _mask_always(ids, special, mask_id, size, draw):
    _, chosen = RIGHT["mask_pieces"](ids, special, mask_id, size, draw)
    return np.where(chosen, mask_id, ids), chosen


def _mask_shares_of_all(ids, special, mask_id, size, draw):
    chosen, new = (draw.random(len(ids)) < 0.15) & ~special, ids.copy()
    fate = draw.random(len(ids))
    new[chosen] = mask_id
    new[(fate < 0.1) & chosen] = ids[(fate < 0.1) & chosen]
    return new, chosen


def _mask_in_place(ids, special, mask_id, size, draw):
    new, chosen = RIGHT["mask_pieces"](ids, special, mask_id, size, draw)
    ids[:] = new
    return ids, chosen


def _count_without_biases(vocabulary, width, layers, hidden, positions, segments):
    layer = 4 * width * width + 2 * width * hidden + 4 * width
    tables = (vocabulary + positions + segments) * width
    return tables + 2 * width + layers * layer + width * width


def _count_without_pooler(*numbers):
    return RIGHT["count_parameters"](*numbers) - numbers[1] * (numbers[1] + 1)


SLIPS = {
    "attend": [
        (_attend_unscaled, "scaled"),
        (_attend_columns, "row by row"),
        (_attend_padding, "padding"),
        (_attend_swapped, "queries \\(rows\\)"),
    ],
    "wordpiece": [
        # Where only the longest pieces lead to the end, the mistake is told as a wrong [UNK].
        (_wordpiece_shortest, r"longest|exactly when no piece fits"),
        (_wordpiece_keeps_the_beginning, "UNK|in the vocabulary|the word"),
        (_wordpiece_without_marks, "mark"),
    ],
    "mask_pieces": [
        (_mask_special_too, "special"),
        (_mask_always, "share of the paper"),
        (_mask_shares_of_all, "share of the paper"),
        (_mask_in_place, "changes what it is given"),
    ],
    "count_parameters": [
        (_count_without_biases, "more parameters"),
        (_count_without_pooler, "pooler"),
        (lambda *numbers: RIGHT["count_parameters"](*numbers) + numbers[1], "fewer"),
    ],
}
