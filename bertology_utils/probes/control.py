"""Control tasks: can the probe learn any labelling of word types, or only the linguistic one?

Hewitt and Liang 2019 (arXiv 1909.03368): a control task gives every word type a random label, the
same wherever it occurs. A probe that does well on it can memorise; its accuracy on the real task
says little about the vectors. Selectivity is the difference between the two accuracies.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from .data import Split
from .errors import ProbeError, UnequalLengthError
from .layers import probe_layers
from .results import ProbeResult, ratio_interval


def control_labels(
    types: Sequence[Hashable], labels: Sequence[Hashable], *, seed: int = 0
) -> list[Hashable]:
    """A random label for every word type, drawn from the distribution of the real labels.

    Args:
        types: [N] word type of every example, such as the word in lower case.
        labels: [N] real labels; their frequencies are the odds.
        seed: of the draw. Types are numbered in order of appearance.

    Returns:
        [N] control labels.

    Raises:
        UnequalLengthError: not one label for each type.
        ProbeError: nothing to draw from, or a single type.
    """
    if len(types) != len(labels):
        raise UnequalLengthError(f"{len(types)} word types, but {len(labels)} labels")
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(word, len(numbers)) for word in types])
    if len(numbers) < 2:
        raise ProbeError(f"a control task needs several word types, found {len(numbers)}")
    # Drawing an example at random and taking its label follows the frequencies exactly.
    drawn = np.random.default_rng(seed).integers(0, len(labels), len(numbers))
    return [labels[drawn[code]] for code in codes]


@dataclass(frozen=True)
class SelectivityResult:
    """Real task against control task, for one layer and one kind of probe.

    Attributes:
        task, control: the two probes.
        selectivity: accuracy on the task minus accuracy on the control task.
        interval: 95 % bootstrap interval of the selectivity over test examples (over groups where
            groups were given), tasks paired.
    """

    task: ProbeResult
    control: ProbeResult
    selectivity: float
    interval: tuple[float, float]

    unit = "share difference"

    @property
    def layer(self) -> int:
        return self.task.layer

    @property
    def value(self) -> float:
        """The selectivity."""
        return self.selectivity

    @property
    def baselines(self) -> dict[str, float]:
        """A probe that only knows the majority classes."""
        return {"majority classes": self.task.majority - self.control.majority}

    @property
    def n(self) -> int:
        return self.task.n_test

    @property
    def seed(self) -> int:
        return self.task.seed

    @property
    def model(self) -> str:
        return self.task.model


def selectivity(
    features: np.ndarray | Tensor,
    labels: Sequence[Hashable],
    types: Sequence[Hashable],
    split: Split,
    *,
    kind: str = "linear",
    seed: int = 0,
    groups: Sequence[Hashable] | None = None,
    model: str = "features",
    **options,
) -> list[SelectivityResult]:
    """Probe every layer for the real labels and for a control task, with the same probe.

    Args:
        features, labels, split, kind, groups, model, options: as :func:`probe_layers`. Word types
            must recur between training and test part, or no control task can be learnt: split by
            sentences, not by words.
        types: [N] word type of every example.
        seed: of the control labels and of the probes.

    Raises:
        ProbeError: no word type of the test part occurs in the training part; else as
            :func:`probe_layers` and :func:`control_labels`.
    """
    random = control_labels(types, labels, seed=seed)
    split.check(len(types))
    seen = {types[i] for i in split.train}
    if not any(types[i] in seen for i in split.test):
        raise ProbeError("no word type of the test part occurs in the training part")
    settings = {"kind": kind, "seed": seed, "groups": groups, "model": model, **options}
    real = probe_layers(features, labels, split, **settings)
    control = probe_layers(features, random, split, **settings)
    held = split.test if groups is None else [groups[i] for i in split.test]
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(group, len(numbers)) for group in held])
    totals = np.bincount(codes).astype(float)
    results = []
    for a, b in zip(real, control, strict=True):
        ahead = np.bincount(codes, weights=a.correct.astype(float) - b.correct)
        interval = ratio_interval(ahead, totals, seed)
        results.append(SelectivityResult(a, b, a.accuracy - b.accuracy, interval))
    return results
