"""The pretraining lab's plan, longer and with more seeds (chapter 09)."""

from __future__ import annotations

from collections.abc import Sequence

from ..encoder import Encoder
from ..lab import LabConfig, families, plan, train
from ..run_store import Record
from .sweep import Compute, Sweep

_MEASURES = ("loss", "agreement:simple", "agreement:attractor", "pair", "replaced", "facts")


def _config(_encoder: Encoder | None, run: str, steps: int, seed: int) -> LabConfig:
    return plan(steps)[run].but(seed=seed)


def _work(_encoder: Encoder | None) -> Compute:
    def compute(configs: Sequence[LabConfig]) -> list[Record]:
        return [
            {"values": {name: run.final(name) for name in run.curves},
             "curves": {name: list(values) for name, values in run.curves.items()},
             "moments": list(run.moments), "losses": list(run.losses)}
            for run in train(configs)
        ]  # fmt: skip

    return compute


PRETRAINING = Sweep(
    "pretraining", "09", "objectives, masks, shapes and batches of BERTs trained from nothing",
    {"run": tuple(plan()), "steps": (600,), "seed": tuple(range(10))},
    _config, _work,
    {name: "nats" if name == "loss" else "share" for name in _MEASURES},
    size="steps", batches=families, uses_model=False,
)  # fmt: skip
