"""One job: the cells of one chapter, on one model, until the claims asked for are recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from .errors import WorkerError
from .models import EMBEDDED, ModelChoice
from .surroundings import cell_environment

PACKAGE_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Cell:
    """A code cell: its source, and whether an error in it is part of the lesson."""

    source: str
    may_fail: bool = False


@dataclass(frozen=True)
class Job:
    """Everything a process needs, on this machine or another; nothing is read from the book.

    Attributes:
        docname: the chapter.
        cells: its code cells, in order.
        model: which model to run them on.
        claims: ids of the claims to record.
        fingerprint: digest of all that the outcome depends on.
    """

    docname: str
    cells: tuple[Cell, ...]
    model: ModelChoice
    claims: tuple[str, ...]
    fingerprint: str


@dataclass(frozen=True)
class Outcome:
    """What came of a job: records as JSON texts by claim id, and reasons for those missing."""

    records: dict[str, str]
    failures: dict[str, str]
    seconds: float


def run_job(
    job: Job,
    started: Callable[[subprocess.Popen], None] = lambda process: None,
) -> Outcome:
    """Run a job in a fresh process of its own; ``started`` is told of the process.

    Raises:
        WorkerError: the process died.
    """
    with tempfile.TemporaryDirectory(prefix="bertology-") as folder:
        asked, answer = Path(folder, "job.json"), Path(folder, "outcome.json")
        asked.write_text(json.dumps(asdict(job)), encoding="utf-8")
        work = Path(folder, "work")  # cells must not depend on, or litter, the folder they run in
        work.mkdir()
        with subprocess.Popen(
            [sys.executable, "-m", "bertology_utils.reproduce.worker", str(asked), str(answer)],
            cwd=work,
            env=_environment(job, Path(folder, "results")),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            started(process)
            _, said = process.communicate()
        if process.returncode != 0 or not answer.is_file():
            last = (said.strip().splitlines() or ["no message"])[-1]
            raise WorkerError(
                f"{job.docname} on {job.model.name}: the process ended with status "
                f"{process.returncode} ({last})"
            )
        return Outcome(**json.loads(answer.read_text(encoding="utf-8")))


def _environment(job: Job, results: Path) -> dict[str, str]:
    environ = {key: value for key, value in os.environ.items() if key != "BERTOLOGY_MODEL"}
    if job.model.source != EMBEDDED:
        environ["BERTOLOGY_MODEL"] = job.model.source
    return cell_environment(PACKAGE_ROOT, job.docname, results, environ) | {"MPLBACKEND": "agg"}
