"""Bits for real labels against bits for control labels (Voita and Titov 2020, arXiv 2003.12298)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..probes import CodelengthResult, control_labels, online_codelength
from ..resampling import Estimate, mean_over_runs

#: ends of the blocks; eight, as shares of the words
PORTIONS = (0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)


@dataclass(frozen=True, eq=False)
class Codes:
    """Online codes of real and control labels for the same vectors, in several runs.

    Attributes:
        real, control: [runs][S] codes; a run has its own order and its own control labels.
    """

    real: tuple[tuple[CodelengthResult, ...], ...]
    control: tuple[tuple[CodelengthResult, ...], ...]

    def ratio(self, entry: int) -> Estimate:
        """Bits of the control labels over bits of the real labels: geometric mean over runs."""
        logs = [
            math.log(control[entry].bits / real[entry].bits)
            for real, control in zip(self.real, self.control, strict=True)
        ]
        found = mean_over_runs(logs, unit="log ratio", model=self.real[0][entry].model)
        low, high = found.interval
        return Estimate(
            value=math.exp(found.value), unit="ratio", n=found.n, model=found.model, seed=0,
            interval=(math.exp(low), math.exp(high)), baselines={"equal codes": 1.0},
        )  # fmt: skip

    def bits_per_label(self, entry: int, *, control: bool = False) -> Estimate:
        """Mean over runs."""
        codes = self.control if control else self.real
        return mean_over_runs(
            [run[entry].bits / run[entry].n for run in codes], unit="bits",
            model=codes[0][entry].model,
        )  # fmt: skip


def compare_codes(
    features: np.ndarray,
    labels: Sequence[Hashable],
    types: Sequence[Hashable],
    *,
    groups: Sequence[Hashable],
    runs: int = 3,
    model: str,
) -> Codes:
    """Online codes of the labels and of as many sets of control labels.

    Args:
        features: [S, N, D].
        labels, types: [N] real label and word type.
        groups: [N] sentence of every word; sentences are sent whole.
        runs: orders of the sentences, each with its own control labels.
        model: name for the results.

    Raises:
        ValueError: fewer than two runs; else as :func:`bertology_utils.probes.online_codelength`.
    """
    if runs < 2:
        raise ValueError(f"an interval needs two runs or more, got {runs}")
    found = []
    for given in (lambda _: labels, lambda run: control_labels(types, labels, seed=run)):
        found.append(tuple(
            tuple(online_codelength(
                features, given(run), portions=PORTIONS, seed=run, groups=groups, model=model))
            for run in range(runs)))  # fmt: skip
    return Codes(*found)
