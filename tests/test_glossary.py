"""The glossary is complete in both languages, and chapters link to terms it has."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "chapters" / "glossary.md").read_text(encoding="utf-8")
CHINESE = re.compile(r"[\u4e00-\u9fff]")
GROUPS = ("Architecture", "Workflow", "Knowledge", "Analysis")


def entries():
    """(names, English definition, Chinese definition) of every entry."""
    found = []
    for block in re.findall(r"^```\{glossary\}\n:sorted:\n\n(.*?)^```", PAGE, re.M | re.S):
        for entry in re.split(r"\n\n(?=\S)", block.strip()):
            lines = entry.splitlines()
            names = [line for line in lines if line and not line.startswith(" ")]
            paragraphs = [line.strip() for line in lines if line.startswith("  ")]
            found.append((names, *paragraphs))
    return found


def test_four_groups():
    assert re.findall(r"^## (\w+) · [\u4e00-\u9fff]{2}$", PAGE, re.M) == list(GROUPS)
    assert len(entries()) >= 90


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry[0][0])
def test_entry_is_in_both_languages(entry):
    names, english, chinese = entry
    assert len(names) == 2 and not CHINESE.search(names[0]) and CHINESE.search(names[1])
    assert not CHINESE.search(english) and english.endswith(".")
    assert CHINESE.search(chinese) and chinese.endswith("。")
    assert len(re.findall(r"[.?!](?= |$)", english.replace("et al. ", ""))) <= 2


def test_names_are_unique():
    names = [name.lower() for names, *_ in entries() for name in names]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_linked_terms_exist():
    known = {name.lower() for names, *_ in entries() for name in names}
    linked = {}
    for page in [*ROOT.glob("*.md"), *(ROOT / "chapters").glob("*.md")]:
        for role in re.findall(r"\{term\}`([^`]+)`", page.read_text(encoding="utf-8")):
            target = re.fullmatch(r".*<(.+)>", role)
            linked.setdefault((target[1] if target else role).lower(), page.name)
    assert {term: page for term, page in linked.items() if term not in known} == {}


def test_every_chapter_links_to_the_glossary():
    links = {
        page.name: page.read_text(encoding="utf-8").count("{term}`")
        for page in (ROOT / "chapters").glob("[0-9][0-9]_*.md")
    }
    assert {page: n for page, n in links.items() if n < 5} == {}
