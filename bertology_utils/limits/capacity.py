"""The same question put by probes of growing capacity, beside labels that mean nothing.

Hewitt and Liang 2019 (arXiv 1909.03368): a probe that also learns a random label for every word
type learns by heart. Pimentel et al. 2020 (arXiv 2004.03061) ask for the cross-entropy of the best
probe within reach: the more a probe may do, the more of the information it can extract.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..probes import Split, control_labels, fit_linear, fit_mlp
from ..probes.data import Task, as_features, as_task, take
from ..resampling import Estimate
from .estimates import paired

LINEAR = "linear"


@dataclass(frozen=True, eq=False)
class CapacityCurve:
    """S sets of vectors, P probes, N test words.

    Attributes:
        places: names of the sets of vectors, such as layers.
        probes: names of the probes, the smallest multilayer one first, the linear one last.
        sizes: probe -> number of its parameters.
        correct: [2, P, S, N] hits; entry 0 for the real labels, 1 for control labels.
        bits: [2, P, S, N] cross-entropy of every test word.
        majority: accuracy of the most frequent class, for real and control labels.
        groups: [N] sentence of every test word.
        model: name of the encoder; seed: of control labels, probes and bootstrap.
    """

    places: tuple[str, ...]
    probes: tuple[str, ...]
    sizes: dict[str, int]
    correct: np.ndarray
    bits: np.ndarray
    majority: tuple[float, float]
    groups: tuple[Hashable, ...]
    model: str
    seed: int

    def _row(self, values: np.ndarray, labels: int, probe: str, place: str) -> np.ndarray:
        return values[labels, self.probes.index(probe), self.places.index(place)]

    def _mean(self, row: np.ndarray, unit: str) -> Estimate:
        zero = np.zeros(len(row))
        return paired(row, zero, self.groups, unit=unit, model=self.model, seed=self.seed)

    def accuracy(self, probe: str, place: str, *, control: bool = False) -> Estimate:
        """Share of the test words, for the real or the control labels."""
        found = self._mean(self._row(self.correct, int(control), probe, place), "share")
        return found.with_baselines(majority=self.majority[int(control)])

    def cross_entropy(self, probe: str, place: str, *, control: bool = False) -> Estimate:
        """Bits a test word."""
        return self._mean(self._row(self.bits, int(control), probe, place), "bits")

    def selectivity(self, probe: str, place: str) -> Estimate:
        """Accuracy on the real labels minus accuracy on the control labels."""
        rows = [self._row(self.correct, k, probe, place) for k in (0, 1)]
        return paired(
            *rows, self.groups, unit="share difference", model=self.model, seed=self.seed
        )

    def selectivity_gap(self, first: str, second: str, place: str) -> Estimate:
        """Selectivity of one probe minus that of another."""
        gains = [
            self._row(self.correct, 0, probe, place).astype(float)
            - self._row(self.correct, 1, probe, place)
            for probe in (first, second)
        ]
        return paired(
            *gains, self.groups, unit="share difference", model=self.model, seed=self.seed
        )

    def bits_saved(self, first: str, second: str, place: str) -> Estimate:
        """Cross-entropy of one probe minus that of another, on the real labels."""
        rows = [self._row(self.bits, 0, probe, place) for probe in (first, second)]
        return paired(*rows, self.groups, unit="bits", model=self.model, seed=self.seed)


def capacity_curve(
    features: dict[str, np.ndarray],
    labels: Sequence[Hashable],
    types: Sequence[Hashable],
    split: Split,
    *,
    widths: Sequence[int] = (1, 4, 16, 64, 256),
    groups: Sequence[Hashable],
    model: str,
    epochs: int = 20,
    seed: int = 0,
) -> CapacityCurve:
    """Train probes of every width, and a linear one, on the real and on control labels.

    Args:
        features: name -> [N, D] vectors of the same N words.
        labels, types: [N] real label and word type.
        split: over the N words; the development part stops training early.
        widths: of the hidden layer, growing.
        groups: [N] sentence of every word.
        model: name for the results.
        epochs: most epochs.
        seed: of control labels, weights and bootstrap.

    Raises:
        ValueError: widths that do not grow.
        ProbeError and its kinds: bad data, see :func:`bertology_utils.probes.probe_layers`.
    """
    if not widths or list(widths) != sorted(set(widths)) or widths[0] < 1:
        raise ValueError(f"widths must grow from 1 or more, got {tuple(widths)}")
    data = as_features(np.stack(list(features.values())))
    tasks = [
        as_task(given, split, data.shape[1])
        for given in (labels, control_labels(types, labels, seed=seed))
    ]
    parts = [take(data, rows) for rows in (split.train, split.dev, split.test)]
    names = [_name(width) for width in widths] + [LINEAR]
    correct, bits = [], []
    for task in tasks:
        said = [_fit(parts, task, width, epochs, seed) for width in (*widths, None)]
        gold = task.of("test")
        correct.append([(rows.argmax(2) == gold).numpy() for rows in said])
        bits.append([
            -rows.gather(2, gold.expand(len(rows), -1)[..., None])[..., 0].numpy() / math.log(2)
            for rows in said
        ])  # fmt: skip
    size, classes = data.shape[2], len(tasks[0].classes)
    counts = [w * (size + 1) + classes * (w + 1) for w in widths] + [classes * (size + 1)]
    return CapacityCurve(
        tuple(features), tuple(names), dict(zip(names, counts, strict=True)),
        np.array(correct), np.array(bits), (tasks[0].majority, tasks[1].majority),
        tuple(groups[i] for i in split.test), model, seed,
    )  # fmt: skip


def _name(width: int) -> str:
    return f"MLP, {width} hidden"


def _fit(parts: list[Tensor], task: Task, width: int | None, epochs: int, seed: int) -> Tensor:
    """Log-probabilities [S, n_test, K]."""
    train, dev, test = parts
    held, classes = (dev, task.of("dev")), len(task.classes)
    with torch.no_grad():
        if width is None:
            return fit_linear(train, task.of("train"), classes, dev=held).log_probs(test)
    fitted = fit_mlp(
        train, task.of("train"), classes, dev=held, hidden=width, epochs=epochs, seed=seed
    )
    with torch.no_grad():
        return fitted.log_probs(test)
