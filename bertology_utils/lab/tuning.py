"""Fine-tuning lab models to say whether the subject of a sentence is plural, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..resampling import Estimate
from . import model as net
from .compare import MODEL, over_seeds
from .config import LabConfig
from .language import PAIR_LENGTH, held_out_sentences, plain, training_sentences, vocabulary
from .runs import LabRun

RATE, BATCH = 3e-3, 32


@dataclass(frozen=True, eq=False)
class Tuned:
    """Fine-tuned members.

    Attributes:
        accuracy: [M] on 400 other sentences.
        right: [M, N] which of them each member has right.
        losses: [M] mean training loss of the last epoch, in nats.
        weights: after fine-tuning; ``config`` and the training ``ids`` and ``labels`` as used.
    """

    accuracy: np.ndarray
    right: np.ndarray = field(repr=False)
    losses: np.ndarray
    weights: net.Weights = field(repr=False)
    config: LabConfig
    ids: Tensor = field(repr=False)
    labels: Tensor = field(repr=False)


def fresh_weights(runs: Sequence[LabRun], *, draw: int = 0) -> net.Weights:
    """Untrained weights of the runs' shape, with other seeds; ``draw`` gives further ones."""
    config = runs[0].config
    return net.initial_weights(
        [9000 + 100 * draw + run.config.seed for run in runs],
        order=config.order, width=config.width, vocabulary=len(vocabulary()),
        length=PAIR_LENGTH, classes=2,
    )  # fmt: skip


def pretrained_weights(runs: Sequence[LabRun], *, draw: int = 0) -> net.Weights:
    """The runs' weights side by side, each with a new classifier."""
    fresh = fresh_weights(runs, draw=draw)
    return {
        name: fresh[name] if name.startswith("classes") else
        torch.cat([run.weights[name] for run in runs])
        for name in fresh
    }  # fmt: skip


def _task(sentences) -> tuple[Tensor, Tensor]:
    ids = torch.from_numpy(plain(sentences).ids)
    plural = [sentence.gold.subject_number == "plur" for sentence in sentences]
    return ids, torch.tensor(plural, dtype=torch.long)


def half_masks(weights: net.Weights, which: str) -> net.Weights:
    """1 for the ``"largest"`` or ``"smallest"`` half of every matrix of the blocks, else 0.

    Raises:
        ValueError: another half.
    """
    if which not in ("largest", "smallest"):
        raise ValueError(f"which is {which!r}, must be 'largest' or 'smallest'")
    masks = {}
    for name, value in weights.items():
        if name[0].isdigit() and name.endswith((".in", ".out")):
            size = value.abs()
            middle = size.flatten(1).median(1).values.view(-1, 1, 1)
            masks[name] = ((size > middle) if which == "largest" else (size <= middle)).float()
    return masks


def tune(
    weights: net.Weights, config: LabConfig, n: int, *, epochs: int = 3, masks=None, seed: int = 0
) -> Tuned:
    """Fine-tune all weights and the classifier on [CLS], all members alike.

    Args:
        weights: [M, ...] stay as they are.
        config: their shape.
        n: training sentences, the same for all members.
        epochs: rounds, but at least 40 steps.
        masks: name -> zeros for weights that are gone for good.
        seed: of the order.

    Raises:
        ValueError: more sentences than there are, or fewer than 2.
    """
    if not 2 <= n <= len(training_sentences()):
        raise ValueError(f"n is {n}, must lie between 2 and {len(training_sentences())}")
    own = {name: value.detach().clone() for name, value in weights.items()}
    for name, mask in (masks or {}).items():
        own[name] *= mask
    for value in own.values():
        value.requires_grad_(True)
    ids, labels = _task(training_sentences()[:n])
    optimiser = torch.optim.AdamW(own.values(), lr=RATE, weight_decay=0.0, fused=True)
    rng = np.random.default_rng([seed, 39])
    size = min(BATCH, n)
    steps = max(40, epochs * n // size)
    order, losses = np.array([], int), []
    for step in range(steps):
        if len(order) < size:
            order = np.concatenate([order, rng.permutation(n)])
        chosen, order = torch.from_numpy(order[:size]), order[size:]
        each = loss_of(own, config, ids[chosen], labels[chosen])
        optimiser.zero_grad()
        each.sum().backward()
        for group in optimiser.param_groups:
            group["lr"] = RATE * min((step + 1) / (0.1 * steps + 1), (steps - step) / steps)
        optimiser.step()
        with torch.no_grad():
            for name, mask in (masks or {}).items():
                own[name] *= mask
        losses.append(each.detach())
    final = {name: value.detach() for name, value in own.items()}
    tested, truth = _task(held_out_sentences()[:400])
    with torch.no_grad():
        guess = _logits(final, config, tested).argmax(-1)
    right = (guess == truth).numpy()
    last = torch.stack(losses[-max(1, n // size) :]).mean(0).numpy()
    return Tuned(right.mean(1), right, last, final, config, ids, labels)


def _logits(weights: net.Weights, config: LabConfig, ids: Tensor) -> Tensor:
    members = len(weights["words"])
    shared = ids.expand(members, -1, -1)
    first = net.first_pieces(shared)
    x = net.forward(weights, shared, order=config.order, heads=config.heads, at=first)
    return net.class_logits(weights, x)


def loss_of(weights: net.Weights, config: LabConfig, ids: Tensor, labels: Tensor) -> Tensor:
    """Mean cross-entropy [M] of the task, in nats."""
    logits = _logits(weights, config, ids)
    each = F.cross_entropy(
        logits.flatten(0, 1), labels.repeat(len(logits)), reduction="none"
    )
    return each.view(len(logits), -1).mean(1)


def sharpness(tuned: Tuned, *, radius: float = 0.3, draws: int = 10, seed: int = 0) -> np.ndarray:
    """[M] mean rise of the training loss after a random step, in nats, at least 1e-6.

    In every matrix the step is ``radius`` times as long as the column it is added to, so that a
    model does not look flat by having large weights (Li et al. 2018, filter normalisation).

    Raises:
        ValueError: a radius that is not positive, or no draws.
    """
    if radius <= 0 or draws < 1:
        raise ValueError(f"radius {radius} and {draws} draws: both must be positive")
    rises = []
    with torch.no_grad():
        base = loss_of(tuned.weights, tuned.config, tuned.ids, tuned.labels)
        for draw in range(draws):
            generator = torch.Generator().manual_seed(100 * seed + draw)
            moved = {}
            for name, value in tuned.weights.items():
                step = torch.randn(value.shape[1:], generator=generator).expand_as(value)
                if value.shape[1] > 1:
                    length = value.norm(dim=1, keepdim=True) / step.norm(dim=1, keepdim=True)
                    moved[name] = value + radius * length * step
                else:
                    moved[name] = value
            rises.append(loss_of(moved, tuned.config, tuned.ids, tuned.labels) - base)
    return torch.stack(rises).mean(0).clamp(min=1e-6).numpy()


def interpolated(first: Tuned, second: net.Weights, points: Sequence[float]) -> np.ndarray:
    """[points, M] training loss on the line from ``second`` (0) to ``first`` (1), and beyond."""
    rows = []
    with torch.no_grad():
        for t in points:
            mixed = {n: second[n] + t * (value - second[n]) for n, value in first.weights.items()}
            rows.append(loss_of(mixed, first.config, first.ids, first.labels).numpy())
    return np.array(rows)


def seed_differences(runs: Sequence[LabRun], *, n: int = 64, model: str = MODEL) -> Estimate:
    """Typical difference in accuracy of two fine-tunings of one model that differ by seed alone.

    Every run is fine-tuned four times, with another new classifier and another order of the same
    ``n`` sentences. The value is the mean size of the difference over disjoint pairs.

    Raises:
        ValueError: ``n`` as for :func:`tune`.
    """
    accuracy = [
        tune(pretrained_weights(runs, draw=k), runs[0].config, n, seed=k).accuracy for k in range(4)
    ]
    sizes = np.abs(np.concatenate([accuracy[0] - accuracy[1], accuracy[2] - accuracy[3]]))
    return over_seeds(sizes, unit="share difference", model=model)
