"""Trees drawn from single heads: the picture, and by how much they beat the chain of neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..attention import HeadScores, attention_maps
from ..encoder import Encoder
from ..probes import max_arborescence
from ..stimuli import Sentence
from ..words import WordList
from .structure import StructuralScores


def above_chain(scores: HeadScores) -> HeadScores:
    """Every head's UUAS minus that of the chain in which each word hangs from its neighbour.

    Args:
        scores: from :func:`bertology_utils.attention.tree_scores`.

    Raises:
        KeyError: scores without the control ``right_branching``.
    """
    chain = scores.controls["right_branching"][:, :, None]
    return HeadScores(
        f"{scores.name} minus right-branching", "share difference",
        scores.sums - chain, scores.counts, scores.model, scores.seed,
    )  # fmt: skip


def probe_above_chain(
    probe: StructuralScores, rows: Sequence[int], like: HeadScores
) -> HeadScores:
    """The same difference for a structural probe's trees of the same sentences, layer by layer.

    Layers take the place of heads, one a layer: the best is chosen on the same half of the
    sentences and scored on the other, so that the two can be set side by side.

    Args:
        probe: scores that hold the sentences.
        rows: their numbers among the probe's test sentences, in the order of ``like``.
        like: what the heads are worth, see :func:`above_chain`.

    Raises:
        ValueError: other sentences than those of ``like``.
    """
    chosen = list(rows)
    counts = probe.uuas.counts[0, chosen]
    if not np.array_equal(counts, like.counts):
        raise ValueError("the probe's sentences are not those of the heads")
    gained = probe.uuas.hits[:, chosen] - probe.chain.hits[0, chosen]
    return HeadScores(
        "UUAS of probe trees minus right-branching", "share difference",
        gained.T[:, :, None], counts, probe.uuas.model, like.seed,
    )  # fmt: skip


def head_tree(
    encoder: Encoder, sentence: Sentence, layer: int, head: int
) -> list[tuple[int, int]]:
    """Edges (head, word), 0-based, of the maximum spanning tree of one head's attention.

    Chu-Liu-Edmonds from the gold root over the words that are not punctuation, as in Htut et al.
    2019 (arXiv 1911.12246); attention from a word scores the other as its governor.

    Raises:
        LayerIndexError, HeadIndexError: no such head.
        ValueError: fewer than two words.
    """
    encoder.check_layer(layer)
    encoder.check_heads({layer: [head]})
    kept = [i for i, tag in enumerate(sentence.upos) if tag != "PUNCT"]
    if len(kept) < 2:
        raise ValueError(f"{sentence.text!r} has fewer than two words")
    (maps,) = attention_maps(encoder, [WordList(sentence.words, sentence.text)])
    weights = maps.words[layer, head][np.ix_(kept, kept)]
    root = kept.index(sentence.root) if sentence.root in kept else None
    heads = max_arborescence(weights.T, root=root)
    return [(kept[h - 1], kept[i]) for i, h in enumerate(heads) if h]


def example_sentence() -> Sentence:
    """ "The keys to the cabinet are on the table", annotated in Universal Dependencies.

    The sentence with which Jawahar et al. 2019 (P19-1356) illustrate a tree from attention.
    """
    words = ("The", "keys", "to", "the", "cabinet", "are", "on", "the", "table", ".")
    upos = ("DET", "NOUN", "ADP", "DET", "NOUN", "AUX", "ADP", "DET", "NOUN", "PUNCT")
    heads = (2, 9, 5, 5, 2, 9, 9, 9, 0, 9)
    deprels = ("det", "nsubj", "case", "det", "nmod", "cop", "case", "det", "root", "punct")
    lemmas = ("the", "key", "to", "the", "cabinet", "be", "on", "the", "table", ".")
    text = "The keys to the cabinet are on the table."
    return Sentence(words, upos, heads, deprels, lemmas, ("",) * len(words), text, "keys")
