"""Trees out of vectors: the structural probe layer by layer, and splits at the largest gap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..probes import Split
from ..probes.structural import StructuralProbes, fit_structural
from ..probes.tree_metrics import (
    chain,
    edge_hits,
    mean_spearman,
    spanning_trees,
    spearman_by_length,
)
from ..stimuli import Sentence
from .choose import LayerScores
from .vectors import TreebankVectors

# -- structural probe ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StructuralScores:
    """A structural probe of every layer (Hewitt and Manning 2019, N19-1419).

    Attributes:
        probes: the S maps.
        uuas: share of gold edges in the spanning tree, sentence by sentence.
        dspr: [S] rank correlation of predicted and gold distances, lengths 5 to 50.
        chain: UUAS of tying every word to the next, sentence by sentence, as one "layer".
        distances: predicted distances [n, n] of every layer, of every test sentence.
    """

    probes: StructuralProbes
    uuas: LayerScores
    dspr: tuple[float | None, ...]
    chain: LayerScores
    distances: list[list[np.ndarray]]


def structural_scores(
    vectors: TreebankVectors,
    sentences: Sequence[Sentence],
    split: Split,
    *,
    rank: int = 32,
    epochs: int = 10,
    seed: int = 0,
) -> StructuralScores:
    """Train a distance probe on every layer and grow a tree over every test sentence.

    Raises:
        As :func:`bertology_utils.probes.structural.fit_structural`.
    """
    data, listed = torch.from_numpy(vectors.words), list(sentences)
    probes = fit_structural(data, listed, split, rank=rank, epochs=epochs, seed=seed)
    test = [listed[i] for i in split.test]
    rows = np.isin(vectors.sentence, split.test)
    # Words of the test part in the order of the split, which need not be sorted.
    order = np.argsort(split.test, kind="stable")
    lengths = [len(listed[i]) for i in split.test[order]]
    said = probes.predict(data[:, torch.from_numpy(rows)], lengths)
    back = np.argsort(order, kind="stable")
    said = [[layer[i] for i in back] for layer in said]
    found = [edge_hits(spanning_trees(layer, test), test) for layer in said]
    gold = [np.array(sentence.distances(), float) for sentence in test]
    neighbours, totals = edge_hits([chain(sentence) for sentence in test], test)
    return StructuralScores(
        probes,
        LayerScores(np.stack([hits for hits, _ in found]), totals, vectors.model, seed),
        tuple(mean_spearman(spearman_by_length(layer, gold)) for layer in said),
        LayerScores(neighbours[None], totals, vectors.model, seed),
        said,
    )


# -- splits at the largest gap -------------------------------------------------------------------

Gaps = Callable[[np.ndarray], np.ndarray]


def cosine_gaps(words: np.ndarray) -> np.ndarray:
    """1 - cosine between neighbours: [..., W, D] -> [..., W - 1]."""
    unit = words / np.maximum(np.linalg.norm(words, axis=-1, keepdims=True), 1e-12)
    return 1 - (unit[..., 1:, :] * unit[..., :-1, :]).sum(-1)


def euclidean_gaps(words: np.ndarray) -> np.ndarray:
    """Distance between neighbours: [..., W, D] -> [..., W - 1]."""
    return np.linalg.norm(words[..., 1:, :] - words[..., :-1, :], axis=-1)


GAPS: dict[str, Gaps] = {"cosine": cosine_gaps, "euclidean": euclidean_gaps}


def brackets(gaps: Sequence[float]) -> set[tuple[int, int]]:
    """Spans (start, end) of the binary tree that is cut at the largest gap, again and again.

    The syntactic-distance tree of Kim et al. 2020 (arXiv 2002.00737). Among equal gaps the first
    is cut, so that constant gaps give the right-branching tree.

    Raises:
        ValueError: a gap that is not a number.
    """
    values = np.asarray(gaps, float)
    if np.isnan(values).any():
        raise ValueError(f"the gap after word {int(np.isnan(values).argmax())} is not a number")
    spans: set[tuple[int, int]] = set()
    stack = [(0, len(values) + 1)]
    while stack:
        start, end = stack.pop()
        if end - start < 2:
            continue
        spans.add((start, end))
        cut = start + int(np.argmax(values[start : end - 1])) + 1
        stack += [(start, cut), (cut, end)]
    return spans


def gold_brackets(sentence: Sentence) -> tuple[list[int], set[tuple[int, int]]]:
    """Words that are not punctuation, and the gold constituents over them.

    Constituents of one word and the whole sentence are left out: every tree has them.

    Raises:
        ValueError: a sentence without constituents.
    """
    if sentence.gold is None:
        raise ValueError(f"no constituents in {sentence.text!r}: it comes without a tree")
    kept = [i for i, tag in enumerate(sentence.upos) if tag != "PUNCT"]
    place = np.concatenate([[0], np.cumsum([tag != "PUNCT" for tag in sentence.upos])])
    spans = {
        (int(place[start]), int(place[end])) for _, start, end in sentence.gold.tree.spans()
    }
    return kept, {s for s in spans if 1 < s[1] - s[0] < len(kept)}


@dataclass(frozen=True, eq=False)
class BracketScores:
    """Mean F1 of the sentences' brackets. S layers by G kinds of gap.

    Attributes:
        names: [S * G] (layer, kind of gap).
        f1: the F1 of every sentence for each of them.
        right_branching: the F1 of every sentence's right-branching tree, as one "layer".
        random_gaps: the same for gaps drawn at random.
    """

    names: tuple[tuple[int, str], ...]
    f1: LayerScores
    right_branching: LayerScores
    random_gaps: LayerScores


def bracket_scores(
    vectors: TreebankVectors, sentences: Sequence[Sentence], rows: Sequence[int], *, seed: int = 0
) -> BracketScores:
    """Cut every sentence at its largest gaps, without training, and compare with the gold tree.

    Args:
        vectors: of the sentences.
        sentences: with gold constituents.
        rows: numbers of the sentences to score; those without an inner constituent are skipped.
        seed: of halves, bootstrap and random gaps.

    Raises:
        ValueError: a sentence without constituents.
    """
    names = tuple((layer, kind) for layer in range(len(vectors.words)) for kind in GAPS)
    found, chains, chance = [], [], []
    rng = np.random.default_rng(seed)
    for number in rows:
        kept, gold = gold_brackets(sentences[number])
        if not gold:
            continue
        words = vectors.of(number)[:, kept]
        gaps = {kind: measure(words) for kind, measure in GAPS.items()}
        found.append([_f1(brackets(gaps[kind][layer]), gold, len(kept)) for layer, kind in names])
        chains.append(_f1(brackets(np.zeros(len(kept) - 1)), gold, len(kept)))
        chance.append(_f1(brackets(rng.random(len(kept) - 1)), gold, len(kept)))
    one = np.ones(len(found))
    return BracketScores(
        names,
        LayerScores(np.array(found).T, one, vectors.model, seed),
        LayerScores(np.array([chains]), one, vectors.model, seed),
        LayerScores(np.array([chance]), one, vectors.model, seed),
    )


def _f1(said: set[tuple[int, int]], gold: set[tuple[int, int]], words: int) -> float:
    inner = {s for s in said if s[1] - s[0] < words}
    return 2 * len(inner & gold) / (len(inner) + len(gold)) if inner else 0.0
