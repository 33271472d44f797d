"""Which layers need their bits: the curvature of the loss (Q-BERT, Shen et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from .data import Labelled
from .errors import CompressionError
from .model import Compact
from .quantise import block_of, rounded
from .training import label_loss


def hessian_traces(
    model: Compact, data: Labelled, *, probes: int = 2, batch_size: int = 16, seed: int = 0
) -> np.ndarray:
    """Trace of the loss's second derivatives in the matrices of each block, per weight.

    Hutchinson's estimate: with random signs v, v^T H v has the trace as its mean.

    Args:
        model: stays as it is.
        data: labelled texts; one batch of them for each probe.
        probes: how many random vectors.
        batch_size: texts of a batch.
        seed: of texts and vectors.

    Returns:
        [blocks].

    Raises:
        CompressionError: no probes.
    """
    if probes < 1:
        raise CompressionError(f"{probes} probes cannot estimate a trace")
    names = [n for n, p in model.named_parameters() if n.startswith("blocks.") and p.ndim == 2]
    weights = [model.get_parameter(name) for name in names]
    draw = torch.Generator().manual_seed(seed)
    total = np.zeros(len(model.blocks))
    for _ in range(probes):
        numbers = torch.randperm(len(data), generator=draw)[:batch_size]
        loss = label_loss(model, data.rows(numbers), numbers)
        slopes = torch.autograd.grad(loss, weights, create_graph=True)
        signs = [torch.randint(0, 2, w.shape, generator=draw) * 2.0 - 1 for w in weights]
        along = sum((g * v).sum() for g, v in zip(slopes, signs, strict=True))
        curved = torch.autograd.grad(along, weights)
        for name, h, v in zip(names, curved, signs, strict=True):
            total[block_of(name)] += float((h * v).sum())
    sizes = np.zeros(len(model.blocks))
    for name, weight in zip(names, weights, strict=True):
        sizes[block_of(name)] += weight.numel()
    return total / probes / sizes


def rounding_cost(model: Compact, traces: np.ndarray, bits: int) -> np.ndarray:
    """[blocks] curvature times squared rounding error at ``bits``: the loss's expected rise."""
    cost = np.zeros(len(model.blocks))
    for name, weight in model.named_parameters():
        if name.startswith("blocks.") and weight.ndim == 2:
            error = float((rounded(weight, bits) - weight.detach()).pow(2).sum())
            cost[block_of(name)] += max(traces[block_of(name)], 0.0) * error
    return cost


def share_bits(cost: Sequence[float], budget: float, choices: tuple[int, int] = (2, 4)) -> dict:
    """Give the higher of two precisions to the blocks with the highest cost, within a mean budget.

    Args:
        cost: [blocks], of rounding to the lower precision.
        budget: mean bits per weight that must not be exceeded; blocks are equally large.
        choices: the lower and the higher precision.

    Returns:
        {block: bits}.

    Raises:
        CompressionError: the budget is below the lower precision.
    """
    low, high = choices
    if budget < low:
        raise CompressionError(f"a budget of {budget} bits is below the lowest choice, {low}")
    blocks = len(cost)
    n_high = min(blocks, int((budget - low) * blocks / (high - low) + 1e-9))
    rich = set(np.argsort(-np.asarray(cost), kind="stable")[:n_high].tolist())
    return {block: high if block in rich else low for block in range(blocks)}
