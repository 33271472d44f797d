"""Command line of the package: ``python -m bertology_utils COMMAND``; see ``--help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from .writing import NotWrittenError, write_whole


def _evaluate_model(args: argparse.Namespace) -> int:
    from .encoder import load_encoder, random_encoder
    from .evaluation import comparison_table, evaluate_model
    from .training.text import load_specs

    specs = load_specs(args.sources)
    columns = {}
    for name in args.models or [None]:
        encoder = load_encoder(name, device=args.device)
        for candidate in (encoder, random_encoder(encoder)):
            columns[candidate.name] = evaluate_model(
                candidate,
                text=args.text,
                specs=specs,
                held_out_only=args.held_out,
                blimp=args.blimp,
                n=args.n,
                seed=args.seed,
            )
    print(comparison_table(columns))
    if args.json:
        found = {name: [asdict(score) for score in scores] for name, scores in columns.items()}
        write_whole(args.json, json.dumps(found, indent=1))
    return 0


def _reproduce(args: argparse.Namespace) -> int:
    from .ledger import results_root
    from .reproduce.run import reproduce
    from .reproduce.surroundings import default_jobs

    report = reproduce(
        args.claims,
        args.model,
        root=args.results or results_root(),
        book=args.book,
        jobs=default_jobs() if args.jobs is None else args.jobs,
        dask=args.dask,
        again=args.again,
    )
    print(report.comparison.to_markdown())
    for model, counts in report.comparison.counts().items():
        print(f"\n{model}: " + ", ".join(f"{n} {status}" for status, n in counts.items()))
    print(f"\n{report.ran} measured now, {report.kept} kept from earlier runs.")
    if report.homeless:
        print(f"The book has no chapter yet for {', '.join(report.homeless)}.")
    for what, why in report.failures.items():
        print(f"not measured: {what}: {why}", file=sys.stderr)
    if args.html:
        write_whole(args.html, report.comparison.to_html())
    return 1 if report.failures else 0


def _sweep(args: argparse.Namespace) -> int:
    from .sweeps.command import described, run, with_values

    if args.name is None:
        print(described())
        return 0
    sweep = with_values(args.name, args.seeds, args.sizes, args.set)
    run(sweep, args.model, args.out, args.figure)
    return 0


def parser() -> argparse.ArgumentParser:
    """The argument parser of all commands."""
    top = argparse.ArgumentParser(prog="python -m bertology_utils", description=__doc__)
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "evaluate-model", help="one table of language-model quality, beside random weights"
    )
    command.add_argument("models", nargs="*", help="embedded name, folder or hub id")
    command.add_argument("--text", type=Path, help="folder of .txt(.xz) for held-out prediction")
    command.add_argument("--sources", help="JSON of order by file, as in pretraining")
    command.add_argument(
        "--held-out", action="store_true", help="use only the blocks that pretraining holds out"
    )
    command.add_argument("--blimp", type=Path, help="folder of BLiMP .jsonl files")
    command.add_argument("--n", type=int, default=200, help="pairs a task (default 200)")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--device", help="cpu or cuda (default: cuda where present)")
    command.add_argument("--json", help="also write the rows to this file")
    command.set_defaults(run=_evaluate_model)
    _add_reproduce(commands)
    _add_sweep(commands)
    return top


def _add_sweep(commands) -> None:
    command = commands.add_parser(
        "sweep", help="larger versions of the experiments of chapters 09 to 13, kept run by run"
    )
    command.add_argument("name", nargs="?", help="of a sweep; without it, all are listed")
    command.add_argument("--seeds", type=int, metavar="N", help="seeds of every run: 0 to N - 1")
    command.add_argument(
        "--sizes", nargs="+", metavar="SIZE", help="training texts, or what the sweep lists as such"
    )
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="AXIS=VALUE,VALUE",
        help="other values on any axis; may be given several times",
    )
    command.add_argument("--model", metavar="NAME", help="embedded name, folder or hub id")
    command.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="of the tables and of finished runs, which are found again there "
        "(default: _results/sweeps/NAME)",
    )
    command.add_argument(
        "--figure", type=Path, metavar="FILE", help="also draw the first number (.svg, .png, .pdf)"
    )
    command.set_defaults(run=_sweep)


def _add_reproduce(commands) -> None:
    command = commands.add_parser(
        "reproduce", help="measure claims outside the book, on one model or several side by side"
    )
    command.add_argument(
        "--claims", nargs="+", default=["*"], metavar="PATTERN", help="such as 'SYN-*' KNO-03"
    )
    command.add_argument(
        "--model",
        nargs="+",
        default=[],
        metavar="NAME",
        help="embedded name, folder, hub id, random or random:SEED (default: the book's model)",
    )
    command.add_argument("--jobs", type=int, help="processes at once (default: cores and memory)")
    command.add_argument("--dask", metavar="ADDRESS", help="use a running Dask scheduler instead")
    command.add_argument("--again", action="store_true", help="do not rely on earlier results")
    command.add_argument("--results", type=Path, help="folder of results (default: _results)")
    command.add_argument(
        "--book",
        type=Path,
        default=Path(__file__).resolve().parent.parent,
        help="checkout with the chapters (default: the one this package is in)",
    )
    command.add_argument("--html", type=Path, help="also write the table to this file")
    command.set_defaults(run=_reproduce)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; errors of input, and of writing, print one line and return 2."""
    args = parser().parse_args(argv)
    try:
        return args.run(args)
    except (ValueError, NotWrittenError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; what was finished is kept", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
