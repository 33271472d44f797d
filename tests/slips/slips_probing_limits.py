"""Typical mistakes in the exercises on the limits of probing, and what their checks must say."""

import numpy as np


def control_task(types, labels, rng):
    given = {word: labels[rng.integers(len(labels))] for word in dict.fromkeys(types)}
    return [given[word] for word in types]


def honest_gap(table, choose, test):
    shares = table[:, choose].mean(axis=1)
    return table[shares.argmax(), test].mean() - table[shares.argmin(), test].mean()


def label_per_word(types, labels, rng):
    return [labels[rng.integers(len(labels))] for _ in types]


def fair_coin(types, labels, rng):
    classes = sorted(set(labels))
    given = {word: classes[rng.integers(len(classes))] for word in dict.fromkeys(types)}
    return [given[word] for word in types]


def own_generator(types, labels, _rng):
    return control_task(types, labels, np.random.default_rng(0))


def in_nats(n_first, n_classes, blocks):
    return n_first * np.log2(n_classes) - sum(np.log(block).sum() for block in blocks)


def averaged(n_first, n_classes, blocks):
    return n_first * np.log2(n_classes) - sum(np.log2(block).mean() for block in blocks)


def without_first(n_first, n_classes, blocks):
    return -sum(np.log2(block).sum() for block in blocks)


def not_unit(vectors, directions):
    return vectors - vectors @ directions.T @ directions


def one_by_one(vectors, directions):
    for row in directions:
        unit = row / np.linalg.norm(row)
        vectors = vectors - np.outer(vectors @ unit, unit)
    return vectors


def everything(vectors, directions):
    return np.zeros_like(vectors)


def flattering(table, choose, test):
    shares = table[:, test].mean(axis=1)
    return shares.max() - shares.min()


def never_negative(table, choose, test):
    return abs(honest_gap(table, choose, test))


SLIPS = {
    "control_task": [
        (label_per_word, "keep its label"),
        (fair_coin, "frequencies"),
        (own_generator, "another generator"),
    ],
    "online_bits": [
        (in_nats, "base of the logarithm"),
        (averaged, "do not average"),
        (without_first, "first block"),
    ],
    "remove": [
        (not_unit, "length 1"),
        (one_by_one, "right angles"),
        (everything, "stay as it is"),
    ],
    "honest_gap": [
        (flattering, "flatters"),
        (never_negative, "can be worse"),
    ],
}
