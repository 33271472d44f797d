"""Many probes on the same layers: which layer is best over all of them?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from ..geometry import LayerScores
from ..resampling import Estimate
from .curves import over_tasks


@dataclass(frozen=True, eq=False)
class Suite:
    """Curves of many tasks over the same layers.

    Attributes:
        curves: task -> accuracy by layer.
        model: name of the encoder.
    """

    curves: Mapping[str, LayerScores]
    model: str

    def only(self, names: Iterable[str]) -> dict[str, LayerScores]:
        """The curves of some tasks.

        Raises:
            KeyError: no such task.
        """
        return {name: self.curves[name] for name in names}

    @property
    def matrix(self) -> np.ndarray:
        """[tasks, S] accuracies."""
        return np.stack([curve.values for curve in self.curves.values()])

    @property
    def ranks(self) -> np.ndarray:
        """[S] mean rank of every layer over the tasks, 1 being best."""
        return mean_ranks(list(self.matrix))

    @property
    def best(self) -> Estimate:
        """Relative depth of the layer with the best mean rank."""
        depth = self.matrix.shape[1] - 1
        return over_tasks(
            self.curves, lambda values: mean_ranks(values).argmin(-1) / depth, "relative depth"
        )

    def chosen_minus_last(self) -> Estimate:
        """Mean accuracy of a layer chosen on the *other* tasks minus of the last layer.

        For every task, the layer with the best mean rank over all other tasks is taken from those
        between the embeddings and the last layer, both left out.

        Raises:
            ValueError: fewer than two tasks, or no layer in between.
        """
        if len(self.curves) < 2 or self.matrix.shape[1] < 3:
            raise ValueError("needs two tasks and two layers or more")
        return over_tasks(self.curves, _chosen_minus_last, "share difference")


def mean_ranks(values: Sequence[np.ndarray]) -> np.ndarray:
    """T arrays [..., S] of scores -> [..., S] mean rank of every layer; 1 is best, ties share."""
    return np.mean([rankdata(-np.asarray(v), axis=-1) for v in values], axis=0)


def _chosen_minus_last(values: Sequence[np.ndarray]) -> np.ndarray:
    gaps = []
    for left_out, curve in enumerate(values):
        others = [v for k, v in enumerate(values) if k != left_out]
        layer = 1 + mean_ranks(others)[..., 1:-1].argmin(-1)
        picked = np.take_along_axis(curve, np.asarray(layer)[..., None], -1)[..., 0]
        gaps.append(picked - curve[..., -1])
    return np.mean(gaps, axis=0)
