"""What a probe found, with the numbers it has to be compared with."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from scipy.stats import binomtest

from .errors import UnequalLengthError


@dataclass(frozen=True)
class ClassScore:
    """Scores of one class on the test part; 0 where a ratio has nothing below it."""

    precision: float
    recall: float
    f1: float
    n: int


@dataclass(frozen=True)
class ProbeResult:
    """A classifying probe of one layer.

    Attributes:
        layer: number of the layer; 0 is the embedding output.
        kind: ``"linear"``, ``"ridge"`` or ``"mlp"``.
        accuracy: share of the test part that is right.
        macro_f1: mean F1 of the classes that occur in the test part.
        majority: accuracy of always answering the most frequent training class.
        per_class: class -> scores, for the classes of the test part.
        n_train, n_test: examples.
        seed: seed of the probe (and, through the split, of the data).
        interval: 95 % interval of the accuracy: Wilson's over examples, or a bootstrap over groups
            where groups were given.
        model: name of the probed model.
        correct: [n_test] True where the probe is right, in the order of the test part.
    """

    layer: int
    kind: str
    accuracy: float
    macro_f1: float
    majority: float
    per_class: Mapping[str, ClassScore]
    n_train: int
    n_test: int
    seed: int
    interval: tuple[float, float]
    model: str
    correct: np.ndarray = field(repr=False, compare=False)

    unit = "share"

    @property
    def value(self) -> float:
        """The accuracy."""
        return self.accuracy

    @property
    def baselines(self) -> Mapping[str, float]:
        return {"majority class": self.majority}

    @property
    def n(self) -> int:
        """Test examples."""
        return self.n_test


def class_scores(
    predicted: np.ndarray, gold: np.ndarray, classes: Sequence[str]
) -> Mapping[str, ClassScore]:
    """Precision, recall and F1 of every class that occurs in ``gold``.

    Args:
        predicted, gold: [N] class numbers.
        classes: names by number.
    """
    size = len(classes)
    table = np.bincount(gold * size + predicted, minlength=size * size).reshape(size, size)
    right, true, said = np.diag(table), table.sum(1), table.sum(0)
    scores = {}
    for k in np.flatnonzero(true):
        scores[classes[k]] = ClassScore(
            float(right[k] / said[k]) if said[k] else 0.0,
            float(right[k] / true[k]),
            float(2 * right[k] / (true[k] + said[k])),
            int(true[k]),
        )
    return MappingProxyType(scores)


def share_interval(
    correct: np.ndarray, groups: Sequence[Hashable] | None = None, seed: int = 0
) -> tuple[float, float]:
    """95 % interval of a share of hits.

    Args:
        correct: [N] hits.
        groups: group of every item (its sentence). With groups, whole groups are resampled 1000
            times, since words of one sentence rise and fall together; without, Wilson's interval.
        seed: of the resampling.

    Raises:
        UnequalLengthError: not one group for each item.
    """
    correct = np.asarray(correct)
    if groups is None:
        found = binomtest(int(correct.sum()), len(correct)).proportion_ci(0.95, method="wilson")
        return float(found.low), float(found.high)
    if len(groups) != len(correct):
        raise UnequalLengthError(f"{len(groups)} groups for {len(correct)} items")
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(group, len(numbers)) for group in groups])
    return ratio_interval(
        np.bincount(codes, weights=correct), np.bincount(codes).astype(float), seed
    )


def ratio_interval(
    hits: np.ndarray, totals: np.ndarray, seed: int = 0, resamples: int = 1000
) -> tuple[float, float]:
    """95 % percentile bootstrap of sum(hits) / sum(totals) over resampled rows."""
    rng = np.random.default_rng(seed)
    n = len(hits)
    ratios = []
    for start in range(0, resamples, 100):  # a hundred draws at a time keep the table small
        draws = rng.integers(0, n, (min(100, resamples - start), n))
        below = totals[draws].sum(1)
        ratios.append(hits[draws].sum(1)[below > 0] / below[below > 0])
    low, high = np.percentile(np.concatenate(ratios), [2.5, 97.5])
    value = hits.sum() / totals.sum()
    # Few groups can put the percentiles on one side of the value itself.
    return float(min(low, value)), float(max(high, value))
