"""A finished sweep as text, CSV, JSON and a chart."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path

from ..figures import Chart, bars, heatmap, lines
from ..page import SERIES
from ..resampling import Estimate
from ..writing import write_whole
from .running import Result
from .sweep import SweepError

_MOST_BARS = 24


def as_text(result: Result) -> str:
    """One line for each combination of values that are no seeds: means and 95 % intervals."""
    kept = _kept(result)
    lines_ = [[*kept, "runs", *result.sweep.measures]]
    for key, found in result.summary().items():
        n = max((e.n for e in found.values() if isinstance(e, Estimate)), default=1)
        lines_.append([*map(str, key), str(n), *(_cell(found.get(m)) for m in
                                                 result.sweep.measures)])  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*lines_, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines_
    )


def _cell(found: Estimate | float | None) -> str:
    if found is None:
        return "-"
    if isinstance(found, Estimate):
        low, high = found.interval
        return f"{_short(found.value)} [{_short(low)}, {_short(high)}]"
    return _short(found)


def _short(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.0f}"


def write_tables(result: Result, folder: Path) -> tuple[Path, Path]:
    """Write all runs as ``table.csv``, and with the summary as ``table.json``."""
    columns = [*result.sweep.axes, *result.sweep.measures]
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(result.rows)
    kept = _kept(result)
    summary = [
        {**dict(zip(kept, key, strict=True)),
         **{measure: asdict(e) if isinstance(e, Estimate) else e for measure, e in found.items()}}
        for key, found in result.summary().items()
    ]  # fmt: skip
    whole = {
        "sweep": result.sweep.name, "model": result.model,
        "axes": {axis: list(values) for axis, values in result.sweep.axes.items()},
        "runs": list(result.rows), "summary": summary,
    }  # fmt: skip
    paths = folder / "table.csv", folder / "table.json"
    write_whole(paths[0], out.getvalue())
    write_whole(paths[1], json.dumps(whole, indent=1) + "\n")
    return paths


def chart(result: Result) -> Chart:
    """The first measure: over the last axis of numbers, a line for each value of the other axes;
    as bars where no axis of numbers has two values.

    Raises:
        SweepError: more combinations than a chart can show.
    """
    measure = next(iter(result.sweep.measures))
    kept = _kept(result)
    varied = [axis for axis in kept if len(result.sweep.axes[axis]) > 1]
    summary = {key: found[measure] for key, found in result.summary().items() if measure in found}
    label = f"{measure} ({result.sweep.measures[measure]})"
    numeric = [a for a in varied if not isinstance(result.sweep.axes[a][0], str)]
    if not numeric:
        named = {_name(kept, varied, key): e for key, e in summary.items()}
        if len(named) > _MOST_BARS:
            raise SweepError(f"{len(named)} bars are too many: give an axis fewer values")
        return bars(named, axis=label)
    along = numeric[-1]
    rest = [axis for axis in varied if axis != along]
    places = sorted({key[kept.index(along)] for key in summary})
    series: dict[str, dict] = {}
    for key, estimate in summary.items():
        series.setdefault(_name(kept, rest, key), {})[key[kept.index(along)]] = estimate
    whole = {name: [found[p] for p in places] for name, found in series.items()
             if len(found) == len(places)}  # fmt: skip
    if whole and len(whole) <= len(SERIES) and len(whole) == len(series):
        return lines(whole, x=places, xlabel=along, ylabel=label)
    table = [[float(getattr(found.get(p), "value", found.get(p, float("nan")))) for p in places]
             for found in series.values()]  # fmt: skip
    return heatmap(table, rows=list(series), columns=places, row_name=", ".join(rest),
                   column_name=along, scale=label)


def _kept(result: Result) -> list[str]:
    return [axis for axis in result.sweep.axes if axis not in result.sweep.seeds]


def _name(kept: list[str], axes: list[str], key: tuple) -> str:
    return ", ".join(f"{key[kept.index(a)]}" if isinstance(key[kept.index(a)], str)
                     else f"{a} {key[kept.index(a)]}" for a in axes) or "all runs"  # fmt: skip
