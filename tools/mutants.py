"""Mutation testing of the numerical core: would the tests notice a small change of a formula?

Small changes (``+`` for ``-``, ``<`` for ``<=``, another number, an argument left out) are made one
at a time in the modules that compute measures, by mutmut, and the tests that reach the changed
function are run. A change that no test notices *survives*: a test is missing, or the change changes
nothing. Modules and tests stand in ``tests/mutants.toml``, beside the changes that are known to
change nothing.

    python -m tools.mutants                              # every mutant
    python -m tools.mutants --sample 800                 # that many of them, drawn once and for all
    python -m tools.mutants attention/flow.py            # of one module
    python -m tools.mutants --survivors                  # show what survived the last run

Mutants are tried in one random order, in which every module has its share at any time: a run that
is stopped has tried a fair sample, and the next one goes on where it was. What survived is tried
again when a test or the package has changed. Works on a copy under ``_build/mutants``; the checkout
is never changed.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import json
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
#: where mutmut looks for what it made
COPY = FOLDER / "mutants"
RESULTS = FOLDER / "results.jsonl"
PACKAGE = "bertology_utils"
SETTINGS = ROOT / "tests" / "mutants.toml"
#: share of the mutants that the tests have to notice
ENOUGH = 0.85
#: texts of errors may change freely
NO_MUTANTS = [r"^\s*raise \w+"]
PYTEST = ["-q", "--capture=sys", "--tb=line", "-p", "no:cacheprovider", "-p", "no:hypothesispytest"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """What ``tests/mutants.toml`` holds.

    Attributes:
        modules: paths in the package.
        tests: files of tests.
        seed: of the order.
        equivalent: changes that change nothing, as (module, function, lines of the change) ->
            reason; a method's function is ``Class.method``.
    """

    modules: tuple[str, ...]
    tests: tuple[str, ...]
    seed: int
    equivalent: Mapping[tuple[str, str, str], str]

    @classmethod
    def read(cls, path: Path = SETTINGS) -> Settings:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        known = {
            (entry["module"], entry["function"], change.strip()): entry["reason"]
            for entry in raw.get("equivalent", [])
            for change in entry["changes"]
        }
        return cls(tuple(raw["modules"]), tuple(raw["tests"]), raw["seed"], known)


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
    def counted(self) -> int:
        """Those tried that are not known to change nothing."""
        return self.tried - self.equivalent

    @property
    def share(self) -> float | None:
        """Killed, of those counted; None if there are none."""
        return self.killed / self.counted if self.counted else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Wilson's 95 % interval of the share; None where every mutant was tried, or none."""
        from bertology_utils.cloze import wilson_interval

        if self.tried == self.mutants or not self.counted:
            return None
        return wilson_interval(self.killed, self.counted)


def total(tallies: Sequence[Tally]) -> Tally:
    """All modules as one."""
    names = ("mutants", "tried", "killed", "equivalent")
    counts = (sum(getattr(t, name) for t in tallies) for name in names)
    return Tally("all", *counts, tuple(name for t in tallies for name in t.survivors))


def order(everything: Mapping[str, Sequence[str]], seed: int) -> list[str]:
    """All mutants in the order to try them, given module -> its mutants.

    The start of the order, however long, is a random sample of every module, in proportion to its
    size. A module's own order does not depend on the other modules.
    """
    places = []
    for module, names in everything.items():
        shuffled = sorted(names)
        random.Random(f"{seed} {module}").shuffle(shuffled)
        places += [((i + 0.5) / len(shuffled), module, name) for i, name in enumerate(shuffled)]
    return [name for _, _, name in sorted(places)]


def prepare(settings: Settings) -> None:
    """Copy package and tests, with every mutant made beside its function."""
    from mutmut.mutation.data import MutantLineSpans
    from mutmut.mutation.file_mutation import mutate_file_contents

    FOLDER.mkdir(parents=True, exist_ok=True)
    for top in (PACKAGE, "tests"):
        shutil.rmtree(COPY / top, ignore_errors=True)
        shutil.copytree(ROOT / top, COPY / top, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (FOLDER, COPY):
        (folder / "pyproject.toml").write_text(_configuration(settings), encoding="utf-8")
    os.chdir(FOLDER)  # mutmut finds everything from here
    made = {}
    for module in settings.modules:
        path = f"{PACKAGE}/{module}"
        file = mutate_file_contents(path, (ROOT / path).read_text(encoding="utf-8"))
        (COPY / path).write_text(file.code, encoding="utf-8")
        MutantLineSpans(path=path, span_by_function_name=file.line_span_by_function_name).save()
        dotted = path.removesuffix(".py").replace("/", ".")
        made[module] = {
            f"{dotted}.{name}": file.hash_by_function_name[name.partition("__mutmut_")[0]]
            for name in file.mutant_names
        }
    (FOLDER / "made.json").write_text(json.dumps(made), encoding="utf-8")


def _configuration(settings: Settings) -> str:
    return "\n".join(
        [
            "[tool.mutmut]",
            f"source_paths = ['{PACKAGE}']",
            f"do_not_mutate_patterns = {json.dumps(NO_MUTANTS)}",
            "[tool.pytest.ini_options]",
            "markers = ['book: reads the built book', 'browser: opens the built book']",
            "",
        ]
    )


@functools.cache
def state_of_tests() -> str:
    """Changes whenever a test or a module of the package does."""
    digest = hashlib.sha256()
    for path in sorted([*(ROOT / "tests").rglob("*.py"), *(ROOT / PACKAGE).rglob("*.py")]):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def fates(made: Mapping[str, Mapping[str, str]]) -> dict[str, dict]:
    """Mutant -> the newest entry in the results that is about the function as it is now."""
    functions = {name: known for names in made.values() for name, known in names.items()}
    if not RESULTS.is_file():
        return {}
    found = {}
    for line in RESULTS.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if functions.get(entry["mutant"]) == entry["function"]:
            found[entry["mutant"]] = entry
    return found


def try_all(mutants: Mapping[str, str], settings: Settings, jobs: int) -> int:
    """Try mutants, given as name -> hash of the function, in this order; 0 if all went well."""
    plan = {
        "mutants": mutants,
        "results": str(RESULTS),
        "jobs": jobs,
        "tests": state_of_tests(),
        "pytest": [*settings.tests, *PYTEST],
    }
    (FOLDER / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    environment |= {"PYTHONHASHSEED": "0", "PYTHONPATH": f"{COPY}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tools.mutant_trials", str(FOLDER / "plan.json")]
    return subprocess.call(command, cwd=COPY, env=environment)


def function_of(name: str) -> str:
    """The function that a mutant changes; ``Class.method`` of a method.

    mutmut's names end in ``x_function__mutmut_3`` and ``xǁClassǁmethod__mutmut_3``.
    """
    return name.rpartition(".")[2].partition("__mutmut_")[0][2:].replace("ǁ", ".")


def change(name: str, module: str) -> str:
    """The changed lines of a mutant, as a diff without its head."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant

    lines = get_diff_for_mutant(name, path=f"{PACKAGE}/{module}").splitlines()[3:]
    return "\n".join(f"{line[0]} {line[1:].strip()}" for line in lines if line[:1] in ("-", "+"))


def tally(
    module: str, names: Sequence[str], total: int, found: Mapping[str, dict], settings: Settings
) -> Tally:
    """Count the fates of the chosen mutants of a module."""
    tried = [name for name in names if name in found]
    alive = [name for name in sorted(tried) if found[name]["fate"] == "survived"]
    same = [
        name
        for name in alive
        if (module, function_of(name), change(name, module)) in settings.equivalent
    ]
    survivors = tuple(name for name in alive if name not in same)
    return Tally(module, total, len(tried), len(tried) - len(alive), len(same), survivors)


def table(tallies: Sequence[Tally]) -> str:
    """A Markdown table, one row a module and one for all."""
    lines = [
        "| module | mutants | tried | killed | change nothing | survived | share killed "
        "| 95 % interval |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for t in (*tallies, total(tallies)):
        share = "none tried" if t.share is None else f"{t.share:.1%}"
        bounds = t.interval
        interval = "–" if bounds is None else f"{bounds[0]:.1%} to {bounds[1]:.1%}"
        cells = (t.module, t.mutants, t.tried, t.killed, t.equivalent, len(t.survivors), share)
        lines.append(f"| {' | '.join(map(str, (*cells, interval)))} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 if fewer mutants than demanded were noticed, or a module had none."""
    settings = Settings.read()
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="such as attention/flow.py")
    parser.add_argument("--sample", type=int, metavar="N", help="try only N mutants")
    parser.add_argument("--again", action="store_true", help="also those already tried")
    parser.add_argument("--survivors", action="store_true", help="only show what was found before")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.modules) - set(settings.modules):
        parser.error(f"not in the numerical core: {', '.join(sorted(unknown))}")
    if asked.survivors and not (FOLDER / "made.json").is_file():
        parser.error("nothing was tried yet")
    modules = asked.modules or list(settings.modules)
    if asked.survivors:
        os.chdir(FOLDER)
    else:
        prepare(settings)
    made = json.loads((FOLDER / "made.json").read_text(encoding="utf-8"))
    chosen = order({module: list(made[module]) for module in modules}, settings.seed)
    chosen = chosen[: asked.sample]
    code = 0
    if not asked.survivors:
        done = {
            name
            for name, entry in ({} if asked.again else fates(made)).items()
            if entry["fate"] != "survived" or entry["tests"] == state_of_tests()
        }
        functions = {name: known for names in made.values() for name, known in names.items()}
        left = {name: functions[name] for name in chosen if name not in done}
        print(f"{len(left)} mutants to try", flush=True)
        code = try_all(left, settings, asked.jobs) if left else 0
    found = fates(made)
    tallies = [
        tally(m, [name for name in chosen if name in made[m]], len(made[m]), found, settings)
        for m in modules
    ]
    for t in tallies:
        for name in t.survivors:
            print(f"\n{t.module}: {function_of(name)}\n{change(name, t.module)}")
    print(f"\n{table(tallies)}")
    share = total(tallies).share
    return code or int(share is None or share < ENOUGH or not all(t.tried for t in tallies))


if __name__ == "__main__":
    sys.exit(main())
