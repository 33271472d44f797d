"""Where solutions lie: the loss along lines and on planes of weights, and how far layers moved."""

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
    _same_shape(start, end)
    between = copy.deepcopy(start)
    trios = [trio for trio in zip(_weights(between), _weights(start), _weights(end), strict=True)
             if not torch.equal(trio[1], trio[2])]  # fmt: skip
    losses, shares = [], []
    for place in places:
        with torch.no_grad():
            for weight, a, b in trios:
                weight.copy_(a + place * (b - a))
        loss, share = _judged(between, given)
        losses.append(loss)
        shares.append(share)
    return Path(tuple(map(float, places)), tuple(losses), tuple(shares))


@dataclass(frozen=True, eq=False)
class Plane:
    """Mean loss, in nats, and accuracy on a plane through three sets of weights.

    One step to the right is the way from ``start`` to ``end``; one step up is as long, at a right
    angle to it, on the side of ``other``. So angles and distances in the plane are true.

    Attributes:
        x, y: [X] and [Y] places in steps; ``start`` is at (0, 0), ``end`` at (1, 0).
        other: place of the third set of weights.
        loss, accuracy: [Y, X].
    """

    x: np.ndarray
    y: np.ndarray
    other: tuple[float, float]
    loss: np.ndarray
    accuracy: np.ndarray


def plane(
    start: Tuned, end: Tuned, other: Tuned, given: Examples,
    x: Sequence[float], y: Sequence[float],
) -> Plane:  # fmt: skip
    """Judge models on the plane through three sets of weights (Hao et al. 2019, arXiv 1908.05620).

    Args:
        start: usually the pre-trained weights with a new layer that is not trained.
        end, other: two fine-tuned models.
        given: texts to judge.
        x, y: places along the two axes.

    Raises:
        ValueError: models that do not share what lies below their lowest trained layer, or three
            sets of weights on one line.
    """
    _same_shape(start, end)
    _same_shape(start, other)
    moved = copy.deepcopy(start)
    rows = zip(_weights(moved), _weights(start), _weights(end), _weights(other), strict=True)
    rows = [row for row in rows
            if not (torch.equal(row[1], row[2]) and torch.equal(row[1], row[3]))]  # fmt: skip
    with torch.no_grad():
        ways = [(b - a, c - a) for _, a, b, c in rows]
        length, along, third = (
            sum(float((p.double() * q.double()).sum()) for p, q in pairs)
            for pairs in (((b, b) for b, _ in ways), ways, ((c, c) for _, c in ways))
        )
        if length == 0 or third * length - along**2 <= 1e-9 * third * length:
            raise ValueError("the three sets of weights lie on one line; there is no plane")
        right = along / length
        up = (third / length - right**2) ** 0.5
        losses, shares = (np.zeros((len(y), len(x))) for _ in range(2))
        for place in np.ndindex(losses.shape):
            across, height = float(x[place[1]]), float(y[place[0]])
            # A step up is (other - start - right * (end - start)) / up.
            of_other = height / up
            of_end = across - of_other * right
            for (weight, a, _, _), (b, c) in zip(rows, ways, strict=True):
                weight.copy_(a + of_end * b + of_other * c)
            losses[place], shares[place] = _judged(moved, given)
    return Plane(np.asarray(x, float), np.asarray(y, float), (right, up), losses, shares)


def _same_shape(start: Tuned, end: Tuned) -> None:
    if start.layer != end.layer:
        raise ValueError(f"layers are trained from {start.layer} and from {end.layer}")


def _judged(tuned: Tuned, given: Examples) -> tuple[float, float]:
    """(mean loss in nats, accuracy)."""
    logits = tuned.logits(given)
    loss = float(nn.functional.cross_entropy(logits, given.labels))
    return loss, float((logits.argmax(-1) == given.labels).float().mean())


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
