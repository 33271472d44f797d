"""Typical mistakes in the exercises on heads, and what their checks must say."""

import numpy as np


def all_rows(pattern, offset):
    return np.diagonal(pattern, offset).sum() / len(pattern)


def turned(pattern, offset):
    return np.diagonal(pattern, -offset).mean()


def peeking(hits, counts):
    half = len(hits) // 2
    head = int(hits[half:].sum(axis=0).argmax())
    return head, hits[half:, head].sum() / counts[half:].sum()


def same_half(hits, counts):
    half = len(hits) // 2
    head = int(hits[:half].sum(axis=0).argmax())
    return head, hits[:half, head].sum() / counts[:half].sum()


def by_sentence(hits, counts):
    half = len(hits) // 2
    rates = hits / counts[:, None]
    head = int(rates[:half].mean(axis=0).argmax())
    return head, rates[half:, head].mean()


def only_weights(pattern, values, output):
    return pattern


def before_the_output(pattern, values, output):
    moved = pattern * np.linalg.norm(values, axis=1)
    return moved / moved.sum(axis=1, keepdims=True)


def not_shares(pattern, values, output):
    return pattern * np.linalg.norm(values @ output, axis=1)


SLIPS = {
    "offset_attention": [
        (all_rows, "should not count"),
        (turned, "wrong way round"),
    ],
    "held_out_best": [
        (peeking, "must stay unseen"),
        (same_half, "second half alone"),
        (by_sentence, "count as much as long ones"),
    ],
    "norm_shares": [
        (only_weights, "lengths do not seem to count"),
        (before_the_output, "after the output map"),
        (not_shares, "sum to 1"),
    ],
}
