"""Where attention goes: special tokens, punctuation, neighbours; and how widely it spreads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..encoder import Encoder
from ..words import Text
from .maps import KINDS, MAX_TOKENS, TextMaps, attention_maps
from .scores import HeadScores

#: Offsets from a piece to the piece it attends to.
OFFSETS = {"previous": -1, "self": 0, "next": 1}
#: Everything :func:`attention_to` measures. The kinds sum to 1; the offsets overlap with them.
TARGETS = (*KINDS, *OFFSETS)


def attention_to(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    targets: Sequence[str] = TARGETS,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> dict[str, HeadScores]:
    """Mean attention of every head to each target (Clark et al. 2019, section 3).

    The mean is over all pieces of all texts, special tokens included; for ``previous`` and
    ``next`` over those that have such a neighbour. The control ``uniform`` is attention spread
    evenly over the text.

    Returns:
        target -> shares from 0 to 1.

    Raises:
        KeyError: an unknown target.
        NothingToScoreError: no texts.
    """
    _check(targets)
    totals = {name: _Totals(len(texts)) for name in targets}
    for maps in attention_maps(encoder, texts, max_tokens=max_tokens):
        length = len(maps)
        for name in targets:
            weight, n_rows, even = _mass(maps.pattern, maps, name)
            totals[name].add(maps.index, weight, n_rows, even / length)
    return {
        name: total.scores(f"attention to {name}", "share", encoder, seed)
        for name, total in totals.items()
    }


def most_attended(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    targets: Sequence[str] = TARGETS,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> dict[str, HeadScores]:
    """Share of pieces whose single most attended piece is the target.

    With the targets previous, self, next and sep these are the positional patterns of Raganato
    and Tiedemann (2018). Raises as :func:`attention_to`.
    """
    _check(targets)
    totals = {name: _Totals(len(texts)) for name in targets}
    for maps in attention_maps(encoder, texts, max_tokens=max_tokens):
        length = len(maps)
        winner = np.eye(length)[maps.pattern.argmax(-1)]
        for name in targets:
            hits, n_rows, even = _mass(winner, maps, name)
            totals[name].add(maps.index, hits, n_rows, even / length)
    return {
        name: total.scores(f"most attended: {name}", "share", encoder, seed)
        for name, total in totals.items()
    }


def attention_entropy(
    encoder: Encoder, texts: Sequence[Text], *, seed: int = 0, max_tokens: int = MAX_TOKENS
) -> HeadScores:
    """Mean entropy, in nats, of the attention of a piece; low for heads that look at one place.

    The control ``uniform`` is the entropy of even attention, the highest possible.
    """
    total = _Totals(len(texts))
    for maps in attention_maps(encoder, texts, max_tokens=max_tokens):
        length = len(maps)
        total.add(maps.index, row_entropy(maps.pattern).sum(-1), length, length * np.log(length))
    return total.scores("attention entropy", "nats", encoder, seed)


def row_entropy(pattern: np.ndarray) -> np.ndarray:
    """Entropy in nats of the last dimension: [..., T, T] -> [..., T]."""
    logs = np.log(pattern, out=np.zeros_like(pattern), where=pattern > 0)
    return -(pattern * logs).sum(-1)


def attention_received(
    encoder: Encoder, texts: Sequence[Text], *, max_tokens: int = MAX_TOKENS
) -> dict[str, tuple[float, int]]:
    """Mean attention that each vocabulary piece receives per occurrence, and how often it occurs.

    The mean is over heads, layers and the pieces that attend (Clark et al. 2019, on why frequent
    tokens draw attention). In a text of T pieces an even share is 1 / T, so weights are multiplied
    by T: 1 means "as much as everyone".
    """
    sums: dict[str, float] = {}
    counts: dict[str, int] = {}
    for maps in attention_maps(encoder, texts, max_tokens=max_tokens):
        received = maps.pattern.mean((0, 1)).sum(0)
        for piece, weight in zip(maps.row.pieces, received, strict=True):
            sums[piece] = sums.get(piece, 0.0) + float(weight)
            counts[piece] = counts.get(piece, 0) + 1
    return {piece: (sums[piece] / counts[piece], counts[piece]) for piece in sums}


def _check(targets: Sequence[str]) -> None:
    for name in targets:
        if name not in TARGETS:
            raise KeyError(f"unknown target {name!r}; known: {', '.join(TARGETS)}")


def _mass(pattern: np.ndarray, maps: TextMaps, target: str) -> tuple[np.ndarray, int, float]:
    """(total over rows [L, H], rows, number of (row, target) cells) for one target."""
    if target in OFFSETS:
        diagonal = pattern.diagonal(OFFSETS[target], -2, -1)
        return diagonal.sum(-1), diagonal.shape[-1], float(diagonal.shape[-1])
    columns = maps.kinds[target]
    length = len(columns)
    return pattern[..., columns].sum((-2, -1)), length, float(columns.sum() * length)


class _Totals:
    """Collects per-text totals in the order of the texts."""

    def __init__(self, n: int):
        self.sums: list[np.ndarray | None] = [None] * n
        self.counts = np.zeros(n)
        self.even = np.zeros((n, 1))

    def add(self, index: int, sums: np.ndarray, count: int, even: float) -> None:
        self.sums[index], self.counts[index], self.even[index] = sums, count, even

    def scores(self, name: str, unit: str, encoder: Encoder, seed: int) -> HeadScores:
        shape = (0, encoder.n_layers, encoder.n_heads)
        sums = np.stack(self.sums) if self.sums else np.zeros(shape)
        return HeadScores(
            name, unit, sums, self.counts, encoder.name, seed, {"uniform": self.even}
        )
