"""The best layer without luck: chosen on one half of the items, judged on the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..geometry import LayerScores, TooFewError
from ..resampling import Estimate, percentile_interval, resampled_means


@dataclass(frozen=True, kw_only=True)
class HeldOut(Estimate):
    """An estimate at layers that were chosen on other items.

    Attributes:
        layers: the layer chosen on the first and on the second half.
    """

    layers: tuple[int, int] = (0, 0)


def held_out_best(scores: LayerScores, *, seed: int = 0) -> HeldOut:
    """The score of the best layer above the embeddings, chosen on one half of the items, judged
    on the other, and the other way round. Controls are read at the same layers; the baseline
    ``embedding_layer`` is layer 0.

    Raises:
        TooFewError: fewer than four items.
    """
    return _cross(
        scores,
        seed,
        choose=lambda curve: 1 + int(np.argmax(curve[1:])),
        read=lambda sums, layer: sums[:, layer],
        baselines=True,
    )


def rise_from_poorest(scores: LayerScores, *, seed: int = 0) -> HeldOut:
    """The score of the last layer minus that of the poorest layer between it and the embeddings,
    which is looked for on the other half of the items. Without that, noise alone would make a
    dip.

    Raises:
        TooFewError: fewer than four items, or fewer than two layers.
    """
    if scores.n_layers < 3:
        raise TooFewError(f"{scores.n_layers - 1} layers have none between")
    return _cross(
        scores,
        seed,
        choose=lambda curve: 1 + int(np.argmin(curve[1:-1])),
        read=lambda sums, layer: sums[:, -1] - sums[:, layer],
        baselines=False,
    )


def _cross(
    scores: LayerScores,
    seed: int,
    *,
    choose: Callable[[np.ndarray], int],
    read: Callable[[np.ndarray, int], np.ndarray],
    baselines: bool,
) -> HeldOut:
    if scores.n < 4:
        raise TooFewError(f"{scores.n} items are too few for two halves")
    order = np.random.default_rng(seed).permutation(scores.n)
    halves = order[: scores.n // 2], order[scores.n // 2 :]
    counts = np.asarray(scores.counts, float)
    kept = np.zeros(scores.n)
    layers, shares = [], []
    for known, judged in (halves, halves[::-1]):
        if not counts[known].sum():
            raise TooFewError("one half of the items counts nothing")
        layer = choose(scores.sums[known].sum(0) / counts[known].sum())
        kept[judged] = read(scores.sums[judged], layer)
        layers.append(layer)
        shares.append(counts[judged].sum() / counts.sum())
    value = float(kept.sum() / counts.sum())
    draws = resampled_means(kept, counts, seed=seed)
    beside = {}
    if baselines:
        beside = {
            name: float(np.dot(shares, np.asarray(curve)[layers]))
            for name, curve in scores.controls.items()
        }
        beside["embedding_layer"] = float(scores.values[0])
    difference = scores.unit in ("share", "cosine") and not baselines
    return HeldOut(
        value=value,
        unit=f"{scores.unit} difference" if difference else scores.unit,
        n=scores.n,
        model=scores.model,
        baselines=beside,
        seed=seed,
        interval=percentile_interval(draws, value),
        layers=(layers[0], layers[1]),
    )
