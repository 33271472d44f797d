"""Run a sweep: find what is finished, compute the rest, and sum it up."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..encoder import Encoder
from ..finetuning import weights_digest
from ..finetuning.summaries import over_runs
from ..resampling import Estimate
from ..run_store import RunStore
from ..writing import locked
from .sweep import Sweep, SweepError, Value

_PACKAGE = Path(__file__).resolve().parents[1]
#: what finished runs depend on beside the package
_PINS = ("numpy", "peft", "scikit-learn", "scipy", "torch", "transformers")
#: folders of the package that no run reads, or that count by their weights
_APART = {"__pycache__", "models"}


@dataclass(frozen=True)
class Result:
    """A finished sweep.

    Attributes:
        sweep: what was run.
        model: name of the encoder; empty where none was used.
        rows: a run each: values of the axes, then of the measures; None where a run has no such
            number.
        computed, found: numbers of runs that were computed now, and earlier.
    """

    sweep: Sweep
    model: str
    rows: tuple[dict[str, Any], ...] = field(repr=False)
    computed: int
    found: int

    def summary(self) -> dict[tuple[Value, ...], dict[str, Estimate | float]]:
        """Values of the axes that are no seeds -> measure -> mean with Student's interval over
        seeds, or the plain number of a single run."""
        kept = [axis for axis in self.sweep.axes if axis not in self.sweep.seeds]
        groups: dict[tuple[Value, ...], list[dict[str, Any]]] = {}
        for row in self.rows:
            groups.setdefault(tuple(row[axis] for axis in kept), []).append(row)
        found: dict[tuple[Value, ...], dict[str, Estimate | float]] = {}
        for key, rows in groups.items():
            found[key] = {}
            for measure, unit in self.sweep.measures.items():
                numbers = [row[measure] for row in rows if row[measure] is not None]
                if len(numbers) > 1:
                    found[key][measure] = over_runs(numbers, unit, self.model)
                elif numbers:
                    found[key][measure] = numbers[0]
        return found


def package_digest() -> str:
    """Names the package's code and data, Python, and the libraries that runs depend on."""
    digest = hashlib.sha256(f"{sys.version_info[:2]}".encode())
    for path in sorted(_PACKAGE.rglob("*")):
        parts = path.relative_to(_PACKAGE).parts
        if path.is_file() and not _APART.intersection(parts):
            digest.update("/".join(parts).encode() + b"\0" + path.read_bytes())
    for name in _PINS:
        digest.update(f"{name} {version(name)}\0".encode())
    return digest.hexdigest()[:24]


def run_sweep(
    sweep: Sweep, encoder: Encoder | None, folder: Path, *,
    say: Callable[[str], None] = lambda line: None,
) -> Result:  # fmt: skip
    """All runs of a sweep; those finished in ``folder`` under the same settings, model and package
    are not run again.

    Args:
        sweep: what to run.
        encoder: the pre-trained model; None where the sweep uses none.
        folder: of finished runs, a file each.
        say: is told a line for each run, and for each file that cannot be used.

    Raises:
        SweepError: values that make no sense, or another sweep is using the folder.
        NotWrittenError: the folder takes no file, not even to begin with.
    """
    if not sweep.uses_model:
        encoder = None
    runs = sweep.runs(encoder)
    model = "" if encoder is None else f"{encoder.name} {weights_digest(encoder)}"
    store = RunStore(folder, made_with=f"{package_digest()} {model}".strip(), report=say)
    with locked(folder / ".lock", SweepError(f"another sweep is using {folder}")):
        todo = store.missing(runs.values())
        distinct = len({store.digest(config) for config in runs.values()})
        say(f"{distinct} runs, {len(todo)} of them to be computed")
        named = {store.digest(config): key for key, config in reversed(runs.items())}
        progress = _Progress(sweep, named, store, len(todo), say)
        compute = sweep.work(encoder) if todo else None
        records = store.run(runs.values(), compute, batches=sweep.batches, done=progress)
    rows = [
        dict(zip(sweep.axes, key, strict=True))
        | {measure: record["values"].get(measure) for measure in sweep.measures}
        for key, record in zip(runs, records, strict=True)
    ]
    name = "" if encoder is None else encoder.name
    return Result(sweep, name, tuple(rows), len(todo), distinct - len(todo))


class _Progress:
    """A line for every run that was just computed."""

    def __init__(self, sweep: Sweep, named: dict, store: RunStore, todo: int, say) -> None:
        self.sweep, self.named, self.store, self.say = sweep, named, store, say
        self.todo, self.count, self.began = todo, 0, time.perf_counter()

    def __call__(self, config: Any, record: dict[str, Any]) -> None:
        self.count += 1
        key = self.named[self.store.digest(config)]
        values = ", ".join(f"{axis} {value}" for axis, value in zip(self.sweep.axes, key,
                                                                    strict=True))  # fmt: skip
        measure = next(iter(self.sweep.measures))
        found = record["values"].get(measure)
        number = "" if found is None else f"  {measure} {found:.3f}"
        left = (time.perf_counter() - self.began) / self.count * (self.todo - self.count)
        self.say(f"{self.count}/{self.todo}  {values}{number}  (about {left:.0f} s left)")
