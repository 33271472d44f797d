"""One look at a page: everything the tests ask about, gathered in a single load."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from time import monotonic
from typing import TypeVar
from urllib.parse import urlsplit

from book_server import Server

DESKTOP, PHONE = 1440, 390
LOOK = Path(__file__).with_name("look.js").read_text(encoding="utf-8")
#: Says whether a frame has reported that it is drawn.
DRAWN = "frame => frame.dataset.drawn === 'true'"
#: Milliseconds to wait for what a page does by itself. No test takes this long where all is well;
#: generous, since a machine may be busy with other things.
PATIENCE = 90_000
#: Findings of axe that block readers; the lesser ones are matters of taste.
SERIOUS = ("serious", "critical")


@dataclass
class Seen:
    """What the browser reported while a page was open."""

    console: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    loaded_bytes: int = 0


@dataclass(frozen=True)
class Visit:
    """What was seen of one page.

    Attributes:
        seen: console messages, requests that left the host, failed requests, bytes loaded.
        status: HTTP status of the page.
        frames_drawn, frames: how many attention frames drew themselves, of how many.
        papers: theme -> the background colours of the attention frames.
        unnamed: pictures and frames without a text of their own.
        overflow: width -> what sticks out of the page at that width.
        faint: theme -> texts whose contrast is too low.
        axe: theme -> serious and critical findings of axe-core.
    """

    seen: Seen
    status: int
    frames_drawn: int
    frames: int
    papers: dict[str, set[str]]
    unnamed: list[str]
    overflow: dict[int, list[str]]
    faint: dict[str, list[str]]
    axe: dict[str, list[str]]


# Each frame is looked at on its own, and no style sheet is fetched a second time.
_AXE = """async (within, rules) => {
  const how = { iframes: false, preload: false, resultTypes: ["violations"], ...rules };
  return (await axe.run(within, how)).violations;
}"""
_COLOURS = f"""() => {{
  const include = bertologyLook.looks();
  const rules = {{ runOnly: ["color-contrast", "link-in-text-block"] }};
  return include.length ? ({_AXE})({{ include }}, rules) : [];
}}"""
_ALL_ELSE = f"""() => ({_AXE})(document, {{
  rules: {{ "color-contrast": {{ enabled: false }}, "link-in-text-block": {{ enabled: false }} }},
}})"""


class Visitor:
    """Opens pages with the network cut off."""

    def __init__(self, browser, server: Server) -> None:
        self._browser, self._server = browser, server
        self._visits: dict[str, Visit] = {}
        self._axe = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")

    def open(self, name: str, *, width: int = DESKTOP, **context):
        """Open a page in a new context; return the Playwright page and what is seen of it.

        The page is loaded then; formulas, summaries of hits and the like may still be on their way.
        """
        opened = self._browser.new_context(
            viewport={"width": width, "height": 900},
            service_workers="block",
            color_scheme="light",
            **context,
        )
        seen = Seen()

        def route(asked) -> None:
            url = asked.request.url
            if urlsplit(url).netloc == self._server.host or url.startswith(("data:", "blob:")):
                asked.continue_()
            else:
                seen.outside.append(url)
                asked.abort()

        def heard(message) -> None:
            # The theme's scripts log what they do; warnings and errors are what must not be.
            if message.type in ("error", "warning"):
                seen.console.append(f"{message.type}: {message.text}")

        opened.route("**/*", route)
        page = opened.new_page()
        page.on("console", heard)
        page.on("pageerror", lambda error: seen.console.append(f"uncaught: {error}"))
        page.on("requestfailed", lambda request: seen.failed.append(f"failed: {request.url}"))

        def answered(response) -> None:
            if response.status >= 400:
                seen.failed.append(f"{response.status}: {response.url}")
            seen.loaded_bytes += int(response.headers.get("content-length", 0))

        page.on("response", answered)
        page.add_init_script(LOOK)
        page.set_default_timeout(PATIENCE)
        seen.status = page.goto(self._server.url + name, wait_until="load").status
        return page, seen

    def visit(self, name: str) -> Visit:
        """Return what there is to see of a page; it is opened once only."""
        if name not in self._visits:
            self._visits[name] = self._look(name)
        return self._visits[name]

    def _look(self, name: str) -> Visit:
        page, seen = self.open(name)
        try:
            drawn, total = self.draw_frames(page)
            settle(page)
            open_everything(page)
            faint, papers, overflow, axe = {}, {}, {}, {}
            for theme in ("dark", "light"):
                set_theme(page, theme)
                faint[theme] = self._in_all_frames(page, "bertologyLook.faint()")
                papers[theme] = {
                    frame.evaluate("getComputedStyle(document.body).backgroundColor")
                    for frame in page.frames[1:]
                }
                # Colours are all that a theme changes.
                axe[theme] = self.axe_findings(page, colours_only=theme == "dark")
            unnamed = self._in_all_frames(page, "bertologyLook.unnamed()")
            for width in (DESKTOP, PHONE):
                resize(page, width)
                self.draw_frames(page)
                overflow[width] = page.evaluate("bertologyLook.overflow()")
            page.wait_for_load_state("networkidle")
            # Closing the page breaks off what it still asks for, which is no failure of the page.
            seen = deepcopy(seen)
            return Visit(seen, seen.status, drawn, total, papers, unnamed, overflow, faint, axe)
        finally:
            page.context.close()

    @staticmethod
    def draw_frames(page) -> tuple[int, int]:
        """Scroll to every attention frame and wait until it is drawn; return drawn and all."""
        frames = page.locator("iframe.bx-frame:visible")
        total, drawn = frames.count(), 0
        for index in range(total):
            frames.nth(index).scroll_into_view_if_needed()
            handle = frames.nth(index).element_handle()
            try:
                page.wait_for_function(DRAWN, arg=handle, timeout=PATIENCE)
                drawn += 1
            except page_timeout():
                continue
        page.evaluate("scrollTo(0, 0)")
        return drawn, total

    @staticmethod
    def _in_all_frames(page, expression: str) -> list[str]:
        return [line for frame in page.frames for line in frame.evaluate(expression)]

    def axe_findings(self, page, *, colours_only: bool = False) -> list[str]:
        """Return the serious and critical findings of axe-core, frame by frame.

        Its rules about colours, the slowest by far, are asked of one text for every look.
        """
        findings = []
        for frame in page.frames:
            if not frame.evaluate("'axe' in globalThis"):
                frame.evaluate(self._axe + "\n;0")
            violations = frame.evaluate(_COLOURS)
            if not colours_only:
                violations += frame.evaluate(_ALL_ELSE)
            for violation in violations:
                if violation["impact"] in SERIOUS:
                    findings += [
                        f"{violation['id']}: {node['html'][:160]}" for node in violation["nodes"]
                    ]
        return findings


Look = TypeVar("Look")


def comes_to(page, look: Callable[[], Look], wanted: Look | Callable[[Look], bool]) -> Look:
    """Look at a page until there is what is wanted, or patience ends; return what was seen last.

    Asked from here, since a frame off screen has no animation frames to poll on, and the policy of
    the attention frames forbids the evaluation that polling by the clock would need.
    """
    fits = wanted if callable(wanted) else lambda seen: seen == wanted
    end = monotonic() + PATIENCE / 1000
    while not fits(seen := look()) and monotonic() < end:
        page.wait_for_timeout(50)
    return seen


def settle(page) -> None:
    """Wait until the page's formulas and letters are there, and nothing fades or slides."""
    page.evaluate("bertologyLook.settled()")


def resize(page, width: int, height: int = 900) -> None:
    """Give the page another width, and wait until its scripts have followed."""
    page.set_viewport_size({"width": width, "height": height})
    page.wait_for_function("width => innerWidth === width", arg=width)
    settle(page)


def open_everything(page) -> None:
    """Unfold what is folded, and move every control of a widget to its last setting."""
    page.evaluate(
        """() => {
          for (const box of document.querySelectorAll("article details")) box.open = true;
          const controls = "article :is(.bx-controls, #pg-root) :is(select, input[type=range])";
          for (const control of document.querySelectorAll(controls)) {
            if (control.options) control.selectedIndex = control.options.length - 1;
            else control.value = control.max;
            for (const kind of ["input", "change"])
              control.dispatchEvent(new Event(kind, { bubbles: true }));
          }
        }"""
    )
    settle(page)
    # The playground follows its text after a pause, and the theme looks at what was unfolded after
    # another. Timers of one page come in order, so the page's own clock is what counts.
    page.evaluate("() => new Promise((resolve) => setTimeout(resolve, 700))")
    settle(page)


def set_theme(page, theme: str) -> None:
    """Switch the page to a theme, the way the theme's own button does, and let frames follow."""
    page.evaluate(
        "theme => { document.documentElement.dataset.mode = theme;"
        " document.documentElement.dataset.theme = theme; }",
        theme,
    )

    def late() -> list[str]:
        return [
            frame.name
            for frame in page.frames[1:]
            if frame.evaluate("document.documentElement.dataset.theme") != theme
        ]

    behind = comes_to(page, late, [])
    assert not behind, f"{len(behind)} frames did not follow the page to the {theme} theme"
    settle(page)  # the theme fades its colours over


def page_timeout() -> type[Exception]:
    """Playwright's timeout error, imported where Playwright is known to be there."""
    from playwright.sync_api import TimeoutError

    return TimeoutError
