"""Gaps beside unknown words, and gaps at rare words: questions to a finished run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from .language import MASK, UNK, frequencies, held_out_sentences, plain
from .looks import Looks
from .runs import LabRun


def beside_unknown(runs: Sequence[LabRun], *, seed: int = 0) -> list[float]:
    """Accuracy at a gap whose two neighbours are unknown words; each run has its own gap symbol.

    Raises:
        ValueError: runs of several families.
    """
    gold = plain(held_out_sentences()).ids
    gaps, beside = np.zeros(gold.shape, bool), np.zeros(gold.shape, bool)
    rng = np.random.default_rng([seed, 14])
    for row, ids in enumerate(gold):
        inner = np.flatnonzero(ids > MASK)[1:-1]
        if len(inner):
            place = rng.choice(inner)
            gaps[row, place], beside[row, [place - 1, place + 1]] = True, True
    return _accuracy(runs, np.where(beside, UNK, gold), gold, gaps)


def at_rare_words(runs: Sequence[LabRun], *, share: float = 0.2) -> list[float]:
    """Accuracy at gaps where the word is among the rarest, which together make up ``share`` of
    the training text. One gap a sentence, all [MASK].

    Raises:
        ValueError: runs of several families.
    """
    counts = frequencies().astype(float)
    order = np.argsort(counts)
    rare = np.zeros(len(counts), bool)
    rare[order[np.cumsum(counts[order]) / counts.sum() <= share]] = True
    gold = plain(held_out_sentences()).ids
    gaps = np.zeros(gold.shape, bool)
    rng = np.random.default_rng(19)
    for row, ids in enumerate(gold):
        places = np.flatnonzero(rare[ids] & (ids > MASK))
        if len(places):
            gaps[row, rng.choice(places)] = True
    return _accuracy(runs, gold, gold, gaps)


def _accuracy(runs, shown: np.ndarray, gold: np.ndarray, gaps: np.ndarray) -> list[float]:
    found = []
    for run in runs:
        looks = Looks([run.config])
        with torch.no_grad():
            logits = looks.logits(run.weights, run.config.order, shown, gaps)[0]
        right = logits.argmax(-1).numpy() == gold[gaps]
        found.append(float(right.mean()))
    return found
