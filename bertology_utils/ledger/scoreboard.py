"""Every claim on one page: a table that filters and sorts, and is whole without a script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from importlib.resources import files
from pathlib import Path

from .claims import load_claims
from .tables import DISCUSSED, NOT_RUN, Row, html_head, html_row, rows
from .verdicts import VERDICTS

#: every status a row can have, in the order of the figure and the filters
STATUSES = (*VERDICTS, DISCUSSED, NOT_RUN)


@dataclass(frozen=True)
class Scoreboard:
    """All claims beside what one model did with them.

    Attributes:
        rows: the claims in the order of the ledger.
        pages: address of the page of each chapter number ("02") that is part of the book.
    """

    rows: tuple[Row, ...]
    pages: Mapping[str, str]

    def counts(self) -> dict[str, dict[str, int]]:
        """Section title -> status -> number of rows, both in order, zeros included."""
        titles = load_claims().sections
        found: dict[str, Counter[str]] = {}
        for row in self.rows:
            found.setdefault(titles[row.claim.section], Counter())[row.status] += 1
        return {
            title: {status: count[status] for status in STATUSES} for title, count in found.items()
        }

    def total(self, status: str) -> int:
        """Number of rows with this status."""
        return sum(row.status == status for row in self.rows)

    def to_html(self) -> str:
        """The table, with the script that adds filters and sorting behind it."""
        body = "\n".join(html_row(row, self.pages.get(row.claim.chapter)) for row in self.rows)
        return (
            '<div class="scoreboard"><div class="scoreboard-controls"></div>'
            f'<p class="scoreboard-count" aria-live="polite">{len(self.rows)} claims</p>'
            '<div class="ledger-table" role="region" aria-label="All claims" tabindex="0">'
            f"<table><thead><tr>{html_head()}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
            f"<script>{_script()}</script></div>"
        )

    def __repr__(self) -> str:
        done = ", ".join(f"{self.total(s)} {s}" for s in STATUSES if self.total(s))
        return f"Scoreboard of {len(self.rows)} claims: {escape(done)}"

    _repr_html_ = to_html


def scoreboard(
    model: str | None = None, *, pages: Mapping[str, str] | None = None, root: Path | None = None
) -> Scoreboard:
    """All claims for a model (the default encoder's name unless given).

    Args:
        pages: chapter number -> address, for the links; chapters left out get none.

    Raises:
        ResultFileError: a stored result cannot be read.
    """
    return Scoreboard(rows(model, root=root), dict(pages or {}))


@lru_cache(maxsize=1)
def _script() -> str:
    return files(__package__).joinpath("scoreboard.js").read_text(encoding="utf-8")
