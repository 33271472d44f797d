"""Smaller tables of token vectors: low rank, fewer columns, fewer rows."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from .errors import CompressionError
from .model import Compact


class FactorisedEmbedding(nn.Module):
    """V x r table times an r x D map: ALBERT's way (Lan et al. 2020)."""

    def __init__(self, table: nn.Embedding, up: nn.Linear):
        super().__init__()
        self.table, self.up = table, up

    def forward(self, ids: Tensor) -> Tensor:
        """ids [B, T] -> [B, T, D]."""
        return self.up(self.table(ids))


class TrimmedEmbedding(nn.Module):
    """A table for some of the vocabulary; all other pieces share the row of [UNK].

    Args:
        inner: table of the kept rows, numbered anew.
        kept: [V'] old numbers of its rows, rising.
        vocabulary: old number of rows.
        unknown: old number of the piece that stands for all others; must be kept.
    """

    def __init__(self, inner: nn.Module, kept: Tensor, vocabulary: int, unknown: int):
        super().__init__()
        self.inner, self.vocabulary, self.unknown = inner, vocabulary, unknown
        self.register_buffer("kept", kept.to(torch.int32))
        self.register_buffer("place", torch.zeros(vocabulary, dtype=torch.long), persistent=False)
        self.renumber()

    def renumber(self) -> None:
        """Work out which row each old number means, after ``kept`` was filled."""
        kept = self.kept.long()
        places = torch.arange(len(kept))
        spare = places[kept == self.unknown]
        if len(spare) != 1:
            raise CompressionError(f"piece {self.unknown} stands for the others but is not kept")
        self.place.fill_(int(spare))
        self.place[kept] = places

    def forward(self, ids: Tensor) -> Tensor:
        """ids [B, T] of the full vocabulary -> [B, T, D]."""
        return self.inner(self.place[ids])


def low_rank(matrix: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """The nearest product of [V, r] and [r, D] to a matrix [V, D] (Eckart and Young 1936).

    The rows of the second factor are orthonormal.

    Raises:
        CompressionError: a rank below 1 or above D.
    """
    width = matrix.shape[1]
    if not 1 <= rank <= width:
        raise CompressionError(f"rank {rank} is not in 1..{width}")
    # V is far larger than D, so the D x D matrix of products is quicker than a full SVD.
    exact = matrix.double()
    _, directions = torch.linalg.eigh(exact.T @ exact)
    down = directions[:, width - rank :].flip(1)
    return (exact @ down).to(matrix.dtype), down.T.to(matrix.dtype)


def factorise_tokens(model: Compact, rank: int) -> Compact:
    """A copy whose token table is the best one of rank ``rank``.

    Raises:
        CompressionError: impossible rank, or the table is not a plain one any more.
    """
    table = _plain_table(model)
    left, right = low_rank(table.weight.detach(), rank)
    up = nn.Linear(rank, table.embedding_dim, bias=False)
    up.weight = nn.Parameter(right.T.contiguous())
    made = copy.deepcopy(model)
    made.token = FactorisedEmbedding(nn.Embedding.from_pretrained(left, freeze=False), up)
    return made.eval()


def trim_vocabulary(model: Compact, keep: Iterable[int], unknown: int) -> Compact:
    """A copy that knows only the pieces ``keep``; all others become ``unknown``.

    Texts made of kept pieces give exactly the same logits.

    Raises:
        CompressionError: a piece that the vocabulary does not have, or ``unknown`` is not kept.
    """
    table = _plain_table(model)
    kept = torch.tensor(sorted(set(keep)), dtype=torch.long)
    if not len(kept) or kept[0] < 0 or kept[-1] >= table.num_embeddings:
        raise CompressionError(f"pieces to keep must lie in 0..{table.num_embeddings - 1}")
    made = copy.deepcopy(model)
    inner = nn.Embedding.from_pretrained(table.weight.detach()[kept].clone(), freeze=False)
    made.token = TrimmedEmbedding(inner, kept, table.num_embeddings, unknown)
    return made.eval()


def _plain_table(model: Compact) -> nn.Embedding:
    if not isinstance(model.token, nn.Embedding):
        raise CompressionError(f"the token table is already a {type(model.token).__name__}")
    return model.token
