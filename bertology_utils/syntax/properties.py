"""Numbers of whole sentences read from pooled vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import rankdata

from ..probes import Split, fit_ridge
from ..resampling import Estimate, percentile_interval

RESAMPLES = 1000


@dataclass(frozen=True, eq=False)
class PropertyScores:
    """Rank correlations of predicted with true numbers. S layers, P properties, M test sentences.

    Attributes:
        names: of the properties.
        predicted: [S, P, M]; gold: [P, M].
        model: name of the encoder.
        seed: of halves and bootstrap.
    """

    names: tuple[str, ...]
    predicted: np.ndarray
    gold: np.ndarray
    model: str
    seed: int = 0

    def by_layer(self, name: str) -> list[float]:
        """Spearman correlation of one property in every layer, over all test sentences.

        Raises:
            KeyError: no such property.
        """
        if name not in self.names:
            raise KeyError(f"no property {name!r}; there are {', '.join(self.names)}")
        p = self.names.index(name)
        return [float(_spearman(layer[p], self.gold[p])) for layer in self.predicted]

    @property
    def chosen(self) -> int:
        """The layer with the best mean correlation on one half of the test sentences."""
        return int(np.argmax([self._mean(layer, self._halves[0]) for layer in self.predicted]))

    @property
    def best(self) -> Estimate:
        """Mean correlation over the properties at :attr:`chosen`, on the other half."""
        layer, rows = self.predicted[self.chosen], self._halves[1]
        rng = np.random.default_rng(self.seed)
        draws = [
            self._mean(layer, rows[rng.integers(0, len(rows), len(rows))])
            for _ in range(RESAMPLES)
        ]
        value = self._mean(layer, rows)
        return Estimate(
            value=value, unit="correlation", n=len(rows), model=self.model, seed=self.seed,
            interval=percentile_interval(np.array(draws), value),
        )  # fmt: skip

    @property
    def _halves(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.random.default_rng(self.seed).permutation(self.gold.shape[1])
        return order[: len(order) // 2], order[len(order) // 2 :]

    def _mean(self, layer: np.ndarray, rows: np.ndarray) -> float:
        return float(_spearman(layer[:, rows], self.gold[:, rows]).mean())


def property_scores(
    pooled: np.ndarray,
    properties: Mapping[str, Sequence[float]],
    split: Split,
    *,
    model: str,
    seed: int = 0,
) -> PropertyScores:
    """Predict all properties from every layer by ridge regression.

    Args:
        pooled: [S, M, D] one vector a sentence.
        properties: name -> one number a sentence.
        split: over sentences; the development part chooses the penalty.
        model: name for the result.
        seed: of halves and bootstrap.

    Raises:
        ValueError: a property that is the same for all test sentences, or of another length.
    """
    table = np.array([properties[name] for name in properties], dtype=np.float32)
    if table.shape[1] != pooled.shape[1]:
        raise ValueError(f"{table.shape[1]} numbers for {pooled.shape[1]} sentences")
    gold = table[:, split.test]
    if (flat := np.ptp(gold, axis=1) == 0).any():
        raise ValueError(f"{list(properties)[int(flat.argmax())]!r} is the same for all sentences")
    centre = table[:, split.train].mean(1, keepdims=True)
    spread = table[:, split.train].std(1, keepdims=True)
    targets = torch.from_numpy(((table - centre) / np.maximum(spread, 1e-6)).T.copy())
    data = torch.from_numpy(np.ascontiguousarray(pooled))
    fitted = fit_ridge(
        data[:, split.train], targets[split.train], dev=(data[:, split.dev], targets[split.dev])
    )
    said = fitted.predict(data[:, split.test]).permute(0, 2, 1).numpy()
    return PropertyScores(tuple(properties), said, gold, model, seed)


def _spearman(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Row-wise rank correlation of [..., M]; 0 where a side is constant."""
    x, y = rankdata(a, axis=-1), rankdata(b, axis=-1)
    x, y = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    below = np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    return np.where(below > 0, (x * y).sum(-1) / np.maximum(below, 1e-12), 0.0)
