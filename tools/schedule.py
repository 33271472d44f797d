"""In which order to start chapters, so that no core waits long for the last of them."""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TypeVar

Job = TypeVar("Job")


def starting_order(costs: Mapping[Job, float], jobs: int) -> list[Job]:
    """The longest first, then exchanged two by two as long as that makes the last one end sooner.

    Only the times at which jobs end depend on the order, never what comes of them.

    Args:
        costs: how long each job takes, in any unit.
        jobs: how many run at once.
    """
    order = sorted(costs, key=lambda job: -costs[job])
    shortest = ends_after(order, costs, jobs)
    improved = True
    while improved:
        improved = False
        for one, other in combinations(range(len(order)), 2):
            changed = list(order)
            changed[one], changed[other] = changed[other], changed[one]
            needed = ends_after(changed, costs, jobs)
            if needed < shortest:
                order, shortest, improved = changed, needed, True
    return order


def ends_after(order: Sequence[Job], costs: Mapping[Job, float], jobs: int) -> float:
    """When the last job ends if each starts as soon as one of the others has ended."""
    free = [0.0] * jobs
    for job in order:
        heapq.heappush(free, heapq.heappop(free) + costs[job])
    return max(free)


def estimated_costs(sizes: Mapping[str, int], seconds: Mapping[str, float]) -> dict[str, float]:
    """What each page took when it last ran, or else its characters of code at the usual rate.

    Args:
        sizes: page -> characters of code.
        seconds: page -> seconds of an earlier run, where there was one.
    """
    known = [page for page in sizes if page in seconds]
    written = sum(sizes[page] for page in known)
    rate = sum(seconds[page] for page in known) / written if written else 1.0
    return {page: seconds.get(page, rate * size) for page, size in sizes.items()}


def last_seconds(summaries: Sequence[Path]) -> dict[str, float]:
    """Page -> seconds of its latest run in these files of ``Store.write_summary``.

    They only say what to start first, so a file that cannot be read is passed over.
    """
    found: dict[str, tuple[str, float]] = {}
    for path in summaries:
        try:
            runs = json.loads(path.read_text(encoding="utf-8"))
            latest = {page: (str(run["finished"]), float(run["seconds"]))
                      for page, run in runs.items()}  # fmt: skip
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            continue
        for page, run in latest.items():
            if math.isfinite(run[1]) and run[1] >= 0:
                found[page] = max(run, found.get(page, run))
    return {page: seconds for page, (_, seconds) in found.items()}
