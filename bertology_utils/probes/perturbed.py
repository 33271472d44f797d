"""Perturbed masking: trees from how much one word matters to the vector of another.

Wu et al. 2020 (arXiv 2004.14786). Mask word i and read its vector; mask word j as well and read it
again: the distance between the two is the impact of j on i. No probe is trained and no label seen.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..activations import capture
from ..encoder import Encoder, evaluating
from ..stimuli import Sentence
from ..words import Aligned, Text, align_all
from .decoding import eisner, heads_from_edges, max_arborescence, spanning_edges
from .errors import DecodingError, ProbeError, UnequalLengthError
from .results import ratio_interval
from .tree_metrics import (
    branching_heads,
    chain,
    content_words,
    edge_hits,
    head_hits,
)


@dataclass(frozen=True, eq=False)
class Impact:
    """Impacts between the words of one text.

    Attributes:
        words: the n words.
        matrix: [S, n, n]; ``matrix[s, i, j]`` is the impact of masking word j on the vector of word
            i (itself masked) at layer ``layers[s]``; 0 on the diagonal. Euclidean.
        layers: layers that were read; 0 is the embedding output.
        model: the encoder's name.
    """

    words: tuple[str, ...]
    matrix: np.ndarray
    layers: tuple[int, ...]
    model: str


def impact_matrices(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    layers: Iterable[int] | None = None,
    max_tokens: int = 4096,
) -> list[Impact]:
    """The impact matrix of every text.

    All pieces of a word are masked together, and its vector is the mean over them. Masking i and j
    serves both directions: n words take n (n + 1) / 2 rows, which fill batches across texts.

    Args:
        encoder: any encoder; no head is needed.
        texts: strings, lists of words, or ``WordList`` for words of a treebank.
        layers: layers to read, 0 .. L; by default the last only.
        max_tokens: padded pieces per batch.

    Raises:
        LayerIndexError: a layer outside the model; ProbeError: no layers, or a tokenizer without
            a mask; bad texts as in ``words``.
    """
    chosen = (encoder.n_layers,) if layers is None else tuple(layers)
    if not chosen:
        raise ProbeError("no layers to read")
    for layer in chosen:
        encoder.check_layer(layer, last=encoder.n_layers)
    if encoder.tokenizer.mask_token_id is None:
        raise ProbeError(f"{encoder.name!r} has no mask token")
    rows = align_all(encoder, list(texts))
    counts = [len(row.words) for row in rows]
    matrices = [np.zeros((len(chosen), n, n)) for n in counts]
    # Masking one word alone: the reference that its impacts are measured against.
    alone: dict[tuple[int, int], Tensor] = {}
    jobs = [(t, i, i) for t, n in enumerate(counts) for i in range(n)]
    for (text, i, _), vectors in _masked(encoder, rows, jobs, chosen, max_tokens):
        alone[text, i] = vectors[0]
    pairs = [(t, i, j) for t, n in enumerate(counts) for i in range(n) for j in range(i + 1, n)]
    for (text, i, j), vectors in _masked(encoder, rows, pairs, chosen, max_tokens):
        for word, other, vector in ((i, j, vectors[0]), (j, i, vectors[1])):
            change = (vector - alone[text, word]).norm(dim=-1)
            matrices[text][:, word, other] = change.numpy()
    return [
        Impact(tuple(word.text for word in row.words), matrix, chosen, encoder.name)
        for row, matrix in zip(rows, matrices, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Inputs:
    input_ids: Tensor
    attention_mask: Tensor
    token_type_ids: Tensor


def _masked(
    encoder: Encoder,
    rows: Sequence[Aligned],
    jobs: list[tuple[int, int, int]],
    layers: tuple[int, ...],
    max_tokens: int,
) -> Iterator[tuple[tuple[int, int, int], Tensor]]:
    """For every job (text, i, j): vectors [2, S, D] of words i and j with both masked."""
    tokenizer = encoder.tokenizer
    jobs = sorted(jobs, key=lambda job: -len(rows[job[0]].input_ids))
    start = 0
    while start < len(jobs):
        width = len(rows[jobs[start][0]].input_ids)
        part = jobs[start : start + max(1, max_tokens // width)]
        start += len(part)
        ids = np.full((len(part), width), tokenizer.pad_token_id, dtype=np.int64)
        types = np.zeros_like(ids)
        mask = np.zeros_like(ids)
        # Mean over the pieces of each of the two words, as one product with the hidden states.
        weights = np.zeros((len(part), 2, width), dtype=np.float32)
        for b, (text, *pair) in enumerate(part):
            row = rows[text]
            length = len(row.input_ids)
            ids[b, :length], types[b, :length], mask[b, :length] = (
                row.input_ids,
                row.token_type_ids,
                1,
            )
            for side, word in enumerate(pair):
                first, end = row.spans[word]
                ids[b, first:end] = tokenizer.mask_token_id
                weights[b, side, first:end] = 1 / (end - first)
        batch = _Inputs(*(torch.from_numpy(a) for a in (ids, mask, types)))
        with evaluating(encoder), capture(encoder, ["hidden_states"]) as cache:
            encoder.encode(batch)
        pool = torch.from_numpy(weights).to(encoder.device)
        read = [pool @ cache.layers["hidden_states"][layer].float() for layer in layers]
        vectors = torch.stack(read, dim=2).cpu()  # [B, 2, S, D]
        yield from zip(part, vectors, strict=True)


DECODERS = ("eisner", "arborescence", "spanning")


def decode_impact(
    matrix: np.ndarray, *, decoder: str = "eisner", root: int | None = None
) -> tuple[int, ...]:
    """A dependency tree from one impact matrix.

    The score of head h over dependent d is the impact of h on d: a word should matter to those
    that hang from it.

    Args:
        matrix: [n, n] impacts of column on row.
        decoder: ``"eisner"`` (projective), ``"arborescence"`` (arcs may cross) or ``"spanning"``
            (undirected maximum spanning tree of the mean of both directions, hung up at the root).
        root: 0-based root, if given (as in the paper). Without, the decoder is free to choose;
            ``"spanning"`` then hangs the tree up at the word with most impact on the others.

    Returns:
        Heads, 1-based, 0 for the root.

    Raises:
        ValueError: unknown decoder; DecodingError: NaN, not square, a root outside the sentence.
    """
    scores = np.asarray(matrix, dtype=np.float64)
    if decoder not in DECODERS:
        raise ValueError(f"decoder is {decoder!r}, must be one of {', '.join(DECODERS)}")
    if scores.ndim != 2:
        raise DecodingError(f"impacts have shape {scores.shape}, expected [n, n]")
    if decoder == "spanning":
        edges = spanning_edges(-scores)
        return heads_from_edges(edges, int(scores.sum(0).argmax()) if root is None else root)
    decode = eisner if decoder == "eisner" else max_arborescence
    return decode(scores.T, root=root)


@dataclass(frozen=True)
class ImpactTrees:
    """Trees read off impact matrices at one layer, against gold trees.

    Attributes:
        layer: the layer.
        decoder: how trees were read.
        uuas: undirected attachment score, punctuation left out before decoding.
        uas: directed attachment score, likewise.
        chain_uuas: UUAS of tying every word to the next.
        right_uas, left_uas: UAS of the directed chains.
        n: sentences.
        interval: 95 % bootstrap interval of the UUAS over sentences.
        model: the encoder's name.
        heads: predicted heads of every sentence, 1-based, 0 for the root; punctuation hangs from
            the root.
    """

    layer: int
    decoder: str
    uuas: float
    uas: float
    chain_uuas: float
    right_uas: float
    left_uas: float
    n: int
    interval: tuple[float, float]
    model: str
    heads: tuple[tuple[int, ...], ...]

    unit = "share"
    seed = None

    @property
    def value(self) -> float:
        """The UUAS."""
        return self.uuas

    @property
    def baselines(self) -> dict[str, float]:
        return {"right-branching": self.chain_uuas}


def impact_trees(
    impacts: Sequence[Impact],
    sentences: Sequence[Sentence],
    *,
    decoder: str = "eisner",
    gold_root: bool = False,
) -> list[ImpactTrees]:
    """Score the trees of every layer of the impact matrices.

    Args:
        impacts: of the sentences, in order, with the same words and layers.
        sentences: with gold trees.
        decoder: as :func:`decode_impact`.
        gold_root: give the decoder the gold root, as Wu et al. do.

    Raises:
        UnequalLengthError: impacts that are not of these sentences.
        ProbeError: no sentence, impacts of different layers, or no edge between two words.
    """
    listed = list(sentences)
    if len(impacts) != len(listed):
        raise UnequalLengthError(f"{len(impacts)} impact matrices for {len(listed)} sentences")
    if not listed:
        raise ProbeError("no sentences")
    if len({impact.layers for impact in impacts}) > 1:
        raise ProbeError("the impact matrices are of different layers")
    for impact, sentence in zip(impacts, listed, strict=True):
        if len(impact.words) != len(sentence):
            raise UnequalLengthError(
                f"{len(impact.words)} words in the impacts of {sentence.text!r}, which has "
                f"{len(sentence)}; pass its words to impact_matrices"
            )
    _, totals = edge_hits([chain(s) for s in listed], listed)
    if not totals.sum():
        raise ProbeError("the sentences hold no edge between two words")
    chain_hits, _ = edge_hits([chain(s) for s in listed], listed)
    directed = {
        way: _ratio(head_hits([branching_heads(s, way) for s in listed], listed))
        for way in ("right", "left")
    }
    results = []
    for k, layer in enumerate(impacts[0].layers):
        heads = [
            _tree(impact.matrix[k], sentence, decoder, gold_root)
            for impact, sentence in zip(impacts, listed, strict=True)
        ]
        edges = [np.array([(h - 1, d) for d, h in enumerate(tree) if h]) for tree in heads]
        hits, _ = edge_hits(edges, listed)
        results.append(
            ImpactTrees(
                layer,
                decoder,
                float(hits.sum() / totals.sum()),
                _ratio(head_hits(heads, listed)),
                float(chain_hits.sum() / totals.sum()),
                directed["right"],
                directed["left"],
                len(listed),
                ratio_interval(hits, totals),
                impacts[0].model,
                tuple(heads),
            )
        )
    return results


def _tree(matrix: np.ndarray, sentence: Sentence, decoder: str, gold_root: bool) -> tuple[int, ...]:
    words = content_words(sentence)
    if not len(words):
        words = np.arange(len(sentence))
    root = None
    if gold_root and sentence.root in words:
        root = int(np.flatnonzero(words == sentence.root)[0])
    inner = decode_impact(matrix[np.ix_(words, words)], decoder=decoder, root=root)
    top = int(words[inner.index(0)])
    heads = [top + 1] * len(sentence)
    for word, head in zip(words.tolist(), inner, strict=True):
        heads[word] = int(words[head - 1]) + 1 if head else 0
    return tuple(heads)


def _ratio(counts: tuple[np.ndarray, np.ndarray]) -> float:
    hits, totals = counts
    return float(hits.sum() / totals.sum()) if totals.sum() else 0.0
