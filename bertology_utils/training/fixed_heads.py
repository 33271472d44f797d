"""Heads wired to look at a neighbour (after Raganato et al. 2020 and You et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..attention import attention_to, masked_loss
from ..encoder import Encoder, evaluating
from ..interventions import PatternEdit, editing
from ..resampling import Estimate, percentile_interval, resampled_means
from ..words import Text, token_batches

#: (layer, head) -> which neighbour the head is wired to, as a step: -1 or +1
Wiring = Mapping[tuple[int, int], int]


def fixed_pattern(pattern: Tensor, heads: Mapping[int, int]) -> Tensor:
    """A pattern [B, H, T, T] in which some heads put all weight on a neighbour.

    ``heads`` maps a head to its step. Where there is no such piece, the head looks at itself.
    """
    length = pattern.shape[-1]
    real = pattern.amax((1, 2)) > 0  # [B, T]: pieces that anyone looks at
    fixed = pattern.clone()
    for head, step in heads.items():
        wanted = torch.arange(length, device=pattern.device) + step
        inside = (wanted >= 0) & (wanted < length)
        target = wanted.clamp(0, length - 1).expand(len(pattern), -1)
        target = torch.where(
            inside & real.gather(1, target), target, torch.arange(length, device=pattern.device)
        )
        fixed[:, head] = torch.nn.functional.one_hot(target, length).to(pattern.dtype)
    return fixed


def losses_with(encoder: Encoder, texts: Sequence[Text], wiring: Wiring) -> np.ndarray:
    """[N] masked loss of every text with some heads wired, in nats; no heads: the model as it is.

    Raises:
        MissingHeadError: no trained MLM head.
    """
    loss, found = masked_loss(), np.zeros(len(texts))
    edits = []
    for layer in sorted({layer for layer, _ in wiring}):
        own = {head: step for (at, head), step in wiring.items() if at == layer}
        edits.append(
            PatternEdit(encoder.layers[layer], lambda p, own=own: fixed_pattern(p, own))
        )
    with evaluating(encoder), editing(encoder, edits), torch.no_grad():
        for batch in token_batches(encoder, texts, max_tokens=2048):
            found[list(batch.index)] = loss(encoder, batch).cpu().numpy()
    return found


@dataclass(frozen=True)
class WiredHeads:
    """What wiring costs.

    Attributes:
        difference: rise of the loss with the most diagonal heads wired, minus with as many
            others; texts resampled.
        diagonal, others: the two rises, in nats.
        heads: the most diagonal ones, with their steps.
        loss: of the model as it is.
    """

    difference: Estimate
    diagonal: float
    others: float
    heads: Wiring
    loss: float


def wired_heads(
    encoder: Encoder, texts: Sequence[Text], *, share: float = 1 / 6, draws: int = 3, seed: int = 0
) -> WiredHeads:
    """Wire the ``share`` of heads that look most at one neighbour, and as many others.

    Every head is wired to the neighbour that it looks at more. Others are ``draws`` random sets
    without the chosen heads.

    Raises:
        ValueError: a share outside (0, 0.5].
    """
    if not 0 < share <= 0.5:
        raise ValueError(f"share is {share}, must lie in (0, 0.5]")
    towards = attention_to(encoder, texts, targets=("previous", "next"))
    before, after = (towards[name].scores for name in ("previous", "next"))
    step = np.where(before >= after, -1, 1)
    strength = np.maximum(before, after)
    places = [divmod(int(i), encoder.n_heads) for i in np.argsort(-strength.ravel())]
    k = max(1, round(share * len(places)))
    best = {place: int(step[place]) for place in places[:k]}
    plain = losses_with(encoder, texts, {})
    diagonal = losses_with(encoder, texts, best) - plain
    rng = np.random.default_rng(seed)
    rest = places[k:]
    others = np.mean([
        losses_with(encoder, texts, {
            rest[i]: int(step[rest[i]]) for i in rng.permutation(len(rest))[:k]
        }) - plain
        for _ in range(draws)
    ], axis=0)  # fmt: skip
    gap = diagonal - others
    value = float(gap.mean())
    difference = Estimate(
        value=value, unit="nats", n=len(texts), model=encoder.name, seed=seed,
        interval=percentile_interval(resampled_means(gap, np.ones(len(gap)), seed=seed), value),
    )  # fmt: skip
    return WiredHeads(
        difference, float(diagonal.mean()), float(others.mean()), best, float(plain.mean())
    )
