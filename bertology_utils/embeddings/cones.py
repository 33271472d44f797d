"""How narrow is the cone once the mean and the strongest directions are gone?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..activations import Collected
from ..geometry import anisotropy, layer_rows, remove_components


def cone_without(
    collected: Collected, removed: Sequence[int], *, n_pairs: int = 5000, seed: int = 0
) -> dict[int, np.ndarray]:
    """[S] anisotropy of every layer without its mean and its ``k`` strongest directions.

    Args:
        collected: rows of words.
        removed: numbers ``k`` of directions to take away; 0 only centres.
        n_pairs, seed: for :func:`~bertology_utils.geometry.anisotropy`.

    Returns:
        ``k`` -> curve.

    Raises:
        ValueError: a ``k`` below 0 or not below D.
    """
    found = {}
    layers = len(collected.arrays["hidden_states"])
    for k in removed:
        curve = []
        for layer in range(layers):
            vectors = layer_rows(collected, layer, slice(None))
            spread = remove_components(vectors, k)(vectors.astype(float))
            alone = Collected(
                {"hidden_states": spread[None]}, collected.text_index, collected.position,
                collected.rows, collected.model,
            )  # fmt: skip
            curve.append(anisotropy(alone, n_pairs=n_pairs, seed=seed).value)
        found[k] = np.array(curve)
    return found
