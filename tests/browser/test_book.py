"""Every page of the built book, in a real browser with the network cut off."""

import re
from pathlib import Path

import pytest
from visit import DESKTOP, PHONE, Visit, Visitor, comes_to, settle

#: What a page may weigh at first load as static hosts send it, without the playground's model.
MAX_PAGE_BYTES = 3_000_000


def test_the_address_of_the_book_leads_to_its_first_page(visitor: Visitor):
    page, seen = visitor.open("")
    try:
        page.wait_for_url("**/intro.html")
        settle(page)
        assert page.locator("article h1").count() == 1
        assert seen.failed == seen.outside == []
    finally:
        page.context.close()


def test_the_page_loads_in_full(visit: Visit):
    assert visit.status == 200
    assert visit.seen.failed == []


def test_the_console_stays_empty(visit: Visit):
    assert visit.seen.console == []


def test_no_request_leaves_the_host(visit: Visit):
    assert visit.seen.outside == []


def test_pictures_and_frames_say_what_they_show(visit: Visit):
    assert visit.unnamed == []


@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_nothing_sticks_out(visit: Visit, width: int):
    assert visit.overflow[width] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(visit: Visit, theme: str):
    assert visit.faint[theme] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit: Visit, theme: str):
    """With every box unfolded and every widget moved away from its first state."""
    assert visit.axe[theme] == []


def test_the_first_load_stays_light(visit: Visit):
    assert visit.seen.loaded_bytes < MAX_PAGE_BYTES


def test_every_attention_view_draws_and_answers_the_pointer(
    visit: Visit, visitor: Visitor, page_name: str
):
    assert visit.frames_drawn == visit.frames
    if not visit.frames:
        return
    page, _ = visitor.open(page_name)
    try:
        visitor.draw_frames(page)
        settle(page)
        for view in page.locator("iframe.bx-frame:visible").all():
            view.scroll_into_view_if_needed()
            frame = view.element_handle().content_frame()
            if frame.locator("body.head_view").count():
                lines_of_a_hovered_token(page, frame)
            else:
                lines_of_an_enlarged_head(page, frame)
    finally:
        page.context.close()


def lines_of_a_hovered_token(page, frame) -> None:
    tokens = frame.locator("#left text").count()
    heads = frame.locator("rect[role='checkbox']").count()
    assert frame.locator("#attention line").count() >= heads * tokens
    frame.locator("#left text").nth(tokens // 2).hover()
    visible = frame.locator("#attention line[visibility='visible']")
    of_tokens = "lines => lines.map(l => l.getAttribute('left-token-index'))"
    # All lines of this token, and of no other, with every head's share of them.
    one = {str(tokens // 2)}
    assert comes_to(page, lambda: set(visible.evaluate_all(of_tokens)), one) == one
    assert frame.locator("#attention").get_attribute("visibility") == "hidden"
    frame.locator("#said", has_text="attends to").wait_for()
    frame.locator("#right text").nth(0).hover()
    frame.locator("#said", has_text="is attended to by").wait_for()
    frame.locator("select#layer").hover()
    assert comes_to(page, visible.count, 0) == 0
    assert frame.locator("#attention").get_attribute("visibility") == "visible"


def lines_of_an_enlarged_head(page, frame) -> None:
    assert frame.locator(".detail").count() == 0
    frame.locator("rect[role='button']").first.click()
    groups = frame.locator(".attn-line-group")
    groups.first.wait_for(state="attached")  # all of them are drawn at once
    tokens = groups.count()
    frame.locator("text.token").nth(tokens // 2).hover()
    opacity = "groups => groups.map(g => getComputedStyle(g).opacity)"
    one = ["1" if i == tokens // 2 else "0" for i in range(tokens)]
    assert comes_to(page, lambda: groups.evaluate_all(opacity), one) == one


def test_every_explorer_can_be_worked_by_keyboard(book, visitor: Visitor, page_name: str):
    if not has_explorers(book / page_name):
        return
    page, seen = visitor.open(page_name)
    try:
        settle(page)
        for explorer in page.locator(".bx-widget").all():
            work_by_keyboard(explorer)
        assert seen.console == []
    finally:
        page.context.close()


@pytest.mark.parametrize("folder", ["", "zh"])
def test_every_chapter_has_three_things_to_play_with(book, folder: str):
    """All of them are worked by the other tests of this file (the English ones stand for both)."""
    few = {}
    for path in (book / folder / "chapters").glob("[0-9][0-9]_*.html"):
        text = path.read_text(encoding="utf-8")
        # A view of attention inside an explorer lies in a template, and counts with it.
        shown = re.sub("<template>.*?</template>", "", text, flags=re.S)
        found = text.count('class="bx-widget"') + shown.count("<iframe")
        if found < 3:
            few[path.name] = found
    assert few == {}


def has_explorers(path: Path) -> bool:
    return 'class="bx-widget"' in path.read_text(encoding="utf-8")


def work_by_keyboard(explorer) -> None:
    shown = explorer.locator(".bx-shown").first
    assert has_something_to_see(shown)
    before = shown.inner_html()
    changed = False
    controls = explorer.locator(".bx-controls").first.locator("select, input")
    assert controls.count() > 0
    for control in controls.all():
        # Up or down, whichever way there is another setting.
        start = control.input_value()
        control.press("ArrowDown")
        if control.input_value() == start:
            control.press("ArrowUp")
        assert control.input_value() != start or control.locator("option").count() == 1
        changed = changed or shown.inner_html() != before
        assert has_something_to_see(shown)
    assert changed, "no control changes what is shown"
    assert explorer.locator("[aria-live]").first.inner_text().startswith("Showing ")


def has_something_to_see(place) -> bool:
    return place.evaluate(
        "node => node.innerText.trim() !== '' || node.querySelector('svg, img, iframe') !== null"
    )


def test_without_scripts_every_explorer_still_shows_its_first_state(
    book, visitor: Visitor, page_name: str
):
    if not has_explorers(book / page_name):
        return
    page, _ = visitor.open(page_name, java_script_enabled=False)
    try:
        for explorer in page.locator(".bx-widget").all():
            shown = explorer.locator(".bx-shown").first
            box = shown.bounding_box()
            assert box is not None and box["height"] > 10
            drawn = shown.locator("svg, img, iframe").count()
            assert drawn or shown.inner_text().strip()
    finally:
        page.context.close()


def test_attention_views_follow_the_theme(visit: Visit):
    expected = {"light": {"rgb(255, 255, 254)"}, "dark": {"rgb(18, 18, 18)"}}
    assert visit.papers == (expected if visit.frames else {"light": set(), "dark": set()})
