"""How much can be cut, by which criterion: weights, heads, units, layers (chapter 11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from torch import nn

from .. import compression as cp
from ..encoder import Encoder
from ..run_store import Record
from .sweep import Compute, Sweep

CRITERIA = ("magnitude", "random-weights", "magnitude-gradual", "movement", "rewound", "heads",
            "random-heads", "units", "random-units", "top-layers")  # fmt: skip
_WHILE_TRAINING = {"magnitude-gradual": "magnitude", "movement": "movement"}


@dataclass(frozen=True)
class CutConfig:
    """A pruned classifier of reviews.

    Attributes:
        criterion: one of :data:`CRITERIA`. Four of them train: *movement* and *magnitude-gradual*
            while they cut, *top-layers* afterwards, and *rewound* after each of two rounds, from
            the pre-trained weights; the others cut a fine-tuned model and stop.
        kept: share of the weights, heads, units or layers that stays.
        size: labelled reviews.
        steps: updates.
        seed: of the reviews, first weights, order and random cuts.
    """

    criterion: str
    kept: float
    size: int
    steps: int
    seed: int

    def __post_init__(self) -> None:
        if not 0 < self.kept <= 1 or self.size < 4 or self.steps < 1:
            raise ValueError("kept is a share above 0; four labelled reviews and a step are needed")


def _config(
    _encoder: Encoder, criterion: str, kept: float, size: int, steps: int, seed: int
) -> CutConfig:
    return CutConfig(criterion, kept, size, steps, seed)


def _work(encoder: Encoder) -> Compute:
    @lru_cache(maxsize=1)
    def start(size: int, steps: int, seed: int) -> tuple[cp.Task, cp.Recipe, cp.Compact, float]:
        task = cp.review_task(encoder, labelled_texts=size, seed=11 + seed)
        recipe = cp.Recipe(steps=steps, batch_size=16, lr=5e-4, seed=seed)
        full = cp.trained(cp.compact(encoder, 2, seed=seed), task.labelled, recipe)
        return task, recipe, full, cp.score("", full, task.test).value

    def one(config: CutConfig) -> Record:
        task, recipe, full, uncut = start(config.size, config.steps, config.seed)
        made = _cut(encoder, config, task, recipe, full)
        return {"values": {"accuracy": cp.score("", made, task.test).value, "uncut": uncut,
                           "megabytes": cp.file_bytes(made) / 1e6}}  # fmt: skip

    def compute(configs: Sequence[CutConfig]) -> list[Record]:
        return [one(config) for config in configs]

    return compute


def _cut(
    encoder: Encoder, config: CutConfig, task: cp.Task, recipe: cp.Recipe, full: cp.Compact
) -> nn.Module:
    if config.criterion in _WHILE_TRAINING:
        return cp.prune_while_training(
            cp.compact(encoder, 2, seed=config.seed), task.labelled, recipe,
            criterion=_WHILE_TRAINING[config.criterion], share=config.kept,
        )  # fmt: skip
    if config.criterion == "top-layers":
        kept = max(1, round(config.kept * encoder.n_layers))
        start = cp.compact(encoder, 2, layers=range(kept), seed=config.seed)
        return cp.trained(start, task.labelled, recipe)
    if config.criterion == "rewound":
        shares = sorted({config.kept**0.5, config.kept}, reverse=True)
        whole = cp.compact(encoder, 2, seed=config.seed)
        return cp.rewound(whole, full, shares, task.labelled, recipe)[0]
    if config.criterion in ("magnitude", "random-weights"):
        worth = cp.magnitudes(full)
        if config.criterion == "random-weights":
            worth = cp.random_like(worth, config.seed)
        return cp.masked(full, cp.top_masks(worth, config.kept))
    part = config.criterion.removeprefix("random-")
    worth = cp.importance(full, task.labelled, part)
    if config.criterion != part:
        worth = cp.random_scores(worth, config.seed)
    cut = cp.keep_heads if part == "heads" else cp.keep_units
    return cut(full, cp.best_share(worth, config.kept))


PRUNING = Sweep(
    "pruning", "11", "shares of weights, heads, units or layers kept, by criterion",
    {"size": (64,), "steps": (30, 120), "seed": tuple(range(5)), "criterion": CRITERIA,
     "kept": (0.9, 0.7, 0.5, 0.3, 0.1, 0.05)},
    _config, _work, {"accuracy": "share", "uncut": "share", "megabytes": "MB"},
)  # fmt: skip
