"""Differences between runs, paired by seed, with Student's interval over seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..resampling import Estimate, mean_over_runs
from .runs import LabRun

MODEL = "lab BERT"


def over_seeds(values: Sequence[float], *, unit: str, model: str = MODEL) -> Estimate:
    """Mean over runs with Student's 95 % interval, cut to the range of a share.

    Raises:
        ValueError: fewer than two runs.
    """
    return mean_over_runs(values, unit=unit, model=model)


def paired(
    first: Sequence[float], second: Sequence[float], *, unit: str, model: str = MODEL
) -> Estimate:
    """Mean of first minus second, run by run.

    Raises:
        ValueError: lengths differ, or there are fewer than two.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} runs against {len(second)}")
    return over_seeds(np.subtract(first, second), unit=unit, model=model)


def finals(runs: Sequence[LabRun], curve: str = "loss") -> list[float]:
    """The last value of a curve, run by run."""
    return [run.final(curve) for run in runs]


def gain(
    first: Sequence[LabRun], second: Sequence[LabRun], *, curve: str = "loss", unit: str = "nats",
    model: str = MODEL,
) -> Estimate:  # fmt: skip
    """Last value of ``first`` minus of ``second``; both must have the same seeds in order.

    Raises:
        ValueError: seeds differ.
    """
    seeds = [[run.config.seed for run in runs] for runs in (first, second)]
    if seeds[0] != seeds[1]:
        raise ValueError(f"seeds {seeds[0]} against {seeds[1]}")
    return paired(finals(first, curve), finals(second, curve), unit=unit, model=model)


def curve(runs: Sequence[LabRun], name: str) -> list[Estimate]:
    """Mean over seeds at every moment with its interval."""
    unit = "nats" if name == "loss" else "share"
    table = np.array([run.curves[name] for run in runs])
    return [over_seeds(column, unit=unit) for column in table.T]
