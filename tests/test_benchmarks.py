"""The benchmarks' own machinery: equal results are demanded, ratios are of paired runs."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import ours, report
from benchmarks.compare import (
    Comparison,
    Row,
    UnequalError,
    as_good,
    close,
    failures,
    measure,
    same_bits,
)
from benchmarks.inputs import pairs, sentences
from benchmarks.sides import REQUIREMENTS, Side, SideError, Task
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
    assert not any(part in page for part in (str(Path.home()), str(Path(MODEL).parent)))
