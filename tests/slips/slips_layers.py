"""Typical mistakes in the exercises on layers, and what the checks must say of them."""

import copy

import numpy as np


def from_zero(cumulative):
    gains = np.diff(cumulative)
    return (np.arange(len(gains)) * gains).sum() / gains.sum()


def by_scores(cumulative):
    return (np.arange(len(cumulative)) * cumulative).sum() / cumulative.sum()


def clipped(cumulative):
    gains = np.diff(cumulative).clip(0)
    return (np.arange(1, len(gains) + 1) * gains).sum() / gains.sum()


def peeking(scores, task):
    layer = int(scores[task].argmax())
    return layer, scores[task, layer]


def mean_of_all(scores, task):
    layer = int(np.delete(scores, task, axis=0).mean(axis=0).argmax())
    return layer, scores[:, layer].mean()


def reversed_roles(tuned, original, layers):
    return {k: copy.deepcopy(tuned[k] if k in layers else original[k]) for k in tuned}


def no_copies(tuned, original, layers):
    made = dict(tuned)
    made.update({k: original[k] for k in layers})
    return made


def only_named(tuned, original, layers):
    return {k: copy.deepcopy(original[k]) for k in layers}


def not_centred(x, y):
    return np.sum((x.T @ y) ** 2) / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))


def rooted(x, y):
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return np.linalg.norm(x.T @ y) / np.sqrt(np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))


SLIPS = {
    "expected_layer": [
        (from_zero, "count from 0"),
        (by_scores, "that layer should come out"),
        (clipped, "keep it as it is"),
    ],
    "spared_choice": [(peeking, "must be left out"), (mean_of_all, "the task that was left out")],
    "put_back": [
        (reversed_roles, "put back, too"),
        (no_copies, "hand back copies"),
        (only_named, "every layer"),
    ],
    "linear_cka": [(not_centred, "take the mean off"), (rooted, "square root")],
}
