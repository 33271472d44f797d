"""Does the tokenizer keep neighbouring numbers together? (Wallace et al. 2019, 1909.07940)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..encoder import Encoder
from ..resampling import RESAMPLES, Estimate, percentile_interval
from ..stimuli import NumberExample
from ..words import align_all
from .errors import KnowledgeError
from .numbers import check_numbers


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Cosines of n and n + 1, by whether the tokenizer cuts the two numbers alike.

    Attributes:
        difference: cosine of neighbours cut alike minus of neighbours cut differently.
        alike, different: the mean cosines.
        layer: the layer.
        pieces: number -> its pieces.
    """

    difference: Estimate
    alike: Estimate
    different: Estimate
    layer: int
    pieces: dict[int, tuple[str, ...]]


def neighbour_cosines(
    encoder: Encoder,
    vectors: np.ndarray,
    examples: Sequence[NumberExample],
    *,
    layer: int,
    seed: int = 0,
) -> Neighbours:
    """Compare n with n + 1 where the tokenizer cuts both into pieces of the same lengths, and not.

    Args:
        examples: consecutive numbers in rising order.

    Raises:
        UnmatchedError: not one vector for each example.
        KnowledgeError: numbers that are not consecutive, or all neighbours cut in the same way.
    """
    check_numbers(vectors, examples)
    values = np.array([example.value for example in examples])
    if not np.array_equal(np.diff(values), np.ones(len(values) - 1)):
        raise KnowledgeError("the numbers do not follow one another")
    pieces = _pieces(encoder, examples)
    shapes = [tuple(len(piece.removeprefix("##")) for piece in own) for own in pieces]
    alike = np.array([a == b for a, b in zip(shapes, shapes[1:], strict=False)])
    if alike.all() or not alike.any():
        raise KnowledgeError("all neighbouring numbers are cut in the same way: nothing to compare")
    rows = np.asarray(vectors[layer], dtype=float)
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = (rows[:-1] * rows[1:]).sum(1)
    rng = np.random.default_rng(seed)
    means, draws = {}, {}
    for name, side in (("alike", alike), ("different", ~alike)):
        own = cosines[side]
        replicates = own[rng.integers(0, len(own), (RESAMPLES, len(own)))].mean(1)
        value, draws[name] = float(own.mean()), replicates
        means[name] = Estimate(
            value=value, unit="cosine", n=len(own), model=encoder.name, seed=seed,
            interval=percentile_interval(replicates, value),
        )  # fmt: skip
    value = means["alike"].value - means["different"].value
    difference = Estimate(
        value=value, unit="cosine difference", n=len(cosines), model=encoder.name, seed=seed,
        interval=percentile_interval(draws["alike"] - draws["different"], value),
    )  # fmt: skip
    by_number = {int(v): own for v, own in zip(values, pieces, strict=True)}
    return Neighbours(difference, means["alike"], means["different"], layer, by_number)


def _pieces(encoder: Encoder, examples: Sequence[NumberExample]) -> list[tuple[str, ...]]:
    rows = align_all(encoder, [example.text for example in examples])
    out = []
    for row, example in zip(rows, examples, strict=True):
        spans = zip(row.pieces, row.encoding.offsets, row.is_special, strict=True)
        out.append(
            tuple(
                piece
                for piece, (start, end), special in spans
                if not special and start < example.end and end > example.start
            )
        )
    return out
