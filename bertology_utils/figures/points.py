"""What a chart needs to know of a result: its value, its interval, its baselines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, runtime_checkable


@runtime_checkable
class Measured(Protocol):
    """A result of a method, as far as a picture is concerned."""

    @property
    def value(self) -> float: ...


@dataclass(frozen=True)
class Point:
    """One number to draw.

    Attributes:
        value: the number.
        interval: its 95% interval (low, high), or None.
        baselines: name -> value of what it has to be compared with.
    """

    value: float
    interval: tuple[float, float] | None = None
    baselines: Mapping[str, float] = field(default_factory=dict)


def as_point(name: str, result: float | Measured) -> Point:
    """Return a plain number or a method's result as a :class:`Point`.

    Raises:
        ValueError: a number is not finite or not a number at all; ``name`` is in the message.
    """
    plain = not hasattr(result, "value")
    value = number(name, result if plain else result.value)
    interval = None if plain else getattr(result, "interval", None)
    if interval is not None:
        low, high = (number(f"the interval of {name}", end) for end in interval)
        # Rounding may put the value a hair outside of a percentile interval.
        slack = 1e-6 * max(1.0, abs(value))
        if not low - slack <= value <= high + slack:
            raise ValueError(f"the interval ({low:g}, {high:g}) of {name!r} misses {value:g}")
        interval = (min(low, value), max(high, value))
    baselines = {} if plain else (getattr(result, "baselines", None) or {})
    return Point(
        value,
        interval,
        MappingProxyType(
            {str(key): number(f"baseline {key!r} of {name}", b) for key, b in baselines.items()}
        ),
    )


def number(name: str, given: object) -> float:
    """Return ``given`` as a finite float.

    Raises:
        ValueError: it is not one.
    """
    if isinstance(given, bool | str):
        raise ValueError(f"{name} is {given!r}, not a number")
    try:
        value = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {given!r}, not a number") from None
    if not math.isfinite(value):
        raise ValueError(f"{name} is {value}; only finite numbers are drawn")
    return value
