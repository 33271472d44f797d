"""All heads together: a linear combination of their attention that predicts governors.

Clark et al. 2019 (section 5, the attention-only probe).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..encoder import Encoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli import Sentence
from ..words import WordList
from .maps import MAX_TOKENS, attention_maps
from .relations import MAX_OFFSET
from .scores import NothingToScoreError


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadCombination(Estimate):
    """UAS of a learned combination of heads on held-out sentences.

    ``baselines``: ``best_single_head`` and ``fixed_offset``, both chosen on the training sentences.

    Attributes:
        to_head: [L, H] weight of attention from a word to a candidate governor.
        from_head: [L, H] weight of attention from the candidate to the word.
        gain: UAS minus that of the best single head, paired over sentences.
    """

    to_head: np.ndarray
    from_head: np.ndarray
    gain: Estimate


def combine_heads(
    encoder: Encoder,
    train: Sequence[Sentence],
    test: Sequence[Sentence],
    *,
    l2: float = 1e-4,
    steps: int = 60,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> HeadCombination:
    """Fit p(j governs i) = softmax_j(sum_h w_h A_h[i, j] + u_h A_h[j, i]) and measure UAS.

    The root and punctuation have no governor to predict.

    Args:
        encoder: any encoder.
        train, test: sentences with trees, none in common.
        l2: weight decay on w and u.
        steps: L-BFGS iterations.
        seed: of the bootstrap over test sentences.
        max_tokens: pieces per batch.

    Raises:
        NothingToScoreError: no word with a governor in train or test.
        ValueError: a sentence is in both.
    """
    if shared := {s.text for s in train} & {s.text for s in test}:
        raise ValueError(f"{len(shared)} sentences are in train and test, one is {min(shared)!r}")
    fit, held = (_words(encoder, part, max_tokens) for part in (train, test))
    weights = _fit(fit, l2, steps)
    n_heads = weights.shape[0] // 2
    counts = np.array([len(item.places) for item in held])
    hits = _hits(held, lambda item: item.features @ weights[:, None])[:, 0]
    chosen = _hits(fit, lambda item: item.features).sum(0).argmax()
    single = _hits(held, lambda item: item.features[..., chosen, None])[:, 0]
    offsets = [o for o in range(-MAX_OFFSET, MAX_OFFSET + 1) if o]
    offset = max(offsets, key=lambda o: sum((i.governors - i.places == o).sum() for i in fit))
    by_offset = np.array([(i.governors - i.places == offset).sum() for i in held])
    total = int(counts.sum())

    def estimate(totals: np.ndarray, unit: str) -> dict:
        value = float(totals.sum() / total)
        interval = percentile_interval(resampled_means(totals, counts, seed=seed), value)
        return {
            "value": value, "unit": unit, "n": total, "model": encoder.name, "seed": seed,
            "interval": interval,
        }  # fmt: skip

    shape = (encoder.n_layers, encoder.n_heads)
    return HeadCombination(
        **estimate(hits, "share"),
        baselines={
            "best_single_head": float(single.sum() / total),
            "fixed_offset": float(by_offset.sum() / total),
        },
        to_head=weights[:n_heads].reshape(shape),
        from_head=weights[n_heads:].reshape(shape),
        gain=Estimate(**estimate(hits - single, "share difference")),
    )


@dataclass(frozen=True, eq=False)
class _Item:
    features: np.ndarray  #: [P, W, 2LH] for the P words that have a governor
    places: np.ndarray  #: [P] those words
    governors: np.ndarray  #: [P] their governors


def _words(encoder: Encoder, sentences: Sequence[Sentence], max_tokens: int) -> list[_Item]:
    items: list[_Item | None] = [None] * len(sentences)
    texts = [WordList(s.words, s.text) for s in sentences]
    for maps in attention_maps(encoder, texts, max_tokens=max_tokens):
        edges = [(d, h) for h, d, rel in sentences[maps.index].edges() if rel != "punct"]
        places, governors = np.array(edges, int).reshape(-1, 2).T
        flat = maps.words.reshape(-1, *maps.words.shape[-2:])
        both = np.concatenate([flat, flat.swapaxes(-1, -2)])
        items[maps.index] = _Item(np.moveaxis(both[:, places], 0, -1), places, governors)
    if not any(len(item.places) for item in items):
        raise NothingToScoreError(f"no word with a governor in {len(sentences)} sentences")
    return items


def _hits(items: list[_Item], score: Callable[[_Item], np.ndarray]) -> np.ndarray:
    """[N, K] governors found in every sentence by K scores [P, W, K] of the candidates."""
    hits = []
    for item in items:
        values = np.array(score(item), float)
        values[np.arange(len(item.places)), item.places] = -np.inf  # no word governs itself
        hits.append((values.argmax(1) == item.governors[:, None]).sum(0))
    return np.array(hits)


def _fit(items: list[_Item], l2: float, steps: int) -> np.ndarray:
    width = max(item.features.shape[1] for item in items)
    rows = sum(len(item.places) for item in items)
    x = torch.zeros(rows, width, items[0].features.shape[-1])
    blocked = torch.ones(rows, width, dtype=torch.bool)
    gold = torch.cat([torch.from_numpy(item.governors) for item in items])
    start = 0
    for item in items:
        stop, size = start + len(item.places), item.features.shape[1]
        x[start:stop, :size] = torch.from_numpy(item.features)
        blocked[start:stop, :size] = False
        blocked[torch.arange(start, stop), torch.from_numpy(item.places)] = True
        start = stop
    weights = torch.zeros(x.shape[-1], requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=steps, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        scores = (x @ weights).masked_fill(blocked, -1e9)
        loss = torch.nn.functional.cross_entropy(scores, gold) + l2 * weights.square().sum()
        loss.backward()
        return loss

    with torch.enable_grad():
        optimizer.step(closure)
    return weights.detach().numpy()
