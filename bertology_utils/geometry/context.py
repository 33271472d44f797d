"""How contextual are contextual vectors? (Ethayarajh 2019, arXiv 1909.00512)

All measures read a :class:`~bertology_utils.activations.Collected`, layer by layer and only the
rows they need, so that it may be far larger than memory.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..activations import Collected
from .rows import TooFewError, layers_of, unit_rows
from .scores import LayerScores


def random_pairs(text_index: np.ndarray, n_pairs: int, seed: int) -> np.ndarray:
    """[P, 2] rows from different texts; no row is used twice, so that pairs are independent.

    Fewer than ``n_pairs`` where there are not enough rows.

    Raises:
        TooFewError: not one such pair.
    """
    order = np.random.default_rng(seed).permutation(len(text_index))
    pairs = order[: len(order) // 2 * 2].reshape(-1, 2)
    pairs = pairs[text_index[pairs[:, 0]] != text_index[pairs[:, 1]]]
    if not len(pairs):  # few rows, mostly of one text, can be dealt so that no pair is left
        others = order[text_index[order] != text_index[order[:1]]][:1]
        pairs = np.column_stack([order[: len(others)], others])
    if not len(pairs[:n_pairs]):
        raise TooFewError("no two rows from different texts")
    return pairs[:n_pairs]


def anisotropy(collected: Collected, *, n_pairs: int = 5000, seed: int = 0) -> LayerScores:
    """Expected cosine of two random words from different texts, per layer.

    0 for isotropic vectors; near 1 where all vectors fill a narrow cone. The control
    ``isotropic`` is the same statistic of Gaussian noise of the same size: 0 but for chance.

    Args:
        collected: rows of words or pieces.
        n_pairs: at most this many pairs.
        seed: of the pairs and the noise.

    Raises:
        TooFewError: no two rows from different texts.
    """
    pairs = random_pairs(collected.text_index, n_pairs, seed)
    rows, back = np.unique(pairs, return_inverse=True)
    first, second = back.reshape(-1, 2).T
    cosines = []
    for vectors in layers_of(collected, rows):
        unit = unit_rows(vectors)
        cosines.append((unit[first] * unit[second]).sum(-1))
    width = vectors.shape[-1]
    noise = unit_rows(np.random.default_rng(seed).standard_normal((2 * len(pairs), width)))
    even = float((noise[::2] * noise[1::2]).sum(-1).mean())
    return LayerScores(
        "anisotropy",
        "cosine",
        np.stack(cosines, axis=1),
        np.ones(len(pairs)),
        collected.model,
        seed,
        {"isotropic": np.full(len(cosines), even)},
    )


def mean_pairwise_cosine(vectors: np.ndarray) -> float:
    """Mean cosine over all pairs of different rows, in closed form.

    With unit rows u_i: (|sum u_i|^2 - sum |u_i|^2) / (n (n - 1)), n D operations in place of n^2 D.

    Raises:
        TooFewError: fewer than two rows.
    """
    n = len(vectors)
    if n < 2:
        raise TooFewError("one vector has no pairs")
    unit = unit_rows(vectors)
    return float(((unit.sum(0) ** 2).sum() - (unit**2).sum()) / (n * (n - 1)))


def self_similarity(
    collected: Collected,
    words: Mapping[str, np.ndarray],
    *,
    n_pairs: int = 5000,
    seed: int = 0,
) -> LayerScores:
    """Mean cosine of a word with itself in other sentences, averaged over words.

    1 for static vectors; the more a layer depends on context, the lower. The control
    ``anisotropy`` is what any two words share: use ``.minus("anisotropy")`` to compare layers.

    Args:
        collected: rows of words.
        words: word -> rows, from :func:`~bertology_utils.geometry.occurrences`.
        n_pairs, seed: for :func:`anisotropy`.

    Raises:
        TooFewError: no words, or one with a single row.
    """
    sums = _per_word(collected, words, mean_pairwise_cosine)
    return LayerScores(
        "self-similarity",
        "cosine",
        sums,
        np.ones(len(sums)),
        collected.model,
        seed,
        {"anisotropy": anisotropy(collected, n_pairs=n_pairs, seed=seed).values},
    )


def intra_sentence_similarity(
    collected: Collected,
    *,
    max_texts: int = 1000,
    n_pairs: int = 5000,
    seed: int = 0,
) -> LayerScores:
    """Mean cosine of the words of a text with their mean vector, averaged over texts.

    Texts of one row are left out, since it is its own mean. Control ``anisotropy`` as in
    :func:`self_similarity`.

    Raises:
        TooFewError: no text with two rows.
    """
    _, starts, sizes = np.unique(collected.text_index, return_index=True, return_counts=True)
    usable = np.flatnonzero(sizes > 1)
    if not len(usable):
        raise TooFewError("no text with two rows")
    if len(usable) > max_texts:
        usable = np.sort(np.random.default_rng(seed).choice(usable, max_texts, replace=False))
    rows = np.concatenate([np.arange(starts[t], starts[t] + sizes[t]) for t in usable])
    bounds = np.concatenate([[0], np.cumsum(sizes[usable])])[:-1]
    owner = np.repeat(np.arange(len(usable)), sizes[usable])
    curve = []
    for vectors in layers_of(collected, rows):
        wide = vectors.astype(float)
        mean = unit_rows(np.add.reduceat(wide, bounds) / sizes[usable][:, None])
        cosine = (unit_rows(wide) * mean[owner]).sum(-1)
        curve.append(np.add.reduceat(cosine, bounds) / sizes[usable])
    return LayerScores(
        "intra-sentence similarity",
        "cosine",
        np.stack(curve, axis=1),
        np.ones(len(usable)),
        collected.model,
        seed,
        {"anisotropy": anisotropy(collected, n_pairs=n_pairs, seed=seed).values},
    )


def explained_by_first_component(vectors: np.ndarray) -> float:
    """s_1^2 / sum s_i^2 of the singular values of the rows, which are not centred.

    Raises:
        TooFewError: fewer than two rows, or nothing but zeros.
    """
    if len(vectors) < 2 or not np.any(vectors):
        raise TooFewError("needs two rows or more, not all of them zero")
    wide = np.asarray(vectors, float)
    # Few rows, many columns: the small Gram matrix has the same eigenvalues.
    gram = wide @ wide.T if wide.shape[0] <= wide.shape[1] else wide.T @ wide
    values = np.linalg.eigvalsh(gram)
    return float(values[-1] / values.sum())


def variance_along_first_component(vectors: np.ndarray) -> float:
    """Share of the variance *around the mean* along the first singular direction of the rows.

    What scikit-learn calls ``TruncatedSVD(...).explained_variance_ratio_[0]``. The rows' mean, the
    best static vector there is, is taken off before anything is measured; compare
    :func:`explained_by_first_component`, which keeps it. 0 where all rows are alike.

    Raises:
        TooFewError: fewer than two rows.
    """
    if len(vectors) < 2:
        raise TooFewError("needs two rows or more")
    wide = np.asarray(vectors, float)
    total = wide.var(0).sum()
    if total <= 0:
        return 0.0
    direction = np.linalg.svd(wide, full_matrices=False)[2][0]
    return float((wide @ direction).var() / total)


#: What "variance explained by one vector" may mean.
VARIANCES = {
    "with_mean": explained_by_first_component,
    "around_mean": variance_along_first_component,
}


def max_explainable_variance(
    collected: Collected,
    words: Mapping[str, np.ndarray],
    *,
    kind: str = "with_mean",
    seed: int = 0,
) -> LayerScores:
    """How much of a word's vectors one static vector could explain at best, averaged over words.

    The control ``random_words`` is the same for groups of as many occurrences of random words:
    ``.minus("random_words")`` is what is due to the word.

    Args:
        collected: rows of words.
        words: word -> rows, from :func:`~bertology_utils.geometry.occurrences`.
        kind: ``"with_mean"``, the paper's formula; ``"around_mean"``, what the code that was
            published with the paper computes.
        seed: of the random words.

    Raises:
        KeyError: unknown kind.
        TooFewError: no words, or one with a single row.
    """
    if kind not in VARIANCES:
        raise KeyError(f"unknown kind {kind!r}; known: {', '.join(VARIANCES)}")
    measure = VARIANCES[kind]
    sums = _per_word(collected, words, measure)
    draw = np.random.default_rng(seed)
    mixed = {
        word: np.sort(draw.choice(len(collected), len(rows), replace=False))
        for word, rows in words.items()
    }
    control = _per_word(collected, mixed, measure).mean(0)
    return LayerScores(
        "maximum explainable variance",
        "share",
        sums,
        np.ones(len(sums)),
        collected.model,
        seed,
        {"random_words": control},
    )


def _per_word(collected: Collected, words: Mapping[str, np.ndarray], measure) -> np.ndarray:
    """[W, S] a measure of the rows of every word in every layer."""
    if not words:
        raise TooFewError("no words")
    groups = list(words.values())
    # Each needed row is read once a layer, in the order of the file.
    rows, back = np.unique(np.concatenate(groups), return_inverse=True)
    cuts = np.cumsum([len(group) for group in groups])[:-1]
    places = np.split(back.ravel(), cuts)
    curve = []
    for vectors in layers_of(collected, rows):
        curve.append([measure(vectors[place]) for place in places])
    return np.array(curve).T
