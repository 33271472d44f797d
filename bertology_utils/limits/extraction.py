"""Two ways of drawing a tree out of attention, and which of two models looks better under each.

Htut et al. 2019 (arXiv 1911.12246) compare models by the strongest attention of every word (MAX)
and by maximum spanning trees (MST).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..attention import HeadScores, attention_maps, tree_scores
from ..encoder import Encoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli import Sentence
from ..words import WordList
from .estimates import magnitude

MAX, MST = "strongest attention", "spanning tree"
WAYS = (MAX, MST)


def max_scores(encoder: Encoder, sentences: Sequence[Sentence], *, seed: int = 0) -> HeadScores:
    """UUAS of tying every word to the word it attends to most, head by head.

    Share of gold edges, taken without direction, that are among the ties. Punctuation is left out
    of both; a word's attention to itself does not count.

    Raises:
        NothingToScoreError: no sentence with two words that are not punctuation.
    """
    texts = [WordList(s.words, s.text) for s in sentences]
    sums = np.zeros((len(texts), encoder.n_layers, encoder.n_heads))
    counts, chain = np.zeros(len(texts)), np.zeros((len(texts), 1))
    for maps in attention_maps(encoder, texts):
        sentence = sentences[maps.index]
        kept = [i for i, relation in enumerate(sentence.deprels) if relation != "punct"]
        new = {word: place for place, word in enumerate(kept)}
        edges = [(new[h], new[d]) for h, d, _ in sentence.edges() if h in new and d in new]
        if not edges:
            continue
        words = maps.words[..., kept, :][..., kept].copy()
        own = np.arange(len(kept))
        words[..., own, own] = -1.0
        strongest = words.argmax(-1)
        for head, dependent in edges:
            sums[maps.index] += (strongest[..., dependent] == head) | (
                strongest[..., head] == dependent
            )
            chain[maps.index] += abs(head - dependent) == 1
        counts[maps.index] = len(edges)
    controls = {"right_branching": chain}
    return HeadScores("UUAS of ties", "share", sums, counts, encoder.name, seed, controls)


@dataclass(frozen=True, eq=False)
class Extractions:
    """Two models under two ways; the best head of each is chosen on one half of the sentences.

    Attributes:
        scores: way -> (first model, second model).
        names: of the two models.
        seed: of halves and bootstrap.
    """

    scores: dict[str, tuple[HeadScores, HeadScores]]
    names: tuple[str, str]
    seed: int

    @property
    def interaction(self) -> Estimate:
        """(second - first model) under MAX minus the same under MST: how much the way decides."""
        totals, test, n = [], None, 0
        for way in WAYS:
            for scores in self.scores[way]:
                used = np.flatnonzero(scores.counts)
                order = np.random.default_rng(self.seed).permutation(used)
                test = order[len(used) // 2 :]
                best = scores.best
                n = best.n
                totals.append(scores.sums[test, best.layer, best.head])
        counts = self.scores[MAX][0].counts[test]
        a_max, b_max, a_mst, b_mst = totals
        gaps = (b_max - a_max) - (b_mst - a_mst)
        value = float(gaps.sum() / counts.sum())
        draws = resampled_means(gaps, counts, seed=self.seed)
        return Estimate(
            value=value, unit="share difference", n=n, model=self.scores[MAX][0].model,
            seed=self.seed, interval=percentile_interval(draws, value),
            baselines={"no interaction": 0.0},
        )  # fmt: skip

    @property
    def size(self) -> Estimate:
        """The interaction without its sign."""
        return magnitude(self.interaction)

    @property
    def winners(self) -> dict[str, str]:
        """Way -> name of the model whose best head scores higher."""
        return {
            way: self.names[int(pair[1].best.value > pair[0].best.value)]
            for way, pair in self.scores.items()
        }


def extractions(
    first: Encoder,
    second: Encoder,
    sentences: Sequence[Sentence],
    *,
    names: tuple[str, str],
    seed: int = 0,
) -> Extractions:
    """Score every head of two models in both ways on the same sentences.

    Raises:
        NothingToScoreError: no sentence with two words that are not punctuation.
    """
    listed = list(sentences)
    return Extractions(
        {
            MAX: (max_scores(first, listed, seed=seed), max_scores(second, listed, seed=seed)),
            MST: (
                tree_scores(first, listed, decoder="undirected", seed=seed),
                tree_scores(second, listed, decoder="undirected", seed=seed),
            ),
        },
        names,
        seed,
    )
