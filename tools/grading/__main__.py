"""``python -m tools.grading --assignment 01_architecture --submissions folder --out scores.csv``"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from ..assignments import AssignmentError, build, find_master
from .assignment import load_assignment
from .sandbox import ROOT, Limits, isolation_layers
from .scores import Row, ScoresError, grade_folder


def main(arguments: list[str] | None = None) -> int:
    """Build the assignment when it is not built yet, then grade a folder of submissions."""
    parser = argparse.ArgumentParser(prog="python -m tools.grading", description=main.__doc__)
    parser.add_argument("--assignment", required=True, help="such as 01_architecture")
    parser.add_argument("--submissions", required=True, type=Path, help="a folder of notebooks")
    parser.add_argument("--out", type=Path, help="the table (default: _build/scores/NAME.csv)")
    parser.add_argument("--wall", type=float, default=Limits.wall, help="seconds (%(default)s)")
    parser.add_argument("--cpu", type=int, default=Limits.cpu, help="CPU seconds (%(default)s)")
    parser.add_argument("--memory", type=int, default=Limits.memory // 2**20, help="MiB")
    chosen = parser.parse_args(arguments)
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        limits = Limits(chosen.wall, chosen.cpu, chosen.memory * 2**20)
        master = find_master(chosen.assignment)
        built = build(master, ROOT / "_build" / "assignments")
        assignment = load_assignment(built.autograder)
        # Behind "SUBMISSIONS=" and within quotation marks, most shells leave ~ as it is.
        folder = chosen.submissions.expanduser()
        table = chosen.out or ROOT / "_build" / "scores" / f"{assignment.name}.csv"
        table = table.expanduser()
        print(f"isolation: {', '.join(isolation_layers())}")
        rows = grade_folder(folder, assignment, table, limits, report=_report)
    except (AssignmentError, ScoresError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; run the same command again to go on", file=sys.stderr)
        return 130
    finally:
        signal.signal(signal.SIGTERM, before)
    print(f"{len(rows)} submissions in {table}")
    return 0


def _stop(number: int, frame: object) -> None:
    # An exception, so that the submission that runs now is ended and its folder goes.
    raise KeyboardInterrupt


def _report(row: Row, number: int, of: int) -> None:
    print(f"[{number}/{of}] {row.file}: {row.verdict.status}, {row.verdict.total:g}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
