"""Rows of collected activations: what they stand for, and how to read few of them at a time."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..activations import Collected
from ..encoder import BertologyError, Encoder
from ..words import Text, token_batches

NAME = "hidden_states"


class TooFewError(BertologyError):
    """Fewer rows, words or texts than a measure needs."""


def word_labels(encoder: Encoder, texts: Sequence[Text], *, lower: bool = True) -> np.ndarray:
    """[N] the word of every row of ``collect(encoder, texts, reduce="word_...")``, in its order.

    Args:
        encoder: the encoder of the collection, since its tokenizer decides what has no pieces.
        texts: the texts of the collection.
        lower: count "The" and "the" as one word.
    """
    found: list[list[str] | None] = [None] * len(texts)
    for batch in token_batches(encoder, texts):
        for index, words in zip(batch.index, batch.words, strict=True):
            found[index] = [word.lower() if lower else word for word in words]
    return np.array([word for words in found for word in words])


def piece_ids(encoder: Encoder, texts: Sequence[Text]) -> np.ndarray:
    """[N] the vocabulary number of every row of ``collect(encoder, texts, reduce="piece")``."""
    found: list[list[int] | None] = [None] * len(texts)
    for batch in token_batches(encoder, texts):
        for index, row in zip(batch.index, batch.rows, strict=True):
            found[index] = row.input_ids
    return np.array([piece for ids in found for piece in ids])


def rows_at(collected: Collected, places: Sequence[tuple[int, int]]) -> np.ndarray:
    """[M] row numbers of (text, word) pairs, such as the ambiguous word of each text.

    Raises:
        IndexError: a text or word that is not there.
    """
    starts = np.searchsorted(collected.text_index, [text for text, _ in places])
    rows = starts + np.array([word for _, word in places], int)
    for (text, word), row in zip(places, rows, strict=True):
        inside = 0 <= row < len(collected) and word >= 0
        if not inside or collected.text_index[row] != text:
            raise IndexError(f"no row for word {word} of text {text}")
    return rows


def occurrences(
    labels: np.ndarray,
    text_index: np.ndarray,
    *,
    min_count: int = 5,
    max_count: int = 20,
    keep: Callable[[str], bool] = str.isalpha,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Rows of each word that occurs in at least ``min_count`` texts, once a text.

    Args:
        labels: [N] word of every row.
        text_index: [N] text of every row.
        min_count: texts a word must occur in.
        max_count: at most this many are drawn, so that frequent words cost no more than others.
        keep: which words count; by default those of letters only.
        seed: of the draw.

    Raises:
        TooFewError: no word occurs often enough.
        ValueError: ``min_count`` below 2 or above ``max_count``.
    """
    if not 2 <= min_count <= max_count:
        raise ValueError(f"need 2 <= min_count <= max_count, got {min_count} and {max_count}")
    draw = np.random.default_rng(seed)
    order = np.argsort(labels, kind="stable")
    words, starts = np.unique(labels[order], return_index=True)
    found = {}
    for word, rows in zip(words, np.split(order, starts[1:]), strict=True):
        _, first = np.unique(text_index[rows], return_index=True)
        if len(first) < min_count or not keep(str(word)):
            continue
        once = rows[first]
        if len(once) > max_count:
            once = draw.choice(once, max_count, replace=False)
        found[str(word)] = np.sort(once)
    if not found:
        raise TooFewError(f"no word occurs in {min_count} texts or more")
    return found


def layer_rows(
    collected: Collected, layer: int, rows: np.ndarray | slice, name: str = NAME
) -> np.ndarray:
    """[M, D] float32 copy of some rows of one layer; the file's pages are given back afterwards."""
    array = collected.arrays[name]
    found = np.array(array[layer, rows], dtype=np.float32)
    release(array)
    return found


def layers_of(
    collected: Collected, rows: np.ndarray | slice, name: str = NAME
) -> Iterator[np.ndarray]:
    """The chosen rows of every layer in turn, [M, D] each."""
    for layer in range(len(collected.arrays[name])):
        yield layer_rows(collected, layer, rows, name)


def chunks(
    collected: Collected, layer: int, size: int = 16384, name: str = NAME
) -> Iterator[np.ndarray]:
    """All rows of one layer, ``size`` at a time."""
    for start in range(0, len(collected), size):
        yield layer_rows(collected, layer, slice(start, start + size), name)


def release(array: np.ndarray) -> None:
    """Tell the system that the pages of a memory-mapped array need not stay in memory.

    Pages that were read count as memory of the process until something else needs the room, so a
    pass over a large collection would look like holding all of it.
    """
    source = getattr(array, "_mmap", None)
    if source is not None and hasattr(mmap, "MADV_DONTNEED"):
        source.madvise(mmap.MADV_DONTNEED)


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1, in double precision; a zero row stays zero."""
    wide = np.asarray(vectors, float)
    length = np.linalg.norm(wide, axis=-1, keepdims=True)
    return np.divide(wide, length, out=np.zeros_like(wide), where=length > 0)
