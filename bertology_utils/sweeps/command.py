"""``python -m bertology_utils sweep``: list the sweeps, run one, print and write its table."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from pathlib import Path

import torch

from ..encoder import load_encoder
from ..ledger import results_root
from ..writing import whole_file
from .catalogue import SWEEPS
from .running import run_sweep
from .sweep import Sweep, SweepError
from .tables import as_text, chart, write_tables

_FIGURES = (".svg", ".png", ".pdf")


def described() -> str:
    """All sweeps with their axes."""
    return "\n\n".join(map(_described, SWEEPS.values()))


def _described(sweep: Sweep) -> str:
    lines = [f"{sweep.name}  (chapter {sweep.chapter}): {sweep.title}"]
    for axis, values in sweep.axes.items():
        note = " (--seeds)" if axis in sweep.seeds else " (--sizes)" if axis == sweep.size else ""
        lines.append(f"    {axis}{note}: {', '.join(map(str, values))}")
    count = prod(len(values) for values in sweep.axes.values())
    lines.append(f"    at most {count} runs; measures {', '.join(sweep.measures)}")
    return "\n".join(lines)


def with_values(
    name: str, seeds: int | None, sizes: Sequence[str] | None, settings: Sequence[str]
) -> Sweep:
    """A sweep with what the command line says about its axes.

    Args:
        name: of the sweep.
        seeds: seeds 0 to this number on all axes of seeds; None leaves them.
        sizes: values of the axis of sizes; None leaves it.
        settings: texts such as ``"method=all,adapters"``.

    Raises:
        SweepError: no such sweep, axis or value.
    """
    if name not in SWEEPS:
        raise SweepError(f"no sweep {name!r}; there are: {', '.join(SWEEPS)}")
    sweep = SWEEPS[name]
    if seeds is not None:
        if seeds < 1:
            raise SweepError(f"{seeds} seeds; at least 1 is needed")
        for axis in sweep.seeds:
            sweep = sweep.at(axis, range(seeds))
    if sizes is not None:
        sweep = sweep.at(sweep.size, sizes)
    for setting in settings:
        axis, equals, values = setting.partition("=")
        if not equals:
            raise SweepError(f"{setting!r} is not of the form AXIS=VALUE,VALUE")
        sweep = sweep.at(axis.strip(), [value.strip() for value in values.split(",")])
    return sweep


def run(sweep: Sweep, model: str | None, out: Path | None, figure: Path | None) -> None:
    """Run a sweep on one thread; print a line for each run, then its table; write the tables.

    Args:
        sweep: what to run.
        model: name of the encoder; None for the book's.
        out: folder of tables and finished runs; None for the sweep's own among the results.
        figure: file to draw the first measure into, too.

    Raises:
        SweepError, NotWrittenError: see :func:`.run_sweep`; another kind of figure.
    """
    if figure is not None and figure.suffix not in _FIGURES:
        raise SweepError(f"{figure.name}: figures are {', '.join(_FIGURES)}")
    # As in the book: with more threads, sums are rounded in an order that machines choose.
    torch.set_num_threads(1)
    folder = out or results_root() / "sweeps" / sweep.name
    encoder = load_encoder(model, device="cpu") if sweep.uses_model else None
    result = run_sweep(sweep, encoder, folder / "runs", say=lambda line: print(line, flush=True))
    print(f"\n{as_text(result)}\n")
    print(f"{result.computed} runs computed now, {result.found} found from earlier.")
    for path in write_tables(result, folder):
        print(f"written: {path}")
    if figure is not None:
        with whole_file(figure) as scratch:
            drawn = chart(result)
            drawn.savefig(scratch, format=figure.suffix[1:], facecolor="white", dpi=150)
        print(f"drawn: {figure}")
