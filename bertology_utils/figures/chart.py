"""An empty, styled chart. It never touches pyplot, so nothing is shown twice or leaks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import TextToPath
from matplotlib.ticker import FuncFormatter, MaxNLocator

from ..page import SERIES, THEMES

#: Charts are drawn in the light theme's colours; `show` re-colours them by role.
COLOURS = THEMES["light"]
#: Markers and dashes repeat what the colour says, for readers who do not see it.
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (3, 1)), (0, (8, 2)))
#: Dashes of the baselines, thinner and lighter than any series.
BASELINE_DASHES = ((0, (4, 3)), (0, (1, 2)), (0, (7, 2, 1, 2)), (0, (2, 4)))

STYLE = {
    # Tokens may hold dollar signs; no label of ours is a formula.
    "text.parse_math": False,
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same picture on every machine
    "font.size": 10.0,
    "text.color": COLOURS["ink"],
    "axes.labelcolor": COLOURS["ink"],
    "axes.edgecolor": COLOURS["line"],
    "axes.linewidth": 0.8,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": COLOURS["ink"],
    "axes.axisbelow": True,
    "grid.color": COLOURS["faint"],
    "grid.linewidth": 0.7,
    "xtick.color": COLOURS["line"],
    "ytick.color": COLOURS["line"],
    "xtick.labelcolor": COLOURS["ink"],
    "ytick.labelcolor": COLOURS["ink"],
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "legend.labelcolor": COLOURS["ink"],
    "legend.fontsize": 9.0,
    "svg.fonttype": "path",
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
}


class Chart(Figure):
    """A matplotlib figure that remembers the numbers it draws.

    Attributes:
        columns: names of the columns of ``rows``.
        rows: the numbers, one row per thing drawn; ``show`` offers them as a table.
        number_format: the format spec of the numbers, such as ``".2f"`` or ``".1%"``.
    """

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[object]] = ()
    number_format: str = ".2f"


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the book's style inside the ``with`` block, and leave the global style alone."""
    with mpl.rc_context(STYLE):
        yield


def new_chart(width: float, height: float, number_format: str) -> tuple[Chart, Axes]:
    """Return an empty chart of ``width`` x ``height`` inches and its axes.

    Raises:
        ValueError: ``number_format`` is not a format spec for a float.
    """
    try:
        format(0.5, number_format)
    except ValueError:
        raise ValueError(f"{number_format!r} is no number format; try '.2f' or '.1%'") from None
    chart = Chart(figsize=(width, height), layout="constrained")
    chart.get_layout_engine().set(w_pad=0.03, h_pad=0.04)
    chart.number_format = number_format
    return chart, chart.add_subplot()


def series_colour(index: int) -> str:
    """Return the colour of series number ``index``.

    Raises:
        ValueError: there are more series than colours a reader can tell apart.
    """
    if index >= len(SERIES):
        raise ValueError(
            f"a chart shows at most {len(SERIES)} series at once; split it or use heatmap"
        )
    return COLOURS[SERIES[index]]


def title_and_labels(axes: Axes, title: str | None, xlabel: str, ylabel: str) -> None:
    """Write the title and the axis labels where they are not empty."""
    if title:
        # The title starts at the axes' left edge, after the tick labels.
        room = 0.82 * axes.figure.get_figwidth()
        size = STYLE["axes.titlesize"]
        axes.set_title(in_lines(title, size, room, bold=True), pad=8)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)


def number_axis(axis, number_format: str) -> None:
    """Give a value axis round ticks, as percentages where the numbers are percentages."""
    axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    if number_format.endswith("%"):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))


def legend(chart: Chart, axes: Axes) -> None:
    """Put one legend below the axes, outside, where it can cover nothing: series come first."""
    handles, labels = axes.get_legend_handles_labels()
    if not labels:
        return
    # matplotlib lists lines before bars and patches; readers look for the data first.
    order = sorted(range(len(labels)), key=lambda i: isinstance(handles[i], Line2D))
    if not isinstance(handles[order[0]], Line2D):
        handles, labels = [handles[i] for i in order], [labels[i] for i in order]
    room = chart.get_figwidth() - 0.6
    labels = [in_lines(label, STYLE["legend.fontsize"], room) for label in labels]
    chart.legend(
        handles,
        labels,
        loc="outside lower left",
        ncols=_legend_columns(chart, labels),
        handlelength=2.2,
        columnspacing=1.6,
        borderaxespad=0.2,
    )


def _legend_columns(chart: Chart, labels: Sequence[str]) -> int:
    """Return the most columns whose longest entries still fit side by side."""
    size = STYLE["legend.fontsize"]
    widths = [max(text_width(line, size) for line in label.split("\n")) for label in labels]
    for columns in range(len(labels), 1, -1):
        parts = np.array_split(widths, columns)  # as matplotlib deals entries out to columns
        # Handle and gaps: 2.2 + 0.8 + 1.6 times the font's size.
        if sum(part.max() + 4.6 * size / 72 for part in parts) <= chart.get_figwidth() - 0.1:
            return columns
    return 1


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return how wide a line of text is drawn, in inches, at a size in points."""
    font = FontProperties(
        family=STYLE["font.family"], size=size, weight="bold" if bold else "normal"
    )
    return TextToPath().get_text_width_height_descent(text, font, ismath=False)[0] / 72


def in_lines(text: str, size: float, inches: float, *, bold: bool = False) -> str:
    """Break a text between words so that no line is wider than ``inches``, where that can be."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, bold=bold) <= inches:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)
