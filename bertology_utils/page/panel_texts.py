"""What the playground's page says, in every language of the book: one table.

``panel_texts.json`` holds language -> name -> text, in which ``{names in braces}`` are filled in.
The page's scripts take from it what they say; what stands in the panel itself is marked by name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from html import escape
from pathlib import Path

#: of the panel as a notebook shows it
ENGLISH = "en"
# The text of an element marked with its name, a label marked likewise, and the whole's language.
_TEXT = re.compile(r'(<[a-z]\w*\b[^<>]*\bdata-pg-say="([\w-]+)"[^<>]*>)[^<]*(?=</)')
_LABEL = re.compile(r'(\bdata-pg-label="([\w-]+)" aria-label=")[^"]*')
_WHOLE = re.compile(r'(<div class="pg" id="pg-root" lang=")[^"]*')


@lru_cache(maxsize=1)
def panel_texts() -> Mapping[str, Mapping[str, str]]:
    """Language, as HTML writes it -> name -> text."""
    file = Path(__file__).with_suffix(".json")
    return json.loads(file.read_text(encoding="utf-8"))


def say(name: str, **values: object) -> str:
    """An English text.

    Raises:
        KeyError: no text of this name, or a value that it needs is missing.
    """
    return panel_texts()[ENGLISH][name].format(**values)


def in_language(html: str, language: str) -> str:
    """Put the texts of a language into the panel, wherever in ``html`` it stands.

    The example's texts are English and stay as they are.

    Raises:
        KeyError: no such language, or the panel is marked with a name that has no text.
    """
    words = panel_texts()[language]
    html = _WHOLE.sub(lambda found: found[1] + language, html)
    for marked in (_TEXT, _LABEL):
        html = marked.sub(lambda found: found[1] + escape(words[found[2]]), html)
    return html
