"""Both halves in one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

from IPython import get_ipython

from ..page import Display, inner_html
from .controls import Control, as_controls
from .kernel_half import built_live, check_free
from .page_half import built, check_size

#: Set to "live" or "static" to overrule what :func:`has_front_end` finds.
SWITCH = "BERTOLOGY_WIDGETS"


class Interactive:
    """What :func:`interactive` returns: show it at the end of a cell.

    A page or a saved notebook shows :attr:`static`; a notebook with a live front end shows
    :attr:`live`, and keeps the static form for readers without one.
    """

    def __init__(
        self,
        fn: Callable[..., object],
        controls: tuple[Control, ...],
        on_page: tuple[Control, ...],
        title: str,
        free: tuple[str, ...],
        start: dict[str, Any],
    ) -> None:
        self._fn, self._title, self._free, self._start = fn, title, free, start
        self._controls, self._on_page = controls, on_page
        self._seen: dict[tuple[Any, ...], object] = {}

    @cached_property
    def static(self) -> Display:
        """The explorer with all states of the page's grid; computed at first use."""
        htmls = [
            inner_html(self._call(**dict(zip(self._names, settings, strict=True))))
            for settings in product(*(control.options for control in self._on_page))
        ]
        return built(self._on_page, htmls, title=self._title, start=self._start, note=self._note())

    @cached_property
    def live(self) -> Any:
        """The ipywidgets."""
        return built_live(
            self._call, self._controls, title=self._title, free=self._free, start=self._start
        )

    @property
    def _names(self) -> list[str]:
        return [control.name for control in self._controls]

    def _call(self, **settings: Any) -> object:
        key = tuple(settings[name] for name in self._names)
        try:
            if key not in self._seen:
                self._seen[key] = self._fn(**settings)
            return self._seen[key]
        except TypeError as error:
            if "unhashable" not in str(error):
                raise
            return self._fn(**settings)

    def _note(self) -> str | None:
        thinned = [
            full.title
            for full, few in zip(self._controls, self._on_page, strict=True)
            if len(few.options) < len(full.options)
        ]
        offers = [f"type your own {name.replace('_', ' ')}" for name in self._free]
        if thinned:
            offers.append(f"try every {' and '.join(thinned)}")
        return f"Run this page as a notebook to {' or '.join(offers)}." if offers else None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        bundle = self.static._repr_mimebundle_()
        if has_front_end():
            live = self.live._repr_mimebundle_() or {}
            bundle = {**live, **bundle}
        return bundle


def interactive(
    fn: Callable[..., object],
    controls: Mapping[str, Sequence[Any] | Mapping[str, Any]],
    *,
    title: str,
    static: Mapping[str, Sequence[Any]] | None = None,
    free: Sequence[str] = (),
    start: Mapping[str, Any] | None = None,
) -> Interactive:
    """Let readers turn the settings of ``fn``, with or without a kernel.

    For the page, ``fn`` is run once for every combination of settings, and all results travel
    in the page. With a kernel, ipywidgets call ``fn`` anew, also with texts the reader types.

    Args:
        fn: called with one keyword argument per control; returns text (escaped) or anything
            with an HTML form, such as ``figures.show(...)``, ``page.table(...)`` or an embed.
        controls: argument name -> its settings, or -> {label: setting}.
        title: what the reader explores.
        static: control -> the settings offered on the page, where all of them would be too many.
        free: names of controls beside which readers with a kernel may type a text of their own.
        start: control -> setting shown first; it must be one of the page's settings.

    Raises:
        ValueError: a name is no control, a value no setting, or the page's grid is too large.
    """
    made = as_controls(controls)
    names = [control.name for control in made]
    for name in static or {}:
        if name not in names:
            raise ValueError(f"static names {name!r}, which is no control; controls: {names}")
    on_page = tuple(
        control.only((static or {}).get(control.name, control.options)) for control in made
    )
    for name, value in (start or {}).items():
        offered = next((control.options for control in on_page if control.name == name), None)
        if offered is None:
            raise ValueError(f"start names {name!r}, which is no control; controls: {names}")
        if value not in offered:
            raise ValueError(f"start sets {name!r} to {value!r}; settings: {list(offered)}")
    check_free(made, free)
    check_size(on_page, title)
    first = {control.name: control.options[0] for control in on_page} | dict(start or {})
    return Interactive(fn, made, on_page, title, tuple(free), first)


def has_front_end() -> bool:
    """Say whether a notebook front end, which can draw ipywidgets, is there.

    Book builds run the same kernels without one, so a kernel alone proves nothing. Jupyter
    servers and Colab leave a mark in the environment of their kernels, VS Code one among the
    notebook's names; the variable ``BERTOLOGY_WIDGETS`` ("live" or "static") overrules them.

    Raises:
        ValueError: ``BERTOLOGY_WIDGETS`` has another value.
    """
    switch = os.environ.get(SWITCH)
    if switch is not None:
        if switch not in ("live", "static"):
            raise ValueError(f"{SWITCH} is {switch!r}; it must be 'live' or 'static'")
        return switch == "live"
    if "JPY_SESSION_NAME" in os.environ or "COLAB_RELEASE_TAG" in os.environ:
        return True
    shell = get_ipython()
    return shell is not None and "__vsc_ipynb_file__" in shell.user_ns
