"""The same words in the plane, layer after layer, turned so that they can be followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..geometry import TooFewError, plane, unit_rows


@dataclass(frozen=True, eq=False)
class LayerMap:
    """N points in the plane in each of S layers.

    Attributes:
        places: [S, N, 2], every layer scaled to the mean distance 1 from its centre.
        kept: [S] share of the variance that the plane keeps.
        pure: [S] share of points whose nearest neighbour, by cosine in all dimensions, is of the
            same group.
        chance: that share with the groups dealt at random.
        groups: [N] what each point belongs to.
        labels: [N] what each point is called.
        notes: [N] what a reader sees on pointing at it.
        model: the encoder's name.
    """

    places: np.ndarray
    kept: np.ndarray
    pure: np.ndarray
    chance: float
    groups: tuple[str, ...]
    labels: tuple[str, ...]
    notes: tuple[str, ...]
    model: str


def layer_map(
    vectors: np.ndarray,
    groups: Sequence[str],
    labels: Sequence[str],
    notes: Sequence[str],
    *,
    model: str,
) -> LayerMap:
    """Principal components of every layer; each plane is turned to fit the one below.

    Principal components have no preferred orientation. An orthogonal turn (Procrustes) towards the
    layer below keeps all distances and lets a point be followed by eye.

    Args:
        vectors: [S, N, D].
        groups, labels, notes: [N] texts.
        model: the encoder's name.

    Raises:
        ValueError: numbers of points differ.
        TooFewError: fewer than three points.
    """
    s, n = vectors.shape[:2]
    if not len(groups) == len(labels) == len(notes) == n:
        raise ValueError(f"{n} points, {len(groups)} groups, {len(labels)} labels, {len(notes)}")
    if n < 3:
        raise TooFewError(f"{n} points make no map")
    group = np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
    places, kept, pure = [], [], []
    for layer in range(s):
        wide = np.asarray(vectors[layer], float)
        flat = plane(wide)
        total = ((wide - wide.mean(0)) ** 2).sum()
        kept.append(float((flat**2).sum() / total) if total > 0 else 0.0)
        length = np.linalg.norm(flat, axis=1).mean()
        flat = flat / length if length > 0 else flat
        if places:
            u, _, v = np.linalg.svd(flat.T @ places[-1])
            flat = flat @ (u @ v)
        places.append(flat)
        unit = unit_rows(wide)
        cosines = unit @ unit.T
        np.fill_diagonal(cosines, -np.inf)
        pure.append(float((group[cosines.argmax(1)] == group).mean()))
    sizes = np.bincount(group)
    chance = float((sizes * (sizes - 1)).sum() / (n * (n - 1)))
    return LayerMap(
        np.stack(places), np.array(kept), np.array(pure), chance, tuple(groups), tuple(labels),
        tuple(notes), model,
    )  # fmt: skip
