"""Zero-shot questions at the mask: ages, and roles by sensitivity and by first guess."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..cloze import compare_at_mask, spell_mask, target_ranks
from ..encoder import Encoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..semantics import role_reversal
from ..stimuli import MinimalPair
from .learning import share

_FRAME = "A person who is {a} years old is [MASK] than a person who is {b} years old."


@dataclass(frozen=True)
class AgeItem:
    """Two ages in a frame with a mask, and the word that fits it."""

    first: int
    second: int
    frame: str
    right: str
    wrong: str


def age_items(n: int, low: int, high: int, seed: int = 0) -> list[AgeItem]:
    """``n`` comparisons of different ages from ``low`` to ``high``; each pair in both orders.

    After Talmor et al. (2020): half of the answers are "older", so that a model with a favourite
    word scores one half.

    Raises:
        ValueError: an odd number, or too narrow a range.
    """
    if n < 2 or n % 2 or high - low < 2:
        raise ValueError(f"cannot make {n} balanced comparisons from {low} to {high}")
    draw = np.random.default_rng(seed)
    out = []
    for _ in range(n // 2):
        pair = [int(v) for v in draw.choice(np.arange(low, high + 1), 2, replace=False)]
        for a, b in (pair, pair[::-1]):
            words = ("older", "younger") if a > b else ("younger", "older")
            out.append(AgeItem(a, b, _FRAME.format(a=a, b=b), *words))
    return out


def compare_ages(encoder: Encoder, items: Sequence[AgeItem], *, seed: int = 0) -> Estimate:
    """Share of comparisons with the fitting word ahead; the interval resamples pairs of ages."""
    frames = [spell_mask(encoder, item.frame) for item in items]
    judged = compare_at_mask(encoder, frames, [i.right for i in items], [i.wrong for i in items])
    margins = np.array(judged.margins)
    hits = (margins > 0) + 0.5 * (margins == 0)
    groups = [min(i.first, i.second) * 10_000 + max(i.first, i.second) for i in items]
    return share(hits, encoder.name, groups=groups, seed=seed).with_baselines(chance=0.5)


def difference(one: Estimate, other: Estimate, *, unit: str = "share difference") -> Estimate:
    """One estimate minus another of other items; their intervals are combined as independent."""
    value = one.value - other.value
    ends = [e.interval or (e.value, e.value) for e in (one, other)]
    down = np.hypot(one.value - ends[0][0], ends[1][1] - other.value)
    up = np.hypot(ends[0][1] - one.value, other.value - ends[1][0])
    return Estimate(
        value=value, unit=unit, n=min(one.n, other.n), model=one.model, seed=one.seed,
        interval=(value - float(down), value + float(up)),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class TwoLooks:
    """The same items asked in two ways.

    Attributes:
        sensitivity: share of pairs whose verb is likelier where the roles fit; chance is one half.
        accuracy: share whose verb is the first guess where the roles fit.
        gap: sensitivity minus accuracy, paired.
        above_chance: sensitivity rescaled so that a coin gives 0, minus accuracy.
    """

    sensitivity: Estimate
    accuracy: Estimate
    gap: Estimate
    above_chance: Estimate


def two_looks(encoder: Encoder, pairs: Sequence[MinimalPair], *, seed: int = 0) -> TwoLooks:
    """Sensitivity to role reversal beside the share of right first guesses (Ettinger 2020).

    Intervals resample events. Errors as ``semantics.role_reversal``; every verb must be one piece.
    """
    found = role_reversal(encoder, pairs, seed=seed)
    frames = [spell_mask(encoder, pair.good_frame) for pair in pairs]
    ranks = np.array(target_ranks(encoder, frames, [pair.good_word for pair in pairs]))
    prefers = (found.margins > 0) + 0.5 * (found.margins == 0)
    first = (ranks == 1).astype(float)
    groups = np.unique(np.array(found.events), return_inverse=True)[1]

    def over_events(values: np.ndarray, unit: str) -> Estimate:
        sums, counts = np.bincount(groups, weights=values), np.bincount(groups)
        value = float(values.mean())
        return Estimate(
            value=value, unit=unit, n=len(values), model=encoder.name, seed=seed,
            interval=percentile_interval(resampled_means(sums, counts, seed=seed), value),
        )  # fmt: skip

    return TwoLooks(
        over_events(prefers, "share").with_baselines(chance=0.5),
        over_events(first, "share"),
        over_events(prefers - first, "share difference"),
        over_events(2 * prefers - 1 - first, "share difference"),
    )
