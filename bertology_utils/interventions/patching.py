"""Replace, erase or switch off what flows through named places of an encoder."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor

from ..activations import merge_heads, place, site_of, split_heads
from ..encoder import Encoder, evaluating
from ..words import Batch, Text, make_batch
from .edits import Edit, NoEffectError, PatternEdit, editing

#: a replacement, or a function from the present value to the replacement
Value = Tensor | float | Callable[[Tensor], Tensor]

PARTS_OF_LAYER = ("layer", "attention", "mlp")
PARTS_OF_INPUT = ("token", "position", "segment")


@contextmanager
def patch(
    encoder: Encoder,
    name: str,
    layer: int,
    value: Value,
    *,
    positions: int | Sequence[int] | Tensor | None = None,
    heads: Sequence[int] | None = None,
) -> Iterator[None]:
    """Put another value in place of an activation (interchange intervention, activation patching).

    Args:
        encoder: any encoder.
        name: a name of :data:`~bertology_utils.activations.SITES`, ``"pattern"`` included: a new
            pattern changes z and all that follows.
        layer: 0 .. L - 1; for ``"hidden_states"`` 0 .. L, 0 being the embedding output.
        value: a number or a tensor that broadcasts to the activation (shape in ``SITES``), such as
            the same entry of another run's cache; or a function of the present activation.
        positions: pieces to replace: a number, several numbers, or a boolean mask [B, T]; of a
            pattern, the querying pieces. None replaces all.
        heads: for names with a head dimension, the heads to replace. None replaces all.

    Raises:
        UnknownSiteError, LayerIndexError, HeadIndexError: no such place.
        ValueError: ``heads`` for a name without heads; at the forward pass, a value or positions
            that do not fit.
        NoEffectError: no forward pass ran inside.
    """
    module, side = place(encoder, name, layer)
    site = site_of(name)
    with_heads = site.by_head or name == "pattern"
    if heads is not None:
        if not with_heads:
            raise ValueError(f"{name!r} has no heads")
        heads = encoder.check_heads({layer: heads})[layer]

    def new_value(now: Tensor) -> Tensor:
        new = value(now) if callable(value) else torch.as_tensor(value)
        new = new.to(now.device, now.dtype)
        try:
            new = new.expand(now.shape)
        except RuntimeError as error:
            raise ValueError(
                f"value of shape {tuple(new.shape)} does not fit {name!r} of layer {layer}, "
                f"of shape {tuple(now.shape)}"
            ) from error
        where = _where(now, positions, heads)
        return new if where is None else torch.where(where, new, now)

    if name == "pattern":
        edit: Edit | PatternEdit = PatternEdit(encoder.layers[layer], new_value)
    elif site.by_head:
        edit = Edit(
            module, side, lambda flat, _: merge_heads(new_value(split_heads(flat, encoder.d_head)))
        )
    else:
        edit = Edit(module, side, lambda now, _: new_value(now))
    with editing(encoder, [edit]):
        yield


def _where(
    now: Tensor, positions: int | Sequence[int] | Tensor | None, heads: Sequence[int] | None
) -> Tensor | None:
    """Boolean mask that broadcasts to [B, T, D] or [B, H, T, .]; None means everywhere."""
    batch, length = now.shape[0], now.shape[-2]
    where = None
    if isinstance(positions, Tensor) and positions.dtype == torch.bool:
        if tuple(positions.shape) != (batch, length):
            raise ValueError(
                f"positions have shape {tuple(positions.shape)}, the batch has {(batch, length)}"
            )
        where = positions.to(now.device)[..., None]
    elif positions is not None:
        numbers = [positions] if isinstance(positions, int) else [int(p) for p in positions]
        wrong = [p for p in numbers if not 0 <= p < length]
        if wrong:
            raise ValueError(f"position {wrong[0]} is not in 0..{length - 1} of this batch")
        where = torch.zeros(1, length, 1, dtype=torch.bool, device=now.device)
        where[:, numbers] = True
    if now.ndim == 4 and where is not None:
        where = where[:, None]
    if heads is not None:
        chosen = torch.zeros(1, now.shape[1], 1, 1, dtype=torch.bool, device=now.device)
        chosen[:, list(heads)] = True
        where = chosen if where is None else where & chosen
    return where


@contextmanager
def ablate_layers(encoder: Encoder, layers: Iterable[int], part: str = "layer") -> Iterator[None]:
    """Pass layers by, or silence one of their two sublayers.

    Args:
        encoder: any encoder.
        layers: numbers of layers.
        part: ``"layer"`` hands a layer's input through unchanged; ``"attention"`` or ``"mlp"`` sets
            what that sublayer adds to the residual stream to 0 (LayerNorms stay).

    Raises:
        LayerIndexError: no such layer.
        ValueError: unknown part.
        NoEffectError: no forward pass ran inside.
    """
    if part not in PARTS_OF_LAYER:
        raise ValueError(f"part is {part!r}, must be one of {', '.join(PARTS_OF_LAYER)}")
    parts = encoder.layers
    edits = []
    for layer in dict.fromkeys(encoder.check_layer(layer) for layer in layers):
        if part == "layer":
            edits.append(Edit(parts[layer].block, "out", lambda _output, args: args[0]))
        else:
            module = parts[layer].output if part == "attention" else parts[layer].ffn_out
            edits.append(Edit(module, "out", lambda output, _args: torch.zeros_like(output)))
    with editing(encoder, edits):
        yield


@contextmanager
def erase(
    encoder: Encoder, layer: int, projection: Tensor, *, centre: Tensor | None = None
) -> Iterator[None]:
    """Project the hidden states of one layer, as in amnesic probing (Elazar et al. 2021).

    Every hidden state h becomes ``centre + projection @ (h - centre)``.

    Args:
        encoder: any encoder.
        layer: 0 .. L as for ``"hidden_states"``.
        projection: [D, D], for example onto the null space of a probe.
        centre: [D], the point that stays in place; 0 by default.

    Raises:
        LayerIndexError: no such layer.
        ValueError: shapes that do not fit.
        NoEffectError: no forward pass ran inside.
    """
    width = encoder.d_model
    if tuple(projection.shape) != (width, width):
        raise ValueError(
            f"projection has shape {tuple(projection.shape)}, expected {(width, width)}"
        )
    if centre is not None and tuple(centre.shape) != (width,):
        raise ValueError(f"centre has shape {tuple(centre.shape)}, expected {(width,)}")

    def projected(hidden: Tensor) -> Tensor:
        matrix = projection.to(hidden.device, hidden.dtype)
        if centre is None:
            return hidden @ matrix.T
        middle = centre.to(hidden.device, hidden.dtype)
        return middle + (hidden - middle) @ matrix.T

    with patch(encoder, "hidden_states", layer, projected):
        yield


@contextmanager
def zero_embeddings(encoder: Encoder, part: str) -> Iterator[None]:
    """Leave one table out of the input sum.

    Args:
        encoder: any encoder.
        part: ``"token"``, ``"position"`` or ``"segment"``.

    Raises:
        ValueError: unknown part, or DistilBERT's missing segments.
        NoEffectError: no forward pass ran inside.
    """
    if part not in PARTS_OF_INPUT:
        raise ValueError(f"part is {part!r}, must be one of {', '.join(PARTS_OF_INPUT)}")
    table = getattr(encoder.embeddings, part)
    if table is None:
        raise ValueError(f"{encoder.name!r} has no {part} embeddings")
    edits = [Edit(table, "out", lambda output, _args: torch.zeros_like(output))]
    with editing(encoder, edits):
        yield


def assert_changes(
    encoder: Encoder,
    texts: Batch | Text | Sequence[Text],
    intervention: AbstractContextManager,
    *,
    tolerance: float = 1e-6,
) -> float:
    """Guard against interventions that silently do nothing.

    Args:
        encoder: the encoder that the intervention is for.
        texts: what to run with and without it.
        intervention: a context manager not yet entered, such as ``ablate_heads(...)``.
        tolerance: largest change of a last hidden state that still counts as none.

    Returns:
        The largest absolute change over all pieces (padding aside).

    Raises:
        NoEffectError: no change above the tolerance.
    """
    batch = texts if isinstance(texts, Batch) else make_batch(encoder, texts)

    def last() -> Tensor:
        with evaluating(encoder):
            return encoder.encode(batch)[batch.attention_mask.bool().to(encoder.device)]

    before = last()
    with intervention:
        after = last()
    change = (after - before).abs().max().item()
    if not change > tolerance:
        raise NoEffectError(f"the intervention changed {encoder.name!r} by {change:.1e} only")
    return change
