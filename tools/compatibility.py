"""Test the package with the oldest and with the newest supported versions of what it needs.

The oldest versions are the lower ends of ``dependencies`` in ``pyproject.toml``; the newest ones
that are known to work stand there under ``tool.bertology.compatibility``, as do the tests to run.
The pinned versions are those that the book is built with, for trying them with another Python.
Each set of versions gets an environment of its own under ``_build/compatibility``, which is made on
first use and made anew when the versions change. The environment of the book is left alone.

    python -m tools.compatibility                        # oldest and newest, with this Python
    python -m tools.compatibility oldest pinned --python python3.13
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "_build" / "compatibility"
SETS = ("oldest", "pinned", "newest")
#: the pinned versions are what all other tests run with
USUAL = ("oldest", "newest")
#: where all ranges are tested at their lower end; on others PyTorch and transformers are
OLDEST_PYTHON = "3.11"
#: what the tests themselves need; taken in the versions of requirements.txt
TEST_TOOLS = ("hypothesis", "networkx", "pytest")
#: the versions that a table names
SHOWN = ("torch", "transformers", "numpy")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What one environment gave.

    Attributes:
        name: one of :data:`SETS`.
        python: version of the interpreter.
        versions: installed versions of :data:`SHOWN`.
        passed, failed, skipped: numbers of tests; errors count as failed.
        seconds: that the tests took.
    """

    name: str
    python: str
    versions: Mapping[str, str]
    passed: int
    failed: int
    skipped: int
    seconds: float


def declared(root: Path = ROOT) -> tuple[list[Requirement], dict]:
    """The ranges of ``dependencies`` and the table ``tool.bertology.compatibility``."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    ranges = [Requirement(line) for line in project["project"]["dependencies"]]
    return ranges, project["tool"]["bertology"]["compatibility"]


def oldest(ranges: Sequence[Requirement], only: Collection[str] | None = None) -> list[str]:
    """Every package in the lowest version that its range admits.

    Args:
        ranges: what the package needs.
        only: if given, the packages to take so; the others in any version of their range.

    Raises:
        ValueError: a range without a lower end.
    """
    found = []
    for requirement in ranges:
        if only is not None and requirement.name not in only:
            found.append(str(requirement))
            continue
        lowest = [s.version for s in requirement.specifier if s.operator in (">=", "==", "~=")]
        if len(lowest) != 1:
            raise ValueError(f"{requirement} does not say what the oldest version is")
        found.append(f"{requirement.name}=={lowest[0]}")
    return found


def newest(ranges: Sequence[Requirement], known: Mapping[str, str]) -> list[str]:
    """The packages of ``known`` in that version, all others in any version of their range."""
    return [f"{r.name}=={known[r.name]}" if r.name in known else str(r) for r in ranges]


def pinned(names: Collection[str], root: Path = ROOT) -> list[str]:
    """The lines of ``requirements.txt`` for these packages, however they spell the names.

    Raises:
        ValueError: a package without a pin.
    """
    lines = (root / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = {canonicalize_name(line.partition("==")[0]): line for line in lines if "==" in line}
    missing = sorted(name for name in names if canonicalize_name(name) not in pins)
    if missing:
        raise ValueError(f"requirements.txt does not pin {', '.join(missing)}")
    return [pins[canonicalize_name(name)] for name in names]


def version_of(python: str) -> str:
    """What an interpreter says of its version; SystemExit if it does not run."""
    try:
        command = [python, "-c", "import sys; print(sys.version)"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        sys.exit(f"{python} does not run")


def environment(name: str, wanted: Sequence[str], python: str, system_packages: bool) -> Path:
    """Path of a Python that has the wanted packages; installs them where they are not there yet.

    Raises:
        SystemExit: the environment or its packages could not be installed.
    """
    version = version_of(python)
    folder = FOLDER / f"{name}-{version.split()[0]}"
    inside = folder / "bin" / "python"
    stamp = folder / "complete.txt"
    text = "\n".join([version, str(folder), *wanted, str(system_packages)])
    digest = hashlib.sha256(text.encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == digest:
        return inside
    print(f"Installing the {name} versions into {folder.relative_to(ROOT)} ...", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    site = ["--system-site-packages"] if system_packages else []
    command = [inside, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    for step in ([python, "-m", "venv", *site, folder], [*command, "--no-compile", *wanted]):
        if subprocess.call([str(part) for part in step], cwd=ROOT) != 0:
            sys.exit(f"the {name} versions could not be installed (see above)")
    stamp.write_text(digest)
    return inside


def run_tests(name: str, python: Path, tests: Sequence[str]) -> Outcome:
    """Run the tests with one Python, and read what became of them."""
    report = FOLDER / f"{python.parent.parent.name}.xml"
    report.unlink(missing_ok=True)
    # The checkout itself is tested: nothing of it is installed into the environment.
    settings = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    start = time.monotonic()
    subprocess.call(
        [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests],
        cwd=ROOT,
        env=settings,
    )
    seconds = time.monotonic() - start
    show = "import json, sys; from importlib.metadata import version; "
    show += f"print(json.dumps([sys.version.split()[0], *map(version, {list(SHOWN)!r})]))"
    told = subprocess.run([python, "-c", show], capture_output=True, text=True, check=True)
    version, *versions = json.loads(told.stdout)
    numbers = counts(report)
    return Outcome(name, version, dict(zip(SHOWN, versions, strict=True)), *numbers, seconds)


def counts(report: Path) -> tuple[int, int, int]:
    """Tests of a JUnit report that passed, failed, and were skipped; no report is one failure."""
    if not report.is_file():
        return 0, 1, 0
    total = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
    for suite in ET.parse(report).iter("testsuite"):
        for key in total:
            total[key] += int(suite.get(key, 0))
    failed = total["failures"] + total["errors"]
    if not total["tests"]:
        return 0, 1, 0
    return total["tests"] - failed - total["skipped"], failed, total["skipped"]


def table(outcomes: Sequence[Outcome]) -> str:
    """A Markdown table, one row an environment."""
    lines = [
        f"| versions | Python | {' | '.join(SHOWN)} | passed | failed | skipped | seconds |",
        "|---|---|" + "---|" * (len(SHOWN) + 4),
    ]
    for o in outcomes:
        shown = " | ".join(o.versions[name] for name in SHOWN)
        lines.append(
            f"| {o.name} | {o.python} | {shown} | {o.passed} | {o.failed} | {o.skipped} | "
            f"{o.seconds:.0f} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if a test failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.compatibility", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "sets", nargs="*", metavar="SET", help=f"{', '.join(SETS)} (usual: {' '.join(USUAL)})"
    )
    parser.add_argument("--python", default=sys.executable, help="interpreter to test with")
    parser.add_argument(
        "--system-packages",
        action="store_true",
        help="let the environments use what the interpreter has, such as a distribution's PyTorch",
    )
    parser.add_argument("--test", action="append", help="run this instead of the core tests")
    asked = parser.parse_args(arguments)
    for name in asked.sets:
        if name not in SETS:
            parser.error(f"unknown set {name!r}; known: {', '.join(SETS)}")
    ranges, table_of = declared()
    # Not every old release of every package has a build for a newer Python.
    first = version_of(asked.python).startswith(f"{OLDEST_PYTHON}.")
    packages = {
        "oldest": oldest(ranges, None if first else table_of["newest"]),
        "pinned": pinned([requirement.name for requirement in ranges]),
        "newest": newest(ranges, table_of["newest"]),
    }
    FOLDER.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for name in asked.sets or USUAL:
        wanted = [*packages[name], *pinned(TEST_TOOLS)]
        python = environment(name, wanted, asked.python, asked.system_packages)
        outcomes.append(run_tests(name, python, asked.test or table_of["tests"]))
    print(f"\n{table(outcomes)}")
    return int(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
