"""What a smaller token table costs in predicting masked words."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..encoder import Encoder, evaluating
from ..resampling import Estimate, percentile_interval, resampled_means
from ..training.masking import ALWAYS_MASK, apply_masking
from ..words import Text, token_batches
from .tables import low_rank


@dataclass(frozen=True, eq=False)
class MaskedLosses:
    """Losses at masked pieces, text by text.

    Attributes:
        losses: [N] sum of each text, in nats.
        right: [N] pieces of each text that were predicted.
        asked: [N] masked pieces of each text.
    """

    losses: np.ndarray
    right: np.ndarray
    asked: np.ndarray

    @property
    def loss(self) -> float:
        """Mean loss of a masked piece, in nats."""
        return float(self.losses.sum() / self.asked.sum())

    @property
    def accuracy(self) -> float:
        return float(self.right.sum() / self.asked.sum())


def masked_losses(encoder: Encoder, texts: Sequence[Text], *, seed: int = 0) -> MaskedLosses:
    """Mask 15 % of the pieces, always by [MASK], and predict them.

    The same seed masks the same pieces, so that two models can be compared text by text.

    Raises:
        MissingHeadError: no trained masked-language-model head.
    """
    n = len(texts)
    losses, right, asked = np.zeros(n), np.zeros(n), np.zeros(n)
    draw = np.random.default_rng(seed)
    with evaluating(encoder):
        for batch in token_batches(encoder, texts, max_tokens=2048):
            ids, chosen = apply_masking(
                batch.input_ids.numpy(), batch.is_text.numpy(), ALWAYS_MASK,
                mask_id=encoder.tokenizer.mask_token_id, vocab_size=len(encoder.tokenizer),
                rng=draw,
            )  # fmt: skip
            hidden = encoder.encode(batch.with_ids(torch.from_numpy(ids)))
            where = torch.from_numpy(chosen)
            logits = encoder.mlm_logits(hidden[where.to(hidden.device)]).float().cpu()
            gold = batch.input_ids[where]
            lost = torch.nn.functional.cross_entropy(logits, gold, reduction="none").numpy()
            rows = np.array(batch.index)[np.nonzero(chosen)[0]]
            np.add.at(losses, rows, lost)
            np.add.at(right, rows, (logits.argmax(-1) == gold).numpy().astype(float))
            np.add.at(asked, rows, 1.0)
    return MaskedLosses(losses, right, asked)


def with_token_rank(encoder: Encoder, rank: int) -> Encoder:
    """A copy whose token table is the nearest one of rank ``rank``, at the input and, where it is
    tied, at the output.

    Raises:
        CompressionError: an impossible rank.
    """
    made = replace(encoder, model=copy.deepcopy(encoder.model),
                   name=f"{encoder.name} (table of rank {rank})")  # fmt: skip
    table = made.embeddings.token.weight
    left, right = low_rank(table.detach(), rank)
    with torch.no_grad():
        table.copy_(left @ right)
    return made


def loss_rise(after: MaskedLosses, before: MaskedLosses, model: str, *, seed: int = 11) -> Estimate:
    """Mean loss after minus before, paired bootstrap over texts, in nats."""
    value = after.loss - before.loss
    draws = resampled_means(after.losses - before.losses, before.asked, seed=seed)
    return Estimate(value=value, unit="nats", n=len(before.asked), model=model, seed=seed,
                    interval=percentile_interval(draws, value))  # fmt: skip
