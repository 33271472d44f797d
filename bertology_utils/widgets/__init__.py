"""Things to play with that work on a page without a kernel, and better with one.

:func:`interactive` runs a function over a grid of settings and puts every result into the page;
where a live kernel is at hand it shows ipywidgets instead, which also take settings of one's own.
:func:`explorer` is the page half alone, :func:`live` the kernel half.
"""

from .both_halves import Interactive, has_front_end, interactive
from .controls import Control
from .kernel_half import live
from .page_half import explorer

__all__ = ["Control", "Interactive", "explorer", "has_front_end", "interactive", "live"]
