"""Command line of the package: ``python -m bertology_utils COMMAND``; see ``--help``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path


def _evaluate_model(args: argparse.Namespace) -> None:
    from .encoder import load_encoder, random_encoder
    from .evaluation import comparison_table, evaluate_model
    from .training.text import load_specs

    columns = {}
    for name in args.models or [None]:
        encoder = load_encoder(name, device=args.device)
        for candidate in (encoder, random_encoder(encoder)):
            columns[candidate.name] = evaluate_model(
                candidate,
                text=args.text,
                specs=load_specs(args.sources),
                held_out_only=args.held_out,
                blimp=args.blimp,
                n=args.n,
                seed=args.seed,
            )
    print(comparison_table(columns))
    if args.json:
        found = {name: [asdict(score) for score in scores] for name, scores in columns.items()}
        Path(args.json).write_text(json.dumps(found, indent=1), encoding="utf-8")


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
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; errors of input print one line and return 2."""
    args = parser().parse_args(argv)
    try:
        args.run(args)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
