"""Run jobs side by side, here or on a cluster, and keep every finished one at once."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from tqdm.auto import tqdm

from ..ledger import Comparison, adopt, compare
from ..writing import locked
from .chapters import read_book
from .errors import ReproduceError, WorkerError
from .jobs import PACKAGE_ROOT, Job, Outcome, run_job
from .models import choose
from .plan import Manifest, chapters_of, plan, select_claims
from .running import Running

#: Seconds to wait for a cluster to answer.
_PATIENCE = 20


@dataclass
class Report:
    """What a reproduction did.

    Attributes:
        comparison: the claims on each model, side by side.
        ran, kept: numbers of results made now and found from earlier runs.
        failures: "claim on model" -> reason, for claims that could not be measured.
        homeless: claims whose chapter the book does not have.
    """

    comparison: Comparison
    ran: int = 0
    kept: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    homeless: tuple[str, ...] = ()


def reproduce(
    claims: Sequence[str] = ("*",),
    models: Sequence[str] = (),
    *,
    root: Path,
    book: Path = PACKAGE_ROOT,
    jobs: int = 1,
    dask: str | None = None,
    again: bool = False,
    quiet: bool = False,
) -> Report:
    """Measure claims on models, in parallel; what an earlier, unfinished call did is not redone.

    Args:
        claims: patterns of ids.
        models: names as for :func:`.models.choose`; none means the default model.
        root: folder of results; calls that share it take turns.
        book: a checkout of the book, for the chapters.
        jobs: processes at once on this machine.
        dask: address of a running Dask scheduler, whose workers have this package; its workers
            then decide how many jobs run at once.
        again: do not rely on earlier results.
        quiet: no progress bar.

    Raises:
        ReproduceError: no such claim, book or cluster, or another call is using ``root``.
        NotWrittenError: the folder of results takes no file; what is in it stays.
    """
    if jobs < 1:
        raise ReproduceError(f"{jobs} jobs at once; at least 1 is needed")
    wanted = select_claims(claims)
    chosen = choose(models)
    try:
        pages = read_book(Path(book))
    except FileNotFoundError as error:
        raise ReproduceError(f"{book} holds no book: {error}") from error
    chapters, homeless = chapters_of(pages, wanted)
    root = Path(root)
    busy = ReproduceError("another reproduction is using this folder of results")
    with locked(root / ".reproduce.lock", busy):
        due = plan(pages, chapters, chosen, root, again=again)
        total = sum(len(found) for found in chapters.values()) * len(chosen)
        left = sum(len(job.claims) for job in due)
        report = Report(
            compare([m.name for m in chosen], wanted, root),
            kept=total - left,
            homeless=tuple(homeless),
        )
        outcomes = _on_cluster(due, dask) if dask else _here(due, jobs)
        with tqdm(total=total, initial=total - left, unit="claim", disable=quiet) as bar:
            for job, outcome in outcomes:
                bar.set_postfix_str(f"{Path(job.docname).name} on {job.model.name}")
                _keep(job, outcome, root, report)
                bar.update(len(job.claims))
    report.comparison = compare([m.name for m in chosen], wanted, root)
    return report


def _keep(job: Job, outcome: Outcome | WorkerError, root: Path, report: Report) -> None:
    if isinstance(outcome, WorkerError):
        report.failures |= {f"{c} on {job.model.name}": str(outcome) for c in job.claims}
        return
    for text in outcome.records.values():
        adopt(text, root)
    Manifest(root).add(job, outcome.records)
    report.ran += len(outcome.records)
    report.failures |= {f"{c} on {job.model.name}": why for c, why in outcome.failures.items()}


def _here(jobs: Sequence[Job], at_once: int) -> Iterator[tuple[Job, Outcome | WorkerError]]:
    running = Running()
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        def started(process: subprocess.Popen) -> None:
            running.add(process.pid, process.kill)

        futures = {pool.submit(run_job, job, started): job for job in jobs}
        try:
            for future in as_completed(futures):
                try:
                    outcome: Outcome | WorkerError = future.result()
                except WorkerError as error:
                    outcome = error
                yield futures[future], outcome
        except BaseException:
            # An interrupt must not wait for cells that may run for minutes.
            pool.shutdown(wait=False, cancel_futures=True)
            running.kill_all()
            raise


def _on_cluster(jobs: Sequence[Job], address: str) -> Iterator[tuple[Job, Outcome | WorkerError]]:
    try:
        from distributed import Client
        from distributed import as_completed as finished
    except ImportError:
        raise ReproduceError(
            "a Dask cluster needs the package `distributed`: pip install distributed"
        ) from None
    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise ReproduceError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        futures = {client.submit(run_job, job, pure=False): job for job in jobs}
        for future in finished(futures):
            error = future.exception()
            yield futures[future], future.result() if error is None else WorkerError(str(error))
