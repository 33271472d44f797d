"""Undo the cone: remove the mean and the strongest directions, or whiten.

Mu and Viswanath 2018 (arXiv 1702.01417, "all-but-the-top"); whitening as in Su et al. 2021
(arXiv 2103.15316).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..activations import Collected
from .rows import NAME, TooFewError, chunks


@dataclass(frozen=True, eq=False)
class Isotropizer:
    """An affine map of vectors, fitted once, applied to any vectors of the same layer.

    Attributes:
        mean: [D] taken away first.
        matrix: [D, E] multiplied from the right.
        explained: [D] share of variance along each principal direction, the strongest first.
        n: vectors it was fitted on.
    """

    mean: np.ndarray
    matrix: np.ndarray
    explained: np.ndarray
    n: int

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """[..., D] -> [..., E].

        Raises:
            ValueError: vectors of another width.
        """
        if vectors.shape[-1] != len(self.mean):
            raise ValueError(f"vectors are {vectors.shape[-1]} wide, not {len(self.mean)}")
        return (vectors - self.mean) @ self.matrix


def remove_components(vectors: np.ndarray | Iterable[np.ndarray], k: int) -> Isotropizer:
    """Take away the mean and the ``k`` strongest principal directions.

    Args:
        vectors: [N, D], or blocks of rows that are read once.
        k: 0 only centres. The paper takes about D / 100.

    Raises:
        ValueError: ``k`` below 0 or not below D.
        TooFewError: fewer than two vectors.
    """
    mean, covariance, n = _moments(vectors)
    width = len(mean)
    if not 0 <= k < width:
        raise ValueError(f"k is {k}, of {width} directions")
    values, directions = np.linalg.eigh(covariance)
    top = directions[:, ::-1][:, :k]
    return Isotropizer(mean, np.eye(width) - top @ top.T, _shares(values), n)


def whiten(
    vectors: np.ndarray | Iterable[np.ndarray], n_components: int | None = None
) -> Isotropizer:
    """Centre, turn to the principal directions and scale each to variance 1.

    Args:
        vectors: [N, D], or blocks of rows that are read once.
        n_components: keep this many of the strongest directions; by default all that carry more
            than 1e-10 of the strongest one's variance.

    Raises:
        ValueError: more components than directions with variance.
        TooFewError: fewer than two vectors.
    """
    mean, covariance, n = _moments(vectors)
    values, directions = np.linalg.eigh(covariance)
    values, directions = values[::-1], directions[:, ::-1]
    rank = int((values > 1e-10 * max(values[0], 1e-300)).sum())
    kept = rank if n_components is None else n_components
    if not 1 <= kept <= rank:
        raise ValueError(f"{n_components} components asked for, {rank} directions have variance")
    return Isotropizer(
        mean, directions[:, :kept] / np.sqrt(values[:kept]), _shares(values[::-1]), n
    )


def collected_blocks(
    collected: Collected, layer: int, *, size: int = 16384, name: str = NAME
) -> Iterable[np.ndarray]:
    """The rows of one layer in blocks, for the functions above, in bounded memory."""
    return chunks(collected, layer, size, name)


def _moments(vectors: np.ndarray | Iterable[np.ndarray]) -> tuple[np.ndarray, np.ndarray, int]:
    """Mean, covariance and number of rows; around the first block's mean, for precision."""
    blocks = [vectors] if isinstance(vectors, np.ndarray) else vectors
    n, total, products, origin = 0, 0.0, 0.0, None
    for block in blocks:
        wide = np.asarray(block, float)
        origin = wide.mean(0) if origin is None else origin
        wide = wide - origin
        n, total, products = n + len(wide), total + wide.sum(0), products + wide.T @ wide
    if n < 2:
        raise TooFewError(f"{n} vectors have no covariance")
    shift = total / n
    covariance = (products - n * np.outer(shift, shift)) / (n - 1)
    return origin + shift, covariance, n


def _shares(values: np.ndarray) -> np.ndarray:
    positive = np.maximum(values[::-1], 0)
    return positive / max(positive.sum(), 1e-300)
