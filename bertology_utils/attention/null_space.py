"""Attention that makes no difference (Brunner et al. 2020, arXiv 1908.04211).

A head's output is A V with V [T, K]. If there are more pieces than T = K + 1, then rows of A can
change in directions that V cannot see: the weights are not determined by what the head does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space, orth
from scipy.optimize import linprog


def effective_attention(pattern: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The part of attention that reaches the output: the rest is projected out.

    Args:
        pattern: [T, T] of one head.
        values: [T, K] its value vectors.

    Returns:
        [T, T] with the same product with ``values``; rows need not sum to 1 nor be positive.

    Raises:
        ValueError: the shapes do not fit.
    """
    _check(pattern, values)
    basis = orth(values.astype(float))
    return pattern @ basis @ basis.T


@dataclass(frozen=True, eq=False)
class AlternativeAttention:
    """Another attention map with the same output.

    Attributes:
        pattern: [T, T] non-negative, rows sum to 1.
        moved: [T] share of every row's attention that lies elsewhere than before (0 to 1).
        output_change: largest absolute difference between the two outputs.
        n_free: dimensions in which a row could move, were it not for the signs.
    """

    pattern: np.ndarray
    moved: np.ndarray
    output_change: float
    n_free: int

    @property
    def value(self) -> float:
        """Mean share of attention moved."""
        return float(self.moved.mean())


def alternative_attention(
    pattern: np.ndarray, values: np.ndarray, *, tries: int = 1, seed: int = 0
) -> AlternativeAttention:
    """Move as much attention as found without changing the head's output.

    Every row is a linear programme: weights that are non-negative, sum to 1 and give the same
    output, as far as possible along a direction; the first direction leads away from the present
    weights, the others are random, and the farthest result is kept.

    Args:
        pattern: [T, T] of one head.
        values: [T, K] its value vectors.
        tries: directions a row.
        seed: of the random directions.

    Raises:
        ValueError: the shapes do not fit, or ``tries`` is below 1.
    """
    _check(pattern, values)
    if tries < 1:
        raise ValueError(f"tries starts at 1, got {tries}")
    length = len(pattern)
    old, v = pattern.astype(float), values.astype(float)
    constraints = np.vstack([v.T, np.ones(length)])
    free = null_space(constraints).shape[1]
    new = old.copy()
    if free:
        draw = np.random.default_rng(seed)
        # An orthonormal basis of the constraints keeps the solver's tolerances meaningful.
        basis = orth(constraints.T).T
        for i, row in enumerate(old):
            directions = [row, *draw.standard_normal((tries - 1, length))]
            for direction in directions:
                found = linprog(
                    direction, A_eq=basis, b_eq=basis @ row, bounds=(0, None), method="highs"
                )
                if found.success and np.abs(found.x - row).sum() > np.abs(new[i] - row).sum():
                    new[i] = found.x
    moved = np.abs(new - old).sum(1) / 2
    return AlternativeAttention(new, moved, float(np.abs(new @ v - old @ v).max()), free)


def _check(pattern: np.ndarray, values: np.ndarray) -> None:
    if pattern.ndim != 2 or pattern.shape[0] != pattern.shape[1] or len(values) != len(pattern):
        raise ValueError(
            f"need one pattern [T, T] and values [T, K], got {pattern.shape} and {values.shape}"
        )
