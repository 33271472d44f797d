"""The information that a word and its context share, as static vectors see it.

Kong et al. 2020 (arXiv 1910.08350): skip-gram, masked prediction and others maximise InfoNCE.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..geometry import TooFewError
from ..resampling import Estimate, percentile_interval, resampled_means
from .students import SkipGram

#: Factors of the product that are tried on the other half of the sentences.
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)


def information_bound(scores: np.ndarray) -> np.ndarray:
    """[N] gains whose mean is the InfoNCE lower bound, in nats; at most log N.

    Args:
        scores: [N, N] log f(context, word); the own word of a context is on the diagonal.
    """
    level = np.logaddexp.reduce(scores, axis=1) - np.log(len(scores))
    return scores.diagonal() - level


def static_information(
    student: SkipGram, sentences: Sequence[Sequence[str]], *, window: int = 3, seed: int = 0
) -> Estimate:
    """The bound of :func:`~bertology_utils.geometry.context_information` for static vectors.

    One word is drawn from each sentence, among those with a vector. f(c, w) is exp(scale * product)
    of the word's vector and the mean of its neighbours' vectors; the scale is chosen on one half of
    the sentences for the other.

    Args:
        student: trained without a teacher.
        sentences: words of sentences that it was not trained on.
        window: neighbours on either side.
        seed: of words and halves.

    Raises:
        ValueError: a student with a teacher has no vectors of neighbours.
        TooFewError: fewer than four sentences with a word and a neighbour.
    """
    if student.neighbours is None:
        raise ValueError(f"{student.source}: neighbours have no vectors of their own")
    place = {word: i for i, word in enumerate(student.words)}
    words, contexts = [], []
    for number, sentence in enumerate(sentences):
        ids = [place.get(word.lower(), -1) for word in sentence]
        around = {
            i: [ids[j] for j in range(max(0, i - window), min(len(ids), i + window + 1))
                if j != i and ids[j] >= 0]
            for i in range(len(ids)) if ids[i] >= 0
        }  # fmt: skip
        usable = [i for i, near in around.items() if near]
        if usable:
            drawn = int(np.random.default_rng([seed, number]).choice(usable))
            words.append(student.vectors[ids[drawn]])
            contexts.append(student.neighbours[around[drawn]].mean(0))
    n = len(words)
    if n < 4:
        raise TooFewError(f"{n} sentences with a known word and neighbour are too few")
    products = np.stack(contexts).astype(float) @ np.stack(words).T
    gains = np.stack([information_bound(scale * products) for scale in SCALES])  # [scales, N]
    order = np.random.default_rng(seed).permutation(n)
    halves = order[: n // 2], order[n // 2 :]
    kept, control = np.zeros(n), np.zeros(n)
    strange = np.roll(np.arange(n), 1)
    for known, judged in (halves, halves[::-1]):
        best = int(gains[:, known].mean(1).argmax())
        kept[judged] = gains[best, judged]
        level = np.logaddexp.reduce(SCALES[best] * products[judged], axis=1) - np.log(n)
        control[judged] = SCALES[best] * products[judged, strange[judged]] - level
    value = float(kept.mean())
    return Estimate(
        value=value, unit="nats", n=n, model=student.source, seed=seed,
        baselines={"shuffled": float(control.mean())},
        interval=percentile_interval(resampled_means(kept, np.ones(n), seed=seed), value),
    )  # fmt: skip
