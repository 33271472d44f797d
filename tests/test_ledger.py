"""The ledger: what is recorded, how it is judged, kept and shown."""

import json
import math
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from bertology_utils import ledger
from bertology_utils.ledger import (
    DOES_NOT,
    NOT_TESTABLE,
    PARTLY,
    REPLICATES,
    UNITS,
    BrokenModel,
    Measurement,
    MeasurementError,
    MissingBaselineError,
    NotTestable,
    ResultFileError,
    Rule,
    UnknownClaimError,
    WrongModeError,
    load_claims,
)

ROOT = Path(__file__).resolve().parent.parent
MODEL = "bertology-mini-uncased"


@pytest.fixture(autouse=True)
def results_folder(tmp_path, monkeypatch):
    folder = tmp_path / "results"
    monkeypatch.setenv(ledger.RESULTS_VARIABLE, str(folder))
    return folder


def agreement(value=0.9, interval=(0.85, 0.94), model=MODEL, **changes):
    """A measurement fit for SYN-13."""
    fields = {
        "unit": "share",
        "n": 400,
        "seed": 0,
        "baselines": {"chance": 0.5, "random_model": 0.52},
        **changes,
    }
    return Measurement(value=value, interval=interval, model=model, **fields)


# ---------------------------------------------------------------- recording


def test_record_keeps_everything(results_folder):
    entry = ledger.record("SYN-13", agreement(details={"across a PP": 0.8}), seconds=1.23456)
    assert entry.verdict.word == REPLICATES
    path = results_folder / MODEL / "SYN-13.json"
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert raw["model"] == MODEL and raw["chapter"] == "02"
    assert raw["outcome"] == {
        "value": 0.9,
        "unit": "share",
        "n": 400,
        "model": MODEL,
        "baselines": {"chance": 0.5, "random_model": 0.52},
        "seed": 0,
        "interval": [0.85, 0.94],
        "details": {"across a PP": 0.8},
    }
    assert raw["seconds"] == 1.235
    assert raw["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "torch" in raw["versions"] and "transformers" in raw["versions"]
    assert ledger.result("SYN-13", MODEL) == entry
    assert ledger.results(MODEL) == {"SYN-13": entry}
    assert list(path.parent.iterdir()) == [path]  # no temporary file is left


def test_later_record_replaces_the_earlier():
    ledger.record("SYN-13", agreement())
    ledger.record("SYN-13", agreement(0.4, (0.35, 0.45)))
    assert ledger.result("SYN-13", MODEL).verdict.word == DOES_NOT


def test_nothing_recorded():
    assert ledger.result("SYN-13", MODEL) is None
    assert ledger.results(MODEL) == {}
    assert ledger.models() == ()
    assert len(ledger.missing(MODEL)) == 234


@dataclass(frozen=True)
class ProbeResult:
    value: float
    baselines: dict
    n: int
    seed: int | None
    interval: tuple | None
    model: str


def test_any_result_with_the_shared_fields_is_taken():
    result = ProbeResult(
        np.float32(0.75), {"chance": 0.5, "random_model": 0.5}, np.int64(9 * 9), 1, None, MODEL
    )
    entry = ledger.record("SYN-13", result)
    assert entry.measurement == Measurement(
        value=0.75, unit="share", n=81, seed=1, model=MODEL, baselines=result.baselines
    )
    assert type(entry.measurement.value) is float and type(entry.measurement.n) is int


def test_of_renames_baselines():
    result = ProbeResult(0.75, {"guess": 0.5}, 80, 1, None, MODEL)
    taken = Measurement.of(result, unit="share", baselines={"chance": result.baselines["guess"]})
    assert taken.baselines == {"chance": 0.5} and taken.n == 80
    with pytest.raises(MeasurementError, match="ProbeResult has no 'unit'"):
        Measurement.of(result)


def test_object_without_the_fields_is_refused():
    with pytest.raises(MeasurementError, match="float has no 'value'"):
        ledger.record("SYN-13", 0.9)


def test_measurement_travels_between_processes():
    measurement = agreement()
    assert pickle.loads(pickle.dumps(measurement)) == measurement


def test_measurement_is_not_changed_by_its_makers():
    baselines = {"chance": 0.5, "random_model": 0.52}
    measurement = agreement(baselines=baselines)
    baselines["chance"] = 0.99
    assert measurement.baselines["chance"] == 0.5


# ---------------------------------------------------------------- refusals


def test_unknown_claim():
    with pytest.raises(UnknownClaimError, match="SYN-31"):
        ledger.record("SYN-31", agreement())
    with pytest.raises(UnknownClaimError):
        ledger.result("SYN-31", MODEL)


def test_discussed_claim_is_not_recorded(results_folder):
    with pytest.raises(WrongModeError, match="KNO-06 is discussed"):
        ledger.record("KNO-06", agreement())
    assert not results_folder.exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": math.nan}, "value is nan"),
        ({"value": math.inf}, "value is inf"),
        ({"value": "high"}, "not a number"),
        ({"value": True}, "not a number"),
        ({"value": 90.0}, "a share lies between 0 and 1"),
        ({"value": -0.1}, "a share lies between 0 and 1"),
        ({"baselines": {"chance": math.nan}}, "baseline 'chance' is nan"),
        ({"baselines": {"chance": 50}}, "baseline 'chance' is 50"),
        ({"details": {"pairs": math.nan}}, "detail 'pairs' is nan"),
        ({"interval": (0.95, 0.99)}, "does not hold the value 0.9"),
        ({"interval": (0.95, 0.85)}, "does not hold the value"),
        ({"interval": (0.8, math.nan)}, "interval's high end is nan"),
        ({"interval": 0.1}, "not \\(low, high\\)"),
        ({"n": 0}, "at least one"),
        ({"n": 2.5}, "not a whole number"),
        ({"seed": 0.5}, "not a whole number"),
        ({"model": " "}, "model's name"),
        ({"unit": "percent"}, "unknown unit 'percent'"),
    ],
)
def test_unfit_measurements(changes, message):
    with pytest.raises(MeasurementError, match=message):
        replace(agreement(), **changes)


def test_rounding_at_the_border_is_forgiven():
    assert agreement(1.0 + 1e-7, (0.9, 1.0 + 1e-7)).value == 1.0


def test_missing_baseline_is_named(results_folder):
    with pytest.raises(MissingBaselineError, match="SYN-13 needs.*random_model; measured: chance"):
        ledger.record("SYN-13", agreement(baselines={"chance": 0.5}))
    assert not results_folder.exists()


def test_wrong_unit():
    measurement = Measurement(value=0.9, unit="nats", n=9, model=MODEL)
    with pytest.raises(MeasurementError, match="measured in 'share', the result is in 'nats'"):
        ledger.record("SYN-13", measurement)


@pytest.mark.parametrize("seconds", [-1, math.inf, math.nan])
def test_impossible_run_time(seconds):
    with pytest.raises(ValueError, match="seconds"):
        ledger.record("SYN-13", agreement(), seconds=seconds)


@pytest.mark.parametrize("kind", [NotTestable, BrokenModel])
def test_excuses_need_a_reason(kind):
    with pytest.raises(ValueError, match="needs a model and a reason"):
        ledger.record("SYN-13", kind(model=MODEL, reason=" "))


# ---------------------------------------------------------------- verdicts


def test_not_testable_and_broken_models_have_a_verdict_and_not_an_error():
    untestable = ledger.record("BG-05", NotTestable(model=MODEL, reason="it has no NSP head"))
    broken = ledger.record("SYN-13", BrokenModel(model=MODEL, reason="every score is NaN"))
    assert untestable.verdict.word == NOT_TESTABLE and untestable.measurement is None
    assert broken.verdict.word == DOES_NOT and broken.verdict.because == "every score is NaN"
    assert ledger.results(MODEL) == {"BG-05": untestable, "SYN-13": broken}


def test_too_few_items_are_no_test():
    entry = ledger.record("SYN-13", agreement(n=49))
    assert entry.verdict.word == NOT_TESTABLE
    assert "49 items of at least 50" in entry.verdict.because


def judge(rule, value, interval=None, **baselines):
    return (
        Rule.parse(rule)
        .judge(
            Measurement(
                value=value, unit="nats", n=100, model="m", interval=interval, baselines=baselines
            )
        )
        .word
    )


ABOVE = {"kind": "above_baseline", "baselines": ["a", "b"], "margin": 0.1}
BELOW = {"kind": "below_baseline", "baselines": ["a", "b"]}
NEAR = {"kind": "near_baseline", "baselines": ["a"], "tolerance": 0.1}
IN_RANGE = {"kind": "interval", "low": 0.4, "high": 0.8, "controls": ["c"]}
ABSENT = {"kind": "below", "threshold": 0.5, "present": ["known"]}


@pytest.mark.parametrize(
    ("rule", "value", "interval", "word"),
    [
        (ABOVE, 0.9, (0.8, 1.0), REPLICATES),
        (ABOVE, 0.9, (0.6, 1.0), PARTLY),
        (ABOVE, 0.9, None, PARTLY),
        (ABOVE, 0.65, (0.6, 0.7), DOES_NOT),  # above both, but not by the margin
        (ABOVE, 0.5, (0.4, 0.9), DOES_NOT),
        (BELOW, 0.1, (0.0, 0.3), REPLICATES),
        (BELOW, 0.1, (0.0, 0.5), PARTLY),
        (BELOW, 0.5, (0.3, 0.55), DOES_NOT),  # below one of the two only
        (NEAR, 0.45, (0.4, 0.5), REPLICATES),
        (NEAR, 0.45, (0.2, 0.5), PARTLY),
        (NEAR, 0.7, (0.5, 0.9), DOES_NOT),
        ({"kind": "above", "threshold": 0.5}, 0.6, (0.55, 0.7), REPLICATES),
        ({"kind": "above", "threshold": 0.5}, 0.5, (0.5, 0.5), DOES_NOT),
        ({"kind": "below", "threshold": 0.5}, 0.4, (0.3, 0.6), PARTLY),
        ({"kind": "below", "threshold": 0.5, "exact": True}, 0.4, None, REPLICATES),
        ({"kind": "below", "threshold": 0.5, "exact": True}, 0.6, None, DOES_NOT),
        ({"kind": "direction", "expected": "positive"}, 0.2, (0.1, 0.3), REPLICATES),
        ({"kind": "direction", "expected": "positive"}, 0.2, (-0.1, 0.3), PARTLY),
        ({"kind": "direction", "expected": "positive"}, 0.0, (0.0, 0.0), DOES_NOT),
        ({"kind": "direction", "expected": "negative"}, -0.2, (-0.3, -0.1), REPLICATES),
        ({"kind": "direction", "expected": "negative"}, 0.2, (0.1, 0.3), DOES_NOT),
        ({"kind": "equal", "target": 1.0, "tolerance": 0.1}, 1.05, (0.95, 1.08), REPLICATES),
        ({"kind": "equal", "target": 1.0, "tolerance": 0.1}, 1.05, (0.95, 1.2), PARTLY),
        ({"kind": "equal", "target": 1.0, "tolerance": 0.1}, 1.3, (0.9, 1.4), DOES_NOT),
        ({"kind": "interval", "low": 0.4, "high": 0.8}, 0.4, (0.4, 0.8), REPLICATES),
        ({"kind": "interval", "low": 0.4, "high": 0.8}, 0.5, (0.3, 0.6), PARTLY),
        ({"kind": "interval", "low": 0.4, "high": 0.8}, 0.9, (0.7, 1.0), DOES_NOT),
    ],
)
def test_rules(rule, value, interval, word):
    assert judge(rule, value, interval, a=0.4, b=0.6) == word


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({}, "unknown kind of rule None"),
        ({"kind": "above"}, "missing \\['threshold'\\]"),
        ({"kind": "above", "threshold": 1, "margin": 1}, "not meant \\['margin'\\]"),
        ({"kind": "above_baseline", "baselines": []}, "no baselines"),
        ({"kind": "direction", "expected": "up"}, "expected is 'up'"),
        ({"kind": "above", "threshold": 1, "controls": []}, "no controls"),
        ({"kind": "below", "threshold": 1, "present": []}, "no present"),
        ({**ABOVE, "controls": ["a"]}, "\\['a'\\] has two of the roles baselines, controls"),
        ({**IN_RANGE, "present": ["c"]}, "\\['c'\\] has two of the roles"),
        ({"kind": "interval", "low": 1, "high": 0}, "empty range"),
        ({"kind": "equal", "target": 0, "tolerance": -1}, "empty range, negative width"),
    ],
)
def test_malformed_rules(rule, message):
    with pytest.raises(ValueError, match=message):
        Rule.parse(rule)


CONTROLLED = {"kind": "direction", "expected": "positive", "controls": ["c"]}
FALLING = {"kind": "direction", "expected": "negative", "controls": ["c"]}
EXACTLY = {"kind": "above", "threshold": 0.5, "exact": True, "controls": ["c"]}


@pytest.mark.parametrize(
    ("rule", "value", "interval", "control", "word"),
    [
        (CONTROLLED, 0.3, (0.2, 0.4), -0.1, REPLICATES),  # the control fails the rule
        (CONTROLLED, 0.3, (0.2, 0.4), 0.1, REPLICATES),  # it passes, and ours is clearly beyond
        (CONTROLLED, 0.3, (0.2, 0.4), 0.25, PARTLY),  # beyond, but not clearly
        (CONTROLLED, 0.3, (0.2, 0.4), 0.3, PARTLY),
        (CONTROLLED, 0.3, (0.2, 0.4), 0.9, PARTLY),
        (CONTROLLED, -0.3, (-0.4, -0.2), 0.1, DOES_NOT),
        (FALLING, -1.0, (-1.0, -1.0), -1.0, PARTLY),
        (FALLING, -1.0, (-1.0, -0.9), -0.5, REPLICATES),
        (FALLING, -1.0, (-1.0, -0.9), 0.5, REPLICATES),
        (IN_RANGE, 0.7, (0.65, 0.75), 0.9, REPLICATES),
        (IN_RANGE, 0.7, (0.65, 0.75), 0.5, PARTLY),  # a range has no side to be beyond on
        (IN_RANGE, 0.9, (0.85, 0.95), 0.5, DOES_NOT),
        (EXACTLY, 0.8, None, 0.6, REPLICATES),
        (EXACTLY, 0.8, None, 0.8, PARTLY),
        ({**ABOVE, "controls": ["c"]}, 0.9, (0.8, 1.0), 0.85, PARTLY),
        ({**ABOVE, "controls": ["c"]}, 0.9, (0.8, 1.0), 0.75, REPLICATES),
        ({**NEAR, "controls": ["c"]}, 0.45, (0.4, 0.5), 0.42, PARTLY),
        ({**NEAR, "controls": ["c"]}, 0.45, (0.4, 0.5), 0.9, REPLICATES),
    ],
)
def test_a_control_that_passes_the_rule_leaves_nothing_replicated(
    rule, value, interval, control, word
):
    assert judge(rule, value, interval, a=0.4, b=0.6, c=control) == word


@pytest.mark.parametrize(
    ("rule", "value", "interval", "known", "word"),
    [
        (ABSENT, 0.2, (0.1, 0.3), 0.9, REPLICATES),  # what is there would have been found
        (ABSENT, 0.2, (0.1, 0.3), 0.2, NOT_TESTABLE),  # noise bears the claim out
        (ABSENT, 0.2, (0.1, 0.3), 0.49, NOT_TESTABLE),  # farther off, and still not found
        (ABSENT, 0.2, (0.1, 0.3), 0.5, REPLICATES),  # an open border
        (ABSENT, 0.2, (0.1, 0.6), 0.9, PARTLY),
        (ABSENT, 0.6, (0.55, 0.65), 0.2, DOES_NOT),  # found after all: the instrument sees
        ({**NEAR, "present": ["known"]}, 0.45, (0.4, 0.5), 0.42, NOT_TESTABLE),
        ({**NEAR, "present": ["known"]}, 0.45, (0.4, 0.5), 0.9, REPLICATES),
    ],
)
def test_an_absence_counts_only_where_the_instrument_finds_what_is_there(
    rule, value, interval, known, word
):
    assert judge(rule, value, interval, a=0.4, known=known) == word


def test_the_reason_names_what_was_not_found_though_it_is_there():
    measurement = Measurement(
        value=0.2, unit="share", n=9, model="m", interval=(0.1, 0.3), baselines={"known": 0.25}
    )
    rule = Rule.parse(ABSENT)
    assert rule.in_words() == "below 0.5, but not for known"
    assert rule.judge(measurement).because == (
        "0.2 is below 0.5, but known (0.25), known to differ, is too"
    )
    with pytest.raises(MissingBaselineError, match="control 'known' was not measured"):
        rule.judge(replace(measurement, baselines={}))


def test_the_random_model_is_a_control_even_where_no_rule_names_it():
    rule = {"kind": "above", "threshold": 0.5}
    assert judge(rule, 0.9, (0.8, 1.0), random_model=0.85) == PARTLY
    assert judge(rule, 0.9, (0.8, 1.0), random_model=0.2) == REPLICATES
    near = {"kind": "near_baseline", "baselines": ["random_model"], "tolerance": 0.2}
    assert judge(near, 0.9, (0.8, 1.0), random_model=0.85) == REPLICATES  # the claim is about it


def test_the_reason_names_the_control():
    measurement = Measurement(
        value=-1.0, unit="correlation", n=9, model="m", interval=(-1.0, -0.9),
        baselines={"random_model": -0.95},
    )  # fmt: skip
    rule = Rule.parse({"kind": "direction", "expected": "negative", "controls": ["random_model"]})
    assert rule.in_words() == "negative effect, and beyond random model"
    assert rule.judge(measurement).because == (
        "-1 [-1, -0.9] is below 0, but random model (-0.95) is too and not clearly behind"
    )
    assert Rule.parse(IN_RANGE).in_words() == "between 0.4 and 0.8, unlike c"
    with pytest.raises(MissingBaselineError, match="control 'random_model' was not measured"):
        rule.judge(replace(measurement, baselines={}))


def test_rule_names_the_baseline_it_lacks():
    with pytest.raises(MissingBaselineError, match="'b' was not measured \\(have: a\\)"):
        judge(ABOVE, 0.9, a=0.4)


def test_verdict_comes_from_the_rule_and_not_from_the_file(results_folder):
    ledger.record("SYN-13", agreement(0.4, (0.35, 0.45)))
    path = results_folder / MODEL / "SYN-13.json"
    raw = json.loads(path.read_text(encoding="utf-8"))
    raw["verdict"] = {"word": REPLICATES, "because": "I say so"}
    path.write_text(json.dumps(raw), encoding="utf-8")
    assert ledger.result("SYN-13", MODEL).verdict.word == DOES_NOT


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: text.replace('"format": 1', '"format": 99'),
        lambda text: text.replace('"claim": "SYN-13"', '"claim": "SYN-14"'),
        lambda text: text.replace('"value": 0.9', '"value": NaN'),
        lambda text: text.replace('"n": 400', '"m": 400'),
        lambda text: text.replace('"kind": "measurement"', '"kind": "opinion"'),
    ],
)
def test_damaged_file_is_named(results_folder, damage):
    ledger.record("SYN-13", agreement())
    path = results_folder / MODEL / "SYN-13.json"
    text = path.read_text(encoding="utf-8")
    assert damage(text) != text
    path.write_text(damage(text), encoding="utf-8")
    with pytest.raises(ResultFileError, match="SYN-13.json") as caught:
        ledger.result("SYN-13", MODEL)
    assert str(results_folder) not in str(caught.value)


def test_failed_write_leaves_the_old_result(results_folder, monkeypatch):
    first = ledger.record("SYN-13", agreement())

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        ledger.record("SYN-13", agreement(0.8, (0.7, 0.9)))
    monkeypatch.undo()
    assert ledger.result("SYN-13", MODEL, results_folder) == first
    assert len(list((results_folder / MODEL).iterdir())) == 1


NAMES = [
    MODEL,
    "bert-base-uncased",
    "BERT-base-uncased",
    "google/electra-small-discriminator",
    "google--electra-small-discriminator",
    "google-electra-small-discriminator",
    "google/multiberts-seed_0",
    "../../etc",
    "..",
    ".hidden",
    "模型",
    "模型二",
    "a b",
    "a/b/c",
    "C:\\models\\x",
    "random weights (seed 1)",
    "x" * 300,
    "x" * 301,
    "dot.",
    "<b>bold</b>",
]


def test_every_model_has_a_folder_of_its_own(results_folder):
    folders = [ledger.folder_name(name) for name in NAMES]
    assert len({folder.lower() for folder in folders}) == len(NAMES)
    for name, folder in zip(NAMES, folders, strict=True):
        assert len(folder) < 100 and not folder.startswith(".") and not folder.endswith(".")
        assert not set(folder) & set('/\\:*?"<>| ')
        ledger.record("SYN-13", agreement(model=name))
    assert len(list(results_folder.iterdir())) == len(NAMES)
    assert ledger.models() == tuple(sorted(NAMES))
    assert ledger.result("SYN-13", "a b").model == "a b"
    assert ledger.folder_name(MODEL) == MODEL
    assert ledger.folder_name("google/electra-small") == "google--electra-small"


def test_results_lie_at_the_root_of_the_book(tmp_path, monkeypatch):
    monkeypatch.delenv(ledger.RESULTS_VARIABLE)
    chapters = tmp_path / "book" / "chapters"
    chapters.mkdir(parents=True)
    (tmp_path / "book" / "_toc.yml").write_text("root: intro\n")
    monkeypatch.chdir(chapters)
    assert ledger.results_root() == tmp_path / "book" / "_results"
    monkeypatch.chdir(tmp_path)
    assert ledger.results_root() == tmp_path / "_results"
    monkeypatch.setenv(ledger.RESULTS_VARIABLE, str(tmp_path / "elsewhere"))
    assert ledger.results_root() == tmp_path / "elsewhere"


def record_all(job):
    """Runs in a process of its own: record the given claims under a model's name."""
    claim_ids, model, folder, level = job
    for claim_id in claim_ids:
        ledger.record(claim_id, planted(claim_id, model, level), root=Path(folder))
    return len(claim_ids)


def planted(claim_id, model, level):
    """A measurement of the claim's quantity with a value made up by the test."""
    measure = load_claims()[claim_id].measure
    low, high = (max(UNITS[measure.unit][0], -5.0), min(UNITS[measure.unit][1], 5.0))
    value = low + level * (high - low)
    return Measurement(
        value=value,
        unit=measure.unit,
        n=500,
        seed=7,
        model=model,
        interval=(value, value),
        baselines=dict.fromkeys(measure.baselines, low + 0.5 * (high - low)),
    )


RUNNABLE = [claim.id for claim in load_claims().values() if claim.rule]


def numbers(model, root=None):
    return {key: (r.outcome, r.verdict) for key, r in ledger.results(model, root).items()}


def test_deleted_results_are_rebuilt_the_same(results_folder):
    record_all((RUNNABLE, MODEL, results_folder, 0.9))
    first = numbers(MODEL)
    assert list(first) == RUNNABLE and ledger.missing(MODEL) == ()
    for path in results_folder.glob("*/*.json"):
        path.unlink()
    assert ledger.missing(MODEL) == tuple(RUNNABLE)
    assert all(row.status in ("not run", "discussed") for row in ledger.rows(MODEL))
    record_all((RUNNABLE, MODEL, results_folder, 0.9))
    assert numbers(MODEL) == first


def test_processes_side_by_side_write_what_one_writes(results_folder, tmp_path):
    shares = [RUNNABLE[start::2] for start in range(2)]
    jobs = [(["SYN-13"] * 40, "contested", results_folder, level) for level in (0.2, 0.9)]
    jobs += [(share, MODEL, results_folder, 0.9) for share in shares]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(record_all, jobs)) == [40, 40, 117, 117]
    record_all((RUNNABLE, MODEL, tmp_path / "alone", 0.9))
    assert numbers(MODEL) == numbers(MODEL, tmp_path / "alone")
    # Whoever wrote last, the file is whole and one of the two.
    assert ledger.result("SYN-13", "contested").measurement.value in (0.2, 0.9)
    assert [p for p in results_folder.rglob("*") if p.suffix == ".tmp"] == []


def test_ledger_needs_no_torch():
    code = "import sys, bertology_utils.ledger as l; l.load_claims(); print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.stdout.strip() == "False", run.stderr


def test_default_model_is_the_encoders(monkeypatch, tmp_path):
    monkeypatch.delenv("BERTOLOGY_MODEL", raising=False)
    assert ledger.default_model() == MODEL
    monkeypatch.setenv("BERTOLOGY_MODEL", "google/electra-small")
    assert ledger.default_model() == "google/electra-small"
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    monkeypatch.setenv("BERTOLOGY_MODEL", str(folder))
    assert ledger.default_model() == "mine"


# ---------------------------------------------------------------- tables


def test_table_of_a_chapter():
    ledger.record("SYN-13", agreement())
    shown = ledger.table("02", MODEL)
    assert [row.claim.id for row in shown] == [f"SYN-{n:02d}" for n in range(1, 23)]
    row = next(row for row in shown if row.claim.id == "SYN-13")
    assert row.status == REPLICATES
    assert row.ours == "0.9 [0.85, 0.94] (share, n = 400); chance 0.5, random model 0.52"
    assert "simple 1.00/1.00" in row.paper
    assert row.measured.endswith("above chance and random model")
    assert ("Goldberg 2019", "https://arxiv.org/abs/1901.05287") in row.sources
    assert shown.counts() == {REPLICATES: 1, "not run": 21}
    assert ledger.table("02_syntax", MODEL).counts() == shown.counts()
    with pytest.raises(KeyError, match="77"):
        ledger.table("77", MODEL)


def test_table_as_html_and_markdown():
    ledger.record("SYN-13", agreement())
    shown = ledger.table("02", MODEL)
    html, markdown = shown._repr_html_(), shown._repr_markdown_()
    assert html.count("<tr") == 23 and html.count('<th scope="row">') == 22
    assert '<a href="#syn-13">SYN-13</a>' in html and "verdict-replicates" in html
    rows = [line for line in markdown.splitlines() if line.startswith("| SYN-")]
    assert len(rows) == 22
    unescaped = [line.replace("\\|", "").count("|") for line in rows]
    assert unescaped == [7] * 22
    assert "†" in html and html.endswith("paper itself.</p>")


def test_discussed_rows_show_their_reason():
    row = next(row for row in ledger.rows(MODEL, chapter="04") if row.claim.id == "KNO-06")
    assert row.status == "discussed" and row.ours == row.claim.reason and row.measured == ""


def test_only_verified_figures_are_shown():
    for row in ledger.rows(MODEL):
        for figure in row.claim.figures:
            assert (figure.text in row.paper) == (figure.status == "verified")
        if not row.claim.printable_figures:
            assert row.paper in ("", "no figure; in words only")


def test_second_hand_figures_are_marked():
    marked = {row.claim.id: row.paper.endswith("†") for row in ledger.rows(MODEL, chapter="02")}
    assert marked["SYN-18"]  # known from notes
    assert not marked["SYN-14"]  # recomputed from the author's files


def test_text_cannot_become_markup():
    model = "<script>alert(1)</script>|`x`"
    reason = 'no "NSP" head <img src=x onerror=alert(1)> | _really_'
    entry = ledger.record("BG-05", NotTestable(model=model, reason=reason))
    shown = ledger.table("01", model)
    for html in (shown.to_html(), entry._repr_html_()):
        assert "<script" not in html and "<img" not in html
        assert "&lt;img src=x onerror=alert(1)&gt;" in html
    line = next(x for x in shown.to_markdown().splitlines() if x.startswith("| BG-05"))
    assert "\\<img" in line and "\\| \\_really\\_" in line


def test_numbers_for_sentences():
    ledger.record("SYN-13", agreement())
    ledger.record("SYN-14", NotTestable(model=MODEL, reason="too few words"))
    found = ledger.glue_values("02", MODEL)
    unasked = [key for key, value in found.items() if value != value]
    assert unasked == ["syn-14", "syn-14-low", "syn-14-high", "syn-14-n", "syn-14-chance",
                       "syn-14-random-model"]  # fmt: skip
    assert {key: value for key, value in found.items() if key not in unasked} == {
        "syn-13": 0.9,
        "syn-13-verdict": REPLICATES,
        "syn-13-n": 400,
        "syn-13-low": 0.85,
        "syn-13-high": 0.94,
        "syn-13-chance": 0.5,
        "syn-13-random-model": 0.52,
        "syn-14-verdict": NOT_TESTABLE,
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.123456, "0.123"), (12.3456, "12.3"), (1.2e-6, "1.20e-06"), (7709, "7,709")],
)
def test_numbers_are_short(value, text):
    assert ledger.tables.number(value) == text


def test_record_says_what_it_found():
    entry = ledger.record("SYN-13", agreement(0.55, (0.5, 0.6)))
    assert str(entry) == (
        f"SYN-13 on {MODEL}: partly (0.55 is above 0.52, its interval [0.5, 0.6] is not)"
    )
