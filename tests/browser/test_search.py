"""The book can be searched without a connection, from a server and from the disk."""

import pytest
from visit import PATIENCE, Visitor

#: A query and the page that must be among what is found.
QUERIES = [
    ("structural probe", "02_syntax.html"),
    ("perturbed masking", "02_syntax.html"),
    ("lottery ticket", "12_pruning_as_analysis.html"),
    ("WordPiece", "01_architecture.html"),
]


def hits(page) -> list[str]:
    """The addresses of what was found, once the search has ended."""
    page.locator("#search-results .search-summary").get_by_text("found").wait_for()
    links = page.locator("#search-results li a").evaluate_all("links => links.map(a => a.href)")
    return [link.split("?")[0].split("#")[0] for link in links]


@pytest.mark.parametrize(("query", "wanted"), QUERIES)
def test_a_phrase_leads_to_the_page_about_it(visitor: Visitor, query: str, wanted: str):
    page, seen = visitor.open(f"search.html?q={query}")
    try:
        assert any(link.endswith(f"/chapters/{wanted}") for link in hits(page))
        assert seen.outside == [] and seen.failed == []
    finally:
        page.context.close()


def test_the_field_on_a_page_leads_to_the_results_and_on_to_the_page(visitor: Visitor):
    page, seen = visitor.open("syllabus.html")
    try:
        page.keyboard.press("Control+k")
        field = page.locator("input[name=q]:visible").first
        field.fill("lottery ticket")
        field.press("Enter")
        page.wait_for_url("**/search.html?q=lottery+ticket*")
        assert hits(page)
        page.locator("#search-results li a").first.click()
        page.wait_for_url(lambda url: "/search.html" not in url)
        page.locator("article h1").first.wait_for()
        assert seen.outside == []
    finally:
        page.context.close()


def test_what_is_nowhere_is_not_found(visitor: Visitor):
    page, _ = visitor.open("search.html?q=zyzzyvaquux")
    try:
        page.locator("#search-results .search-summary").get_by_text("did not match").wait_for()
        assert page.locator("#search-results li").count() == 0
    finally:
        page.context.close()


def test_a_book_opened_from_the_disk_can_be_searched(book, browser):
    context = browser.new_context()
    try:
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(f"{(book / 'search.html').as_uri()}?q=lottery ticket")
        assert any(link.endswith("/chapters/12_pruning_as_analysis.html") for link in hits(page))
    finally:
        context.close()
