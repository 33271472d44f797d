"""Points in the plane that a slider moves from layer to layer; works on a page without a kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Protocol

import numpy as np

from ..page import SERIES, Display, unique_id
from .controls import as_controls
from .page_half import MAX_BYTES

#: Size of the drawing, and the room that is left around the points.
WIDTH, HEIGHT, MARGIN = 460, 340, 16
#: One shape for each colour, drawn around the origin.
SHAPES = (
    "M-5.5,0a5.5,5.5 0 1,0 11,0a5.5,5.5 0 1,0 -11,0z",
    "M-5,-5h10v10h-10z",
    "M0,-6.5L6.5,5H-6.5z",
    "M0,-7L7,0L0,7L-7,0z",
    "M0,6.5L6.5,-5H-6.5z",
    "M-2,-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
)


class PointMap(Protocol):
    """What is drawn: S layers of N points; see ``embeddings.LayerMap``."""

    places: np.ndarray  #: [S, N, 2]
    kept: np.ndarray  #: [S]
    pure: np.ndarray  #: [S]
    chance: float
    groups: tuple[str, ...]
    labels: tuple[str, ...]
    notes: tuple[str, ...]


def point_map(
    maps: Mapping[str, Mapping[str, PointMap]],
    *,
    title: str,
    names: tuple[str, str] = ("points", "weights"),
    start: int | None = None,
    note: str | None = None,
) -> Display:
    """Return an explorer of maps: two lists to choose one, a slider for its layer.

    Pointing at a mark, or walking through the marks with the arrow keys, shows its note. All maps
    need the same number of layers, and every choice the same variants.

    Args:
        maps: choice -> variant -> map, such as ``{"bank": {"trained": ..., "random": ...}}``.
        title: what the reader explores.
        names: what choices and variants are called.
        start: layer shown first; the last one by default.
        note: a line under the explorer.

    Raises:
        ValueError: no maps, other variants or layers than in the first choice, more groups than
            there are shapes, or more than a page should carry.
    """
    choices = list(maps)
    variants = list(next(iter(maps.values()), {}))
    if not choices or not variants:
        raise ValueError("there is no map to show")
    if odd := next((c for c in choices if list(maps[c]) != variants), None):
        raise ValueError(f"{odd!r} has the variants {list(maps[odd])}, not {variants}")
    flat = [maps[choice][variant] for choice in choices for variant in variants]
    layers = len(flat[0].places)
    if any(len(one.places) != layers for one in flat):
        raise ValueError("maps differ in their number of layers")
    first = layers - 1 if start is None else start
    if not 0 <= first < layers:
        raise ValueError(f"start is layer {start}, of {layers}")
    data = [_data(one) for one in flat]
    made = as_controls({names[0]: choices, names[1]: variants})
    payload = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # "<" would let a text such as "</script>" end the element it is written in.
    payload = payload.replace("<", "\\u003c")
    if len(payload.encode()) > MAX_BYTES:
        raise ValueError(f"the maps of {title!r} weigh more than {MAX_BYTES:,} bytes; show fewer")
    root = unique_id("map", title + payload)
    lists = "".join(
        f'<div class="bx-control"><label for="{root}-{i}">{escape(control.title)}</label>'
        f'<select id="{root}-{i}">'
        + "".join(f'<option value="{k}">{escape(t)}</option>' for k, t in enumerate(control.labels))
        + "</select></div>"
        for i, control in enumerate(made)
    )
    slider = (
        f'<div class="bx-control"><label for="{root}-layer">layer</label><span class="bx-range">'
        f'<input type="range" id="{root}-layer" min="0" max="{layers - 1}" step="1" '
        f'value="{first}" aria-valuetext="layer {first}"><output for="{root}-layer">{first}'
        "</output></span></div>"
    )
    sizes = json.dumps([len(choices), len(variants)])
    html = (
        f"<style>{_style()}</style>"
        f'<div class="bx-widget" id="{root}" role="group" aria-labelledby="{root}-title">'
        f'<p class="bx-widget-title" id="{root}-title">{escape(title)}</p>'
        f'<div class="bx-controls">{lists}{slider}</div>'
        '<p class="bx-hidden" aria-live="polite"></p>'
        f'<div class="bx-shown">{_drawing(data[0], first)}</div>'
        '<p class="bx-note bx-map-pointed"></p>'
        + (f'<p class="bx-note">{escape(note)}</p>' if note else "")
        + '<noscript><p class="bx-note">The controls need JavaScript; one layer is shown.</p>'
        "</noscript></div>"
        f'<script>{_script()}({{"id":"{root}","sizes":{sizes},"maps":{payload}}});</script>'
    )
    return Display(html=html, text=f"[map: {title}]")


def _data(one: PointMap) -> dict[str, Any]:
    groups = list(dict.fromkeys(one.groups))
    if len(groups) > len(SHAPES):
        raise ValueError(f"{len(groups)} groups, but only {len(SHAPES)} shapes to tell them by")
    # Group by group, so that walking through the points makes sense; later ones lie on top.
    number = np.array([groups.index(g) for g in one.groups])
    order = np.argsort(number, kind="stable")
    places = np.asarray(one.places, float)[:, order]
    layers = len(places)
    return {
        "groups": groups,
        "group": number[order].tolist(),
        "shapes": SHAPES[: len(groups)],
        "notes": [_note(one.labels[i], one.notes[i]) for i in order],
        "places": [_pixels(layer) for layer in places],
        "lines": [_line(one, layer, layers - 1) for layer in range(layers)],
    }


def _note(label: str, note: str) -> str:
    return f"{label} - {note}" if note and note != label else label


def _pixels(places: np.ndarray) -> list[list[float]]:
    """[N, 2] in the drawing; both axes have one scale, so that distances can be compared."""
    low, high = places.min(0), places.max(0)
    room = np.array([WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN])
    scale = (room / np.maximum(high - low, 1e-9)).min()
    moved = (places - (low + high) / 2) * scale
    # The y axis of a drawing points down.
    x, y = WIDTH / 2 + moved[:, 0], HEIGHT / 2 - moved[:, 1]
    return [[round(float(a), 1), round(float(b), 1)] for a, b in zip(x, y, strict=True)]


def _line(one: PointMap, layer: int, last: int) -> str:
    return (
        f"Layer {layer} of {last}: {one.pure[layer]:.0%} of the points have a nearest neighbour of "
        f"their own group ({one.chance:.0%} by chance); the plane shows {one.kept[layer]:.0%} of "
        "the variance."
    )


def _drawing(data: dict[str, Any], layer: int) -> str:
    marks = "".join(
        f'<path d="{data["shapes"][group]}" class="bx-mark bx-mark-{group}" '
        f'style="transform:translate({x}px,{y}px)"/>'
        for group, (x, y) in zip(data["group"], data["places"][layer], strict=True)
    )
    legend = "".join(
        f'<span><svg viewBox="-9 -9 18 18" aria-hidden="true"><path class="bx-mark bx-mark-{k}" '
        f'd="{data["shapes"][k]}"/></svg>{escape(name)}</span>'
        for k, name in enumerate(data["groups"])
    )
    line = escape(data["lines"][layer])
    return (
        f'<p class="bx-map-legend">{legend}</p><svg class="bx-map" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'role="img" tabindex="0" aria-label="{line}">{marks}</svg>'
        f'<p class="bx-note bx-map-line">{line}</p>'
    )


@cache
def _style() -> str:
    colours = "".join(
        f".bx .bx-mark-{i}{{fill:var(--bx-{role})}}" for i, role in enumerate(SERIES)
    )
    return (
        ".bx .bx-map{display:block;width:100%;max-width:42rem;height:auto;overflow:visible}"
        ".bx .bx-map:focus-visible{outline:2px solid var(--bx-accent);outline-offset:-2px}"
        ".bx .bx-mark{stroke:var(--bx-paper);stroke-width:.7;transition:transform .7s}"
        ".bx .bx-mark.bx-at{stroke:var(--bx-ink);stroke-width:2.5}"
        ".bx .bx-map-legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;margin:0 0 .3rem;"
        "font-size:.85em;color:var(--bx-ink)}"
        ".bx .bx-map-legend svg{width:1em;height:1em;vertical-align:-.1em;margin-right:.35em}"
        ".bx .bx-map-pointed{min-height:2.6em;color:var(--bx-ink)}"
        "@media (prefers-reduced-motion:reduce){.bx .bx-mark{transition:none}}" + colours
    )


@cache
def _script() -> str:
    return files(__package__).joinpath("point_map.js").read_text(encoding="utf-8").strip()

