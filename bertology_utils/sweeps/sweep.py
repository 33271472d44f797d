"""What a sweep is: axes, a configuration for every combination of their values, and the work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from ..encoder import Encoder
from ..run_store import Record, one_by_one

Value = str | int | float
#: the configurations of a batch -> what came of each run; numbers under "values", curves beside
Compute = Callable[[list[Any]], Sequence[Record]]


class SweepError(ValueError):
    """No such sweep, axis or value; the message names it."""


@dataclass(frozen=True)
class Sweep:
    """An experiment of a chapter, larger.

    Attributes:
        name: on the command line.
        chapter: two digits.
        title: what is asked, in a line.
        axes: name -> values of the larger version, in the order of the table's columns.
        config: (encoder, a value for every axis) -> frozen configuration of the run, or None where
            the values make no sense together.
        work: encoder -> function that computes a batch of runs.
        measures: name of a number in a run's record -> its unit; the first is drawn.
        seeds: axes over which means and intervals are taken.
        size: axis that ``--sizes`` sets; empty for none.
        batches: deals runs into batches.
        uses_model: whether the runs depend on the encoder.
    """

    name: str
    chapter: str
    title: str
    axes: Mapping[str, tuple[Value, ...]]
    config: Callable[..., Any]
    work: Callable[[Encoder | None], Compute]
    measures: Mapping[str, str]
    seeds: tuple[str, ...] = ("seed",)
    size: str = "size"
    batches: Callable[[list[Any]], Iterable[list[Any]]] = field(default=one_by_one)
    uses_model: bool = True

    def at(self, axis: str, values: Sequence[Value | str]) -> Sweep:
        """The same sweep with other values on one axis; texts are read as the axis needs them.

        Raises:
            SweepError: no such axis, no values, one twice, or one that the axis cannot have.
        """
        if axis not in self.axes:
            raise SweepError(
                f"sweep {self.name!r} has no axis {axis!r}; it has {', '.join(self.axes)}"
            )
        known = self.axes[axis]
        read = tuple(_read(axis, value, known) for value in values)
        if not read or len(set(read)) < len(read):
            raise SweepError(f"axis {axis!r} needs different values, got {list(values)}")
        return replace(self, axes={**self.axes, axis: read})

    def runs(self, encoder: Encoder | None) -> dict[tuple[Value, ...], Any]:
        """Values of all axes -> configuration, for every combination that makes sense.

        Raises:
            SweepError: none does, or a value is out of range.
        """
        found = {}
        for values in product(*self.axes.values()):
            try:
                config = self.config(encoder, **dict(zip(self.axes, values, strict=True)))
            except ValueError as error:
                named = ", ".join(f"{a}={v}" for a, v in zip(self.axes, values, strict=True))
                raise SweepError(f"{named}: {error}") from error
            if config is not None:
                found[values] = config
        if not found:
            raise SweepError(f"sweep {self.name!r}: no combination of these values makes sense")
        return found


def _read(axis: str, value: Value | str, known: tuple[Value, ...]) -> Value:
    kind = type(known[0])
    if kind is str:
        if value not in known:
            raise SweepError(f"axis {axis!r} has no value {value!r}; it has: {', '.join(known)}")
        return value
    try:
        read = kind(value)
    except ValueError:
        raise SweepError(f"axis {axis!r} takes numbers such as {known[0]}, not {value!r}") from None
    if read < 0:
        raise SweepError(f"axis {axis!r}: {value} is negative")
    return read
