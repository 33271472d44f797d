"""The page half: precomputed states and native controls, in plain HTML and a short script."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from itertools import product
from math import prod
from typing import Any

from ..page import Display, inner_html, unique_id
from .controls import Control, as_controls

#: More states than this are a sign of a grid that should be thinned out for the page.
MAX_STATES = 600
#: All the states of one explorer together, in bytes of HTML.
MAX_BYTES = 1_500_000


def explorer(
    states: Mapping[tuple[Any, ...], object],
    controls: Mapping[str, Sequence[Any] | Mapping[str, Any]],
    *,
    title: str,
    start: Mapping[str, Any] | None = None,
    note: str | None = None,
) -> Display:
    """Return a self-contained explorer of precomputed states.

    Args:
        states: settings (one per control, in the order of ``controls``) -> what is shown: text,
            or anything with an HTML form (``figures.show``, ``page.table``, an embed).
        controls: argument name -> its settings, or -> {label: setting}.
        title: what the reader explores.
        start: control -> setting shown first; the first setting when not given.
        note: a line under the explorer.

    Raises:
        ValueError: a combination of settings has no state, ``start`` is no setting, or the
            states are too many or too heavy for a page.
        TypeError: a state has no HTML form.
    """
    made = as_controls(controls)
    return built(made, _rendered(made, states), title=title, start=start, note=note)


def built(
    controls: Sequence[Control],
    htmls: Sequence[str],
    *,
    title: str,
    start: Mapping[str, Any] | None,
    note: str | None,
) -> Display:
    """Return the explorer of states given as HTML in row-major order of the controls."""
    first = [_start_of(control, start or {}) for control in controls]
    for name in start or {}:
        if name not in {control.name for control in controls}:
            raise ValueError(f"start names {name!r}, which is no control")
    unique = list(dict.fromkeys(htmls))
    weight = sum(len(html.encode()) for html in unique)
    if weight > MAX_BYTES:
        raise ValueError(
            f"the states of {title!r} weigh {weight:,} bytes, more than the {MAX_BYTES:,} a page "
            "should carry; offer fewer settings on the page (static=...)"
        )
    index_of = {html: index for index, html in enumerate(unique)}
    grid = [index_of[html] for html in htmls]
    root = unique_id("widget", "".join([title, *unique]))
    place = 0
    for control, chosen in zip(controls, first, strict=True):
        place = place * len(control.options) + chosen
    fields = "".join(_field(f"{root}-{i}", control, first[i]) for i, control in enumerate(controls))
    templates = "".join(f"<template>{html}</template>" for html in unique)
    settings = {"id": root, "sizes": [len(c.options) for c in controls], "grid": grid}
    foot = f'<p class="bx-note">{escape(note)}</p>' if note else ""
    html = (
        f'<div class="bx-widget" id="{root}" role="group" aria-labelledby="{root}-title">'
        f'<p class="bx-widget-title" id="{root}-title">{escape(title)}</p>'
        f'<div class="bx-controls">{fields}</div>'
        '<p class="bx-hidden" aria-live="polite"></p>'
        f'<div class="bx-shown">{htmls[place]}</div>{templates}{foot}'
        '<noscript><p class="bx-note">The controls need JavaScript; the first state is shown.</p>'
        "</noscript></div>"
        f"<script>{_script()}({json.dumps(settings, separators=(',', ':'))});</script>"
    )
    return Display(html=html, text=f"[explorer: {title}]")


def check_size(controls: Sequence[Control], title: str) -> None:
    """Refuse a grid that is too large before anything is computed.

    Raises:
        ValueError: it has more than :data:`MAX_STATES` states.
    """
    count = prod(len(control.options) for control in controls)
    if count > MAX_STATES:
        sizes = " x ".join(f"{len(c.options)} {c.title}" for c in controls)
        raise ValueError(
            f"{title!r} has {sizes} = {count} states, more than {MAX_STATES}; offer fewer "
            "settings on the page (static=...)"
        )


def _rendered(controls: Sequence[Control], states: Mapping[tuple, object]) -> list[str]:
    check_size(controls, "the explorer")
    htmls = []
    for settings in product(*(control.options for control in controls)):
        if settings not in states:
            raise ValueError(f"there is no state for the settings {settings!r}")
        htmls.append(inner_html(states[settings]))
    return htmls


def _start_of(control: Control, start: Mapping[str, Any]) -> int:
    if control.name not in start:
        return 0
    wanted = start[control.name]
    if wanted not in control.options:
        raise ValueError(
            f"start sets {control.name!r} to {wanted!r}; settings: {list(control.options)}"
        )
    return control.options.index(wanted)


def _field(field: str, control: Control, chosen: int) -> str:
    label = f'<label for="{field}">{escape(control.title)}</label>'
    if control.is_slider:
        # Slider positions are indices, so that settings need not be evenly spaced.
        labels = escape(json.dumps(control.labels, ensure_ascii=False))
        body = (
            f'<span class="bx-range"><input type="range" id="{field}" min="0" '
            f'max="{len(control.options) - 1}" step="1" value="{chosen}" data-labels="{labels}" '
            f'aria-valuetext="{escape(control.labels[chosen])}">'
            f'<output for="{field}">{escape(control.labels[chosen])}</output></span>'
        )
    else:
        options = "".join(
            f'<option value="{i}"{" selected" * (i == chosen)}>{escape(text)}</option>'
            for i, text in enumerate(control.labels)
        )
        body = f'<select id="{field}">{options}</select>'
    return f'<div class="bx-control">{label}{body}</div>'


@cache
def _script() -> str:
    return files(__package__).joinpath("explorer.js").read_text(encoding="utf-8").strip()
