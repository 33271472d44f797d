"""A chart on the page: an SVG that follows the page's theme, with alt text, caption and numbers."""

from __future__ import annotations

import re
from html import escape
from io import BytesIO, StringIO

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.text import Text

from ..page import THEMES, Display, table, unique_id
from .chart import STYLE, Chart

#: Longer tables of numbers are left out: nobody reads them, and they weigh the page down.
MAX_ROWS = 120
#: Columns per row of such a table.
MAX_COLUMNS = 26

_ROLE_OF = {colour: role for role, colour in THEMES["light"].items()}
_COLOUR = re.compile(r"(fill|stroke): ?(#[0-9a-f]{6})")
_PATH = re.compile(r'( d=")([^"]*)(")')
_DECIMALS = re.compile(r"(\d+\.\d\d)\d+")


def show(figure: Figure, *, alt: str, caption: str | None = None) -> Display:
    """Return ``figure`` ready to be shown at the end of a notebook cell.

    On a page it is an SVG whose text and data colours follow the light or dark theme; in PDF
    output it is a PNG. The numbers of a :class:`Chart` are folded away below it as a table.

    Args:
        figure: a chart of this package, or any matplotlib figure drawn in its colours.
        alt: what the figure shows, in a sentence or two, for readers who do not see it.
        caption: text under the figure.

    Raises:
        ValueError: ``alt`` is empty or only repeats the caption, or a text cannot be drawn.
        TypeError: ``figure`` is not a matplotlib figure.
    """
    if not isinstance(figure, Figure):
        raise TypeError(f"show needs a matplotlib figure, not {type(figure).__name__}")
    alt = " ".join(alt.split())
    if not alt:
        raise ValueError("alt is empty: say in a sentence what the figure shows")
    if caption is not None and alt == " ".join(caption.split()):
        raise ValueError("alt only repeats the caption: say what there is to see")
    try:
        picture, drawing, png = _draw(figure)
    except TypeError as error:  # what the fonts' library says to halves of surrogate pairs
        broken = [t.get_text() for t in figure.findobj(Text) if not _is_whole(t.get_text())]
        if not broken:
            raise
        message = f"a text of the figure holds half of a surrogate pair: {broken[0][:60]!r}"
        raise ValueError(message) from error
    plot = (
        f'<div class="bx-plot">{picture[0]} role="img" aria-label="{escape(alt)}"{picture[1]}</div>'
    )
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    html = f'<figure class="bx-figure" id="{drawing}">{plot}{below}{_numbers(figure)}</figure>'
    return Display(html=html, text=f"[figure: {alt}]", png=png)


def _is_whole(text: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _draw(figure: Figure) -> tuple[tuple[str, str], str, bytes]:
    """Return the SVG split before its attributes, an id for it, and the PNG."""
    out, png = StringIO(), BytesIO()
    # A fixed salt and no date: the same figure gives the same bytes at every build.
    with mpl.rc_context({**STYLE, "svg.hashsalt": "bx"}):
        figure.savefig(
            out, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
        figure.savefig(png, format="png", dpi=144, facecolor="white")
    svg = out.getvalue()
    drawing = unique_id("figure", svg)
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    # Inside a page this rule for "*" would restyle everybody's drawings, not only this one.
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"\s*\n\s*", "\n", svg).replace("xlink:href", "href")
    # The page sets the size, within what keeps the letters readable.
    width = float(re.search(r'<svg[^>]* width="([\d.]+)pt"', svg).group(1))
    svg = re.sub(r'(<svg[^>]*?) width="[\d.]+pt"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[\d.]+pt"', r"\1", svg, count=1)
    svg = _COLOUR.sub(_by_role, svg)
    svg = _PATH.sub(lambda m: m[1] + _DECIMALS.sub(r"\1", m[2]) + m[3], svg)
    svg = _with_own_ids(svg, drawing.removeprefix("bx-figure-") + "-")
    pixels = width * 4 / 3
    style = (
        f' style="max-width:{pixels * 1.2:.0f}px;min-width:{pixels * 0.65:.0f}px;'
        'stroke-linejoin:round"'
    )
    return ("<svg", style + svg[len("<svg") :]), drawing, png.getvalue()


def _with_own_ids(svg: str, prefix: str) -> str:
    """Give the ids that are referred to short names of their own: figures share a page."""
    used = set(re.findall(r'href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg))
    names = {old: f"f{prefix}{index}" for index, old in enumerate(sorted(used))}
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{names[m[1]]}"' if m[1] in names else "", svg)
    svg = re.sub(r'href="#([^"]+)"', lambda m: f'href="#{names[m[1]]}"', svg)
    return re.sub(r"url\(#([^)]+)\)", lambda m: f"url(#{names[m[1]]})", svg)


def _by_role(match: re.Match[str]) -> str:
    prop, colour = match[1], match[2]
    role = _ROLE_OF.get(colour)
    return f"{prop}:var(--bx-{role},{colour})" if role else f"{prop}:{colour}"


def _numbers(figure: Figure) -> str:
    if not isinstance(figure, Chart) or not figure.rows:
        return ""
    if len(figure.rows) > MAX_ROWS or len(figure.columns) > MAX_COLUMNS:
        return ""
    numbers = table(figure.rows, figure.columns, number_format=figure.number_format)
    return (
        '<details class="bx-numbers"><summary>The numbers</summary>'
        '<div class="bx-scroll" role="group" aria-label="The numbers" tabindex="0">'
        f'{numbers.html}</div></details>'
    )
