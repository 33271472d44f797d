"""1, 10 and 100 times the sentences: does time grow in proportion, and memory not at all?"""

import json
from dataclasses import dataclass
from pathlib import Path

from .inputs import sentences
from .sides import Side, Task

TASKS = {
    "PLL": "pll_ours",
    "all layers and patterns, reduced": "collect_ours",
    "all layers and patterns, to disk": "to_disk",
}


@dataclass(frozen=True)
class Growth:
    """One task at one size, in a process of its own.

    Attributes:
        seconds: on the clock, a second run (the first one warms up on a tenth).
        peak_mb: largest memory of the process.
    """

    name: str
    n: int
    seconds: float
    peak_mb: float


def measure_growth(about: dict, folder: Path, python: str, base: int, threads: int) -> list[Growth]:
    """Every task at ``base`` sentences, ten times and a hundred times as many.

    ``about``: folder of the model, and device.
    """
    found = []
    for name, function in TASKS.items():
        for factor in (1, 10, 100):
            n = base * factor
            texts = folder / f"growth-{n}.json"
            # The same sentences over and over, so that only their number changes.
            some = sentences(base)
            texts.write_text(json.dumps([f"{t} {i // base}" for i, t in enumerate(some * factor)]))
            with Side(python, "ours", threads) as side:
                task = Task("ours", function, {**about, "texts": str(texts)})
                reply = side.run(task)
            found.append(Growth(name, n, reply["seconds"], reply["peak_mb"]))
    return found
