"""One vector for a whole text: [CLS] against other poolings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..activations import stream
from ..cloze import wilson_interval
from ..encoder import Encoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..words import Text
from .rows import TooFewError

POOLINGS = ("cls", "mean", "normalised_mean", "max", "last_four")


def pooled_texts(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    layer: int | None = None,
    poolings: Sequence[str] = POOLINGS,
    max_tokens: int = 4096,
) -> dict[str, np.ndarray]:
    """Vectors of texts, by several poolings in one pass.

    * ``cls``: the first piece;
    * ``mean``: mean over the pieces of the text, special tokens left out;
    * ``normalised_mean``: the same after scaling every piece to length 1;
    * ``max``: maximum over the pieces, dimension by dimension;
    * ``last_four``: means of this layer and the three below it, side by side.

    Args:
        encoder: any encoder.
        texts: N texts.
        layer: 0 .. L; the last one by default.
        poolings: which.
        max_tokens: padded pieces per batch.

    Returns:
        pooling -> [N, D], for ``last_four`` [N, 4 D] (fewer at the bottom), float32.

    Raises:
        KeyError: an unknown pooling.
        LayerIndexError: no such layer.
        TooFewError: no texts.
    """
    for name in poolings:
        if name not in POOLINGS:
            raise KeyError(f"unknown pooling {name!r}; known: {', '.join(POOLINGS)}")
    if not len(texts):
        raise TooFewError("no texts")
    top = encoder.n_layers if layer is None else layer
    encoder.check_layer(top, last=encoder.n_layers)
    found: dict[str, list] = {name: [None] * len(texts) for name in poolings}
    for cache in stream(encoder, texts, ["hidden_states"], max_tokens=max_tokens):
        layers = cache.layers["hidden_states"][max(0, top - 3) : top + 1]
        states, inside = layers[-1], cache.batch.is_text.to(layers[-1].device)[..., None]
        n = inside.sum(1)

        def mean(values, inside=inside, n=n):
            return (values * inside).sum(1) / n

        made = {
            "cls": lambda states=states: states[:, 0],
            "mean": lambda states=states, mean=mean: mean(states),
            "normalised_mean": lambda states=states, mean=mean: mean(
                torch.nn.functional.normalize(states, dim=-1)
            ),
            "max": lambda states=states, inside=inside: states.masked_fill(
                ~inside, -torch.inf
            ).amax(1),
            "last_four": lambda layers=layers, mean=mean: torch.cat([mean(x) for x in layers], -1),
        }
        for name in poolings:
            rows = made[name]().cpu().numpy()
            for index, row in zip(cache.batch.index, rows, strict=True):
                found[name][index] = row
    return {name: np.stack(rows) for name, rows in found.items()}


@dataclass(frozen=True, eq=False)
class PoolingComparison:
    """Accuracy of one logistic probe on every pooling.

    Attributes:
        accuracy: pooling -> cross-validated accuracy, with baseline ``majority``.
        chosen: the pooling that is best on one half of the texts.
        gain: its accuracy on the other half minus that of [CLS], paired.
        gains: the difference (-1, 0 or 1) at each text of that half.
    """

    accuracy: Mapping[str, Estimate]
    chosen: str
    gain: Estimate
    gains: np.ndarray


def compare_poolings(
    vectors: Mapping[str, np.ndarray],
    labels: Sequence,
    *,
    model: str,
    folds: int = 5,
    seed: int = 0,
) -> PoolingComparison:
    """Classify texts from each of their vectors, with the same probe and the same folds.

    Args:
        vectors: from :func:`pooled_texts`, ``"cls"`` among them.
        labels: [N] class of every text.
        model: the encoder's name.
        folds: of the cross-validation.
        seed: of folds and halves.

    Raises:
        KeyError: no ``"cls"``.
        ValueError: other numbers of vectors than labels.
        TooFewError: a class with fewer texts than folds, or only one class.
    """
    if "cls" not in vectors:
        raise KeyError("no vectors by pooling 'cls' to compare with")
    gold = np.asarray(labels)
    _, counts = np.unique(gold, return_counts=True)
    if len(counts) < 2 or counts.min() < folds:
        raise TooFewError(f"needs two classes of {folds} texts or more, got {counts.tolist()}")
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed)
    right = {}
    for name, values in vectors.items():
        if len(values) != len(gold):
            raise ValueError(f"{len(values)} vectors by {name!r} for {len(gold)} labels")
        probe = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
        right[name] = (cross_val_predict(probe, values, gold, cv=splits) == gold).astype(float)
    order = np.random.default_rng(seed).permutation(len(gold))
    choose, test = order[: len(gold) // 2], order[len(gold) // 2 :]
    chosen = max(right, key=lambda name: right[name][choose].mean())
    gains = right[chosen][test] - right["cls"][test]
    value = float(gains.mean())
    draws = resampled_means(gains, np.ones(len(gains)), seed=seed)
    gain = Estimate(
        value=value, unit="share difference", n=len(gains), model=model, seed=seed,
        interval=percentile_interval(draws, value),
    )  # fmt: skip
    accuracy = {
        name: Estimate(
            value=float(hits.mean()),
            unit="share",
            n=len(gold),
            model=model,
            baselines={"majority": float(counts.max() / len(gold))},
            seed=seed,
            interval=wilson_interval(float(hits.sum()), len(gold)),
        )
        for name, hits in right.items()
    }
    return PoolingComparison(accuracy, chosen, gain, gains)


def mean_gain(comparisons: Sequence[PoolingComparison], *, seed: int = 0) -> Estimate:
    """The mean of the gains of several tasks; every task weighs the same, and is resampled by
    itself.

    Raises:
        TooFewError: no comparisons.
    """
    if not len(comparisons):
        raise TooFewError("no comparisons")
    draws = [
        resampled_means(c.gains, np.ones(len(c.gains)), seed=seed + number)
        for number, c in enumerate(comparisons)
    ]
    value = float(np.mean([c.gain.value for c in comparisons]))
    return Estimate(
        value=value, unit="share difference", n=sum(c.gain.n for c in comparisons),
        model=comparisons[0].gain.model, seed=seed,
        interval=percentile_interval(np.mean(draws, axis=0), value),
    )  # fmt: skip
