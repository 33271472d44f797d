"""What probes learn from: checked features, labels as numbers, and splits that do not leak."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from .errors import (
    NonFiniteError,
    OneClassError,
    ProbeError,
    TooFewExamplesError,
    UnequalLengthError,
)


@dataclass(frozen=True, eq=False)
class Split:
    """Row numbers of the training, development and test parts.

    Probes stop early, or choose their L2 penalty, by the development part; it may be empty where
    neither is wanted. Only the test part is scored.

    Raises:
        TooFewExamplesError: an empty training or test part.
        ProbeError: a negative row, or a row in two parts.
    """

    train: np.ndarray
    dev: np.ndarray
    test: np.ndarray
    seed: int | None = None

    def __post_init__(self) -> None:
        for name in ("train", "dev", "test"):
            rows = np.asarray(getattr(self, name), dtype=np.int64).reshape(-1)
            object.__setattr__(self, name, rows)
            if name != "dev" and not len(rows):
                raise TooFewExamplesError(f"the {name} part of the split is empty")
        rows = np.concatenate([self.train, self.dev, self.test])
        if rows.min() < 0:
            raise ProbeError(f"row {rows.min()} in a split; rows count from 0")
        values, counts = np.unique(rows, return_counts=True)
        if (counts > 1).any():
            raise ProbeError(f"row {values[counts > 1][0]} is in the split more than once")

    def check(self, n: int) -> "Split":
        """Return the split if all its rows exist among ``n``, else raise UnequalLengthError."""
        last = max(part.max(initial=-1) for part in (self.train, self.dev, self.test))
        if last >= n:
            raise UnequalLengthError(f"the split names row {last}, but there are {n} rows")
        return self


def random_split(n: int, *, dev: float = 0.1, test: float = 0.2, seed: int = 0) -> Split:
    """Rows 0 .. n - 1 dealt out at random.

    Words of one sentence are no independent examples: use :func:`group_split` for them.

    Raises:
        ValueError: shares that are negative or leave nothing to train on.
        TooFewExamplesError: too few rows for three parts.
    """
    return group_split(range(n), dev=dev, test=test, seed=seed)


def group_split(
    groups: Sequence[Hashable], *, dev: float = 0.1, test: float = 0.2, seed: int = 0
) -> Split:
    """Deal out whole groups (sentences, word types), so that none is on both sides.

    Args:
        groups: the group of every row, such as its sentence number or its word.
        dev: share of the groups for development; 0 leaves that part empty.
        test: share of the groups for testing.
        seed: of the draw.

    Raises:
        ValueError: shares that are negative or leave nothing to train on.
        TooFewExamplesError: too few groups for the parts asked for.
    """
    if not (0 <= dev and 0 < test and dev + test < 1):
        raise ValueError(f"need dev >= 0, test > 0 and dev + test < 1, got {dev} and {test}")
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(group, len(numbers)) for group in groups])
    wanted = 2 + (dev > 0)
    if len(numbers) < wanted:
        raise TooFewExamplesError(f"{len(numbers)} groups cannot fill {wanted} parts")
    order = np.random.default_rng(seed).permutation(len(numbers))
    n_test = max(1, round(test * len(order)))
    n_dev = max(1, round(dev * len(order))) if dev else 0
    n_test = min(n_test, len(order) - n_dev - 1)
    part = np.zeros(len(order), dtype=np.int64)
    part[order[:n_test]] = 2
    part[order[n_test : n_test + n_dev]] = 1
    rows = part[codes]
    return Split(*(np.flatnonzero(rows == k) for k in (0, 1, 2)), seed)


def words_split(split: Split, lengths: Sequence[int]) -> Split:
    """A split of sentences as a split of their words.

    Args:
        split: over sentences.
        lengths: words of every sentence, in order.

    Raises:
        UnequalLengthError: the split names a sentence that does not exist.
    """
    split.check(len(lengths))
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def rows(part: np.ndarray) -> np.ndarray:
        spans = [np.arange(starts[i], starts[i + 1]) for i in part]
        return np.concatenate(spans) if spans else part

    return Split(rows(split.train), rows(split.dev), rows(split.test), split.seed)


def as_features(features: np.ndarray | Tensor) -> Tensor:
    """Features [S, N, D] in float32: S layers, N examples, D numbers.

    Raises:
        ProbeError: another number of dimensions, or nothing in one of them.
        NonFiniteError: NaN or infinity, naming where.
    """
    tensor = torch.as_tensor(np.asarray(features) if not isinstance(features, Tensor) else features)
    if tensor.ndim != 3 or 0 in tensor.shape:
        raise ProbeError(
            f"features have shape {tuple(tensor.shape)}, expected [layers, examples, width]; "
            f"one layer alone is features[None]"
        )
    tensor = tensor.detach().to(torch.float32)
    # One pass over the data: a sum is finite unless something in it is not (or it overflows).
    if not torch.isfinite(tensor.sum()):
        bad = (~torch.isfinite(tensor)).nonzero()
        if len(bad):
            layer, row, _ = bad[0].tolist()
            raise NonFiniteError(f"features of layer {layer}, example {row} are not all finite")
    return tensor


@dataclass(frozen=True, eq=False)
class Task:
    """Labels as numbers, and the split over them. K classes, N examples.

    Attributes:
        codes: [N] class of every example.
        classes: the K names, sorted.
        split: the parts.
        majority: accuracy on the test part of always answering the training part's most
            frequent class.
    """

    codes: Tensor
    classes: tuple[str, ...]
    split: Split
    majority: float = field(init=False)

    def __post_init__(self) -> None:
        counts = torch.bincount(self.codes[self.split.train], minlength=len(self.classes))
        hits = self.codes[self.split.test] == counts.argmax()
        object.__setattr__(self, "majority", hits.float().mean().item())

    def of(self, part: str) -> Tensor:
        """Codes of ``"train"``, ``"dev"`` or ``"test"``."""
        return self.codes[getattr(self.split, part)]


def as_task(labels: Sequence[Hashable], split: Split, n: int) -> Task:
    """Check labels against ``n`` examples and number their classes.

    Only labels of rows in the split count.

    Raises:
        UnequalLengthError: not one label for each example, or a split with other rows.
        OneClassError: one class only in the training part.
        TooFewExamplesError: fewer training examples than classes.
        ProbeError: a missing label (None) or a NaN.
    """
    if len(labels) != n:
        raise UnequalLengthError(f"{len(labels)} labels for {n} examples")
    split.check(n)
    used = np.concatenate([split.train, split.dev, split.test])
    plain = [item.item() if isinstance(item, (np.generic, Tensor)) else item for item in labels]
    for row in used:
        if plain[row] is None or plain[row] != plain[row]:
            raise ProbeError(f"example {row} has the label {plain[row]!r}")
    present = {plain[row] for row in used}
    try:
        classes = sorted(present)
    except TypeError:  # labels of mixed types have no order of their own
        classes = sorted(present, key=lambda label: (type(label).__name__, repr(label)))
    number = {label: i for i, label in enumerate(classes)}
    # Rows outside the split may carry anything; their code is never read.
    codes = torch.tensor([number.get(label, 0) for label in plain])
    trained = torch.unique(codes[split.train])
    if len(trained) < 2:
        raise OneClassError(f"all training labels are {classes[int(trained[0])]!r}")
    if len(split.train) < len(classes):
        raise TooFewExamplesError(
            f"{len(split.train)} training examples for {len(classes)} classes"
        )
    return Task(codes, tuple(str(label) for label in classes), split)


def take(features: Tensor, rows: np.ndarray) -> Tensor:
    """Rows of every layer, [S, n, D], contiguous."""
    return features.index_select(1, torch.as_tensor(rows, device=features.device))


def standardise(train: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Columns with mean 0 and deviation 1: (rows [S, N, D], mean [S, 1, D], deviation [S, 1, D]).

    Columns that never vary keep their deviation of 0 and are divided by 1.
    """
    mean = train.mean(1, keepdim=True)
    out = torch.empty_like(train)
    squares = torch.zeros_like(mean)
    # Blocks that fit the processor's cache: the data go through memory twice instead of six times.
    for start in range(0, train.shape[1], _BLOCK):
        block = torch.sub(train[:, start : start + _BLOCK], mean)
        squares += block.square().sum(1, keepdim=True)
        out[:, start : start + _BLOCK] = block
    deviation = (squares / train.shape[1]).sqrt()
    # Rounding leaves a column that never varies with a deviation of about eps times its mean.
    constant = deviation <= 1e-6 * mean.abs() + 1e-12
    deviation = torch.where(constant, torch.ones_like(deviation), deviation)
    return out.div_(deviation), mean, deviation


_BLOCK = 128
