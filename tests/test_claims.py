"""claims.yml: its form, its sources, and that no rule decides its verdict in advance."""

import copy
import json
import math
import re
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
import yaml
from pybtex.database import parse_file
from pybtex.richtext import Text

from bertology_utils.ledger import (
    DOES_NOT,
    NOT_TESTABLE,
    PARTLY,
    REPLICATES,
    UNITS,
    ClaimsFileError,
    Measurement,
    UnknownClaimError,
    load_claims,
)
from bertology_utils.ledger.claims import CLAIMS_FILE

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = CLAIMS_FILE.with_name("claims.schema.json")
CHAPTERS = {f"{number:02d}" for number in range(14)}
# Rows by prefix, as the Primer's sections were taken apart.
ROWS = {
    "BG": 7, "SYN": 22, "SEM": 10, "KNO": 12, "LIM": 11, "EMB": 14, "HEAD": 27, "LAY": 17,
    "TRN": 42, "FT": 16, "SIZE": 10, "CMP": 42, "ANA": 7, "DIR": 13,
}  # fmt: skip


@pytest.fixture(scope="module")
def raw():
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(CLAIMS_FILE.read_text(encoding="utf-8"), Loader=loader)


@pytest.fixture(scope="module")
def validator():
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def bibliography():
    return parse_file(str(ROOT / "references.bib"), bib_format="bibtex").entries


def claims():
    return list(load_claims().values())


def test_file_obeys_its_schema(raw, validator):
    errors = [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(raw)]
    assert errors == []


def test_all_rows_are_there():
    assert Counter(claim.id.split("-")[0] for claim in claims()) == ROWS
    assert len(claims()) == 250


def test_modes():
    assert Counter(claim.mode for claim in claims()) == {"run": 196, "proxy": 38, "discuss": 16}


def test_ids_count_up_without_gaps():
    for prefix, rows in ROWS.items():
        numbers = [int(c.id.split("-")[1]) for c in claims() if c.id.split("-")[0] == prefix]
        first = 0 if prefix == "SEM" else 1
        assert numbers == list(range(first, first + rows))


def test_statements_are_distinct():
    texts = Counter(re.sub(r"\W+", " ", claim.claim.lower()).strip() for claim in claims())
    assert [text for text, count in texts.items() if count > 1] == []


def test_every_row_has_its_own_place_in_a_chapter():
    assert {claim.chapter for claim in claims()} <= CHAPTERS
    assert all(claim.anchor == claim.id.lower() for claim in claims())
    # An existing chapter file must be the one the number means.
    for claim in claims():
        assert len(list((ROOT / "chapters").glob(f"{claim.chapter}_*.md"))) <= 1


def test_every_citation_resolves(bibliography):
    missing = {key for claim in claims() for key in claim.cite} - set(bibliography)
    assert missing == set()


def surname(person):
    name = " ".join(person.prelast_names + person.last_names)
    # Decoding accents is slow, and few names need it.
    return (Text.from_latex(name).render_as("text") if "\\" in name else name).strip("{}")


def label(entry):
    """Author and year as a reader cites them: one name, two names, or the first and et al."""
    names = [surname(person) for person in entry.persons["author"][:2]]
    if len(entry.persons["author"]) > 2:
        names = [f"{names[0]} et al."]
    return f"{' and '.join(names)} {entry.fields['year']}"


def identifier(fields):
    if "doi" in fields:
        return f"doi:{fields['doi']}"
    return f"arXiv:{fields['eprint']}" if "eprint" in fields else fields["url"]


def test_papers_agree_with_the_bibliography(bibliography):
    for paper in load_claims().papers.values():
        entry = bibliography[paper.key]
        assert (paper.label, paper.identifier) == (label(entry), identifier(entry.fields))


def test_every_paper_has_an_address():
    assert all(paper.url.startswith("https://") for paper in load_claims().papers.values())


def test_catalogues_hold_nothing_unused():
    ledger = load_claims()
    cited = {key for claim in claims() for key in claim.cite}
    seen = {key for claim in claims() for figure in claim.figures for key in figure.evidence}
    used = {name for claim in claims() if claim.measure for name in claim.measure.baselines}
    assert set(ledger.papers) == cited
    assert set(ledger.evidence) == seen
    assert set(ledger.baselines) == used
    assert set(ledger.sections) == {claim.section for claim in claims()}


def test_unverified_figures_keep_no_number():
    for claim in claims():
        for figure in claim.figures:
            if figure.status != "verified":
                assert not re.search(r"\d", figure.text), claim.id
                assert figure.value is None and not figure.printable


def test_values_of_the_sources_fit_the_unit_they_stand_beside():
    for claim in claims():
        for figure in claim.figures:
            if figure.value is not None and claim.measure is not None:
                low, high = UNITS[claim.measure.unit]
                assert low <= figure.value <= high, claim.id


def test_table_of_compressed_models_is_complete():
    rows = [claim.table1 for claim in claims() if claim.table1]
    assert len(rows) == 25
    assert [claim.id for claim in claims() if claim.table1] == [
        f"CMP-{n:02d}" for n in range(1, 26)
    ]
    assert len({row.name for row in rows}) == 25


def candidate_values(unit):
    low, high = UNITS[unit]
    low, high = max(low, -1e6), min(high, 1e6)
    middle = [0.0, *(sign * 10.0**k for k in range(-7, 7) for sign in (1, -1)), 0.3, 0.5, 0.6, 0.97]
    return [value for value in (low, high, *middle) if low <= value <= high]


@pytest.mark.parametrize("claim", [c for c in claims() if c.rule], ids=lambda c: c.id)
def test_no_rule_is_decided_in_advance(claim):
    """Some measurement replicates the claim, and some other does not."""
    unit, rule = claim.measure.unit, claim.rule
    level = {"share": 0.5, "cosine": 0.1, "correlation": 0.1, "R squared": 0.5}.get(unit, 0.2)
    levels = dict.fromkeys(claim.measure.baselines, level)
    if rule.kind in ("interval", "equal", "near_baseline"):
        # A control that lies in the range decides that nothing replicates; this one does not.
        low, high = rule.region(levels)
        outside = next(v for v in candidate_values(unit) if not low <= v <= high)
        levels |= dict.fromkeys(rule.controls, outside)
    if rule.present:  # likewise: what is known to be there must be found
        low, high = rule.region(levels)
        seen = next(v for v in candidate_values(unit) if not low <= v <= high)
        levels |= dict.fromkeys(rule.present, seen)
    words = set()
    for value in candidate_values(unit):
        measurement = Measurement(
            value=value,
            unit=unit,
            n=1000,
            model="m",
            baselines=levels,
            interval=(value, value),
        )
        words.add(rule.judge(measurement).word)
    assert {REPLICATES, DOES_NOT} <= words <= {REPLICATES, DOES_NOT, PARTLY}


def test_nothing_that_random_weights_do_as_well_replicates():
    for claim in (c for c in claims() if c.rule and c.rule.kind != "near_baseline"):
        levels = dict.fromkeys(claim.measure.baselines, 0.3)
        for value in candidate_values(claim.measure.unit):
            measurement = Measurement(
                value=value,
                unit=claim.measure.unit,
                n=1000,
                model="m",
                baselines=levels | {"random_model": value},
                interval=(value, value),
            )
            assert claim.rule.judge(measurement).word != REPLICATES, claim.id


ABSENCES = (
    "SYN-06", "SYN-22", "HEAD-09", "HEAD-15", "HEAD-22", "SIZE-05", "SIZE-08", "ANA-02",
)  # fmt: skip


@pytest.mark.parametrize("claim_id", ABSENCES)
def test_noise_does_not_bear_out_that_something_is_absent(claim_id):
    """Equal scores near 0, with and without the thing to be found, are no evidence."""
    claim = load_claims()[claim_id]
    noise = Measurement(
        value=0.005, unit=claim.measure.unit, n=1000, model="m", interval=(0.002, 0.008),
        baselines=dict.fromkeys(claim.measure.baselines, 0.005),
    )  # fmt: skip
    assert claim.rule.judge(noise).word == NOT_TESTABLE


def test_unknown_ids_are_named_with_a_suggestion():
    with pytest.raises(UnknownClaimError, match="SYN-99.*did you mean"):
        load_claims()["SYN-99"]
    with pytest.raises(UnknownClaimError, match="syn-13"):
        load_claims()["syn-13"]
    assert "SYN-99" not in load_claims()


def test_select():
    ledger = load_claims()
    assert [c.id for c in ledger.select(chapter="03_semantics")] == [
        f"SEM-{n:02d}" for n in range(10)
    ]
    assert {c.chapter for c in ledger.select(section="size")} == {"11", "12"}
    assert len(ledger.select()) == 250
    for wrong in ({"chapter": "77"}, {"section": "phonology"}, {"mode": "walk"}):
        with pytest.raises(KeyError, match=next(iter(wrong.values()))):
            ledger.select(**wrong)


# Mistakes that someone who edits the file could make: (what, change, in the schema's reach).
MISTAKES = {
    "run row without a rule": lambda row: row.pop("rule"),
    "run row without a measure": lambda row: row.pop("measure"),
    "run row with a reason": lambda row: row.update(reason="Too dear."),
    "unknown mode": lambda row: row.update(mode="maybe"),
    "verified without evidence": lambda row: row["figures"][0].pop("evidence"),
    "number from memory": lambda row: row["figures"][0].update(status="memory", value=0.9),
    "unknown status": lambda row: row["figures"][0].update(status="sure"),
    "unknown kind of rule": lambda row: row["rule"].update(kind="looks_good"),
    "key of another rule": lambda row: row["rule"].update(threshold=0.5),
    "rule without its key": lambda row: row["rule"].pop("baselines"),
    "no claim": lambda row: row.pop("claim"),
    "no place": lambda row: row.pop("where"),
}
# Mistakes that only a look at the other parts of the file can find.
BROKEN_LINKS = {
    "unknown section": lambda row: row.update(section="phonology"),
    "unknown paper": lambda row: row.update(cite=["nobody2020nothing"]),
    "unknown evidence": lambda row: row["figures"][0].update(evidence=["E99"]),
    "unknown unit": lambda row: row["measure"].update(unit="percent"),
    "unknown baseline": lambda row: row["measure"].update(baselines=["coin", "random_model"]),
    "rule on an unmeasured baseline": lambda row: row["measure"].update(baselines=["chance"]),
    "present, but unmeasured": lambda row: row["rule"].update(present=["chain_trees"]),
}


def broken(raw, change):
    row = copy.deepcopy(next(row for row in raw["claims"] if row["id"] == "SYN-13"))
    change(row)
    return {**raw, "claims": [row]}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_schema_finds(mistake, raw, validator):
    assert not validator.is_valid(broken(raw, MISTAKES[mistake]))


@pytest.mark.parametrize("mistake", [*MISTAKES, *BROKEN_LINKS])
def test_loader_names_the_row_of(mistake, raw, tmp_path):
    path = tmp_path / "claims.yml"
    change = {**MISTAKES, **BROKEN_LINKS}[mistake]
    path.write_text(json.dumps(broken(raw, change)), encoding="utf-8")
    with pytest.raises(ClaimsFileError, match="SYN-13"):
        load_claims(path)


def test_loader_finds_a_repeated_id(raw, tmp_path):
    path = tmp_path / "claims.yml"
    path.write_text(json.dumps({**raw, "claims": raw["claims"][:1] * 2}), encoding="utf-8")
    with pytest.raises(ClaimsFileError, match="BG-01.*twice"):
        load_claims(path)


def test_loader_wants_a_file_of_claims(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_claims(tmp_path / "none.yml")
    empty = tmp_path / "empty.yml"
    empty.write_text("", encoding="utf-8")
    with pytest.raises(ClaimsFileError, match="no list of claims"):
        load_claims(empty)


def test_finite_rules():
    """Open ends may be infinite, the numbers written in the file may not."""
    for claim in claims():
        if claim.rule is not None:
            numbers = (claim.rule.margin, claim.rule.tolerance, claim.rule.threshold)
            assert all(math.isfinite(number) for number in numbers)
