"""Replacing modules one by one while training (BERT-of-Theseus, Xu et al. 2020)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from ..encoder.families import additive_mask
from .data import Labelled
from .errors import CompressionError
from .model import Compact, run_to_first
from .training import Loss, Recipe, label_loss, train

#: share of the steps during which modules are still replaced at random
REPLACING = 2 / 3
#: rate of replacement at the first step
START = 0.3


def rising_rate(done: float) -> float:
    """Probability that a module is replaced after a share ``done`` of the steps: 0.3 up to 1."""
    return min(1.0, START + (1 - START) * done / REPLACING)


class Ship(nn.Module):
    """A predecessor whose layers are, group by group, replaced by one successor layer each."""

    def __init__(self, old: Compact, planks: Sequence[nn.Module], seed: int):
        super().__init__()
        self.old = old
        self.planks = nn.ModuleList(planks)
        self.replaced = np.ones(len(planks), dtype=bool)
        self.draw = np.random.default_rng(seed)

    @property
    def groups(self) -> list[list[int]]:
        """The old layers that each plank stands for."""
        return [list(map(int, part))
                for part in np.array_split(np.arange(self.old.n_layers), len(self.planks))]

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """[B, T] -> logits, with the modules drawn last."""
        hidden, layers = self.old.embed(ids), []
        for plank, group, new in zip(self.planks, self.groups, self.replaced, strict=True):
            layers += [plank] if new else [self.old.layers[place] for place in group]
        if self.old.reads == "first":
            return self.old.classify(run_to_first(layers, hidden, mask))
        added = additive_mask(mask, hidden.dtype)
        for layer in layers:
            hidden = layer(hidden, added)
        return self.old.classify(hidden)


def theseus(
    predecessor: Compact, planks: Sequence[nn.Module], data: Labelled, recipe: Recipe, *,
    rate: Callable[[float], float] = rising_rate, loss: Loss = label_loss,
) -> Compact:  # fmt: skip
    """Train successor layers inside a fine-tuned, frozen predecessor; return them on their own.

    Tables and classifier of the predecessor are kept as they are, and only layers that take part
    in a step learn from it.

    Args:
        predecessor: stays as it is.
        planks: successor layers, fewer than the predecessor's; copied.
        data, recipe, loss: as for :func:`train`; the seed also draws the replacements.
        rate: share of steps done -> probability that a module is replaced; ``lambda done: 1.0``
            replaces everything at the start.

    Raises:
        CompressionError: no planks, or more than old layers.
    """
    if not 1 <= len(planks) <= predecessor.n_layers:
        raise CompressionError(f"{len(planks)} modules for {predecessor.n_layers} layers")
    ship = Ship(predecessor, [copy.deepcopy(plank) for plank in planks], recipe.seed).eval()

    def choose(done: float) -> None:
        chosen = ship.draw.random(len(ship.planks)) < rate(done)
        if not chosen.any():
            # A step without any new module would teach nothing.
            chosen[ship.draw.integers(len(chosen))] = True
        ship.replaced[:] = chosen

    train(ship, data, recipe, loss=loss, parameters=list(ship.planks.parameters()),
          before_step=choose)  # fmt: skip
    made = copy.deepcopy(predecessor)
    made.blocks = nn.ModuleList(ship.planks)
    made.order = tuple(range(len(ship.planks)))
    return made.eval().requires_grad_(True)


def with_layers(model: Compact, layers: Sequence[int]) -> list[nn.Module]:
    """Copies of some layers of a model, to start successors from."""
    if not set(layers) <= set(range(model.n_layers)):
        raise CompressionError(f"layers {tuple(layers)} of {model.n_layers}")
    with torch.no_grad():
        return [copy.deepcopy(model.layers[layer]) for layer in layers]
