"""The playground's texts: every language says the same things, and everything said has a text."""

import importlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from bertology_utils.page.panel_texts import in_language, panel_texts, say
from tools import sphinx_playground
from tools.sphinx_editions import EDITIONS

PANEL = importlib.import_module("bertology_utils.playground.panel")
HAN = re.compile(r"[\u4e00-\u9fff]")
VALUE = re.compile(r"\{(\w+)\}")


def test_every_edition_has_every_text_with_the_same_values():
    english = panel_texts()["en"]
    assert set(panel_texts()) == {edition.tag for edition in EDITIONS}
    for language, words in panel_texts().items():
        assert list(words) == list(english), language
        for name, text in words.items():
            assert sorted(VALUE.findall(text)) == sorted(VALUE.findall(english[name])), name
            assert text.strip() and "{" not in VALUE.sub("", text), name


def test_chinese_texts_are_chinese():
    for name, text in panel_texts()["zh-CN"].items():
        assert HAN.search(text) or not re.search("[A-Za-z]", VALUE.sub("", text)), name
    assert not any(HAN.search(text) for text in panel_texts()["en"].values())


def test_texts_are_those_that_the_page_says():
    """None is missing, and none is left over."""
    named = r"[\"'`]({})[\"'`]".format("|".join(panel_texts()["en"]))
    scripts = "".join(path.read_text() for path in sphinx_playground.SOURCES.glob("*.js"))
    drawn = Path(PANEL.__file__).read_text(encoding="utf-8")
    said = set(re.findall(r"\b(?:say|around|Named)\(\"([\w-]+)\"", scripts + drawn))
    marked = set(re.findall(r"data-pg-(?:say|label)=\"([\w-]+)\"", drawn))
    assert said | marked <= set(panel_texts()["en"])
    # Some names stand where a condition chooses, or are put together of parts.
    parts = {"counted", "counted-one", "counted-unknown", "counted-unknown-one"}
    assert parts | marked | set(re.findall(named, scripts + drawn)) == set(panel_texts()["en"])
    assert '`counted${unknown ? "-unknown" : ""}${typed === 1 ? "-one" : ""}`' in scripts


def test_scripts_have_no_sentence_of_their_own():
    """What readers see comes from the table; a script's strings are names, marks and code."""
    for path in sphinx_playground.SOURCES.glob("*.js"):
        code = re.sub(r"^\s*//.*|\s//\s.*", "", path.read_text(encoding="utf-8"), flags=re.M)
        strings = re.findall(r"\"([^\"\n]*)\"|`([^`]*)`", code)
        sentences = [a or b for a, b in strings if re.search(r"[a-z]{2,} [a-z]{2,}", a or b)]
        assert sentences in ([], ["use strict"]), path.name


class _Spoken(HTMLParser):
    """Texts and labels of a piece of HTML, with the language that each is said to be in."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        language = given.get("lang") or (self.open[-1] if self.open else "")
        if "aria-label" in given:
            self.found.append((language, given["aria-label"]))
        if tag not in ("input", "br"):
            self.open.append("code" if tag == "script" else language)

    def handle_endtag(self, tag):
        self.open.pop()

    def handle_data(self, data):
        if re.search("[A-Za-z\u4e00-\u9fff]{2}", data) and self.open[-1] != "code":
            self.found.append((self.open[-1], data))


@pytest.fixture(scope="module")
def shown() -> str:
    parts = dict.fromkeys(("layers", "heads", "n_layers"), "1")
    parts |= {name: "<p>It is so.</p>" for name in ("fills", "attention", "near")}
    tricky = "Say &lt;p data-pg-say=&quot;load&quot;&gt;no&lt;/p&gt;"
    tokens = '<span lang="en">no words</span>'
    html = PANEL._SKELETON.format(script="{}", text=tricky, examples="", tokens=tokens, **parts)
    return in_language(html, "en")


def test_the_panel_speaks_the_language_of_its_page(shown):
    for language, other in (("en", "zh-CN"), ("zh-CN", "en")):
        spoken = _Spoken()
        spoken.feed(in_language(shown, language))
        assert spoken.open == []
        assert len(spoken.found) >= 20
        for said, text in spoken.found:
            assert said == ("zh-CN" if HAN.search(text) else "en"), text
        assert any(said == language for said, _ in spoken.found)
        assert in_language(in_language(shown, other), language) == in_language(shown, language)


def test_what_a_reader_wrote_is_never_taken_for_a_mark(shown):
    assert "data-pg-say=&quot;load&quot;&gt;no&lt;/p&gt;" in in_language(shown, "zh-CN")


def test_unknown_languages_and_missing_values_are_named(shown):
    with pytest.raises(KeyError, match="tlh"):
        in_language(shown, "tlh")
    with pytest.raises(KeyError, match="nothing"):
        in_language('<p data-pg-say="nothing"></p>', "en")
    with pytest.raises(KeyError, match="layer"):
        say("read-from", token="x")
