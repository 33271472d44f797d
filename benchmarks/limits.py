"""What share of the device's arithmetic is used, and what half the bits change."""

from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from .sides import Side, Task


@dataclass(frozen=True)
class Limit:
    """One task in one precision.

    Attributes:
        seconds: on the clock, the median over rounds.
        operations: floating-point operations of its matrix products.
        peak: operations a second that products of large matrices reach here, in this precision.
        difference: the largest difference from float32 in what the task returns.
    """

    name: str
    precision: str
    seconds: float
    operations: float
    peak: float
    difference: float


def measure_limits(
    tasks: dict[str, Task], folder: Path, python: str, threads: int, device: str, rounds: int
) -> list[Limit]:
    """Every task in float32; where the device has units for it, in bfloat16 too.

    Raises:
        SideError: a task failed.
    """
    found = []
    with Side(python, "ours", threads) as side:
        for name, task in tasks.items():
            exact: dict[str, np.ndarray] = {}
            for precision in ("float32",) if device == "cpu" else ("float32", "bfloat16"):
                at = {"precision": precision}
                asked = Task("ours", task.function, {**task.arguments, **at})
                out = folder / "limit.npz"
                side.run(asked, out)
                with np.load(out) as arrays:
                    result = dict(arrays)
                exact = exact or result
                seconds = median(side.run(asked)["seconds"] for _ in range(rounds))
                side.run(Task("ours", "peak", {"device": device, **at}), out)
                with np.load(out) as arrays:
                    peak = float(arrays["rate"])
                difference = max(float(np.abs(result[k] - exact[k]).max()) for k in exact)
                operations = side.count(asked)
                found.append(Limit(name, precision, seconds, operations, peak, difference))
    return found
