"""What the output head reads at a masked place, layer by layer (nostalgebraist 2020)."""

from __future__ import annotations

import torch

from ..activations import run_with_cache
from ..cloze import spell_mask
from ..encoder import Encoder, MissingHeadError, evaluating
from ..stimuli import MASK


def lens_guesses(encoder: Encoder, sentence: str, *, k: int = 6) -> tuple[dict[str, float], ...]:
    """The ``k`` most probable pieces at the mask, read from every layer 0 .. L.

    The head was trained on the last layer alone: what it reads lower down is a lower bound.

    Args:
        encoder: with a trained masked-word head.
        sentence: with one ``[MASK]``.
        k: pieces a layer.

    Returns:
        one mapping a layer, piece -> probability, most probable first.

    Raises:
        MissingHeadError: no trained masked-word head.
        ValueError: not exactly one mask, or ``k`` below 1.
    """
    if not encoder.has_mlm:
        raise MissingHeadError(f"{encoder.name!r} has no trained 'mlm' head")
    if sentence.count(MASK) != 1 or k < 1:
        raise ValueError(f"{sentence.count(MASK)} masks in {sentence!r}, k = {k}")
    cache = run_with_cache(encoder, spell_mask(encoder, sentence), ["hidden_states"])
    where = cache.batch.input_ids[0].tolist().index(encoder.tokenizer.mask_token_id)
    states = torch.stack([layer[0, where] for layer in cache.layers["hidden_states"]])
    with evaluating(encoder):
        values, pieces = encoder.mlm_logits(states).float().softmax(-1).topk(k)
    return tuple(
        dict(zip(encoder.tokenizer.convert_ids_to_tokens(row.tolist()), shown.tolist(),
                 strict=True))
        for row, shown in zip(pieces, values, strict=True)
    )  # fmt: skip
