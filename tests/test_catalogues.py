"""The Chinese edition's catalogues: up to date, complete where they must be, nothing lost."""

import re
from collections import Counter
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog

from bertology_utils.reproduce.chapters import read_book
from tools.catalogues import LANGUAGES, captions, extract, load, merged, path_of

ROOT = Path(__file__).resolve().parent.parent
PAGES = read_book(ROOT).pages
LANGUAGE = "zh_CN"
HAN = re.compile(r"[\u4e00-\u9fff]")
#: a text for books with an address of their repository, or for those without
BY_ADDRESS = re.compile(r"^```\{(with(?:out)?-address)\}\n(.*?)^```$", re.M | re.S)
#: What a translation must take over: roles with their targets, formulas, code, targets of links.
MARKS = re.compile(r"\{([a-z:]+)\}`([^`]+)`|(\$[^$]+\$)|(?<!\})`([^`]+)`|\]\(([^)]+)\)")


@pytest.fixture(scope="module")
def templates():
    return extract(ROOT)


@pytest.fixture(scope="module")
def glossary_names():
    """Either name of a term -> its English name."""
    page = (ROOT / "chapters" / "glossary.md").read_text(encoding="utf-8")
    pairs = re.findall(r"^(\S.*)\n(\S.*)\n  \S", page, re.M)
    return {name.lower(): english.lower() for english, other in pairs for name in (english, other)}


def marks(text: str, glossary_names: dict[str, str]) -> Counter:
    found = Counter()
    for role, target, formula, code, link in MARKS.findall(text):
        if role == "term":
            inner = re.fullmatch(r".*<(.+)>", target)
            target = glossary_names[(inner[1] if inner else target).lower()]
        found[role, target or formula or code or link] += 1
    return found


def headings(source: str) -> set[str]:
    """Return the headings of a page, which code cells only seem to hold more of."""
    prose = re.sub(r"^```.*?^```$", "", source, flags=re.M | re.S)
    return set(re.findall(r"^#{1,6} (.+?)\s*$", prose, re.M))


def opening(source: str) -> int:
    """Return the line of the first code cell of the first section."""
    section = re.search(r"^## ", source, re.M)
    cell = re.compile(r"^```\{code-cell\}", re.M).search(source, section.start())
    return source.count("\n", 0, cell.start()) + 1


@pytest.mark.parametrize("docname", PAGES)
def test_a_catalogue_has_the_texts_of_its_page(templates, docname):
    path = path_of(ROOT, LANGUAGE, docname)
    known = load(path, LANGUAGE)
    assert merged(templates[docname], known, LANGUAGE) == path.read_text(encoding="utf-8"), (
        "the catalogue is out of date; run: make gettext"
    )


def test_what_a_book_says_with_and_without_an_address_is_translated(templates):
    """The catalogue is the same for both, wherever it was made; `make gettext` knows both."""
    kinds = set()
    for docname in PAGES:
        source = (ROOT / f"{docname}.md").read_text(encoding="utf-8")
        for kind, content in BY_ADDRESS.findall(source):
            kinds.add(kind)
            catalogue = load(path_of(ROOT, LANGUAGE, docname), LANGUAGE)
            for text in re.split(r"\n\n|^\* ", content, flags=re.M):
                message = " ".join(text.split())
                if message:
                    assert message in {m.id for m in templates[docname]}, message
                    assert HAN.search(catalogue.get(message).string), message
    assert kinds == {"with-address", "without-address"}


def test_there_is_no_catalogue_without_a_page():
    for language in LANGUAGES:
        folder = path_of(ROOT, language, "x").parent
        paths = [path.relative_to(folder).with_suffix("") for path in folder.rglob("*.po")]
        assert {path.as_posix() for path in paths} == set(PAGES)


@pytest.mark.parametrize("docname", PAGES)
def test_openings_and_headings_are_translated(templates, docname):
    source = (ROOT / f"{docname}.md").read_text(encoding="utf-8")
    wanted = headings(source)
    texts = {message.id: message for message in templates[docname] if message.id}
    assert wanted <= texts.keys()
    if re.match(r"chapters/\d\d_", docname):
        end = opening(source)
        wanted |= {
            text for text, message in texts.items() if min(n for _, n in message.locations) < end
        }
    elif docname in {"intro", "chapters/glossary"}:
        wanted = set(texts)
    catalogue = load(path_of(ROOT, LANGUAGE, docname), LANGUAGE)
    assert sorted(text for text in wanted if not catalogue.get(text).string) == []


@pytest.mark.parametrize("docname", PAGES)
def test_translations_keep_what_is_no_prose(docname, glossary_names):
    for message in load(path_of(ROOT, LANGUAGE, docname), LANGUAGE):
        if message.id and message.string:
            assert not message.fuzzy, message.id
            kept = marks(message.string, glossary_names)
            assert kept == marks(message.id, glossary_names), message.string
            # What stays as it is are names, numbers and code; a sentence does not.
            prose = len(re.findall(r"[A-Za-z]{2,}", MARKS.sub("", message.id))) > 4
            assert HAN.search(message.string) or not prose, message.id


def test_the_glossary_writes_no_text_twice(templates):
    """What the page says in both languages itself is not for translators."""
    texts = {message.id for message in templates["chapters/glossary"]}
    assert not texts & {"activation", "激活值"}


def test_an_update_keeps_what_is_translated_and_drops_what_is_gone(tmp_path):
    known = Catalog(locale=LANGUAGE)
    known.add("kept", "留下")
    known.add("gone", "不见")
    template = Catalog()
    template.add("new {braces} 100%")
    template.add("kept")
    path = tmp_path / "page.po"
    path.write_text(merged(template, known, LANGUAGE), encoding="utf-8")
    read = load(path, LANGUAGE)
    assert [(m.id, m.string) for m in read if m.id] == [("new {braces} 100%", ""), ("kept", "留下")]
    assert merged(template, read, LANGUAGE) == path.read_text(encoding="utf-8")
    assert "gone" not in path.read_text(encoding="utf-8")



def test_captions_of_figures_can_be_translated():
    source = (
        "# Page\n\n```{code-cell} ipython3\n---\nmystnb:\n  figure:\n    caption: >\n"
        "      Two\n      lines.\n---\n1\n```\n\n```{code-cell} ipython3\n'caption: no'\n```\n"
    )
    assert list(captions(source)) == [(3, "Two lines.")]
