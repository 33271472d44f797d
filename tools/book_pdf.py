"""The whole book as one PDF: title, contents, every page in order, bookmarks, links that work.

Chromium prints the built pages one by one; here they are numbered through, joined, and linked.
"""

from __future__ import annotations

import argparse
import html
import re
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import yaml
from pypdf import PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    DictionaryObject,
    FloatObject,
    IndirectObject,
    NameObject,
    NullObject,
    TextStringObject,
)
from sphinx_external_toc.parsing import parse_toc_yaml

from bertology_utils.writing import NotWrittenError, whole_file
from tools.print_pages import Heading, Printed, PrintError, printer, served

ROOT = Path(__file__).resolve().parent.parent
_HREF = re.compile(r'<a\b[^>]*?\bhref="([^"]*)"')
# An address that only this file reads: a page of the book, before it is a place in the PDF.
_BOOK = "book:/"


@dataclass(frozen=True)
class Part:
    """Pages that stand together; the first page of the book is a part without a caption."""

    caption: str
    pages: tuple[str, ...]


def read_parts(root: Path) -> list[Part]:
    """Return the book's parts, in reading order."""
    toc = parse_toc_yaml(root / "_toc.yml")
    parts = [Part("", (toc.root.docname,))]
    for tree in toc.root.subtrees:
        pages = tuple(str(item).removesuffix(".md") for item in tree.items)
        parts.append(Part(tree.caption or "", pages))
    return parts


def make_pdf(root: Path, pages: Path, target: Path, parts: list[Part]) -> dict[str, Printed]:
    """Write ``parts`` of the book built in ``pages`` to ``target``; return what was printed.

    Raises:
        PrintError: a page is missing, or Chromium is.
    """
    names = [name for part in parts for name in part.pages]
    anchors = _anchors_between(pages, names)
    printed: dict[str, Printed] = {}
    first: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as place, printer() as chromium:
        folder, sheet = Path(place), 1
        with served(pages) as base:
            for number, name in enumerate(names):
                title = _title(pages / f"{name}.html")
                printed[name] = chromium.print(
                    f"{base}{name}.html",
                    folder / f"{number}.pdf",
                    head=title,
                    first_page=sheet,
                    anchors=anchors[name],
                )
                first[name] = sheet
                sheet += printed[name].sheets
        (folder / "front.html").write_text(_front(root, parts, printed, first), encoding="utf-8")
        with served(folder) as shelf:
            front = chromium.print(f"{shelf}front.html", folder / "front.pdf")
        _join(root, front, printed, parts, base, target)
    return printed


def _anchors_between(pages: Path, names: list[str]) -> dict[str, set[str]]:
    """Return, for every page, the places on it that other pages link to."""
    wanted = defaultdict(set)
    for name in names:
        path = pages / f"{name}.html"
        if not path.is_file():
            raise PrintError(f"the built book has no page {name}; run: make book")
        for address in _HREF.findall(path.read_text(encoding="utf-8")):
            there = urlsplit(urljoin(f"{_BOOK}/{name}.html", html.unescape(address)))
            page = there.path.strip("/").removesuffix(".html")
            if there.scheme == "book" and there.fragment and page != name:
                wanted[page].add(unquote(there.fragment))
    return wanted


def _title(path: Path) -> str:
    found = re.search(r"<title>(.*?)</title>", path.read_text(encoding="utf-8"), re.DOTALL)
    return html.unescape(found[1]).partition(" — ")[0].strip() if found else ""


def _front(
    root: Path, parts: list[Part], printed: dict[str, Printed], first: dict[str, int]
) -> str:
    """The title page and the contents, as HTML."""
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    title, _, subtitle = citation["title"].partition(": ")
    lines = []
    for part in parts:
        if part.caption:
            lines.append(f'<li class="part">{html.escape(part.caption)}</li>')
        for name in part.pages:
            top = _top(name, printed[name])
            lines.append(
                f'<li><a href="{_BOOK}{name}.html">{html.escape(top.text)}</a>'
                f"<span></span>{first[name]}</li>"
            )
    return f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 11pt/1.5 sans-serif; }} .title {{ break-after: page; }}
.title h1 {{ font-size: 34pt; margin: 0 0 4mm; padding-top: 60mm; }}
.title p {{ max-width: 130mm; }}
.title .below {{ margin-top: 45mm; font-size: 9.5pt; }}
ol {{ list-style: none; padding: 0; }} li {{ display: flex; break-inside: avoid; }}
li span {{ flex: 1; border-bottom: 1px dotted #888; margin: 0 2mm 1.2mm; }}
li.part {{ font-weight: bold; margin-top: 3mm; break-after: avoid; }} a {{ color: inherit; }}
</style><main><div class="title"><h1>{html.escape(title)}</h1><p>{html.escape(subtitle)}</p>
<div class="below"><p>Version {citation["version"]}, printed from the built pages: every table and
figure is what that build measured.</p>
<p>On paper, answers, hints and folded code stay folded, and widgets show the state in which they
start. The pages have all of them, and each chapter as a notebook to run.</p>
<p>{html.escape(citation["license"])} licence.</p></div></div>
<h2>Contents</h2><ol>{"".join(lines)}</ol></main></html>"""


def _top(name: str, printed: Printed) -> Heading:
    for heading in printed.headings:
        if heading.level == 1:
            return heading
    raise PrintError(f"{name} has no title")


class _Places:
    """Where the pages of the book, and the places in them, ended up in the PDF."""

    def __init__(self) -> None:
        self.start: dict[str, int] = {}
        self._named: dict[tuple[str, str], tuple[int, float]] = {}

    def add(self, name: str, start: int, reader: PdfReader) -> None:
        """Remember a page that begins at sheet ``start``, counted from 0."""
        self.start[name] = start
        for anchor, place in reader.named_destinations.items():
            sheet = reader.get_destination_page_number(place)
            if sheet is not None and sheet >= 0:
                key = (name, unquote(anchor.removeprefix("/")))
                self._named[key] = (start + sheet, float(place.top or 0))

    def find(self, name: str, anchor: str = "") -> tuple[int, float | None]:
        """Return sheet and height; a place without a name of its own is the page's beginning."""
        return self._named.get((name, anchor), (self.start[name], None))


def _join(
    root: Path,
    front: Printed,
    printed: dict[str, Printed],
    parts: list[Part],
    base: str,
    target: Path,
) -> None:
    writer, places = PdfWriter(), _Places()
    writer.append(PdfReader(front.path), import_outline=False)
    front_sheets = len(writer.pages)
    for name, page in printed.items():
        reader = PdfReader(page.path)
        places.add(name, len(writer.pages), reader)
        _name_places(reader, name, base)
        writer.append(reader, import_outline=False)
    _link(writer, places)
    for part in parts:
        above = None
        if part.caption:
            above = _bookmark(writer, part.caption, places.start[part.pages[0]], None)
        for name in part.pages:
            top = _top(name, printed[name])
            chapter = _bookmark(writer, top.text, places.start[name], above)
            for heading in printed[name].headings:
                if heading.level == 2:
                    sheet, _ = places.find(name, heading.anchor)
                    _bookmark(writer, heading.text, sheet, chapter)
    writer.set_page_label(0, front_sheets - 1, style="/r")
    writer.set_page_label(front_sheets, len(writer.pages) - 1, style="/D", start=1)
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    writer.add_metadata({"/Title": citation["title"], "/Author": citation["authors"][0]["name"]})
    writer.root_object[NameObject("/Lang")] = TextStringObject("en")
    for names in ("/Dests", "/Names"):  # every link holds its place itself
        writer.root_object.pop(NameObject(names), None)
    writer.compress_identical_objects()
    with whole_file(target) as scratch, scratch.open("wb") as file:
        writer.write(file)


def _bookmark(writer: PdfWriter, title: str, sheet: int, above: IndirectObject | None):
    return writer.add_outline_item(title=title, page_number=sheet, parent=above)


def _annotations(page: DictionaryObject) -> list[DictionaryObject]:
    return [link.get_object() for link in page.get("/Annots", ArrayObject()).get_object()]


def _name_places(reader: PdfReader, name: str, base: str) -> None:
    """Give every link inside the book an address of its own kind, which survives the joining."""
    for page in reader.pages:
        for link in _annotations(page):
            if "/Dest" in link:
                anchor = str(link.pop(NameObject("/Dest"))).removeprefix("/")
                address = f"{_BOOK}{name}.html#{anchor}"
            elif (uri := str(link.get("/A", {}).get("/URI", ""))).startswith(base):
                address = _BOOK + uri.removeprefix(base)
            else:
                continue
            action = DictionaryObject({NameObject("/S"): NameObject("/URI")})
            action[NameObject("/URI")] = TextStringObject(address)
            link[NameObject("/A")] = action


def _link(writer: PdfWriter, places: _Places) -> None:
    """Let every address inside the book lead to its place in the PDF."""
    for page in writer.pages:
        kept = ArrayObject()
        for entry in page.get("/Annots", ArrayObject()).get_object():
            link = entry.get_object()
            address = str(link.get("/A", {}).get("/URI", ""))
            if address.startswith(_BOOK):
                there = urlsplit(address)
                name = there.path.strip("/").removesuffix(".html")
                if name not in places.start:
                    continue  # a notebook or a page's source: nothing that is on paper
                sheet, top = places.find(name, unquote(there.fragment))
                height = NullObject() if top is None else FloatObject(top)
                del link["/A"]
                link[NameObject("/Dest")] = ArrayObject(
                    [
                        writer.pages[sheet].indirect_reference,
                        NameObject("/XYZ"), NullObject(), height, NullObject(),
                    ]
                )  # fmt: skip
            kept.append(entry)
        page[NameObject("/Annots")] = kept


def main() -> int:
    """Print this checkout's built book."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=Path, default=ROOT / "_build" / "html")
    parser.add_argument("--out", type=Path, default=ROOT / "_build" / "bertology.pdf")
    arguments = parser.parse_args()
    try:
        printed = make_pdf(ROOT, arguments.pages, arguments.out, read_parts(ROOT))
    except (PrintError, NotWrittenError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(PdfReader(arguments.out).pages)} pages: {arguments.out}")
    cut_off = [f"{name}: {thing}" for name, page in printed.items() for thing in page.cut_off]
    if cut_off:
        print("Cut off at the margin:", *cut_off, sep="\n  ", file=sys.stderr)
    return bool(cut_off)


if __name__ == "__main__":
    sys.exit(main())
