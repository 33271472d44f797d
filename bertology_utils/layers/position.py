"""Where does a word stand in its sentence? (Lin et al. 2019, W19-4825)"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ..encoder import Encoder
from ..geometry import LayerScores
from ..probes import Split, fit_ridge, words_split
from ..stimuli import Sentence
from ..syntax import TreebankVectors
from ..words import WordList, align_all, pool_words


def position_fit(vectors: TreebankVectors, split: Split, *, seed: int = 0) -> LayerScores:
    """Predict the number of a word in its sentence from its vector, by ridge regression.

    The score is the share of the variance of positions *within* sentences that is explained, so
    that a guess at how long the sentence is earns nothing: 1 for perfect order and distances, 0
    for the same guess at every word, below 0 if worse. Items are sentences.

    Args:
        vectors: of M sentences.
        split: over sentences; the development part chooses the penalty.
        seed: of the bootstrap.

    Raises:
        UnequalLengthError: a split of other sentences.
    """
    lengths = vectors.lengths
    place = np.concatenate([np.arange(n) for n in lengths]).astype(np.float32)
    rows = words_split(split, lengths.tolist())
    data = torch.from_numpy(vectors.words)
    target = torch.from_numpy(place)[:, None]
    fitted = fit_ridge(
        data[:, rows.train], target[rows.train], dev=(data[:, rows.dev], target[rows.dev])
    )
    said = fitted.predict(data[:, rows.test])[:, :, 0].double().numpy()
    _, group = np.unique(vectors.sentence[rows.test], return_inverse=True)
    gold = _within(place[rows.test].astype(float)[None], group)
    wrong = (gold - _within(said, group)) ** 2
    total = np.bincount(group, weights=gold[0] ** 2)
    sums = np.stack([total - np.bincount(group, weights=layer) for layer in wrong], axis=1)
    return LayerScores("fit of a position probe", "R squared", sums, total, vectors.model, seed)


def word_table(encoder: Encoder, sentences: Sequence[Sentence]) -> TreebankVectors:
    """The rows of the token table for every word, as vectors of one "layer" without position."""
    texts = [WordList(s.words, s.text) for s in sentences]
    table = encoder.embeddings.token.weight.detach().float().cpu()
    words = [
        pool_words(table[torch.tensor(row.input_ids)][None], row.spans)[0]
        for row in align_all(encoder, texts)
    ]
    owner = np.repeat(np.arange(len(words)), [len(w) for w in words])
    first = np.zeros((1, len(words), table.shape[1]), dtype=np.float32)
    return TreebankVectors(torch.cat(words)[None].numpy(), first, owner, encoder.name)


def _within(values: np.ndarray, group: np.ndarray) -> np.ndarray:
    """[S, N] minus the mean of each group."""
    counts = np.bincount(group)
    means = np.stack([np.bincount(group, weights=row) / counts for row in values])
    return values - means[:, group]


def vectors_of(vectors: TreebankVectors, sentences: Sequence[int]) -> TreebankVectors:
    """The vectors of some sentences, numbered anew in the given order.

    Raises:
        IndexError: no such sentence.
    """
    starts = np.concatenate([[0], np.cumsum(vectors.lengths)])
    if not all(0 <= i < len(starts) - 1 for i in sentences):
        raise IndexError(f"sentences outside 0..{len(starts) - 2}")
    rows = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in sentences])
    owner = np.repeat(np.arange(len(sentences)), vectors.lengths[list(sentences)])
    return TreebankVectors(
        vectors.words[:, rows], vectors.first[:, list(sentences)], owner, vectors.model
    )
