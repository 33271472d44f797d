"""Half a model: every second layer taken out, and the rest taught to stand in for the whole."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import nn

from ..encoder import Encoder, evaluating
from ..words import Text, make_batch


def every_second_layer(encoder: Encoder) -> Encoder:
    """A copy with layers 2, 4, 6, ... alone (the start of DistilBERT; Sanh et al. 2019).

    Raises:
        ValueError: fewer than two layers.
    """
    if encoder.n_layers < 2:
        raise ValueError(f"{encoder.name!r} has no second layer")
    made = replace(
        encoder, model=copy.deepcopy(encoder.model), name=f"half of {encoder.name}"
    )
    blocks = made.family.blocks(made.base)
    for number in range(len(blocks) - 1, -1, -1):
        if number % 2 == 0:
            del blocks[number]
    made.config.num_hidden_layers = len(blocks)
    return made


def half_as_deep(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    batch_size: int = 16,
    lr: float = 5e-4,
    seed: int = 0,
) -> tuple[Encoder, list[float]]:
    """Train :func:`every_second_layer` until its last layer resembles that of the whole model.

    One pass over the texts; the loss is 1 - cosine of the last hidden states, piece by piece, so
    that no label and no output head is needed. The embeddings stay as they are.

    Args:
        encoder: the whole; it stays as it is.
        texts: to learn on.
        batch_size, lr: of AdamW, with a warm-up over a tenth of the steps and linear decay.
        seed: of the order.

    Returns:
        the half, and its loss at every step.

    Raises:
        ValueError: no texts, or a model of one layer.
    """
    if not len(texts):
        raise ValueError("nothing to learn on")
    made = every_second_layer(encoder)
    for parameter in made.model.parameters():
        parameter.requires_grad_(False)
    trained = [p for block in made.family.blocks(made.base) for p in block.parameters()]
    for parameter in trained:
        parameter.requires_grad_(True)
    optimiser = torch.optim.AdamW(trained, lr=lr, weight_decay=0.01, fused=True)
    order = np.random.default_rng(seed).permutation(len(texts))
    steps = -(-len(texts) // batch_size)
    warm, losses = max(1, steps // 10), []
    for step, rows in enumerate(np.array_split(order, steps)):
        batch = make_batch(encoder, [texts[i] for i in rows])
        real = batch.attention_mask.bool().to(encoder.device)
        with evaluating(encoder):
            told = encoder.encode(batch)[real]
        rate = (step + 1) / warm if step < warm else (steps - step) / (steps - warm + 1)
        for group in optimiser.param_groups:
            group["lr"] = lr * rate
        said = made.encode(batch)[real]
        loss = (1 - nn.functional.cosine_similarity(said, told, dim=-1)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    for parameter in made.model.parameters():
        parameter.requires_grad_(True)
    optimiser.zero_grad()
    return made, losses
