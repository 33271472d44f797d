"""How alike heads are, and how much fine-tuning changes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..encoder import Encoder
from ..resampling import Estimate, percentile_interval
from ..words import Text
from .maps import MAX_TOKENS, attention_maps
from .scores import HeadScores, NothingToScoreError
from .targets import row_entropy


@dataclass(frozen=True, eq=False)
class HeadDistances:
    """Jensen-Shannon divergence between all pairs of heads (Clark et al. 2019, section 6).

    ``value`` is how much closer heads of one layer are than heads of different layers.

    Attributes:
        matrix: [L * H, L * H] in nats, 0 to log 2; row l * H + h is head h of layer l.
        heads: (layer, head) of every row.
        n: pieces over which the divergence was averaged.
        model: the encoder's name.
        seed: of the permutations.
    """

    matrix: np.ndarray
    heads: tuple[tuple[int, int], ...]
    n: int
    model: str
    seed: int = 0
    unit: str = "nats"

    @property
    def value(self) -> float:
        """Mean divergence between layers minus mean divergence within layers."""
        return self._gap(np.array([layer for layer, _ in self.heads]))

    @property
    def baselines(self) -> dict[str, float]:
        """``shuffled``: the same with heads dealt to layers at random."""
        return {"shuffled": float(self._shuffled.mean())}

    @property
    def interval(self) -> None:
        """None: pairs of heads are not independent; see :attr:`p_value`."""
        return None

    @property
    def p_value(self) -> float:
        """Share of 999 random deals of heads to layers (and the true one) with as large a gap."""
        return float((1 + (self._shuffled >= self.value).sum()) / (1 + len(self._shuffled)))

    @cached_property
    def _shuffled(self) -> np.ndarray:
        draw = np.random.default_rng(self.seed)
        layers = np.array([layer for layer, _ in self.heads])
        return np.array([self._gap(draw.permutation(layers)) for _ in range(999)])

    def _gap(self, layers: np.ndarray) -> float:
        same = layers[:, None] == layers[None, :]
        off = ~np.eye(len(layers), dtype=bool)
        if not (same & off).any() or same.all():
            return 0.0  # one head a layer, or one layer: nothing to compare
        return float(self.matrix[~same].mean() - self.matrix[same & off].mean())

    def positions(self) -> np.ndarray:
        """[L * H, 2] classical multidimensional scaling of the square root of the divergence.

        The root is a metric (Endres and Schindelin 2003). Axes are turned so that the entry of
        largest size is positive, hence the picture does not depend on the machine.
        """
        squared = self.matrix
        centred = squared - squared.mean(0) - squared.mean(1)[:, None] + squared.mean()
        values, vectors = np.linalg.eigh(-centred / 2)
        found = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0))
        strongest = np.abs(found).argmax(0)
        return found * np.sign(found[strongest, [0, 1]] + 1e-30)


def head_distances(
    encoder: Encoder, texts: Sequence[Text], *, seed: int = 0, max_tokens: int = MAX_TOKENS
) -> HeadDistances:
    """Mean Jensen-Shannon divergence of every two heads over all pieces of the texts.

    Takes (L * H)^2 * T^2 logarithms a text; about a hundred sentences are enough for a map.

    Raises:
        NothingToScoreError: no texts.
    """
    size = encoder.n_layers * encoder.n_heads
    total, n = np.zeros((size, size)), 0
    for maps in attention_maps(encoder, texts, max_tokens=max_tokens):
        flat = maps.pattern.reshape(size, len(maps), len(maps))
        own = row_entropy(flat).sum(-1)
        for i in range(size - 1):
            mixed = row_entropy((flat[i] + flat[i + 1 :]) / 2).sum(-1)
            total[i, i + 1 :] += mixed - (own[i] + own[i + 1 :]) / 2
        n += len(maps)
    if not n:
        raise NothingToScoreError("no texts to compare heads on")
    matrix = np.maximum(total + total.T, 0) / n
    heads = tuple((k // encoder.n_heads, k % encoder.n_heads) for k in range(size))
    return HeadDistances(matrix, heads, n, encoder.name, seed)


def pattern_change(
    before: Encoder,
    after: Encoder,
    texts: Sequence[Text],
    *,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> HeadScores:
    """Cosine distance of each head's maps between two models (Kovaleva et al. 2019, section 4.3).

    Maps are compared as vectors of T * T weights, text by text.

    Raises:
        ValueError: the models differ in layers, heads or tokenisation.
    """
    shape = (after.n_layers, after.n_heads)
    if (before.n_layers, before.n_heads) != shape:
        raise ValueError(f"{before.name!r} and {after.name!r} differ in layers or heads")
    sums = np.zeros((len(texts), *shape))
    pairs = zip(
        attention_maps(before, texts, max_tokens=max_tokens),
        attention_maps(after, texts, max_tokens=max_tokens),
        strict=True,
    )
    for old, new in pairs:
        if old.index != new.index or old.row.pieces != new.row.pieces:
            raise ValueError(f"{before.name!r} and {after.name!r} cut text {new.index} differently")
        a, b = (maps.pattern.reshape(*shape, -1).astype(float) for maps in (old, new))
        norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
        sums[new.index] = 1 - (a * b).sum(-1) / norms
    return HeadScores(
        "change of attention maps", "cosine difference", sums, np.ones(len(texts)), after.name, seed
    )


def last_layers_change(change: HeadScores, n_last: int = 2) -> Estimate:
    """Mean change in the last ``n_last`` layers minus mean change in the others.

    Raises:
        ValueError: no other layer is left.
    """
    n_layers = change.sums.shape[1]
    if not 0 < n_last < n_layers:
        raise ValueError(f"n_last is {n_last}, of {n_layers} layers")

    def gap(scores: np.ndarray) -> np.ndarray:
        layers = scores.mean(-1)
        return layers[..., -n_last:].mean(-1) - layers[..., :-n_last].mean(-1)

    value = float(gap(change.scores))
    return Estimate(
        value=value,
        unit=change.unit,
        n=int(change.counts.sum()),
        model=change.model,
        seed=change.seed,
        interval=percentile_interval(gap(change.draws), value),
    )
