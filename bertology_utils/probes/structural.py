"""Structural probes: is there a linear map under which vectors lie as the words do in the tree?

Hewitt and Manning 2019 (N19-1419). The *distance* probe learns B [D, R] so that the squared
distance ``|B'h_i - B'h_j|^2`` is the number of edges between words i and j; the *depth* probe so
that ``|B'(h_i - m)|^2``, m being the mean vector, is the number of edges between word i and the
root (the paper does without m). Rank R bounds the dimensions that may be used. All layers are
trained together; sentences are sorted by length, so that hardly anything is padded, and padding
happens after the projection, on R numbers a word instead of D.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..stimuli import Sentence
from .data import Split, standardise
from .errors import TooFewExamplesError, UnequalLengthError
from .fit import Training, same_start, train_together


@dataclass(frozen=True, eq=False)
class StructuralProbes:
    """S trained maps of one kind.

    Attributes:
        kind: ``"distance"`` or ``"depth"``.
        maps: [S, D, R] for raw features.
        mean: [S, 1, D] of the training words; distances do not depend on it.
        training: epochs and development losses.
    """

    kind: str
    maps: Tensor
    mean: Tensor
    training: Training

    def predict(self, features: Tensor, lengths: Sequence[int]) -> list[list[np.ndarray]]:
        """For every layer, for every sentence: distances [n, n] or depths [n].

        Args:
            features: [S, words, D] of all sentences, one after the other.
            lengths: words of every sentence.

        Raises:
            UnequalLengthError: lengths that do not add up to the words.
        """
        if sum(lengths) != features.shape[1]:
            raise UnequalLengthError(
                f"{len(lengths)} sentences of {sum(lengths)} words, features of {features.shape[1]}"
            )
        inner = torch.bmm(features - self.mean, self.maps).double()
        out = []
        for layer in inner:
            parts = layer.split(list(lengths))
            if self.kind == "depth":
                out.append([part.square().sum(1).cpu().numpy() for part in parts])
            else:
                out.append([_squared_distances(part[None])[0].cpu().numpy() for part in parts])
        return out


def fit_structural(
    features: Tensor,
    sentences: Sequence[Sentence],
    split: Split,
    kind: str = "distance",
    *,
    rank: int = 64,
    epochs: int = 20,
    patience: int = 5,
    lr: float = 4e-4,
    batch_size: int = 32,
    seed: int = 0,
) -> StructuralProbes:
    """Train one map a layer by Adam on the L1 loss.

    The loss of a sentence of n words is the sum of ``|predicted - gold|`` over its n^2 pairs (its n
    words, for depths) divided by n^2 (by n); sentences count alike.

    Args:
        features: [S, words, D], words of all sentences one after the other.
        sentences: with gold trees.
        split: over sentences; the development part stops the training of each layer.
        kind: ``"distance"`` or ``"depth"``.
        rank: R, at most D.
        epochs, patience, lr, batch_size: as usual; a batch counts sentences.
        seed: of the start (the same for all layers) and of the order of the batches.

    Raises:
        ValueError: unknown kind, or a rank that is not in 1 .. D.
        UnequalLengthError: words of features and sentences differ in number.
        TooFewExamplesError: no training sentence of two words.
    """
    if kind not in ("distance", "depth"):
        raise ValueError(f"kind is {kind!r}, must be 'distance' or 'depth'")
    width = features.shape[2]
    if not 1 <= rank <= width:
        raise ValueError(f"rank must lie in 1..{width}, got {rank}")
    starts = word_starts(features, sentences)
    split.check(len(sentences))
    train = _Sorted(features, sentences, starts, split.train, kind, batch_size)
    # A scale per column is absorbed by the map; without it a few outlying columns rule the steps.
    train.words, mean, scale = standardise(train.words)
    layers = len(features)
    bound = math.sqrt(3 / (width * rank))
    maps = same_start((width, rank), layers, bound, seed).to(features.device)
    parameters = {"maps": maps}
    loss = _distance_loss if kind == "distance" else _depth_loss
    dev = None
    if len(split.dev):
        held = _Sorted(features, sentences, starts, split.dev, kind, 4 * batch_size)
        held.words = (held.words - mean) / scale

        def dev() -> Tensor:
            parts = [loss(held, batch, maps) * len(batch.rows) for batch in held.batches]
            return torch.stack(parts).sum(0) / len(split.dev)

    rng = np.random.default_rng(seed)
    training = train_together(
        parameters,
        lambda: [train.batches[i] for i in rng.permutation(len(train.batches))],
        lambda batch: loss(train, batch, maps),
        dev,
        epochs=epochs,
        patience=patience,
        lr=lr,
    )
    return StructuralProbes(kind, maps.detach() / scale.transpose(1, 2), mean, training)


@dataclass(frozen=True, eq=False)
class _Batch:
    """Sentences that are trained on together.

    Attributes:
        words: where their words stand among the sorted ones.
        rows: [b, n] word of the batch at each place; padding points at word 0.
        weight: 1 / n^2 for pairs [b, n, n], 1 / n for words [b, n]; 0 at padding.
        gold: distances [b, n, n] or depths [b, n].
    """

    words: slice
    rows: Tensor
    weight: Tensor
    gold: Tensor


class _Sorted:
    """Words of one part, sentences sorted by length and cut into batches."""

    def __init__(self, features, sentences, starts, part, kind, batch_size):
        usable = [i for i in part if len(sentences[i]) > 1 or kind == "depth"]
        if not usable:
            raise TooFewExamplesError("no sentence of two or more words to learn distances from")
        order = sorted(usable, key=lambda i: len(sentences[i]))
        index = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in order])
        device = features.device
        self.words = features.index_select(1, torch.as_tensor(index, device=device))
        self.batches: list[_Batch] = []
        offset = 0
        for first in range(0, len(order), batch_size):
            members = [sentences[i] for i in order[first : first + batch_size]]
            self.batches.append(_batch(members, offset, kind, device))
            offset = self.batches[-1].words.stop


def _batch(members: Sequence[Sentence], offset: int, kind: str, device) -> _Batch:
    lengths = np.array([len(sentence) for sentence in members])
    longest = int(lengths.max())
    begin = np.concatenate([[0], np.cumsum(lengths)])
    place = np.arange(longest)
    real = place < lengths[:, None]
    rows = np.where(real, begin[:-1, None] + place, 0)
    shape = (len(members), longest, longest) if kind == "distance" else real.shape
    gold = np.zeros(shape, dtype=np.float32)
    for i, sentence in enumerate(members):
        n = lengths[i]
        if kind == "distance":
            gold[i, :n, :n] = sentence.distances()
        else:
            gold[i, :n] = sentence.depths()
    if kind == "distance":
        weight = real[:, :, None] * real[:, None, :] / lengths[:, None, None] ** 2
    else:
        weight = real / lengths[:, None]
    return _Batch(
        slice(offset, offset + int(begin[-1])),
        torch.as_tensor(rows, device=device),
        torch.as_tensor(weight, dtype=torch.float32, device=device),
        torch.as_tensor(gold, device=device),
    )


_Loss = Callable[[_Sorted, _Batch, Tensor], Tensor]


def _distance_loss(data: _Sorted, batch: _Batch, maps: Tensor) -> Tensor:
    inner = torch.bmm(data.words[:, batch.words], maps)
    padded = inner[:, batch.rows]  # [S, b, n, R]
    wrong = (_squared_distances(padded) - batch.gold).abs() * batch.weight
    return wrong.sum((2, 3)).mean(1)


def _depth_loss(data: _Sorted, batch: _Batch, maps: Tensor) -> Tensor:
    norms = torch.bmm(data.words[:, batch.words], maps).square().sum(2)
    wrong = (norms[:, batch.rows] - batch.gold).abs() * batch.weight
    return wrong.sum(2).mean(1)


def _squared_distances(vectors: Tensor) -> Tensor:
    """[..., n, R] -> [..., n, n]"""
    gram = vectors @ vectors.transpose(-1, -2)
    norms = gram.diagonal(dim1=-2, dim2=-1)
    return norms[..., :, None] + norms[..., None, :] - 2 * gram


def word_starts(features: Tensor, sentences: Sequence[Sentence]) -> np.ndarray:
    """Row of the first word of every sentence, and the number of rows at the end.

    Raises:
        UnequalLengthError: words of features and sentences differ in number.
    """
    starts = np.concatenate([[0], np.cumsum([len(sentence) for sentence in sentences])])
    if starts[-1] != features.shape[1]:
        raise UnequalLengthError(
            f"{len(sentences)} sentences of {starts[-1]} words, but features of "
            f"{features.shape[1]} words"
        )
    return starts.astype(np.int64)
