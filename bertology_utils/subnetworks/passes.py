"""Heads taken away from a trial again and again, in passes that fit the caches.

Hooks would change every head of every layer, for texts padded to the longest of all. Here texts of
similar length run together, only what lies above a changed layer is computed, of the last layer
only what is read, and z is changed where it enters the output matrix.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from ..encoder import Trunk, additive_mask, evaluating, is_plain, pieces_at_once
from ..interventions import ablate_heads, scale_heads
from .trials import Trial

#: padded pieces of a forward pass at most
_PIECES = 6144


def run_without(
    trial: Trial, off: Tensor, *, fill: Tensor | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(loss [V, N], right [V, N]) of V variants of the model, each with some heads off.

    Args:
        trial: of N texts, on a model with H heads in every layer.
        off: [V, L, H] True for a head that is off; one at least.
        fill: [L, H, K] what takes the place of a head's z; zeros by default.
    """
    layer = int(off.any(2).any(0).nonzero()[0, 0])
    lengths = trial.mask.sum(1)
    order = lengths.argsort(descending=True, stable=True)
    loss, right = (torch.empty(len(off), len(trial), dtype=torch.float64) for _ in range(2))
    with evaluating(trial.encoder):
        way = _Plain if is_plain(trial.encoder) else _Hooked
        run = way(trial, layer, off, fill)
        budget = pieces_at_once(trial.encoder, _PIECES)
        start = 0
        while start < len(order):
            width = int(lengths[order[start]])
            texts = order[start : start + max(1, budget // width)]
            start += len(texts)
            enter = run.enter(texts, width)
            passes = min(len(off), math.ceil(len(off) * len(texts) * width / budget))
            # Passes of one size: a last one of a few rows could come out with other bits.
            for part in torch.arange(len(off)).tensor_split(passes):
                last = enter(part)
                own = trial.score(last, texts.repeat(len(part)))
                for found, values in zip((loss, right), own, strict=True):
                    found[part[:, None], texts] = values.double().cpu().view(len(part), -1)
    return loss.numpy(), right.numpy()


class _Plain:
    """By arithmetic on the parts of the layers."""

    def __init__(self, trial: Trial, layer: int, off: Tensor, fill: Tensor | None):
        self.trial, self.layer, self.trunk = trial, layer, Trunk(trial.encoder)
        device = trial.encoder.device
        shape = (*off.shape[1:], trial.encoder.d_head)
        self.off = off.to(device)
        self.fill = torch.zeros(shape, device=device) if fill is None else fill.to(device)

    def enter(self, texts: Tensor, width: int):
        """Texts up to the z of the first changed layer; a function of the variants to go on with.

        It returns the last hidden states [variants * texts, T, D], or [.., 1, D] where the trial
        reads the first piece only.
        """
        trunk, layer = self.trunk, self.layer
        x = self.trial.hidden[layer][texts.to(self.off.device), :width]
        pieces = self.trial.mask[texts, :width].to(x.device)
        mask = None if pieces.all() else additive_mask(pieces, x.dtype)
        top = len(trunk.layers) - 1
        if layer == top and self.trial.reads == "first":
            first = trunk.attend_at(layer, x, mask, _first(x))
        else:
            first = trunk.attend(layer, x, mask)

        def variants(part: Tensor) -> Tensor:
            off = self.off[part].repeat_interleave(len(x), 0)
            rows = x.repeat(len(part), 1, 1)
            masks = None if mask is None else mask.repeat(len(part), 1, 1, 1)
            z = first.repeat(len(part), *[1] * (first.ndim - 1))
            for number in range(layer, top + 1):
                at_first = number == top and self.trial.reads == "first"
                if number > layer:
                    z = (trunk.attend_at(number, rows, masks, _first(rows)) if at_first
                         else trunk.attend(number, rows, masks))  # fmt: skip
                z = self._silenced(number, z, off[:, number])
                if at_first:
                    return trunk.finish_few(number, z, rows[:, 0])[:, None]
                rows = trunk.finish(number, z, rows)
            return rows

        return variants

    def _silenced(self, layer: int, z: Tensor, off: Tensor) -> Tensor:
        """z [B, .., H * K] with the heads ``off`` [B, H] replaced."""
        if not off.any():
            return z
        where = off.view(len(off), *[1] * (z.ndim - 2), -1, 1)
        heads = z.unflatten(-1, self.fill.shape[1:])
        return torch.where(where, self.fill[layer], heads).flatten(-2)


class _Hooked:
    """By hooks on the model itself, whatever it is beyond its layers."""

    def __init__(self, trial: Trial, layer: int, off: Tensor, fill: Tensor | None):
        self.trial, self.layer, self.off, self.fill = trial, layer, off, fill

    def enter(self, texts: Tensor, _width: int):
        """As :meth:`_Plain.enter`; a variant at a time where heads are not just silenced."""
        encoder = self.trial.encoder
        chosen = self.trial.select(texts)

        def states(copies: int) -> Tensor:
            hidden = chosen.hidden[self.layer].repeat(copies, 1, 1)
            return encoder.encode_from(hidden, chosen.mask.repeat(copies, 1), self.layer)

        def variants(part: Tensor) -> Tensor:
            if self.fill is None:
                gates = (~self.off[part]).float().repeat_interleave(len(chosen), 0)
                with scale_heads(encoder, gates.to(encoder.device)):
                    return states(len(part))
            out = []
            for own in self.off[part]:
                heads = {k: row.nonzero()[:, 0].tolist() for k, row in enumerate(own)}
                with ablate_heads(encoder, heads, "mean", means=self.fill):
                    out.append(states(1))
            return torch.cat(out)

        return variants


def _first(hidden: Tensor) -> Tensor:
    return torch.zeros(len(hidden), dtype=torch.long, device=hidden.device)
