"""One score a layer, and what is read off such a curve: where it peaks, how it changes with depth.

A curve is a :class:`bertology_utils.geometry.LayerScores`: item by item, so that everything read
off it carries an interval. Depths are relative: 0 is the embedding output, 1 the last layer.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..geometry import LayerScores
from ..probes import ProbeResult, Split, probe_layers
from ..resampling import Estimate, percentile_interval
from ..semantics.probing import components
from ..syntax import LayerScores as SentenceScores


def scores_of(
    results: Sequence[ProbeResult], groups: Sequence[Hashable], seed: int = 0
) -> LayerScores:
    """The accuracies of one probe a layer as a curve, with the control ``majority``.

    Args:
        results: one probe a layer.
        groups: sentence of every test item, in the order of the test part.
        seed: of the bootstrap over sentences.

    Raises:
        ValueError: not one group for each test item.
    """
    if any(len(r.correct) != len(groups) for r in results):
        raise ValueError(f"{len(groups)} groups for {len(results[0].correct)} test items")
    codes = _codes(groups)
    sums = np.stack([np.bincount(codes, weights=r.correct) for r in results], axis=1)
    majority = np.full(len(results), results[0].majority)
    return LayerScores(
        "probe accuracy", "share", sums, np.bincount(codes), results[0].model, seed,
        {"majority": majority},
    )  # fmt: skip


def curve_of(scores: SentenceScores, **controls: float) -> LayerScores:
    """Shares kept sentence by sentence, such as those of a structural probe, as a curve.

    Args:
        scores: [S, M] hits and counts; the counts must be the same in every layer.
        controls: name -> a number that every layer is compared with.

    Raises:
        ValueError: counts that differ between layers.
    """
    if (scores.counts != scores.counts[0]).any():
        raise ValueError("the layers were not asked the same number of questions")
    levels = {name: np.full(len(scores.hits), value) for name, value in controls.items()}
    return LayerScores(
        "score", scores.unit, scores.hits.T.copy(), scores.counts[0], scores.model, scores.seed,
        levels,
    )  # fmt: skip


def cross_probe(
    features: np.ndarray,
    labels: Sequence[Hashable],
    groups: Sequence[Hashable],
    *,
    folds: int = 4,
    sides: int = 1,
    width: int = 64,
    seed: int = 0,
    model: str,
) -> LayerScores:
    """Ridge probes in cross-validation over whole groups, so that every item is tested once.

    Where there are two sides a, b, each is reduced to its first ``width`` principal components
    (found on all rows: they need no labels), and the probe gets [a, b, a * b].

    Args:
        features: [S, N, D * sides].
        labels: [N]; groups: [N], never on both sides of a split.
        folds, width: see above; sides: 1 or 2.
        seed: of folds and bootstrap.
        model: name for the result.

    Raises:
        ValueError: fewer groups than folds, or fewer than three folds (one develops, one tests);
            neither one side nor two.
    """
    if sides not in (1, 2):
        raise ValueError(f"{sides} sides; one or two are handled")
    codes, part = _codes(groups), folds_of(groups, folds, seed)
    if sides == 2:
        every = np.arange(len(codes))
        a, b = (components(side, every, width) for side in np.split(features, 2, axis=2))
        features = np.concatenate([a, b, a * b], axis=2)
    right = np.zeros((features.shape[0], len(codes)))
    usual = 0.0
    for fold in range(folds):
        dev = (fold + 1) % folds
        split = Split(
            np.flatnonzero((part != fold) & (part != dev)), np.flatnonzero(part == dev),
            np.flatnonzero(part == fold), seed,
        )  # fmt: skip
        found = probe_layers(features, labels, split, kind="ridge", seed=seed, model=model)
        right[:, split.test] = np.stack([result.correct for result in found])
        usual += found[0].majority * len(split.test) / len(codes)
    sums = np.stack([np.bincount(codes, weights=layer) for layer in right], axis=1)
    return LayerScores(
        "probe accuracy", "share", sums, np.bincount(codes), model, seed,
        {"majority": np.full(len(right), usual)},
    )  # fmt: skip


def folds_of(groups: Sequence[Hashable], folds: int = 4, seed: int = 0) -> np.ndarray:
    """[N] the fold of every item; groups stay whole.

    Raises:
        ValueError: fewer than three folds, or fewer groups than folds.
    """
    codes = _codes(groups)
    if not 3 <= folds <= codes.max() + 1:
        raise ValueError(f"{folds} folds of {codes.max() + 1} groups; need 3 folds or more")
    return np.random.default_rng(seed).permutation(codes.max() + 1)[codes] % folds


def peak(curve: LayerScores) -> Estimate:
    """Relative depth of the best layer; of equals, the lowest.

    The interval resamples test items with the probes as they are: it says how well the peak is
    determined by these items, not how it would move with other training data.
    """
    return replace(curve.summary(peak_depth), unit="relative depth")


def mean_peak(curves: Mapping[str, LayerScores]) -> Estimate:
    """Mean relative depth of the peaks of several tasks."""
    return over_tasks(
        curves, lambda values: np.mean([peak_depth(v) for v in values], axis=0), "relative depth"
    )


def share_at_last(curves: Mapping[str, LayerScores]) -> Estimate:
    """Share of the tasks whose best layer is the last one."""
    return over_tasks(
        curves, lambda values: np.mean([peak_depth(v) == 1 for v in values], axis=0), "share"
    )


def upper_minus_lower(curve: LayerScores) -> Estimate:
    """Mean over the top third of the layers minus over the bottom third, layers 1 .. L."""
    bottom, top = thirds(curve.n_layers - 1)
    found = curve.summary(
        lambda values: values[..., top].mean(-1) - values[..., bottom].mean(-1)
    )
    unit = f"{curve.unit} difference" if curve.unit in ("share", "cosine") else curve.unit
    return replace(found, unit=unit)


def thirds(n_layers: int) -> tuple[list[int], list[int]]:
    """Numbers of the layers of the bottom and of the top third, at least one each.

    Raises:
        ValueError: fewer than two layers.
    """
    if n_layers < 2:
        raise ValueError(f"{n_layers} layer has no bottom and top")
    size = max(1, n_layers // 3)
    return list(range(1, size + 1)), list(range(n_layers - size + 1, n_layers + 1))


def peak_depth(values: np.ndarray) -> np.ndarray:
    """[..., S] -> [...] relative depth of the largest entry."""
    return np.argmax(values, axis=-1) / (values.shape[-1] - 1)


def over_tasks(curves: Mapping[str, LayerScores], function, unit: str) -> Estimate:
    """A number read off several curves at once; tasks are resampled each on its own.

    Args:
        curves: task -> curve.
        function: maps a list of [..., S] to [...].
        unit: of the result.

    Raises:
        ValueError: no curves.
    """
    if not curves:
        raise ValueError("no tasks")
    listed = list(curves.values())
    value = float(function([curve.values for curve in listed]))
    # Each task draws its own sentences: curves of equal seeds would be resampled alike.
    draws = [replace(c, seed=c.seed + 1000 * k).draws for k, c in enumerate(listed)]
    return Estimate(
        value=value, unit=unit, n=sum(curve.n for curve in listed), model=listed[0].model,
        seed=listed[0].seed, interval=percentile_interval(function(draws), value),
    )  # fmt: skip


def _codes(groups: Sequence[Hashable]) -> np.ndarray:
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(group, len(numbers)) for group in groups])
