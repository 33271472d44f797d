"""Leaving out word vectors on the way up (PoWER-BERT, Goyal et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..encoder.families import additive_mask
from .errors import CompressionError
from .model import Compact

#: how the vectors to keep are chosen
CHOICES = ("attention", "random")


class Eliminating(nn.Module):
    """A model that keeps, after each attention, only some of the vectors.

    [CLS] always stays. With *attention*, those stay that receive most attention, summed over
    heads and real rows (the paper's significance score); with *random*, any do: the control.

    Args:
        model: runs as it is; shared, not copied.
        keep: share of the text's pieces left after each layer, never rising.
        choice: one of :data:`CHOICES`.
        seed: of random choices; the same text keeps the same pieces in every run.

    Raises:
        CompressionError: shares that do not fit or rise, an unknown choice, or a model that reads
            all pieces.
    """

    def __init__(
        self, model: Compact, keep: Sequence[float], choice: str = "attention", seed: int = 0
    ):
        super().__init__()
        keep = tuple(float(share) for share in keep)
        falls = all(a >= b for a, b in zip(keep, keep[1:], strict=False))
        if len(keep) != model.n_layers or not falls or not 0 < min(keep) <= max(keep) <= 1:
            raise CompressionError(f"shares {keep} for {model.n_layers} layers")
        if choice not in CHOICES:
            raise CompressionError(f"choice is {choice!r}, must be one of {', '.join(CHOICES)}")
        if model.reads != "first":
            raise CompressionError("a model that labels every piece needs every piece")
        self.model, self.keep, self.choice, self.seed = model, keep, choice, seed

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """[B, T] ids and their mask -> logits [B, C]."""
        hidden = self.model.embed(ids)
        sizes = mask.sum(1)
        draw = torch.Generator().manual_seed(self.seed)
        for layer, share in zip(self.model.layers, self.keep, strict=True):
            hidden, pattern, _ = layer.attend(hidden, additive_mask(mask, hidden.dtype))
            wanted = (sizes * share).ceil().long().clamp_min(1)
            width = int(wanted.max())
            if share < 1:
                if self.choice == "attention":
                    rows = mask[:, None, :, None].to(pattern.dtype)
                    worth = (pattern * rows).sum((1, 2))
                else:
                    worth = torch.rand(mask.shape, generator=draw)
                worth = worth.masked_fill(mask == 0, -1.0)
                worth[:, 0] = torch.inf
                # Back in the order of the text, so that [CLS] stays first.
                ranked = worth.argsort(dim=1, descending=True, stable=True)[:, :width]
                real = torch.arange(width)[None, :] < torch.minimum(wanted, mask.sum(1))[:, None]
                places = ranked.masked_fill(~real, hidden.shape[1]).sort(1).values
                mask = (places < hidden.shape[1]).long()
                places = places.clamp_max(hidden.shape[1] - 1)
                hidden = hidden.gather(1, places[..., None].expand(-1, -1, hidden.shape[-1]))
            hidden = layer.feed(hidden)
        return self.model.classify(hidden)


def falling_shares(n_layers: int, last: float) -> tuple[float, ...]:
    """Shares that fall evenly from 1 (before the first layer) to ``last`` after the last one."""
    return tuple(1 - (1 - last) * (layer + 1) / n_layers for layer in range(n_layers))
