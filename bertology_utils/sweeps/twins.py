"""Tiny BERTs that differ in width or in dropout of attention alone (chapter 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import subnetworks as sub
from ..encoder import Encoder
from ..run_store import Record
from .sweep import Compute, Sweep

_SENTENCES, _PAIRS, _LOOKED_AT = 3000, 300, 40


@dataclass(frozen=True)
class TwinConfig:
    """A tiny BERT on the tiny language: width, share of attention that is dropped, steps, seed."""

    width: int
    dropout: float
    layers: int
    steps: int
    seed: int

    def __post_init__(self) -> None:
        if self.width < 4 or self.width % 4 or self.layers < 1:
            raise ValueError("a twin has a layer and a width that four heads can share")


def _config(
    _encoder: Encoder | None, width: int, dropout: float, layers: int, steps: int, seed: int
) -> TwinConfig:
    return TwinConfig(width, dropout, layers, steps, seed)


def _work(_encoder: Encoder | None) -> Compute:
    sentences, pairs = sub.language(_SENTENCES, _PAIRS)

    def one(config: TwinConfig) -> Record:
        twin = sub.train_tiny(
            sentences, layers=config.layers, width=config.width, heads=4, steps=config.steps,
            attention_dropout=config.dropout, batch_size=32, seed=config.seed,
        )  # fmt: skip
        return {"values": {"agreement": float(sub.agreement(twin, pairs).mean()),
                           "likeness": sub.likeness(twin, sentences[:_LOOKED_AT]),
                           "loss": twin.loss}}  # fmt: skip

    def compute(configs: Sequence[TwinConfig]) -> list[Record]:
        return [one(config) for config in configs]

    return compute


TWINS = Sweep(
    "twins", "12", "size and dropout of tiny BERTs: agreement, and likeness of heads",
    {"width": (24, 48, 96), "dropout": (0.0, 0.1, 0.3), "layers": (1, 2), "steps": (300, 1200),
     "seed": tuple(range(8))},
    _config, _work, {"agreement": "share", "likeness": "nats", "loss": "nats"},
    size="width", uses_model=False,
)  # fmt: skip
