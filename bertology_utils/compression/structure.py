"""Structured pruning that makes matrices smaller: heads, feed-forward units, layers."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from .data import Labelled
from .errors import CompressionError
from .model import Compact
from .training import label_loss


def _smaller(linear: nn.Linear, keep: Tensor, dim: int) -> nn.Linear:
    """Only the outputs (dim 0) or inputs (dim 1) in ``keep``."""
    weight = linear.weight.detach().index_select(dim, keep)
    made = nn.Linear(1, 1, bias=linear.bias is not None)
    made.out_features, made.in_features = weight.shape
    made.weight = nn.Parameter(weight.clone())
    if linear.bias is not None:
        bias = linear.bias.detach()
        made.bias = nn.Parameter((bias[keep] if dim == 0 else bias).clone())
    return made


def keep_heads(model: Compact, keep: Mapping[int, Sequence[int]]) -> Compact:
    """A copy in which some blocks have only the given heads (Michel et al. 2019).

    Args:
        model: stays as it is.
        keep: {block: heads}; others keep all.

    Raises:
        CompressionError: a head that is not there, or a block left without any.
    """
    made = copy.deepcopy(model)
    for place, heads in keep.items():
        block = _block(made, place)
        chosen = _chosen("head", heads, block.n_heads)
        rows = (chosen[:, None] * block.d_head + torch.arange(block.d_head)).flatten()
        for name in ("query", "key", "value"):
            setattr(block, name, _smaller(getattr(block, name), rows, 0))
        block.output = _smaller(block.output, rows, 1)
    return made


def keep_units(model: Compact, keep: Mapping[int, Sequence[int]]) -> Compact:
    """A copy in which some blocks have only the given feed-forward units (McCarley et al. 2019).

    Args and errors are those of :func:`keep_heads`.
    """
    made = copy.deepcopy(model)
    for place, units in keep.items():
        block = _block(made, place)
        chosen = _chosen("unit", units, block.n_units)
        block.ffn_in = _smaller(block.ffn_in, chosen, 0)
        block.ffn_out = _smaller(block.ffn_out, chosen, 1)
    return made


def keep_layers(model: Compact, layers: Sequence[int]) -> Compact:
    """A copy that runs only the given layers, in order (Fan et al. 2020; Sajjad et al. 2020).

    Raises:
        CompressionError: no layer is left, or one that is not there.
    """
    chosen = _chosen("layer", layers, model.n_layers).tolist()
    made = copy.deepcopy(model)
    order = [made.order[layer] for layer in chosen]
    stored = sorted(set(order))
    made.blocks = nn.ModuleList([made.blocks[place] for place in stored])
    made.order = tuple(stored.index(place) for place in order)
    return made


def _block(model: Compact, place: int):
    if not 0 <= place < len(model.blocks):
        raise CompressionError(f"block {place} of {len(model.blocks)}")
    return model.blocks[place]


def _chosen(what: str, numbers: Sequence[int], count: int) -> Tensor:
    found = sorted({int(number) for number in numbers})
    if not found or found[0] < 0 or found[-1] >= count:
        raise CompressionError(f"cannot keep {what}s {found or 'none'} of {count}")
    return torch.tensor(found, dtype=torch.long)


def importance(
    model: Compact, data: Labelled, part: str, *, batch_size: int = 16
) -> list[np.ndarray]:
    """Mean |activation times its gradient| of every head or feed-forward unit, by block.

    How far the loss would move if a gate on the part closed, to first order (Michel et al. 2019;
    Molchanov et al. 2017).

    Args:
        model: stays as it is.
        data: labelled texts.
        part: ``"heads"`` or ``"units"``.
        batch_size: texts at a time.

    Returns:
        an array [heads] or [units] for every block.

    Raises:
        CompressionError: another part.
    """
    if part not in ("heads", "units"):
        raise CompressionError(f"part is {part!r}, must be 'heads' or 'units'")
    totals = [np.zeros(b.n_heads if part == "heads" else b.n_units) for b in model.blocks]
    # Several gates would share a place if a tied block ran twice, so gates belong to blocks.
    gates: list[Tensor] = []

    def gate(block: int):
        def hook(_module, args):
            (value,) = args
            size = model.blocks[block].d_head if part == "heads" else 1
            gates[block] = gates[block] if block in asked else _ones(value, size)
            asked.add(block)
            return (value * gates[block].repeat_interleave(size, dim=-1),)

        return hook

    def _ones(value: Tensor, size: int) -> Tensor:
        shape = (len(value), 1, value.shape[-1] // size)
        return torch.ones(shape, requires_grad=True)

    where = "output" if part == "heads" else "ffn_out"
    handles = [getattr(block, where).register_forward_pre_hook(gate(place))
               for place, block in enumerate(model.blocks)]  # fmt: skip
    try:
        for numbers in torch.arange(len(data)).split(batch_size):
            gates[:] = [torch.empty(0)] * len(model.blocks)
            asked: set[int] = set()
            batch = data.rows(numbers)
            # By the model's own forward pass: gates need the texts side by side, not packed.
            loss = label_loss(model.forward, batch, numbers) * len(numbers)
            slopes = torch.autograd.grad(loss, gates)
            for total, slope in zip(totals, slopes, strict=True):
                total += slope.abs().sum(0)[0].numpy()
    finally:
        for handle in handles:
            handle.remove()
    return [total / len(data) for total in totals]


def best_share(scores: Sequence[np.ndarray], share: float) -> dict[int, list[int]]:
    """The most important parts of each block: at least one, ``share`` of them in all.

    Raises:
        CompressionError: a share outside (0, 1].
    """
    if not 0 < share <= 1:
        raise CompressionError(f"the share to keep is {share}, not in (0, 1]")
    return {place: np.argsort(-row, kind="stable")[: max(1, round(share * len(row)))].tolist()
            for place, row in enumerate(scores)}  # fmt: skip


def random_scores(scores: Sequence[np.ndarray], seed: int) -> list[np.ndarray]:
    """Scores of the same shapes drawn at random: the control of every importance."""
    draw = np.random.default_rng(seed)
    return [draw.random(len(row)) for row in scores]
