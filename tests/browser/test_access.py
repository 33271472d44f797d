"""What the whole book owes to readers with a keyboard, and to readers who avoid motion."""

import pytest
from visit import Visitor, settle

PAGES = ("intro.html", "chapters/01_architecture.html", "zh/intro.html")


@pytest.mark.parametrize("name", PAGES)
def test_the_first_stop_of_the_keyboard_skips_to_the_text(visitor: Visitor, name: str):
    page, _ = visitor.open(name)
    try:
        settle(page)
        page.keyboard.press("Tab")
        link = page.evaluate("document.activeElement.getAttribute('href')")
        assert link == "#main-content"
        # It slides into view.
        page.wait_for_function(
            """() => {
              const box = document.querySelector("#pst-skip-link").getBoundingClientRect();
              return box.top >= 0 && box.height > 10;
            }"""
        )
        page.keyboard.press("Enter")
        page.wait_for_function("location.hash === '#main-content'")
        page.keyboard.press("Tab")
        page.wait_for_function("!!document.activeElement?.closest('#main-content')")
    finally:
        page.context.close()


@pytest.mark.parametrize("name", PAGES[:2])
def test_nothing_moves_for_readers_who_asked_for_less_motion(visitor: Visitor, name: str):
    page, _ = visitor.open(name, reduced_motion="reduce")
    try:
        moving = page.evaluate(
            """() => [...document.querySelectorAll("*")].filter((node) => {
              const style = getComputedStyle(node);
              const seconds = (text) => Math.max(...text.split(",").map(parseFloat));
              return seconds(style.transitionDuration) > 0.01
                || (style.animationName !== "none" && seconds(style.animationDuration) > 0.01)
                || style.scrollBehavior === "smooth";
            }).map((node) => node.outerHTML.slice(0, 80))"""
        )
        assert moving == []
    finally:
        page.context.close()


def test_every_stop_of_the_keyboard_can_be_seen(visitor: Visitor):
    page, _ = visitor.open("chapters/00_prerequisites.html")
    try:
        settle(page)
        unseen = []
        for _ in range(70):
            page.keyboard.press("Tab")
            unseen += page.evaluate(
                """async () => {
                  await bertologyLook.settled();  // some rings fade in
                  const at = document.activeElement;
                  if (!at || at === document.body) return [];
                  const style = getComputedStyle(at);
                  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
                  return ring || style.boxShadow !== "none" ? [] : [at.outerHTML.slice(0, 120)];
                }"""
            )
        assert unseen == []
    finally:
        page.context.close()
