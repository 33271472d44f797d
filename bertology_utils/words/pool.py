"""From vectors of pieces to vectors of words."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .batches import Batch
from .errors import AlignmentError

POOLINGS = ("mean", "first", "last")


def pool_words(hidden: Tensor, spans: Sequence[tuple[int, int]], how: str = "mean") -> Tensor:
    """Vectors of the words of one text.

    Args:
        hidden: [..., T, D] vectors of its pieces; leading dimensions (layers) pass through.
        spans: (first piece, one past the last) of each of W words.
        how: ``"mean"`` over the pieces, or the ``"first"`` or ``"last"`` piece.

    Returns:
        [..., W, D], on the device and in the type of ``hidden``, differentiable.

    Raises:
        ValueError: unknown ``how``.
        AlignmentError: a span is empty or runs out of the text.
    """
    if how not in POOLINGS:
        raise ValueError(f"how is {how!r}, must be one of {', '.join(POOLINGS)}")
    length = hidden.shape[-2]
    for start, end in spans:
        if not 0 <= start < end <= length:
            raise AlignmentError(f"span ({start}, {end}) is empty or not within 0..{length}")
    if how != "mean":
        pieces = [start if how == "first" else end - 1 for start, end in spans]
        return hidden.index_select(-2, _index(pieces, hidden))
    pieces = [piece for start, end in spans for piece in range(start, end)]
    owners = [word for word, (start, end) in enumerate(spans) for _ in range(start, end)]
    sums = hidden.new_zeros(*hidden.shape[:-2], len(spans), hidden.shape[-1]).index_add(
        -2, _index(owners, hidden), hidden.index_select(-2, _index(pieces, hidden))
    )
    counts = [end - start for start, end in spans]
    return sums / _index(counts, hidden).to(hidden.dtype)[:, None]


def pool_batch(hidden: Tensor, batch: Batch, how: str = "mean") -> Tensor:
    """Vectors of all words of a batch, row after row.

    Args:
        hidden: [..., B, T, D].
        batch: the B texts.
        how: as in :func:`pool_words`.

    Returns:
        [..., N, D] with N the words of all rows together; ``batch.spans`` has the counts.

    Raises:
        ValueError, AlignmentError: as :func:`pool_words`.
    """
    length = hidden.shape[-2]
    flat = [
        (row * length + start, row * length + end)
        for row, spans in enumerate(batch.spans)
        for start, end in spans
    ]
    return pool_words(hidden.flatten(-3, -2), flat, how)


def _index(values: Sequence[int], like: Tensor) -> Tensor:
    return torch.tensor(values, dtype=torch.long, device=like.device)
