"""What each part of the input sum is worth to masked prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..encoder import Encoder
from ..interventions import zero_embeddings
from ..resampling import Estimate
from ..words import Text
from .masked import MaskedScores, positions_in_common, score_masked

PARTS = ("token", "position", "segment")


@dataclass(frozen=True)
class PartValues:
    """Rise of the masked-token loss when a part of the input is zeroed.

    Attributes:
        parts: part -> mean rise in nats, interval over texts, and the same measurement on random
            weights as baseline ``random_model``.
        whole, control: the scores with the whole input, of the model and of the control.
    """

    parts: dict[str, Estimate]
    whole: MaskedScores
    control: MaskedScores

    @property
    def smallest(self) -> Estimate:
        """The part that is missed least: the claim holds if even this one is missed."""
        return min(self.parts.values(), key=lambda part: part.value)


def available_parts(encoder: Encoder) -> tuple[str, ...]:
    """The parts that the encoder's input has (DistilBERT has no segments)."""
    tables = encoder.embeddings
    return tuple(part for part in PARTS if getattr(tables, part) is not None)


def value_of_parts(
    encoder: Encoder, control: Encoder, texts: Sequence[Text], *, seed: int = 0
) -> PartValues:
    """Zero each part of the input in turn and measure how much masked prediction suffers.

    Args:
        encoder: a model with a trained MLM head.
        control: the same architecture with random weights.
        texts: pairs, so that segments carry something.
        seed: of the masked positions.

    Raises:
        MissingHeadError: no trained MLM head.
        ValueError: no texts.
    """
    whole, blank = (score_masked(model, texts, seed=seed) for model in (encoder, control))
    parts = {}
    for part in available_parts(encoder):
        without = []
        for model in (encoder, control):
            with zero_embeddings(model, part):
                without.append(score_masked(model, texts, seed=seed))
        positions_in_common([whole, blank, *without])
        parts[part] = whole.mean(
            whole.log_prob - without[0].log_prob,
            "nats",
            random_model=float((blank.log_prob - without[1].log_prob).mean()),
        )
    return PartValues(parts, whole, blank)
