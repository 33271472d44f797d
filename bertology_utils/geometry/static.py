"""Static vectors of words: from many contexts, from an empty frame, from the input table.

Bommasani et al. 2020 (distilling contextual vectors into static ones); May et al. 2019
(semantically bleached frames).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..activations import Collected, collect
from ..encoder import Encoder
from ..resampling import RESAMPLES, Estimate, percentile_interval, rank_correlation
from ..words import align
from .rows import TooFewError, layer_rows, rows_at, unit_rows

#: How the contexts of a word become one vector.
POOLS = ("mean", "max", "min")
#: A frame that says nothing about the word in it.
BLEACHED = "this is {word} ."


@dataclass(frozen=True, eq=False)
class StaticVectors:
    """One vector a word.

    Attributes:
        words: the W words.
        vectors: [W, D].
        counts: [W] contexts behind each.
        source: what they were made from, in words.
        model: the encoder's name.
    """

    words: tuple[str, ...]
    vectors: np.ndarray
    counts: np.ndarray
    source: str
    model: str

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words)}

    def __contains__(self, word: str) -> bool:
        return word in self._places

    def __getitem__(self, word: str) -> np.ndarray:
        """[D] the vector of a word.

        Raises:
            KeyError: no such word.
        """
        if word not in self._places:
            raise KeyError(f"no vector for {word!r} among {len(self.words)} words")
        return self.vectors[self._places[word]]

    def cosine(self, first: str, second: str) -> float:
        """Cosine of two words' vectors; KeyError for an unknown word."""
        a, b = unit_rows(np.stack([self[first], self[second]]))
        return float(a @ b)

    def nearest(self, word: str, k: int = 10) -> list[tuple[str, float]]:
        """The ``k`` other words of the highest cosine; KeyError for an unknown word."""
        unit = unit_rows(self.vectors)
        cosines = unit @ unit_rows(self[word][None])[0]
        order = [i for i in np.argsort(-cosines, kind="stable") if self.words[i] != word]
        return [(self.words[i], float(cosines[i])) for i in order[:k]]

    def mapped(self, function, source: str) -> StaticVectors:
        """The same words after a map of all vectors, such as an ``Isotropizer``."""
        return StaticVectors(self.words, function(self.vectors), self.counts, source, self.model)


def static_vectors(
    collected: Collected,
    words: Mapping[str, np.ndarray],
    layer: int,
    *,
    max_contexts: int | None = None,
    pool: str = "mean",
    seed: int = 0,
) -> StaticVectors:
    """Pool the vectors of each word over its contexts.

    Args:
        collected: rows of words.
        words: word -> rows, from :func:`~bertology_utils.geometry.occurrences`.
        layer: 0 .. L.
        max_contexts: use only this many, drawn at random; None for all.
        pool: one of :data:`POOLS`.
        seed: of the draw.

    Raises:
        ValueError: unknown ``pool``, or ``max_contexts`` below 1.
        TooFewError: no words.
    """
    if pool not in POOLS:
        raise ValueError(f"pool is {pool!r}, must be one of {', '.join(POOLS)}")
    if max_contexts is not None and max_contexts < 1:
        raise ValueError(f"max_contexts starts at 1, got {max_contexts}")
    if not words:
        raise TooFewError("no words")
    draw = np.random.default_rng(seed)
    groups = []
    for rows in words.values():
        if max_contexts is not None and len(rows) > max_contexts:
            rows = draw.choice(rows, max_contexts, replace=False)
        groups.append(rows)
    needed, back = np.unique(np.concatenate(groups), return_inverse=True)
    vectors = layer_rows(collected, layer, needed)
    sizes = [len(group) for group in groups]
    parts = np.split(back.ravel(), np.cumsum(sizes)[:-1])
    pooled = np.stack([getattr(vectors[part], pool)(axis=0) for part in parts])
    source = f"{pool} of up to {max(sizes)} contexts, layer {layer}"
    return StaticVectors(tuple(words), pooled, np.array(sizes), source, collected.model)


def input_embeddings(encoder: Encoder, words: Sequence[str]) -> StaticVectors:
    """Rows of the input embedding table; the mean over pieces for words of several.

    Raises:
        TooFewError: no words.
        EmptyTextError: a word in which the tokenizer finds nothing.
    """
    if not words:
        raise TooFewError("no words")
    table = encoder.embeddings.token.weight.detach().cpu().float().numpy()
    vectors = []
    for word in words:
        row = align(encoder, word)
        inside = ~np.array(row.is_special)
        vectors.append(table[np.array(row.input_ids)[inside]].mean(0))
    ones = np.ones(len(words), int)
    return StaticVectors(tuple(words), np.stack(vectors), ones, "input embeddings", encoder.name)


def bleached_vectors(
    encoder: Encoder, words: Sequence[str], layer: int, *, frame: str = BLEACHED
) -> StaticVectors:
    """Vectors of words in one frame that says nothing about them.

    Raises:
        ValueError: a frame without ``{word}``.
        TooFewError: no words.
        LayerIndexError: no such layer.
    """
    if "{word}" not in frame:
        raise ValueError(f"the frame {frame!r} has no place for {{word}}")
    if not words:
        raise TooFewError("no words")
    encoder.check_layer(layer, last=encoder.n_layers)
    before, after = (part.split() for part in frame.split("{word}"))
    texts = [(*before, word, *after) for word in words]
    collected = collect(encoder, texts)
    rows = rows_at(collected, [(i, len(before)) for i in range(len(texts))])
    ones = np.ones(len(words), int)
    return StaticVectors(
        tuple(words), layer_rows(collected, layer, rows), ones, f"{frame!r}, layer {layer}",
        encoder.name,
    )  # fmt: skip


def relatedness_correlation(
    static: StaticVectors, pairs: Iterable[tuple[str, str, float]], *, seed: int = 0
) -> Estimate:
    """Spearman's rank correlation of cosines with gold relatedness.

    Pairs with a word that has no vector are left out; ``n`` says how many stay.

    Raises:
        TooFewError: fewer than five pairs stay, or all have one score.
    """
    known = [(a, b, score) for a, b, score in pairs if a in static and b in static]
    gold = np.array([score for _, _, score in known], float)
    if len(known) < 5 or np.ptp(gold) == 0:
        raise TooFewError(f"{len(known)} pairs of known words with different scores are too few")
    cosines = np.array([static.cosine(a, b) for a, b, _ in known])
    value = float(rank_correlation(cosines, gold))
    take = _resampled(len(known), seed)
    draws = rank_correlation(cosines[take], gold[take])
    return Estimate(
        value=value,
        unit="correlation",
        n=len(known),
        model=static.model,
        seed=seed,
        interval=percentile_interval(draws, value),
    )


def correlation_gain(
    better: StaticVectors,
    worse: StaticVectors,
    pairs: Iterable[tuple[str, str, float]],
    *,
    seed: int = 0,
) -> Estimate:
    """Relatedness correlation of one set of vectors minus that of another, on the same pairs.

    The interval resamples pairs, the same ones for both. Raises as
    :func:`relatedness_correlation`.
    """
    known = [p for p in pairs if all(w in s for w in p[:2] for s in (better, worse))]
    one, two = (relatedness_correlation(s, known, seed=seed) for s in (better, worse))
    gold = np.array([score for _, _, score in known], float)
    first, second = (np.array([s.cosine(a, b) for a, b, _ in known]) for s in (better, worse))
    take = _resampled(len(known), seed)
    draws = rank_correlation(first[take], gold[take]) - rank_correlation(second[take], gold[take])
    value = one.value - two.value
    return Estimate(
        value=value,
        unit="correlation difference",
        n=len(known),
        model=better.model,
        seed=seed,
        interval=percentile_interval(draws, value),
    )


def _resampled(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))
