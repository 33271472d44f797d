"""Attention maps text by text: the way every measure of this room reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..activations import stream
from ..encoder import Encoder
from ..words import Aligned, Text

#: What a piece is, as a target of attention; every piece is exactly one of these.
KINDS = ("cls", "sep", "punctuation", "text")

#: Patterns take L * H * T numbers a piece, so batches are smaller than for hidden states.
MAX_TOKENS = 2048


@dataclass(frozen=True, eq=False)
class TextMaps:
    """The attention of one text, padding cut away.

    Attributes:
        index: place of the text in the sequence of texts.
        row: the tokenised text with its words.
        pattern: [L, H, T, T] float32; from a row's piece to a column's piece; rows sum to 1.
    """

    index: int
    row: Aligned
    pattern: np.ndarray

    def __len__(self) -> int:
        return self.pattern.shape[-1]

    @cached_property
    def kinds(self) -> dict[str, np.ndarray]:
        """Kind -> [T] True at its pieces; see :func:`piece_kinds`."""
        return piece_kinds(self.row)

    @cached_property
    def words(self) -> np.ndarray:
        """[L, H, W, W] attention between words; see :func:`word_attention`."""
        return word_attention(self.pattern, self.row.spans)


def attention_maps(
    encoder: Encoder, texts: Iterable[Text], *, max_tokens: int = MAX_TOKENS
) -> Iterator[TextMaps]:
    """The maps of every text, in bounded memory. Texts come sorted by length, not in order.

    Raises:
        As :func:`bertology_utils.activations.stream`.
    """
    for cache in stream(encoder, texts, ["pattern"], max_tokens=max_tokens):
        pattern = cache["pattern"].float().cpu().numpy()
        for b, (index, row) in enumerate(zip(cache.batch.index, cache.batch.rows, strict=True)):
            t = len(row.input_ids)
            yield TextMaps(index, row, pattern[:, b, :, :t, :t])


def piece_kinds(row: Aligned) -> dict[str, np.ndarray]:
    """Sort the pieces of a text into :data:`KINDS`.

    ``cls`` is the first special token, ``sep`` every other one that the tokenizer added (with
    RoBERTa's double separator, both). ``punctuation`` are the pieces of words without any letter
    or digit, ``text`` is the rest.
    """
    special = np.array(row.is_special)
    wordy = np.zeros(len(special), bool)
    marks = np.zeros(len(special), bool)
    for word in row.words:
        named = any(character.isalnum() for character in word.text)
        (wordy if named else marks)[slice(*word.pieces)] = True
    first = np.zeros(len(special), bool)
    first[np.flatnonzero(special)[:1]] = True
    marks &= ~wordy & ~special
    return {
        "cls": first,
        "sep": special & ~first,
        "punctuation": marks,
        "text": ~special & ~marks,
    }


def segments(row: Aligned) -> np.ndarray:
    """[T] 0 for pieces of the first text, 1 for those of the second; a special token counts with
    the text before it, [CLS] with the first. Not every family has segment embeddings, so this
    follows the texts rather than ``token_type_ids``."""
    found, current = [], 0
    for sequence in row.encoding.sequence_ids:
        current = current if sequence is None else sequence
        found.append(current)
    return np.array(found)


def word_attention(pattern: np.ndarray, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """Attention between words (Clark et al. 2019, section 4.1).

    Attention *to* a word is the sum over its pieces, attention *from* a word the mean over its
    pieces. Special tokens belong to no word, so what goes to them is missing from the rows.

    Args:
        pattern: [..., T, T].
        spans: (first piece, one past the last) of each of W words.

    Returns:
        [..., W, W].

    Raises:
        ValueError: a span is empty or outside the pattern.
    """
    length = pattern.shape[-1]
    member = np.zeros((len(spans), length), pattern.dtype)
    for word, (start, end) in enumerate(spans):
        if not 0 <= start < end <= length:
            raise ValueError(f"span ({start}, {end}) is empty or not within 0..{length}")
        member[word, start:end] = 1
    sizes = member.sum(1, keepdims=True)
    return (member / sizes) @ pattern @ member.T
