"""One word, two senses: is each occurrence nearer to the others of its own sense?

The question of Wiedemann et al. 2019 (arXiv 1909.10430), asked of centroids instead of neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..activations import collect
from ..encoder import Encoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli.senses import SenseExample
from ..words import WordList


@dataclass(frozen=True, eq=False)
class SenseResult:
    """How well the senses of a word come apart, at every layer.

    Attributes:
        word: the word.
        senses: names of its senses.
        labels: [N] number of the sense of every occurrence.
        layers: one share an entry of the hidden states, 0 (input) to L, with interval.
        result: the last layer's share with the baselines ``chance``, ``embedding_layer`` and
            ``random_model``, for the ledger.
        similarities: [L + 1, N, S] cosine of every occurrence to every sense's centre.
        control: the same shares on random weights.
    """

    word: str
    senses: tuple[str, ...]
    labels: np.ndarray
    layers: tuple[Estimate, ...]
    result: Estimate
    similarities: np.ndarray
    control: tuple[Estimate, ...]


def occurrence_vectors(encoder: Encoder, examples: Sequence[SenseExample]) -> np.ndarray:
    """[L + 1, N, D] vectors of the tagged word in every example, mean over its pieces."""
    texts = [WordList(example.words, example.text) for example in examples]
    found = collect(encoder, texts, ["hidden_states"])
    rows = [found.rows_of(i).start + example.target for i, example in enumerate(examples)]
    return found.arrays["hidden_states"][:, rows]


def sense_similarities(
    vectors: np.ndarray, senses: np.ndarray, frames: np.ndarray
) -> np.ndarray:
    """[N, S] cosine of every vector to the centre of every sense.

    The centre of a vector's own sense leaves out all sentences made from the same frame, which
    differ from its own by a word or two; so that no sense has a smaller crowd than another, the
    frame of the same number is left out of the other senses' centres, too.

    Args:
        vectors: [N, D].
        senses: [N] numbers 0 .. S - 1.
        frames: [N] number of the frame inside its sense.

    Raises:
        ValueError: a sense is left without a vector.
    """
    vectors = np.asarray(vectors, dtype=float)
    similarities = np.empty((len(vectors), int(senses.max()) + 1))
    for frame in np.unique(frames):
        here = frames == frame
        for sense in range(similarities.shape[1]):
            crowd = vectors[(senses == sense) & ~here]
            if not len(crowd):
                raise ValueError(f"sense {sense} has no sentence outside frame {frame}")
            centre = crowd.mean(axis=0)
            norms = np.linalg.norm(vectors[here], axis=1) * np.linalg.norm(centre)
            similarities[here, sense] = vectors[here] @ centre / norms
    return similarities


def nearer_to_own(similarities: np.ndarray, senses: np.ndarray) -> np.ndarray:
    """[N] 1 where the own sense's centre is nearest, 0 where another is, shared among ties."""
    own = similarities[np.arange(len(senses)), senses]
    # Equal up to rounding counts as equal: identical vectors must not be told apart by noise.
    equal = np.isclose(similarities, own[:, None], rtol=0, atol=1e-6)
    above = (similarities > own[:, None]) & ~equal
    return np.where(above.any(axis=1), 0.0, 1.0 / equal.sum(axis=1))


def senses_apart(
    encoder: Encoder, control: Encoder, examples: Sequence[SenseExample], *, seed: int = 0
) -> SenseResult:
    """Share of occurrences nearer to the centre of their own sense, layer by layer.

    Args:
        encoder: any encoder.
        control: the same architecture with random weights.
        examples: occurrences of one word in at least two senses.
        seed: of the bootstrap over frames.

    Raises:
        ValueError: several words, or fewer than two senses.
    """
    words = {example.word for example in examples}
    names = tuple(dict.fromkeys(example.sense for example in examples))
    if len(words) != 1 or len(names) < 2:
        raise ValueError(f"need one word in two senses or more, got {sorted(words)} in {names}")
    labels = np.array([names.index(example.sense) for example in examples])
    frames = np.array([example.frame for example in examples])
    clusters = labels * (frames.max() + 1) + frames
    measured = []
    for model in (encoder, control):
        vectors = occurrence_vectors(model, examples)
        similarities = np.stack([sense_similarities(v, labels, frames) for v in vectors])
        shares = tuple(
            _share(nearer_to_own(s, labels), clusters, model.name, seed) for s in similarities
        )
        measured.append((similarities, shares))
    (similarities, layers), (_, blank) = measured
    result = layers[-1].with_baselines(
        chance=1 / len(names), embedding_layer=layers[0], random_model=blank[-1]
    )
    return SenseResult(words.pop(), names, labels, layers, result, similarities, blank)


def _share(right: np.ndarray, clusters: np.ndarray, model: str, seed: int) -> Estimate:
    numbers = np.unique(clusters)
    draws = resampled_means(
        np.array([right[clusters == c].sum() for c in numbers]),
        np.array([(clusters == c).sum() for c in numbers]),
        seed=seed,
    )
    value = float(right.mean())
    return Estimate(
        value=value,
        unit="share",
        n=len(right),
        model=model,
        seed=seed,
        interval=percentile_interval(draws, value),
    )
