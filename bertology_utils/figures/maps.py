"""Heatmaps and scatter plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from ..page import luminance
from .chart import (
    COLOURS,
    MARKERS,
    Chart,
    legend,
    new_chart,
    number_axis,
    series_colour,
    styled,
    title_and_labels,
)
from .marks import paper_point
from .points import number

#: Beyond this many cells no number is written into a cell.
MAX_WRITTEN_CELLS = 160


def heatmap(
    values: ArrayLike,
    *,
    rows: Sequence[str | int],
    columns: Sequence[str | int],
    row_name: str = "layer",
    column_name: str = "head",
    title: str | None = None,
    scale: str = "",
    limits: tuple[float, float] | None = None,
    centre: float | None = None,
    marked: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    number_format: str = ".2f",
) -> Chart:
    """Draw a matrix as coloured cells, with the numbers inside while they fit.

    Args:
        values: [R, C]; NaN leaves a cell empty.
        rows, columns: R and C labels.
        row_name, column_name: what the rows and columns are.
        title: the finding in a few words.
        scale: name and unit of the values, beside the colour bar.
        limits: (lowest, highest) of the colour scale; those of the values when not given.
        centre: a value of no effect; colours then diverge from it.
        marked: name -> (row, column) positions to outline, for instance the paper's heads.
        number_format: format spec of the numbers.

    Raises:
        ValueError: the labels do not fit the matrix, it is empty, or infinite.
        IndexError: a marked position lies outside the matrix.
    """
    matrix = np.asarray(values, dtype=float)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"a heatmap needs a matrix, got an array of shape {matrix.shape}")
    if matrix.shape != (len(rows), len(columns)):
        raise ValueError(
            f"{len(rows)} row and {len(columns)} column labels for a matrix of {matrix.shape}"
        )
    if np.isinf(matrix).any() or np.isnan(matrix).all():
        raise ValueError("a heatmap cannot show infinite values, or nothing but NaN")
    norm = _norm(matrix, limits, centre)
    colours = mpl.colormaps["viridis" if centre is None else "PuOr"]
    written = matrix.size <= MAX_WRITTEN_CELLS
    with styled():
        cell = 0.46 if written else max(0.1, min(0.28, 6.0 / max(matrix.shape)))
        side = 0.075 * max(len(str(label)) for label in rows)
        below = 0.075 * max(len(str(label)) for label in columns)
        width = min(9.0, max(4.0, 1.7 + side + cell * matrix.shape[1]))
        height = min(9.0, max(1.8, 1.0 + below + cell * 0.82 * matrix.shape[0]))
        chart, axes = new_chart(width, height, number_format)
        image = axes.pcolormesh(
            matrix, cmap=colours, norm=norm, edgecolors="none", rasterized=matrix.size > 2500
        )
        axes.set_ylim(matrix.shape[0], 0)
        if written:
            _write_cells(axes, matrix, colours, norm, number_format)
        tilted = max(len(str(label)) for label in columns) > 3
        axes.set_xticks(
            np.arange(len(columns)) + 0.5, [str(c) for c in columns], rotation=90 if tilted else 0
        )
        axes.set_yticks(np.arange(len(rows)) + 0.5, [str(r) for r in rows])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        for index, (name, places) in enumerate((marked or {}).items()):
            _outline(axes, matrix.shape, name, places, MARK_COLOURS[index % 2])
        bar = chart.colorbar(image, ax=axes, aspect=24, pad=0.02, fraction=0.05)
        bar.outline.set_visible(False)
        bar.set_label(scale)
        number_axis(bar.ax.yaxis, number_format)
        title_and_labels(axes, title, column_name, row_name)
        legend(chart, axes)
    chart.columns = (f"{row_name} \\ {column_name}", *(str(c) for c in columns))
    chart.rows = [
        (str(label), *(None if np.isnan(v) else float(v) for v in line))
        for label, line in zip(rows, matrix, strict=True)
    ]
    return chart


#: Outlines must show on both ends of the colour map, which is the same in both themes.
MARK_COLOURS = ("#ff2d6f", "#fefefe")


def scatter(
    points: Mapping[str, Sequence[tuple[float, float]]],
    *,
    labels: Mapping[str, Sequence[str]] | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
    lines: Mapping[str, tuple[float, float]] | None = None,
    paper: Mapping[str, tuple[float, float]] | None = None,
    title: str | None = None,
    xlabel: str = "",
    ylabel: str = "",
    number_format: str = ".2f",
) -> Chart:
    """Draw points in groups, each with a colour and a marker of its own.

    Args:
        points: group -> (x, y) pairs.
        labels: group -> one short text per point, written beside it.
        names: group -> one text per point, which only the table of numbers shows.
        lines: name -> (slope, intercept) of a straight line to compare with.
        paper: name -> (x, y) reported by a paper, drawn as a diamond.
        title, xlabel, ylabel: texts.
        number_format: format spec of the numbers.

    Raises:
        ValueError: nothing to draw, a number is not finite, or labels do not fit the points.
        KeyError: ``labels`` or ``names`` name a group that does not exist.
    """
    groups = {
        name: [(number(f"x in {name!r}", x), number(f"y in {name!r}", y)) for x, y in pairs]
        for name, pairs in points.items()
    }
    total = sum(map(len, groups.values()))
    if not total:
        raise ValueError("there is nothing to draw")
    for name, texts in [*(labels or {}).items(), *(names or {}).items()]:
        if name not in groups:
            raise KeyError(f"labels for {name!r}, which is no group; groups: {', '.join(groups)}")
        if len(texts) != len(groups[name]):
            raise ValueError(f"{len(texts)} labels for {len(groups[name])} points of {name!r}")
    with styled():
        chart, axes = new_chart(5.4, 3.9, number_format)
        for index, (name, pairs) in enumerate(groups.items()):
            if not pairs:
                continue
            x, y = zip(*pairs, strict=True)
            axes.scatter(
                x,
                y,
                s=34 if total <= 200 else 10,
                marker=MARKERS[index],
                linewidths=0.5,
                color=series_colour(index),
                alpha=0.8,
                label=name,
                rasterized=total > 1500,
                edgecolors=COLOURS["paper"],
            )
            for place, text in zip(pairs, (labels or {}).get(name, ()), strict=False):
                axes.annotate(text, place, xytext=(5, 4), textcoords="offset points", fontsize=8.5)
        for name, (x, y) in (paper or {}).items():
            paper_point(axes, name, x, y, name)
        axes.margins(0.08)
        # The points decide what is shown, not the point a line is given by.
        axes.set(xlim=axes.get_xlim(), ylim=axes.get_ylim())
        for name, (slope, intercept) in (lines or {}).items():
            axes.axline(
                (0, number(f"intercept of {name!r}", intercept)),
                slope=number(f"slope of {name!r}", slope),
                color=COLOURS["soft"],
                linewidth=1.2,
                linestyle=(0, (4, 3)),
                label=name,
            )
        number_axis(axes.xaxis, number_format)
        number_axis(axes.yaxis, number_format)
        axes.grid()
        title_and_labels(axes, title, xlabel, ylabel)
        legend(chart, axes)
    # A column of names only where points have names.
    named = names or labels or {}
    chart.columns = ("group", *(["label"] if named else []), xlabel or "x", ylabel or "y")
    chart.rows = [
        (name, *([named[name][i] if name in named else ""] if named else []), *pair)
        for name, pairs in groups.items()
        for i, pair in enumerate(pairs)
    ]
    return chart


def _norm(
    matrix: np.ndarray, limits: tuple[float, float] | None, centre: float | None
) -> Normalize:
    low, high = limits if limits is not None else (np.nanmin(matrix), np.nanmax(matrix))
    low, high = number("the lowest limit", low), number("the highest limit", high)
    if low > high:
        raise ValueError(f"the limits ({low:g}, {high:g}) are the wrong way round")
    if centre is not None:
        reach = max(abs(high - centre), abs(low - centre)) or 1.0
        return TwoSlopeNorm(centre, centre - reach, centre + reach)
    return Normalize(low, high if high > low else low + 1.0)


def _write_cells(axes, matrix: np.ndarray, colours, norm: Normalize, spec: str) -> None:
    for (row, column), value in np.ndenumerate(matrix):
        if np.isnan(value):
            continue
        bright = luminance(colours(norm(value))[:3]) > 0.18  # black and white contrast equally
        # The cell's colour is the same in both themes, so its number's colour is, too.
        axes.text(
            column + 0.5,
            row + 0.5,
            format(value, spec).replace("-0.", "-.").removeprefix("0"),
            ha="center",
            va="center_baseline",
            fontsize=8,
            color="#000001" if bright else "#fefefe",
        )


def _outline(axes, shape: tuple[int, int], name: str, places, colour: str) -> None:
    for order, (row, column) in enumerate(places):
        if not (0 <= row < shape[0] and 0 <= column < shape[1]):
            raise IndexError(f"{name!r} marks cell ({row}, {column}) outside of {shape}")
        axes.add_patch(
            Rectangle(
                (column + 0.04, row + 0.04),
                0.92,
                0.92,
                fill=False,
                edgecolor=colour,
                linewidth=2.0,
                label=name if order == 0 else None,
            )
        )
