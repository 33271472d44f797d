"""The claims of a chapter, one at a time: what is claimed, and where everything measured lies."""

from __future__ import annotations

from html import escape
from pathlib import Path

from .. import ledger
from ..ledger.tables import DISCUSSED, Row, number
from ..page import Display, dot_table, stack
from .page_half import explorer


def claims(chapter: str, model: str | None = None, root: Path | None = None) -> Display:
    """Return an explorer of a chapter's claims: the value, its interval and baselines on one line.

    Args:
        chapter: its number, such as ``"05"``.
        model: the default encoder's name unless given.
        root: folder of results; that of the run unless given.

    Raises:
        KeyError: the chapter has no claims.
        ValueError: the chapter measures none.
        ResultFileError: a stored result cannot be read.
    """
    rows = [r for r in ledger.rows(model, chapter=chapter, root=root) if r.status != DISCUSSED]
    if not rows:
        raise ValueError(f"chapter {chapter!r} measures no claim")
    settings = {f"{row.claim.id}: {row.claim.measure.name}": row.claim.id for row in rows}
    states = {(row.claim.id,): _card(row) for row in rows}
    return explorer(states, {"claim": settings}, title="One claim at a time")


def _card(row: Row) -> Display:
    lines = [("Claim", row.claim.claim), ("Where it puts the number", row.measured)]
    if row.paper:
        lines.append(("The source reports", row.paper))
    lines.append(("Verdict", f"{row.status} ({row.because})" if row.because else row.status))
    found = row.record.measurement if row.record else None
    if found is None:
        lines.append(("Measured", row.ours or "not in this build"))
        return _words(lines)
    numbers = {"this model": found.value}
    numbers |= {name.replace("_", " "): value for name, value in found.baselines.items()}
    intervals = {} if found.interval is None else {"this model": found.interval}
    return stack(
        _words(lines),
        dot_table(
            numbers,
            ("", found.unit),
            intervals=intervals,
            caption=f"{row.model}, n = {found.n}",
            write=number,
        ),
    )


def _words(lines: list[tuple[str, str]]) -> Display:
    html = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in lines)
    return Display(f'<dl class="bx-facts">{html}</dl>', "\n".join(": ".join(p) for p in lines))
