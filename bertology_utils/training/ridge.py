"""A ridge classifier in one step, for many small fits."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

#: penalty per training example, on standardised features
PENALTY = 1.0


def ridge_guesses(
    train: np.ndarray, labels: Sequence[Hashable], test: np.ndarray, *, penalty: float = PENALTY
) -> np.ndarray:
    """[M] labels of ``test`` [M, D] by least squares on one-hot labels of ``train`` [N, D].

    Features are standardised on the training part; the penalty is ``penalty`` times N.

    Raises:
        ValueError: labels do not fit, or there is one class only.
    """
    classes, codes = np.unique(np.asarray(labels), return_inverse=True)
    if len(codes) != len(train) or len(classes) < 2:
        raise ValueError(f"{len(codes)} labels of {len(classes)} classes for {len(train)} rows")
    centre, spread = train.mean(0), train.std(0)
    spread = np.where(spread > 1e-8, spread, 1.0)
    x, y = (train - centre) / spread, np.eye(len(classes))[codes]
    shift = y.mean(0)
    strength = penalty * len(x)
    # The smaller of the two equivalent systems.
    if len(x) < x.shape[1]:
        weights = x.T @ np.linalg.solve(x @ x.T + strength * np.eye(len(x)), y - shift)
    else:
        weights = np.linalg.solve(x.T @ x + strength * np.eye(x.shape[1]), x.T @ (y - shift))
    return classes[((test - centre) / spread @ weights + shift).argmax(1)]


def grouped_guesses(
    features: np.ndarray, labels: Sequence[Hashable], groups: Sequence[int], *, folds: int
) -> np.ndarray:
    """[N] guesses, each by a classifier that has seen no row of the same group.

    Raises:
        ValueError: fewer groups than folds.
    """
    codes, truth = np.asarray(groups), np.asarray(labels)
    names = np.unique(codes)
    if len(names) < folds:
        raise ValueError(f"{len(names)} groups cannot fill {folds} folds")
    guesses = np.empty_like(truth)
    for fold in range(folds):
        test = np.isin(codes, names[fold::folds])
        guesses[test] = ridge_guesses(features[~test], truth[~test], features[test])
    return guesses
