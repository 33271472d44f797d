"""What moving a sentence does to its words' vectors (Mickus et al. 2019, arXiv 1911.05758)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..activations import run_with_cache
from ..encoder import Encoder
from ..words import TextPair, align_all, pool_words, token_batches
from .rows import TooFewError, unit_rows
from .scores import LayerScores


@dataclass(frozen=True, eq=False)
class PositionEffects:
    """Cosine that the words of a sentence lose against the same sentence alone, per layer.

    Items are sentences; 0 is "no change".

    Attributes:
        second: the sentence comes second in a pair, after another sentence and a separator.
        first: it comes after the same other sentence, but within one and the same text.
        difference: ``second`` minus ``first``, sentence by sentence: what the slot costs.
        segment_ids: the pair against the same pair with all segment numbers 0: only the segment
            embedding differs. 0 throughout for families without segments.
    """

    second: LayerScores
    first: LayerScores
    difference: LayerScores
    segment_ids: LayerScores


def position_effects(
    encoder: Encoder,
    sentences: Sequence[str],
    fillers: Sequence[str],
    *,
    seed: int = 0,
    max_tokens: int = 4096,
) -> PositionEffects:
    """Compare each sentence alone, after its filler in one text, and after it as a second text.

    The first word of the sentence is left out, since byte-level tokenizers spell it differently at
    the start of a text.

    Args:
        encoder: any encoder.
        sentences: sentences of at least two words.
        fillers: another sentence for each, ending in punctuation.
        seed: of the bootstrap.
        max_tokens: padded pieces per batch.

    Raises:
        ValueError: different numbers of sentences and fillers.
        TooFewError: no sentences, or one of a single word.
        TextTooLongError: filler and sentence together are too long.
    """
    if len(sentences) != len(fillers):
        raise ValueError(f"{len(sentences)} sentences, but {len(fillers)} fillers")
    sizes = [len(row.words) - 1 for row in align_all(encoder, sentences)] if sentences else []
    if not sizes or min(sizes) < 1:
        raise TooFewError("needs sentences, each of two words or more")
    pairs = [TextPair(f, s) for f, s in zip(fillers, sentences, strict=True)]
    joined = [f"{f} {s}" for f, s in zip(fillers, sentences, strict=True)]

    def vectors(texts, segments: bool = True) -> list[np.ndarray]:
        return _last_words(encoder, texts, sizes, max_tokens, segments)

    alone, second, first = vectors(list(sentences)), vectors(pairs), vectors(joined)
    flat = vectors(pairs, segments=False)

    def lost(before: list[np.ndarray], after: list[np.ndarray], name: str) -> LayerScores:
        rows = [
            (1 - (unit_rows(a) * unit_rows(b)).sum(-1)).mean(-1)
            for a, b in zip(before, after, strict=True)
        ]
        return LayerScores(
            name, "cosine difference", np.stack(rows), np.ones(len(rows)), encoder.name, seed
        )

    to_second = lost(alone, second, "cosine lost in the second text")
    to_first = lost(alone, first, "cosine lost within one text")
    difference = replace(
        to_second, name="second text minus same text", sums=to_second.sums - to_first.sums
    )
    return PositionEffects(
        to_second, to_first, difference, lost(second, flat, "cosine lost to the segment")
    )


def _last_words(
    encoder: Encoder, texts, sizes: Sequence[int], max_tokens: int, segments: bool
) -> list[np.ndarray]:
    """[S, W, D] the vectors of the last W words of every text."""
    found: list[np.ndarray | None] = [None] * len(texts)
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        if not segments:
            batch = replace(batch, token_type_ids=torch.zeros_like(batch.token_type_ids))
        states = run_with_cache(encoder, batch, ["hidden_states"])["hidden_states"]
        for b, (index, row) in enumerate(zip(batch.index, batch.rows, strict=True)):
            pooled = pool_words(states[:, b], row.spans[-sizes[index] :])
            found[index] = pooled.cpu().numpy()
    return found
