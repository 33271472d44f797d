"""Static vectors from running text, alone or with contextual vectors as teachers.

Mikolov et al. 2013 (skip-gram with negative sampling); Wang et al. 2019 (arXiv 1911.02929: the
contexts of a word are contextual vectors).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import embedding

from ..geometry import StaticVectors, TooFewError

NEGATIVES = 5


@dataclass(frozen=True, eq=False)
class SkipGram(StaticVectors):
    """Static vectors, and what stands for the same words where they are neighbours.

    Attributes:
        neighbours: [W, width]; None if a teacher's vectors stood there.
    """

    neighbours: np.ndarray | None = None


def skip_gram(
    sentences: Sequence[Sequence[str]],
    teacher: np.ndarray | None = None,
    *,
    model: str,
    width: int = 64,
    window: int = 3,
    epochs: int = 6,
    min_count: int = 2,
    seed: int = 0,
) -> SkipGram:
    """Train one vector a word to tell its neighbours from random words of the text.

    The two kinds differ in one thing. Without a teacher, a neighbour stands in the loss with a
    learned vector of its type; with one, with a fixed vector of this very occurrence. Teachers are
    centred, reduced to ``width`` principal components, and scaled to the mean length 1.

    Args:
        sentences: words, lower case or not; they are lowered.
        teacher: [tokens, D] a vector for every word of all sentences, in their order.
        model: name of the teacher's encoder, for the record.
        width: of the vectors.
        window: neighbours on either side.
        epochs: passes over all pairs.
        min_count: rarer words get no vector, but they are neighbours.
        seed: of the start, the order and the negatives.

    Raises:
        ValueError: a teacher for another number of words.
        TooFewError: no pairs.
    """
    owner, words = [], []
    for number, sentence in enumerate(sentences):
        words += [word.lower() for word in sentence]
        owner += [number] * len(sentence)
    if teacher is not None and len(teacher) != len(words):
        raise ValueError(f"{len(teacher)} teaching vectors for {len(words)} words")
    types, ids, counts = np.unique(words, return_inverse=True, return_counts=True)
    pairs = _pairs(np.array(owner), counts[ids] >= min_count, window)
    if not len(pairs):
        raise TooFewError("no word has a neighbour")
    generator = torch.Generator().manual_seed(seed)
    token_type = torch.from_numpy(ids)
    own = _table(len(types), width, generator)
    learned = [own]
    if teacher is None:
        context = _table(len(types), width, generator)
        learned.append(context)
    else:
        fixed = torch.from_numpy(_reduced(teacher, width)).float()
    optimizer = torch.optim.Adam(learned, lr=0.03)
    pairs = torch.from_numpy(pairs)
    for _ in range(epochs):
        order = torch.randperm(len(pairs), generator=generator)
        for part in order.split(512):
            centre, neighbour = pairs[part].T
            others = torch.randint(
                len(words), (len(part), NEGATIVES), generator=generator
            )  # tokens, so that frequent words come up more often
            tokens = torch.cat([neighbour[:, None], others], 1)
            # embedding() has a faster gradient than indexing.
            seen = embedding(token_type[tokens], context) if teacher is None else fixed[tokens]
            scores = (seen @ embedding(token_type[centre], own)[:, :, None])[..., 0]
            sign = torch.ones(1 + NEGATIVES)
            sign[1:] = -1
            loss = -torch.nn.functional.logsigmoid(scores * sign).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    frequent = np.flatnonzero(counts >= min_count)
    source = "skip-gram" if teacher is None else "skip-gram with contextual neighbours"
    return SkipGram(
        tuple(str(types[i]) for i in frequent), own.detach().numpy()[frequent], counts[frequent],
        source, model, None if teacher is not None else context.detach().numpy()[frequent],
    )  # fmt: skip


def _pairs(owner: np.ndarray, frequent: np.ndarray, window: int) -> np.ndarray:
    """[P, 2] tokens: a frequent word, and a neighbour in its own sentence."""
    found = []
    for shift in range(1, window + 1):
        left = np.arange(len(owner) - shift)
        left = left[owner[left] == owner[left + shift]]
        found += [np.stack([left, left + shift], 1), np.stack([left + shift, left], 1)]
    both = np.concatenate(found) if found else np.zeros((0, 2), int)
    return both[frequent[both[:, 0]]]


def _table(rows: int, width: int, generator: torch.Generator) -> torch.Tensor:
    return (0.1 * torch.randn(rows, width, generator=generator)).requires_grad_()


def _reduced(teacher: np.ndarray, width: int) -> np.ndarray:
    centred = np.asarray(teacher, float) - np.mean(teacher, axis=0)
    values, directions = np.linalg.eigh(centred.T @ centred)
    kept = centred @ directions[:, ::-1][:, :width]
    return kept / max(np.linalg.norm(kept, axis=1).mean(), 1e-12)
