"""``python -m benchmarks``: measure, and write RESULTS.md beside this file."""

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bertology_utils.defaults import DEFAULT_MODEL
from bertology_utils.encoder.loading import MODELS_FOLDER

from . import report
from .book import measure_book
from .compare import failures, measure
from .growth import measure_growth
from .sides import REQUIREMENTS, Side, peers_python
from .suite import FULL, GROUPS, QUICK, Suite

PARTS = (*GROUPS, "growth", "book")
HERE = Path(__file__).resolve().parent


def main(arguments: list[str] | None = None) -> int:
    """0 if everything was measured and every goal met, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to measure")
    parser.add_argument("--quick", action="store_true", help="small inputs: a look, not a table")
    parser.add_argument("--rounds", type=int, help="paired runs of every row")
    parser.add_argument("--threads", type=int, default=1, help="threads of both sides")
    parser.add_argument("--match", default="", help="only rows whose name contains this")
    parser.add_argument("--peers", help="Python of an environment that has the peers already")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the results")
    options = parser.parse_args(arguments)
    sizes = QUICK if options.quick else FULL
    rounds = sizes.rounds if options.rounds is None else options.rounds
    if rounds < 1 or options.threads < 1:
        parser.error("rounds and threads start at 1")

    stored = options.out / "results.json"
    results = report.load(stored)
    label = "quick" if options.quick else "full"
    if results.get("sizes") != label:
        results = {}  # small and full inputs do not mix in one table
    results |= {
        "machine": report.machine(options.threads),
        "versions": report.versions(REQUIREMENTS),
        "sizes": label,
    }
    before = dict(results)
    model = str(MODELS_FOLDER / DEFAULT_MODEL)
    missed: list[str] = []

    def save(part: str, value) -> None:
        results[part] = report.as_json(value)
        if options.match:
            results[part] = report.merged(before.get(part, []), results[part])
        options.out.mkdir(parents=True, exist_ok=True)
        stored.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        (options.out / "RESULTS.md").write_text(report.markdown(results), encoding="utf-8")

    with tempfile.TemporaryDirectory() as scratch, ExitStack() as stack:
        folder = Path(scratch)
        suite = Suite(folder, model, sizes)
        sides: dict[str, Side] = {}
        python = {"peers": None}
        for part in (name for name in options.only if name in GROUPS):
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
        if "growth" in options.only:
            base = 10 if options.quick else 100
            found = measure_growth(model, folder, sys.executable, base, options.threads)
            save("growth", found)
        if "book" in options.only:
            save("book", measure_book(folder, sys.executable))
    print(f"Written: {options.out.name}/RESULTS.md")
    for line in missed:
        print(f"Goal missed: {line}", file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
