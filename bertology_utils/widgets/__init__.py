"""Things to play with that work on a page without a kernel, and better with one.

:func:`interactive` runs a function over a grid of settings and puts every result into the page;
where a live kernel is at hand it shows ipywidgets instead, which also take settings of one's own.
:func:`explorer` is the page half alone, :func:`live` the kernel half. :func:`point_map` draws
points that a slider moves from layer to layer, :func:`claims` the claims of a chapter.
"""

from .both_halves import Interactive, has_front_end, interactive
from .claims import claims
from .controls import Control
from .kernel_half import live
from .page_half import explorer
from .point_map import PointMap, point_map

__all__ = [
    "Control",
    "Interactive",
    "PointMap",
    "claims",
    "explorer",
    "has_front_end",
    "interactive",
    "live",
    "point_map",
]
