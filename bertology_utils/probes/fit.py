"""Train many small models at once: every parameter has the model as its first dimension.

Losses of the models are added up, so that each gets its own gradient, and Adam works number by
number: models that share a batch still train exactly as if alone, and each stops by itself.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Training:
    """How long each model trained.

    Attributes:
        epochs: epochs run until all had stopped.
        best_epoch: [M] epoch whose parameters each model kept; 0 is the start.
        dev_loss: [M] development loss of those parameters.
    """

    epochs: int
    best_epoch: tuple[int, ...]
    dev_loss: tuple[float, ...]


def train_together(
    parameters: dict[str, Tensor],
    batches: Callable[[], Iterable],
    loss_of: Callable[..., Tensor],
    dev_loss: Callable[[], Tensor] | None,
    *,
    epochs: int,
    patience: int,
    lr: float,
    weight_decay: float = 0.0,
) -> Training:
    """Adam with early stopping; leaves the best values in ``parameters``.

    The learning rate falls linearly to a tenth over the epochs.

    Args:
        parameters: name -> leaf tensor [M, ...].
        batches: called once an epoch, gives the batches.
        loss_of: batch -> loss [M].
        dev_loss: loss [M] on held-out data; None trains for all epochs and keeps the last.
        epochs: most epochs.
        patience: epochs without a new best after which a model stops.
        lr: Adam's learning rate.
        weight_decay: decoupled decay of parameters with three dimensions (matrices).
    """
    leaves = [p.requires_grad_(True) for p in parameters.values()]
    groups = [
        {"params": [p for p in leaves if p.ndim > 2], "weight_decay": weight_decay},
        {"params": [p for p in leaves if p.ndim <= 2], "weight_decay": 0.0},
    ]
    adam = torch.optim.AdamW([g for g in groups if g["params"]], lr=lr, fused=True)
    schedule = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.1, total_iters=max(1, epochs - 1))
    models = len(leaves[0])
    kept = [p.detach().clone() for p in leaves]
    if dev_loss is not None:
        with torch.no_grad():
            best = dev_loss()
    else:
        best = torch.full((models,), torch.inf)
    best_epoch = torch.zeros(models, dtype=torch.long)
    stopped = torch.zeros(models, dtype=torch.bool)
    epoch = 0
    for epoch in range(1, epochs + 1):  # noqa: B007 the last epoch is reported
        for batch in batches():
            adam.zero_grad(set_to_none=True)
            loss_of(batch).sum().backward()
            adam.step()
        schedule.step()
        if dev_loss is None:
            continue
        with torch.no_grad():
            loss = dev_loss()
        better = (loss < best) & ~stopped.to(loss.device)
        best = torch.where(better, loss, best)
        for copy, leaf in zip(kept, leaves, strict=True):
            copy[better] = leaf.detach()[better]
        best_epoch[better.cpu()] = epoch
        stopped |= epoch - best_epoch >= patience
        if stopped.all():
            break
    for copy, leaf in zip(kept, leaves, strict=True):
        leaf.requires_grad_(False)
        if dev_loss is not None:
            leaf.copy_(copy)
    if dev_loss is None:
        best_epoch[:] = epoch
    return Training(epoch, tuple(best_epoch.tolist()), tuple(best.tolist()))


def shuffled(n: int, size: int, generator: torch.Generator) -> list[Tensor]:
    """Row numbers 0 .. n - 1 in random order, cut into batches."""
    return list(torch.randperm(n, generator=generator).split(size))


def same_start(shape: tuple[int, ...], models: int, bound: float, seed: int) -> Tensor:
    """[M, *shape] uniform in -bound .. bound, the same for every model.

    Models that differ in their data only should not differ by the luck of their start.
    """
    generator = torch.Generator().manual_seed(seed)
    one = (torch.rand(shape, generator=generator) * 2 - 1) * bound
    return one.expand(models, *shape).clone()
