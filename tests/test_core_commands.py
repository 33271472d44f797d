"""The two commands that test the tests and the supported versions, without running either."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tools import compatibility, mutants

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
    assert {pin.split("==")[0] for pin in compatibility.tools()} == set(compatibility.TEST_TOOLS)


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


def test_the_numerical_core_is_there_and_the_sample_is_fixed():
    settings = mutants.Settings.read()
    for module in settings.modules:
        assert (ROOT / mutants.PACKAGE / module).is_file(), module
    for test in settings.tests:
        name, _, function = test.partition("::")
        text = (ROOT / name).read_text()
        assert not function or f"def {function}(" in text, test
    for (module, change), reason in settings.equivalent.items():
        assert module in settings.modules and reason
        source = (ROOT / mutants.PACKAGE / module).read_text()
        removed = [line[2:] for line in change.splitlines() if line.startswith("- ")]
        kept = {line.strip() for line in source.splitlines()}
        assert removed and set(removed) <= kept, f"{module} has changed: {change}"
    names = [f"f__mutmut_{i}" for i in range(1000)]
    first = mutants.chosen(names, settings, "a.py")
    assert len(first) == settings.sample == len(set(first))
    assert first == mutants.chosen(names[::-1], settings, "a.py") != mutants.chosen(
        names, settings, "b.py"
    )
    assert mutants.chosen(names[:3], settings, "a.py") == names[:3]


def test_shares_leave_out_what_changes_nothing():
    one = mutants.Tally("a.py", 50, 20, 16, 2, ("x", "y"))
    two = mutants.Tally("b.py", 10, 10, 10, 0, ())
    assert one.share == 16 / 18 and two.share == 1.0
    none = mutants.Tally("c.py", 40, 0, 0, 0, ())
    assert none.share is None and "none tried" in mutants.table([none]).splitlines()[2]
    rows = mutants.table([one, two]).splitlines()
    assert rows[2] == "| a.py | 50 | 20 | 16 | 2 | 2 | 89% |"
    assert rows[4] == "| all | 60 | 30 | 26 | 2 | 2 | 93% |"
