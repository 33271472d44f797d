"""Measure, and write RESULTS.md and results.json beside this file."""

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import torch

from bertology_utils.defaults import DEFAULT_MODEL
from bertology_utils.encoder.loading import MODELS_FOLDER

from . import report
from .book import measure_book
from .compare import Row, failures, measure, regressions
from .growth import measure_growth
from .limits import measure_limits
from .sides import REQUIREMENTS, Side, SideError, peers_python
from .suite import FULL, GROUPS, QUICK, Suite

PARTS = (*GROUPS, "limits", "growth", "book")
#: what a GPU is used for
ON_DEVICE = ("scores", "activations", "ablation", "limits", "growth")
HERE = Path(__file__).resolve().parent


def main(arguments: list[str] | None = None) -> int:
    """0 if everything was measured and every goal met, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, help="parts to measure")
    parser.add_argument("--quick", action="store_true", help="small inputs: a look, not a table")
    parser.add_argument("--rounds", type=int, help="paired runs of every row")
    parser.add_argument("--threads", type=int, default=1, help="threads of both sides")
    parser.add_argument("--match", default="", help="only comparisons whose name contains this")
    parser.add_argument("--peers", help="Python of an environment that has the peers already")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--baseline", type=Path, help="earlier results.json to compare ratios with")
    parser.add_argument("--tolerance", type=float, default=0.25, help="share a ratio may fall by")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the results")
    options = parser.parse_args(arguments)
    sizes = QUICK if options.quick else FULL
    rounds = sizes.rounds if options.rounds is None else options.rounds
    if rounds < 1 or options.threads < 1:
        parser.error("rounds and threads start at 1")
    if not 0 <= options.tolerance < 1:
        parser.error("a tolerance lies between 0 and 1")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("no CUDA device here")
    if options.baseline is not None and not options.baseline.is_file():
        parser.error(f"no file {options.baseline}")
    earlier = None if options.baseline is None else report.ratios(report.load(options.baseline))
    only = options.only or (PARTS if options.device == "cpu" else ON_DEVICE)

    # What another device does is a table of its own.
    end = "" if options.device == "cpu" else f"-{options.device}"
    stored, page = (options.out / f"{name}{end}.{kind}" for name, kind in
                    (("results", "json"), ("RESULTS", "md")))  # fmt: skip
    results = report.load(stored)
    label = "quick" if options.quick else "full"
    if results.get("sizes") != label:
        results = {}  # small and full inputs do not mix in one table
    results |= {
        "machine": report.machine(options.threads, options.device),
        "versions": report.versions(REQUIREMENTS),
        "sizes": label,
    }
    before = dict(results)
    model = str(MODELS_FOLDER / DEFAULT_MODEL)
    missed: list[str] = []
    measured: list[Row] = []

    def save(part: str, value) -> None:
        results[part] = report.as_json(value)
        if options.match:
            results[part] = report.merged(before.get(part, []), results[part])
        options.out.mkdir(parents=True, exist_ok=True)
        stored.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        page.write_text(report.markdown(results), encoding="utf-8")

    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        folder = Path(scratch)
        suite = Suite(folder, model, sizes, options.device)
        sides: dict[str, Side] = {}
        python = {"peers": None}
        for part in (name for name in only if name in GROUPS):
            rows = []
            for comparison in suite.group(part):
                if options.match not in comparison.name:
                    continue
                for side in (comparison.ours.side, comparison.theirs.side):
                    # A process that was killed, for its memory say, fails one row and not the rest.
                    if side not in sides or not sides[side].alive:
                        if side == "peers":
                            python["peers"] = peers_python(options.peers)
                        used = python.get(side) or sys.executable
                        sides[side] = stack.enter_context(Side(used, side, options.threads))
                rows.append(measure(comparison, sides, rounds, folder))
                row = rows[-1]
                said = f"{row.ratio:.2f}, processor {row.processor:.2f} ({row.difference})"
                print(f"{row.group}: {row.name}: {row.failed or said}", flush=True)
                save(part, rows)
            missed += failures(rows)
            measured += rows
        others = {
            "limits": lambda: measure_limits(
                suite.limited(), folder, sys.executable, options.threads, options.device, rounds
            ),
            "growth": lambda: measure_growth(
                suite.about, folder, sys.executable, 10 if options.quick else 100, options.threads
            ),
            "book": lambda: measure_book(folder, sys.executable),
        }
        for part in (name for name in only if name in others and not options.match):
            try:
                save(part, others[part]())
            except SideError as error:
                missed.append(f"{part}: {error}")
    if options.match and not measured:
        parser.error(f"no comparison of {', '.join(only)} is called {options.match!r}")
    print(f"Written: {page.parent.name}/{page.name}")
    if earlier is not None:
        try:
            missed += regressions(measured, earlier, options.tolerance)
        except ValueError as error:
            parser.error(f"{options.baseline}: {error}")
    for line in missed:
        print(f"Missed: {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
