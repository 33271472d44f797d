"""The kernel half: ipywidgets over the same function and the same controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import ipywidgets

from ..page import inner_html, page_style
from ..page.display import FRAME
from .controls import Control, as_controls

_WIDE = {"description_width": "initial"}


def live(
    fn: Callable[..., object],
    controls: Mapping[str, Sequence[Any] | Mapping[str, Any]],
    *,
    title: str,
    free: Sequence[str] = (),
    start: Mapping[str, Any] | None = None,
) -> ipywidgets.VBox:
    """Return ipywidgets that call ``fn`` with the settings whenever one changes.

    Args:
        fn: called with one keyword argument per control; returns text or anything with an HTML
            form. A ValueError or KeyError it raises is shown to the reader in its place.
        controls: argument name -> its settings, or -> {label: setting}.
        title: what the reader explores.
        free: names of controls beside which readers may type a text of their own.
        start: control -> setting shown first.

    Raises:
        ValueError: ``free`` or ``start`` names something that is no control or no setting.
    """
    return built_live(fn, as_controls(controls), title=title, free=free, start=start or {})


def built_live(
    fn: Callable[..., object],
    controls: Sequence[Control],
    *,
    title: str,
    free: Sequence[str],
    start: Mapping[str, Any],
) -> ipywidgets.VBox:
    """Return the widgets of controls already made; see :func:`live`."""
    check_free(controls, free)
    output = ipywidgets.HTML()
    choices = {control.name: _choice(control, start) for control in controls}
    texts = {name: _text_box(name) for name in free}

    def settings() -> dict[str, Any]:
        typed = {name: box.value.strip() for name, box in texts.items() if box.value.strip()}
        return {name: choice.value for name, choice in choices.items()} | typed

    def update(_change: Any = None) -> None:
        output.value = page_style() + f'<div class="{FRAME}">{_answer(fn, settings())}</div>'

    for widget in (*choices.values(), *texts.values()):
        widget.observe(update, names="value")
    update()
    rows = []
    for name, choice in choices.items():
        parts = [choice, texts[name]] if name in texts else [choice]
        rows.append(ipywidgets.HBox(parts, layout={"flex_flow": "row wrap"}))
    heading = ipywidgets.HTML(f"<b>{escape(title)}</b>")
    box = ipywidgets.VBox([heading, *rows, output])
    box.add_class("bertology-live")
    return box


def check_free(controls: Sequence[Control], free: Sequence[str]) -> None:
    """Refuse names in ``free`` that are no control.

    Raises:
        ValueError: naming the first of them.
    """
    if isinstance(free, str):
        raise ValueError(f"free is the string {free!r}; give a list of control names")
    names = [control.name for control in controls]
    for name in free:
        if name not in names:
            raise ValueError(f"free names {name!r}, which is no control; controls: {names}")


def _choice(control: Control, start: Mapping[str, Any]) -> ipywidgets.Widget:
    first = start.get(control.name, control.options[0])
    if first not in control.options:
        raise ValueError(
            f"start sets {control.name!r} to {first!r}; settings: {list(control.options)}"
        )
    make = ipywidgets.SelectionSlider if control.is_slider else ipywidgets.Dropdown
    return make(
        options=list(zip(control.labels, control.options, strict=True)),
        index=control.options.index(first),
        description=control.title,
        style=_WIDE,
        layout={"max_width": "100%"},
    )


def _text_box(name: str) -> ipywidgets.Text:
    # Only a finished text is run: Enter or leaving the box, not every key.
    return ipywidgets.Text(
        description="or your own",
        placeholder=f"type a {name.replace('_', ' ')} and press Enter",
        continuous_update=False,
        style=_WIDE,
        layout={"width": "28rem", "max_width": "100%"},
    )


def _answer(fn: Callable[..., object], settings: Mapping[str, Any]) -> str:
    try:
        return inner_html(fn(**settings))
    except (ValueError, KeyError) as error:
        # KeyError puts its message in quotes; readers should see the sentence alone.
        message = error.args[0] if isinstance(error, KeyError) and error.args else error
        return f'<p class="bx-error" role="alert">{escape(str(message))}</p>'
