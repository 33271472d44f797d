"""How alike are layers, within a model and between models? CKA, RSA, PWCCA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from ..activations import Collected
from ..resampling import Estimate
from .rows import TooFewError, layer_rows, layers_of, unit_rows
from .scores import LayerScores


def linear_cka(x: np.ndarray, y: np.ndarray) -> float:
    """Linear centred kernel alignment (Kornblith et al. 2019), 0 to 1.

    Invariant to rotations and a common scale. Grows towards 1 by chance where N is not much larger
    than D: read it beside shuffled rows.

    Args:
        x, y: [N, D] and [N, E]; row i of both stands for the same item.

    Raises:
        ValueError: different numbers of rows.
        TooFewError: fewer than two rows, or all rows alike.
    """
    _same_rows(x, y)
    return _cka_pair(_cka_prepare(x), _cka_prepare(y))


def rsa(x: np.ndarray, y: np.ndarray) -> float:
    """Representational similarity analysis (Kriegeskorte et al. 2008): Spearman's correlation of
    the cosines between all pairs of rows, -1 to 1. Costs N^2; a few hundred rows are enough.

    Raises:
        ValueError: different numbers of rows.
        TooFewError: fewer than three rows, or cosines that do not vary.
    """
    _same_rows(x, y)
    return _rsa_pair(_rsa_prepare(x), _rsa_prepare(y))


def pwcca(x: np.ndarray, y: np.ndarray) -> float:
    """Projection-weighted canonical correlation (Morcos et al. 2018), 0 to 1.

    Correlations are weighted by how much of ``x`` their directions carry, hence not symmetric.
    Invariant to any invertible linear map of ``y``; needs far more rows than columns. Directions
    with less than :data:`TOLERANCE` of the largest singular value are dropped.

    Args:
        x, y: [N, D] and [N, E].

    Raises:
        ValueError: different numbers of rows.
        TooFewError: not more rows than columns, or all rows alike.
    """
    _same_rows(x, y)
    return _pwcca_pair(_pwcca_prepare(x), _pwcca_prepare(y))


#: Smallest singular value that PWCCA keeps, as a share of the largest.
TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class _Prepared:
    """What a method needs of one layer, computed once for all the pairs it is part of."""

    rows: np.ndarray  #: first dimension: rows of the data (RSA: both dimensions)
    extra: np.ndarray | float


def _cka_prepare(x: np.ndarray) -> _Prepared:
    x = _centred(x)
    gram = x @ x.T if len(x) < x.shape[1] else x.T @ x
    norm = np.linalg.norm(gram)
    if norm == 0:
        raise TooFewError("all rows are alike")
    return _Prepared(x, float(norm))


def _cka_pair(x: _Prepared, y: _Prepared) -> float:
    return float(np.linalg.norm(x.rows.T @ y.rows) ** 2 / (x.extra * y.extra))


def _rsa_prepare(x: np.ndarray) -> _Prepared:
    if len(x) < 3:
        raise TooFewError(f"{len(x)} rows are too few to rank their pairs")
    unit = unit_rows(x)
    upper = np.triu_indices(len(x), 1)
    cosines = (unit @ unit.T)[upper]
    if np.ptp(cosines) == 0:
        raise TooFewError("all pairs of rows are equally similar")
    ranks = rankdata(cosines)
    ranks -= ranks.mean()
    square = np.zeros((len(x), len(x)))
    square[upper] = ranks / np.linalg.norm(ranks)
    return _Prepared(square + square.T, 0.0)


def _rsa_pair(x: _Prepared, y: _Prepared) -> float:
    return float((x.rows * y.rows).sum() / 2)


def _pwcca_prepare(x: np.ndarray) -> _Prepared:
    if len(x) <= x.shape[1]:
        raise TooFewError(f"{len(x)} rows for {x.shape[1]} columns")
    x = _centred(x)
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    if s[0] == 0:
        raise TooFewError("all rows are alike")
    basis = u[:, s > TOLERANCE * s[0]]
    return _Prepared(basis, basis.T @ x)


def _pwcca_pair(x: _Prepared, y: _Prepared) -> float:
    left, correlations, _ = np.linalg.svd(x.rows.T @ y.rows, full_matrices=False)
    weights = np.abs(left.T @ x.extra).sum(1)
    return float((weights * np.minimum(correlations, 1)).sum() / weights.sum())


#: name -> (prepare one layer, compare two prepared layers)
METHODS: dict[str, tuple[Callable, Callable]] = {
    "cka": (_cka_prepare, _cka_pair),
    "rsa": (_rsa_prepare, _rsa_pair),
    "pwcca": (_pwcca_prepare, _pwcca_pair),
}


@dataclass(frozen=True, eq=False)
class LayerSimilarity:
    """Similarity of every layer of one model with every layer of another (or of the same).

    Attributes:
        matrix: [S, S'].
        shuffled: [S, S'] the same with the rows of the second model shuffled: what chance and the
            number of rows give.
        method: a key of :data:`METHODS`.
        n: rows compared.
        models: names of the two.
        seed: of the choice of rows and the shuffling.
    """

    matrix: np.ndarray
    shuffled: np.ndarray
    method: str
    n: int
    models: tuple[str, str]
    seed: int

    def at(self, layer: int, other: int) -> Estimate:
        """One pair of layers beside the baseline ``shuffled``."""
        return self._estimate(self.matrix[layer, other], self.shuffled[layer, other])

    def same_depth(self) -> Estimate:
        """Mean over layers of equal number.

        Raises:
            ValueError: the models differ in depth.
        """
        if self.matrix.shape[0] != self.matrix.shape[1]:
            raise ValueError(f"{self.models[0]!r} and {self.models[1]!r} differ in depth")
        return self._estimate(self.matrix.diagonal().mean(), self.shuffled.diagonal().mean())

    def _estimate(self, value: float, control: float) -> Estimate:
        names = self.models[0] if self.models[0] == self.models[1] else " and ".join(self.models)
        return Estimate(
            value=float(value),
            unit="correlation" if self.method == "rsa" else "share",
            n=self.n,
            model=names,
            baselines={"shuffled": float(control)},
            seed=self.seed,
        )


def layer_similarity(
    first: Collected,
    second: Collected,
    *,
    method: str = "cka",
    max_rows: int = 2000,
    seed: int = 0,
) -> LayerSimilarity:
    """Compare all layers of two collections of the same rows.

    Args:
        first, second: collections over the same texts with the same kind of rows.
        method: ``"cka"``, ``"rsa"`` or ``"pwcca"``. RSA costs the square of the rows.
        max_rows: at most this many rows, drawn at random.
        seed: of the draw and the shuffling.

    Raises:
        KeyError: unknown method.
        ValueError: the rows of the two are not the same.
        TooFewError: too few rows for the method.
    """
    if method not in METHODS:
        raise KeyError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
    same = first.rows == second.rows and np.array_equal(first.text_index, second.text_index)
    if not same or not np.array_equal(first.position, second.position):
        raise ValueError("the two collections are not of the same rows")
    draw = np.random.default_rng(seed)
    n = min(max_rows, len(first))
    rows = np.sort(draw.permutation(len(first))[:n])
    mix = draw.permutation(n)
    prepare, pair = METHODS[method]
    ours = [prepare(vectors) for vectors in layers_of(first, rows)]
    theirs = ours if second is first else [prepare(v) for v in layers_of(second, rows)]
    # Shuffling rows changes none of the quantities prepared, only their order.
    both = np.ix_(mix, mix) if method == "rsa" else mix
    mixed = [_Prepared(layer.rows[both], layer.extra) for layer in theirs]
    return LayerSimilarity(
        np.array([[pair(x, y) for y in theirs] for x in ours]),
        np.array([[pair(x, y) for y in mixed] for x in ours]),
        method,
        n,
        (first.model, second.model),
        seed,
    )


def layer_change(
    before: Collected, after: Collected, *, max_rows: int = 5000, seed: int = 0
) -> LayerScores:
    """Cosine distance of the same row in two models, such as before and after fine-tuning.

    Items are texts. Raises as :func:`layer_similarity`.
    """
    if not np.array_equal(before.text_index, after.text_index) or before.rows != after.rows:
        raise ValueError("the two collections are not of the same rows")
    take = np.random.default_rng(seed).permutation(len(before))[:max_rows]
    rows = np.sort(take)
    _, group = np.unique(before.text_index[rows], return_inverse=True)
    columns = []
    for layer in range(len(before.arrays["hidden_states"])):
        a, b = (unit_rows(layer_rows(c, layer, rows)) for c in (before, after))
        columns.append(np.bincount(group, weights=1 - (a * b).sum(-1)))
    return LayerScores(
        "change of vectors", "cosine difference", np.stack(columns, 1), np.bincount(group),
        after.model, seed,
    )  # fmt: skip


def similarity_to_input(
    collected: Collected, *, max_rows: int = 5000, seed: int = 0
) -> LayerScores:
    """Cosine of each row with its own embedding-layer vector, per layer; items are texts."""
    rows = np.sort(np.random.default_rng(seed).permutation(len(collected))[:max_rows])
    _, group = np.unique(collected.text_index[rows], return_inverse=True)
    start = unit_rows(layer_rows(collected, 0, rows))
    columns = []
    for layer in range(len(collected.arrays["hidden_states"])):
        cosine = (unit_rows(layer_rows(collected, layer, rows)) * start).sum(-1)
        columns.append(np.bincount(group, weights=cosine))
    return LayerScores(
        "similarity to the input", "cosine", np.stack(columns, 1), np.bincount(group),
        collected.model, seed,
    )  # fmt: skip


def _same_rows(x: np.ndarray, y: np.ndarray) -> None:
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
        raise ValueError(f"need the same rows twice, got {x.shape} and {y.shape}")


def _centred(x: np.ndarray) -> np.ndarray:
    if len(x) < 2:
        raise TooFewError(f"{len(x)} rows are too few")
    wide = np.asarray(x, float)
    return wide - wide.mean(0)
