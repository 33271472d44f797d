"""All sweeps by name, in the order of the chapters."""

from __future__ import annotations

from .distillation import DISTILLATION
from .fine_tuning import LUCK, METHODS
from .pretraining import PRETRAINING
from .pruning import PRUNING
from .shortcuts import HEURISTICS, SHORTCUTS
from .subnetworks import SUBNETWORKS
from .twins import TWINS

SWEEPS = {
    sweep.name: sweep
    for sweep in (PRETRAINING, LUCK, METHODS, DISTILLATION, PRUNING, SUBNETWORKS, TWINS,
                  SHORTCUTS, HEURISTICS)
}  # fmt: skip
