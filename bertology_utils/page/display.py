"""An object a notebook shows: HTML for readers, text for terminals, a picture for print."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass, field
from html import escape
from typing import Any

from .themes import page_style

#: classes of the element around every display. The last two keep MathJax away: texts of a corpus
#: may hold its marks, and what they would then do was written by strangers.
FRAME = "bx tex2jax_ignore mathjax_ignore"

_times_seen: Counter[str] = Counter()


@dataclass(frozen=True)
class Display:
    """Finished HTML and its plain equivalents. Return it at the end of a cell to show it.

    Attributes:
        html: the HTML without the style element; it is put into a ``div`` of class ``bx``.
        text: one line that says the same to a reader without HTML.
        png: the picture as PNG for PDF output, or None.
    """

    html: str
    text: str
    png: bytes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        # Halves of surrogate pairs cannot be written into any page; readers see that one is there.
        for name in ("html", "text"):
            whole = getattr(self, name).encode("utf-8", "replace").decode()
            object.__setattr__(self, name, whole)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle: dict[str, Any] = {"text/html": self._repr_html_(), "text/plain": self.text}
        if self.png is not None:
            bundle["image/png"] = b64encode(self.png).decode("ascii")
        return bundle

    def _repr_html_(self) -> str:
        return f'{page_style()}<div class="{FRAME}">{self.html}</div>'


def inner_html(shown: object) -> str:
    """Return what ``shown`` looks like inside another display.

    Text is escaped. Objects that know their own HTML (:class:`Display`, ``IPython.display.HTML``,
    a pandas table) are asked for it.

    Raises:
        TypeError: ``shown`` is neither text nor an object with an HTML form.
    """
    if isinstance(shown, Display):
        return shown.html
    if isinstance(shown, str):
        return f'<p class="bx-text">{escape(shown)}</p>'
    own = getattr(shown, "_repr_html_", None)
    html = own() if callable(own) else None
    if html is None:
        raise TypeError(
            f"{type(shown).__name__} cannot be shown as HTML; return text, a figure from "
            "figures.show, an embed, or any object with _repr_html_"
        )
    return html


def unique_id(kind: str, content: str) -> str:
    """Return an id for an element: the same for the same content, in a run from top to bottom.

    Random ids would change every page at every build. Equal content shown twice gets two ids.
    """
    digest = hashlib.sha256(f"{kind}\0{content}".encode("utf-8", "replace")).hexdigest()[:10]
    _times_seen[digest] += 1
    return f"bx-{kind}-{digest}-{_times_seen[digest]}"


def stack(*shown: object) -> Display:
    """Return several things as one display, one below the other.

    Raises:
        ValueError: there is nothing to show.
        TypeError: one of them has no HTML form.
    """
    if not shown:
        raise ValueError("there is nothing to show")
    html = "".join(f'<div class="bx-part">{inner_html(part)}</div>' for part in shown)
    texts = (part.text if isinstance(part, Display) else str(part) for part in shown)
    return Display(html, "\n".join(texts))
