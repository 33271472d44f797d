"""Judging arguments, with a cue word in the data (Niven and Kao 2019, arXiv 1907.07355)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..encoder import Encoder
from ..heads import TunedEncoder
from ..stimuli import Argument
from ..words import TextPair
from .learning import learn, probabilities


def topics(items: Sequence[Argument]) -> list[frozenset[str]]:
    """Sorted topics; a topic is its pair of warrants."""
    return sorted({frozenset(item.warrants) for item in items}, key=sorted)


def by_topic(items: Sequence[Argument], every: int = 4) -> tuple[list[Argument], list[Argument]]:
    """Training and test arguments about different topics: every ``every``-th is for testing.

    Raises:
        ValueError: fewer topics than that.
    """
    known = topics(items)
    held = set(known[::every])
    if len(known) < every:
        raise ValueError(f"only {len(known)} topics; every {every}th should be held out")
    parts: tuple[list[Argument], list[Argument]] = ([], [])
    for item in items:
        parts[frozenset(item.warrants) in held].append(item)
    return parts


def warrant_pair(item: Argument, which: int) -> TextPair:
    """Reason and claim, and one of the two warrants."""
    return TextPair(f"{item.reason} {item.claim}", item.warrants[which])


def learn_arguments(encoder: Encoder, items: Sequence[Argument], **recipe) -> TunedEncoder:
    """Fine-tune to say of each warrant whether it is the right one; recipe as :func:`learn`."""
    pairs = [warrant_pair(item, which) for item in items for which in (0, 1)]
    labels = [int(item.label == which) for item in items for which in (0, 1)]
    return learn(encoder, pairs, labels, **recipe)


def right_warrant(tuned: TunedEncoder, items: Sequence[Argument]) -> np.ndarray:
    """[N] True where the right warrant is the more probable of the two."""
    said = probabilities(tuned, [warrant_pair(item, w) for item in items for w in (0, 1)])
    first, second = said[::2, 1], said[1::2, 1]
    labels = np.array([item.label for item in items])
    return np.where(labels == 0, first > second, second > first)
