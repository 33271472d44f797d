"""Subnetworks: copies of a model in which some weights are zero and stay zero in training."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ..encoder import Encoder
from ..interventions import is_edited
from .effects import Head, grouped

#: (layer, part, "weight" or "bias") -> mask of the parameter's shape, False where it is zero
Masks = Mapping[tuple[int, str, str], Tensor]
_PARTS = ("query", "key", "value", "output", "ffn_in", "ffn_out")


class _Mask(nn.Module):
    """Multiplies a parameter by a fixed mask; its gradient is masked by the same product."""

    def __init__(self, mask: Tensor):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, weight: Tensor) -> Tensor:
        return weight * self.mask


def masked(encoder: Encoder, masks: Masks) -> Encoder:
    """A copy with masks on the weights of its layers; training it moves the kept weights only.

    Args:
        encoder: stays as it is; not itself masked.
        masks: see :data:`Masks`.

    Raises:
        KeyError: a part of a layer that does not exist.
        ValueError: a mask of another shape, or an active intervention.
    """
    if is_edited(encoder):
        raise ValueError(f"an intervention is active on {encoder.name!r}; mask outside of it")
    own = replace(encoder, model=copy.deepcopy(encoder.model))
    layers = own.layers
    for (layer, part, kind), mask in masks.items():
        own.check_layer(layer)
        if part not in _PARTS or kind not in ("weight", "bias"):
            raise KeyError(f"no {kind} of {part!r} in a layer")
        linear = getattr(layers[layer], part)
        weight = getattr(linear, kind)
        if mask.shape != weight.shape:
            raise ValueError(
                f"a mask of shape {tuple(mask.shape)} for {part} {kind} of layer {layer}, which is "
                f"{tuple(weight.shape)}"
            )
        parametrize.register_parametrization(linear, kind, _Mask(mask.to(weight)))
    return own


def magnitude_masks(encoder: Encoder, share: float) -> dict[tuple[int, str, str], Tensor]:
    """Cut the smallest weights of every matrix of every layer (Gordon et al. 2020).

    Args:
        encoder: whose sizes count: the pre-trained or a fine-tuned model.
        share: of each matrix that goes; biases, norms and embeddings stay.

    Raises:
        ValueError: a share outside [0, 1).
    """
    if not 0 <= share < 1:
        raise ValueError(f"the share cut must lie in [0, 1), not {share}")
    masks = {}
    for layer, parts in enumerate(encoder.layers):
        for part in _PARTS:
            weight = getattr(parts, part).weight.detach()
            gone = int(share * weight.numel())
            order = weight.abs().flatten().argsort()
            keep = torch.ones(weight.numel(), dtype=torch.bool, device=weight.device)
            keep[order[:gone]] = False
            masks[layer, part, "weight"] = keep.reshape(weight.shape)
    return masks


def random_masks(
    encoder: Encoder, share: float, seed: int = 0
) -> dict[tuple[int, str, str], Tensor]:
    """The control: as many weights of every matrix, drawn at random."""
    draw = torch.Generator().manual_seed(seed)
    masks = {}
    for key, mask in magnitude_masks(encoder, share).items():
        order = torch.randperm(mask.numel(), generator=draw)
        masks[key] = mask.flatten()[order.to(mask.device)].reshape(mask.shape)
    return masks


def structure_masks(
    encoder: Encoder, heads: Sequence[Head], blocks: Sequence[int]
) -> dict[tuple[int, str, str], Tensor]:
    """Cut whole heads and whole feed-forward blocks (Prasanna et al. 2020, arXiv 2005.00561).

    A head goes with its columns of the output matrix, a block with its second matrix and bias.

    Raises:
        LayerIndexError, HeadIndexError: no such head or layer.
    """
    masks = {}
    layers = encoder.layers
    for layer, gone in encoder.check_heads(grouped(heads)).items():
        weight = layers[layer].output.weight
        keep = torch.ones(weight.shape, dtype=torch.bool, device=weight.device)
        for head in gone:
            keep[:, head * encoder.d_head : (head + 1) * encoder.d_head] = False
        masks[layer, "output", "weight"] = keep
    for layer in blocks:
        parts = layers[encoder.check_layer(int(layer))]
        for kind in ("weight", "bias"):
            parameter = getattr(parts.ffn_out, kind)
            masks[int(layer), "ffn_out", kind] = torch.zeros_like(parameter, dtype=torch.bool)
    return masks


def share_cut(encoder: Encoder) -> float:
    """Share of the weights of the layers' six matrices that are zero."""
    weights = [getattr(p, part).weight.detach() for p in encoder.layers for part in _PARTS]
    zeros = sum(int((w == 0).sum()) for w in weights)
    return zeros / sum(w.numel() for w in weights)


def split_by_importance(
    heads: np.ndarray, blocks: np.ndarray, keep: str, seed: int = 0
) -> tuple[list[Head], list[int]]:
    """(heads, blocks) that go when half of each stays.

    Args:
        heads: [L, H] importance; blocks: [L].
        keep: ``"good"`` keeps the more important half, ``"bad"`` the less important one,
            ``"random"`` any.
        seed: of the random choice.

    Raises:
        ValueError: another word.
    """
    if keep not in ("good", "bad", "random"):
        raise ValueError(f"keep is {keep!r}, must be 'good', 'bad' or 'random'")
    draw = np.random.default_rng(seed)
    width = heads.shape[1]

    def gone(importance: np.ndarray) -> np.ndarray:
        flat = importance.ravel()
        if keep == "random":
            order = draw.permutation(len(flat))
        else:
            order = np.argsort(flat if keep == "good" else -flat, kind="stable")
        return order[: len(flat) // 2]

    off = [(int(i) // width, int(i) % width) for i in gone(heads)]
    return off, [int(i) for i in gone(blocks)]
