"""Numbers with their uncertainty: estimates, and the bootstrap over texts.

Imports nothing of this package. Words of one text are not independent, so whole texts are
resampled (the cluster bootstrap; Efron and Tibshirani 1993, chapter 8).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.stats import rankdata
from scipy.stats import t as student_t

RESAMPLES = 1000
#: unit -> least and largest value that it can take
RANGES: Mapping[str, tuple[float, float]] = {
    "share": (0.0, 1.0),
    "share difference": (-1.0, 1.0),
    "correlation": (-1.0, 1.0),
}
#: weights of this many (resamples x items) are held at once
_CHUNK = 4_000_000


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """One measured number.

    Attributes:
        value: the number, in ``unit``.
        unit: ``"share"``, ``"cosine"``, ``"nats"``...
        n: how many items stand behind it.
        model: the model measured.
        baselines: name -> value of what it has to be compared with, in the same unit.
        seed: seed of everything drawn at random; None where nothing was.
        interval: 95 % interval; None where there is no estimate of it.
    """

    value: float
    unit: str
    n: int
    model: str
    baselines: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        # A copy, so that the caller's mapping can change without changing the result.
        object.__setattr__(self, "baselines", dict(self.baselines))

    def with_baselines(self, **values: float | Estimate) -> Estimate:
        """The same estimate beside further baselines: numbers, or estimates of another model."""
        new = {k: float(getattr(v, "value", v)) for k, v in values.items()}
        return replace(self, baselines={**self.baselines, **new})


def resampled_means(
    sums: np.ndarray, counts: np.ndarray, *, seed: int, resamples: int = RESAMPLES
) -> np.ndarray:
    """Bootstrap replicates of ``sums.sum(0) / counts.sum(0)``.

    Args:
        sums: [N, ...] totals of each of N items (texts, words, pairs).
        counts: [N], or the shape of ``sums``: what each total is a sum over.
        seed: of the resampling.
        resamples: number of replicates R.

    Returns:
        [R, ...]; NaN where a replicate has no counts at all.

    Raises:
        ValueError: no items.
    """
    sums, counts = np.asarray(sums, float), np.asarray(counts, float)
    if len(sums) == 0:
        raise ValueError("nothing to resample: no items")
    n, shape = len(sums), sums.shape[1:]
    flat, weights = sums.reshape(n, -1), counts.reshape(n, -1)
    draw = np.random.default_rng(seed)
    step = max(1, _CHUNK // n)
    parts = []
    for start in range(0, resamples, step):
        size = min(step, resamples - start)
        times = draw.multinomial(n, np.full(n, 1.0 / n), size=size).astype(float)
        with np.errstate(invalid="ignore", divide="ignore"):
            parts.append((times @ flat) / (times @ weights))
    return np.concatenate(parts).reshape(resamples, *shape)


def percentile_interval(draws: np.ndarray, value: float) -> tuple[float, float]:
    """The 95 % percentile interval of bootstrap replicates [R], widened to hold ``value``.

    A skewed statistic may lie just outside its own percentiles; an interval that excludes the
    estimate would only confuse.
    """
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    return min(float(low), float(value)), max(float(high), float(value))


def student_reach(values: np.ndarray) -> float:
    """Half the width of Student's 95 % interval of a mean of independent numbers [N], N > 1."""
    n = len(values)
    return float(student_t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n))


def mean_over_runs(
    values: Sequence[float],
    *,
    unit: str,
    model: str,
    baselines: Mapping[str, float] | None = None,
    seed: int | None = 0,
) -> Estimate:
    """Mean of one number a run (a seed, a draw of training data), with Student's 95 % interval.

    The interval is cut where the unit ends (:data:`RANGES`): a share never exceeds 1.

    Raises:
        ValueError: fewer than two runs.
    """
    runs = np.asarray(values, float)
    if len(runs) < 2:
        raise ValueError(f"an interval over runs needs two or more, got {len(runs)}")
    mean, reach = float(runs.mean()), student_reach(runs)
    low, high = RANGES.get(unit, (-math.inf, math.inf))
    return Estimate(
        value=mean, unit=unit, n=len(runs), model=model, baselines=baselines or {}, seed=seed,
        interval=(max(low, mean - reach), min(high, mean + reach)),
    )  # fmt: skip


def rank_correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Spearman's correlation along the last dimension, [..., N] twice -> [...].

    NaN where one side does not vary, as can happen in a bootstrap replicate.
    """
    x, y = rankdata(a, axis=-1), rankdata(b, axis=-1)
    x, y = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    scale = np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(scale > 0, (x * y).sum(-1) / scale, np.nan)
