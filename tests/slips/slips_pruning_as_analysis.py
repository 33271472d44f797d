"""Typical mistakes in the exercises of the chapter on pruning as analysis."""

import numpy as np


def right_mask(weights, share):
    keep = np.ones(weights.size, dtype=bool)
    keep[np.argsort(np.abs(weights).ravel())[: int(share * weights.size)]] = False
    return keep.reshape(weights.shape)


def right_interaction(loss, parts):
    base = loss(set())
    return (loss(set(parts)) - base) - sum(loss({part}) - base for part in parts)


def signed(weights, share):
    keep = np.ones(weights.size, dtype=bool)
    keep[np.argsort(weights.ravel())[: int(share * weights.size)]] = False
    return keep.reshape(weights.shape)


def inverted(weights, share):
    return ~right_mask(weights, share)


def peeking(right, right_without):
    half = len(right) // 2
    gains = right_without - right
    head = int(gains[:, half:].mean(axis=1).argmax())
    return head, gains[head, half:].mean()


def same_half(right, right_without):
    half = len(right) // 2
    gains = (right_without - right)[:, :half].mean(axis=1)
    return int(gains.argmax()), gains.max()


def over_k(one, other, k):
    a, b = ({int(i) for i in np.argsort(run.ravel())[-k:]} for run in (one, other))
    return len(a & b) / k


def least(one, other, k):
    a, b = ({int(i) for i in np.argsort(run.ravel())[:k]} for run in (one, other))
    return len(a & b) / len(a | b)


def no_base(loss, parts):
    return loss(set(parts)) - sum(loss({part}) for part in parts)


def turned(loss, parts):
    return -right_interaction(loss, parts)


SLIPS = {
    "magnitude_mask": [
        (signed, "sign"),
        (inverted, "other way round"),
    ],
    "gain_elsewhere": [
        (peeking, "second half"),
        (same_half, "half that chose"),
    ],
    "overlap": [
        (over_k, "union"),
        (least, "least important"),
    ],
    "interaction": [
        (no_base, "every term"),
        (turned, "sign"),
    ],
}
