"""The built book is whole: pages, links, figures, downloads, nothing from elsewhere.

Reads ``_build/html`` as ``make book`` left it; run with ``make check``.
"""

import json
import os
import re
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from bertology_utils import ledger
from bertology_utils.page.panel_texts import in_language
from bertology_utils.reproduce.chapters import environment_digest, read_book
from bertology_utils.reproduce.run import reproduce
from tools import build_record

ROOT = Path(__file__).resolve().parent.parent
HTML = ROOT / "_build" / "html"

pytestmark = pytest.mark.book

# What a browser fetches by itself, as opposed to what a reader may follow.
_FETCHED = {
    ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src"),
    ("audio", "src"), ("embed", "src"), ("object", "data"), ("link", "href"), ("image", "href"),
    ("use", "href"), ("input", "src"), ("track", "src"), ("video", "poster"),
}  # fmt: skip
_CSS_URL = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
_LINK_KINDS_NOT_FETCHED = {"canonical", "author", "next", "prev", "index", "search", "alternate"}


@dataclass
class Page(HTMLParser):
    """What one HTML file refers to."""

    path: Path
    fetched: list[str] = field(default_factory=list)
    followed: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    images: list[tuple[str, str | None]] = field(default_factory=list)
    srcdocs: list[str] = field(default_factory=list)
    editions: dict[str, set[str]] = field(default_factory=dict)
    language: str = ""
    classes: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._in_style = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors.update(filter(None, (values.get("id"), values.get("name"))))
        self.classes.update(values.get("class", "").split())
        self._in_style = tag == "style"
        if tag == "img":
            self.images.append((values.get("src", ""), values.get("alt")))
        if tag == "html":
            self.language = values.get("lang", "")
        if tag in {"a", "link"} and "hreflang" in values and "alternate" in values.get("rel", ""):
            self.editions.setdefault(values["hreflang"], set()).add(values["href"])
        if tag == "iframe" and "srcdoc" in values:
            self.srcdocs.append(values["srcdoc"])
        for name, value in values.items():
            if name == "srcset":
                self.fetched += [part.split()[0] for part in value.split(",") if part.strip()]
            elif name == "style":
                self._css(value)
            elif tag == "link" and set(values.get("rel", "").split()) & _LINK_KINDS_NOT_FETCHED:
                continue
            elif (tag, name.removeprefix("xlink:")) in _FETCHED:
                self.fetched.append(value)
            elif tag in {"a", "area"} and name == "href":
                self.followed.append(value)

    def handle_endtag(self, tag: str) -> None:
        if tag == "style":
            self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self._css(data)

    def _css(self, text: str) -> None:
        self.fetched += [first or second for first, second in _CSS_URL.findall(text)]


@cache
def page(path: Path) -> Page:
    parsed = Page(path)
    parsed.feed(path.read_text(encoding="utf-8"))
    return parsed


@cache
def html_files() -> tuple[Path, ...]:
    assert (HTML / "index.html").is_file(), "there is no book; run: make book"
    return tuple(p for p in sorted(HTML.rglob("*.html")) if "_static" not in p.parts)


def target_of(source: Path, address: str) -> tuple[Path, str] | None:
    """Return the file and anchor an address leads to, or None if it leads out of the book."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    path = source if not parts.path else source.parent / unquote(parts.path)
    return path.resolve(), unquote(parts.fragment)


@pytest.fixture(scope="module")
def book():
    return read_book(ROOT)


def test_the_book_was_built_to_the_end(book):
    assert not (ROOT / "_build" / "pages-unfinished").exists()


def test_every_page_of_the_contents_was_made(book):
    for docname in book.pages:
        text = (HTML / f"{docname}.html").read_text(encoding="utf-8")
        assert "<h1>" in text, docname


def store() -> Path:
    """The folder of this version's runs."""
    return ROOT / "_build" / "executed" / environment_digest(ROOT)[:16]


def test_the_record_beside_the_pages_is_of_this_build(book):
    runs = json.loads((store() / "executions.json").read_text(encoding="utf-8"))
    for folder in (HTML, HTML / "zh"):
        record = json.loads((folder / build_record.FILE).read_text(encoding="utf-8"))
        assert record == build_record.build_record(book, runs) | {"commit": record["commit"]}
        text = (folder / "chapters" / "status.html").read_text(encoding="utf-8")
        for digest in (record["package"]["sha256"], record["sources"]["sha256"]):
            assert digest[:16] in text
        assert record["model"]["files"] and record["packages"]["numpy"][0].isdigit()


def test_every_claim_of_a_chapter_that_can_run_was_recorded(book):
    model = ledger.default_model()
    unrecorded = {}
    for chapter in (c for c in book.chapters if not c.runs_last):
        number = chapter.path.name[:2]
        claims = [c.id for c in ledger.load_claims().values() if c.chapter == number]
        results = store() / "results" / chapter.docname.replace("/", "--")
        if absent := ledger.missing(model, claims, results):
            unrecorded[chapter.docname] = absent
    assert unrecorded == {}


def test_deleted_results_come_back_the_same(book, tmp_path):
    """No result is made by hand: a claim measured anew outside the book has the same numbers."""
    model = ledger.default_model()
    report = reproduce(["BG-06"], root=tmp_path, quiet=True)
    assert report.failures == {}
    shown = ledger.result("BG-06", model, store() / "results" / "chapters--00_prerequisites")
    assert ledger.result("BG-06", model, tmp_path).outcome == shown.outcome


def test_every_chapter_was_run_by_this_version_of_the_code(book):
    runs = json.loads((store() / "executions.json").read_text())
    for chapter in book.chapters:
        run = runs[chapter.docname]
        assert run["code_cells"] > 0, chapter.docname
        assert run["seconds"] > 0 and run["peak_memory_mb"] > 0, chapter.docname


def test_every_address_inside_the_book_leads_somewhere():
    broken = []
    for path in html_files():
        for address in page(path).fetched + page(path).followed:
            found = target_of(path, address)
            if found is None:
                continue
            target, anchor = found
            if not target.is_relative_to(HTML) or not target.is_file():
                broken.append(f"{path.relative_to(HTML)}: {address}")
            elif anchor and target.suffix == ".html" and anchor not in page(target).anchors:
                broken.append(f"{path.relative_to(HTML)}: no anchor {address}")
    assert not broken


def test_every_file_named_in_a_style_sheet_is_there():
    broken = []
    for path in sorted(HTML.rglob("*.css")):
        for first, second in _CSS_URL.findall(path.read_text(encoding="utf-8")):
            address = first or second
            if address.startswith(("data:", "#")):
                continue
            found = target_of(path, address)
            if found is None or not found[0].is_file():
                broken.append(f"{path.relative_to(HTML)}: {address}")
    assert not broken


def test_no_page_fetches_anything_from_another_host():
    remote = []
    for path in html_files():
        documents = [page(path)]
        for srcdoc in page(path).srcdocs:
            inner = Page(path)
            inner.feed(srcdoc)
            documents.append(inner)
        for document in documents:
            for address in document.fetched:
                parts = urlsplit(address)
                if parts.netloc or parts.scheme not in {"", "data", "blob"}:
                    remote.append(f"{path.relative_to(HTML)}: {address}")
    assert not remote


def test_every_image_says_what_it_shows():
    silent = []
    for path in html_files():
        for source, alt in page(path).images:
            if not alt or not alt.strip() or alt.strip() == source or "_images/" in alt:
                silent.append(f"{path.relative_to(HTML)}: {source}")
    assert not silent


def test_no_page_shows_an_error_or_a_warning_of_the_code(book):
    for chapter in book.chapters:
        classes = page(HTML / f"{chapter.docname}.html").classes
        assert "stderr" not in classes, f"{chapter.docname} prints to stderr"
        assert "traceback" not in classes, f"{chapter.docname} shows a traceback"


def test_no_page_holds_a_widget_without_its_static_form():
    for path in html_files():
        text = path.read_text(encoding="utf-8")
        assert "application/vnd.jupyter.widget-view+json" not in text, path.relative_to(HTML)


@pytest.mark.parametrize("folder", ["", "zh"])
def test_every_page_can_be_searched(book, folder):
    index = (HTML / folder / "searchindex.js").read_text(encoding="utf-8")
    names = json.loads(re.search(r'"docnames":\s*(\[[^\]]*\])', index)[1])
    assert set(book.pages) <= set(names)


def editions() -> list[tuple[Path, Path]]:
    """The English and the Chinese file of every page."""
    english = [p for p in html_files() if not p.is_relative_to(HTML / "zh")]
    return [(path, HTML / "zh" / path.relative_to(HTML)) for path in english]


def test_every_page_is_there_in_both_languages_and_leads_to_the_other():
    for english, chinese in editions():
        assert page(english).language == "en" and page(chinese).language == "zh-CN", chinese
        if english.name == "index.html":
            continue  # only leads to the first page
        wanted = {"en": english, "zh-CN": chinese, "x-default": english}
        for path in (english, chinese):
            found = {
                tag: {target_of(path, address)[0] for address in addresses}
                for tag, addresses in page(path).editions.items()
            }
            assert found == {tag: {target} for tag, target in wanted.items()}, path
            other = os.path.relpath(wanted["zh-CN" if path is english else "en"], path.parent)
            assert other in page(path).followed, f"{path} has no link to the other language"


def test_a_chinese_page_says_how_much_of_it_is_translated(book):
    for docname in book.pages:
        text = (HTML / "zh" / f"{docname}.html").read_text(encoding="utf-8")
        assert text.count('class="edition-note"') == 1, docname


def test_both_editions_show_the_same_runs(book):
    """A Chinese page has the outputs of the English one, to the letter.

    Only the playground's panel, which no run has measured, speaks the page's language.
    """
    end = r"</div></div>\n</(?:div|details)>\n"
    output = re.compile(rf'<div class="output text_html">.*?{end}', re.S)
    for chapter in book.chapters:
        english, chinese = (
            output.findall((HTML / folder / f"{chapter.docname}.html").read_text(encoding="utf-8"))
            for folder in ("", "zh")
        )
        expected = [in_language(text, "zh-CN") for text in english]
        assert (expected == english) == (chapter.docname != "chapters/playground")
        assert english and expected == chinese, chapter.docname
