"""``python -m bertology_utils lab``: the chapter's runs, longer, with more seeds, kept on disk."""

from __future__ import annotations

import argparse
from pathlib import Path

from .compare import over_seeds
from .grid import Grid
from .plan import plan
from .runs import LabRun


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    command.add_argument("folder", type=Path, help="where finished runs are kept, and found again")
    command.add_argument("--seeds", type=int, default=10, help="seeds of every run (default 10)")
    command.add_argument("--steps", type=int, default=600, help="steps of the base (default 600)")
    command.add_argument("--only", nargs="*", metavar="NAME", help="names of the plan")
    command.set_defaults(run=run_plan)


def run_plan(args: argparse.Namespace) -> None:
    """Train what is missing, then print one line for every run of the plan.

    Raises:
        ValueError: fewer than two seeds, or a name that the plan does not have.
    """
    chosen = plan(args.steps)
    if args.seeds < 2:
        raise ValueError(f"an interval takes at least two seeds, got {args.seeds}")
    if unknown := [name for name in args.only or () if name not in chosen]:
        raise ValueError(f"no run {unknown[0]!r}; the plan has: {', '.join(chosen)}")
    if args.only:
        chosen = {name: chosen[name] for name in args.only}
    grid = Grid(args.folder)
    wanted = [config for own in chosen.values() for config in own.seeds(args.seeds)]
    left = len(grid.missing(wanted))
    print(f"{len(wanted)} runs, {left} of them to be trained")

    def done(run: LabRun) -> None:
        nonlocal left
        left -= 1
        print(f"{run.config.digest}  {run.seconds:6.1f} s  {left} left", flush=True)

    grid.run(wanted, done=done)
    for name, config in chosen.items():
        runs = grid.run(config.seeds(args.seeds))
        parts = []
        for curve in ("loss", "agreement:simple", "agreement:attractor", "pair", "facts"):
            if curve in runs[0].curves:
                unit = "nats" if curve == "loss" else "share"
                found = over_seeds([run.final(curve) for run in runs], unit=unit)
                low, high = found.interval
                parts.append(f"{curve} {found.value:.3f} [{low:.3f}, {high:.3f}]")
        print(f"{name:30} {'  '.join(parts)}")
