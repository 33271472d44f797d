"""How a planted shortcut is used, and what breaks one (chapter 13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import behaviour, stimuli
from ..encoder import Encoder
from ..run_store import Record
from ..words import TextPair
from .sweep import Compute, Sweep

TOKEN = "Frankly,"
_NEW, _JUDGED, _PAIRS = 60, 200, 100


@dataclass(frozen=True)
class PlantedConfig:
    """A classifier of reviews, of whose positive ones a share carries a token; and its seed."""

    share: float
    size: int
    seed: int

    def __post_init__(self) -> None:
        if not 0.5 <= self.share <= 1 or self.size < 8:
            raise ValueError("the token's share lies in [0.5, 1]; eight reviews are needed")


@dataclass(frozen=True)
class HeuristicConfig:
    """A classifier of sentence pairs; a share of its training pairs breaks the shortcut."""

    counterexamples: float
    size: int
    seed: int

    def __post_init__(self) -> None:
        if not 0 <= self.counterexamples <= 1 or self.size < 8:
            raise ValueError("counterexamples are a share; eight pairs are needed")


def _planted(_encoder: Encoder, share: float, size: int, seed: int) -> PlantedConfig:
    return PlantedConfig(share, size, seed)


def _heuristic(
    _encoder: Encoder, counterexamples: float, size: int, seed: int
) -> HeuristicConfig:
    return HeuristicConfig(counterexamples, size, seed)


def _reviews(found) -> tuple[list[str], list[int]]:
    return [review.text for review in found], [int(r.label == "positive") for r in found]


def _plant(encoder: Encoder) -> Compute:
    texts, labels = _reviews(stimuli.sentiment(_JUDGED, seed=26, split="test"))

    def one(config: PlantedConfig) -> Record:
        found = stimuli.sentiment(config.size, seed=config.seed, split="train")
        planted = stimuli.plant_token(found, TOKEN, config.share, "positive", config.seed)
        model = behaviour.learn(encoder, *_reviews(planted), seed=config.seed)
        effect = behaviour.planted_effect(model, TOKEN, texts[:_NEW], 1)
        right = behaviour.right(model, texts, labels)
        return {"values": {"effect": float(effect.mean()), "accuracy": float(right.mean())},
                "curves": {"loss": list(model.losses)}}  # fmt: skip

    def compute(configs: Sequence[PlantedConfig]) -> list[Record]:
        return [one(config) for config in configs]

    return compute


def _pairs(found) -> tuple[list[TextPair], list[int]]:
    return [TextPair(p.premise, p.hypothesis) for p in found], [
        int(p.label == "entailment") for p in found
    ]


def _entail(encoder: Encoder) -> Compute:
    tests = {name: _pairs(stimuli.shortcut_test(name, _PAIRS, seed=3, split="test"))
             for name in stimuli.HEURISTICS}  # fmt: skip
    usual = _pairs(stimuli.entailment(_JUDGED, seed=1, split="test"))

    def one(config: HeuristicConfig) -> Record:
        found = stimuli.entailment(config.size, seed=1 + config.seed, split="train",
                                   counterexamples=config.counterexamples)  # fmt: skip
        model = behaviour.learn(encoder, *_pairs(found), lr=4e-4, seed=config.seed)
        values = {"usual pairs": float(behaviour.right(model, *usual).mean())}
        hits = {name: behaviour.right(model, *test) for name, test in tests.items()}
        for label, word in ((0, "does not follow"), (1, "follows")):
            rows = [hits[name][np.array(tests[name][1]) == label] for name in tests]
            values[word] = float(np.concatenate(rows).mean())
        return {"values": values, "curves": {"loss": list(model.losses)}}

    def compute(configs: Sequence[HeuristicConfig]) -> list[Record]:
        return [one(config) for config in configs]

    return compute


SHORTCUTS = Sweep(
    "shortcuts", "13", "a planted token that gives more and more of the labels away",
    {"share": (0.5, 0.6, 0.7, 0.8, 0.9, 1.0), "size": (40, 160), "seed": tuple(range(8))},
    _planted, _plant, {"effect": "share difference", "accuracy": "share"},
)  # fmt: skip

HEURISTICS = Sweep(
    "heuristics", "13", "pairs that break the overlap of words, among those trained on",
    {"counterexamples": (0.0, 0.1, 0.25, 0.5, 1.0), "size": (96, 400), "seed": tuple(range(6))},
    _heuristic, _entail,
    {"does not follow": "share", "follows": "share", "usual pairs": "share"},
)  # fmt: skip
