"""The process that runs a job: ``python -m bertology_utils.reproduce.worker JOB OUTCOME``.

Cells run in an IPython shell without a front end, as in the book's kernels. A cell that raises
does not end the job, since the claims of later cells may not depend on it; a claim left without
a record gets the error of the cell that names it, else the first error. Claims of cells that need
an output head which the model lacks are recorded as not testable.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from .. import ledger
from ..writing import write_whole
from .jobs import Cell, Job, Outcome
from .models import ModelChoice
from .unasked import Unasked, claims_named


def run_cells(job: Job) -> Outcome:
    """Run a job in this process; see :func:`.jobs.run_job` for a process of its own.

    A model whose hidden states are not finite is not run: each claim is recorded as a broken
    model, which the claim's rule judges as "does not".
    """
    begin = time.perf_counter()
    errors: dict[int, str] = {}
    with tempfile.TemporaryDirectory(prefix="bertology-") as folder:
        if job.model.random_seed is not None:
            os.environ["BERTOLOGY_MODEL"] = _random_weights(job.model, Path(folder))
        broken = _what_is_broken()
        if broken:
            for claim in job.claims:
                ledger.record(claim, ledger.BrokenModel(model=job.model.name, reason=broken))
        else:
            errors = _run_until_recorded(job)
    records = {
        claim: ledger.record_text(claim, job.model.name)
        for claim in job.claims
        if claim not in _missing(job)
    }
    failures = {claim: _reason(job, claim, errors) for claim in _missing(job)}
    return Outcome(records, failures, round(time.perf_counter() - begin, 2))


def _run_until_recorded(job: Job) -> dict[int, str]:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    errors = {}
    unasked = Unasked()
    for number, cell in enumerate(job.cells):
        done = shell.run_cell(cell.source, store_history=False)
        error = done.error_before_exec or done.error_in_exec
        if error is not None and not cell.may_fail:
            kind, first = type(error).__name__, (str(error).strip().splitlines() or [""])[0]
            why = unasked.reason(cell.source, kind, str(error))
            if why is None:
                errors[number] = f"{kind}: {first}"
            else:
                for claim in set(claims_named(cell.source)) & set(_missing(job)):
                    outcome = ledger.NotTestable(model=job.model.name, reason=why)
                    ledger.record(claim, outcome)
        if not _missing(job):
            break
    return errors


def _missing(job: Job) -> tuple[str, ...]:
    return ledger.missing(job.model.name, job.claims)


def _reason(job: Job, claim: str, errors: dict[int, str]) -> str:
    own = [text for number, text in errors.items() if claim in job.cells[number].source]
    if own or errors:
        return (own or list(errors.values()))[0]
    return f"no cell of {job.docname} records it for {job.model.name}"


def _what_is_broken() -> str | None:
    """Say what is wrong with the model's hidden states of one sentence, or None."""
    from ..encoder import evaluating, load_encoder
    from ..words import make_batch

    encoder = load_encoder()
    with evaluating(encoder):
        hidden = encoder.encode(make_batch(encoder, ["The cat sat on the mat."]))
    bad = int((~hidden.isfinite()).sum())
    if not bad:
        return None
    return f"{bad} of {hidden.numel()} hidden-state values of a sentence are not finite numbers"


def _random_weights(model: ModelChoice, folder: Path) -> str:
    from ..encoder import load_encoder, random_encoder, save_encoder

    untrained = random_encoder(load_encoder(), seed=model.random_seed)
    return str(save_encoder(untrained, folder / model.name))


def main(asked: str, answer: str) -> None:
    """Read a job, run it, write its outcome in one step."""
    raw = json.loads(Path(asked).read_text(encoding="utf-8"))
    job = Job(
        **{
            **raw,
            "cells": tuple(Cell(**cell) for cell in raw["cells"]),
            "model": ModelChoice(**raw["model"]),
            "claims": tuple(raw["claims"]),
        }
    )
    outcome = run_cells(job)
    write_whole(answer, json.dumps(vars(outcome)))


if __name__ == "__main__":
    main(*sys.argv[1:])
