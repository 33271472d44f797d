"""What a method hands to the ledger: a number, and what it has to be compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from .errors import MeasurementError

#: Every unit a claim may use, with the range its values live in.
UNITS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "share": (0.0, 1.0),  # accuracies, F1, UUAS, attention mass, probabilities
        "share difference": (-1.0, 1.0),
        "correlation": (-1.0, 1.0),
        "correlation difference": (-2.0, 2.0),
        "cosine": (-1.0, 1.0),
        "cosine difference": (-2.0, 2.0),
        "relative depth": (0.0, 1.0),  # 0 = input embedding, 1 = last layer
        "layers": (-math.inf, math.inf),  # a difference of depths, counted in layers
        "nats": (-math.inf, math.inf),  # losses, divergences and their differences
        "bits": (-math.inf, math.inf),
        "log ratio": (-math.inf, math.inf),
        "R squared": (-math.inf, 1.0),
        "ratio": (0.0, math.inf),
        "count": (0.0, math.inf),
        "absolute error": (0.0, math.inf),
        "standardised difference": (-math.inf, math.inf),
        "slope": (-math.inf, math.inf),
    }
)


@runtime_checkable
class Measured(Protocol):
    """The attributes every method's result dataclass shares, and all the ledger reads."""

    @property
    def value(self) -> float: ...
    @property
    def baselines(self) -> Mapping[str, float]: ...
    @property
    def n(self) -> int: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def interval(self) -> tuple[float, float] | None: ...
    @property
    def model(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One number measured on one model.

    Attributes:
        value: the measured quantity, in ``unit``.
        unit: a key of :data:`UNITS`.
        baselines: name -> value of each control, in the same unit.
        n: how many independent items stand behind the value (sentences, pairs, seeds...).
        seed: the seed of the run, or None when nothing was drawn at random.
        interval: 95% interval of ``value``; None when the uncertainty was not estimated.
        model: the model's name as the reader would type it.
        details: further named numbers worth keeping (per layer, per condition...); no verdict
            depends on them.

    Raises:
        MeasurementError: a number is not finite or outside the unit's range, the interval does
            not hold the value, ``n`` is below 1, or the model has no name.
    """

    value: float
    unit: str
    n: int
    model: str
    baselines: Mapping[str, float] = field(default_factory=dict)
    seed: int | None = None
    interval: tuple[float, float] | None = None
    details: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.unit, str) or self.unit not in UNITS:
            raise MeasurementError(f"unknown unit {_shown(self.unit)}; known: {', '.join(UNITS)}")
        put = object.__setattr__  # the instance is frozen; numbers are normalised once, here
        put(self, "value", self._in_range("value", self.value))
        put(self, "baselines", self._numbers("baseline", self.baselines, in_unit=True))
        put(self, "details", self._numbers("detail", self.details, in_unit=False))
        put(self, "n", _whole("n", self.n))
        if self.n < 1:
            raise MeasurementError(f"n is {self.n}; a measurement needs at least one item")
        if self.seed is not None:
            put(self, "seed", _whole("seed", self.seed))
        if not isinstance(self.model, str) or not self.model.strip():
            raise MeasurementError(f"the model's name is {_shown(self.model)}")
        writable("the model's name", self.model)
        if self.interval is not None:
            put(self, "interval", self._checked_interval(self.interval))

    @classmethod
    def of(cls, result: Measured, **changes: Any) -> Measurement:
        """Copy a method's result; ``changes`` replace or add fields (``unit``, ``baselines``...).

        Raises:
            MeasurementError: ``result`` lacks a field that ``changes`` does not give.
        """
        fields = dict(changes)
        for name in ("value", "unit", "n", "model", "baselines", "seed", "interval"):
            if name in fields:
                continue
            if not hasattr(result, name):
                raise MeasurementError(f"{type(result).__name__} has no {name!r}")
            fields[name] = getattr(result, name)
        return cls(**fields)

    def _in_range(self, what: str, number: Any) -> float:
        value = _finite(what, number)
        low, high = UNITS[self.unit]
        slack = 1e-6  # float32 means of ones may end a hair above 1
        if not low - slack <= value <= high + slack:
            raise MeasurementError(
                f"{what} is {value:g}, but a {self.unit} lies between {low:g} and {high:g}"
            )
        return min(max(value, low), high)

    def _numbers(self, what: str, given: Mapping[str, Any], in_unit: bool) -> Mapping[str, float]:
        check = self._in_range if in_unit else _finite
        if not isinstance(given, Mapping):
            raise MeasurementError(f"{what}s are {_shown(given)}, not numbers by name")
        for name in given:
            writable(f"the name of a {what}", str(name))
        # A plain dict, unlike a mapping proxy, travels between processes.
        return {str(k): check(f"{what} {_shown(str(k))}", v) for k, v in given.items()}

    def _checked_interval(self, interval: tuple[float, float]) -> tuple[float, float]:
        try:
            low, high = interval
        except (TypeError, ValueError):
            raise MeasurementError(f"the interval is {_shown(interval)}, not (low, high)") from None
        low, high = _finite("interval's low end", low), _finite("interval's high end", high)
        # Percentile intervals of skewed statistics can miss the point value by rounding only.
        slack = 1e-6 * max(1.0, abs(self.value))
        if low > high or not low - slack <= self.value <= high + slack:
            raise MeasurementError(
                f"the interval ({low:g}, {high:g}) does not hold the value {self.value:g}"
            )
        return low, high


@dataclass(frozen=True, kw_only=True)
class NotTestable:
    """The model or its vocabulary cannot face the question (no NSP head, too few known words)."""

    model: str
    reason: str
    seed: int | None = None


@dataclass(frozen=True, kw_only=True)
class BrokenModel:
    """The model ran but gives no finite score (for instance NaN weights): it shows nothing.

    Meant for models, not for mistakes in an experiment: those should raise.
    """

    model: str
    reason: str
    seed: int | None = None


def as_measurement(result: Measured, unit: str) -> Measurement:
    """``result`` as a :class:`Measurement`: in its own unit if it states one, else in ``unit``."""
    if isinstance(result, Measurement):
        return result
    return Measurement.of(result, unit=getattr(result, "unit", None) or unit)


def _finite(what: str, number: Any) -> float:
    if isinstance(number, bool):
        raise MeasurementError(f"{what} is {number}, not a number")
    try:
        value = float(number)
    except (TypeError, ValueError, OverflowError):
        raise MeasurementError(f"{what} is {_shown(number)}, not a number") from None
    if not math.isfinite(value):
        raise MeasurementError(f"{what} is {value}; only finite numbers are recorded")
    return value


def writable(what: str, text: str) -> None:
    """Raise MeasurementError for text that no file can hold: halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise MeasurementError(f"{what} holds half of a surrogate pair: {_shown(text)}") from None


def _shown(value: Any) -> str:
    """A wrong value for an error message, cut where it is long."""
    if isinstance(value, int):
        return f"a whole number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _whole(what: str, number: Any) -> int:
    value = _finite(what, number)
    if value != int(value):
        raise MeasurementError(f"{what} is {value:g}, not a whole number")
    return int(value)
