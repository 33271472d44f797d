"""Weights as eight-bit integers: what is stored, and what comes back.

A matrix is cut into blocks along its inputs. Each block keeps one scale in half precision, and
its weights as whole multiples of it. Only weights are rounded; everything that is computed stays
in float32.

Where the inputs of a matrix are known, each column's rounding error is made up for by the columns
that are not yet rounded, so that the products change less than the weights do (GPTQ, Frantar et
al. 2023, arXiv 2210.17323).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: largest integer used; -128 stays free, so that the range is symmetric
LARGEST = 127
#: share of the mean second moment that is added to all, so that rare directions stay bounded
_DAMPING = 0.01
#: columns whose corrections reach the columns after them in one product
_CHUNK = 32


@dataclass(frozen=True)
class Rounded:
    """A matrix [R, C] as integers and scales.

    Attributes:
        integers: int8 [R, C].
        scales: float16 [R, C / block]: a weight is about its integer times its block's scale.
        block: neighbouring columns that share a scale.
    """

    integers: np.ndarray
    scales: np.ndarray
    block: int

    def restored(self) -> np.ndarray:
        """The matrix as the model will use it, float32 [R, C]."""
        return self.integers.astype(np.float32) * _wide(self.scales, self.block)


def round_matrix(
    matrix: np.ndarray, block: int, second_moment: np.ndarray | None = None
) -> Rounded:
    """Round ``matrix`` [R, C], with one scale for every ``block`` neighbours of a row.

    Args:
        matrix: weights; row r holds those of output r.
        block: number of neighbours; divides C.
        second_moment: mean of x xᵀ [C, C] over inputs x of the matrix; without it each weight
            goes to its nearest multiple.

    Raises:
        ValueError: not a matrix of finite numbers, rows that do not divide into blocks, or a
            second moment of another size.
    """
    if matrix.ndim != 2:
        raise ValueError(f"expected a matrix, found an array of shape {matrix.shape}")
    rows, columns = matrix.shape
    if block < 1 or columns % block:
        raise ValueError(f"rows of {columns} weights do not divide into blocks of {block}")
    if not np.isfinite(matrix).all():
        raise ValueError("the matrix holds a weight that is not a finite number")
    matrix = matrix.astype(np.float32)
    largest = np.abs(matrix).reshape(rows, columns // block, block).max(axis=2)
    scales = (largest / LARGEST).astype(np.float16)
    # A block of (almost) nothing: any scale that is not zero in half precision restores it.
    scales[scales == 0] = np.float16(2.0**-24)
    wide = _wide(scales, block)
    if second_moment is None:
        integers = _nearest(matrix, wide)
    else:
        if second_moment.shape != (columns, columns):
            raise ValueError(
                f"a second moment of shape {second_moment.shape} for rows of {columns} weights"
            )
        integers = _compensated(matrix, wide, second_moment)
    return Rounded(integers.astype(np.int8), scales, block)


def _wide(scales: np.ndarray, block: int) -> np.ndarray:
    return np.repeat(scales.astype(np.float32), block, axis=1)


def _nearest(weights: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return np.clip(np.rint(weights / scales), -LARGEST, LARGEST)


def _compensated(
    matrix: np.ndarray, scales: np.ndarray, second_moment: np.ndarray
) -> np.ndarray:
    """Integers [R, C], rounded column by column, those with the strongest inputs first."""
    columns = matrix.shape[1]
    moment = second_moment.astype(np.float64)
    order = np.argsort(-np.diag(moment), kind="stable")
    moment = moment[np.ix_(order, order)]
    moment[np.diag_indices(columns)] += _DAMPING * np.diag(moment).mean() + 1e-12
    # Row j says how the columns after j make up for an error in column j.
    shares = np.linalg.cholesky(np.linalg.inv(moment)).T.astype(np.float32)
    # One row for each column of the matrix, so that what is worked on lies together in memory.
    left, scales = (np.ascontiguousarray(part.T[order]) for part in (matrix, scales))
    integers = np.empty_like(left)
    for begin in range(0, columns, _CHUNK):
        end = min(begin + _CHUNK, columns)
        errors = np.empty((end - begin, left.shape[1]), np.float32)
        for j in range(begin, end):
            integers[j] = _nearest(left[j], scales[j])
            errors[j - begin] = (left[j] - integers[j] * scales[j]) / shares[j, j]
            left[j + 1 : end] -= np.outer(shares[j, j + 1 : end], errors[j - begin])
        left[end:] -= shares[begin:end, end:].T @ errors
    back = np.empty_like(order)
    back[order] = np.arange(columns)
    return integers[back].T
