"""Summaries over several measures of the same heads, with intervals over texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..attention import HeadPatterns, HeadScores
from ..resampling import Estimate, percentile_interval


def heads_above(measures: Mapping[str, HeadScores], threshold: float) -> Estimate:
    """How many heads score above a threshold on any one of the measures; unit ``"count"``.

    Raises:
        ValueError: no measures, or measures of other texts or heads.
    """
    listed = _alike(list(measures.values()))

    def count(scores: list[np.ndarray]) -> np.ndarray:
        return (np.max(scores, axis=0) > threshold).sum((-2, -1))

    value = float(count([m.scores for m in listed]))
    return Estimate(
        value=value,
        unit="count",
        n=len(listed[0].counts),
        model=listed[0].model,
        seed=listed[0].seed,
        # All measures are resampled with one seed, so a replicate holds the same texts in each.
        interval=percentile_interval(count([m.draws for m in listed]), value),
    )


def share_of(count: Estimate, total: int) -> Estimate:
    """A count, with its interval and baselines, as a share of ``total``.

    Raises:
        ValueError: ``total`` is smaller than the count.
    """
    if total < 1 or count.value > total:
        raise ValueError(f"{count.value:g} of {total} is no share")
    low, high = count.interval if count.interval else (None, None)
    return replace(
        count,
        value=count.value / total,
        unit="share",
        interval=None if low is None else (low / total, high / total),
        baselines={name: value / total for name, value in count.baselines.items()},
    )


def total(name: str, parts: Sequence[HeadScores]) -> HeadScores:
    """The sum of measures of the same texts and items, controls included.

    Raises:
        ValueError: no measures, or measures of other texts, items or heads.
    """
    listed = _alike(list(parts))
    first = listed[0]
    if any(not np.array_equal(first.counts, part.counts) for part in listed):
        raise ValueError("the measures count different items, so they do not add up")
    shared = set.intersection(*(set(part.controls) for part in listed))
    return replace(
        first,
        name=name,
        sums=sum(part.sums.astype(float) for part in listed),
        controls={key: sum(part.controls[key] for part in listed) for key in sorted(shared)},
    )


def side_by_side(parts: Sequence[HeadScores]) -> HeadScores:
    """Heads of several models as if they were the heads of one.

    Text i of all parts is resampled together. Where parts count different items, their totals are
    brought to the first one's counts, so that every head keeps its own mean.

    Raises:
        ValueError: no parts, or different numbers of texts or layers.
    """
    listed = list(parts)
    if not listed or len({part.sums.shape[:2] for part in listed}) != 1:
        raise ValueError("need measures of equally many texts and layers")
    counts = listed[0].counts.astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = [np.nan_to_num(part.sums / part.counts[:, None, None]) for part in listed]
    sums = np.concatenate([rate * counts[:, None, None] for rate in rates], axis=2)
    return replace(listed[0], sums=sums, controls={})


def patterns_side_by_side(parts: Sequence[HeadPatterns]) -> HeadPatterns:
    """The named maps of several models as if they were the heads of one.

    Raises:
        ValueError: no parts, or different numbers of texts or layers.
    """
    listed = list(parts)
    if not listed or len({part.maps.shape[:2] for part in listed}) != 1:
        raise ValueError("need patterns of equally many texts and layers")
    return replace(
        listed[0],
        maps=np.concatenate([part.maps for part in listed], axis=2),
        features=np.concatenate([part.features for part in listed], axis=1),
    )


def depth_gap(upper: HeadScores, lower: HeadScores) -> Estimate:
    """Mean layer of one kind of attention minus that of another, in layers (paired over texts).

    The mean layer (from 1) is weighted by the layer's mean score.

    Raises:
        ValueError: measures of other texts or heads.
    """
    _alike([upper, lower])

    def centre(scores: np.ndarray) -> np.ndarray:
        layers = scores.mean(-1)
        return (layers * np.arange(1, layers.shape[-1] + 1)).sum(-1) / layers.sum(-1)

    value = float(centre(upper.scores) - centre(lower.scores))
    return Estimate(
        value=value,
        unit="layers",
        n=len(upper.counts),
        model=upper.model,
        seed=upper.seed,
        interval=percentile_interval(centre(upper.draws) - centre(lower.draws), value),
    )


def advantage(confusion: HeadScores) -> HeadScores:
    """Confusion of even attention minus a head's confusion, in nats; see ``link_confusion``.

    Raises:
        KeyError: the measure has no control ``uniform``.
    """
    even = confusion.controls["uniform"][:, :, None]
    return replace(confusion, name="advantage", sums=even - confusion.sums, controls={})


def _alike(parts: list[HeadScores]) -> list[HeadScores]:
    if not parts:
        raise ValueError("no measures")
    if len({part.sums.shape for part in parts}) != 1 or len({part.seed for part in parts}) != 1:
        raise ValueError("the measures differ in texts, heads or seed")
    return parts
