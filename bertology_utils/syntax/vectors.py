"""Vectors of a treebank, computed once and shared by all probes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..activations import collect
from ..encoder import Encoder
from ..stimuli import Sentence
from ..words import WordList, align_all, pool_words


@dataclass(frozen=True, eq=False)
class TreebankVectors:
    """Hidden states of M sentences with N words in all, punctuation included.

    Attributes:
        words: [S, N, D] mean over the pieces of every word; entry 0 is the embedding output.
        first: [S, M, D] the first piece, [CLS].
        sentence: [N] number of the sentence of every word.
        model: name of the encoder.
    """

    words: np.ndarray
    first: np.ndarray
    sentence: np.ndarray
    model: str

    @property
    def lengths(self) -> np.ndarray:
        """[M] words of every sentence."""
        return np.bincount(self.sentence, minlength=self.first.shape[1])

    def of(self, sentence: int) -> np.ndarray:
        """[S, W, D] the words of one sentence."""
        start, stop = np.searchsorted(self.sentence, [sentence, sentence + 1])
        return self.words[:, start:stop]

    def means(self) -> np.ndarray:
        """[S, M, D] mean over the words of every sentence."""
        starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        sums = np.add.reduceat(self.words, starts, axis=1)
        return sums / self.lengths.astype(sums.dtype)[None, :, None]


def treebank_vectors(
    encoder: Encoder, sentences: Sequence[Sentence], *, max_tokens: int = 4096
) -> TreebankVectors:
    """Encode every sentence once and keep words and [CLS] of all layers.

    Raises:
        ValueError: no sentences.
        TextTooLongError, AlignmentError: naming the sentence.
    """
    if not sentences:
        raise ValueError("no sentences to encode")
    texts = [WordList(s.words, s.text) for s in sentences]
    pieces = collect(encoder, texts, reduce="piece", max_tokens=max_tokens)
    states = pieces.arrays["hidden_states"]
    spans, first, owner = [], [], []
    for number, row in enumerate(align_all(encoder, texts)):
        offset = pieces.rows_of(number).start
        first.append(offset)
        spans += [(offset + start, offset + stop) for start, stop in row.spans]
        owner += [number] * len(row.spans)
    words = pool_words(torch.from_numpy(states), spans).numpy()
    return TreebankVectors(words, states[:, first], np.array(owner), encoder.name)
