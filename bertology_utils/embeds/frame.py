"""The sandboxed frame: vendored libraries, data and our own script in one document."""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib.resources import files

from ..page import FRAME_COLOURS, unique_id

#: Libraries in the order in which they depend on one another.
LIBRARIES = (
    "jquery.slim.min.js",
    "d3-array.min.js",
    "d3-collection.min.js",
    "d3-color.min.js",
    "d3-format.min.js",
    "d3-interpolate.min.js",
    "d3-time.min.js",
    "d3-time-format.min.js",
    "d3-scale.min.js",
    "d3-scale-chromatic.min.js",
    "d3-selection.min.js",
)
#: bertviz leaves this mark where its Python part writes the parameters.
_PARAMETERS = "const params = PYTHON_PARAMS;"
#: Nothing may be fetched, from anywhere: scripts, styles, pictures, fonts, connections.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)


def framed(view: str, data: dict, *, title: str, height: int) -> str:
    """Return an ``<iframe>`` that draws ``view`` ("head_view" or "model_view") of ``data``."""
    document = _document(view, data, title)
    frame = unique_id("frame", document)
    # In single quotes, so that the many double quotes of minified scripts stay as they are.
    source = document.replace("&", "&amp;").replace("'", "&#39;")
    return (
        f'<iframe class="bx-frame" id="{frame}" title="{escape(title)}" sandbox="allow-scripts" '
        f'loading="lazy" style="height:{height}px" srcdoc=\'{source}\'></iframe>'
        f"<script>{_text('page.js')}</script>"
    )


def _document(view: str, data: dict, title: str) -> str:
    scripts = "".join(f"<script>{_text('vendor', name)}</script>" for name in LIBRARIES)
    # "<" would let a token such as "</script>" end the element it is written in.
    payload = json.dumps({"view": view, **data}, ensure_ascii=False, separators=(",", ":"))
    payload = payload.replace("<", "\\u003c")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>{escape(title)}</title>"
        f"<style>{FRAME_COLOURS}{_text('frame.css')}</style></head>"
        f'<body class="{view}"><div id="root"></div>'
        "<noscript><p>This drawing needs JavaScript.</p></noscript>"
        '<p id="said" aria-live="polite"></p>'
        f'<script type="application/json" id="data">{payload}</script>{scripts}'
        f"<script>{_text('frame.js')}</script><script>{_bertviz(view)}</script>"
        "<script>bertologyDrawn();</script></body></html>"
    )


@cache
def _bertviz(view: str) -> str:
    source = _text("vendor", f"bertviz-{view}.js")
    if source.count(_PARAMETERS) != 1:
        raise RuntimeError(f"bertviz' {view} has changed: {_PARAMETERS!r} is not there once")
    return source.replace(_PARAMETERS, "const params = bertologyParams;")


@cache
def _text(*path: str) -> str:
    return files(__package__).joinpath(*path).read_text(encoding="utf-8")
