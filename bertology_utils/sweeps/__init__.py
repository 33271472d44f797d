"""Larger versions of the book's experiments: more seeds, sizes and levels, kept run by run.

``python -m bertology_utils sweep`` lists them and runs one. A sweep is declared by its axes; every
combination is one run, fixed by a frozen configuration and kept under its digest.
"""

from .catalogue import SWEEPS
from .running import Result, run_sweep
from .sweep import Sweep, SweepError

__all__ = ["SWEEPS", "Result", "Sweep", "SweepError", "run_sweep"]
