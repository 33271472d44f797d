"""Words as vectors: one row of a table per word, and which rows point the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..encoder import BertologyError, Encoder

#: how byte-level and SentencePiece vocabularies mark the start of a word
_MARKS = ("Ġ", "▁")


class UnknownWordError(BertologyError):
    """A word that the table has no row for."""


@dataclass(frozen=True, eq=False)
class WordTable:
    """A static vector per word: the same wherever the word stands.

    Attributes:
        words: V words.
        vectors: [V, E].
        name: what the vectors are.
    """

    words: tuple[str, ...]
    vectors: np.ndarray
    name: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "_row", {word: i for i, word in enumerate(self.words)})
        norms = np.linalg.norm(self.vectors, axis=1, keepdims=True)
        object.__setattr__(self, "_unit", self.vectors / np.maximum(norms, 1e-12))

    @property
    def mean(self) -> np.ndarray:
        """[E] mean of all rows."""
        return self.vectors.mean(axis=0)

    @property
    def spread(self) -> float:
        """Standard deviation of all numbers around the mean row."""
        return float((self.vectors - self.mean).std())

    def __contains__(self, word: str) -> bool:
        return word in self._row

    def of(self, words: Sequence[str]) -> np.ndarray:
        """[n, E] vectors of some words.

        Raises:
            UnknownWordError: naming the first word without a row.
        """
        return self.vectors[self._rows(words)]

    def cosines(self, words: Sequence[str]) -> np.ndarray:
        """[n, n] cosine of every pair of words; UnknownWordError as in :meth:`of`."""
        unit = self._unit[self._rows(words)]
        return unit @ unit.T

    def neighbours(self, word: str, k: int = 8) -> list[tuple[str, float]]:
        """The ``k`` other words with the largest cosine, nearest first.

        Raises:
            UnknownWordError: no row for the word.
            ValueError: ``k`` below 1 or above the number of other words.
        """
        (row,) = self._rows([word])
        if not 1 <= k < len(self.words):
            raise ValueError(f"k must lie in 1..{len(self.words) - 1}, got {k}")
        cosines = self._unit @ self._unit[row]
        cosines[row] = -np.inf
        best = np.argsort(-cosines, kind="stable")[:k]
        return [(self.words[i], float(cosines[i])) for i in best]

    def _rows(self, words: Sequence[str]) -> list[int]:
        missing = next((word for word in words if word not in self._row), None)
        if missing is not None:
            raise UnknownWordError(f"{self.name} has no row for {missing!r}")
        return [self._row[word] for word in words]


def one_hot(words: Sequence[str]) -> WordTable:
    """Every word a dimension of its own.

    Raises:
        ValueError: no words, or a word twice.
    """
    if not words or len(set(words)) != len(words):
        raise ValueError("one-hot vectors need words, each of them once")
    return WordTable(tuple(words), np.eye(len(words)), "the one-hot table")


def token_table(encoder: Encoder) -> WordTable:
    """The encoder's input table, reduced to pieces that are whole words of letters.

    Lower-cased words stand under their own name; where a vocabulary has a word twice (with a
    capital, or only at the start of a text), the first spelling of the plain word is kept.
    """
    vocabulary = encoder.tokenizer.get_vocab()
    marked = any(token.startswith(_MARKS) for token in vocabulary)
    rows: dict[str, int] = {}
    for token, number in sorted(vocabulary.items(), key=lambda item: item[1]):
        word = token[1:] if token.startswith(_MARKS) else token
        if (token.startswith(_MARKS) or not marked) and len(word) > 1 and word.isalpha():
            rows.setdefault(word, number)
    table = encoder.embeddings.token.weight.detach().cpu().numpy()
    return WordTable(
        tuple(rows), table[list(rows.values())], f"the token table of {encoder.name}"
    )


def shuffled(table: WordTable, seed: int = 0) -> WordTable:
    """The control: the same vectors, dealt out to the words at random."""
    order = np.random.default_rng(seed).permutation(len(table.words))
    return WordTable(table.words, table.vectors[order], f"{table.name}, shuffled")
