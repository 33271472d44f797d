"""Mutation testing of the numerical core: would the tests notice a small change of a formula?

mutmut makes the changes (``+`` for ``-``, ``<`` for ``<=``, another number, an argument left out)
one at a time in the modules that compute measures, and runs the tests that reach the changed
function. A change that no test notices *survives*: a test is missing, or the change changes
nothing. Modules, tests and the size of the sample stand in ``tests/mutants.toml``, beside the
changes that are known to change nothing.

    python -m tools.mutants                              # a fixed sample of every module
    python -m tools.mutants attention/flow.py --all      # every mutant of one module
    python -m tools.mutants --survivors                  # show what survived the last run

Works on a copy under ``_build/mutants``; the checkout is never changed. Results are kept there, and
a run that was stopped goes on where it was; what survived is tried again.
"""

from __future__ import annotations

import argparse
import dataclasses
import filecmp
import os
import random
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "_build" / "mutants"
PACKAGE = "bertology_utils"
SETTINGS = ROOT / "tests" / "mutants.toml"
#: share of the mutants that the tests have to notice
ENOUGH = 0.85
#: what mutmut calls the fates of a mutant; a test that no longer ends has noticed the change too
KILLED = ("killed", "timeout", "segfault", "suspicious")
#: texts of errors may change freely
NO_MUTANTS = [r"^\s*raise \w+"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """What ``tests/mutants.toml`` holds.

    Attributes:
        modules: paths in the package.
        tests: files of tests.
        sample: at most this many mutants of a module.
        seed: of the sample.
        equivalent: changes that change nothing, as (module, lines of the change) -> reason.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    sample: int
    seed: int
    equivalent: Mapping[tuple[str, str], str]

    @classmethod
    def read(cls, path: Path = SETTINGS) -> Settings:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        known = {
            (entry["module"], change.strip()): entry["reason"]
            for entry in raw.get("equivalent", [])
            for change in entry["changes"]
        }
        return cls(tuple(raw["modules"]), tuple(raw["tests"]), raw["sample"], raw["seed"], known)


@dataclasses.dataclass(frozen=True)
class Tally:
    """Fates of the mutants of one module."""

    module: str
    mutants: int
    tried: int
    killed: int
    equivalent: int
    survivors: tuple[str, ...]

    @property
    def share(self) -> float | None:
        """Killed, of those tried that are not known to change nothing; None if there are none."""
        counted = self.tried - self.equivalent
        return self.killed / counted if counted else None


def total(tallies: Sequence[Tally]) -> Tally:
    """All modules as one."""
    names = ("mutants", "tried", "killed", "equivalent")
    counts = (sum(getattr(t, name) for t in tallies) for name in names)
    return Tally("all", *counts, tuple(name for t in tallies for name in t.survivors))


def chosen(names: Sequence[str], settings: Settings, module: str) -> list[str]:
    """The sample of a module: the same at every run, whatever other modules are asked for."""
    ordered = sorted(names)
    if len(ordered) <= settings.sample:
        return ordered
    return sorted(random.Random(f"{settings.seed} {module}").sample(ordered, settings.sample))


def prepare(settings: Settings) -> None:
    """Copy package and tests, and write mutmut's settings."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for top in (PACKAGE, "tests"):
        old = {path.relative_to(FOLDER) for path in _files(FOLDER / top)}
        for path in _files(ROOT / top):
            name = path.relative_to(ROOT)
            old.discard(name)
            if (FOLDER / name).is_file() and filecmp.cmp(path, FOLDER / name, shallow=False):
                continue
            (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, FOLDER / name)
            # Without its own copy of the file, mutmut makes the mutants of what changed anew.
            (FOLDER / "mutants" / name).unlink(missing_ok=True)
        for name in old:
            (FOLDER / name).unlink()
            (FOLDER / "mutants" / name).unlink(missing_ok=True)
    (FOLDER / "pyproject.toml").write_text(_configuration(settings), encoding="utf-8")


def _files(folder: Path) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts]


def _configuration(settings: Settings) -> str:
    def listed(values: Sequence[str]) -> str:
        return "[" + ", ".join(f"'{value}'" for value in values) + "]"

    return "\n".join(
        [
            "[tool.mutmut]",
            f"source_paths = ['{PACKAGE}']",
            f"only_mutate = {listed([f'{PACKAGE}/{module}' for module in settings.modules])}",
            f"do_not_mutate_patterns = {listed(NO_MUTANTS)}",
            f"pytest_add_cli_args_test_selection = {listed(settings.tests)}",
            "pytest_add_cli_args = ['-p', 'no:cacheprovider', '-p', 'no:hypothesispytest']",
            "use_git_change_detection = false",
            "[tool.pytest.ini_options]",
            "markers = ['book: reads the built book', 'browser: opens the built book']",
            "",
        ]
    )


def mutmut(*arguments: str) -> int:
    """Run mutmut in the working folder; its progress goes to a file, since it is long."""
    settings = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0"}
    command = [Path(sys.executable).with_name("mutmut"), *arguments]
    with (FOLDER / "mutmut.log").open("a") as log:
        return subprocess.call(command, cwd=FOLDER, env=settings, stdout=log, stderr=log)


def mutants_of(module: str) -> list[str]:
    """Names of all mutants of a module."""
    from mutmut.mutation.data import SourceFileMutationData
    from mutmut.mutation.file_mutation import mutate_file_contents

    path = f"{PACKAGE}/{module}"
    data = SourceFileMutationData(path=path)
    data.load()
    if data.exit_code_by_key and (FOLDER / "mutants" / path).is_file():
        return list(data.exit_code_by_key)  # made before, from the same source
    made = mutate_file_contents(path, (FOLDER / path).read_text(encoding="utf-8"))
    dotted = path.removesuffix(".py").replace("/", ".")
    return [f"{dotted}.{name}" for name in made.mutant_names]


def fates(module: str) -> dict[str, str]:
    """Name -> fate of every mutant of a module that was tried."""
    from mutmut.mutation.data import SourceFileMutationData
    from mutmut.stats import status_by_exit_code

    data = SourceFileMutationData(path=f"{PACKAGE}/{module}")
    data.load()
    return {
        name: status_by_exit_code[code]
        for name, code in data.exit_code_by_key.items()
        if code is not None
    }


def change(name: str, module: str) -> str:
    """The changed lines of a mutant, as a diff without its head."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    lines = get_diff_for_mutant(name, path=f"{PACKAGE}/{module}").splitlines()[3:]
    return "\n".join(f"{line[0]} {line[1:].strip()}" for line in lines if line[:1] in ("-", "+"))


def tally(module: str, names: Sequence[str], total: int, settings: Settings) -> Tally:
    """Count the fates of the chosen mutants of a module."""
    found = {name: fate for name, fate in fates(module).items() if name in set(names)}
    alive = [name for name, fate in sorted(found.items()) if fate not in KILLED]
    same = [name for name in alive if (module, change(name, module)) in settings.equivalent]
    survivors = tuple(name for name in alive if name not in same)
    return Tally(module, total, len(found), len(found) - len(alive), len(same), survivors)


def table(tallies: Sequence[Tally]) -> str:
    """A Markdown table, one row a module and one for all."""
    lines = [
        "| module | mutants | tried | killed | change nothing | survived | share killed |",
        "|---|---|---|---|---|---|---|",
    ]
    for t in (*tallies, total(tallies)):
        share = "none tried" if t.share is None else f"{t.share:.0%}"
        cells = (t.module, t.mutants, t.tried, t.killed, t.equivalent, len(t.survivors), share)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if fewer mutants than demanded were noticed, or a module had none."""
    settings = Settings.read()
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="such as attention/flow.py")
    parser.add_argument("--all", action="store_true", help="every mutant, not a sample")
    parser.add_argument("--again", action="store_true", help="also those already killed")
    parser.add_argument("--survivors", action="store_true", help="only show what survived before")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.modules) - set(settings.modules):
        parser.error(f"not in the numerical core: {', '.join(sorted(unknown))}")
    modules = asked.modules or list(settings.modules)
    if not asked.survivors:
        prepare(settings)
    os.chdir(FOLDER)
    everything = {module: mutants_of(module) for module in modules}
    names = {
        module: sorted(found) if asked.all else chosen(found, settings, module)
        for module, found in everything.items()
    }
    if not asked.survivors:
        # What survived is tried again: there may be a new test.
        done = {
            name
            for module in ([] if asked.again else modules)
            for name, fate in fates(module).items()
            if fate in KILLED
        }
        left = [name for module in modules for name in names[module] if name not in done]
        print(f"{len(left)} mutants to try; progress is in {FOLDER.name}/mutmut.log", flush=True)
        if left and mutmut("run", "--max-children", str(asked.jobs), *left) != 0:
            print((FOLDER / "mutmut.log").read_text()[-2000:], file=sys.stderr)
            return 1
    tallies = [tally(m, names[m], len(everything[m]), settings) for m in modules]
    for found in tallies:
        for name in found.survivors:
            print(f"\n{name}\n{change(name, found.module)}")
    print(f"\n{table(tallies)}")
    share = total(tallies).share
    return int(share is None or share < ENOUGH or not all(t.tried for t in tallies))


if __name__ == "__main__":
    sys.exit(main())
