"""Where solutions lie: the loss along straight lines between weights, and how far layers moved."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from ..activations import stream
from ..encoder import Encoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..words import Text
from .tuned import Examples, Tuned


@dataclass(frozen=True, eq=False)
class Path:
    """Mean loss, in nats, and accuracy along a line from one set of weights (0) to another (1)."""

    places: tuple[float, ...]
    loss: tuple[float, ...]
    accuracy: tuple[float, ...]


def path(start: Tuned, end: Tuned, given: Examples, places: Sequence[float]) -> Path:
    """Weights between two fine-tuned models, encoder and new layer, judged on some texts.

    Places below 0 and above 1 lie beyond the two (Hao et al. 2019).

    Raises:
        ValueError: models that do not share what lies below their lowest trained layer.
    """
    if start.layer != end.layer:
        raise ValueError(f"layers are trained from {start.layer} and from {end.layer}")
    between = copy.deepcopy(start)
    trios = list(zip(_weights(between), _weights(start), _weights(end), strict=True))
    moved = [trio for trio in trios if not torch.equal(trio[1], trio[2])]
    losses, shares = [], []
    for place in places:
        with torch.no_grad():
            for weight, a, b in moved:
                weight.copy_(a + place * (b - a))
        logits = between.logits(given)
        losses.append(float(nn.functional.cross_entropy(logits, given.labels)))
        shares.append(float((logits.argmax(-1) == given.labels).float().mean()))
    return Path(tuple(map(float, places)), tuple(losses), tuple(shares))


def _weights(tuned: Tuned) -> list[torch.Tensor]:
    return [*tuned.encoder.base.parameters(), *tuned.head.parameters()]


def state_change(
    before: Encoder, after: Encoder, texts: Sequence[Text], *, seed: int = 0
) -> tuple[Estimate, ...]:
    """1 - cosine of a piece's states before and after, for every layer from the embeddings up.

    Mean over pieces, with an interval over texts.

    Raises:
        ValueError: models of other shapes.
    """
    if (before.n_layers, before.d_model) != (after.n_layers, after.d_model):
        raise ValueError(f"{before.name!r} and {after.name!r} differ in layers or width")
    sums = np.zeros((len(texts), before.n_layers + 1))
    counts = np.zeros(len(texts))
    pairs = zip(*(stream(m, texts, ["hidden_states"]) for m in (before, after)), strict=True)
    for old, new in pairs:
        cosine = nn.functional.cosine_similarity(old["hidden_states"], new["hidden_states"], dim=-1)
        mask = old.batch.attention_mask.to(cosine.device)
        per_text = ((1 - cosine) * mask).sum(-1).cpu().numpy()
        sums[list(old.batch.index)] = per_text.T
        counts[list(old.batch.index)] = old.batch.attention_mask.sum(1).numpy()
    draws = resampled_means(sums, counts, seed=seed)
    means = sums.sum(0) / counts.sum()
    return tuple(
        Estimate(
            value=float(mean),
            unit="cosine difference",
            n=len(texts),
            model=after.name,
            seed=seed,
            interval=percentile_interval(draws[:, layer], float(mean)),
        )
        for layer, mean in enumerate(means)
    )
