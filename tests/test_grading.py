"""Grading: right scores, nothing lost, nobody hurt by a submission that hangs or breaks things."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import numpy as np
import psutil
import pytest

from tools import assignments
from tools.grading import Limits, ScoresError, codec, grade_folder, load_assignment
from tools.grading.assignment import SETUP_TAG
from tools.grading.judge import given_names, judge
from tools.grading.sandbox import Ended, Worker, _namespaces, isolation_layers
from tools.grading.scores import columns_of
from tools.grading.worker import without_magics

LIMITS = Limits(wall=45, cpu=5, memory=400 * 2**20, file=2**20)
INNER = ("limits", "audit")

MASTER = '''# A tiny assignment

```{code-cell} ipython3
import math

words = ["one", "two"]
```

```otter
# BEGIN QUESTION
name: q1
```

## Question 1

```otter
# BEGIN SOLUTION
```

```{code-cell} ipython3
def mean(values):
    # BEGIN SOLUTION
    return math.fsum(values) / len(values)
    # END SOLUTION
```

```otter
# END SOLUTION
```

```otter
# BEGIN TESTS
```

```{code-cell} ipython3
""" # BEGIN TEST CONFIG
points: 1
""" # END TEST CONFIG
def test_two(mean):
    assert mean([1, 3]) == 2, "the mean of two numbers is wrong"
```

```{code-cell} ipython3
""" # BEGIN TEST CONFIG
points: 2
hidden: true
""" # END TEST CONFIG
def test_secret_many(mean):
    assert mean([1, 2, 9]) == 4, "the number of values does not count"
```

```otter
# END TESTS
```

```otter
# END QUESTION
```

```otter
# BEGIN QUESTION
name: q2
```

## Question 2

```otter
# BEGIN SOLUTION
```

```{code-cell} ipython3
def longest(texts):
    # BEGIN SOLUTION
    return max(texts, key=len)
    # END SOLUTION
```

```otter
# END SOLUTION
```

```otter
# BEGIN TESTS
```

```{code-cell} ipython3
""" # BEGIN TEST CONFIG
points: 2
""" # END TEST CONFIG
def test_given(longest, words):
    assert longest([*words, "three"]) == "three", "not the longest"
```

```otter
# END TESTS
```

```otter
# END QUESTION
```

```otter
# BEGIN QUESTION
name: q3
points: 4
manual: true
```

## Question 3

```otter
# BEGIN SOLUTION
```

*Rubric.* One point for every reason.

```otter
# END SOLUTION
```

```otter
# END QUESTION
```
'''

MEAN = "def mean(values):\n    return sum(values) / len(values)"
HALF = "def mean(values):\n    return sum(values) / 2"
LONGEST = "def longest(texts):\n    return max(texts, key=len)"
SHORTEST = "def longest(texts):\n    return min(texts, key=len)"


def notebook(*cells: str) -> str:
    given = "import math\n\nwords = ['one', 'two']"
    made = [nbformat.v4.new_code_cell(cell) for cell in ("import otter", given, *cells)]
    setup = nbformat.v4.new_code_cell("raise OSError('not run while grading')")
    setup.metadata["tags"] = [SETUP_TAG]
    made.insert(0, setup)
    made.append(nbformat.v4.new_code_cell('grader.check("q1")'))
    return nbformat.writes(nbformat.v4.new_notebook(cells=made))


@pytest.fixture(scope="module")
def assignment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    master = folder / "99_tiny.md"
    master.write_text(MASTER, encoding="utf-8")
    return load_assignment(assignments.build(master, folder / "out").autograder)


@pytest.fixture(scope="module")
def given(assignment):
    return given_names(assignment)


def misbehaving(precious: Path) -> dict[str, tuple[str, str, float]]:
    """What it does -> (cell that does it, status, points): the solutions come before it.

    A cell that ends the process costs nothing but itself; forged answers cost everything.
    """
    return {
        "loops": ("while True:\n    pass", "timeout", 5),
        "sleeps": ("import time\ntime.sleep(1000)", "timeout", 5),
        "deletes": (
            f"import os, shutil\nfor name in os.listdir({str(precious)!r}):\n"
            f"    os.remove(os.path.join({str(precious)!r}, name))\n"
            f"shutil.rmtree({str(precious)!r})", "graded", 5,
        ),
        "eats_memory": ("block = []\nwhile True:\n    block.append(bytearray(2**24))", "memory", 5),
        "eats_shared_memory": (
            "import mmap\nblock = mmap.mmap(-1, 2**30)\nfor start in range(0, 2**30, 4096):\n"
            "    block[start] = 1", "memory", 5,
        ),
        "leaves": ("import os\nos._exit(0)", "crashed", 5),
        "kills_the_judge": ("import os\nos.kill(os.getppid(), 9)", "graded", 5),
        "starts_programs": (
            f"import subprocess\nsubprocess.run(['rm', '-rf', {str(precious)!r}])", "graded", 5,
        ),
        "calls_out": (
            "import socket\nsocket.create_connection(('127.0.0.1', 80), 1)", "graded", 5,
        ),
        "forges_answers": (
            "import os\nfor number in range(3, 40):\n    try:\n"
            "        os.write(number, b'{\"id\": 1, \"points\": 99}\\n{\"id\": 2}\\n')\n"
            "    except OSError:\n        pass", "crashed", 0,
        ),
        "fills_the_disk": (
            "with open('big', 'wb') as out:\n    while True:\n        out.write(bytes(2**20))",
            "graded", 5,
        ),
    }  # fmt: skip


def class_of_thirty(folder: Path, precious: Path) -> dict[str, tuple[str, float]]:
    """Write 30 submissions; file -> (status, points) that it must get."""
    wanted: dict[str, tuple[str, float]] = {}

    def add(name: str, text: str, status: str, points: float) -> None:
        (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")
        wanted[f"{name}.ipynb"] = (status, points)

    for name, (cell, status, points) in misbehaving(precious).items():
        add(name, notebook(MEAN, LONGEST, cell), status, points)
    for number in range(4):
        add(f"right_{number}", notebook(MEAN, LONGEST), "graded", 5)
        add(f"half_{number}", notebook(HALF, LONGEST), "graded", 3)
        add(f"public_only_{number}", notebook(HALF, SHORTEST), "graded", 1)
    add("stub", notebook("def mean(values):\n    ...", "def longest(t):\n    ..."), "graded", 0)
    add("raises", notebook("def mean(values):\n    raise SystemExit", LONGEST), "graded", 2)
    add("missing", notebook(LONGEST), "graded", 2)
    add("syntax", notebook("def mean(values:", LONGEST), "graded", 2)
    add("magics", notebook("%matplotlib inline\n!ls\n" + MEAN, LONGEST), "graded", 5)
    add("odd_reply", notebook("def mean(values):\n    return object()", LONGEST), "graded", 2)
    add("no_notebook", "this is not JSON", "unreadable", 0)
    assert len(wanted) == 30
    return wanted


def table_of(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return {row["file"]: row for row in csv.DictReader(handle)}


@pytest.fixture(scope="module")
def graded(tmp_path_factory, assignment):
    """A class graded once: (folder, what it must get, table, precious folder, place of boxes)."""
    folder = tmp_path_factory.mktemp("class")
    precious = tmp_path_factory.mktemp("precious")
    (precious / "thesis.txt").write_text("three years of work")
    wanted = class_of_thirty(folder, precious)
    table = tmp_path_factory.mktemp("scores") / "scores.csv"
    boxes = tmp_path_factory.mktemp("boxes")
    before = set(psutil.Process().children(recursive=True))
    with pytest.MonkeyPatch.context() as patch:
        # A place of its own: another run of these tests may be under way.
        patch.setattr(tempfile, "tempdir", str(boxes))
        grade_folder(folder, assignment, table, LIMITS)
    left = set(psutil.Process().children(recursive=True)) - before
    assert psutil.wait_procs(left, timeout=60)[1] == []
    return folder, wanted, table, precious, boxes


def test_thirty_submissions_get_the_right_scores(graded, assignment):
    folder, wanted, table, precious, _ = graded
    rows = table_of(table)
    assert rows.keys() == wanted.keys()
    got = {name: (row["status"], float(row["total"])) for name, row in rows.items()}
    assert got == wanted
    assert {row["possible"] for row in rows.values()} == {"5"}
    assert {row["q3 written (4)"] for row in rows.values()} == {""}
    assert len(list(folder.iterdir())) == 30
    assert (precious / "thesis.txt").read_text() == "three years of work"


def test_the_reasons_name_what_is_missing(graded):
    rows = table_of(graded[2])
    assert "the number of values does not count" in rows["half_0.ipynb"]["reasons"]
    assert "mean returns None" in rows["stub.ipynb"]["reasons"]
    assert "mean is not there" in rows["missing.ipynb"]["reasons"]
    assert "SyntaxError" in rows["syntax.ipynb"]["reasons"]
    assert "object cannot be handed over" in rows["odd_reply.ipynb"]["reasons"]
    assert "raised SystemExit" in rows["raises.ipynb"]["reasons"]
    assert "timeout" in rows["loops.ipynb"]["reasons"]
    assert "not done after" in rows["sleeps.ipynb"]["reasons"]
    assert "outside of the submission's folder" in rows["deletes.ipynb"]["reasons"]
    assert "refused: subprocess.Popen" in rows["starts_programs.ipynb"]["reasons"]
    assert rows["right_0.ipynb"]["reasons"] == ""
    assert rows["right_0.ipynb"]["isolation"] == "+".join(isolation_layers())


def test_no_process_and_no_folder_is_left(graded):
    assert list(graded[4].glob("grading-*")) == []  # that no process is left was seen at once


def test_grading_again_keeps_what_is_done(graded, assignment):
    folder, _, table, _, _ = graded
    before = table.read_bytes()
    again = []
    grade_folder(folder, assignment, table, LIMITS, report=lambda *what: again.append(what))
    assert again == [] and table.read_bytes() == before
    assert [path.name for path in table.parent.iterdir()] == [table.name]


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, assignment):
    folder, table = tmp_path / "class", tmp_path / "scores.csv"
    folder.mkdir()
    for name in "abc":
        (folder / f"{name}.ipynb").write_text(notebook(MEAN, LONGEST), encoding="utf-8")

    def stop(row, number, of):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade_folder(folder, assignment, table, LIMITS, report=stop)
    assert list(table_of(table)) == ["a.ipynb"]
    (folder / "a.ipynb").write_text(notebook(HALF, LONGEST), encoding="utf-8")
    done = []
    grade_folder(folder, assignment, table, LIMITS, report=lambda row, *_: done.append(row.file))
    assert done == ["a.ipynb", "b.ipynb", "c.ipynb"]
    assert [float(row["total"]) for row in table_of(table).values()] == [3, 5, 5]


def test_an_endless_loop_costs_its_own_question_only(assignment, given):
    limits = Limits(wall=600, cpu=3, memory=400 * 2**20)
    endless = "def mean(values):\n    while True:\n        pass"
    verdict = judge([endless, LONGEST], assignment, given, limits, layers=INNER)
    assert (verdict.status, verdict.points) == ("timeout", {"q1": 0.0, "q2": 2.0})
    assert any(line.startswith("q1: timeout: used more than 3 s") for line in verdict.reasons)
    cells = ["while True:\n    pass", MEAN, "1 / 0", LONGEST]
    verdict = judge(cells, assignment, given, limits, layers=INNER)
    assert (verdict.status, verdict.total) == ("timeout", 5)
    assert any(line.startswith("cell 1: timeout") for line in verdict.reasons)
    assert "cell 3: ZeroDivisionError: division by zero" in verdict.reasons


def test_starts_are_as_many_as_questions_and_one(assignment, given):
    limits = Limits(wall=600, cpu=1, memory=400 * 2**20)
    verdict = judge(["while True: pass"] * 9 + [MEAN], assignment, given, limits, layers=INNER)
    assert verdict.total == 0 and len(verdict.reasons) == len(assignment.questions) + 1


@pytest.mark.parametrize("what", ["deletes", "kills_the_judge", "starts_programs", "calls_out"])
def test_the_audit_hook_alone_holds_too(tmp_path, assignment, given, what):
    (tmp_path / "thesis.txt").write_text("three years of work")
    cell, status, points = misbehaving(tmp_path)[what]
    cells = [MEAN, LONGEST, cell]
    verdict = judge(cells, assignment, given, LIMITS, layers=INNER)
    assert (verdict.status, verdict.total) == (status, points)
    assert any(reason.startswith("refused") for reason in verdict.reasons)
    assert (tmp_path / "thesis.txt").read_text() == "three years of work"


@pytest.mark.parametrize("layers", [INNER, None])
def test_hidden_folders_cannot_be_read(tmp_path, assignment, given, layers):
    secret = assignments.ROOT / "assignments" / "masters"
    name = assignments.masters()[0].name
    cells = [
        f"import os\nfound = 'nothing'\ntry:\n    found = open({str(secret / name)!r}).read()\n"
        "except OSError:\n    pass",
        "def longest(texts):\n    return found",
    ]
    hidden = [assignments.ROOT / "assignments"]
    with Worker(LIMITS, hidden=hidden, layers=layers) as worker:
        worker.ask(run=cells)
        assert codec.loads(worker.ask(value="found")["value"]) == "nothing"


@pytest.mark.skipif("namespaces" not in isolation_layers(), reason="no namespaces on this system")
def test_the_namespaces_hold_without_the_audit_hook(tmp_path):
    (tmp_path / "thesis.txt").write_text("three years of work")
    code = (
        "import os, socket, sys\n"
        "for act in (lambda: os.remove(sys.argv[1]), lambda: open('/etc/x', 'w'),\n"
        "            lambda: os.kill(int(sys.argv[2]), 9),\n"
        "            lambda: socket.create_connection(('127.0.0.1', 9), 1)):\n"
        "    try:\n        act()\n    except OSError as error:\n        print(error.errno)\n"
    )
    with_box = tmp_path / "box"
    with_box.mkdir()
    command = [*_namespaces(str(with_box), []), sys.executable, "-c", code,
               str(tmp_path / "thesis.txt"), str(os.getpid())]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert len(done.stdout.split()) == 4, done.stdout
    assert (tmp_path / "thesis.txt").read_text() == "three years of work"


def test_a_worker_is_gone_afterwards():
    with Worker(LIMITS, layers=INNER) as worker:
        worker.ask(run=["x = 1"])
        process, box = worker._process, Path(worker._box)
        assert box.is_dir()
    assert process.returncode == -signal.SIGKILL and not box.exists()


def test_a_late_answer_ends_the_worker():
    limits = Limits(wall=8, cpu=30)
    start = time.monotonic()
    with Worker(limits, layers=INNER) as worker, pytest.raises(Ended) as ended:
        worker.ask(run=["import time\ntime.sleep(1000)"])
    assert ended.value.status == "timeout" and time.monotonic() - start < 500


@pytest.mark.parametrize("layers", [INNER, None])
def test_a_busy_loop_ends_by_processor_time(layers):
    limits = Limits(wall=600, cpu=1)
    with Worker(limits, layers=layers) as worker, pytest.raises(Ended) as ended:
        worker.ask(run=["while True:\n    pass"])
    assert ended.value.status == "timeout" and "processor time" in str(ended.value)


def test_a_too_long_answer_ends_the_worker():
    with Worker(Limits(wall=600), layers=INNER) as worker, pytest.raises(Ended, match="32 MiB"):
        worker.ask(run=["x = 'a' * (40 * 2**20)"])
        worker.ask(value="x")


def test_tables_of_something_else_stay_as_they_are(tmp_path, assignment):
    table = tmp_path / "scores.csv"
    table.write_text("name,grade\nAda,1\n")
    (tmp_path / "a.ipynb").write_text(notebook(MEAN), encoding="utf-8")
    with pytest.raises(ScoresError, match="no table of scores of this assignment"):
        grade_folder(tmp_path, assignment, table, LIMITS)
    assert table.read_text() == "name,grade\nAda,1\n"


def test_a_stopped_run_ends_its_worker(tmp_path):
    folder, boxes = tmp_path / "class", tmp_path / "boxes"
    folder.mkdir(), boxes.mkdir()
    (tmp_path / "99_tiny.md").write_text(MASTER, encoding="utf-8")
    (folder / "a.ipynb").write_text(notebook(MEAN, LONGEST), encoding="utf-8")
    sleeping = "import time\ntime.sleep(1000)"
    (folder / "b.ipynb").write_text(notebook(MEAN, sleeping), encoding="utf-8")
    program = (
        "import sys, tools.grading.__main__ as command\n"
        "from pathlib import Path\nfrom tools import assignments\n"
        "command.find_master = lambda name: Path(sys.argv[1], name + '.md')\n"
        "command.build = lambda master, out: assignments.build(master, Path(sys.argv[1], 'out'))\n"
        "sys.exit(command.main(sys.argv[2:]))"
    )
    arguments = ["--assignment", "99_tiny", "--submissions", str(folder), "--out",
                 str(tmp_path / "scores.csv")]  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), *arguments], cwd=assignments.ROOT,
        env={**os.environ, "TMPDIR": str(boxes)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        for line in process.stdout:
            if line.startswith("[1/2]"):
                break
        family = []
        deadline = time.monotonic() + 120
        while not family and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
            family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=300)
    assert family and process.returncode == 130 and "run the same command again" in said
    psutil.wait_procs(family, timeout=120)
    assert not any(child.is_running() for child in family)
    assert not list(boxes.glob("grading-*"))
    assert list(table_of(tmp_path / "scores.csv")) == ["a.ipynb"]


def test_a_folder_may_be_named_from_here(tmp_path, assignment, monkeypatch):
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "a.ipynb").write_text(notebook(MEAN, LONGEST), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (row,) = grade_folder(Path("class"), assignment, Path("scores.csv"), LIMITS)
    assert (row["status"], row["total"]) == ("graded", "5")


def test_an_empty_folder_is_named(tmp_path, assignment):
    with pytest.raises(ScoresError, match="no notebooks"):
        grade_folder(tmp_path, assignment, tmp_path / "scores.csv", LIMITS)
    with pytest.raises(ScoresError, match="no folder"):
        grade_folder(tmp_path / "x", assignment, tmp_path / "scores.csv", LIMITS)


def test_students_are_named_by_folder_and_formulas_are_text(tmp_path, assignment):
    (tmp_path / "class" / "=cmd()").mkdir(parents=True)
    (tmp_path / "class" / "=cmd()" / "x.ipynb").write_text(notebook("raise OSError('=1+1')"))
    rows = grade_folder(tmp_path / "class", assignment, tmp_path / "s.csv", LIMITS, layers=INNER)
    assert rows[0]["student"] == "'=cmd()" and list(rows[0]) == columns_of(assignment)


def test_plain_data_comes_back_as_it_was():
    import torch

    values = [None, True, 3, 2.5, "text\n", [1, [2]], (1, "a"), {"a": (1,), 2: {3}}, {1, 2}]
    assert codec.loads(codec.dumps(values)) == values
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    back = codec.loads(codec.dumps(array))
    assert back.dtype == array.dtype and (back == array).all()
    tensor = torch.tensor([[True, False]])
    assert torch.equal(codec.loads(codec.dumps(tensor)), tensor)
    assert codec.loads(codec.dumps(np.float64(0.5))) == 0.5
    assert codec.loads(codec.dumps(np.array(["a", "bc"]))).tolist() == ["a", "bc"]


def test_shared_things_go_by_name():
    thing = object()
    line = codec.dumps([thing, 1], {"encoder": thing})
    other = object()
    assert codec.loads(line, {"encoder": other}) == [other, 1]
    with pytest.raises(codec.CodecError, match="nothing named 'encoder'"):
        codec.loads(line)


@pytest.mark.parametrize("value", [object(), print, np.array([object()]), b"bytes", 1j])
def test_other_things_are_not_handed_over(value):
    with pytest.raises(codec.CodecError, match="cannot be handed over"):
        codec.dumps(value)


@pytest.mark.parametrize(
    "text",
    ["{", '{"\\u0000kind": "array", "dtype": "|O", "shape": [1], "data": "AAAAAAAAAAA="}',
     '{"\\u0000kind": "spell"}', '{"a": 1}', "[" * 100_000],
)  # fmt: skip
def test_malformed_data_is_refused(text):
    with pytest.raises(codec.CodecError):
        codec.loads(text)


def test_magics_go_and_text_that_looks_like_them_stays():
    assert without_magics("%time x\ny = 1") == "\ny = 1"
    source = 'text = """\n%not magic\n"""'
    assert without_magics(source) == source


def test_limits_have_to_be_positive():
    with pytest.raises(ValueError, match="cpu"):
        Limits(cpu=0)


def test_the_command_says_what_is_wrong(capsys, tmp_path):
    from tools.grading.__main__ import main

    assert main(["--assignment", "nowhere", "--submissions", str(tmp_path)]) == 1
    assert "no assignment 'nowhere'" in capsys.readouterr().err


def test_a_folder_may_be_named_from_home(capsys, monkeypatch, tmp_path):
    from tools.grading.__main__ import main

    monkeypatch.setenv("HOME", str(tmp_path))
    assert main(["--assignment", "01_architecture", "--submissions", "~/none"]) == 1
    assert f"there is no folder {tmp_path / 'none'}" in capsys.readouterr().err


def test_a_students_copy_is_no_autograder(tmp_path):
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    with pytest.raises(ValueError, match="holds no tests"):
        load_assignment(path)
