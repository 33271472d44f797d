"""Silence, average or scale attention heads, without touching a weight.

A head's only way out of its layer is its H-th part of z, so all three act where z enters the
output matrix. transformers 5 has no ``head_mask`` any more and ignores the argument in silence.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from ..activations import stream
from ..encoder import Encoder
from ..words import Text
from .edits import Edit, editing

MODES = ("zero", "mean")


@contextmanager
def ablate_heads(
    encoder: Encoder,
    heads: Mapping[int, Iterable[int]],
    mode: str = "zero",
    *,
    means: Tensor | None = None,
) -> Iterator[None]:
    """Take the contribution of the given heads away (Michel et al. 2019; Voita et al. 2019).

    Args:
        encoder: any encoder.
        heads: {layer: [heads]}.
        mode: ``"zero"`` sets a head's z to 0; ``"mean"`` to its average, which removes what
            depends on the input and keeps the model nearer to what it was trained on.
        means: [L, H, K] from :func:`mean_heads`, for mode ``"mean"``.

    Raises:
        LayerIndexError, HeadIndexError: no such layer or head.
        ValueError: unknown mode; ``means`` missing, superfluous or of another shape.
        NoEffectError: no forward pass ran inside.
    """
    means = check_mode(encoder, mode, means)
    chosen = encoder.check_heads(heads)
    layers = encoder.layers
    edits = []
    for layer, numbers in chosen.items():
        if not numbers:
            continue
        off = torch.zeros(layers[layer].n_heads, dtype=torch.bool)
        off[list(numbers)] = True
        off = off.repeat_interleave(encoder.d_head).to(encoder.device)
        fill = torch.zeros((), device=encoder.device)
        if means is not None:
            fill = means[layer].flatten().to(encoder.device)
        edits.append(Edit(layers[layer].output, "in", _fill(off, fill)))
    with editing(encoder, edits):
        yield


def check_mode(encoder: Encoder, mode: str, means: Tensor | None) -> Tensor | None:
    """Return ``means`` if they fit the mode and the encoder, else raise ValueError."""
    if mode not in MODES:
        raise ValueError(f"mode is {mode!r}, must be one of {', '.join(MODES)}")
    if (mode == "mean") != (means is not None):
        raise ValueError("mode 'mean' needs means= (see mean_heads), and mode 'zero' takes none")
    if means is not None:
        _check_shape("means", means, encoder, trailing=(encoder.d_head,))
    return means


def _fill(off: Tensor, fill: Tensor):
    return lambda z, _args: torch.where(off, fill.to(z.dtype), z)


@contextmanager
def scale_heads(encoder: Encoder, gates: Tensor) -> Iterator[None]:
    """Multiply every head's z by a gate.

    With ``gates`` of ones that require gradients, ``gates.grad`` after a backward pass is the
    head importance of Michel et al. (2019). With one set of gates per row, a batch that repeats
    one text measures many ablations in a single pass.

    Args:
        encoder: any encoder with H heads in every layer.
        gates: [L, H], or [B, L, H] for gates of each row of the batches run inside.

    Raises:
        ValueError: another shape.
        NoEffectError: no forward pass ran inside.
    """
    per_row = gates.ndim == 3
    _check_shape("gates", gates[0] if per_row and len(gates) else gates, encoder)

    def scaled(layer: int):
        def edit(z: Tensor, _args) -> Tensor:
            gate = (gates[:, None, layer] if per_row else gates[layer]).to(z.device, z.dtype)
            if per_row and len(gates) != len(z):
                raise ValueError(f"gates for {len(gates)} rows, but a batch of {len(z)}")
            return z * gate.repeat_interleave(encoder.d_head, dim=-1)

        return edit

    parts = encoder.layers
    edits = [Edit(part.output, "in", scaled(layer)) for layer, part in enumerate(parts)]
    with editing(encoder, edits):
        yield


def mean_heads(
    encoder: Encoder, texts: Sequence[Text] | Iterable[Text], *, max_tokens: int = 4096
) -> Tensor:
    """Average z of every head over all pieces of some texts, special tokens included.

    Returns:
        [L, H, K] on the encoder's device, summed in double precision.

    Raises:
        ValueError: no texts. Errors of texts as everywhere.
    """
    total, count = None, 0
    for cache in stream(encoder, texts, ["z"], max_tokens=max_tokens):
        mask = cache.batch.attention_mask.to(encoder.device, torch.float64)
        sums = torch.einsum("lbhtk,bt->lhk", cache["z"].double(), mask)
        total = sums if total is None else total + sums
        count += int(mask.sum())
    if total is None:
        raise ValueError("no texts to average over")
    return (total / count).float()


def _check_shape(
    what: str, tensor: Tensor, encoder: Encoder, trailing: tuple[int, ...] = ()
) -> None:
    heads = set(encoder.heads_per_layer)
    if len(heads) > 1:
        raise ValueError(f"layers of {encoder.name!r} differ in heads, so {what} have no shape")
    expected = (encoder.n_layers, heads.pop(), *trailing)
    if tuple(tensor.shape) != expected:
        raise ValueError(f"{what} have shape {tuple(tensor.shape)}, expected {expected}")
