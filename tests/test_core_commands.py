"""The two commands that test the tests and the supported versions, without running either."""

import ast
import json
import os
import re
import signal
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tools import compatibility, mutant_trials, mutants

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parent.parent


def test_supported_versions_are_declared_once_and_alike():
    ranges, declared = compatibility.declared()
    by_name = {r.name: r for r in ranges}
    low = dict(pin.split("==") for pin in compatibility.oldest(ranges))
    pinned = dict(
        line.split("==") for line in (ROOT / "requirements.txt").read_text().split() if "==" in line
    )
    readme = (ROOT / "README.md").read_text()
    for name, shown in (("torch", "PyTorch"), ("transformers", "transformers")):
        newest = declared["newest"][name]
        assert by_name[name].specifier.contains(newest)
        assert Version(low[name]) <= Version(pinned[name]) <= Version(newest)
        oldest, latest = re.search(rf"^\| {shown} \| (\S+) \| (\S+) \|$", readme, re.M).groups()
        assert Version(oldest) == Version(low[name]) and latest == newest
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pythons = [c.split()[-1] for c in project["classifiers"] if "Python ::" in c]
    assert project["requires-python"] == f">={compatibility.OLDEST_PYTHON}" == f">={pythons[0]}"
    assert f"| Python | {pythons[0]} | {pythons[-1]} |" in readme
    for name in declared["tests"]:
        assert (ROOT / name).is_file(), name


def test_the_ends_of_ranges_become_pins():
    ranges = [Requirement("a>=1.2,<2"), Requirement("b>=0.5"), Requirement("c==3.1")]
    assert compatibility.oldest(ranges) == ["a==1.2", "b==0.5", "c==3.1"]
    newest = compatibility.newest(ranges, {"b": "0.9"})
    assert newest[1:] == ["b==0.9", "c==3.1"] and Requirement(newest[0]) == ranges[0]
    with pytest.raises(ValueError, match="a<2 does not say"):
        compatibility.oldest([Requirement("a<2")])
    assert compatibility.oldest(ranges[1:] + [Requirement("a<2")], ["b"]) == [
        "b==0.5", "c==3.1", "a<2",
    ]  # fmt: skip


def test_pins_are_found_by_name_however_it_is_spelled(tmp_path):
    (tmp_path / "requirements.txt").write_text("# all of them\nA-b==1.0\nc==2\nD.e==3\n")
    assert compatibility.pinned(["d_e", "a_b"], tmp_path) == ["D.e==3", "A-b==1.0"]
    with pytest.raises(ValueError, match="does not pin f, g"):
        compatibility.pinned(["g", "c", "f"], tmp_path)
    ranges, _ = compatibility.declared()
    for needed, pin in zip(ranges, compatibility.pinned([r.name for r in ranges]), strict=True):
        assert needed.specifier.contains(pin.partition("==")[2]), (str(needed), pin)
    assert len(compatibility.pinned(compatibility.TEST_TOOLS)) == len(compatibility.TEST_TOOLS)


REPORT = """<testsuites><testsuite tests="9" failures="1" errors="2" skipped="3"/></testsuites>"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [(REPORT, (3, 3, 3)), (None, (0, 1, 0)), ('<testsuite tests="0"/>', (0, 1, 0))],
)
def test_reports_are_counted_and_none_is_a_failure(tmp_path, text, expected):
    report = tmp_path / "report.xml"
    if text is not None:
        report.write_text(text)
    assert compatibility.counts(report) == expected


def test_an_environment_s_tests_are_run_with_its_own_python(tmp_path, monkeypatch):
    (tmp_path / "test_one.py").write_text("def test_good(): pass\ndef test_bad(): assert False\n")
    monkeypatch.setattr(compatibility, "FOLDER", tmp_path)
    found = compatibility.run_tests("oldest", Path(sys.executable), [str(tmp_path / "test_one.py")])
    assert (found.passed, found.failed, found.skipped) == (1, 1, 0)
    assert found.python == sys.version.split()[0]
    row = compatibility.table([found]).splitlines()[-1]
    assert row.startswith(f"| oldest | {found.python} | {found.versions['torch']} |")
    assert "| 1 | 1 | 0 |" in row


def functions_of(source):
    """Name -> text of every function; methods as ``Class.method``."""
    tree = ast.parse(source)
    places = [("", tree), *((f"{n.name}.", n) for n in tree.body if isinstance(n, ast.ClassDef))]
    return {
        owner + node.name: ast.get_source_segment(source, node)
        for owner, place in places
        for node in place.body
        if isinstance(node, ast.FunctionDef)
    }


def test_the_numerical_core_and_what_changes_nothing_are_there():
    settings = mutants.Settings.read()
    for module in settings.modules:
        assert (ROOT / mutants.PACKAGE / module).is_file(), module
    for test in settings.tests:
        name, _, function = test.partition("::")
        text = (ROOT / name).read_text()
        assert not function or f"def {function}(" in text, test
    for (module, function, change), reason in settings.equivalent.items():
        assert module in settings.modules and reason
        text = functions_of((ROOT / mutants.PACKAGE / module).read_text()).get(function)
        assert text, f"{module} has no {function}"
        removed = {line[2:] for line in change.splitlines() if line.startswith("- ")}
        assert removed and removed <= {line.strip() for line in text.splitlines()}, (
            f"{function} of {module} has changed: {change}"
        )


def test_every_module_has_its_share_of_any_start_of_the_order():
    everything = {
        "a.py": [f"a.x_f__mutmut_{i}" for i in range(300)],
        "b.py": [f"b.x_f__mutmut_{i}" for i in range(100)],
    }
    found = mutants.order(everything, seed=1)
    assert sorted(found) == sorted(name for names in everything.values() for name in names)
    for end in (4, 40, 200):
        assert sum(name.startswith("a.") for name in found[:end]) == 3 * end // 4
    backwards = {module: everything[module][::-1] for module in ("b.py", "a.py")}
    assert found == mutants.order(backwards, seed=1) != mutants.order(everything, seed=2)
    alone = mutants.order({"b.py": everything["b.py"]}, seed=1)
    assert alone == [name for name in found if name.startswith("b.")]
    assert alone != sorted(alone)


def test_a_change_is_known_only_in_the_function_it_was_judged_in(monkeypatch):
    lines = "- return a + b\n+ return a - b"
    names = ["p.a.x_f__mutmut_1", "p.a.x_g__mutmut_1", "p.a.xǁCǁf__mutmut_1", "p.a.x_f__mutmut_2"]
    assert [mutants.function_of(name) for name in names] == ["f", "g", "C.f", "f"]
    monkeypatch.setattr(
        mutants, "change", lambda name, module: "- x\n+ y" if name.endswith("2") else lines
    )
    known = {("a.py", "f", lines): "a zero"}
    settings = mutants.Settings(("a.py", "b.py"), (), 1, known)
    found = {name: {"fate": "survived"} for name in names}
    tally = mutants.tally("a.py", [*names, "not tried"], 9, found, settings)
    assert (tally.mutants, tally.tried, tally.killed, tally.equivalent) == (9, 4, 0, 1)
    assert tally.survivors == tuple(sorted(names[1:]))
    assert mutants.tally("b.py", names, 9, found, settings).equivalent == 0
    found[names[0]] = {"fate": "timeout"}
    assert mutants.tally("a.py", names, 9, found, settings).killed == 1


def test_results_hold_for_the_function_they_were_found_on(tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "RESULTS", tmp_path / "results.jsonl")
    made = {"a.py": {"a.x_f__mutmut_1": "new", "a.x_g__mutmut_1": "same"}}
    assert mutants.fates(made) == {}
    entries = [
        {"mutant": "a.x_f__mutmut_1", "function": "old", "fate": "killed"},
        {"mutant": "a.x_g__mutmut_1", "function": "same", "fate": "survived"},
        {"mutant": "a.x_g__mutmut_1", "function": "same", "fate": "killed"},
        {"mutant": "a.x_h__mutmut_1", "function": "gone", "fate": "killed"},
    ]
    mutants.RESULTS.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert mutants.fates(made) == {"a.x_g__mutmut_1": entries[2]}


def test_shares_leave_out_what_changes_nothing():
    one = mutants.Tally("a.py", 50, 20, 16, 2, ("x", "y"))
    two = mutants.Tally("b.py", 10, 10, 10, 0, ())
    assert one.share == 16 / 18 and two.share == 1.0
    # Wilson's interval of 16 in 18; where every mutant was tried there is nothing to estimate.
    assert one.interval == pytest.approx((0.672, 0.969), abs=5e-4) and two.interval is None
    none = mutants.Tally("c.py", 40, 0, 0, 0, ())
    assert none.share is None and none.interval is None
    assert "none tried | – |" in mutants.table([none]).splitlines()[2]
    rows = mutants.table([one, two]).splitlines()
    assert rows[2] == "| a.py | 50 | 20 | 16 | 2 | 2 | 88.9% | 67.2% to 96.9% |"
    assert rows[3] == "| b.py | 10 | 10 | 10 | 0 | 0 | 100.0% | – |"
    assert rows[4].startswith("| all | 60 | 30 | 26 | 2 | 2 | 92.9% | ")


def end_of(work):
    fork = mutant_trials.Fork(work, 1.0)
    _, status = os.waitpid(fork.pid, 0)
    said, ended, _ = fork.close(status)
    assert not Path(fork.scratch).exists()
    return mutant_trials.fate(said, ended), said


def killed_by(number):
    """End this process as a signal does."""
    return lambda: os.kill(os.getpid(), number)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_mutant_is_tried_in_a_process_of_its_own(monkeypatch):
    kept = []
    assert end_of(lambda: kept.append(1) or "") == ("survived", "") and kept == []
    assert end_of(lambda: "tests/a.py::test_b") == ("killed", "tests/a.py::test_b")
    assert end_of(lambda: sys.exit(3)) == ("killed", "SystemExit: 3")
    assert end_of(killed_by(signal.SIGXCPU)) == ("timeout", "")
    assert end_of(killed_by(signal.SIGSEGV)) == ("crash", "")
    # Ended from outside, as when memory runs out, or given up: nothing was found out about it.
    for number in (signal.SIGKILL, signal.SIGALRM):
        assert end_of(killed_by(number)) == (None, "")
    assert end_of(lambda: "long" * 100_000)[1] == "long" * 15_000


def test_the_first_failing_test_is_named(pytester):
    pytester.makepyfile(
        """
        import warnings
        import pytest
        pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
        def test_a(): pass
        def test_b(): warnings.warn("only told", UserWarning)
        def test_c(): warnings.warn("told", RuntimeWarning)
        def test_d(): assert 0
        """
    )
    found = []

    class Plugin:
        def pytest_runtestloop(self, session):
            tests = session.items
            found.extend(mutant_trials._run(part) for part in (tests, tests[:2], tests[3:]))
            return True

    pytester.inline_run("-p", "no:cacheprovider", plugins=[Plugin()])
    assert [name.rpartition("::")[2] for name in found] == ["test_c", "", "test_d"]
