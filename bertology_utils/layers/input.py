"""Layer 0 put together from its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from ..activations import run_with_cache
from ..architecture import input_by_hand, input_parts, layer_norm
from ..encoder import Encoder
from ..resampling import Estimate
from ..words import Text, make_batch


@dataclass(frozen=True, kw_only=True)
class InputSum(Estimate):
    """Largest absolute difference between layer 0 and the sum made by hand.

    Attributes:
        without: part -> the largest difference when that part is left out of the sum; empty where
            the sum passes through another map before it enters the first layer (ELECTRA).
    """

    without: dict[str, float] = field(default_factory=dict)


def input_sum(encoder: Encoder, texts: Sequence[Text]) -> InputSum:
    """Compare layer 0 with the normalised sum of token, position and segment vectors.

    Raises:
        EmptyTextError: no texts.
    """
    batch = make_batch(encoder, texts)
    real = batch.attention_mask.bool().to(encoder.device)
    given = run_with_cache(encoder, batch, ["hidden_states"]).layers["hidden_states"][0]

    def apart(made: torch.Tensor) -> float:
        return float((made - given).abs()[real].max())

    tables, parts = encoder.embeddings, input_parts(encoder, batch)
    without = {}
    if tables.projection is None:
        with torch.no_grad():
            for name in parts:
                rest = sum(vectors for other, vectors in parts.items() if other != name)
                without[name] = apart(layer_norm(rest, tables.norm))
    return InputSum(
        value=apart(input_by_hand(encoder, batch)), unit="absolute error", n=int(real.sum()),
        model=encoder.name, without=without,
    )  # fmt: skip
