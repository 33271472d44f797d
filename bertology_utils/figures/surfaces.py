"""A surface seen from above: levels of a number over two axes, with places marked on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike

from .chart import MARKERS, Chart, legend, new_chart, number_axis, styled, title_and_labels
from .points import number

#: Colours of the map are the same in both themes, so those of what lies on it are, too.
_LINE, _MARK, _EDGE = "#fefefe", "#ff2d6f", "#000001"


def contour(
    values: ArrayLike,
    *,
    x: Sequence[float],
    y: Sequence[float],
    points: Mapping[str, tuple[float, float]] | None = None,
    title: str | None = None,
    xlabel: str = "",
    ylabel: str = "",
    scale: str = "",
    levels: Sequence[float] | int = 10,
    number_format: str = ".2f",
) -> Chart:
    """Draw levels of a number over a plane, as a map draws heights.

    Args:
        values: [Y, X], one number for each pair of places.
        x, y: places, rising.
        points: name -> (x, y) of places to mark, each with its own marker.
        title, xlabel, ylabel: texts.
        scale: name and unit of the values, beside the colour bar.
        levels: values at which lines are drawn, rising, or about how many.
        number_format: format spec of the numbers.

    Raises:
        ValueError: values that do not fit the places or are not finite, places that do not rise,
            or fewer than two of them.
    """
    surface = np.asarray(values, float)
    across, up = (np.asarray([number("place", v) for v in places]) for places in (x, y))
    if surface.shape != (len(up), len(across)) or min(surface.shape) < 2:
        raise ValueError(
            f"{len(up)} by {len(across)} places (two or more each way) for values {surface.shape}"
        )
    if (np.diff(across) <= 0).any() or (np.diff(up) <= 0).any():
        raise ValueError("places must rise")
    if not np.isfinite(surface).all():
        raise ValueError("a surface cannot have holes: some values are not finite")
    with styled():
        chart, axes = new_chart(5.4, 4.3, number_format)
        colours = mpl.colormaps["viridis"]
        filled = axes.contourf(across, up, surface, levels=levels, cmap=colours, extend="both")
        if np.ptp(surface) > 0:
            drawn = axes.contour(
                across, up, surface, levels=filled.levels, colors=_LINE, linewidths=0.8
            )
            axes.clabel(drawn, fmt=lambda value: format(value, number_format), fontsize=8)
            for text in drawn.labelTexts:
                text.set(color=_LINE, path_effects=[withStroke(linewidth=2, foreground=_EDGE)])
        for index, (name, (right, high)) in enumerate((points or {}).items()):
            axes.plot(
                number(f"x of {name!r}", right), number(f"y of {name!r}", high), label=name,
                marker=MARKERS[index % len(MARKERS)], markersize=9, linestyle="none",
                color=_MARK, markeredgecolor=_LINE, markeredgewidth=1.2, clip_on=False, zorder=5,
            )  # fmt: skip
        axes.spines[:].set_visible(False)
        bar = chart.colorbar(filled, ax=axes, aspect=24, pad=0.02, fraction=0.05)
        bar.outline.set_visible(False)
        bar.set_label(scale)
        for axis in (axes.xaxis, axes.yaxis, bar.ax.yaxis):
            number_axis(axis, number_format)
        title_and_labels(axes, title, xlabel, ylabel)
        legend(chart, axes)
    corner = f"{ylabel or 'y'} \\ {xlabel or 'x'}"
    chart.columns = (corner, *(format(place, ".3g") for place in across))
    chart.rows = [
        (format(place, ".3g"), *map(float, row)) for place, row in zip(up, surface, strict=True)
    ]
    return chart
