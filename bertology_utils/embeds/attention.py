"""Checking and packing attention for the frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

#: The most attention weights one view may carry; each takes about three bytes of the page.
MAX_WEIGHTS = 250_000
#: Weights travel as whole thousandths.
STEPS = 1000
#: Longer tokens do not fit into the drawing and end in an ellipsis.
MAX_TOKEN_LETTERS = 12


class AttentionError(ValueError):
    """The attention or the tokens cannot be drawn."""


def checked_attention(attention: ArrayLike, tokens: Sequence[str]) -> np.ndarray:
    """Return the attention as a float array [L, H, T, T] that fits the tokens.

    Raises:
        AttentionError: the shape is not [layers, heads, T, T] with T = len(tokens), a weight is
            not a finite number from 0 to 1, or a token is not text.
    """
    if isinstance(tokens, str):
        raise AttentionError("tokens is one string; give a list with one string per token")
    for position, token in enumerate(tokens):
        if not isinstance(token, str):
            raise AttentionError(f"token {position} is {token!r}, not text")
    try:
        weights = np.asarray(attention, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise AttentionError(
            f"attention is not an array of shape [layers, heads, T, T]: {error}"
        ) from None
    if weights.ndim != 4 or 0 in weights.shape:
        raise AttentionError(
            f"attention has shape {weights.shape}; [layers, heads, T, T] of one sentence is needed"
        )
    length = len(tokens)
    if weights.shape[2:] != (length, length):
        raise AttentionError(
            f"attention over {weights.shape[2]} x {weights.shape[3]} positions does not fit "
            f"{length} tokens"
        )
    # float16 softmax rows may overshoot 1 by rounding.
    if not np.isfinite(weights).all() or weights.min() < 0 or weights.max() > 1.001:
        raise AttentionError("attention weights must be finite numbers from 0 to 1")
    return weights


def chosen(name: str, wanted: Sequence[int] | None, available: int) -> list[int]:
    """Return the chosen layers or heads: all of them unless ``wanted`` says otherwise.

    Raises:
        AttentionError: none or an unknown one is wanted, or one twice.
    """
    if wanted is None:
        return list(range(available))
    numbers = [int(number) for number in wanted]
    if not numbers or len(set(numbers)) != len(numbers):
        raise AttentionError(f"{name} {numbers}: name at least one, and none twice")
    for number in numbers:
        if not 0 <= number < available:
            raise AttentionError(f"{name} {number} does not exist; there are 0 to {available - 1}")
    return numbers


def packed(weights: np.ndarray) -> list[int]:
    """Return the weights in C order as whole thousandths.

    Raises:
        AttentionError: they are too many for a page.
    """
    if weights.size > MAX_WEIGHTS:
        raise AttentionError(
            f"{weights.size:,} attention weights are more than the {MAX_WEIGHTS:,} a page can "
            "carry; choose fewer layers or heads, or a shorter text"
        )
    return np.rint(np.clip(weights, 0, 1) * STEPS).astype(int).ravel().tolist()


def short(token: str) -> str:
    """Return the token as drawn: visible, and cut where it would run out of its column."""
    visible = token if token.strip() else "␣" * max(1, len(token))
    if len(visible) <= MAX_TOKEN_LETTERS:
        return visible
    return visible[: MAX_TOKEN_LETTERS - 1] + "…"
