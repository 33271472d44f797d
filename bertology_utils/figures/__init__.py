"""Results into pictures: one style, a colour-blind-safe palette, alt text on everything.

Every chart takes plain numbers or result objects (anything with ``value``, and optionally
``interval`` and ``baselines``), draws the interval, names the baselines and marks the paper's
number. Nothing here computes a result. :func:`show` makes the accessible, theme-following HTML.
"""

from .arcs import arcs
from .bar_charts import bars, grouped_bars
from .chart import Chart
from .line_charts import distributions, lines
from .maps import heatmap, scatter
from .points import Measured, Point, as_point
from .showing import show
from .surfaces import contour

__all__ = [
    "Chart",
    "Measured",
    "Point",
    "arcs",
    "as_point",
    "bars",
    "contour",
    "distributions",
    "grouped_bars",
    "heatmap",
    "lines",
    "scatter",
    "show",
]
