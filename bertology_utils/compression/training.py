"""One training loop for every recipe of this room."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .data import IGNORED, Labelled
from .errors import CompressionError
from .model import Answering, Compact, answer

#: (model, the batch's texts, their numbers) -> loss
Loss = Callable[[nn.Module, Labelled, Tensor], Tensor]
#: called after every update with the share of updates that are done
AfterStep = Callable[[float], None]


@dataclass(frozen=True)
class Recipe:
    """How long and how fast to train.

    Attributes:
        steps: updates.
        batch_size: texts of an update.
        lr: peak learning rate of AdamW; a tenth of the steps warms up, then it falls to 0.
        seed: of the order of the texts.
    """

    steps: int = 30
    batch_size: int = 16
    lr: float = 2e-4
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.steps, self.batch_size) < 1 or self.lr <= 0:
            raise CompressionError(
                f"{self.steps} steps of {self.batch_size} texts at rate {self.lr}"
            )

    def rate(self, step: int) -> float:
        """Learning rate of update ``step``, counted from 0."""
        warm = max(1, self.steps // 10)
        if step < warm:
            return self.lr * (step + 1) / warm
        return self.lr * (self.steps - step) / (self.steps - warm + 1)


def label_loss(model: Answering, batch: Labelled, _numbers: Tensor) -> Tensor:
    """Cross-entropy with the labels, in nats."""
    logits = answer(model, batch.ids, batch.mask)
    labels = torch.where(batch.labels < 0, IGNORED, batch.labels)
    return nn.functional.cross_entropy(
        logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORED
    )


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """All parameters, except the tables of a :class:`Compact` that has its teacher's full ones.

    A few hundred short texts say nothing about most of a vocabulary; a student that keeps the
    table of token vectors can also be compared with its teacher layer by layer. Small tables are
    trained.
    """
    fixed = set()
    if isinstance(model, Compact) and isinstance(model.token, nn.Embedding):
        fixed = {*model.token.parameters(), *model.position.parameters()}
    return [p for p in model.parameters() if p not in fixed]


def train(
    model: nn.Module,
    data: Labelled,
    recipe: Recipe,
    *,
    loss: Loss = label_loss,
    parameters: Sequence[nn.Parameter] | None = None,
    after_step: AfterStep | None = None,
    before_step: AfterStep | None = None,
) -> list[float]:
    """Train a model in place, without dropout; runs of seconds need none, and repeat exactly.

    Args:
        model: changed in place, in evaluation mode before and after.
        data: texts, gone through as often as the steps ask for.
        recipe: how long and how fast.
        loss: of a batch.
        parameters: what is trained; :func:`trainable` by default.
        before_step, after_step: called with the share of steps done before and after each.

    Returns:
        the loss of every step, in nats.
    """
    model.eval()
    chosen = trainable(model) if parameters is None else list(parameters)
    asking = {p: p.requires_grad for p in model.parameters()}
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for parameter in chosen:
        parameter.requires_grad_(True)
    optimizer = torch.optim.AdamW(chosen, lr=recipe.lr, weight_decay=0.01, fused=True)
    draw = torch.Generator().manual_seed(recipe.seed)
    losses: list[float] = []
    try:
        for _ in range(math.ceil(recipe.steps * recipe.batch_size / len(data)) + 1):
            for numbers in data.batches(recipe.batch_size, draw):
                step = len(losses)
                if step == recipe.steps:
                    return losses
                if before_step is not None:
                    before_step(step / recipe.steps)
                for group in optimizer.param_groups:
                    group["lr"] = recipe.rate(step)
                value = loss(model, data.rows(numbers), numbers)
                optimizer.zero_grad()
                value.backward()
                optimizer.step()
                losses.append(float(value.detach()))
                if after_step is not None:
                    after_step(len(losses) / recipe.steps)
        return losses
    finally:
        for parameter in model.parameters():
            parameter.grad = None
            parameter.requires_grad_(asking.get(parameter, True))


def trained(model: nn.Module, data: Labelled, recipe: Recipe, **options) -> nn.Module:
    """A trained copy; ``options`` as for :func:`train`."""
    made = copy.deepcopy(model)
    train(made, data, recipe, **options)
    return made
