"""What the matrices of a model meet when it reads: the second moments of their inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import torch
from torch import nn

from ..encoder import Encoder, evaluating
from ..stimuli import SENSE_WORDS, sense_examples

#: texts whose inputs are kept before they are added up; each sum costs as much as many texts
_TEXTS_AT_ONCE = 100


def calibration_texts() -> list[str]:
    """Sentences to watch a model on: one for every frame of the sense-tagged words.

    The agreement of the small model is measured on other texts.
    """
    texts = []
    for word in SENSE_WORDS:
        frames = {(e.sense, e.frame): e.text for e in sense_examples(word)}
        texts += frames.values()
    return texts


def input_moments(encoder: Encoder, texts: Iterable[str]) -> dict[nn.Linear, np.ndarray]:
    """Mean of x xᵀ [in, in] over the inputs x of every linear layer, while reading ``texts``.

    Every seventh piece is masked, as in training; the head on top reads masked places only.

    Raises:
        ValueError: there are no texts.
    """
    model, mask = encoder.model, encoder.tokenizer.mask_token_id
    sums: dict[nn.Linear, torch.Tensor] = {}
    counts: Counter[nn.Linear] = Counter()
    seen: dict[nn.Linear, list[torch.Tensor]] = {}

    def watch(layer: nn.Linear, inputs: tuple[torch.Tensor, ...]) -> None:
        seen.setdefault(layer, []).append(inputs[0].reshape(-1, layer.in_features))

    def add_up() -> None:
        for layer, parts in seen.items():
            rows = torch.cat(parts)
            sums[layer] = sums.get(layer, 0) + (rows.T @ rows).double()
            counts[layer] += len(rows)
        seen.clear()

    handles = [
        module.register_forward_pre_hook(watch)
        for module in model.modules()
        if isinstance(module, nn.Linear)
    ]
    try:
        with evaluating(encoder):
            for number, text in enumerate(texts):
                ids = torch.tensor([encoder.tokenizer(text)["input_ids"]], device=encoder.device)
                places = torch.arange(1 + number % 7, ids.shape[1] - 1, 7, device=encoder.device)
                ids[0, places] = mask
                hidden = encoder.base(ids).last_hidden_state
                encoder.mlm_logits(hidden[:, places])
                if number % _TEXTS_AT_ONCE == 0:
                    add_up()
        add_up()
    finally:
        for handle in handles:
            handle.remove()
    if not sums:
        raise ValueError("there are no texts to watch the model on")
    return {layer: (total / counts[layer]).cpu().numpy() for layer, total in sums.items()}
