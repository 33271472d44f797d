"""A local server for the built book, and a Chromium that can reach nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from book_server import Server
from visit import PATIENCE, Visit, Visitor

REPOSITORY = Path(__file__).resolve().parents[2]
#: Another built book can be tested by naming its folder here.
BOOK = Path(os.environ.get("BERTOLOGY_BOOK", REPOSITORY / "_build" / "html"))
#: Chromium without its own chatter, and without a resolver that knows any host.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)


#: The Chinese pages have the code, figures and widgets of the English ones; some stand for all.
CHINESE_PAGES = ("zh/intro.html", "zh/chapters/glossary.html", "zh/chapters/09_training.html")


def book_pages() -> list[str]:
    """Name every page of the built book that is looked at; empty when there is no book."""
    if not (BOOK / "index.html").is_file():
        return []
    paths = (path.relative_to(BOOK) for path in BOOK.rglob("*.html"))
    paths = (path for path in paths if path.parts[0] != "zh" or path.as_posix() in CHINESE_PAGES)
    pages = sorted(str(path) for path in paths if not path.parts[0].startswith("_"))
    return [name for name in pages if name != "index.html"]  # only leads to the first page


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "page_name" in metafunc.fixturenames:
        # Without a book one case remains, which fails with the reason: nothing is skipped.
        metafunc.parametrize("page_name", book_pages() or ["(no book)"], scope="session")


@pytest.fixture(scope="session")
def book() -> Path:
    """The folder of the built book."""
    if not book_pages():
        pytest.fail(f"there is no built book in {BOOK}; run `make book` first", pytrace=False)
    return BOOK


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """A headless Chromium."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.fail("Playwright is missing; run `make browser-test`", pytrace=False)
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chrome")
    if chromium is None:
        pytest.fail(
            "no Chromium found: install Debian's package chromium, or set CHROMIUM to its path",
            pytrace=False,
        )
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=chromium, args=list(FLAGS), timeout=PATIENCE * 4
        )
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def visitor(book: Path, browser) -> Iterator[Visitor]:
    """Opens pages of the book, each once, and remembers what it saw."""
    with Server(book) as server:
        yield Visitor(browser, server)


@pytest.fixture
def visit(visitor: Visitor, page_name: str) -> Visit:
    """What was seen of one page."""
    return visitor.visit(page_name)


@pytest.fixture
def open_html(browser, tmp_path: Path) -> Iterator:
    """Open a piece of HTML as a page of its own; return the Playwright page."""
    opened = []
    with Server(tmp_path) as server:
        visitor = Visitor(browser, server)

        def open_(body: str, theme: str = "light", width: int = 1440):
            (tmp_path / "page.html").write_text(
                f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8">'
                '<meta name="viewport" content="width=device-width, initial-scale=1">'
                f"<title>piece</title></head><body><main>{body}</main></body></html>",
                encoding="utf-8",
            )
            page, seen = visitor.open("page.html", width=width)
            opened.append(page)
            visitor.draw_frames(page)
            return page, seen

        yield open_
        for page in opened:
            page.context.close()
