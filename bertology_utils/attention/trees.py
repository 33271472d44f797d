"""Dependency trees drawn from single heads (Htut et al. 2019, arXiv 1911.12246)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..encoder import Encoder
from ..probes.decoding import eisner, max_arborescence, spanning_edges
from ..stimuli import Sentence
from ..words import WordList
from .maps import MAX_TOKENS, attention_maps
from .scores import HeadScores

#: directed: Chu-Liu-Edmonds from the gold root; projective: Eisner, gold root; undirected: Prim on
#: the larger of both directions, which no root influences and which is fifty times faster.
DECODERS = ("directed", "projective", "undirected")


def tree_scores(
    encoder: Encoder,
    sentences: Iterable[Sentence],
    *,
    decoder: str = "directed",
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> HeadScores:
    """UUAS of the maximum spanning tree of every head's word-level attention.

    UUAS is the share of gold edges, taken without direction, that are in the tree. Punctuation is
    removed from attention and gold alike. Attention from a word to another scores the other as its
    governor. Control ``right_branching``: the chain in which every word hangs from a neighbour.

    Args:
        encoder: any encoder.
        sentences: sentences with dependency trees.
        decoder: one of :data:`DECODERS`; the first is that of Htut et al.
        seed: of the halves and the bootstrap.
        max_tokens: pieces per batch.

    Raises:
        ValueError: unknown decoder.
        NothingToScoreError: no sentence with two words that are not punctuation.
        TextTooLongError, AlignmentError: naming the sentence.
    """
    if decoder not in DECODERS:
        raise ValueError(f"decoder is {decoder!r}, must be one of {', '.join(DECODERS)}")
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
        linked = _linked(words, new[sentence.root], decoder)
        for head, dependent in edges:
            sums[maps.index] += linked[..., head, dependent]
            chain[maps.index] += abs(head - dependent) == 1
        counts[maps.index] = len(edges)
    controls = {"right_branching": chain}
    return HeadScores("UUAS of head trees", "share", sums, counts, encoder.name, seed, controls)


def _linked(words: np.ndarray, root: int, decoder: str) -> np.ndarray:
    """[L, H, W, W] attention -> True where the tree of a head joins two words."""
    n_layers, n_heads = words.shape[:2]
    linked = np.zeros(words.shape, bool)
    if decoder == "undirected":
        strongest = np.maximum(words, words.swapaxes(-1, -2))
        first, second = np.moveaxis(spanning_edges(-strongest), -1, 0)
        layer, head = np.ogrid[:n_layers, :n_heads]
        linked[layer[..., None], head[..., None], first, second] = True
    else:
        decode = max_arborescence if decoder == "directed" else eisner
        for layer, head in np.ndindex(n_layers, n_heads):
            heads = np.array(decode(words[layer, head].T, root=root))
            dependents = np.flatnonzero(heads)
            linked[layer, head, heads[dependents] - 1, dependents] = True
    return linked | linked.swapaxes(-1, -2)
