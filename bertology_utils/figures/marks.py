"""The marks every chart shares: named baselines and the paper's number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.axes import Axes

from .chart import BASELINE_DASHES, COLOURS
from .points import number

#: How a number of the paper is drawn, wherever it has a place on both axes.
DIAMOND: Mapping[str, Any] = {
    "marker": "D",
    "linestyle": "none",
    "markersize": 7,
    "markerfacecolor": COLOURS["paper"],
    "markeredgecolor": COLOURS["ink"],
    "markeredgewidth": 1.6,
    "zorder": 5,
    "clip_on": False,  # a number at the end of an axis is shown whole
}


def baseline_lines(
    draw: Callable[..., Any], baselines: Mapping[str, float] | None, spec: str
) -> dict[str, float]:
    """Draw each baseline with ``draw`` (axvline or axhline), named with its value."""
    values = {
        name: number(f"baseline {name!r}", value) for name, value in (baselines or {}).items()
    }
    for index, (name, value) in enumerate(values.items()):
        shown = format(value, spec if value else spec.lstrip("+"))  # nothing has no sign
        draw(
            value,
            color=COLOURS["soft"],
            linewidth=1.3,
            linestyle=BASELINE_DASHES[index % len(BASELINE_DASHES)],
            label=f"{name}: {shown}",
        )
    return values


def paper_line(draw: Callable[..., Any], name: str, value: float, spec: str) -> float:
    """Draw the paper's number as a solid line with ``draw`` (axvline or axhline)."""
    value = number(f"the paper's {name}", value)
    draw(value, color=COLOURS["ink"], linewidth=1.4, label=f"{name}: {value:{spec}}")
    return value


def paper_point(axes: Axes, name: str, x: float, y: float, label: str) -> None:
    """Draw the paper's number as a diamond at (x, y)."""
    axes.plot(
        [number(f"the paper's {name}", x)],
        [number(f"the paper's {name}", y)],
        label=label,
        **DIAMOND,
    )
