"""Dependency trees drawn from single heads (Htut et al. 2019, arXiv 1911.12246)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..encoder import Encoder
from ..stimuli import Sentence
from ..words import WordList
from .maps import MAX_TOKENS, attention_maps
from .scores import HeadScores


def spanning_trees(scores: np.ndarray, root: int) -> np.ndarray:
    """Maximum spanning trees of undirected graphs, hung from the root (Prim 1957).

    Args:
        scores: [..., W, W] weight of each pair of words; of the two directions the larger counts.
        root: the word to start from.

    Returns:
        [..., W] the head of every word, -1 for the root. All graphs are grown side by side.

    Raises:
        ValueError: not square, or the root is no word.
    """
    width = scores.shape[-1]
    if scores.ndim < 2 or scores.shape[-2] != width or not 0 <= root < width:
        raise ValueError(f"scores {scores.shape} are not square or hold no root {root}")
    lead = scores.shape[:-2]
    weight = np.maximum(scores, scores.swapaxes(-1, -2)).reshape(-1, width, width)
    graphs = np.arange(len(weight))
    parents = np.full((len(weight), width), root)
    reach = weight[:, root].astype(float)
    reach[:, root] = -np.inf
    for _ in range(width - 1):
        word = reach.argmax(1)
        reach[graphs, word] = -np.inf  # in the tree: neither reached nor re-hung
        new = weight[graphs, word]
        closer = (new > reach) & np.isfinite(reach)
        parents[closer] = np.broadcast_to(word[:, None], closer.shape)[closer]
        reach = np.where(closer, new, reach)
    parents[:, root] = -1
    return parents.reshape(*lead, width)


def tree_scores(
    encoder: Encoder,
    sentences: Iterable[Sentence],
    *,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> HeadScores:
    """UUAS of the maximum spanning tree of every head's word-level attention.

    UUAS is the share of gold edges, taken without direction, that are in the tree. Punctuation is
    removed from attention and gold alike. The gold root starts the tree, as in Htut et al.; for
    trees without direction it decides nothing. Control ``right_branching``: the chain in which
    every word hangs from a neighbour.

    Raises:
        NothingToScoreError: no sentence with two words that are not punctuation.
        TextTooLongError, AlignmentError: naming the sentence.
    """
    listed = list(sentences)
    texts = [WordList(s.words, s.text) for s in listed]
    sums = np.zeros((len(listed), encoder.n_layers, encoder.n_heads))
    chain, counts = np.zeros((len(listed), 1)), np.zeros(len(listed))
    for maps in attention_maps(encoder, texts, max_tokens=max_tokens):
        sentence = listed[maps.index]
        kept = [i for i, relation in enumerate(sentence.deprels) if relation != "punct"]
        new = {word: place for place, word in enumerate(kept)}
        edges = [(new[h], new[d]) for h, d, _ in sentence.edges() if h in new and d in new]
        if not edges:
            continue
        words = maps.words[..., kept, :][..., kept]
        trees = spanning_trees(words, new.get(sentence.root, 0))
        for head, dependent in edges:
            found = (trees[..., dependent] == head) | (trees[..., head] == dependent)
            sums[maps.index] += found
            chain[maps.index] += abs(head - dependent) == 1
        counts[maps.index] = len(edges)
    controls = {"right_branching": chain}
    return HeadScores("UUAS of head trees", "share", sums, counts, encoder.name, seed, controls)
