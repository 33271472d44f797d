"""Good, random and bad subnetworks, and tickets, trained from the same start (chapter 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .. import behaviour, stimuli
from .. import subnetworks as sub
from ..encoder import Encoder
from ..run_store import Record
from ..subnetworks.masks import Masks
from .sweep import Compute, Sweep

KINDS = ("whole", "good", "random", "bad", "ticket", "random-weights")
#: subnetworks of whole heads and feed-forward blocks are halves
_HALVES = ("good", "random", "bad")
_CHOOSING, _JUDGING = 32, 200
_KINDS_OF_PAIRS = ("agreement_simple", "determiner_noun")


@dataclass(frozen=True)
class SubnetworkConfig:
    """A subnetwork and its task.

    Attributes:
        kind: ``whole``; the more or less important half of the heads and blocks, or any half; a
            ``ticket`` of the weights that fine-tuning left largest, or random ones.
        cut: share of the weights that is cut; 0.5 for halves, 0 for the whole.
        task: ``grammar`` or ``reviews``.
        size: training texts.
        seed: of the texts, the new layer, the order and random choices.
    """

    kind: str
    cut: float
    task: str
    size: int
    seed: int

    def __post_init__(self) -> None:
        if not 0 <= self.cut < 1 or self.size < 8:
            raise ValueError("the share that is cut lies in [0, 1); eight texts are needed")


def _config(
    _encoder: Encoder, kind: str, cut: float, task: str, size: int, seed: int
) -> SubnetworkConfig | None:
    if kind == "whole":
        return SubnetworkConfig(kind, 0.0, task, size, seed)
    if kind in _HALVES and cut != 0.5:
        return None
    return SubnetworkConfig(kind, cut, task, size, seed)


def _texts(task: str, n: int, seed: int, split: str) -> tuple[list[str], list[int]]:
    if task == "reviews":
        found = stimuli.sentiment(n, seed=seed, split=split)
        return [r.text for r in found], [int(r.label == "positive") for r in found]
    columns = [stimuli.minimal_pairs(kind, n // 2, seed=seed, split=split)
               for kind in _KINDS_OF_PAIRS]  # fmt: skip
    pairs = [pair for row in zip(*columns, strict=True) for pair in row]
    labels = [i // 2 % 2 for i in range(len(pairs))]  # of each pair one sentence only
    return [p.good if y else p.bad for p, y in zip(pairs, labels, strict=True)], labels


def _work(encoder: Encoder) -> Compute:
    @lru_cache(maxsize=1)
    def start(task: str, size: int, seed: int):
        train = _texts(task, size, 12 + seed, "train")
        test = _texts(task, _CHOOSING + _JUDGING, 12, "test")
        tuned = behaviour.learn(encoder, *train, seed=seed)
        return train, test, tuned

    def masks(config: SubnetworkConfig) -> Masks:
        _, test, tuned = start(config.task, config.size, config.seed)
        if config.kind == "ticket":
            return sub.magnitude_masks(tuned.encoder, config.cut)
        if config.kind == "random-weights":
            return sub.random_masks(encoder, config.cut, config.seed)
        chosen = sub.classified(tuned, *(column[:_CHOOSING] for column in test))
        slopes = sub.slopes(chosen)
        gone = sub.split_by_importance(slopes.heads.mean(0), slopes.blocks.mean(0), config.kind,
                                       config.seed)  # fmt: skip
        return sub.structure_masks(encoder, *gone)

    def one(config: SubnetworkConfig) -> Record:
        train, test, model = start(config.task, config.size, config.seed)
        own = encoder
        if config.kind != "whole":
            own = sub.masked(encoder, masks(config))
            model = behaviour.learn(own, *train, seed=config.seed)
        right = behaviour.right(model, *(column[_CHOOSING:] for column in test))
        return {"values": {"accuracy": float(right.mean()), "zeros": sub.share_cut(own)},
                "curves": {"loss": list(model.losses)}}  # fmt: skip

    def compute(configs: Sequence[SubnetworkConfig]) -> list[Record]:
        return [one(config) for config in configs]

    return compute


SUBNETWORKS = Sweep(
    "subnetworks", "12", "good, random and bad halves, tickets and random weights, retrained",
    {"task": ("grammar", "reviews"), "size": (80, 320), "seed": tuple(range(6)), "kind": KINDS,
     "cut": (0.3, 0.5, 0.7, 0.9)},
    _config, _work, {"accuracy": "share", "zeros": "share"},
)  # fmt: skip
