"""Picking the best of several layers without letting the choice flatter the score."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..probes import ProbeResult
from ..resampling import Estimate, percentile_interval, resampled_means


@dataclass(frozen=True, kw_only=True)
class BestLayer(Estimate):
    """The layer that is best on one half of the sentences, measured on the other half.

    Attributes:
        layer: number of the layer; 0 is the embedding output.
        chosen_value: its score on the half that chose it.
    """

    layer: int
    chosen_value: float


@dataclass(frozen=True, eq=False)
class LayerScores:
    """One share a layer, kept sentence by sentence. S layers, M sentences.

    Attributes:
        hits: [S, M] what was found in each sentence.
        counts: [M] or [S, M] out of how many.
        model: name of the encoder.
        seed: of the halves and of the bootstrap over sentences.
        unit: of the share.
    """

    hits: np.ndarray
    counts: np.ndarray
    model: str
    seed: int = 0
    unit: str = "share"

    def __post_init__(self) -> None:
        hits = np.asarray(self.hits, float)
        counts = np.broadcast_to(np.asarray(self.counts, float), hits.shape)
        if hits.ndim != 2 or hits.shape[1] < 2 or (counts.sum(1) == 0).any():
            raise ValueError(f"scores of shape {hits.shape} hold no two sentences with an item")
        object.__setattr__(self, "hits", hits)
        object.__setattr__(self, "counts", counts)

    @classmethod
    def of(
        cls, results: Sequence[ProbeResult], groups: Sequence[Hashable], seed: int = 0
    ) -> LayerScores:
        """The scores of one probe a layer; ``groups`` are the sentences of its test items."""
        numbers: dict[Hashable, int] = {}
        codes = np.array([numbers.setdefault(group, len(numbers)) for group in groups])
        hits = np.stack([np.bincount(codes, weights=r.correct) for r in results])
        return cls(hits, np.bincount(codes), results[0].model, seed)

    @property
    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """Sentences that choose the layer, and sentences that score it."""
        order = np.random.default_rng(self.seed).permutation(self.hits.shape[1])
        return order[: len(order) // 2], order[len(order) // 2 :]

    @property
    def chosen(self) -> int:
        """The layer that is best on the choosing half."""
        rows = self.halves[0]
        below = np.maximum(self.counts[:, rows].sum(1), 1e-12)
        return int(np.argmax(self.hits[:, rows].sum(1) / below))

    def at(self, layer: int) -> Estimate:
        """One layer over all sentences, with its bootstrap interval.

        Raises:
            IndexError: no such layer.
        """
        if not 0 <= layer < len(self.hits):
            raise IndexError(f"no layer {layer} in 0..{len(self.hits) - 1}")
        return Estimate(**self._score(layer, np.arange(self.hits.shape[1])))

    def by_layer(self) -> list[Estimate]:
        """Every layer over all sentences."""
        return [self.at(layer) for layer in range(len(self.hits))]

    @property
    def best(self) -> BestLayer:
        """The best layer of one half of the sentences, scored on the other."""
        layer, (choose, test) = self.chosen, self.halves
        picked = self.hits[layer, choose].sum() / max(self.counts[layer, choose].sum(), 1e-12)
        return BestLayer(**self._score(layer, test), layer=layer, chosen_value=float(picked))

    def held_out(self, layer: int) -> Estimate:
        """One layer on the half that :attr:`best` is scored on."""
        return Estimate(**self._score(layer, self.halves[1]))

    def _score(self, layer: int, rows: np.ndarray) -> dict:
        hits, counts = self.hits[layer, rows], self.counts[layer, rows]
        value = float(hits.sum() / counts.sum())
        draws = resampled_means(hits, counts, seed=self.seed)
        return {
            "value": value, "unit": self.unit, "n": int(round(counts.sum())), "model": self.model,
            "seed": self.seed, "interval": percentile_interval(draws, value),
        }  # fmt: skip


def difference(first: LayerScores, second: LayerScores) -> Estimate:
    """Best layer of the first minus best layer of the second, on the same sentences (paired).

    Both layers are chosen on one half; value and interval come from the other.

    Raises:
        ValueError: the two are not of the same sentences or seeds.
    """
    if first.hits.shape[1] != second.hits.shape[1] or first.seed != second.seed:
        raise ValueError("only scores of the same sentences and seed can be paired")
    rows = first.halves[1]
    hits = np.stack([s.hits[s.chosen, rows] for s in (first, second)], axis=1)
    counts = np.stack([s.counts[s.chosen, rows] for s in (first, second)], axis=1)
    value = hits.sum(0) / counts.sum(0)
    draws = resampled_means(hits, counts, seed=first.seed)
    gap = float(value[0] - value[1])
    return Estimate(
        value=gap, unit="share difference", n=int(round(counts[:, 0].sum())), model=first.model,
        seed=first.seed, interval=percentile_interval(draws[:, 0] - draws[:, 1], gap),
    )  # fmt: skip


def share_gap(
    first: Sequence[bool], second: Sequence[bool], *, model: str, seed: int = 0
) -> Estimate:
    """Share of hits in the first sample minus in the second; the two are drawn independently.

    Raises:
        ValueError: an empty sample.
    """
    samples = [np.asarray(sample, float) for sample in (first, second)]
    if not all(map(len, samples)):
        raise ValueError("a gap takes two samples that are not empty")
    draws = [
        resampled_means(sample, np.ones(len(sample)), seed=seed + k)
        for k, sample in enumerate(samples)
    ]
    gap = float(samples[0].mean() - samples[1].mean())
    return Estimate(
        value=gap, unit="share difference", n=sum(map(len, samples)), model=model, seed=seed,
        interval=percentile_interval(draws[0] - draws[1], gap),
    )  # fmt: skip
