"""How well do vectors of words agree with what the words have in common?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from ..geometry import StaticVectors, TooFewError, unit_rows
from ..resampling import RESAMPLES, Estimate, percentile_interval
from ..stimuli.things import Thing


@dataclass(frozen=True, eq=False)
class Relatedness:
    """Gold relatedness of all pairs of W words.

    Attributes:
        words: the words.
        gold: [W, W], symmetric; the diagonal is not used.
    """

    words: tuple[str, ...]
    gold: np.ndarray

    def __post_init__(self) -> None:
        n = len(self.words)
        if n < 5:
            raise TooFewError(f"{n} words have too few pairs")
        if self.gold.shape != (n, n) or not np.allclose(self.gold, self.gold.T):
            raise ValueError(f"gold must be a symmetric matrix of {n} words")
        if np.ptp(self.gold[np.triu_indices(n, 1)]) == 0:
            raise TooFewError("all pairs are equally related")

    def halves(self, seed: int = 0) -> tuple[Relatedness, Relatedness]:
        """Two sets of words that share none: one to choose on, one to judge on."""
        order = np.random.default_rng(seed).permutation(len(self.words))
        cut = len(order) // 2
        return self._part(np.sort(order[:cut])), self._part(np.sort(order[cut:]))

    def only(self, words: Sequence[str]) -> Relatedness:
        """The words that are in ``words`` as well."""
        keep = set(words)
        return self._part(np.array([i for i, w in enumerate(self.words) if w in keep], int))

    def agreement(
        self, vectors: StaticVectors | Sequence[StaticVectors], *, seed: int = 0
    ) -> Estimate:
        """Spearman's correlation of cosine and gold over all pairs of words.

        Several sets of vectors (of other random contexts, of other seeds) are judged one by one
        and the correlations averaged. Pairs that share a word are not independent, so that the
        interval resamples words; ranks are those of the whole sample.

        Raises:
            KeyError: a word has no vector.
        """
        value, draws = self._correlations(vectors, seed)
        return self._estimate(value, draws, "correlation", vectors, seed)

    def gain(
        self,
        better: StaticVectors | Sequence[StaticVectors],
        worse: StaticVectors | Sequence[StaticVectors],
        *,
        seed: int = 0,
    ) -> Estimate:
        """The correlation of one set of vectors minus that of another; words are resampled once
        for both. Arguments and errors as in :meth:`agreement`."""
        one, first = self._correlations(better, seed)
        two, second = self._correlations(worse, seed)
        return self._estimate(one - two, first - second, "correlation difference", better, seed)

    def _part(self, keep: np.ndarray) -> Relatedness:
        return Relatedness(tuple(self.words[i] for i in keep), self.gold[np.ix_(keep, keep)])

    def _estimate(self, value, draws, unit, vectors, seed) -> Estimate:
        return Estimate(
            value=value, unit=unit, n=len(self.words), model=_several(vectors)[0].model, seed=seed,
            interval=percentile_interval(draws, value),
        )  # fmt: skip

    def _correlations(self, vectors, seed: int) -> tuple[float, np.ndarray]:
        n = len(self.words)
        upper = np.triu_indices(n, 1)
        gold = _ranks(self.gold[upper])
        times = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
        values, draws = [], []
        for static in _several(vectors):
            unit = unit_rows(np.stack([static[word] for word in self.words]))
            ours = _ranks((unit @ unit.T)[upper])
            values.append(float((ours * gold).mean()))
            draws.append(_weighted(ours, gold, times.astype(float), upper, n))
        return float(np.mean(values)), np.mean(draws, axis=0)


def shared_features(things: Sequence[Thing]) -> Relatedness:
    """Relatedness of things: features that two have in common, as a share of those of either.

    Things without any feature are left out: nothing is known of what they are related to.

    Raises:
        TooFewError: fewer than five things with features.
    """
    things = [thing for thing in things if thing.features]
    names = sorted(set().union(*(thing.features for thing in things)))
    has = np.array([[name in thing.features for name in names] for thing in things], float)
    both = has @ has.T
    either = has.sum(1)[:, None] + has.sum(1)[None, :] - both
    return Relatedness(tuple(thing.noun for thing in things), both / either)


def _several(vectors: StaticVectors | Sequence[StaticVectors]) -> Sequence[StaticVectors]:
    return [vectors] if isinstance(vectors, StaticVectors) else vectors


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks with mean 0 and variance 1; all 0 where nothing varies."""
    ranks = rankdata(values)
    ranks -= ranks.mean()
    spread = ranks.std()
    return ranks / spread if spread > 0 else ranks


def _weighted(x: np.ndarray, y: np.ndarray, times: np.ndarray, upper, n: int) -> np.ndarray:
    """[R] correlations over pairs that count as often as both their words were drawn."""

    def total(values: np.ndarray) -> np.ndarray:
        square = np.zeros((n, n))
        square[upper] = values
        return np.einsum("ri,ij,rj->r", times, square, times, optimize=True)

    weight = np.maximum(total(np.ones_like(x)), 1e-12)
    mx, my = total(x) / weight, total(y) / weight
    covariance = total(x * y) / weight - mx * my
    scale = np.sqrt(
        np.maximum(total(x * x) / weight - mx**2, 0) * np.maximum(total(y * y) / weight - my**2, 0)
    )
    return np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > 0)
