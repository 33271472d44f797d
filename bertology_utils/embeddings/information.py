"""The information that a word and its context share, as static vectors see it.

Kong et al. 2020 (arXiv 1910.08350): skip-gram, masked prediction and others maximise InfoNCE.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..encoder import Encoder
from ..geometry import TooFewError, hidden_positions, unit_rows
from ..resampling import Estimate, percentile_interval, resampled_means
from ..words import Text, align_all

#: Factors of the cosine that are tried on the other half of the texts.
SCALES = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


def information_bound(scores: np.ndarray) -> np.ndarray:
    """[N] gains whose mean is the InfoNCE lower bound, in nats; at most log N.

    Args:
        scores: [N, N] log f(context, word); the own word of a context is on the diagonal.
    """
    level = np.logaddexp.reduce(scores, axis=1) - np.log(len(scores))
    return scores.diagonal() - level


def static_information(encoder: Encoder, texts: Sequence[Text], *, seed: int = 0) -> Estimate:
    """The bound of :func:`~bertology_utils.geometry.context_information`, for the same hidden
    pieces, with nothing but the input embeddings.

    f(c, w) = exp(scale * cosine) of the piece's vector and the mean vector of all other pieces of
    its text, after centring on the texts' pieces. The scale is chosen on one half of the texts for
    the other.

    Raises:
        TooFewError: fewer than four texts.
    """
    if len(texts) < 4:
        raise TooFewError(f"{len(texts)} texts are too few for two halves")
    table = encoder.embeddings.token.weight.detach().cpu().float().numpy().astype(float)
    pieces, contexts = [], []
    for row in align_all(encoder, texts):
        (hidden,) = hidden_positions(row, 0.0, seed)
        inside = np.flatnonzero(~np.array(row.is_special))
        ids = np.array(row.input_ids)
        pieces.append(ids[hidden])
        contexts.append(ids[inside[inside != hidden]])
    centre = table[np.concatenate([*contexts, pieces])].mean(0)
    words = unit_rows(table[pieces] - centre)
    means = [table[c].mean(0) - centre if len(c) else np.zeros_like(centre) for c in contexts]
    cosines = unit_rows(np.stack(means)) @ words.T
    gains = np.stack([information_bound(scale * cosines) for scale in SCALES])  # [scales, N]
    order = np.random.default_rng(seed).permutation(len(texts))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    kept = np.zeros(len(texts))
    control = np.zeros(len(texts))
    strange = np.roll(np.arange(len(texts)), 1)
    for known, judged in (halves, halves[::-1]):
        scale = SCALES[int(gains[:, known].mean(1).argmax())]
        kept[judged] = gains[SCALES.index(scale), judged]
        level = np.logaddexp.reduce(scale * cosines[judged], axis=1) - np.log(len(texts))
        control[judged] = scale * cosines[judged, strange[judged]] - level
    value = float(kept.mean())
    return Estimate(
        value=value, unit="nats", n=len(texts), model=encoder.name, seed=seed,
        baselines={"shuffled": float(control.mean())},
        interval=percentile_interval(resampled_means(kept, np.ones(len(kept)), seed=seed), value),
    )  # fmt: skip
