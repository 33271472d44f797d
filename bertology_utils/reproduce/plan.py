"""What has to run: claims by pattern, their chapters, and what an earlier run left to do."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ..ledger import folder_name, load_claims, missing
from ..writing import write_whole
from .chapters import Book, Chapter, environment_digest
from .errors import ReproduceError
from .jobs import PACKAGE_ROOT, Cell, Job
from .models import ModelChoice

_MANIFEST = "reproduced.json"


def select_claims(patterns: Sequence[str]) -> tuple[str, ...]:
    """Ids of the run and proxy claims that match any pattern, such as ``SYN-*`` or ``KNO-03``.

    Raises:
        ReproduceError: a pattern matches no claim, or only claims that are discussed.
    """
    ledger = load_claims()
    chosen = set()
    for pattern in patterns:
        hits = [claim for claim in ledger.values() if fnmatchcase(claim.id, pattern.upper())]
        if not hits:
            prefixes = dict.fromkeys(claim_id.split("-")[0] for claim_id in ledger)
            raise ReproduceError(
                f"no claim matches {pattern[:40]!r}; ids look like SYN-13, with "
                f"{', '.join(prefixes)}"
            )
        runnable = {claim.id for claim in hits if claim.rule is not None}
        if not runnable:
            raise ReproduceError(
                f"{pattern[:40]!r} matches only claims that are discussed, not run"
            )
        chosen |= runnable
    return tuple(claim_id for claim_id in ledger if claim_id in chosen)


def chapters_of(book: Book, claims: Iterable[str]) -> tuple[dict[Chapter, list[str]], list[str]]:
    """The chapter of each claim, and the claims whose chapter the book does not have."""
    by_number = {c.path.name[:2]: c for c in book.chapters if not c.runs_last}
    found: dict[Chapter, list[str]] = {}
    homeless = []
    for claim_id in claims:
        chapter = by_number.get(load_claims()[claim_id].chapter)
        if chapter is None:
            homeless.append(claim_id)
        else:
            found.setdefault(chapter, []).append(claim_id)
    return found, homeless


def plan(
    book: Book,
    chapters: dict[Chapter, list[str]],
    models: Sequence[ModelChoice],
    root: Path,
    *,
    again: bool = False,
) -> tuple[Job, ...]:
    """The jobs that remain: a claim recorded under the same fingerprint is done.

    Args:
        chapters: see :func:`chapters_of`.
        root: folder of results.
        again: run everything, whatever was recorded.
    """
    done = Manifest(root)
    jobs = []
    for model in models:
        environ = {key: value for key, value in os.environ.items() if "BERTOLOGY_" not in key}
        if model.source:
            environ["BERTOLOGY_MODEL"] = model.source  # a folder's files count
        surroundings = environment_digest(PACKAGE_ROOT, environ)
        for chapter, claims in chapters.items():
            parts = (surroundings, str(model.random_seed), chapter.docname, chapter.code_digest)
            fingerprint = hashlib.sha256("\0".join(parts).encode()).hexdigest()
            absent = set(missing(model.name, claims, root))
            due = [
                claim
                for claim in claims
                if again or claim in absent or done.fingerprint(model, claim) != fingerprint
            ]
            if due:
                cells = _cells(book, chapter)
                jobs.append(Job(chapter.docname, cells, model, tuple(due), fingerprint))
    return tuple(jobs)


class Manifest:
    """Under which fingerprint each result of a folder was made; one small file, written whole."""

    def __init__(self, root: Path) -> None:
        self._path = Path(root) / _MANIFEST
        self._known = self._read()

    def fingerprint(self, model: ModelChoice, claim: str) -> str | None:
        """The fingerprint of a claim's result, None when it was not made by a reproduction."""
        return self._known.get(folder_name(model.name), {}).get(claim)

    def add(self, job: Job, claims: Iterable[str]) -> None:
        """Note that these claims of a job are recorded."""
        self._known.setdefault(folder_name(job.model.name), {}).update(
            dict.fromkeys(claims, job.fingerprint)
        )
        write_whole(self._path, json.dumps(self._known, indent=1, sort_keys=True))

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            known = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}  # lost notes cost time, not results
        if not isinstance(known, dict):
            return {}
        return {model: notes for model, notes in known.items() if isinstance(notes, dict)}


def _cells(book: Book, chapter: Chapter) -> tuple[Cell, ...]:
    return tuple(
        Cell(cell.source, "raises-exception" in cell.metadata.get("tags", []))
        for cell in chapter.notebook(book).cells
        if cell.cell_type == "code"
    )
