"""Builds say what they were made from, are compared number by number, and can be repeated."""

import ast
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from minibook import MiniBook

from bertology_utils.ledger import load_claims
from bertology_utils.reproduce.chapters import read_book
from bertology_utils.reproduce.surroundings import cell_environment
from tools import build_record
from tools.compare_builds import TIMED_NAMES, TOLERANCE, Difference, compare, find_store, main
from tools.run_again import INSTRUCTIONS, RunsFailed, choose_chapters, run_again

ROOT = Path(__file__).resolve().parent.parent


class Build:
    """The folder of a build of one chapter, with what it glued, showed and recorded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "results" / "chapters--one" / "model").mkdir(parents=True)
        (folder / "executions.json").write_text("{}")
        self.write()

    def write(self, glued: str = "0.25", html: str = "<b>0.25</b>", code: str = "measure()"):
        data = {"application/papermill.record/text/plain": glued}
        cell = nbformat.v4.new_code_cell(code)
        cell.outputs = [
            nbformat.v4.new_output(
                "display_data", data=data, metadata={"scrapbook": {"name": "one-share"}}
            ),
            nbformat.v4.new_output("execute_result", data={"text/html": html}),
        ]
        notebook = nbformat.v4.new_notebook(cells=[cell])
        nbformat.write(notebook, self.folder / "chapters--one.ipynb")

    def record(self, claim: str, value: float, word: str = "replicates", **details: float):
        outcome = {"value": value, "interval": [value - 1, value + 1], "details": details}
        record = {"claim": claim, "outcome": outcome, "verdict": {"word": word}}
        path = self.folder / "results" / "chapters--one" / "model" / f"{claim}.json"
        path.write_text(json.dumps(record))


@pytest.fixture
def builds(tmp_path: Path) -> tuple[Build, Build]:
    first = Build(tmp_path / "first")
    first.record("SYN-01", 0.5, depth=3.0)
    shutil.copytree(first.folder, tmp_path / "second")
    second = Build.__new__(Build)
    second.folder = tmp_path / "second"
    return first, second


def folders(builds) -> tuple[Path, Path]:
    return builds[0].folder, builds[1].folder


def test_equal_builds_agree_in_every_number(builds, capsys):
    found = compare(*folders(builds))
    assert (found.chapters, found.numbers, found.outputs) == (["chapters/one"], 5, 1)
    assert not found.differences and not found.outputs_changed and found.largest == 0
    assert found.agrees(tolerance=0)
    assert main([*map(str, folders(builds)), "--tolerance", "0"]) == 0
    assert "5 numbers: 5 equal to the last bit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "relative", "agrees"),
    ((0.5 + 1e-9, 2e-9, True), (0.5 + 1e-5, 2e-5, False), (-0.5, 2.0, False)),
)
def test_the_largest_relative_difference_decides(builds, value, relative, agrees, capsys):
    builds[1].record("SYN-01", 0.5, depth=3.0)
    path = builds[1].folder / "results" / "chapters--one" / "model" / "SYN-01.json"
    record = json.loads(path.read_text())
    record["outcome"]["value"] = value
    path.write_text(json.dumps(record))
    found = compare(*folders(builds))
    (difference,) = found.differences
    assert (difference.chapter, difference.place) == ("chapters/one", "SYN-01 value")
    assert found.largest == pytest.approx(relative, rel=1e-4)
    assert found.agrees() is agrees
    assert main(list(map(str, folders(builds)))) == (0 if agrees else 1)
    assert "SYN-01 value: 0.5 and" in capsys.readouterr().out


def test_differences_of_numbers_that_are_nothing_are_small():
    assert Difference("one", "x", 0.0, 3e-17).relative < 1e-13
    assert Difference("one", "x", 1e-4, 2e-4).relative == pytest.approx(0.1)
    assert Difference("one", "x", 2e6, 1e6).relative == 0.5


def test_another_glued_number_another_word_and_a_missing_record_part_the_builds(builds):
    builds[1].write(glued="0.26")
    found = compare(*folders(builds))
    assert [gap.place for gap in found.differences] == ["one-share"] and not found.agrees()

    builds[1].write(glued="'none'")
    (place,) = compare(*folders(builds)).one_sided
    assert "one-share: 0.25 / none" in place

    builds[1].write()
    builds[1].record("SYN-01", 0.5, word="partly", depth=3.0)
    found = compare(*folders(builds))
    assert found.verdicts == {"SYN-01": ("replicates", "partly")} and not found.agrees()

    shutil.rmtree(builds[1].folder / "results" / "chapters--one" / "model")
    found = compare(*folders(builds))
    assert len(found.one_sided) == 4 and not found.agrees()


def test_figures_and_tables_are_compared_to_the_byte_but_fail_nothing(builds):
    builds[1].write(html="<b>0.250</b>")
    found = compare(*folders(builds))
    assert found.outputs_changed == {"chapters/one": [1]} and found.agrees()


def test_times_are_shown_apart_and_fail_nothing(builds):
    for build, value in zip(builds, (1.0, 1.5), strict=True):
        build.record("SIZE-02", value, word="replicates" if value == 1 else "partly")
    found = compare(*folders(builds))
    assert found.numbers == 5 and len(found.timed) == 3
    assert found.timed_verdicts == {"SIZE-02": ("replicates", "partly")}
    assert found.agrees()


def test_rows_that_measure_time_say_so():
    for claim in load_claims().values():
        if claim.measure is not None:
            of_time = claim.measure.name.startswith(("time of", "exponent of the time", "speed"))
            assert not of_time or claim.measure.timed, claim.id
    sources = "".join(path.read_text() for path in (ROOT / "chapters").glob("*.md"))
    for name in TIMED_NAMES:
        assert f'glue("{name}"' in sources, name


def test_chapters_with_other_code_are_not_compared(builds):
    builds[1].write(code="measure(differently)")
    found = compare(*folders(builds))
    assert (found.chapters, found.left_out) == ([], ["chapters/one"])
    assert not found.agrees(), "nothing was compared"
    (builds[1].folder / "chapters--one.ipynb").rename(builds[1].folder / "chapters--two.ipynb")
    assert compare(*folders(builds)).left_out == ["chapters/one", "chapters/two"]


def test_a_book_stands_for_its_newest_build_and_an_empty_folder_for_none(builds, tmp_path, capsys):
    book = tmp_path / "book" / "_build" / "executed" / "abc"
    shutil.copytree(builds[0].folder, book)
    assert find_store(tmp_path / "book") == book
    assert compare(tmp_path / "book", builds[1].folder).agrees()
    assert main([str(tmp_path / "nowhere"), str(builds[1].folder)]) == 2
    assert "holds no finished build" in capsys.readouterr().err


@pytest.mark.parametrize("text", ("", "[]", "{}", '{"outcome": {}, "verdict": {}}'))
def test_a_damaged_record_is_named(builds, text, capsys):
    (builds[1].folder / "results" / "chapters--one" / "model" / "SYN-01.json").write_text(text)
    with pytest.raises(ValueError, match="SYN-01.json is no record"):
        compare(*folders(builds))
    assert main(list(map(str, folders(builds)))) == 2
    assert "SYN-01.json" in capsys.readouterr().err


GLUES = "from myst_nb import glue\nimport os\nglue('a-number', {}, display=False)"


def test_chapters_run_again_agree_unless_they_hang_on_the_process(tmp_path, capsys):
    mini = MiniBook(tmp_path / "book")
    mini.write("one", GLUES.format("1 / 3"))
    mini.write("two", GLUES.format("hash('a set has an order') % 1000"))
    mini.write("last", "print()", front="bertology:\n  runs_after: all\n")
    assert mini.run()[2] == {"one", "two", "last"}
    (kept,) = mini.store().folder.glob("*one.ipynb")
    before = kept.read_bytes()

    found = run_again(mini.root, [], {"PYTHONHASHSEED": "0"}, jobs=2)
    assert found.chapters == ["chapters/one", "chapters/two"] and found.agrees(tolerance=0)
    found = run_again(mini.root, ["two"], {"PYTHONHASHSEED": "7"}, jobs=1)
    assert [gap.place for gap in found.differences] == ["a-number"] and not found.agrees()
    assert kept.read_bytes() == before

    mini.write("one", "raise RuntimeError('no number')")
    with pytest.raises(RunsFailed, match="no number"):
        run_again(mini.root, ["one"], {}, jobs=1)


def test_the_second_run_has_its_own_environment(tmp_path):
    mini = MiniBook(tmp_path / "book")
    mini.write("one", GLUES.format("int(os.environ['OMP_NUM_THREADS'])"))
    found = run_again(mini.root, ["one"], {"OMP_NUM_THREADS": "3", **INSTRUCTIONS["avx2"]}, jobs=1)
    (gap,) = found.differences
    assert (gap.first, gap.second) == (1, 3)


def test_chapters_are_named_by_number_or_name_and_reports_are_left_out():
    book = read_book(ROOT)
    for name in ("05", "05_probing_limits", "chapters/05_probing_limits", "05_probing_limits.md"):
        (chapter,) = choose_chapters(book, [name]).chapters
        assert chapter.docname == "chapters/05_probing_limits"
    assert not any(chapter.runs_last for chapter in choose_chapters(book, []).chapters)
    for unknown in ("99", "", "status"):
        with pytest.raises(KeyError, match="there is no chapter"):
            choose_chapters(book, [unknown])


# Measurements in processes of their own


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> list[dict[str, dict[str, float]]]:
    """What two fresh processes measure, as cells of the book on two differently set machines."""
    folder = tmp_path_factory.mktemp("measured")
    found = []
    for hash_seed, threads in (("1", "1"), ("2", "4")):
        environ = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        environ.pop("BERTOLOGY_MODEL", None)
        out = folder / f"{hash_seed}.json"
        subprocess.run(
            [sys.executable, str(ROOT / "tests" / "measured.py"), str(out)],
            env=cell_environment(ROOT, "none", folder, environ) | {"PYTHONHASHSEED": hash_seed},
            check=True,
            timeout=900,
        )
        found.append(json.loads(out.read_text()))
    return found


def test_every_room_measures_the_same_in_every_process(measured):
    first, second = (process["one"] for process in measured)
    assert first.keys() == second.keys() and len(first) > 10_000
    apart = {
        place: Difference("", place, value, second[place]).relative
        for place, value in first.items()
        if not (value == second[place] or math.isnan(value) and math.isnan(second[place]))
    }
    assert max(apart.values(), default=0.0) <= TOLERANCE, sorted(apart, key=apart.get)[-5:]


def test_two_threads_change_what_is_smooth_by_rounding_only(measured):
    """Sums of float32 in another order; values are of size 1 or relative to their own size."""
    for process in measured:
        assert len(process["two"]) > 1000
        for place, value in process["two"].items():
            one = process["one"][place]
            assert abs(one - value) <= 2e-4 * max(1.0, abs(one)), place


def test_seeds_are_set_on_streams_that_are_put_back():
    """A seed set for good would make whatever draws from the process's stream look repeatable."""
    for path in sorted((ROOT / "bertology_utils").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = set()
        for node in ast.walk(tree):
            opened = [item.context_expr for item in getattr(node, "items", [])]
            if any("fork_rng" in ast.unparse(e) for e in (*opened, *_decorators(node))):
                inside |= {id(child) for child in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and re.fullmatch(
                r"(torch|np\.random|numpy\.random|random)\.(manual_seed|seed)",
                ast.unparse(node.func),
            ):
                # A pre-training run is a program of its own.
                program = path.name == "pretrain.py"
                assert program or id(node) in inside, f"{path.name}, line {node.lineno}"


def _decorators(node: ast.AST) -> list[ast.expr]:
    return getattr(node, "decorator_list", [])


# What a build was made from


def test_the_record_names_commit_model_package_sources_versions_and_runs(tmp_path, monkeypatch):
    mini = MiniBook(tmp_path / "book")
    (mini.root / "requirements.txt").write_text("numpy==2.4.6\n# words\nno-such-package==1.0\n")
    model = tmp_path / "model"
    model.mkdir()
    for name in ("config.json", "model.safetensors"):
        (model / name).write_text(name)
    monkeypatch.setenv("BERTOLOGY_MODEL", str(model))
    mini.write("one", "import sys\nprint(1)")
    mini.run()
    book = read_book(mini.root)
    runs = json.loads(mini.store().summary.read_text())
    found = build_record.build_record(book, runs)
    assert found["commit"] is None and found["python"] == platform.python_version()
    digest = hashlib.sha256(b"model.safetensors").hexdigest()
    assert found["model"]["name"] == "model"
    assert found["model"]["files"]["model.safetensors"] == digest
    assert found["packages"] == {
        "no-such-package": "not installed",
        "numpy": importlib.metadata.version("numpy"),
    }
    assert found["package"]["files"] == 1
    assert {"intro.md", "chapters/one.md", "_config.yml"} <= set(found["sources"]["files"])
    assert found["chapters"]["chapters/one"]["run_id"] == runs["chapters/one"]["run_id"]
    assert str(tmp_path) not in json.dumps(found)
    assert build_record.build_record(book, runs) == found

    mini.write("one", "import sys\nprint(1)", text="Other words.")
    changed = build_record.build_record(book, runs)
    assert changed["sources"]["sha256"] != found["sources"]["sha256"]
    assert changed["package"] == found["package"]
    (mini.root / "bertology_utils" / "new.py").write_text("")
    changed = build_record.build_record(book, runs)
    assert changed["package"]["sha256"] != found["package"]["sha256"]


def test_the_embedded_model_is_recorded_with_its_weights(monkeypatch):
    monkeypatch.delenv("BERTOLOGY_MODEL", raising=False)
    files = build_record.model_files(ROOT)
    weights = ROOT / "bertology_utils" / "models" / "bertology-mini-uncased" / "model.safetensors"
    assert files["model.safetensors"] == hashlib.sha256(weights.read_bytes()).hexdigest()
    for unknown in ("no/such-model", "no name of the hub's:", "a/b/c"):
        monkeypatch.setenv("BERTOLOGY_MODEL", unknown)
        assert build_record.model_files(ROOT) == {}


def test_the_commit_is_recorded_and_whether_files_differ_from_it(tmp_path):
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        command = ["git", "-C", str(tmp_path), *who, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    assert build_record.commit(tmp_path) is None
    git("init", "--quiet")
    assert build_record.commit(tmp_path) is None, "nothing is committed"
    (tmp_path / "file").write_text("1")
    (tmp_path / "inside").mkdir()
    git("add", "file")
    git("commit", "--quiet", "--message", "One")
    head = git("rev-parse", "HEAD")
    assert build_record.commit(tmp_path) == {"sha1": head, "changed": False}
    assert build_record.commit(tmp_path / "inside") is None, "not the top of the checkout"
    (tmp_path / "file").write_text("2")
    assert build_record.commit(tmp_path) == {"sha1": head, "changed": True}


def test_a_record_is_written_only_when_it_changes(tmp_path):
    path = tmp_path / "build.json"
    build_record.write(path, {"a": 1})
    os.utime(path, ns=(0, 0))
    build_record.write(path, {"a": 1})
    assert path.stat().st_mtime_ns == 0
    build_record.write(path, {"a": 2})
    assert path.stat().st_mtime_ns > 0 and json.loads(path.read_text()) == {"a": 2}
    assert list(tmp_path.iterdir()) == [path]


def test_both_editions_show_the_record_and_follow_it(tmp_path):
    mini = MiniBook(tmp_path / "book")
    mini.write("one", "print(1)", text="```{build-record}\n```")
    for text in ("first", "second"):
        (mini.root / "references.bib").write_text(f"% {text}\n")
        status, output = mini.build()
        assert status == 0, output
        pages = mini.root / "_build" / "html"
        for folder, label in (("", "Sources of the pages"), ("zh", "页面的源文件")):
            record = json.loads((pages / folder / "build.json").read_text())
            page = (pages / folder / "chapters" / "one.html").read_text()
            assert label in page and record["sources"]["sha256"][:16] in page
            assert record["sources"]["files"]["references.bib"] == build_record.sha256(
                mini.root / "references.bib"
            )
            assert 'href="../build.json"' in page
