"""Claims on several models, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from .claims import load_claims
from .store import result
from .tables import DISCUSSED, NOT_RUN, Row, number, status_style
from .verdicts import VERDICTS


@dataclass(frozen=True)
class Comparison:
    """A row a claim, a column a model; shows itself as HTML in a notebook, else as Markdown.

    Attributes:
        models: names, in the order of the columns.
        rows: claim id -> one :class:`~.tables.Row` a model.
    """

    models: tuple[str, ...]
    rows: Mapping[str, tuple[Row, ...]]

    def counts(self) -> dict[str, dict[str, int]]:
        """Model -> status -> number of claims; statuses that do not occur are left out."""
        found = {}
        for column, model in enumerate(self.models):
            counted = Counter(row[column].status for row in self.rows.values())
            found[model] = {s: counted[s] for s in (*VERDICTS, DISCUSSED, NOT_RUN) if counted[s]}
        return found

    def to_markdown(self) -> str:
        """A Markdown table: verdict, value and interval of each model."""
        lines = [
            f"| claim | {' | '.join(self.models)} |",
            "| --- |" + " --- |" * len(self.models),
        ]
        for claim_id, row in self.rows.items():
            cells = (f"{cell.status}{_value(cell, ': ')}" for cell in row)
            lines.append(f"| {claim_id} | {' | '.join(cells)} |")
        return "\n".join(lines)

    def to_html(self) -> str:
        """An HTML table; every text is escaped."""
        heads = "".join(f'<th scope="col">{escape(model)}</th>' for model in self.models)
        body = "\n".join(
            f'<tr><th scope="row">{escape(claim_id)}</th>'
            f"<td>{escape(load_claims()[claim_id].claim)}</td>"
            + "".join(
                f'<td class="verdict verdict-{status_style(cell.status)}" '
                f'title="{escape(cell.because)}">{escape(cell.status)}'
                f"{escape(_value(cell, ' '))}</td>"
                for cell in row
            )
            + "</tr>"
            for claim_id, row in self.rows.items()
        )
        return (
            '<div class="ledger-table" role="region" aria-label="Models side by side" '
            'tabindex="0"><table><thead><tr><th scope="col">Row</th><th scope="col">Claim</th>'
            f"{heads}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
        )

    _repr_html_ = to_html
    _repr_markdown_ = to_markdown


def compare(
    models: Sequence[str], claims: Iterable[str] | None = None, root: Path | None = None
) -> Comparison:
    """Stored results of several models (all run and proxy claims, or those given).

    Raises:
        UnknownClaimError: no such claim.
        ResultFileError: a stored result cannot be read.
        ValueError: no model.
    """
    if not models:
        raise ValueError("there is no model to compare")
    ledger = load_claims()
    wanted = [c.id for c in ledger.values() if c.rule] if claims is None else list(claims)
    rows = {
        claim_id: tuple(Row(ledger[claim_id], m, result(claim_id, m, root)) for m in models)
        for claim_id in wanted
    }
    return Comparison(tuple(models), rows)


def _value(row: Row, before: str) -> str:
    found = row.record.measurement if row.record else None
    if found is None:
        return ""
    text = before + number(found.value)
    if found.interval is not None:
        text += f" [{number(found.interval[0])}, {number(found.interval[1])}]"
    return text
