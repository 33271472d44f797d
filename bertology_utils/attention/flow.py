"""Attention over all layers: rollout and flow (Abnar and Zuidema 2020, arXiv 2005.00928)."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

#: Capacities of the flow network are whole numbers of this size.
STEPS = 1_000_000


def with_residual(pattern: np.ndarray) -> np.ndarray:
    """Mean over heads, half of it given to the residual connection.

    Args:
        pattern: [L, H, T, T] of one text without padding, or [L, B, H, T, T] of several.

    Returns:
        [L, T, T] or [L, B, T, T]; rows sum to 1.
    """
    return 0.5 * pattern.mean(-3) + 0.5 * np.eye(pattern.shape[-1])


def rollout(pattern: np.ndarray) -> np.ndarray:
    """How much of each input piece reaches each position, layer by layer, if attention mixed
    identities linearly: the product of :func:`with_residual` from the input upwards.

    Args:
        pattern: [L, H, T, T] or [L, B, H, T, T].

    Returns:
        The same without the head dimension: entry l is the rollout up to layer l; rows sum to 1.

    Raises:
        ValueError: another number of dimensions.
    """
    if pattern.ndim not in (4, 5):
        raise ValueError(f"need [L, H, T, T] or [L, B, H, T, T], got {pattern.shape}")
    mixed = with_residual(pattern)
    found = [mixed[0]]
    for layer in mixed[1:]:
        found.append(layer @ found[-1])
    return np.stack(found)


def attention_flow(pattern: np.ndarray, target: int) -> np.ndarray:
    """Maximum flow from each input piece to one position of the last layer.

    Every layer's weights (with residual) are capacities. Costs T maximum flows on L * T nodes:
    meant for single sentences.

    Args:
        pattern: [L, H, T, T] of one text.
        target: position in the last layer.

    Returns:
        [T] flow, in units of attention.

    Raises:
        ValueError: another number of dimensions.
        IndexError: no such position.
    """
    if pattern.ndim != 4:
        raise ValueError(f"need [L, H, T, T], got {pattern.shape}")
    n_layers, _, length, _ = pattern.shape
    if not 0 <= target < length:
        raise IndexError(f"position {target} is not in 0..{length - 1}")
    mixed = np.rint(with_residual(pattern) * STEPS).astype(np.int32)
    size = (n_layers + 1) * length
    network = np.zeros((size, size), np.int32)
    for layer, weights in enumerate(mixed):
        low, high = layer * length, (layer + 1) * length
        network[low:high, high : high + length] = weights.T
    graph = csr_array(network)
    sink = n_layers * length + target
    flows = [maximum_flow(graph, piece, sink).flow_value for piece in range(length)]
    return np.array(flows) / STEPS
