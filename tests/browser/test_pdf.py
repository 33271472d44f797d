"""The book on paper: every page there, numbered, joined, linked, and nothing cut off."""

import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bertology_utils.reproduce.chapters import read_book

# What prints is imported where it is used: the packages for it come with `make browser-test`.
ROOT = Path(__file__).resolve().parents[2]
#: Pages that lead to each other, one of them with drawings in frames; the rest are made alike.
PARTS = {
    "": ("intro",),
    "The model": ("chapters/01_architecture",),
    "Reference": ("chapters/glossary", "references"),
}
NAMES = [name for pages in PARTS.values() for name in pages]


def apart(work, *arguments):
    """Do something in a thread of its own: Playwright serves one caller a thread, and the other
    tests' browser is open in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work, *arguments).result()


def plain(text: str) -> str:
    """Letters and digits only: a PDF breaks lines and words where it likes."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", text)).lower()


@pytest.fixture(scope="module")
def paper(book, tmp_path_factory):
    """The printed pages, and the PDF they were joined into."""
    from pypdf import PdfReader

    from tools.book_pdf import Part, make_pdf

    target = tmp_path_factory.mktemp("pdf") / "book.pdf"
    printed = apart(make_pdf, ROOT, book, target, [Part(*part) for part in PARTS.items()])
    return printed, PdfReader(target)


def sheets_of(printed, reader) -> dict[str, range]:
    """Which sheets of the PDF each page takes up."""
    start = len(reader.pages) - sum(page.sheets for page in printed.values())
    found = {}
    for name, page in printed.items():
        found[name] = range(start, start + page.sheets)
        start += page.sheets
    return found


def links(page) -> list:
    return [link.get_object() for link in page.get("/Annots", [])]


def sheet_of(reader, link) -> int:
    return reader.get_page_number(link["/Dest"][0].get_object())


def test_the_parts_are_those_of_the_contents():
    from tools.book_pdf import Part, read_parts

    parts = read_parts(ROOT)
    assert [name for part in parts for name in part.pages] == list(read_book(ROOT).pages)
    assert parts[0] == Part("", ("intro",)) and all(part.caption for part in parts[1:])


def test_every_page_is_there_with_its_headings_and_its_number(paper):
    printed, reader = paper
    sheets = sheets_of(printed, reader)
    assert list(sheets) == NAMES
    labels = reader.page_labels
    for name, numbers in sheets.items():
        assert len(numbers) >= (15 if name == "chapters/01_architecture" else 1)
        texts = [plain(reader.pages[sheet].extract_text()) for sheet in numbers]
        whole = "".join(texts)
        assert len(printed[name].headings) >= 1
        for heading in printed[name].headings:
            assert plain(heading.text) in whole, f"{name}: {heading.text}"
        for sheet, text in zip(numbers, texts, strict=True):
            # The number stands at the end of the sheet; the running title at its beginning.
            assert labels[sheet] in (text[-4:] + text[:60])
    front = [plain(reader.pages[sheet].extract_text()) for sheet in range(sheets["intro"].start)]
    assert "stayfolded" in front[0] and "contents" in front[1]
    assert labels[0] == "i" and labels[sheets["intro"].start] == "1"


def test_the_contents_and_the_bookmarks_lead_to_the_pages(paper):
    printed, reader = paper
    sheets = sheets_of(printed, reader)
    found = set()
    for sheet in range(sheets["intro"].start):
        found |= {sheet_of(reader, link) for link in links(reader.pages[sheet])}
    assert found == {numbers.start for numbers in sheets.values()}
    titles = []

    def walk(items):
        for item in items:
            walk(item) if isinstance(item, list) else titles.append(item.title)

    walk(reader.outline)
    for name in NAMES:
        assert {h.text for h in printed[name].headings if h.level <= 2} <= set(titles)


def test_links_inside_the_book_stay_inside_the_pdf(paper):
    printed, reader = paper
    sheets = sheets_of(printed, reader)
    inside = [link for page in reader.pages for link in links(page) if "/Dest" in link]
    outside = [link for page in reader.pages for link in links(page) if "/Dest" not in link]
    assert len(outside) > 100
    assert {urlsplit(link["/A"]["/URI"]).scheme for link in outside} <= {"https", "http"}
    assert not [link for link in outside if "127.0.0.1" in link["/A"]["/URI"]]
    # A term leads to its entry and a citation to its work; only a link to a page has no height.
    assert len(inside) > 60
    precise = [link for link in inside if isinstance(link["/Dest"][3], float)]
    assert len(precise) > 0.5 * len(inside)
    entries = {
        sheet_of(reader, link)
        for sheet in sheets["chapters/01_architecture"]
        for link in links(reader.pages[sheet])
        if "/Dest" in link
    }
    assert len(entries & set(sheets["chapters/glossary"])) > 3


def test_nothing_is_cut_off_and_figures_are_on_the_paper(paper, book):
    printed, reader = paper
    assert {name: page.cut_off for name, page in printed.items()} == dict.fromkeys(NAMES, ())
    name = "chapters/01_architecture"
    source = (book / f"{name}.html").read_text(encoding="utf-8")
    captions = re.findall(r"<figcaption[^>]*>(.*?)</figcaption>", source, re.DOTALL)
    assert len(captions) > 5
    text = "".join(plain(reader.pages[i].extract_text()) for i in sheets_of(printed, reader)[name])
    for caption in captions:
        words = plain(unescape(re.sub(r"<[^>]+>", "", caption)))
        assert words[:60] in text


def test_what_would_be_cut_off_is_told(tmp_path):
    from pypdf import PdfReader

    from tools.print_pages import printer, served

    (tmp_path / "wide.html").write_text(
        '<!doctype html><article><h1>Wide</h1><div style="width:1500px">far out</div></article>'
    )
    target = tmp_path / "wide.pdf"

    def print_page():
        with served(tmp_path) as url, printer() as chromium:
            return chromium.print(f"{url}wide.html", target, head="On top", first_page=7)

    printed = apart(print_page)
    assert [line.split(":")[0] for line in printed.cut_off] == ["div"]
    assert [(h.level, h.text) for h in printed.headings] == [(1, "Wide")]
    text = PdfReader(target).pages[0].extract_text()
    assert "On top" in text and re.search(r"\b7\b", text)
