"""Print pages of the built book with a headless Chromium, one PDF a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from pypdf import PdfReader

STYLE = Path(__file__).with_name("print.css")
#: milliseconds that a page or a drawing may take on a busy machine
PATIENCE = 120_000
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

# The theme reads these before it draws anything: figures have their light colours on paper.
_LIGHT = """
localStorage.setItem("mode", "light");
localStorage.setItem("theme", "light");
"""
# Drawings that wait until they are scrolled to, formulas, and pictures that load on demand.
_FINISH = """async () => {
  let drawn = true;
  for (const image of document.images) image.loading = "eager";
  for (const frame of document.querySelectorAll("iframe.bx-frame")) {
    frame.scrollIntoView();
    for (let waited = 0; frame.dataset.drawn !== "true"; waited += 100) {
      if (waited > 60000) { drawn = false; break; }
      await new Promise(resolve => setTimeout(resolve, 100));
    }
  }
  if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
  await Promise.all([...document.images].map(image => image.decode().catch(() => null)));
  await document.fonts.ready;
  scrollTo(0, 0);
  return drawn;
}"""
_HEADINGS = """() => [...document.querySelectorAll("article :is(h1, h2)")].map(heading => {
  const copy = heading.cloneNode(true), home = heading.closest("section[id], article");
  for (const link of copy.querySelectorAll(".headerlink")) link.remove();
  return {level: +heading.tagName[1], text: copy.textContent.trim(), anchor: home.id};
})"""
# A PDF knows a place by its name only if something in it leads there.
_LEAD_TO = """anchors => {
  const box = document.createElement("div");
  box.style.cssText = "position: absolute; top: 0; font-size: 1px; color: transparent";
  for (const anchor of anchors) {
    const link = document.createElement("a");
    link.href = "#" + encodeURIComponent(anchor);
    link.textContent = ".";
    box.append(link);
  }
  document.querySelector("article, main, body").prepend(box);
}"""
# Elements of the text that stand out at the right margin of the paper, where they are cut off.
_CUT_OFF = """() => {
  const edge = document.documentElement.clientWidth + 1, found = [];
  for (const node of document.querySelectorAll("article *")) {
    const box = node.getBoundingClientRect();
    if (box.width > 1 && box.right > edge
        && !node.closest("mjx-assistive-mml, details:not([open]), .visually-hidden")
        && getComputedStyle(node).visibility === "visible")
      found.push(`${node.tagName.toLowerCase()}: ${node.textContent.trim().slice(0, 40)}`);
  }
  return found;
}"""


@dataclass(frozen=True)
class Heading:
    """A title of a page or of one of its sections; ``anchor`` is where it is."""

    level: int
    text: str
    anchor: str


@dataclass(frozen=True)
class Printed:
    """One page as a PDF.

    Attributes:
        path: the file.
        headings: titles of levels one and two, in order.
        cut_off: what sticks out at the right margin, and would be cut off there.
        sheets: how many sheets of paper it takes.
    """

    path: Path
    headings: tuple[Heading, ...]
    cut_off: tuple[str, ...]
    sheets: int


class PrintError(RuntimeError):
    """The book cannot be printed; the message says what is missing or wrong."""


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Keep the terminal readable."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on the loopback address; yields the address, which ends in a slash."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))
    Thread(target=http.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{http.server_port}/"
    finally:
        http.shutdown()
        http.server_close()


@contextmanager
def printer() -> Iterator[Printer]:
    """Start Chromium.

    Raises:
        PrintError: Chromium or Playwright is missing.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise PrintError("Playwright is missing; run: make pdf") from error
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chrome")
    if chromium is None:
        raise PrintError("no Chromium found; install it (Debian: chromium), or set CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=list(FLAGS), timeout=PATIENCE
        )
        try:
            yield Printer(browser)
        finally:
            browser.close()


class Printer:
    """Turns addresses into PDFs on A4, in light colours."""

    # The text's width on the paper, in CSS pixels of 1/96 inch: 210 mm less the margins.
    TEXT_WIDTH = round((210 - 2 * 20) / 25.4 * 96)

    def __init__(self, browser) -> None:
        self._browser = browser

    def print(
        self,
        url: str,
        target: Path,
        *,
        head: str = "",
        first_page: int = 0,
        anchors: Iterable[str] = (),
    ) -> Printed:
        """Write the page at ``url`` to ``target``.

        Args:
            head: the running title on top of every sheet.
            first_page: number of the first sheet; 0 leaves all sheets without numbers and title.
            anchors: places that other pages link to, and that the PDF must therefore know.

        Raises:
            PrintError: there is no such page, or a drawing of it does not get ready.
        """
        context = self._browser.new_context(
            viewport={"width": self.TEXT_WIDTH, "height": 1000},
            color_scheme="light",
            reduced_motion="reduce",
        )
        try:
            context.set_default_timeout(PATIENCE)
            context.add_init_script(_LIGHT)
            page = context.new_page()
            page.emulate_media(media="print")
            answer = page.goto(url, wait_until="load")
            if not answer.ok:
                raise PrintError(f"{url} answers {answer.status}")
            style = STYLE.read_text(encoding="utf-8") + _margins(head, first_page)
            page.add_style_tag(content=style)
            drawn = page.evaluate(_FINISH)
            if not drawn:
                raise PrintError(f"{url}: an attention view does not get drawn")
            headings = [Heading(**found) for found in page.evaluate(_HEADINGS)]
            cut_off = page.evaluate(_CUT_OFF)
            wanted = sorted({*anchors, *(heading.anchor for heading in headings)} - {""})
            page.evaluate(_LEAD_TO, wanted)
            page.pdf(path=str(target), prefer_css_page_size=True, print_background=True)
            sheets = len(PdfReader(target).pages)
            return Printed(target, tuple(headings), tuple(cut_off), sheets)
        finally:
            context.close()


def _margins(head: str, first_page: int) -> str:
    if not first_page:
        return ""
    quoted = head.replace("\\", "\\\\").replace('"', '\\"')
    small = "font: 8pt sans-serif; color: #555;"
    return (
        f"html {{ --first-page: {first_page - 1}; }}\n"
        f'@page {{ @top-left {{ content: "{quoted}"; {small} }} '
        f"@bottom-right {{ content: counter(page); {small} }} }}"
    )
