"""The heads that a task needs: pruning from the least important one (Michel et al. 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from ..encoder import evaluating
from ..interventions import ablate_heads, scale_heads
from ..words import Text, make_batch
from .tuning import TunedEncoder

#: A head survives while this share of the full accuracy is kept (Prasanna et al. 2020).
KEPT_ACCURACY = 0.9
#: Share of all heads that go at a time.
STEP = 0.1


@dataclass(frozen=True, eq=False)
class Survivors:
    """What is left of a fine-tuned model before it loses too much.

    Attributes:
        heads: (layer, head) of those left, most important first.
        accuracy: with these heads alone.
        full_accuracy: with all of them.
        importance: [L, H] mean size of the loss's slope in a head's gate, in nats.
        curve: share of heads left -> accuracy, from all to the first step that lost too much.
    """

    heads: tuple[tuple[int, int], ...]
    accuracy: float
    full_accuracy: float
    importance: np.ndarray = field(repr=False)
    curve: dict[float, float]


def head_importance(
    tuned: TunedEncoder, texts: Sequence[Text], labels: Sequence[int]
) -> np.ndarray:
    """[L, H] mean over texts of |d loss / d gate|, the gate being 1 (Michel et al. 2019).

    Raises:
        ValueError: texts and labels do not fit.
    """
    if len(texts) != len(labels) or not len(texts):
        raise ValueError(f"{len(texts)} texts with {len(labels)} labels")
    encoder = tuned.encoder
    gates = torch.ones(
        len(texts), encoder.n_layers, encoder.n_heads, device=encoder.device, requires_grad=True
    )
    gold = torch.tensor(list(labels), device=encoder.device)
    with evaluating(encoder), torch.enable_grad(), scale_heads(encoder, gates):
        probabilities = tuned.predict(encoder, make_batch(encoder, texts))
        loss = torch.nn.functional.nll_loss(probabilities.log(), gold, reduction="sum")
        (slopes,) = torch.autograd.grad(loss, gates)
    return slopes.abs().mean(0).cpu().numpy()


def surviving_heads(
    tuned: TunedEncoder,
    train: tuple[Sequence[Text], Sequence[int]],
    test: tuple[Sequence[Text], Sequence[int]],
) -> Survivors:
    """Take heads away, the least important first, while the accuracy stays near the full one.

    Importance comes from the training texts, accuracy from the test texts.

    Raises:
        ValueError: texts and labels do not fit.
    """
    encoder = tuned.encoder
    importance = head_importance(tuned, *train)
    order = [(int(k) // encoder.n_heads, int(k) % encoder.n_heads)
             for k in np.argsort(importance, axis=None, kind="stable")]  # fmt: skip
    full = float(tuned.right(*test).mean())
    curve, kept, accuracy = {1.0: full}, order, full
    size = max(1, round(STEP * len(order)))
    for gone in range(size, len(order), size):
        off: dict[int, list[int]] = {}
        for layer, head in order[:gone]:
            off.setdefault(layer, []).append(head)
        with ablate_heads(encoder, off):
            now = float(tuned.right(*test).mean())
        curve[1 - gone / len(order)] = now
        if now < KEPT_ACCURACY * full:
            break
        kept, accuracy = order[gone:], now
    return Survivors(tuple(reversed(kept)), accuracy, full, importance, curve)
