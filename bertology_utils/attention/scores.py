"""One number per head, kept text by text, so that any summary of it carries an interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..encoder import BertologyError, HeadIndexError
from ..resampling import Estimate, percentile_interval, rank_correlation, resampled_means


class NothingToScoreError(BertologyError):
    """No item in the data to which a measure applies."""


@dataclass(frozen=True, kw_only=True)
class BestHead(Estimate):
    """The head that is best on one half of the texts, measured on the other half.

    Picking the best of many heads on the data that scores it overstates it; hence two halves.

    Attributes:
        layer, head: where it is, counted from 0.
        chosen_value: its score on the half that chose it.
    """

    layer: int
    head: int
    chosen_value: float


@dataclass(frozen=True, eq=False)
class HeadScores:
    """A measure of every head over N texts. L layers, H heads a layer.

    It can be handed to a chart or the ledger as it is: ``value``, ``interval`` and ``baselines``
    are those of :attr:`best`, the held-out score of the best head.

    Attributes:
        name: what is measured.
        unit: of the scores.
        sums: [N, L, H] total of each text.
        counts: [N] items (tokens, pairs) that each total is a sum over.
        model: the encoder's name.
        seed: of the halves and of the bootstrap over texts.
        controls: name -> [N, K] totals of K alternatives to a head, such as K fixed offsets; the
            best alternative is chosen on the same half as the best head.
    """

    name: str
    unit: str
    sums: np.ndarray
    counts: np.ndarray
    model: str
    seed: int = 0
    controls: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.sums) != len(self.counts):
            raise ValueError(f"{len(self.sums)} totals, but {len(self.counts)} counts of texts")
        if self.counts.sum() == 0:
            raise NothingToScoreError(f"{self.name}: no item in {len(self.counts)} texts")

    @property
    def n(self) -> int:
        """Items scored: those of the held-out half (see :attr:`best`)."""
        return self.best.n

    @property
    def value(self) -> float:
        return self.best.value

    @property
    def interval(self) -> tuple[float, float] | None:
        return self.best.interval

    @property
    def baselines(self) -> Mapping[str, float]:
        return self.best.baselines

    @cached_property
    def scores(self) -> np.ndarray:
        """[L, H] over all texts."""
        return self.sums.sum(0, dtype=float) / self.counts.sum()

    @cached_property
    def control_scores(self) -> dict[str, float]:
        """Each control over all texts, with its best alternative."""
        return {
            name: float(totals.sum(0, dtype=float).max() / self.counts.sum())
            for name, totals in self.controls.items()
        }

    @cached_property
    def draws(self) -> np.ndarray:
        """[R, L, H] bootstrap replicates over texts."""
        return resampled_means(self.sums, self.counts, seed=self.seed)

    def ranking(self) -> list[tuple[int, int]]:
        """(layer, head) from the highest score to the lowest, over all texts."""
        order = np.argsort(-self.scores, axis=None, kind="stable")
        width = self.scores.shape[1]
        return [(int(i) // width, int(i) % width) for i in order]

    @cached_property
    def best(self) -> BestHead:
        """The best head of one random half of the texts, scored on the other.

        Raises:
            NothingToScoreError: fewer than two texts hold an item.
        """
        used = np.flatnonzero(self.counts)
        if len(used) < 2:
            raise NothingToScoreError(f"{self.name}: items in fewer than 2 texts; no held-out half")
        order = np.random.default_rng(self.seed).permutation(used)
        choose, test = order[: len(used) // 2], order[len(used) // 2 :]
        chosen = self.sums[choose].sum(0, dtype=float)
        layer, head = (int(i) for i in np.unravel_index(np.argmax(chosen), chosen.shape))
        total = int(self.counts[test].sum())
        value = float(self.sums[test, layer, head].sum(dtype=float) / total)
        draws = resampled_means(self.sums[test, layer, head], self.counts[test], seed=self.seed)
        baselines = {}
        for name, totals in self.controls.items():
            alternative = int(np.argmax(totals[choose].sum(0, dtype=float)))
            baselines[name] = float(totals[test, alternative].sum(dtype=float) / total)
        return BestHead(
            value=value,
            unit=self.unit,
            n=total,
            model=self.model,
            baselines=baselines,
            seed=self.seed,
            interval=percentile_interval(draws, value),
            layer=layer,
            head=head,
            chosen_value=float(chosen[layer, head] / self.counts[choose].sum()),
        )

    def at(self, layer: int, head: int) -> Estimate:
        """One head over all texts.

        Raises:
            HeadIndexError: no such head.
        """
        _, n_layers, n_heads = self.sums.shape
        if not (0 <= layer < n_layers and 0 <= head < n_heads):
            raise HeadIndexError(f"no head ({layer}, {head}) in {n_layers} layers of {n_heads}")
        return self._estimate(lambda scores: scores[..., layer, head])

    def per_text(self, layer: int, head: int) -> np.ndarray:
        """[N] one head's score in every text; NaN where a text holds no item."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.sums[:, layer, head] / self.counts

    def mean(self) -> Estimate:
        """Mean over all heads."""
        return self._estimate(lambda scores: scores.mean((-2, -1)))

    def by_layer(self) -> tuple[Estimate, ...]:
        """Mean over the heads of each layer, from the lowest layer up."""
        layers = range(self.sums.shape[1])
        return tuple(self._estimate(lambda s, k=k: s[..., k, :].mean(-1)) for k in layers)

    def count_above(self, threshold: float) -> Estimate:
        """How many heads score above a threshold; unit ``"count"``."""
        found = self._estimate(lambda scores: (scores > threshold).sum((-2, -1)), unit="count")
        above = {name: float(v > threshold) for name, v in self.control_scores.items()}
        n_heads = self.scores.size
        return found.with_baselines(**{name: v * n_heads for name, v in above.items()})

    def centre_of_depth(self) -> Estimate:
        """Mean layer (from 1) weighted by the score; unit ``"layers"``. For scores >= 0."""

        def centre(scores: np.ndarray) -> np.ndarray:
            layers = scores.mean(-1)
            return (layers * np.arange(1, layers.shape[-1] + 1)).sum(-1) / layers.sum(-1)

        return self._estimate(centre, unit="layers")

    def minus(self, other: HeadScores) -> HeadScores:
        """Head by head, this measure minus another one of the same texts (paired).

        Raises:
            ValueError: the two differ in texts or heads.
        """
        if self.sums.shape != other.sums.shape:
            raise ValueError(f"{self.name} and {other.name} differ in texts or heads")
        ours, theirs = self.counts.sum(), other.counts.sum()
        # Totals of "other" are rescaled to our counts, so that the difference is a plain mean.
        scale = ours / theirs
        return HeadScores(
            f"{self.name} minus {other.name}",
            f"{self.unit} difference" if self.unit in ("share", "cosine") else self.unit,
            self.sums.astype(float) - other.sums.astype(float) * scale,
            self.counts,
            self.model,
            self.seed,
        )

    def _estimate(
        self, summary: Callable[[np.ndarray], np.ndarray], unit: str | None = None
    ) -> Estimate:
        value = float(summary(self.scores))
        return Estimate(
            value=value,
            unit=unit or self.unit,
            n=int(self.counts.sum()),
            model=self.model,
            baselines=self.control_scores if unit is None else {},
            seed=self.seed,
            interval=percentile_interval(summary(self.draws), value),
        )


def correlation_over_heads(first: HeadScores, second: HeadScores) -> Estimate:
    """Spearman's rank correlation of two measures over all heads of one model.

    The interval resamples texts: it says how stable the correlation of *these* heads is.

    Raises:
        ValueError: different numbers of heads, or a measure that is the same for all heads.
    """
    if first.scores.shape != second.scores.shape:
        raise ValueError(f"{first.name} and {second.name} are not of the same heads")
    a, b = first.scores.ravel(), second.scores.ravel()
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        raise ValueError(f"{first.name} or {second.name} is the same for all heads")
    size = (len(first.draws), -1)
    draws = rank_correlation(first.draws.reshape(size), second.draws.reshape(size))
    value = float(rank_correlation(a, b))
    return Estimate(
        value=value,
        unit="correlation",
        n=a.size,
        model=first.model,
        seed=first.seed,
        interval=percentile_interval(draws, value),
    )
