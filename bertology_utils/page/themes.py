"""The colours of the light and the dark page, written once for SVG, HTML and PNG alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType

#: Colour roles -> hex, per theme. The papers are those of sphinx-book-theme. Within a theme every
#: colour is used once, so that a drawing made in the light colours can be re-coloured by role.
#: The six series keep their hue from one theme to the other; they are at least as far apart for
#: colour-blind readers as the Okabe-Ito palette and reach 3:1 against the paper.
THEMES: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "light": MappingProxyType(
            {
                "paper": "#fffffe",
                "card": "#f3f4f5",
                "ink": "#222832",
                "soft": "#48566b",
                "line": "#7d8794",
                "faint": "#d1d5da",
                "accent": "#0a6375",
                "heat": "#7fb2e5",
                "error": "#b3102b",
                "s0": "#2a85d0",  # blue
                "s1": "#a8430a",  # rust
                "s2": "#1e7359",  # green
                "s3": "#d9559f",  # pink
                "s4": "#a8912c",  # ochre
                "s5": "#43208f",  # indigo
            }
        ),
        "dark": MappingProxyType(
            {
                "paper": "#121212",
                "card": "#222832",
                "ink": "#ced6dd",
                "soft": "#a3acb8",
                "line": "#79838f",
                "faint": "#3a424d",
                "accent": "#54c0d4",
                "heat": "#1d5c94",
                "error": "#f0919c",
                "s0": "#62aef0",
                "s1": "#e08a4f",
                "s2": "#4fdcc0",
                "s3": "#d94f97",
                "s4": "#f0d860",
                "s5": "#8468f0",
            }
        ),
    }
)

#: Roles of the data colours, in the order in which they are dealt out.
SERIES: tuple[str, ...] = ("s0", "s1", "s2", "s3", "s4", "s5")

# A page says it is dark in its own way: Sphinx themes, JupyterLab, VS Code, Colab.
_DARK_PAGES = (
    'html[data-theme="dark"]',
    'body[data-jp-theme-light="false"]',
    "body.vscode-dark",
    'html[theme="dark"]',
)


def _variables(theme: str) -> str:
    return "".join(f"--bx-{role}:{colour};" for role, colour in THEMES[theme].items())


#: CSS for a document of its own (an iframe), which learns the page's theme by message.
FRAME_COLOURS = (
    f":root{{{_variables('light')}color-scheme:light}}"
    f"@media (prefers-color-scheme:dark){{:root{{{_variables('dark')}color-scheme:dark}}}}"
    f":root[data-theme=light]{{{_variables('light')}color-scheme:light}}"
    f":root[data-theme=dark]{{{_variables('dark')}color-scheme:dark}}"
)


@cache
def page_style() -> str:
    """Return the ``<style>`` element every display carries, so that it needs no other file."""
    dark = ",".join(f"{page} .bx" for page in _DARK_PAGES)
    rules = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    return (
        f"<style>.bx{{{_variables('light')}}}{dark}{{{_variables('dark')}}}"
        f"{_squeeze(rules)}</style>"
    )


def _squeeze(css: str) -> str:
    """Drop comments and line breaks: the rules travel inside every output of a notebook."""
    while "/*" in css:
        before, _, rest = css.partition("/*")
        css = before + rest.partition("*/")[2]
    return " ".join(css.split())


def luminance(rgb: Sequence[float]) -> float:
    """Return the relative luminance (WCAG 2.2) of an sRGB colour given as three numbers 0-1."""
    red, green, blue = (
        channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
        for channel in rgb
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
