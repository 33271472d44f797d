"""Texts as padded numbers, and what a model says about them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from ..encoder import Encoder, evaluating
from ..words import Text, make_batch
from .errors import CompressionError
from .model import answer, is_dense

#: label of pieces that nobody is asked about
IGNORED = -100
#: label of texts and pieces that a teacher may be asked about, but whose answer is not known
UNKNOWN = -1
#: texts that are judged at a time
AT_ONCE = 120
#: texts of a pass where passes cost nothing beyond their texts: what a layer makes of so few short
#: texts stays in the caches
_IN_CACHE = 60


@dataclass(frozen=True, eq=False)
class Labelled:
    """N texts with their labels, some of which may be :data:`UNKNOWN` or :data:`IGNORED`.

    Attributes:
        ids: [N, T] vocabulary numbers, padded on the right.
        mask: [N, T] 1 at pieces.
        labels: [N], or [N, T] where every piece has one.
    """

    ids: Tensor
    mask: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.mask) == len(self.labels) > 0:
            raise CompressionError(f"{len(self.ids)} texts with {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def n_classes(self) -> int:
        return int(self.labels.max()) + 1

    def rows(self, index: Sequence[int] | Tensor) -> Labelled:
        """The given texts, cut to the longest of them."""
        where = torch.as_tensor(index, dtype=torch.long)
        mask = self.mask[where]
        width = int(mask.sum(1).max())
        labels = self.labels[where]
        return Labelled(
            self.ids[where, :width], mask[:, :width],
            labels[:, :width] if labels.ndim == 2 else labels,
        )  # fmt: skip

    def unlabelled(self) -> Labelled:
        """The same texts without their labels, asked about all the same."""
        asked = self.labels != IGNORED
        return replace(self, labels=torch.where(asked, UNKNOWN, IGNORED))

    def joined(self, other: Labelled) -> Labelled:
        """These texts and then the others."""
        width = max(self.ids.shape[1], other.ids.shape[1])
        mine, theirs = self._wide(width), other._wide(width)
        return Labelled(*(torch.cat(pair) for pair in zip(mine, theirs, strict=True)))

    def _wide(self, width: int) -> tuple[Tensor, Tensor, Tensor]:
        more = (0, width - self.ids.shape[1])
        pad = nn.functional.pad
        labels = pad(self.labels, more, value=IGNORED) if self.labels.ndim == 2 else self.labels
        return pad(self.ids, more), pad(self.mask, more), labels

    def batches(self, size: int, draw: torch.Generator) -> Iterator[Tensor]:
        """Index tensors that go through all texts once, in random order.

        Texts of similar length share a batch, since padding costs as much as pieces do.
        """
        order = torch.randperm(len(self), generator=draw)
        pool = 4 * size
        groups = []
        for start in range(0, len(order), pool):
            part = order[start : start + pool]
            part = part[self.mask[part].sum(1).argsort(stable=True)]
            groups += list(part.split(size))
        for place in torch.randperm(len(groups), generator=draw).tolist():
            yield groups[place]


def labelled(encoder: Encoder, texts: Sequence[Text], labels: Sequence[int]) -> Labelled:
    """Texts with a label each.

    Raises:
        CompressionError: not as many labels as texts.
        EmptyTextError, TextTypeError, TextTooLongError: as for every text.
    """
    if len(texts) != len(labels):
        raise CompressionError(f"{len(texts)} texts with {len(labels)} labels")
    batch = make_batch(encoder, texts)
    return Labelled(batch.input_ids, batch.attention_mask, torch.tensor(list(labels)))


def labelled_words(
    encoder: Encoder, texts: Sequence[Text], labels: Sequence[Sequence[int]]
) -> Labelled:
    """Texts with a label for every word, put on the word's first piece.

    Raises:
        CompressionError: a text without as many labels as words.
    """
    batch = make_batch(encoder, texts)
    gold = torch.full(batch.input_ids.shape, IGNORED)
    for place, (spans, row) in enumerate(zip(batch.spans, labels, strict=True)):
        if len(spans) != len(row):
            raise CompressionError(f"{len(row)} labels for {len(spans)} words of text {place}")
        for (start, _), label in zip(spans, row, strict=True):
            gold[place, start] = label
    return Labelled(batch.input_ids, batch.attention_mask, gold)


def predictions(model: nn.Module, data: Labelled) -> Tensor:
    """Most probable class of every text [N] or piece [N, T]."""
    order = data.mask.sum(1).argsort(stable=True)
    found = torch.zeros_like(data.labels)
    with evaluating(model):
        for chosen in order.split(_IN_CACHE if is_dense(model) else AT_ONCE):
            part = data.rows(chosen)
            guess = answer(model, part.ids, part.mask).argmax(-1)
            if found.ndim == 2:
                found[chosen, : guess.shape[1]] = guess
            else:
                found[chosen] = guess
    return found


@dataclass(frozen=True, eq=False)
class Score:
    """Right answers of one model, text by text, so that models can be compared on the same texts.

    Attributes:
        name: of the model.
        right: [N] right answers of each text.
        asked: [N] labels of each text.
    """

    name: str
    right: np.ndarray
    asked: np.ndarray

    @property
    def value(self) -> float:
        """Accuracy."""
        return float(self.right.sum() / self.asked.sum())


def score(name: str, model: nn.Module, data: Labelled) -> Score:
    """Judge all texts of ``data``.

    Raises:
        CompressionError: a text without a label.
    """
    known = data.labels >= 0
    right = (predictions(model, data) == data.labels) & known
    if known.ndim == 1:
        known, right = known[:, None], right[:, None]
    asked = known.sum(1).numpy().astype(float)
    if not asked.all():
        raise CompressionError("a text without a label cannot be judged")
    return Score(name, right.sum(1).numpy().astype(float), asked)
