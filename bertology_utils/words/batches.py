"""Padded batches, cut by a budget of pieces, and the way back to the original order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from ..encoder import Encoder
from .align import Aligned, Text, align_all, tokenizer_of
from .errors import EmptyTextError, checked_texts

Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts padded on the right to one length. B texts, T pieces.

    Attributes:
        input_ids: [B, T] vocabulary numbers.
        attention_mask: [B, T] 1 for pieces, 0 for padding.
        token_type_ids: [B, T] segments.
        rows: the tokenised texts, with their words.
        index: place of every row in the original sequence of texts.
    """

    input_ids: Tensor
    attention_mask: Tensor
    token_type_ids: Tensor
    rows: tuple[Aligned, ...]
    index: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(row.text for row in self.rows)

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The words of every text."""
        return tuple(tuple(word.text for word in row.words) for row in self.rows)

    @property
    def spans(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """The piece span (first, one past the last) of every word of every text."""
        return tuple(row.spans for row in self.rows)

    @property
    def lengths(self) -> Tensor:
        """[B] pieces of every text, special tokens included."""
        return self.attention_mask.sum(dim=1)

    @property
    def is_text(self) -> Tensor:
        """[B, T] True for pieces of the text itself: neither padding nor added by the tokenizer."""
        mask = torch.zeros(self.input_ids.shape, dtype=torch.bool)
        for i, row in enumerate(self.rows):
            special = torch.tensor(row.is_special)
            mask[i, : len(special)] = ~special
        return mask.to(self.input_ids.device)

    def with_ids(self, input_ids: Tensor) -> "Batch":
        """The same batch with other pieces [B, T], for example masked ones.

        Raises:
            ValueError: another shape.
        """
        if input_ids.shape != self.input_ids.shape:
            raise ValueError(
                f"input_ids have shape {tuple(input_ids.shape)}, the batch has "
                f"{tuple(self.input_ids.shape)}"
            )
        return replace(self, input_ids=input_ids)

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device."""
        return replace(
            self,
            input_ids=self.input_ids.to(device),
            attention_mask=self.attention_mask.to(device),
            token_type_ids=self.token_type_ids.to(device),
        )


def pad(rows: Sequence[Aligned], index: Sequence[int], pad_id: int) -> Batch:
    """One batch of the given rows, in the given order."""
    ids, types = [row.input_ids for row in rows], [row.token_type_ids for row in rows]
    lengths = [len(pieces) for pieces in ids]
    longest = max(lengths)

    def rectangle(lists: Sequence[list[int]], fill: int) -> Tensor:
        return torch.tensor([[*row, *[fill] * (longest - len(row))] for row in lists])

    mask = torch.arange(longest)[None, :] < torch.tensor(lengths)[:, None]
    return Batch(
        rectangle(ids, pad_id), mask.long(), rectangle(types, 0), tuple(rows), tuple(index)
    )


def make_batch(source: Encoder | PreTrainedTokenizerBase, texts: Text | Iterable[Text]) -> Batch:
    """All texts in one batch, in the given order. A single ``str`` is a batch of one.

    Raises:
        EmptyTextError: no texts.
        TextTypeError, TextTooLongError, AlignmentError: as :func:`~bertology_utils.words.align`.
    """
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        texts = [texts]
    texts = list(texts)
    if not texts:
        raise EmptyTextError("no texts")
    tokenizer, _ = tokenizer_of(source)
    rows = align_all(source, texts)
    return pad(rows, range(len(rows)), tokenizer.pad_token_id)


def token_batches(
    source: Encoder | PreTrainedTokenizerBase,
    texts: Iterable[Text],
    *,
    max_tokens: int = 4096,
    window: int = 4096,
    pass_cost: int | None = None,
) -> Iterator[Batch]:
    """Batches of texts of similar length, each of at most ``max_tokens`` padded pieces.

    Texts are read ``window`` at a time and sorted by length inside a window, longest first, so
    that memory does not grow with their number. ``batch.index`` says where each text came from;
    :func:`in_order` puts results back. A text longer than the budget makes a batch of its own.

    Args:
        source: an encoder or a fast tokenizer.
        texts: any iterable of texts, read once.
        max_tokens: budget of a batch: texts times the length of the longest.
        window: texts read ahead.
        pass_cost: what a further batch costs, in padded pieces. None fills every batch; a number
            ends batches early where texts get shorter and padding would cost more.

    Raises:
        TextTypeError: ``texts`` is one string, or holds something that is no text.
        EmptyTextError, TextTooLongError, AlignmentError: as :func:`~bertology_utils.words.align`.
        ValueError: a budget or window below 1.
    """
    checked_texts(texts)
    if max_tokens < 1 or window < 1:
        raise ValueError(f"max_tokens and window start at 1, got {max_tokens} and {window}")
    return _batches(source, texts, max_tokens, window, pass_cost)


def _batches(
    source, texts: Iterable[Text], max_tokens: int, window: int, pass_cost: int | None
) -> Iterator[Batch]:
    tokenizer, _ = tokenizer_of(source)
    stream, offset = iter(texts), 0
    while chunk := list(islice(stream, window)):
        rows = align_all(source, chunk)
        lengths = [len(row.input_ids) for row in rows]
        order = sorted(range(len(rows)), key=lambda i: (-lengths[i], i))
        for part in cut([lengths[i] for i in order], max_tokens, pass_cost):
            chosen = order[part]
            yield pad(
                [rows[i] for i in chosen], [offset + i for i in chosen], tokenizer.pad_token_id
            )
        offset += len(chunk)


def cut(lengths: Sequence[int], budget: int, pass_cost: int | None) -> list[slice]:
    """Cut texts into batches of at most ``budget`` padded pieces; a longer text stands alone.

    Args:
        lengths: pieces of every text, longest first.
        budget: texts times the longest of a batch.
        pass_cost: None fills every batch; else the cut with the least padded pieces, a batch
            counting as that many more.
    """
    if pass_cost is None:
        slices, start = [], 0
        while start < len(lengths):
            stop = min(len(lengths), start + max(1, budget // lengths[start]))
            slices.append(slice(start, stop))
            start = stop
        return slices
    longest = np.asarray(lengths, dtype=np.float64)
    n = len(longest)
    # least[i]: cost of the first i texts; a last batch from j costs its rows times its longest.
    least, begin, first = np.zeros(n + 1), np.zeros(n, dtype=np.int64), 0
    for i in range(1, n + 1):
        while first < i - 1 and longest[first] * (i - first) > budget:
            first += 1
        costs = least[first:i] + longest[first:i] * np.arange(i - first, 0, -1)
        best = int(costs.argmin())
        least[i], begin[i - 1] = costs[best] + pass_cost, first + best
    slices, stop = [], n
    while stop:
        slices.append(slice(int(begin[stop - 1]), stop))
        stop = slices[-1].start
    return slices[::-1]


def in_order(results: Iterable[tuple[Batch, Sequence[Item]]]) -> list[Item]:
    """Results of the rows of several batches, put back into the order of the texts.

    Args:
        results: (batch, one result per row) for every batch of :func:`token_batches`.

    Raises:
        ValueError: a batch with more or fewer results than rows, or texts left out.
    """
    found: dict[int, Item] = {}
    for batch, values in results:
        if len(values) != len(batch):
            raise ValueError(f"{len(values)} results for a batch of {len(batch)} texts")
        found.update(zip(batch.index, values, strict=True))
    missing = next((i for i in range(len(found)) if i not in found), None)
    if missing is not None:
        raise ValueError(f"no result for text {missing}")
    return [found[i] for i in range(len(found))]
