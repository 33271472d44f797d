"""The page of all claims: whole without a script, linked where a page exists, counted right."""

from html.parser import HTMLParser

import pytest

from bertology_utils import ledger

MODEL = "some-model"


class Rows(HTMLParser):
    """Rows of the table body with their data attributes and the addresses inside."""

    def __init__(self):
        super().__init__()
        self.rows, self.scripts = [], 0

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "tr" and "data-verdict" in attrs:
            self.rows.append((attrs, []))
        if tag == "a" and self.rows:
            self.rows[-1][1].append(attrs["href"])
        self.scripts += tag == "script"


@pytest.fixture
def root(tmp_path):
    claim = ledger.load_claims()["SYN-13"]
    found = ledger.Measurement(
        value=0.9,
        unit=claim.measure.unit,
        n=200,
        model=MODEL,
        seed=0,
        interval=(0.85, 0.94),
        baselines={name: 0.5 for name in claim.measure.baselines},
    )
    ledger.record("SYN-13", found, root=tmp_path)
    return tmp_path


def parsed(board):
    rows = Rows()
    rows.feed(board.to_html())
    return rows


def test_every_claim_has_a_row_and_a_status(root):
    board = ledger.scoreboard(MODEL, root=root)
    found = parsed(board)
    assert len(found.rows) == len(ledger.load_claims()) == 250
    assert {attrs["data-verdict"] for attrs, _ in found.rows} <= set(ledger.STATUSES)
    assert sum(sum(row.values()) for row in board.counts().values()) == 250
    assert sum(board.total(status) for status in ledger.STATUSES) == 250
    assert found.scripts == 1


def test_rows_link_to_pages_that_exist_and_only_to_those(root):
    board = ledger.scoreboard(MODEL, pages={"02": "02_syntax.html"}, root=root)
    inside = [
        href for _, links in parsed(board).rows for href in links if not href.startswith("http")
    ]
    claims = ledger.load_claims()
    wanted = [f"02_syntax.html#{c.anchor}" for c in claims.select(chapter="02")]
    assert inside == wanted
    assert not [
        href
        for _, links in parsed(ledger.scoreboard(MODEL, root=root)).rows
        for href in links
        if not href.startswith("http")
    ]


def test_a_recorded_claim_shows_its_verdict_and_the_rest_are_not_run(root):
    board = ledger.scoreboard(MODEL, root=root)
    by_id = {row.claim.id: row for row in board.rows}
    assert by_id["SYN-13"].status == ledger.verdict("SYN-13", by_id["SYN-13"].record.outcome).word
    discussed = sum(c.mode == "discuss" for c in ledger.load_claims().values())
    assert board.total("discussed") == discussed
    assert board.total("not run") == 250 - discussed - 1
