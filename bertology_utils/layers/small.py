"""A small BERT trained here and now, to have a second size to compare with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from transformers import BertConfig

from ..encoder import Encoder, new_encoder
from ..semantics import held_out_subjects, relation_task
from ..stimuli import coreference, treebank
from ..syntax.saturation import word_tokenizer
from ..words import make_batch

MASKED = 0.2


def train_small(
    sentences: Sequence[Sequence[str]],
    *,
    layers: int = 3,
    width: int = 128,
    heads: int = 4,
    steps: int = 500,
    batch_size: int = 48,
    lr: float = 2e-3,
    seed: int = 0,
) -> tuple[Encoder, list[float]]:
    """Train a BERT on masked words of some sentences; it never sees a label.

    Args:
        sentences: as words; its vocabulary is theirs.
        layers, width, heads: of the model.
        steps, batch_size, lr: of AdamW, with a warm-up over a tenth of the steps and linear decay.
        seed: of weights, order and masks.

    Returns:
        the encoder, and the loss of every step in nats.

    Raises:
        ValueError: no sentences, or a width that the heads do not divide.
    """
    if not len(sentences):
        raise ValueError("nothing to train on")
    tokenizer = word_tokenizer(sorted({word for words in sentences for word in words}))
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=width, num_hidden_layers=layers,
        num_attention_heads=heads, intermediate_size=4 * width, max_position_embeddings=64,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, initializer_range=0.05,
    )  # fmt: skip
    name = f"small BERT of {layers} layers"
    encoder = new_encoder(config, tokenizer, seed=seed, name=name, device="cpu")
    draw = np.random.default_rng(seed)
    ordered = sorted(sentences, key=len)
    batches = [
        make_batch(encoder, [" ".join(words) for words in ordered[start : start + batch_size]])
        for start in range(0, len(ordered), batch_size)
    ]
    optimiser = torch.optim.AdamW(encoder.model.parameters(), lr=lr, weight_decay=0.01, fused=True)
    warm, losses = max(1, steps // 10), []
    for step in range(steps):
        rate = (step + 1) / warm if step < warm else (steps - step) / (steps - warm)
        for group in optimiser.param_groups:
            group["lr"] = lr * rate
        batch = batches[int(draw.integers(len(batches)))]
        chosen = batch.is_text & torch.from_numpy(draw.random(batch.input_ids.shape) < MASKED)
        chosen[0, 1] = True  # at least one
        shown = batch.input_ids.masked_fill(chosen, tokenizer.mask_token_id)
        hidden = encoder.encode(batch.with_ids(shown))
        loss = nn.functional.cross_entropy(
            encoder.mlm_logits(hidden[chosen]), batch.input_ids[chosen]
        )
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(encoder.model.parameters(), 1.0)
        optimiser.step()
        losses.append(loss.item())
    optimiser.zero_grad()
    return encoder, losses


def plain_sentences(n: int, *, seed: int = 0) -> list[tuple[str, ...]]:
    """Sentences to train on, as words: ``n`` of the grammar, and those of the tasks on coreference
    and relations, so that their names have vectors. No labels."""
    grammar = [sentence.words for sentence in treebank(n, seed + 101)]
    people = [item.words for item in coreference(240, seed)]
    named = relation_task(*held_out_subjects(40)).sentences
    return [*grammar, *people, *named]
