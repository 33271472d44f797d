"""Sweeps: axes, catalogue, the command, caching of runs, a real kill, equal curves."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from bertology_utils.__main__ import main
from bertology_utils.resampling import Estimate
from bertology_utils.sweeps import SWEEPS, Sweep, SweepError, run_sweep
from bertology_utils.sweeps.command import described, with_values
from bertology_utils.sweeps.running import package_digest
from bertology_utils.sweeps.tables import as_text, chart, write_tables

ROOT = Path(__file__).resolve().parent.parent
#: every sweep with values so small that it takes seconds
SMALL = {
    "pretraining": (["12"], ["run=base,replaced tokens"]),
    "fine-tuning-luck": (["8"], ["task=sentiment", "texts=0"]),
    "fine-tuning-methods": (["8"], ["task=acceptability", "method=frozen,fresh-top-2"]),
    "distillation": (["8"], ["steps=2", "student=1-layer,48-wide,lstm", "lesson=labels,scores"]),
    "pruning": (["8"], ["steps=2", "kept=0.5",
                        "criterion=random-units,movement,rewound,top-layers"]),
    "subnetworks": (["8"], ["cut=0.5", "task=grammar", "kind=bad"]),
    "twins": (["24"], ["steps=3", "layers=1", "dropout=0.3"]),
    "shortcuts": (["8"], ["share=1"]),
    "heuristics": (["8"], ["counterexamples=0.5"]),
}


# -- a sweep that counts what it computes ----------------------------------------------------------


@dataclass(frozen=True)
class Config:
    way: str
    size: int
    seed: int


CALLS: list[Config] = []


def make(encoder, way, size, seed):
    if size == 13:
        raise ValueError("size 13 brings bad luck")
    return None if way == "b" and size == 3 else Config(way, size, seed)


def work(encoder):
    def compute(batch):
        CALLS.extend(batch)
        return [{"values": {"height": c.size + c.seed / 10} | ({"b": 1.0} if c.way == "b" else {})}
                for c in batch]  # fmt: skip

    return compute


TOY = Sweep("toy", "00", "a toy", {"way": ("a", "b"), "size": (2, 3), "seed": (0, 1, 2)},
            make, work, {"height": "m", "b": "share"}, uses_model=False)  # fmt: skip


@pytest.fixture(autouse=True)
def count():
    CALLS.clear()


def test_axes_read_what_the_command_line_says():
    assert TOY.at("size", ["5", "7"]).axes["size"] == (5, 7)
    assert SWEEPS["pruning"].at("kept", ["0.25"]).axes["kept"] == (0.25,)
    with pytest.raises(SweepError, match="no axis 'colour'; it has way, size, seed"):
        TOY.at("colour", ["red"])
    with pytest.raises(SweepError, match="no value 'c'; it has: a, b"):
        TOY.at("way", ["c"])
    with pytest.raises(SweepError, match="takes numbers such as 2, not 'many'"):
        TOY.at("size", ["many"])
    for values in ([], ["2", "2"]):
        with pytest.raises(SweepError, match="different values"):
            TOY.at("size", values)
    with pytest.raises(SweepError, match="negative"):
        TOY.at("size", ["-1"])
    with pytest.raises(SweepError, match="way=a, size=13, seed=0: size 13 brings bad luck"):
        TOY.at("size", ["13"]).runs(None)
    with pytest.raises(SweepError, match="no combination"):
        TOY.at("size", [3]).at("way", ["b"]).runs(None)


def test_every_run_is_computed_once_and_summed_up(tmp_path):
    lines: list[str] = []
    result = run_sweep(TOY, None, tmp_path, say=lines.append)
    assert (result.computed, result.found) == (9, 0) == (len(CALLS), 0)
    assert lines[0] == "9 runs, 9 of them to be computed" and lines[-1].startswith("9/9  way b")
    assert [row["size"] for row in result.rows if row["way"] == "b"] == [2, 2, 2]
    found = result.summary()
    assert list(found) == [("a", 2), ("a", 3), ("b", 2)]
    height = found["a", 3]["height"]
    assert height.value == pytest.approx(3.1) and height.n == 3
    assert height.interval == pytest.approx((3.1 - 0.2484, 3.1 + 0.2484), abs=1e-3)
    assert "b" not in found["a", 2] and found["b", 2]["b"].value == 1.0
    again = run_sweep(TOY.at("seed", range(4)), None, tmp_path, say=lines.append)
    assert (again.computed, again.found) == (3, 9) and len(CALLS) == 12
    assert as_text(again).splitlines()[0].split() == ["way", "size", "runs", "height", "b"]
    assert re.search(r"^a +2 +4 +2\.150 \[.*\] +-$", as_text(again), re.MULTILINE)


def test_a_damaged_run_is_told_and_computed_again(tmp_path):
    run_sweep(TOY, None, tmp_path)
    path = next(tmp_path.glob("*.json"))
    path.write_text(path.read_text()[:30])
    lines: list[str] = []
    result = run_sweep(TOY, None, tmp_path, say=lines.append)
    assert result.computed == 1 and lines[0] == f"{path.name} is damaged; the run is computed again"


def test_another_package_or_model_finds_nothing(tmp_path, monkeypatch):
    run_sweep(TOY, None, tmp_path)
    monkeypatch.setattr("bertology_utils.sweeps.running.package_digest", lambda: "a newer one")
    assert run_sweep(TOY, None, tmp_path).computed == 9
    monkeypatch.undo()
    assert run_sweep(TOY, None, tmp_path).computed == 0
    assert package_digest() == package_digest() and len(package_digest()) == 24


def test_one_sweep_at_a_time_uses_a_folder(tmp_path):
    from filelock import FileLock

    with FileLock(tmp_path / ".lock"), pytest.raises(SweepError, match="another sweep is using"):
        run_sweep(TOY, None, tmp_path)


def test_tables_hold_every_run(tmp_path):
    result = run_sweep(TOY, None, tmp_path / "runs")
    paths = write_tables(result, tmp_path)
    with paths[0].open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 9 and rows[0] == {"way": "a", "size": "2", "seed": "0", "height": "2.0",
                                          "b": ""}  # fmt: skip
    whole = json.loads(paths[1].read_text())
    assert whole["sweep"] == "toy" and whole["axes"]["size"] == [2, 3]
    assert whole["runs"] == [dict(row) for row in result.rows]
    assert whole["summary"][2]["height"]["value"] == pytest.approx(2.1)


@pytest.mark.parametrize("settings", ({}, {"size": [2]}, {"way": ["a"]}, {"seed": [0]}))
def test_the_first_number_is_drawn(tmp_path, settings):
    sweep = replace(TOY, config=lambda encoder, **values: Config(**values))
    for axis, values in settings.items():
        sweep = sweep.at(axis, values)
    drawn = chart(run_sweep(sweep, None, tmp_path))
    assert "height" in str(drawn.columns) + str([a.get_ylabel() + a.get_xlabel()
                                                 for a in drawn.axes])  # fmt: skip
    assert drawn.rows


# -- the catalogue ---------------------------------------------------------------------------------


def test_every_chapter_from_09_to_13_has_a_sweep_and_names_it():
    for sweep in SWEEPS.values():
        (page,) = (ROOT / "chapters").glob(f"{sweep.chapter}_*.md")
        text = page.read_text(encoding="utf-8")
        assert "## A larger version" in text, page.name
        assert f"python -m bertology_utils sweep {sweep.name}" in text, (page.name, sweep.name)
    assert {sweep.chapter for sweep in SWEEPS.values()} == {"09", "10", "11", "12", "13"}


def test_examples_in_the_pages_can_be_read():
    import shlex

    pages = [*(ROOT / "chapters").glob("*.md"), ROOT / "README.md"]
    lines = [line.strip() for page in pages for line in page.read_text("utf-8").splitlines()]
    found = [line for line in lines
             if "-m bertology_utils sweep " in line and line.split()[0].endswith("python")]
    assert len(found) >= len(SWEEPS)
    from bertology_utils.__main__ import parser

    for line in found:
        args = parser().parse_args(shlex.split(line, comments=True)[3:])
        if args.name is not None:
            assert with_values(args.name, args.seeds, args.sizes, args.set).name == args.name


def test_the_listing_names_all_sweeps_and_axes(capsys):
    assert main(["sweep"]) == 0
    said = capsys.readouterr().out
    assert said.strip() == described()
    for sweep in SWEEPS.values():
        assert sweep.name in said and all(axis in said for axis in sweep.axes)
        values = [axis for axis in sweep.seeds if axis not in sweep.axes]
        assert not values and sweep.size in sweep.axes
        assert len(next(iter(sweep.axes.values()))) > 0


@pytest.mark.parametrize("name", SWEEPS)
def test_every_sweep_runs_and_is_found_again(name, tmp_path, capsys):
    sizes, settings = SMALL[name]
    command = ["sweep", name, "--seeds", "1", "--sizes", *sizes, "--out", str(tmp_path)]
    for setting in settings:
        command += ["--set", setting]
    assert main([*command, "--figure", str(tmp_path / "f.svg")]) == 0
    first = capsys.readouterr().out
    assert "0 found from earlier" in first and (tmp_path / "f.svg").stat().st_size > 2000
    whole = json.loads((tmp_path / "table.json").read_text())
    measure = next(iter(SWEEPS[name].measures))
    numbers = [row[measure] for row in whole["runs"]]
    assert numbers and np.isfinite([n for n in numbers if n is not None]).all()
    assert bool(whole["model"]) == SWEEPS[name].uses_model
    before = (tmp_path / "table.csv").read_text()
    assert main(command) == 0
    assert "\n0 runs computed now" in capsys.readouterr().out
    assert (tmp_path / "table.csv").read_text() == before


def test_bad_input_is_one_line(tmp_path, capsys):
    for command, word in (
        (["nothing"], "no sweep 'nothing'; there are: pretraining"),
        (["twins", "--seeds", "0"], "at least 1"),
        (["twins", "--set", "width"], "AXIS=VALUE"),
        (["twins", "--set", "depth=3"], "no axis 'depth'"),
        (["twins", "--sizes", "30", "--out", str(tmp_path)], "width=30"),
        (["pruning", "--set", "kept=0", "--out", str(tmp_path)], "kept=0.0"),
        (["twins", "--figure", "f.txt"], "f.txt: figures are .svg"),
    ):
        assert main(["sweep", *command]) == 2
        said = capsys.readouterr()
        assert word in said.err and len(said.err.strip().splitlines()) == 1, command


# -- killed, and equal -----------------------------------------------------------------------------


def curves(folder):
    return {path.name: json.loads(path.read_text())["record"] for path in folder.glob("*.json")}


# The command, which ends itself by force once it has said that two runs are done.
DYING = """
import builtins, os, signal, sys
said = print
def say(*words, **options):
    said(*words, **options)
    if words[0].startswith("2/6"):
        os.kill(os.getpid(), signal.SIGKILL)
builtins.print = say
from bertology_utils.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_killed_sweep_goes_on_and_the_same_seed_gives_the_same_curve(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    options = ["sweep", "twins", "--seeds", "3",
               "--sizes", "24", "48", "--set", "steps=12", "--set", "layers=1",
               "--set", "dropout=0"]  # fmt: skip
    command = [sys.executable, "-m", "bertology_utils", *options]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    dying = subprocess.run([sys.executable, "-c", DYING, *options, "--out", str(killed)],
                           capture_output=True, text=True, env=environment, cwd=ROOT)  # fmt: skip
    said = dying.stdout.splitlines()
    assert dying.returncode == -signal.SIGKILL, dying.stderr
    assert said[0].startswith("6 runs, 6") and said[-1].startswith("2/6")
    runs = killed / "runs"
    finished = {path.name: path.stat().st_mtime_ns for path in runs.glob("*.json")}
    assert len(finished) == 2 and not (killed / "table.json").exists()
    time.sleep(0.02)
    again = subprocess.run([*command, "--out", str(killed)], capture_output=True, text=True,
                           env=environment, cwd=ROOT, check=True)  # fmt: skip
    assert f"6 runs, {6 - len(finished)} of them to be computed" in again.stdout
    assert f"{len(finished)} found from earlier" in again.stdout
    for name, when in finished.items():
        assert (runs / name).stat().st_mtime_ns == when
    subprocess.run([*command, "--out", str(whole)], capture_output=True, env=environment, cwd=ROOT,
                   check=True)  # fmt: skip
    assert curves(runs) == curves(whole / "runs") and len(curves(runs)) == 6
    values = [record["values"]["loss"] for record in curves(runs).values()]
    assert len(set(values)) == 6
    assert (killed / "table.csv").read_text() == (whole / "table.csv").read_text()


def test_a_single_seed_has_no_interval(tmp_path):
    result = run_sweep(TOY.at("seed", [0]), None, tmp_path)
    assert not any(isinstance(e, Estimate) for row in result.summary().values()
                   for e in row.values())  # fmt: skip
    assert "[" not in as_text(result)
