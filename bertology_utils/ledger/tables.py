"""The ledger for readers: rows of claims with the paper's figures and ours side by side."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from .claims import Claim, load_claims
from .store import Record, default_model, result
from .verdicts import NOT_TESTABLE, VERDICTS

NOT_RUN = "not run"
DISCUSSED = "discussed"
_SECOND_HAND = "†"
_FOOTNOTE = f"{_SECOND_HAND} read in notes or a transcription, not in the paper itself."


@dataclass(frozen=True)
class Row:
    """A claim beside what was measured of it on one model (``record`` is None if nothing was)."""

    claim: Claim
    model: str
    record: Record | None

    @property
    def status(self) -> str:
        """The verdict, or ``discussed``, or ``not run``."""
        if self.claim.mode == "discuss":
            return DISCUSSED
        return self.record.verdict.word if self.record else NOT_RUN

    @property
    def measured(self) -> str:
        """What a run of the claim measures and where the claim puts it."""
        if self.claim.measure is None or self.claim.rule is None:
            return ""
        return f"{self.claim.measure.name}: {self.claim.rule.in_words()}"

    @property
    def paper(self) -> str:
        """The verified figures of the sources (second-hand ones with a dagger), if any."""
        figures = self.claim.printable_figures
        if not figures and any(figure.status == "words" for figure in self.claim.figures):
            return "no figure; in words only"
        return "; ".join(
            figure.text + ("" if self._first_hand(figure.evidence) else f" {_SECOND_HAND}")
            for figure in figures
        )

    @property
    def ours(self) -> str:
        """Our value with its interval, baselines and n; a reason where there is no value."""
        if self.claim.mode == "discuss":
            return self.claim.reason
        if self.record is None:
            return ""
        found = self.record.measurement
        if found is None:
            return self.record.outcome.reason
        text = number(found.value)
        if found.interval is not None:
            text += f" [{number(found.interval[0])}, {number(found.interval[1])}]"
        text += f" ({found.unit}, n = {found.n})"
        if found.baselines:
            controls = (
                f"{name.replace('_', ' ')} {number(value)}"
                for name, value in found.baselines.items()
            )
            text += "; " + ", ".join(controls)
        return text

    @property
    def because(self) -> str:
        return self.record.verdict.because if self.record else ""

    @property
    def sources(self) -> tuple[tuple[str, str | None], ...]:
        """(label, address or None) of each cited work."""
        papers = load_claims().papers
        return tuple((papers[key].label, papers[key].url) for key in self.claim.cite)

    @staticmethod
    def _first_hand(evidence: Iterable[str]) -> bool:
        known = load_claims().evidence
        return any(known[key].first_hand for key in evidence)


@dataclass(frozen=True)
class ClaimTable:
    """Rows that show themselves as HTML in a notebook and as Markdown elsewhere."""

    rows: tuple[Row, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    def to_html(self) -> str:
        """An HTML table; every text is escaped, every row points at its place in the chapter."""
        body = "\n".join(html_row(row) for row in self.rows)
        head = html_head()
        note = f"<p>{escape(_FOOTNOTE)}</p>" if self._needs_footnote() else ""
        return (
            '<div class="ledger-table" role="region" aria-label="What we measured" tabindex="0">'
            f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>{note}"
        )

    def to_markdown(self) -> str:
        """The same table in Markdown."""
        lines = ["| " + " | ".join(_HEADINGS) + " |", "|" + " --- |" * len(_HEADINGS)]
        for row in self.rows:
            cells = [f"{row.claim.id} ({row.claim.mode})", _text(row, _markdown_source)]
            cells += [_cell(row.paper), _cell(row.measured), _cell(row.ours), row.status]
            lines.append("| " + " | ".join(cells) + " |")
        if self._needs_footnote():
            lines += ["", _FOOTNOTE]
        return "\n".join(lines)

    def counts(self) -> dict[str, int]:
        """How many rows have each verdict (or are discussed, or not run)."""
        found = Counter(row.status for row in self.rows)
        return {word: found[word] for word in (*VERDICTS, DISCUSSED, NOT_RUN) if found[word]}

    def _needs_footnote(self) -> bool:
        return any(_SECOND_HAND in row.paper for row in self.rows)

    _repr_html_ = to_html
    _repr_markdown_ = to_markdown


def rows(
    model: str | None = None,
    *,
    chapter: str | None = None,
    section: str | None = None,
    root: Path | None = None,
) -> tuple[Row, ...]:
    """Rows of a chapter or section (all by default) for a model, in the order of the ledger.

    ``model`` is the default encoder's name unless given.

    Raises:
        KeyError: no such chapter or section.
        ResultFileError: a stored result cannot be read.
    """
    chosen = load_claims().select(chapter=chapter, section=section)
    model = default_model() if model is None else model
    return tuple(Row(claim, model, result(claim.id, model, root)) for claim in chosen)


def table(chapter: str, model: str | None = None, root: Path | None = None) -> ClaimTable:
    """The 'what we measured' table of a chapter (``"02"`` or ``"02_syntax"``) for a model.

    ``model`` is the default encoder's name unless given.

    Raises:
        KeyError: the chapter has no claims.
    """
    return ClaimTable(rows(model, chapter=chapter, root=root))


def glue_values(
    chapter: str, model: str | None = None, root: Path | None = None
) -> dict[str, float | str]:
    """Names and values to hand to ``myst_nb.glue``, for numbers inside a chapter's sentences.

    For each recorded claim: ``syn-13`` (the value), ``syn-13-low``, ``syn-13-high``, ``syn-13-n``,
    ``syn-13-verdict`` and ``syn-13-<baseline>``. For what a model could not be asked, the numbers
    are nan, so that the sentences stay whole; the verdict says why.
    """
    values: dict[str, float | str] = {}
    for row in rows(model, chapter=chapter, root=root):
        if row.record is None:
            continue
        name = row.claim.anchor
        values[f"{name}-verdict"] = row.status
        found = row.record.measurement
        if found is None:
            ends = ("", "-low", "-high", "-n")
            ends += tuple(f"-{key.replace('_', '-')}" for key in row.claim.measure.baselines)
            values |= {name + end: math.nan for end in ends}
            continue
        values[name] = found.value
        values[f"{name}-n"] = found.n
        if found.interval is not None:
            values[f"{name}-low"], values[f"{name}-high"] = found.interval
        values |= {f"{name}-{key.replace('_', '-')}": v for key, v in found.baselines.items()}
    return values


def number(value: float) -> str:
    """A number at the precision a reader needs: three digits, no trailing noise."""
    if value == 0 or 0.001 <= abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:.2e}" if abs(value) < 0.001 else f"{value:,.0f}"


def html_head() -> str:
    """The heading cells of a table of claims."""
    return "".join(f'<th scope="col">{name}</th>' for name in _HEADINGS)


_HEADINGS = ("Row", "Claim", "The source reports", "We measure", "We found", "Verdict")


def html_row(row: Row, page: str | None = "") -> str:
    """A table row; its number leads to the claim's place on ``page`` (None: nowhere yet)."""
    claim = row.claim
    link = escape(claim.id)
    if page is not None:
        link = f'<a href="{escape(page)}#{escape(claim.anchor)}">{link}</a>'
    mode = f'<br><small class="ledger-mode">{escape(claim.mode)}</small>'
    title = f' title="{escape(row.because)}"' if row.because else ""
    style = status_style(row.status)
    cells = (
        f'<th scope="row">{link}{mode}</th>',
        f"<td>{_text(row, _html_source, escape)}</td>",
        f"<td>{escape(row.paper) or '&ndash;'}</td>",
        f"<td>{escape(row.measured) or '&ndash;'}</td>",
        f"<td>{escape(row.ours) or '&ndash;'}</td>",
        f'<td class="verdict verdict-{style}"{title}>{escape(row.status)}</td>',
    )
    return (
        f'<tr data-section="{escape(claim.section)}" data-mode="{escape(claim.mode)}" '
        f'data-verdict="{escape(row.status)}">{"".join(cells)}</tr>'
    )


def status_style(status: str) -> str:
    """The part of a CSS class that stands for a status."""
    return "not-testable" if status == NOT_TESTABLE else status.replace(" ", "-")


def _text(
    row: Row,
    source: Callable[[str, str | None], str],
    clean: Callable[[str], str] | None = None,
) -> str:
    clean = clean or _cell
    sources = "; ".join(source(label, url) for label, url in row.sources)
    note = f" {clean(row.claim.note)}" if row.claim.note else ""
    return f"{clean(row.claim.claim)}{f' ({sources})' if sources else ''}{note}"


def _html_source(label: str, url: str | None) -> str:
    return f'<a href="{escape(url)}">{escape(label)}</a>' if url else escape(label)


def _markdown_source(label: str, url: str | None) -> str:
    return f"[{_cell(label)}]({url})" if url else _cell(label)


def _cell(text: str) -> str:
    """Text that cannot break out of a Markdown table cell or turn into markup."""
    for mark in "\\`*_[]<>|$":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split()) or "–"
