"""The two views of bertviz as objects a notebook can show."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from ..page import Display
from .attention import AttentionError, checked_attention, chosen, packed, short
from .frame import framed

# Sizes of bertviz' own drawing, in CSS pixels; the frame reports its true height once drawn.
_ROW, _HEAD_TOP = 22.5, 30
_WIDTH, _DETAIL_ROW = 970, 18


def head_view(
    attention: ArrayLike,
    tokens: Sequence[str],
    *,
    layer: int = 0,
    heads: Sequence[int] | None = None,
    layers: Sequence[int] | None = None,
    sentence_b_start: int | None = None,
    title: str | None = None,
) -> Display:
    """Show the attention of one layer at a time as lines between two columns of tokens.

    Pointing at a token (or moving to it with Tab and the arrow keys) shows what it attends to.

    Args:
        attention: [L, H, T, T], the weights of one sentence; rows are the attending positions.
        tokens: T strings.
        layer: the layer shown first.
        heads: the heads switched on at first; all when not given.
        layers: the layers to carry; all when not given.
        sentence_b_start: position of the first token of sentence B; adds a choice of views
            within and between the two sentences.
        title: says what the view shows, for screen readers and as a tooltip.

    Raises:
        AttentionError: the attention does not fit the tokens, a layer or head does not exist,
            or there are too many weights for a page.
    """
    weights = checked_attention(attention, tokens)
    included = chosen("layers", layers, weights.shape[0])
    if layer not in included:
        raise AttentionError(f"layer {layer} is not among the layers {included}")
    lit = chosen("heads", heads, weights.shape[1])
    if sentence_b_start is not None and not 0 < sentence_b_start < len(tokens):
        raise AttentionError(
            f"sentence_b_start is {sentence_b_start}; it must lie inside the {len(tokens)} tokens"
        )
    weights = weights[included]
    return _display(
        "head_view",
        {
            "weights": packed(weights),
            "shape": list(weights.shape),
            "tokens": [short(token) for token in tokens],
            "layers": included,
            "heads": list(range(weights.shape[1])),
            "layer": layer,
            "lit": lit,
            "sentence_b_start": sentence_b_start,
        },
        title or f"Attention heads, {_counted(weights, tokens)}",
        height=len(tokens) * _ROW + _HEAD_TOP + 150,
    )


def model_view(
    attention: ArrayLike,
    tokens: Sequence[str],
    *,
    heads: Sequence[int] | None = None,
    layers: Sequence[int] | None = None,
    title: str | None = None,
) -> Display:
    """Show all layers (rows) and heads (columns) at once; a click enlarges a head.

    Args and errors are those of :func:`head_view`.
    """
    weights = checked_attention(attention, tokens)
    rows = chosen("layers", layers, weights.shape[0])
    columns = chosen("heads", heads, weights.shape[1])
    weights = weights[rows][:, columns]
    # bertviz divides its width by the number of heads; under six, heads would get too tall.
    across = max(6, len(columns))
    thumbnail = len(tokens) * 84 / across + 10
    drawn = max(len(rows) * thumbnail + 41, len(tokens) * _DETAIL_ROW + 55)
    return _display(
        "model_view",
        {
            "weights": packed(weights),
            "shape": list(weights.shape),
            "tokens": [short(token) for token in tokens],
            "layers": rows,
            "heads": columns,
            "across": across,
        },
        title or f"Attention of the whole model, {_counted(weights, tokens)}",
        height=drawn * 0.75 + 80,
    )


def _counted(weights, tokens: Sequence[str]) -> str:
    n_layers, n_heads = weights.shape[:2]
    return (
        f"{n_layers} layer{'s' * (n_layers != 1)} of {n_heads} head{'s' * (n_heads != 1)}, "
        f"over: {' '.join(tokens)}"
    )


def _display(view: str, data: dict, title: str, height: float) -> Display:
    return Display(
        html=framed(view, data, title=title, height=round(height)), text=f"[{view}: {title}]"
    )
