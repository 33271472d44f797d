"""How alike the heads of a layer are, and what every further layer adds to a probe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..activations import collect
from ..attention import head_distances
from ..cloze import wilson_interval
from ..encoder import Encoder
from ..probes import EdgeResult, edge_probe, group_split
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli import Sentence
from ..words import Text, WordList


def _gaps(matrices: np.ndarray, layers: np.ndarray) -> np.ndarray:
    """[...] mean divergence between layers minus within, of [..., heads, heads]."""
    same = layers[:, None] == layers[None, :]
    off = ~np.eye(len(layers), dtype=bool)
    return matrices[..., ~same].mean(-1) - matrices[..., same & off].mean(-1)


def within_layers(encoder: Encoder, texts: Sequence[Text]) -> np.ndarray:
    """[N] mean Jensen-Shannon divergence of two heads of one layer, in nats, for every text.

    Raises:
        ValueError: a layer of one head: there is nothing to compare.
    """
    if min(encoder.heads_per_layer) < 2:
        raise ValueError(f"a layer of {encoder.name!r} has one head only")
    out = []
    for text in texts:
        found = head_distances(encoder, [text])
        layers = np.array([layer for layer, _ in found.heads])
        same = (layers[:, None] == layers[None, :]) & ~np.eye(len(layers), dtype=bool)
        out.append(found.matrix[same].mean())
    return np.array(out)


def likeness_in_layers(encoder: Encoder, texts: Sequence[Text], *, seed: int = 0) -> Estimate:
    """Divergence of heads of different layers minus of the same layer, in nats (Clark et al. 2019).

    The interval resamples texts. Baseline ``shuffled``: heads dealt to layers at random.

    Raises:
        ValueError: no texts, or a single layer or head.
    """
    if not len(texts) or encoder.n_layers < 2 or min(encoder.heads_per_layer) < 2:
        raise ValueError("needs texts, and several layers of several heads")
    found = [head_distances(encoder, [text]) for text in texts]
    layers = np.array([layer for layer, _ in found[0].heads])
    counts = np.array([one.n for one in found], float)
    per_text = np.array([_gaps(one.matrix, layers) for one in found])
    value = float((per_text * counts).sum() / counts.sum())
    draw = np.random.default_rng(seed)
    matrix = np.average([one.matrix for one in found], axis=0, weights=counts)
    shuffled = [_gaps(matrix, draw.permutation(layers)) for _ in range(200)]
    return Estimate(
        value=value, unit="nats", n=int(counts.sum()), model=encoder.name, seed=seed,
        baselines={"shuffled": float(np.mean(shuffled))},
        interval=percentile_interval(resampled_means(per_text * counts, counts, seed=seed), value),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class AddedLayers:
    """Probes on mixes of layers 0 .. l (Tenney et al. 2019), for several tasks.

    Attributes:
        results: task -> cumulative probes.
        model: name.
        seed: of the probes.
    """

    results: Mapping[str, EdgeResult]
    model: str
    seed: int

    def harmed(self, least: float = 0.002) -> Estimate:
        """Share of tasks in which some layer costs at least ``least`` of accuracy.

        The tasks are few: the interval is Wilson's, for as many tasks drawn at random. Baseline
        ``noise``: the share to expect if no layer changed the accuracy of any task, given how many
        test words neighbouring probes disagree on.
        """
        lost = [min(result.gains) <= -least for result in self.results.values()]
        draw = np.random.default_rng(self.seed)
        by_noise = []
        for result in self.results.values():
            # Two neighbouring probes of equal quality disagree on some words, by chance either way.
            flips = [
                int((result.correct[k] != result.correct[k + 1]).sum())
                for k in range(len(result.gains))
            ]
            ups = [draw.binomial(n, 0.5, 500) for n in flips]
            change = np.stack(
                [(2 * up - n) / result.n_test for up, n in zip(ups, flips, strict=True)]
            )
            by_noise.append((change.min(0) <= -least).mean())
        return Estimate(
            value=float(np.mean(lost)), unit="share", n=len(lost), model=self.model,
            seed=self.seed, baselines={"noise": float(np.mean(by_noise))},
            interval=wilson_interval(sum(lost), len(lost)),
        )  # fmt: skip


def added_layers(
    encoder: Encoder, sentences: Sequence[Sentence], *, epochs: int = 10, seed: int = 0
) -> AddedLayers:
    """Five tasks on words of a treebank, each probed on mixes of more and more layers.

    Part of speech, relation to the head, side of the head, depth in the tree, and the relation
    read from the word together with its head. No sentence is in both parts.

    Raises:
        ValueError: no sentences.
    """
    if not sentences:
        raise ValueError("no sentences to probe")
    collected = collect(encoder, [WordList(s.words, s.text) for s in sentences])
    features = collected.arrays["hidden_states"]
    words = [(i, w) for i, s in enumerate(sentences) for w in range(len(s))]
    first = [collected.rows_of(i).start for i in range(len(sentences))]
    row = {(i, w): first[i] + w for i, w in words}
    single = [(row[key], row[key] + 1) for key in words]
    rooted = [(i, w) for i, w in words if sentences[i].heads[w] > 0]
    pairs = [
        ((row[i, w], row[i, w] + 1), (row[i, h], row[i, h] + 1))
        for i, w in rooted
        for h in (sentences[i].heads[w] - 1,)
    ]
    labels = {
        "part of speech": (words, single, lambda s, w: s.upos[w]),
        "relation": (words, single, lambda s, w: s.deprels[w]),
        "side of the head": (words, single, _side),
        "depth in the tree": (words, single, _depth),
        "relation, word and head": (rooted, pairs, lambda s, w: s.deprels[w]),
    }
    results = {}
    for name, (keys, spans, label) in labels.items():
        groups = [i for i, _ in keys]
        results[name] = edge_probe(
            features, spans, [label(sentences[i], w) for i, w in keys],
            group_split(groups, seed=seed), hidden=32, epochs=epochs, seed=seed, groups=groups,
            model=encoder.name,
        )  # fmt: skip
    return AddedLayers(results, encoder.name, seed)


def _side(sentence: Sentence, word: int) -> str:
    head = sentence.heads[word]
    return "root" if head == 0 else "left" if head - 1 < word else "right"


def _depth(sentence: Sentence, word: int) -> str:
    depth, place = 0, word
    while sentence.heads[place] != 0:
        place = sentence.heads[place] - 1
        depth += 1
    return str(min(depth, 4))
