"""Frozen features: linear probes on one layer, on several joined, on a learned mix of layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..encoder import Encoder
from ..words import make_batch
from .tasks import Part
from .tuned import states


@dataclass(frozen=True, eq=False)
class Features:
    """Frozen vectors of N texts and their labels.

    Attributes:
        values: [L + 1, N, 2 D] the first piece's state and the mean over all pieces, side by side;
            entry 0 is the embedding output.
        labels: [N].
    """

    values: Tensor
    labels: Tensor

    @property
    def n_layers(self) -> int:
        return len(self.values) - 1

    def joined(self, layers: Sequence[int]) -> Features:
        """The vectors of several layers side by side, as the one layer there is."""
        return Features(torch.cat([self.values[k] for k in layers], -1)[None], self.labels)

    def only(self, layers: Sequence[int]) -> Features:
        """Some of the layers."""
        return Features(self.values[list(layers)], self.labels)


def features(encoder: Encoder, part: Part) -> Features:
    """Encode texts with frozen weights."""
    mask = make_batch(encoder, part.texts).attention_mask.to(encoder.device)
    hidden = states(encoder, part.texts, range(encoder.n_layers + 1))
    mean = hidden.sum(2) / mask.sum(1)[None, :, None]  # states are zero at padding
    labels = torch.tensor(part.labels, device=encoder.device)
    return Features(torch.cat([hidden[:, :, 0], mean], -1), labels)


@dataclass(frozen=True, eq=False)
class MixProbe:
    """A linear classifier on a weighted mean of S layers.

    Attributes:
        weights: [S] of the layers, summing to 1.
        right: [N] True where a test label was found.
    """

    weights: np.ndarray
    right: np.ndarray


def mix_probe(train: Features, test: Features, *, l2: float | None = None) -> MixProbe:
    """Learn a scalar mix (Peters et al. 2018) and a classifier on it, together.

    With one layer this is plain logistic regression on that layer. Every layer is standardised by
    the training texts.

    Args:
        train, test: of the same layers.
        l2: half of it multiplies the squared classifier weights; 1 / N by default.

    Raises:
        ValueError: other layers, or a single label.
    """
    if train.values.shape[::2] != test.values.shape[::2]:
        raise ValueError("training and test features are of different layers")
    n, size = train.values.shape[1:]
    classes = int(train.labels.max()) + 1
    if len(train.labels.unique()) < 2:
        raise ValueError("all labels are the same")
    mean = train.values.mean(1, keepdim=True)
    spread = train.values.std(1, keepdim=True).clamp_min(1e-6)
    x, y = (train.values - mean) / spread, (test.values - mean) / spread
    scores = nn.Parameter(torch.zeros(len(x), device=x.device))
    weight = nn.Parameter(torch.zeros(size, classes, device=x.device))
    bias = nn.Parameter(torch.zeros(classes, device=x.device))
    penalty = 1 / n if l2 is None else l2
    optimizer = torch.optim.LBFGS(
        [scores, weight, bias], max_iter=60, history_size=10, line_search_fn="strong_wolfe"
    )

    def mixed(values: Tensor) -> Tensor:
        return torch.einsum("s,snd->nd", scores.softmax(0), values) @ weight + bias

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(mixed(x), train.labels)
        loss = loss + penalty / 2 * weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        right = (mixed(y).argmax(-1) == test.labels).cpu().numpy()
        return MixProbe(scores.softmax(0).cpu().numpy(), right)
