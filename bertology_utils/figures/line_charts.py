"""Lines over layers, steps or sizes, and distributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.ticker import MaxNLocator

from .chart import (
    DASHES,
    MARKERS,
    Chart,
    legend,
    new_chart,
    number_axis,
    series_colour,
    styled,
    title_and_labels,
)
from .marks import baseline_lines, paper_line, paper_point
from .points import Measured, as_point, number


def lines(
    series: Mapping[str, Sequence[float | Measured]],
    *,
    x: Sequence[float] | Sequence[str] | None = None,
    baselines: Mapping[str, float] | None = None,
    paper: Mapping[str, float | tuple[float, float]] | None = None,
    title: str | None = None,
    xlabel: str = "layer",
    ylabel: str = "",
    number_format: str = ".2f",
) -> Chart:
    """Draw one line per series with its interval as a band.

    Args:
        series: name -> one number or result per ``x``; all the same length.
        x: places or names on the x axis; 0, 1, 2... when not given.
        baselines: name -> value, drawn as named horizontal lines.
        paper: name -> value (a horizontal line) or (x, value) (a diamond).
        title, xlabel, ylabel, number_format: as in :func:`bars`.

    Raises:
        ValueError: nothing to draw, lengths differ, or a number is not finite.
    """
    points = {
        name: [as_point(f"{name}[{i}]", value) for i, value in enumerate(values)]
        for name, values in series.items()
    }
    length = len(next(iter(points.values()), []))
    if not length:
        raise ValueError("there is nothing to draw")
    labels = list(range(length)) if x is None else list(x)
    for name, values in points.items():
        if len(values) != len(labels):
            raise ValueError(f"series {name!r} has {len(values)} points for {len(labels)} x values")
    named = any(isinstance(label, str) for label in labels)
    places = np.arange(length) if named else np.asarray([number("x", v) for v in labels])
    with styled():
        chart, axes = new_chart(5.4, 3.5, number_format)
        for index, (name, values) in enumerate(points.items()):
            colour = series_colour(index)
            if all(point.interval for point in values):
                low, high = zip(*(point.interval for point in values), strict=True)
                axes.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)
            else:
                for place, point in zip(places, values, strict=True):
                    if point.interval:
                        axes.vlines(place, *point.interval, color=colour, linewidth=1.2)
            axes.plot(
                places,
                [point.value for point in values],
                label=name,
                color=colour,
                linestyle=DASHES[index],
                marker=MARKERS[index] if length <= 40 else None,
            )
        baseline_lines(axes.axhline, baselines, number_format)
        for name, given in (paper or {}).items():
            if isinstance(given, tuple):
                x_, y_ = given
                paper_point(axes, name, x_, y_, f"{name}: {number(name, y_):{number_format}}")
            else:
                paper_line(axes.axhline, name, given, number_format)
        number_axis(axes.yaxis, number_format)
        axes.grid(axis="y")
        if named:
            tilted = sum(len(str(label)) for label in labels) > 70
            axes.set_xticks(
                places, labels, rotation=40 if tilted else 0, ha="right" if tilted else "center"
            )
        elif all(float(place).is_integer() for place in places):
            axes.xaxis.set_major_locator(MaxNLocator(nbins=13, integer=True))
        title_and_labels(axes, title, xlabel, ylabel)
        legend(chart, axes)
    chart.columns = (xlabel or "x", *points)
    chart.rows = [
        (_in_a_table(label), *(values[i].value for values in points.values()))
        for i, label in enumerate(labels)
    ]
    return chart


def _in_a_table(label: object) -> str:
    """A place on the x axis in words; of fractions, the digits that a reader wants."""
    if not isinstance(label, float | np.floating):
        return str(label)
    return f"{label:.4g}" if abs(label) < 1e4 else f"{label:.0f}"


def distributions(
    samples: Mapping[str, Sequence[float]],
    *,
    bins: int = 30,
    paper: Mapping[str, float] | None = None,
    title: str | None = None,
    xlabel: str = "",
    number_format: str = ".2f",
) -> Chart:
    """Draw the distribution of each sample as an outlined histogram; areas are equal.

    Args:
        samples: name -> numbers.
        bins: how many bins, shared by all samples.
        paper: name -> value, drawn as vertical lines.
        title, xlabel, number_format: as in :func:`bars`.

    Raises:
        ValueError: nothing to draw, or a number that is not finite.
    """
    arrays = {name: np.asarray(values, dtype=float) for name, values in samples.items()}
    if not arrays:
        raise ValueError("there is nothing to draw")
    for name, values in arrays.items():
        if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
            raise ValueError(f"sample {name!r} must be a non-empty list of finite numbers")
    edges = np.histogram_bin_edges(np.concatenate(list(arrays.values())), bins=bins)
    with styled():
        chart, axes = new_chart(5.4, 3.2, number_format)
        for index, (name, values) in enumerate(arrays.items()):
            style = {"color": series_colour(index), "bins": edges, "density": True}
            axes.hist(values, alpha=0.15, **style)
            axes.hist(
                values, histtype="step", linewidth=1.6, linestyle=DASHES[index], label=name, **style
            )
        for name, value in (paper or {}).items():
            paper_line(axes.axvline, name, value, number_format)
        number_axis(axes.xaxis, number_format)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        title_and_labels(axes, title, xlabel, "")
        legend(chart, axes)
    chart.columns = ("", "n", "mean", "median", "smallest", "largest")
    chart.rows = [
        (name, len(v), float(v.mean()), float(np.median(v)), float(v.min()), float(v.max()))
        for name, v in arrays.items()
    ]
    return chart
