"""What a chapter's cells see of the machine: the same in the book and outside it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import psutil

# A process with the model, torch and transformers loaded stays below this in every chapter.
_BYTES_PER_KERNEL = 7 * 1024**3 // 2


def cell_environment(
    package_root: Path, docname: str, results: Path, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment variables of a process that runs a chapter's cells.

    One thread, no hub unless ``BERTOLOGY_MODEL`` names a model, and the package of
    ``package_root`` whatever else is installed under its name.
    """
    found = {
        **environ,
        # Chapters run side by side, one core each; one thread also makes sums reproducible.
        **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
        "TOKENIZERS_PARALLELISM": "false",
        # Where the C library is glibc: what training frees is kept for its next step instead of
        # being handed back, page by page, and asked for again.
        "MALLOC_MMAP_THRESHOLD_": str(32 * 1024**2),
        "MALLOC_TRIM_THRESHOLD_": str(2 * 1024**3),
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(package_root), environ.get("PYTHONPATH")])),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "BERTOLOGY_CHAPTER": docname,
        "BERTOLOGY_RESULTS": str(results),
    }
    if not environ.get("BERTOLOGY_MODEL"):
        found |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    return found


def default_jobs() -> int:
    """Return how many chapters to run at once: the cores we may use, as far as memory goes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(cores or 1, psutil.virtual_memory().available // _BYTES_PER_KERNEL))
