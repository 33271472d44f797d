"""From a measurement to a verdict, by the rule that the claim declared beforehand.

A rule speaks about the measured value, its 95% interval and its baselines. For all kinds:

* *replicates*: the whole interval is where the claim puts the value, and no control is there too
  (or ours lies wholly beyond it);
* *partly*: the value is there, but the interval reaches out of it (or was not estimated, and the
  rule does not call the quantity ``exact``), or a control that has nothing to show does as well;
* *does not*: the value itself is elsewhere;
* *not testable*: the value is there, but so it is where the thing that the claim denies is known
  to be ``present``: an instrument that finds nothing anywhere says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import MissingBaselineError
from .measurement import Measurement

REPLICATES = "replicates"
PARTLY = "partly"
DOES_NOT = "does not"
NOT_TESTABLE = "not testable on this model"
VERDICTS = (REPLICATES, PARTLY, DOES_NOT, NOT_TESTABLE)

#: Keys each kind of rule needs beside ``kind`` (those of :data:`FOR_ALL` are open to all).
KINDS: Mapping[str, tuple[str, ...]] = {
    "above_baseline": ("baselines",),
    "below_baseline": ("baselines",),
    "near_baseline": ("baselines", "tolerance"),
    "above": ("threshold",),
    "below": ("threshold",),
    "direction": ("expected",),
    "equal": ("target", "tolerance"),
    "interval": ("low", "high"),
}
FOR_ALL = ("min_n", "exact", "controls", "present")
#: what a baseline may be to a rule; one thing only
ROLES = ("baselines", "controls", "present")
#: a baseline of this name is a control wherever it was measured, whether the rule names it or not
RANDOM_MODEL = "random_model"
OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "above_baseline": ("margin",),
    "below_baseline": ("margin",),
}


@dataclass(frozen=True)
class Verdict:
    """One of :data:`VERDICTS`, and the comparison that led to it."""

    word: str
    because: str


@dataclass(frozen=True)
class Rule:
    """Where a claim puts the measured value.

    Kinds: ``above_baseline`` / ``below_baseline`` (beyond every named baseline by ``margin``),
    ``near_baseline`` (within ``tolerance`` of all), ``above`` / ``below`` (a ``threshold``),
    ``direction`` (an effect that is ``expected`` to be positive or negative), ``equal`` (within
    ``tolerance`` of ``target``), ``interval`` (between ``low`` and ``high``).

    ``min_n``: fewer items than this and the model cannot be judged. ``exact``: the quantity is
    computed, not sampled, so that its interval is the value itself.

    ``controls``: measured baselines that should fail the rule, such as the same measurement with
    random weights. One that passes it as well leaves no claim "replicated", unless the whole
    interval lies beyond it on the claim's side; ranges with two ends have no such side. The random
    model is a control whenever it was measured and the rule does not compare with it anyway.

    ``present``: for claims that something is absent, which noise would bear out: the same
    measurement where the thing is known to be there. If that one passes the rule as well, the
    claim is not testable, however far apart the two values are.
    """

    kind: str
    baselines: tuple[str, ...] = ()
    margin: float = 0.0
    tolerance: float = 0.0
    threshold: float = 0.0
    target: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    expected: str = ""
    min_n: int = 1
    exact: bool = False
    controls: tuple[str, ...] = ()
    present: tuple[str, ...] = ()

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Rule:
        """Build a rule from its YAML form.

        Raises:
            ValueError: unknown kind, a key missing or not meant for this kind.
        """
        given = dict(raw)
        kind = given.pop("kind", None)
        if kind not in KINDS:
            raise ValueError(f"unknown kind of rule {kind!r}; known: {', '.join(KINDS)}")
        missing = set(KINDS[kind]) - set(given)
        extra = set(given) - set(KINDS[kind]) - set(OPTIONAL.get(kind, ())) - set(FOR_ALL)
        if missing or extra:
            raise ValueError(f"rule {kind}: missing {sorted(missing)}, not meant {sorted(extra)}")
        for names in set(ROLES) & set(given):
            given[names] = tuple(given[names])
            if not given[names]:
                raise ValueError(f"rule {kind}: no {names} named")
        roles = [name for role in ROLES for name in set(given.get(role, ()))]
        twice = sorted({name for name in roles if roles.count(name) > 1})
        if twice:
            raise ValueError(f"rule {kind}: {twice} has two of the roles {', '.join(ROLES)}")
        if given.get("expected", "positive") not in ("positive", "negative"):
            raise ValueError(f"rule {kind}: expected is {given['expected']!r}")
        rule = cls(kind=kind, **given)
        if rule.low > rule.high or min(rule.tolerance, rule.margin) < 0 or rule.min_n < 1:
            raise ValueError(f"rule {kind}: an empty range, negative width or min_n below 1")
        return rule

    def region(self, baselines: Mapping[str, float]) -> tuple[float, float]:
        """The (low, high) range in which the claim puts the value, given measured baselines.

        Raises:
            MissingBaselineError: a baseline of the rule is not there.
        """
        for name in self.baselines:
            if name not in baselines:
                have = ", ".join(sorted(baselines)) or "none"
                raise MissingBaselineError(f"the baseline {name!r} was not measured (have: {have})")
        levels = [baselines[name] for name in self.baselines]
        match self.kind:
            case "above_baseline":
                return max(levels) + self.margin, math.inf
            case "below_baseline":
                return -math.inf, min(levels) - self.margin
            case "near_baseline":
                return max(levels) - self.tolerance, min(levels) + self.tolerance
            case "above":
                return self.threshold, math.inf
            case "below":
                return -math.inf, self.threshold
            case "direction":
                return (0.0, math.inf) if self.expected == "positive" else (-math.inf, 0.0)
            case "equal":
                return self.target - self.tolerance, self.target + self.tolerance
        return self.low, self.high

    def judge(self, measurement: Measurement) -> Verdict:
        """Compare a measurement with the rule.

        Raises:
            MissingBaselineError: a baseline or control of the rule is not in the measurement.
        """
        region = self.region(measurement.baselines)
        levels = self._control_levels(measurement.baselines)
        known = {name: measurement.baselines[name] for name in self.present}
        if measurement.n < self.min_n:
            return Verdict(NOT_TESTABLE, f"only {measurement.n} items of at least {self.min_n}")
        where = _range_in_words(region)
        value = f"{measurement.value:.4g}"
        if not self._inside(measurement.value, region):
            return Verdict(DOES_NOT, f"{value} is not {where}")
        blind = _named({k: v for k, v in known.items() if self._inside(v, region)})
        if blind:
            because = f"{value} is {where}, but {blind}, known to differ, is too"
            return Verdict(NOT_TESTABLE, because)
        if self.exact:
            ends = (measurement.value, measurement.value)
        elif measurement.interval is None:
            return Verdict(PARTLY, f"{value} is {where}, but its uncertainty was not estimated")
        else:
            ends = measurement.interval
            spread = f"[{ends[0]:.4g}, {ends[1]:.4g}]"
            if not all(self._inside(end, region) for end in ends):
                return Verdict(PARTLY, f"{value} is {where}, its interval {spread} is not")
            value = f"{value} {spread}"
        reached = _named(
            {
                name: level
                for name, level in levels.items()
                if self._inside(level, region) and not _beyond(ends, level, region)
            }
        )
        if reached:
            side = "" if self._closed else " and not clearly behind"
            return Verdict(PARTLY, f"{value} is {where}, but {reached} is too{side}")
        return Verdict(REPLICATES, f"{value} is {where}")

    def _control_levels(self, baselines: Mapping[str, float]) -> dict[str, float]:
        names = list(self.controls)
        if RANDOM_MODEL in baselines and RANDOM_MODEL not in (*self.baselines, *names):
            names.append(RANDOM_MODEL)
        for name in (*names, *self.present):
            if name not in baselines:
                have = ", ".join(sorted(baselines)) or "none"
                raise MissingBaselineError(f"the control {name!r} was not measured (have: {have})")
        return {name: baselines[name] for name in names}

    @property
    def _closed(self) -> bool:
        # One-sided claims are about "more" or "less": touching the border is not enough.
        return self.kind in ("near_baseline", "equal", "interval")

    def _inside(self, value: float, region: tuple[float, float]) -> bool:
        low, high = region
        return low <= value <= high if self._closed else low < value < high

    def in_words(self) -> str:
        """The rule as a phrase, for tables."""
        known = " and ".join(name.replace("_", " ") for name in self.present)
        unlike = f", but not for {known}" if known else ""
        return self._place_in_words() + unlike + self._controls_in_words()

    def _place_in_words(self) -> str:
        names = " and ".join(name.replace("_", " ") for name in self.baselines)
        by = f" by more than {self.margin:g}" if self.margin else ""
        match self.kind:
            case "above_baseline":
                return f"above {names}{by}"
            case "below_baseline":
                return f"below {names}{by}"
            case "near_baseline":
                return f"within {self.tolerance:g} of {names}"
            case "direction":
                return f"{self.expected} effect"
            case "equal":
                return f"{self.target:g} to within {self.tolerance:g}"
        return _range_in_words(self.region({}))

    def _controls_in_words(self) -> str:
        if not self.controls:
            return ""
        names = " and ".join(name.replace("_", " ") for name in self.controls)
        return f", unlike {names}" if self._closed else f", and beyond {names}"


def _beyond(ends: tuple[float, float], level: float, region: tuple[float, float]) -> bool:
    """Whether the whole interval lies past ``level``, on the open side of a one-sided region."""
    low, high = region
    if math.isinf(high) and math.isfinite(low):
        return ends[0] > level
    return math.isinf(low) and math.isfinite(high) and ends[1] < level


def _named(levels: Mapping[str, float]) -> str:
    return ", ".join(f"{name.replace('_', ' ')} ({level:.4g})" for name, level in levels.items())


def _range_in_words(region: tuple[float, float]) -> str:
    low, high = region
    if math.isinf(high):
        return f"above {low:.4g}"
    if math.isinf(low):
        return f"below {high:.4g}"
    return f"between {low:.4g} and {high:.4g}"
