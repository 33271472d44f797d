"""One question, four ways: does the model know where *ever* may stand?

Warstadt et al. 2019 (doi:10.18653/v1/D19-1286) put five methods to negative polarity items and got
different answers. Here every way judges the same minimal pairs, so that shares can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..activations import collect
from ..attention import attention_maps
from ..cloze import compare_contexts, compare_sentences, spell_mask
from ..encoder import Encoder
from ..probes import fit_linear
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli import MASK, MinimalPair
from ..words import WordList

WAYS = ("one mask", "whole sentence", "probe", "attention")
ITEM = "ever"
_PENALTY = 0.01


@dataclass(frozen=True, eq=False)
class FourWays:
    """Judgements of N pairs.

    Attributes:
        right: way -> [N] True where the good sentence scores higher.
        head: (layer, head) that the way of attention reads, chosen on other pairs.
        layer: that the probe reads.
        model: name of the encoder; seed: of halves and bootstrap.
    """

    right: dict[str, np.ndarray]
    head: tuple[int, int]
    layer: int
    model: str
    seed: int

    @property
    def n(self) -> int:
        return len(self.right[WAYS[0]])

    def share(self, way: str) -> Estimate:
        """Share of the pairs that a way gets right.

        Raises:
            KeyError: no such way.
        """
        hits = self.right[way].astype(float)
        value = float(hits.mean())
        draws = resampled_means(hits, np.ones(len(hits)), seed=self.seed)
        return Estimate(
            value=value, unit="share", n=len(hits), model=self.model, seed=self.seed,
            interval=percentile_interval(draws, value), baselines={"chance": 0.5},
        )  # fmt: skip

    @property
    def largest_gap(self) -> Estimate:
        """Best way minus worst way.

        The largest of several noisy gaps is too large. So the two ways are chosen on one half of
        the pairs and compared on the other, and the other way round; the value is the mean.
        """
        table = np.stack([self.right[way] for way in WAYS]).astype(float)
        order = np.random.default_rng(self.seed).permutation(self.n)
        halves = order[: self.n // 2], order[self.n // 2 :]
        gap = np.empty(self.n)
        for choose, test in (halves, halves[::-1]):
            shares = table[:, choose].mean(1)
            gap[test] = table[shares.argmax(), test] - table[shares.argmin(), test]
        value = float(gap.mean())
        draws = resampled_means(gap, np.ones(self.n), seed=self.seed)
        return Estimate(
            value=value, unit="share difference", n=self.n, model=self.model, seed=self.seed,
            interval=percentile_interval(draws, value), baselines={"no disagreement": 0.0},
        )  # fmt: skip


def four_ways(
    encoder: Encoder,
    train: Sequence[MinimalPair],
    test: Sequence[MinimalPair],
    *,
    seed: int = 0,
) -> FourWays:
    """Judge pairs at one mask, as whole sentences, by a probe, and by attention.

    * *one mask*: is *ever* likelier in the good context?
    * *whole sentence*: is the pseudo-log-likelihood of the good sentence higher?
    * *probe*: does a linear probe for acceptability, trained on ``train``, score it higher? It
      reads the mean vector of the middle layer.
    * *attention*: does *ever* look more at the first word, which licenses it in the good sentence
      only? One head is chosen on ``train``.

    Args:
        encoder: with a trained MLM head.
        train, test: pairs with *ever* whose good sentence begins with the licensor.

    Raises:
        ValueError: no pairs, or one without *ever*.
    """
    if not train or not test:
        raise ValueError("pairs to train on and to judge are needed")
    if odd := next((p for p in (*train, *test) if not _has_item(p)), None):
        raise ValueError(f"{ITEM!r} does not stand in both sentences of {odd.good!r}")
    layer = encoder.n_layers // 2
    frames = [[_frame(encoder, words) for words in (p.good_words, p.bad_words)] for p in test]
    good, bad = zip(*frames, strict=True)
    at_mask = compare_contexts(encoder, good, bad, [ITEM] * len(test))
    whole = compare_sentences(encoder, test)
    taught, asked = _looks(encoder, train), _looks(encoder, test)
    shares = (taught[:, 0] > taught[:, 1]).mean(0)
    head = tuple(int(i) for i in np.unravel_index(shares.argmax(), shares.shape))
    right = {
        "one mask": np.array(at_mask.margins) > 0,
        "whole sentence": np.array(whole.margins) > 0,
        "probe": _probe_margins(encoder, train, test, layer) > 0,
        "attention": (asked[:, 0] > asked[:, 1])[(slice(None), *head)],
    }
    return FourWays(right, head, layer, encoder.name, seed)


def _has_item(pair: MinimalPair) -> bool:
    return all(ITEM in words for words in (pair.good_words, pair.bad_words))


def _frame(encoder: Encoder, words: Sequence[str]) -> str:
    shown = [MASK if word == ITEM else word for word in words]
    return spell_mask(encoder, " ".join(shown[:-1]) + shown[-1])


def _texts(pairs: Sequence[MinimalPair]) -> list[WordList]:
    return [
        WordList(words, text) for pair in pairs
        for words, text in ((pair.good_words, pair.good), (pair.bad_words, pair.bad))
    ]  # fmt: skip


def _looks(encoder: Encoder, pairs: Sequence[MinimalPair]) -> np.ndarray:
    """[N, 2, L, H] attention from *ever* to the first word, in the good and the bad sentence."""
    found = np.empty((2 * len(pairs), encoder.n_layers, encoder.n_heads))
    words = [side for pair in pairs for side in (pair.good_words, pair.bad_words)]
    for maps in attention_maps(encoder, _texts(pairs)):
        found[maps.index] = maps.words[:, :, words[maps.index].index(ITEM), 0]
    return found.reshape(len(pairs), 2, *found.shape[1:])


def _probe_margins(
    encoder: Encoder, train: Sequence[MinimalPair], test: Sequence[MinimalPair], layer: int
) -> np.ndarray:
    """[N] score of the good sentence minus score of the bad one."""
    parts = [
        torch.from_numpy(
            collect(encoder, _texts(pairs), reduce="text_mean").arrays["hidden_states"][layer]
        )[None]
        for pairs in (train, test)
    ]
    labels = torch.tensor([1, 0] * len(train))
    logits = fit_linear(parts[0], labels, 2, l2=_PENALTY).logits(parts[1])[0]
    scores = (logits[:, 1] - logits[:, 0]).numpy().reshape(-1, 2)
    return scores[:, 0] - scores[:, 1]
