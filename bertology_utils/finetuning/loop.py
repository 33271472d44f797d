"""The training loop that every kind of fine-tuning here shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Recipe:
    """AdamW with a linear warm-up and a linear decay to zero (Devlin et al. 2019).

    Attributes:
        epochs, batch_size: as usual.
        lr: the highest learning rate.
        weight_decay: decoupled.
        warm: share of the steps over which the learning rate rises.
        clip: largest norm of all gradients together; None leaves them as they are.
        bias_correction: Adam's correction of its averages for their start at zero. BERT's own
            optimizer had none, which costs stability on few examples (Mosbach et al. 2021).
        optimizer: ``"fused"``, ``"foreach"`` or ``"plain"``: the same formula in another order of
            operations.
    """

    epochs: int = 3
    batch_size: int = 16
    lr: float = 3e-4
    weight_decay: float = 0.01
    warm: float = 0.1
    clip: float | None = None
    bias_correction: bool = True
    optimizer: str = "fused"

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1 or self.lr <= 0 or not 0 <= self.warm < 1:
            raise ValueError(f"epochs, batch size and rate must be positive, warm a share: {self}")
        if self.optimizer not in ("fused", "foreach", "plain"):
            raise ValueError(f"unknown optimizer {self.optimizer!r}")

    def steps(self, n: int) -> int:
        """Steps of all epochs over ``n`` items."""
        return self.epochs * math.ceil(n / self.batch_size)

    def rate(self, step: int, steps: int) -> float:
        """Learning rate of a step, counted from 0."""
        warm = max(1, int(steps * self.warm))
        share = (step + 1) / warm if step < warm else (steps - step) / (steps - warm + 1)
        if not self.bias_correction:
            # torch's AdamW always corrects; this takes it back (but for epsilon).
            share *= (1 - 0.9 ** (step + 1)) / math.sqrt(1 - 0.999 ** (step + 1))
        return self.lr * share


def train(
    parameters: Iterable[nn.Parameter] | Sequence[dict],
    n: int,
    loss: Callable[[list[int]], Tensor],
    recipe: Recipe,
    *,
    draw: torch.Generator,
    around: Callable[[], AbstractContextManager] = nullcontext,
    after_epoch: Callable[[int], None] | None = None,
) -> tuple[float, ...]:
    """Minimise a mean loss over ``n`` items, in place.

    Args:
        parameters: what is trained, or AdamW's parameter groups.
        n: number of items.
        loss: item numbers of a batch -> mean loss with its graph.
        recipe: how.
        draw: shuffles the items anew in every epoch.
        around: a context entered anew around the forward and backward pass of every step.
        after_epoch: called with the number of epochs done.

    Returns:
        the loss of every step.

    Raises:
        ValueError: no items; a loss that is not finite.
    """
    if n < 1:
        raise ValueError("nothing to train on")
    optimizer = torch.optim.AdamW(
        parameters,
        lr=recipe.lr,
        weight_decay=recipe.weight_decay,
        fused=recipe.optimizer == "fused",
        foreach=recipe.optimizer == "foreach",
    )
    trained = [p for group in optimizer.param_groups for p in group["params"]]
    steps, losses = recipe.steps(n), []
    for epoch in range(recipe.epochs):
        for chosen in torch.randperm(n, generator=draw).split(recipe.batch_size):
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate(len(losses), steps)
            optimizer.zero_grad()
            with around():
                value = loss(chosen.tolist())
                value.backward()
            if not math.isfinite(value.item()):
                raise ValueError(f"the loss of step {len(losses)} is {value.item()}")
            if recipe.clip is not None:
                nn.utils.clip_grad_norm_(trained, recipe.clip)
            optimizer.step()
            losses.append(value.item())
        if after_epoch is not None:
            after_epoch(epoch + 1)
    optimizer.zero_grad()
    return tuple(losses)
