"""bertviz on a page: attention drawn in a sandboxed frame that needs no network and no kernel.

The drawing code is bertviz 1.4.1 (Vig 2019), unchanged; see ``vendor/README.md``. Around it are
a keyboard, a spoken line with the numbers, and the page's light or dark colours.
"""

from .attention import AttentionError
from .views import head_view, model_view

__all__ = ["AttentionError", "head_view", "model_view"]
