"""Tiny BERTs trained from nothing that differ in one thing: size, or dropout of attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from ..cloze import compare_at_mask
from ..encoder import Encoder
from ..resampling import Estimate, mean_over_runs
from ..syntax.saturation import MASKED, TinyPair, tiny_encoder, tiny_language
from ..words import make_batch
from .likeness import within_layers


@dataclass(frozen=True, eq=False)
class Twin:
    """A tiny BERT after training on masked words of the tiny language.

    Attributes:
        encoder: trained.
        loss: mean over the last tenth of the steps, in nats.
        seed: of weights, order and masks.
    """

    encoder: Encoder = field(repr=False)
    loss: float
    seed: int


def train_tiny(
    sentences: Sequence[str],
    *,
    layers: int = 1,
    width: int = 32,
    heads: int = 4,
    attention_dropout: float = 0.0,
    steps: int = 200,
    batch_size: int = 48,
    lr: float = 3e-3,
    seed: int = 0,
) -> Twin:
    """Train on masked words from nothing.

    Args:
        sentences: of the tiny language.
        layers, width, heads: of the model.
        attention_dropout: share of attention weights dropped in training.
        steps, batch_size, lr, seed: as usual.

    Raises:
        ValueError: no sentences or steps, or a share outside [0, 1).
    """
    if not sentences or steps < 1 or not 0 <= attention_dropout < 1:
        raise ValueError(f"{len(sentences)} sentences, {steps} steps, dropout {attention_dropout}")
    words = sorted({word for sentence in sentences for word in sentence.split()})
    encoder = tiny_encoder(words, layers=layers, width=width, heads=heads, seed=seed)
    for part in encoder.layers:
        part.attention.dropout.p = attention_dropout
    batch = make_batch(encoder, list(sentences))
    special = len(encoder.tokenizer.all_special_ids)
    draw = torch.Generator().manual_seed(seed)
    parameters = list(encoder.model.parameters())
    optimiser = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.01, fused=True)
    losses = []
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder.model.train()
        for step in range(steps):
            for group in optimiser.param_groups:
                group["lr"] = lr * min(1.0, (step + 1) / max(1, steps // 10))
            rows = torch.randint(len(batch), (batch_size,), generator=draw)
            ids, mask = batch.input_ids[rows], batch.attention_mask[rows]
            chosen = (torch.rand(ids.shape, generator=draw) < MASKED) & (ids >= special)
            chosen[0, 1] = True  # at least one
            shown = ids.masked_fill(chosen, encoder.tokenizer.mask_token_id)
            hidden = encoder.base(input_ids=shown, attention_mask=mask).last_hidden_state
            loss = nn.functional.cross_entropy(encoder.mlm_logits(hidden[chosen]), ids[chosen])
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimiser.step()
            losses.append(loss.item())
    encoder.model.eval()
    return Twin(encoder, float(np.mean(losses[-max(1, steps // 10) :])), seed)


def language(n: int = 600, pairs: int = 150) -> tuple[list[str], list[TinyPair]]:
    """Training sentences and other sentences with a hidden verb, all in one vocabulary."""
    train = [pair.sentence for pair in tiny_language(n, 0)]
    known = {word for sentence in train for word in sentence.split()}
    judged = tiny_language(pairs, 1, exclude=train)
    return train, [p for p in judged if {p.bad, *p.sentence.split()} <= known]


def agreement(twin: Twin, pairs: Sequence[TinyPair]) -> np.ndarray:
    """[N] True where the verb in the subject's number is ahead."""
    found = compare_at_mask(
        twin.encoder, [p.frame for p in pairs], [p.good for p in pairs], [p.bad for p in pairs]
    )
    return np.array(found.margins) > 0


def likeness(twin: Twin, texts: Sequence[str]) -> float:
    """Mean divergence of two heads of one layer, in nats."""
    return float(within_layers(twin.encoder, texts).mean())


def over_seeds(
    one: Sequence[float], other: Sequence[float], model: str, unit: str
) -> Estimate:
    """Mean of one minus the other, paired by seed, with Student's t over seeds.

    Raises:
        ValueError: fewer than two seeds, or different numbers.
    """
    if len(one) != len(other):
        raise ValueError(f"{len(one)} seeds against {len(other)}")
    return mean_over_runs(np.subtract(one, other), unit=unit, model=model)
