"""What is trained, on how many texts, and how much of the result is luck (chapter 10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..encoder import Encoder
from ..finetuning import TASKS, Experiment, Method, Recipe, Run, Tuner, make_task
from ..run_store import Record
from .sweep import Compute, Sweep

N_TEST = 200
_LONG = 7


def _upper(n_layers: int) -> Method:
    return Method("top", max(1, n_layers // 2))


#: name -> run for a model of so many layers; seeds are set later
WAYS: dict[str, Callable[[int], Run]] = {
    "all": lambda n: Run(),
    "top-half": lambda n: Run(_upper(n)),
    "frozen": lambda n: Run(Method("none"), Recipe(epochs=30, lr=5e-3)),
    "biases": lambda n: Run(Method("biases"), Recipe(epochs=_LONG, lr=5e-3)),
    "adapters": lambda n: Run(Method("bottleneck", 16), Recipe(epochs=_LONG, lr=5e-3)),
    "low-rank": lambda n: Run(Method("low_rank", 8), Recipe(epochs=_LONG, lr=1e-2)),
    "mixout": lambda n: Run(mixout=0.5),
    "adversarial": lambda n: Run(adversarial=0.03),
    "smooth": lambda n: Run(smooth=0.03),
    "fresh-top": lambda n: Run(fresh=(n - 1,)),
    "fresh-top-2": lambda n: Run(fresh=tuple(range(max(0, n - 2), n))),
    "fresh-bottom": lambda n: Run(fresh=(0,)),
}


def _way(encoder: Encoder, method: str, task: str, size: int, seed: int) -> Experiment:
    run = WAYS[method](encoder.n_layers)
    data = make_task(task, size, N_TEST, seed=seed)
    return Experiment(data.train, data.test, _seeded(run, seed, seed))


def _draw(encoder: Encoder, task: str, size: int, texts: int, head: int, order: int) -> Experiment:
    run = Run(_upper(encoder.n_layers), Recipe(epochs=4, batch_size=8))
    data = make_task(task, size, N_TEST, seed=texts)
    return Experiment(data.train, data.test, _seeded(run, head, order))


def _seeded(run: Run, head: int, order: int) -> Run:
    return Run(**{**vars(run), "head_seed": head, "order_seed": order})


def _work(encoder: Encoder) -> Compute:
    tuner = Tuner(encoder)

    def compute(experiments: Sequence[Experiment]) -> list[Record]:
        found = tuner.outcomes(experiments)
        return [
            {"values": {"accuracy": out.accuracy, "trained": out.n_trained,
                        "last loss": sum(out.losses[-5:]) / len(out.losses[-5:])},
             "curves": {"loss": list(out.losses)}, "right": out.right.astype(int).tolist()}
            for out in found
        ]  # fmt: skip

    return compute


_MEASURES = {"accuracy": "share", "last loss": "nats", "trained": "count"}

METHODS = Sweep(
    "fine-tuning-methods", "10", "all weights, parts, adapters, mixout, layers drawn anew",
    {"method": tuple(WAYS), "task": tuple(TASKS), "size": (48, 192), "seed": tuple(range(8))},
    _way, _work, _MEASURES,
)  # fmt: skip

LUCK = Sweep(
    "fine-tuning-luck", "10", "first weights of the new layer by orders of the data",
    {"task": tuple(TASKS), "size": (32, 128), "texts": (0, 1), "head": tuple(range(8)),
     "order": tuple(range(8))},
    _draw, _work, {"accuracy": "share", "last loss": "nats"}, seeds=("head", "order"),
)  # fmt: skip
