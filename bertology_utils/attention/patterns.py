"""The five patterns of Kovaleva et al. (2019, arXiv 1908.08593), by a rule that can be read.

The paper had people label about 400 maps and trained a network on them. Here a map is turned into
a few geometric features, and a rule over them (below) or a classifier trained on maps whose
pattern is known by construction (:mod:`~bertology_utils.attention.synthetic`) names its pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..encoder import Encoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..words import Text
from .maps import MAX_TOKENS, attention_maps, segments
from .scores import NothingToScoreError
from .targets import row_entropy

PATTERNS = ("vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous")

#: See :func:`map_features`.
FEATURES = (
    "diagonal", "vertical", "block", "evenness", "previous", "self", "next", "top_column",
    "column_entropy",
)  # fmt: skip

#: A column pattern may have this many columns: [CLS], [SEP] and one more, such as a full stop.
N_COLUMNS = 3
#: Half of what could deviate from even attention must lie on diagonals and columns together.
CONCENTRATED = 0.5
#: Below this part of it, the smaller of the two does not count.
MINOR = 0.25
#: A block: half of the mass that could leave the own text stays, spread nearly evenly over it.
IN_BLOCK = 0.5
EVEN = 0.8


def map_features(pattern: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """Describe maps by numbers that do not depend on their size.

    An "excess" is (mass - m) / (1 - m), with m the mass that even attention would have there: 0 for
    even attention, 1 for a pure pattern.

    Args:
        pattern: [..., T, T], rows sum to 1, T at least 2.
        segment: [T] text of every piece, 0 or 1.

    Returns:
        [..., F] in the order of :data:`FEATURES`:

        * ``diagonal``: excess on the pieces themselves and both neighbours;
        * ``vertical``: excess of the three strongest columns (of fewer below 10 pieces);
        * ``block``: excess on the piece's own text, 0 where there is only one text;
        * ``evenness``: entropy of the rows over its maximum within the own text;
        * ``previous``, ``self``, ``next``: mass at each offset;
        * ``top_column``: excess of the strongest column;
        * ``column_entropy``: entropy of the mean row over its maximum.

    Raises:
        ValueError: the shapes do not fit, or a map has fewer than two pieces.
    """
    t = pattern.shape[-1]
    if pattern.shape[-2] != t or segment.shape != (t,) or t < 2:
        raise ValueError(f"maps {pattern.shape} and segments {segment.shape} do not fit, or T < 2")
    before, own, after = (pattern.diagonal(k, -2, -1).sum(-1) / t for k in (-1, 0, 1))
    columns = np.sort(pattern.mean(-2), axis=-1)[..., ::-1]
    # In a short text, three columns would be most of the map, and any map would have them.
    width = max(1, min(N_COLUMNS, (t + 2) // 4))
    same = segment[:, None] == segment[None, :]
    two_texts = not same.all()
    inside = (pattern * same).sum((-2, -1)) / t
    # The entropy of one row has at most the log of the size of its own text, if it stays there.
    room = np.log(np.maximum(2, same.sum(1)))
    features = (
        _excess(before + own + after, (3 * t - 2) / t**2),
        _excess(columns[..., :width].sum(-1), width / t),
        _excess(inside, same.mean()) if two_texts else np.zeros_like(own),
        np.minimum(1.0, row_entropy(pattern) / room).mean(-1),
        before,
        own,
        after,
        _excess(columns[..., 0], 1 / t),
        row_entropy(columns) / np.log(t),
    )
    return np.stack(features, axis=-1)


def _excess(mass: np.ndarray, even: float) -> np.ndarray:
    return (mass - even) / max(1 - even, 1e-9)


def rule(features: np.ndarray) -> np.ndarray:
    """Name the pattern of each map: [..., F] -> [...] indices into :data:`PATTERNS`.

    In this order: if diagonal and column excess add up to :data:`CONCENTRATED`, the map is
    ``diagonal``, ``vertical`` or, if the smaller makes up at least :data:`MINOR` of the sum,
    ``vertical+diagonal``. Else, if attention stays in the own text (:data:`IN_BLOCK`) and is even
    there (:data:`EVEN`), it is a ``block``. Everything else is ``heterogeneous``. A block over a
    text of three pieces or fewer is mostly neighbours, and is called diagonal.
    """
    get = {name: features[..., i] for i, name in enumerate(FEATURES)}
    diagonal, vertical = np.maximum(get["diagonal"], 0), np.maximum(get["vertical"], 0)
    total = diagonal + vertical
    concentrated = total >= CONCENTRATED
    part = np.divide(diagonal, total, out=np.zeros_like(total), where=total > 0)
    block = (get["block"] >= IN_BLOCK) & (get["evenness"] >= EVEN)
    return np.select(
        [
            concentrated & (part < MINOR),
            concentrated & (part > 1 - MINOR),
            concentrated,
            block,
        ],
        [0, 1, 2, 3],
        default=4,
    )


@dataclass(frozen=True, eq=False)
class HeadPatterns:
    """Which pattern the maps of each head show.

    Attributes:
        maps: [N, L, H] index into :data:`PATTERNS` for every text and head.
        features: [L, H, F] mean features.
        model, seed: of the encoder, and of the bootstrap over texts.
        method: ``"rule"`` or ``"classifier"``.
    """

    maps: np.ndarray
    features: np.ndarray
    model: str
    method: str
    seed: int = 0

    @property
    def n(self) -> int:
        """Number of texts."""
        return len(self.maps)

    @cached_property
    def shares(self) -> np.ndarray:
        """[L, H, 5] share of the texts in which a head shows each pattern."""
        return self._one_hot.mean(0)

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The most frequent pattern of every head, [L][H]."""
        return tuple(tuple(PATTERNS[i] for i in row) for row in self.shares.argmax(-1))

    @property
    def by_layer(self) -> np.ndarray:
        """[L, 5] share of all maps of a layer: the stacked bars of the paper's figure 2."""
        return self.shares.mean(1)

    def share(self, pattern: str) -> Estimate:
        """Share of all maps, over all heads, with a pattern.

        Raises:
            KeyError: no such pattern.
        """
        which = _index(pattern)
        per_text = self._one_hot[..., which].mean((1, 2))
        value = float(per_text.mean())
        draws = resampled_means(per_text, np.ones(self.n), seed=self.seed)
        return Estimate(
            value=value,
            unit="share",
            n=self.n,
            model=self.model,
            seed=self.seed,
            interval=percentile_interval(draws, value),
        )

    def share_of_heads(self, pattern: str) -> Estimate:
        """Share of heads whose most frequent pattern this is.

        Raises:
            KeyError: no such pattern.
        """
        which = _index(pattern)
        value = float((self.shares.argmax(-1) == which).mean())
        draws = resampled_means(self._one_hot, np.ones(self.n), seed=self.seed, resamples=200)
        shares = (draws.argmax(-1) == which).mean((1, 2))
        return Estimate(
            value=value,
            unit="share",
            n=self.shares.shape[0] * self.shares.shape[1],
            model=self.model,
            seed=self.seed,
            interval=percentile_interval(shares, value),
        )

    def agreement(self, other: HeadPatterns) -> float:
        """Share of maps that two methods, on the same texts and model, name alike.

        Raises:
            ValueError: other texts or heads.
        """
        if self.maps.shape != other.maps.shape:
            raise ValueError(f"{self.maps.shape} maps against {other.maps.shape}")
        return float((self.maps == other.maps).mean())

    @cached_property
    def _one_hot(self) -> np.ndarray:
        return np.eye(len(PATTERNS))[self.maps]


def classify_heads(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    method: Callable[[np.ndarray], np.ndarray] = rule,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> HeadPatterns:
    """Name the pattern of every head on every text.

    Pairs of texts (:class:`~bertology_utils.words.TextPair`) are needed for blocks to show.

    Args:
        encoder: any encoder.
        texts: texts of at least two pieces.
        method: :func:`rule`, or ``classifier.predict`` of a trained
            :class:`~bertology_utils.attention.synthetic.PatternClassifier`.
        seed: of the bootstrap.
        max_tokens: pieces per batch.

    Raises:
        NothingToScoreError: no texts.
    """
    maps: list[np.ndarray | None] = [None] * len(texts)
    total = 0.0
    for text in attention_maps(encoder, texts, max_tokens=max_tokens):
        features = map_features(text.pattern, segments(text.row))
        maps[text.index] = method(features)
        total = total + features
    if not maps:
        raise NothingToScoreError("no texts to classify heads on")
    name = "rule" if method is rule else "classifier"
    return HeadPatterns(np.stack(maps), total / len(maps), encoder.name, name, seed)


def _index(pattern: str) -> int:
    if pattern not in PATTERNS:
        raise KeyError(f"unknown pattern {pattern!r}; known: {', '.join(PATTERNS)}")
    return PATTERNS.index(pattern)
