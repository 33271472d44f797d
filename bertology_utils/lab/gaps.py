"""Which tokens become gaps, and what is shown instead."""

from __future__ import annotations

import numpy as np

from .config import LabConfig
from .language import MASK, SPECIAL, UNK, Text

#: the key of pieces that are never hidden
_NEVER = np.inf


def _keys(text: Text, rows: np.ndarray, config: LabConfig, seed: list[int], weights) -> np.ndarray:
    """[B, T] a random key for every piece; the smallest are hidden. One key for a whole unit."""
    ids = text.ids[rows]
    shape = ids.shape
    if config.dynamic:
        draw = np.random.default_rng(seed).random(shape)
    else:
        draw = np.random.default_rng([config.seed, 99]).random(text.ids.shape)[rows]
    if config.subsample:
        # An exponential race: the chance to be first is in proportion to the weight.
        draw = -np.log1p(-draw) * np.sqrt(weights[ids])
    if config.unit == "whole":
        draw = np.take_along_axis(draw, text.wholes[rows], 1)
    if config.unit == "span":
        lengths = np.random.default_rng([*seed, 1]).integers(1, config.max_span + 1, shape)
        reach = draw.copy()
        for back in range(1, config.max_span):
            covers = lengths[:, :-back] > back
            best = np.where(covers, draw[:, :-back], _NEVER)
            reach[:, back:] = np.minimum(reach[:, back:], best)
        draw = reach
    return np.where(text.maskable[rows], draw, _NEVER)


def make_gaps(
    text: Text, rows: np.ndarray, config: LabConfig, step: int, *, vocabulary: int,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """What is shown for ``rows`` of a text at a step, and what is asked.

    With fixed gaps the choice is made row by row, so that a sentence keeps its own whatever stands
    beside it; otherwise over the batch.

    Returns:
        shown [B, T] and chosen [B, T] (bool). The number chosen is the rounded share of the
        pieces that may be hidden (with whole units and spans: about it), at least one.
    """
    ids = text.ids[rows]
    seed = [config.seed, 7, step]
    keys = _keys(text, rows, config, seed, weights)
    free = text.maskable[rows]
    if config.dynamic:
        n = max(1, round(config.mask_rate * int(free.sum())))
        limit = np.partition(keys.ravel(), n - 1)[n - 1]
    else:
        n = np.maximum(1, np.round(config.mask_rate * free.sum(1)).astype(int))
        limit = np.take_along_axis(np.sort(keys, 1), n[:, None] - 1, 1)
    chosen = (keys <= limit) & free
    if config.dynamic:
        fate, other = _fates(np.random.default_rng([*seed, 2]), ids.shape, vocabulary)
    else:
        whole = np.random.default_rng([config.seed, 98])
        fate, other = (part[rows] for part in _fates(whole, text.ids.shape, vocabulary))
    shown = ids.copy()
    hide = chosen & (fate < config.mask_share)
    swap = chosen & (fate >= config.mask_share) & (fate < config.mask_share + config.random_share)
    shown[hide] = MASK if config.gap == "[MASK]" else UNK
    shown[swap] = other[swap]
    return shown, chosen


def _fates(rng: np.random.Generator, shape, vocabulary: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.random(shape), rng.integers(len(SPECIAL), vocabulary, shape)
