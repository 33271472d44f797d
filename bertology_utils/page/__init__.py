"""What every visible thing shares: colour themes, escaping, ids, tables, and how it is displayed.

``figures``, ``widgets`` and ``embeds`` build HTML on top of this; it imports nothing of ours.
"""

from .display import Display, inner_html, stack, unique_id
from .tables import bar_table, dot_table, heat_table, table
from .themes import FRAME_COLOURS, SERIES, THEMES, luminance, page_style

__all__ = [
    "FRAME_COLOURS",
    "SERIES",
    "THEMES",
    "Display",
    "bar_table",
    "dot_table",
    "heat_table",
    "inner_html",
    "luminance",
    "page_style",
    "stack",
    "table",
    "unique_id",
]
