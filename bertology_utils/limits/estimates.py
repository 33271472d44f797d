"""Differences with their uncertainty: over sentences that both sides share, or over runs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from ..resampling import Estimate, percentile_interval, resampled_means


def paired(
    first: np.ndarray,
    second: np.ndarray,
    groups: Sequence[Hashable],
    *,
    unit: str,
    model: str,
    seed: int = 0,
    baselines: Mapping[str, float] | None = None,
) -> Estimate:
    """Mean of ``first - second``, whole groups resampled.

    Args:
        first, second: [N] scores of the same items.
        groups: [N] the sentence of every item.
        unit, model, seed, baselines: of the estimate.

    Raises:
        ValueError: lengths differ, or there are no items.
    """
    gap = np.asarray(first, float) - np.asarray(second, float)
    if len(gap) != len(groups):
        raise ValueError(f"{len(gap)} items, but {len(groups)} groups")
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(group, len(numbers)) for group in groups], dtype=int)
    value = float(gap.mean()) if len(gap) else 0.0
    draws = resampled_means(np.bincount(codes, weights=gap), np.bincount(codes), seed=seed)
    return Estimate(
        value=value, unit=unit, n=len(gap), model=model, seed=seed, baselines=baselines or {},
        interval=percentile_interval(draws, value),
    )  # fmt: skip


def magnitude(estimate: Estimate) -> Estimate:
    """The size of a signed effect; an interval on both sides of 0 then reaches below 0."""
    if estimate.value >= 0:
        return estimate
    low, high = estimate.interval or (estimate.value, estimate.value)
    return Estimate(
        value=-estimate.value, unit=estimate.unit, n=estimate.n, model=estimate.model,
        seed=estimate.seed, baselines=estimate.baselines, interval=(-high, -low),
    )  # fmt: skip
