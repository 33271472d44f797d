"""Pseudo-log-likelihood: hide every piece in turn and sum what the model gives it."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import torch
from torch import Tensor

from ..encoder import Encoder
from ..words import Aligned, Text, align_all
from ..words.errors import checked_texts
from .queries import Query, log_prob_of, read_queries

Scheme = Literal["original", "within_word_l2r"]


@dataclass(frozen=True)
class PLL:
    """Pseudo-log-likelihood of one text (Salazar et al. 2020, arXiv 1910.14659).

    Attributes:
        text: the text.
        pieces: its pieces, special tokens left out.
        log_probs: natural log-probability of each piece, given all that its scheme shows.
        words: (word, first piece, one past the last) with pieces counted in ``pieces``.
    """

    text: str
    pieces: tuple[str, ...]
    log_probs: tuple[float, ...]
    words: tuple[tuple[str, int, int], ...]

    @property
    def total(self) -> float:
        """Sum over the pieces, in nats: the score for minimal pairs."""
        return math.fsum(self.log_probs)

    @property
    def per_piece(self) -> float:
        """Mean over the pieces, in nats."""
        return self.total / len(self.log_probs)

    @property
    def perplexity(self) -> float:
        """Pseudo-perplexity, exp(-mean)."""
        return math.exp(-self.per_piece)


@dataclass(frozen=True)
class Surprisal:
    """Bits of every word of a text: -log2 of the product over its pieces."""

    text: str
    words: tuple[str, ...]
    bits: tuple[float, ...]


def pll(
    encoder: Encoder,
    texts: Iterable[Text],
    *,
    scheme: Scheme = "original",
    max_tokens: int = 4096,
) -> list[PLL]:
    """Pseudo-log-likelihood of every text, in order.

    Args:
        scheme: ``"original"`` hides one piece at a time. ``"within_word_l2r"`` hides the later
            pieces of the same word too, since "##led" gives "trave" away (Kauf and Ivanova 2023,
            arXiv 2305.10588).
        max_tokens: budget of padded pieces a batch; texts are read lazily and memory stays flat
            but for the scores.

    Raises:
        ValueError: an unknown scheme; bad texts as in ``words``.
        MissingHeadError: no trained MLM head.
    """
    if scheme not in ("original", "within_word_l2r"):
        raise ValueError(f"unknown scheme {scheme!r}; use 'original' or 'within_word_l2r'")
    checked_texts(texts)
    return list(_scores(encoder, texts, scheme, max_tokens))


def surprisal(
    encoder: Encoder, texts: Iterable[Text], *, max_tokens: int = 4096
) -> list[Surprisal]:
    """Surprisal of every word in bits, pieces of a word read from left to right.

    Both sides of the word are visible: this is the masked model's surprisal, not a reader's.
    """
    found = pll(encoder, texts, scheme="within_word_l2r", max_tokens=max_tokens)
    return [
        Surprisal(
            score.text,
            tuple(word for word, _, _ in score.words),
            tuple(
                -math.fsum(score.log_probs[start:stop]) / math.log(2)
                for _, start, stop in score.words
            ),
        )
        for score in found
    ]


def _scores(encoder: Encoder, texts: Iterable[Text], scheme: str, max_tokens: int):
    stream = iter(texts)
    while chunk := list(islice(stream, 2048)):
        rows = align_all(encoder, chunk)
        places = [[i for i, special in enumerate(row.is_special) if not special] for row in rows]
        queries = (
            query
            for row, at in zip(rows, places, strict=True)
            for query in _queries(row, at, scheme)
        )
        values = read_queries(encoder, queries, _own_log_probs, max_tokens=max_tokens)
        for row, at in zip(rows, places, strict=True):
            where = {piece: i for i, piece in enumerate(at)}
            yield PLL(
                row.text if row.second is None else f"{row.text} {row.second}",
                tuple(row.pieces[i] for i in at),
                tuple(islice(values, len(at))),
                tuple((w.text, where[w.pieces[0]], where[w.pieces[1] - 1] + 1) for w in row.words),
            )


def _queries(row: Aligned, places: Sequence[int], scheme: str) -> Iterator[Query]:
    end_of_word = {}
    if scheme == "within_word_l2r":
        end_of_word = {i: word.pieces[1] for word in row.words for i in range(*word.pieces)}
    for i in places:
        yield Query(row, tuple(range(i, end_of_word.get(i, i + 1))), i)


def _own_log_probs(logits: Tensor, queries: Sequence[Query]) -> list[float]:
    """Log-probability of the piece that really stands where each query reads."""
    targets = torch.tensor([query.row.input_ids[query.read] for query in queries])
    return log_prob_of(logits, targets).tolist()
