"""The benchmarks' own machinery: equal results are demanded, ratios are of paired runs."""

import inspect
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import ours, probing, report
from benchmarks.__main__ import main
from benchmarks.arithmetic import Arithmetic
from benchmarks.compare import (
    Comparison,
    Row,
    UnequalError,
    as_good,
    close,
    failures,
    measure,
    regressions,
    same_bits,
)
from benchmarks.inputs import pairs, sentences
from benchmarks.limits import measure_limits
from benchmarks.sides import REQUIREMENTS, Side, SideError, Task
from benchmarks.suite import GROUPS, QUICK, Suite
from bertology_utils.encoder import DEFAULT_MODEL
from bertology_utils.encoder.loading import MODELS_FOLDER

MODEL = str(MODELS_FOLDER / DEFAULT_MODEL)


@pytest.fixture
def given(tmp_path):
    path = tmp_path / "texts.json"
    path.write_text(json.dumps(sentences(8)))
    return {"folder": MODEL, "texts": str(path)}


def test_inputs_are_many_different_and_of_mixed_length():
    texts = sentences(2000)
    assert len(texts) == 2000 and len(set(texts)) > 1900
    words = [len(text.split()) for text in texts]
    assert min(words) <= 5 and max(words) >= 30
    first, second = np.mean(words[:1000]), np.mean(words[1000:])
    assert abs(first - second) < 2, "lengths are mixed throughout"
    assert all(good != bad for good, bad in pairs(20)) and len(set(pairs(20))) == 20


def test_ours_and_plain_give_the_same_scores(given):
    mine, plain = ours.pll_ours(**given)(), ours.pll_plain(**given)()
    assert close("totals", 1e-3)(mine, plain)
    other = {"totals": plain["totals"] + 0.01}
    with pytest.raises(UnequalError, match="differs by"):
        close("totals", 1e-3)(mine, other)


def test_checks_say_what_they_found():
    one = {"x": np.array([1.0, 2.0])}
    assert same_bits("x")(one, one) == "same bits"
    with pytest.raises(UnequalError):
        same_bits("x")(one, {"x": np.array([1.0, np.nextafter(2.0, 3)])})
    with pytest.raises(UnequalError):
        close("x", 1.0)(one, {"x": np.array([1.0, np.nan])})
    assert as_good("x", 0.1, higher=True)(one, {"x": np.array([1.55])})
    with pytest.raises(UnequalError, match="mean x"):
        as_good("x", 0.01, higher=False)(one, {"x": np.array([1.4])})


class Scripted:
    """A side whose runs take given times."""

    def __init__(self, seconds, value):
        self.seconds, self.value, self.order = iter(seconds), value, []

    def run(self, task, out=None):
        self.order.append(task.function)
        if out is not None:
            np.savez(out, x=np.array([self.value]))
            return {"seconds": 99.0, "processor": 99.0}
        now = next(self.seconds)
        return {"seconds": now, "processor": now / 2}


def test_a_row_is_the_median_of_ratios_within_rounds(tmp_path):
    comparison = Comparison(
        "scores", "row", Task("a", "f", {}), Task("b", "g", {}), same_bits("x"), 3.0
    )
    sides = {"a": Scripted([1, 2, 4], 5.0), "b": Scripted([4, 4, 40], 5.0)}
    row = measure(comparison, sides, 3, tmp_path)
    assert (row.ratio, row.spread, row.ours, row.theirs) == (4.0, (2.0, 10.0), 2, 4)
    assert row.processor == 4.0 and failures([row]) == []
    missed = Row("scores", "row", ratio=2.0, goal=3.0)
    assert failures([missed]) == ["scores, row: 2.00, aimed at 3.0"]


def test_unequal_results_are_not_timed(tmp_path):
    comparison = Comparison("g", "row", Task("a", "f", {}), Task("b", "g", {}), same_bits("x"))
    sides = {"a": Scripted([], 5.0), "b": Scripted([], 6.0)}
    row = measure(comparison, sides, 3, tmp_path)
    assert "differs" in row.failed and math.isnan(row.ratio) and failures([row])
    assert sides["a"].order == ["f"] and sides["b"].order == ["g"]


def test_a_process_answers_and_survives_a_failed_task(given, tmp_path):
    with Side(sys.executable, "ours", 1) as side:
        with pytest.raises(SideError, match="no_such"):
            side.run(Task("ours", "no_such", {}))
        out = tmp_path / "out.npz"
        reply = side.run(Task("ours", "nothing_kept", given), out)
    assert reply["seconds"] > 0 and reply["peak_mb"] > 50
    with np.load(out) as arrays:
        assert arrays["n"] == 8


def test_the_page_names_versions_ratios_and_failures():
    rows = [
        Row("scores", "good", 1.0, 4.5, 4.5, (4, 5), 4.4, "1e-06", 4.0, "", 3),
        Row("scores", "bad", failed="it broke"),
    ]
    results = {
        "machine": report.machine(1),
        "versions": report.versions(REQUIREMENTS),
        "sizes": "quick",
        "scores": report.as_json(rows),
    }
    page = report.markdown(json.loads(json.dumps(results, allow_nan=False)))
    assert "**4.50** (4.00 to 5.00)" in page and "not measured: it broke" in page
    assert "minicons 0.3.39" in page
    goals = page[page.index("## Goals") : page.index("## Pseudo")]
    assert "| good | 4 | 4.50 | met |" in goals and "bad" not in goals
    assert not any(part in page for part in (str(Path.home()), str(Path(MODEL).parent)))


def test_a_ratio_that_fell_is_a_regression():
    rows = [
        Row("scores", "one", ratio=3.1, goal=3.0),
        Row("scores", "two", ratio=2.9),
        Row("scores", "new", ratio=0.1),
        Row("scores", "broken", failed="it broke"),
    ]
    earlier = {"one": 4.0, "two": 4.0, "broken": 4.0}
    assert regressions(rows, earlier, 0.25) == [
        "scores, two: 2.90, was 4.00",
        "scores, broken: nan, was 4.00",
    ]
    assert regressions(rows[:2], earlier, 0.5) == []
    with pytest.raises(ValueError, match="none of these rows"):
        regressions(rows, {"other": 1.0}, 0.25)


def test_the_table_has_what_its_rows_say():
    stored = report.load(Path(report.__file__).with_name("results.json"))
    page = Path(report.__file__).with_name("RESULTS.md").read_text(encoding="utf-8")
    assert page == report.markdown(stored), "RESULTS.md was changed by hand"
    found = report.ratios(stored)
    assert len(found) > 20 and all(ratio > 0 for ratio in found.values())


def test_every_task_of_the_suite_exists_and_takes_its_arguments(tmp_path):
    suite = Suite(tmp_path, MODEL, QUICK, "cpu")
    modules = {"ours": ours, "probing": probing}
    tasks = list(suite.limited().values())
    for group in GROUPS:
        for row in suite.group(group):
            tasks += [row.ours, row.theirs]
    for task in tasks:
        if task.side != "peers":  # theirs need their own environment
            function = getattr(modules[task.side], task.function)
            inspect.signature(function).bind(**task.arguments)
    assert {task.arguments.get("device") for task in tasks if task.side == "peers"} == {"cpu"}


def test_arithmetic_is_counted_and_held_against_the_device(given, tmp_path):
    tasks = {"a": Task("ours", "pll_ours", {**given, "device": "cpu"})}
    (row,) = measure_limits(tasks, tmp_path, sys.executable, 1, "cpu", 1)
    assert row.precision == "float32" and row.difference == 0
    with Arithmetic() as counted, torch.no_grad():
        torch.nn.functional.linear(torch.ones(3, 4), torch.ones(5, 4), torch.ones(5))
    assert counted.operations == 2 * 3 * 4 * 5
    assert row.operations > 1e9 and row.seconds > 0 and row.peak > 0
    page = report.markdown(
        {"machine": "m", "versions": "v", "sizes": "quick", "limits": report.as_json([row])}
    )
    assert "| a | float32 |" in page and "%" in page


def test_half_the_bits_are_told_by_their_difference(given):
    exact, half = (ours.pll_ours(**given, precision=p)() for p in ("float32", "bfloat16"))
    difference = np.abs(exact["totals"] - half["totals"]).max()
    assert 0 < difference < 1
    assert ours.collect_ours(**given, precision="bfloat16")()["hidden"].dtype == np.float64


def test_the_command_refuses_what_it_cannot_do(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for wrong, says in (
        (["--device", "cuda"], "no CUDA device"),
        (["--baseline", str(tmp_path / "none.json")], "no file"),
        (["--tolerance", "1"], "between 0 and 1"),
        (["--rounds", "0"], "start at 1"),
        (["--only", "scores", "--match", "nothing so", "--out", str(tmp_path)], "is called"),
    ):
        with pytest.raises(SystemExit):
            main(wrong)
        assert says in capsys.readouterr().err
