"""The claims of the Primer, read from ``claims.yml``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from .errors import ClaimsFileError, UnknownClaimError
from .measurement import UNITS
from .verdicts import Rule

CLAIMS_FILE = Path(__file__).resolve().parent.parent / "claims.yml"
MODES = ("run", "proxy", "discuss")
STATUSES = ("verified", "memory", "words", "none")


@dataclass(frozen=True)
class Evidence:
    """Where a figure was seen. ``first_hand``: authors' own outputs, abstract or README."""

    key: str
    description: str
    first_hand: bool


@dataclass(frozen=True)
class Paper:
    """One cited work: a short label and an identifier such as ``doi:...`` or ``arXiv:...``."""

    key: str
    label: str
    identifier: str

    @property
    def url(self) -> str | None:
        """Address of the paper, or None when neither DOI, arXiv id nor address is known."""
        scheme, _, rest = self.identifier.partition(":")
        if scheme == "doi":
            return f"https://doi.org/{rest}"
        if scheme == "arXiv":
            return f"https://arxiv.org/abs/{rest}"
        return self.identifier if scheme == "https" else None


@dataclass(frozen=True)
class Figure:
    """What the source reports, and how far that was checked.

    ``status``: *verified* (seen at ``evidence``; may be printed), *words* (the claim was confirmed
    in words, the number was not), *memory* (recalled only: no number is kept), *none*.
    """

    text: str
    status: str
    evidence: tuple[str, ...] = ()
    value: float | None = None

    @property
    def printable(self) -> bool:
        """Only verified figures may appear beside ours."""
        return self.status == "verified"


@dataclass(frozen=True)
class Measure:
    """What a run of the claim has to measure: a quantity, its unit and its controls.

    ``timed``: the quantity is made of running times, so no two runs give the same number.
    """

    name: str
    unit: str
    baselines: tuple[str, ...] = ()
    timed: bool = False


@dataclass(frozen=True)
class Table1Row:
    """A row of the Primer's table of compressed models.

    ``smaller`` and ``faster`` are factors against BERT-base (BERT-large for 24 layers), ``score``
    is in percent of it. Two numbers: a range, or two copies of the table that disagree. None: not
    stated. ``layers`` is None where we could not see it.
    """

    name: str
    smaller: tuple[float, ...]
    score: tuple[float, ...]
    faster: tuple[float, ...]
    layers: int | None
    kind: str
    tasks: str


@dataclass(frozen=True)
class Claim:
    """One row of the ledger.

    Attributes:
        id: such as ``SYN-13``.
        section: key of :attr:`Ledger.sections`.
        claim: the statement, in one sentence.
        cite: keys of :attr:`Ledger.papers` and of ``references.bib``.
        figures: what the sources report.
        mode: ``run`` (on any model), ``proxy`` (a tiny model trained inline stands in for a
            pre-training nobody can repeat at a desk) or ``discuss``.
        reason: why a ``discuss`` row is not run; empty otherwise.
        chapter: two digits, the chapter that treats the row.
        anchor: the label of the row's place in that chapter.
        measure, rule: what is measured and how it is judged; None for ``discuss``.
        note: a correction or caveat to print with the row; may be empty.
        table1: the model's row of the Primer's table of compressed models, if it has one.
    """

    id: str
    section: str
    claim: str
    cite: tuple[str, ...]
    figures: tuple[Figure, ...]
    mode: str
    chapter: str
    anchor: str
    reason: str = ""
    measure: Measure | None = None
    rule: Rule | None = None
    note: str = ""
    table1: Table1Row | None = None

    @property
    def printable_figures(self) -> tuple[Figure, ...]:
        return tuple(figure for figure in self.figures if figure.printable)


@dataclass(frozen=True)
class Ledger(Mapping[str, Claim]):
    """All claims by id, in the order of the Primer, with the catalogues they refer to."""

    claims: Mapping[str, Claim]
    sections: Mapping[str, str]
    baselines: Mapping[str, str]
    evidence: Mapping[str, Evidence]
    papers: Mapping[str, Paper]

    def __getitem__(self, claim_id: str) -> Claim:
        try:
            return self.claims[claim_id]
        except (KeyError, TypeError):
            near = difflib.get_close_matches(str(claim_id)[:20].upper(), self.claims, n=3)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            shown = repr(claim_id)
            shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
            raise UnknownClaimError(f"there is no claim {shown}{hint}") from None

    def __iter__(self):
        return iter(self.claims)

    def __len__(self) -> int:
        return len(self.claims)

    def select(
        self, chapter: str | None = None, section: str | None = None, mode: str | None = None
    ) -> tuple[Claim, ...]:
        """Claims of a chapter (``"02"`` or ``"02_syntax"``), section or mode; all by default.

        Raises:
            KeyError: no such section or mode, or a chapter without claims.
        """
        if section is not None and section not in self.sections:
            raise KeyError(f"unknown section {section!r}; known: {', '.join(self.sections)}")
        if mode is not None and mode not in MODES:
            raise KeyError(f"unknown mode {mode!r}; known: {', '.join(MODES)}")
        if chapter is not None:
            chapter = chapter[:2]
            known = sorted({claim.chapter for claim in self.claims.values()})
            if chapter not in known:
                raise KeyError(f"no claims in chapter {chapter!r}; chapters: {', '.join(known)}")
        return tuple(
            claim
            for claim in self.claims.values()
            if (chapter is None or claim.chapter == chapter)
            and (section is None or claim.section == section)
            and (mode is None or claim.mode == mode)
        )


def load_claims(path: Path | None = None) -> Ledger:
    """Read the ledger (cached for the file shipped with the package).

    Raises:
        FileNotFoundError: there is no such file.
        ClaimsFileError: a row is malformed; the message names it.
    """
    return _shipped() if path is None else _read(Path(path))


@lru_cache(maxsize=1)
def _shipped() -> Ledger:
    return _read(CLAIMS_FILE)


def _read(path: Path) -> Ledger:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times faster where libyaml is
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError) as error:
        raise ClaimsFileError(f"{path.name} is no YAML: {str(error)[:300]}") from error
    _check_parts(raw, path.name)
    evidence = {
        key: Evidence(key, entry["what"], entry["hand"] == "first")
        for key, entry in raw["evidence"].items()
    }
    papers = {key: Paper(key, entry["label"], entry["id"]) for key, entry in raw["papers"].items()}
    ledger = Ledger(
        claims={},
        sections=MappingProxyType(raw["sections"]),
        baselines=MappingProxyType(raw["baselines"]),
        evidence=MappingProxyType(evidence),
        papers=MappingProxyType(papers),
    )
    claims: dict[str, Claim] = {}
    for row in raw["claims"]:
        claim = _claim(row, ledger)
        if claim.id in claims:
            raise ClaimsFileError(f"{claim.id}: the id appears twice")
        claims[claim.id] = claim
    object.__setattr__(ledger, "claims", MappingProxyType(claims))
    return ledger


def _check_parts(raw: Any, name: str) -> None:
    """Raise ClaimsFileError unless the file has its lists, with the fields that are read."""
    if not isinstance(raw, dict) or not isinstance(raw.get("claims"), list):
        raise ClaimsFileError(f"{name}: no list of claims")
    needed = {
        "sections": None,
        "baselines": None,
        "evidence": ("what", "hand"),
        "papers": ("label", "id"),
    }
    for part, keys in needed.items():
        entries = raw.get(part)
        if not isinstance(entries, dict):
            raise ClaimsFileError(f"{name}: {part} is missing, or has no names")
        for key, entry in entries.items():
            texts = (key, entry) if keys is None else (key, *_fields(entry, keys))
            if not all(isinstance(text, str) for text in texts):
                raise ClaimsFileError(f"{name}: {part}: {str(key)[:60]!r} is not as it should be")


def _fields(entry: Any, keys: tuple[str, ...]) -> list[Any]:
    return [entry.get(key) for key in keys] if isinstance(entry, dict) else [None]


def _claim(row: dict[str, Any], ledger: Ledger) -> Claim:
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        raise ClaimsFileError("claims.yml: a row without an id")
    claim_id = row["id"][:60]
    try:
        _check_types(row)
        chapter, _, anchor = row["where"].partition("#")
        measure = row.get("measure")
        rule = row.get("rule")
        claim = Claim(
            id=row["id"],
            section=row["section"],
            claim=row["claim"],
            cite=tuple(row["cite"]),
            figures=tuple(_figure(figure) for figure in row["figures"]),
            mode=row["mode"],
            chapter=chapter,
            anchor=anchor,
            reason=row.get("reason", ""),
            measure=_measure(measure) if measure else None,
            rule=Rule.parse(rule) if rule else None,
            note=row.get("note", ""),
            table1=_table1_row(row["table1"]) if "table1" in row else None,
        )
        _check(claim, ledger)
    except KeyError as error:
        raise ClaimsFileError(f"{claim_id}: missing or unknown {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise ClaimsFileError(f"{claim_id}: {str(error)[:300]}") from error
    return claim


#: kinds of the fields of a row
_KINDS = {
    "section": str, "claim": str, "mode": str, "where": str, "reason": str, "note": str,
    "cite": list, "figures": list, "measure": dict, "rule": dict, "table1": dict,
}  # fmt: skip


def _check_types(row: dict[str, Any]) -> None:
    for name, kind in _KINDS.items():
        if name in row and not isinstance(row[name], kind):
            raise ValueError(f"{name} is a {type(row[name]).__name__}, not a {kind.__name__}")


def _figure(raw: dict[str, Any]) -> Figure:
    return Figure(raw["text"], raw["status"], tuple(raw.get("evidence", ())), raw.get("value"))


def _measure(raw: dict[str, Any]) -> Measure:
    timed = raw.get("timed", False)
    if not isinstance(timed, bool):
        raise ValueError(f"timed is {timed!r}, neither true nor false")
    return Measure(raw["name"], raw["unit"], tuple(raw.get("baselines", ())), timed)


def _table1_row(raw: dict[str, Any]) -> Table1Row:
    factors = {key: tuple(raw[key]) for key in ("smaller", "score", "faster")}
    return Table1Row(**{**raw, **factors})


def _check(claim: Claim, ledger: Ledger) -> None:
    if claim.mode not in MODES:
        raise ValueError(f"unknown mode {claim.mode!r}")
    if claim.section not in ledger.sections:
        raise ValueError(f"unknown section {claim.section!r}")
    for key in claim.cite:
        if key not in ledger.papers:
            raise ValueError(f"cites {key!r}, which is not among the papers")
    for figure in claim.figures:
        if figure.status not in STATUSES:
            raise ValueError(f"unknown status {figure.status!r}")
        unknown = set(figure.evidence) - set(ledger.evidence)
        if unknown:
            raise ValueError(f"unknown evidence {', '.join(sorted(unknown))}")
        if figure.printable and not figure.evidence:
            raise ValueError(f"a verified figure needs evidence: {figure.text!r}")
        if figure.value is not None and not figure.printable:
            raise ValueError(f"only a verified figure may carry a value: {figure.text!r}")
    if claim.mode == "discuss":
        if not claim.reason or claim.measure or claim.rule:
            raise ValueError("a discussed row has a reason, and neither measure nor rule")
        return
    if claim.measure is None or claim.rule is None or claim.reason:
        raise ValueError(f"a {claim.mode} row has a measure and a rule, and no reason")
    if claim.measure.unit not in UNITS:
        raise ValueError(f"unknown unit {claim.measure.unit!r}")
    unknown = set(claim.measure.baselines) - set(ledger.baselines)
    if unknown:
        raise ValueError(f"unknown baseline {', '.join(sorted(unknown))}")
    rule = claim.rule
    named = {*rule.baselines, *rule.controls, *rule.present}
    unmeasured = named - set(claim.measure.baselines)
    if unmeasured:
        raise ValueError(f"the rule names {', '.join(sorted(unmeasured))}, the measure does not")
