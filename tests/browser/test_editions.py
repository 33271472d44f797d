"""The Chinese edition: found from any page, read out as Chinese, searched without a connection."""

import re

import pytest
from visit import PHONE, Visitor, comes_to

PAGES = ("intro.html", "chapters/09_training.html", "chapters/glossary.html", "search.html")
SWITCH = "nav.language-switch a"


@pytest.mark.parametrize("name", PAGES)
def test_the_switch_leads_to_the_same_page_and_back_without_scripts(visitor: Visitor, name: str):
    page, _ = visitor.open(name, width=PHONE, java_script_enabled=False)
    try:
        start = page.url
        page.locator(SWITCH).focus()
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/zh/{name}")
        assert page.locator("html").get_attribute("lang") == "zh-CN"
        page.locator(SWITCH).focus()
        page.keyboard.press("Enter")
        page.wait_for_url(start)
    finally:
        page.context.close()


def test_the_switch_is_reached_by_the_tab_key_and_shows_its_focus(visitor: Visitor):
    page, _ = visitor.open("zh/intro.html")
    try:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches('{SWITCH}')"):
                break
        else:
            pytest.fail("the switch is not reached by the Tab key")
        assert page.locator(SWITCH).evaluate(
            "a => { const s = getComputedStyle(a);"
            " return s.outlineStyle !== 'none' || s.boxShadow !== 'none'; }"
        )
    finally:
        page.context.close()


def test_what_is_not_translated_is_marked_as_english(visitor: Visitor):
    page, _ = visitor.open("zh/chapters/09_training.html")
    try:
        han = "t => /[\\u4e00-\\u9fff]/.test(t)"
        # A list of works names people in their own script.
        said = page.locator("article p:not(:has(.bibtex-citation))").evaluate_all(
            f"ps => ps.map(p => [p.innerText, !!p.closest('[lang=en]'), ({han})(p.innerText)])"
        )
        prose = [(lang, chinese) for text, lang, chinese in said if len(text.split()) > 6]
        assert prose and all(lang != chinese for lang, chinese in prose)
        outputs = page.locator("article .cell_output")
        assert outputs.count() and outputs.evaluate_all("os => os.every(o => o.lang === 'en')")
    finally:
        page.context.close()


def test_chinese_in_the_english_glossary_is_marked_as_chinese(visitor: Visitor):
    page, _ = visitor.open("chapters/glossary.html")
    try:
        unmarked = page.evaluate(
            """() => {
              const walk = document.createTreeWalker(document.querySelector("article"), 4);
              const found = [];
              while (walk.nextNode()) {
                const lang = walk.currentNode.parentElement.closest("[lang]").lang;
                if (/[\\u4e00-\\u9fff]/.test(walk.currentNode.data) && lang !== "zh-CN")
                  found.push(walk.currentNode.data);
              }
              return found;
            }"""
        )
        assert unmarked == []
    finally:
        page.context.close()


@pytest.mark.parametrize(
    ("query", "wanted"),
    [("注意力头", "glossary"), ("遮住什么", "09_training"), ("selectivity", "glossary")],
)
def test_chinese_can_be_searched(visitor: Visitor, query: str, wanted: str):
    page, seen = visitor.open(f"zh/search.html?q={query}")
    try:
        # Hits arrive one by one, and their number at the end; each then fetches its page to show
        # a piece of it.
        page.locator("#search-results .search-summary", has_text=re.compile(r"\S")).wait_for()
        assert page.locator(f"#search-results li a[href*='{wanted}']").count() > 0
        bare = page.locator("#search-results li").filter(has_not=page.locator(".context"))
        assert comes_to(page, bare.count, 0) == 0
        assert seen.console == seen.outside == seen.failed == []
    finally:
        page.context.close()


def test_a_phrase_that_no_page_has_is_not_found(visitor: Visitor):
    page, _ = visitor.open("zh/search.html?q=糖醋鲤鱼")
    try:
        page.locator("#search-results .search-summary").get_by_text("没有").wait_for()
        assert page.locator("#search-results li").count() == 0
    finally:
        page.context.close()
