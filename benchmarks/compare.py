"""One comparison: results checked first, then paired runs in turn, medians and ratios."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from .sides import Side, SideError, Task

#: (our arrays, their arrays) -> largest difference of the results, in words for the table
Check = Callable[[dict, dict], str]


class UnequalError(RuntimeError):
    """Two sides that do not compute the same thing cannot be compared."""


@dataclass(frozen=True)
class Comparison:
    """What we do against what one peer does.

    Attributes:
        group, name: where the row stands, and what it is called.
        ours, theirs: the two tasks.
        check: raises UnequalError where the results are not the same.
        goal: the ratio aimed at, None where the row is there to be known.
        note: what the reader must know.
    """

    group: str
    name: str
    ours: Task
    theirs: Task
    check: Check
    goal: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Row:
    """Seconds are medians over rounds, ratios medians of the ratios within each round.

    ``processor`` is the ratio of processor times, which other programs on the machine hardly
    change; with one thread on a quiet machine it is the ratio of the clock.
    """

    group: str
    name: str
    ours: float = float("nan")
    theirs: float = float("nan")
    ratio: float = float("nan")
    spread: tuple[float, float] = (float("nan"), float("nan"))
    processor: float = float("nan")
    difference: str = ""
    goal: float | None = None
    note: str = ""
    rounds: int = 0
    failed: str = field(default="")


def close(key: str, tolerance: float) -> Check:
    """Arrays of one name agree within a tolerance, which is stated with what was found."""

    def check(ours: dict, theirs: dict) -> str:
        found = float(np.abs(ours[key] - theirs[key]).max())
        if not found <= tolerance:
            raise UnequalError(f"{key!r} differs by {found:.2e}, allowed is {tolerance:.0e}")
        return "same bits" if found == 0 else f"{found:.0e}"

    return check


def all_close(tolerances: dict[str, float]) -> Check:
    """As :func:`close` for several arrays."""

    def check(ours: dict, theirs: dict) -> str:
        return ", ".join(close(key, t)(ours, theirs) for key, t in tolerances.items())

    return check


def same_bits(key: str) -> Check:
    """Arrays of one name are equal."""
    return close(key, 0.0)


def as_good(key: str, slack: float, *, higher: bool) -> Check:
    """Our mean over layers is no worse than theirs but for ``slack``."""

    def check(ours: dict, theirs: dict) -> str:
        mine, other = float(ours[key].mean()), float(theirs[key].mean())
        worse = other - mine if higher else mine - other
        if worse > slack:
            raise UnequalError(f"mean {key} {mine:.4f} against {other:.4f}")
        return f"{key} {mine:.3f} / {other:.3f}"

    return check


def measure(
    comparison: Comparison,
    sides: dict[str, Side],
    rounds: int,
    folder: Path,
) -> Row:
    """Check, then time both sides in turn, the first to run changing from round to round."""
    about = (comparison.group, comparison.name)
    try:
        results = []
        for name, task in (("ours", comparison.ours), ("theirs", comparison.theirs)):
            out = folder / f"{name}.npz"
            sides[task.side].run(task, out)
            with np.load(out) as arrays:
                results.append(dict(arrays))
        difference = comparison.check(*results)
        times: list[tuple[float, float]] = []
        processor: list[float] = []
        for turn in range(rounds):
            pair = [comparison.ours, comparison.theirs]
            order = pair if turn % 2 == 0 else pair[::-1]
            replies = {id(task): sides[task.side].run(task) for task in order}
            mine, other = (replies[id(task)] for task in pair)
            times.append((mine["seconds"], other["seconds"]))
            processor.append(other["processor"] / mine["processor"])
    except (SideError, UnequalError) as error:
        return Row(*about, failed=str(error), goal=comparison.goal, note=comparison.note)
    ratios = [theirs / ours for ours, theirs in times]
    return Row(
        *about,
        ours=median(ours for ours, _ in times),
        theirs=median(theirs for _, theirs in times),
        ratio=median(ratios),
        spread=(min(ratios), max(ratios)),
        processor=median(processor),
        difference=difference,
        goal=comparison.goal,
        note=comparison.note,
        rounds=rounds,
    )


def regressions(rows: Sequence[Row], earlier: Mapping[str, float], tolerance: float) -> list[str]:
    """Rows whose ratio fell below an earlier one by more than a share ``tolerance`` of it.

    Raises:
        ValueError: no row was measured earlier.
    """
    known = [row for row in rows if row.name in earlier]
    if not known:
        raise ValueError("none of these rows was measured earlier")
    return [
        f"{row.group}, {row.name}: {row.ratio:.2f}, was {earlier[row.name]:.2f}"
        for row in known
        if not row.ratio >= (1 - tolerance) * earlier[row.name]
    ]


def failures(rows: Sequence[Row]) -> list[str]:
    """Rows that could not be measured or missed their goal."""
    return [
        f"{row.group}, {row.name}: " + (row.failed or f"{row.ratio:.2f}, aimed at {row.goal}")
        for row in rows
        if row.failed or (row.goal is not None and row.ratio < row.goal)
    ]
