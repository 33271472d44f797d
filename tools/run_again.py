"""Run chapters anew in fresh processes and compare: ``python -m tools.run_again [CHAPTER ...]``.

Each chapter is run again and compared, number by number, with the run that the last build kept;
where that is missing or out of date, it is run first as the book does it. The second run may have
other threads, another seed for Python's hashes, or fewer of the processor's instructions, which
is how another machine looks from inside. Exits with 0 when the runs agree (see
:mod:`tools.compare_builds`). Nothing that is kept is touched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bertology_utils.reproduce.chapters import Book, environment_digest, read_book
from bertology_utils.reproduce.surroundings import default_jobs
from tools.compare_builds import TOLERANCE, Comparison, compare
from tools.execution import Store, run_book

ROOT = Path(__file__).resolve().parent.parent

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
#: What keeps PyTorch, its two libraries, and NumPy and its own from newer instructions.
INSTRUCTIONS: Mapping[str, Mapping[str, str]] = {
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    },
    "plain": {
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "OPENBLAS_CORETYPE": "Nehalem",
    },
}


class RunsFailed(Exception):
    """Chapters could not be run; the message holds their reports."""


def choose_chapters(book: Book, names: Sequence[str]) -> Book:
    """The book with the named chapters only (``05``, ``05_probing_limits``); all when none is.

    Pages that report on others are left out: they measure nothing.

    Raises:
        KeyError: no chapter has such a name.
    """
    measuring = [chapter for chapter in book.chapters if not chapter.runs_last]
    chosen = []
    for name in names:
        stem = Path(name).name.removesuffix(".md")
        found = [c for c in measuring if Path(c.docname).name.startswith(stem)]
        if not stem or not found:
            known = ", ".join(Path(chapter.docname).name for chapter in measuring)
            raise KeyError(f"there is no chapter {name!r}; there are {known}")
        chosen += [chapter for chapter in found if chapter not in chosen]
    return replace(book, chapters=tuple(chosen or measuring))


def run_again(
    root: Path, names: Sequence[str], variables: Mapping[str, str], jobs: int
) -> Comparison:
    """Compare fresh runs of the named chapters with those kept, or made first.

    Args:
        root: the book.
        names: see :func:`choose_chapters`.
        variables: environment of the second run, beyond or instead of the book's.
        jobs: chapters to run at once.

    Raises:
        KeyError: no chapter has such a name.
        RunsFailed: a chapter cannot be run.
    """
    book = choose_chapters(read_book(root), names)
    digest = environment_digest(root)
    kept = Store(root / "_build" / "executed", digest)
    with tempfile.TemporaryDirectory(prefix="bertology-again-") as folder:
        first = Store(Path(folder, "first"), digest)
        for chapter in book.chapters:
            if (found := kept.load(chapter, kept.key(chapter))) is not None:
                shutil.copytree(kept.results_of(chapter), first.scratch_of(chapter))
                first.save(chapter, *found)
        second = Store(Path(folder, "second"), digest, variables)
        for store in (first, second):
            _, failures = run_book(book, store, jobs, lambda line: print(line, flush=True))
            if failures:
                raise RunsFailed("\n\n".join(map(str, failures)))
        return compare(first.folder, second.folder)


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="such as 05; all by default")
    parser.add_argument("--threads", type=int, default=1, help="threads of the second run")
    parser.add_argument("--hash-seed", type=int, default=1, help="PYTHONHASHSEED of it")
    parser.add_argument("--instructions", choices=sorted(INSTRUCTIONS), help="no newer ones in it")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    parser.add_argument("--jobs", type=int, default=default_jobs())
    given = parser.parse_args(arguments)
    if given.threads < 1 or given.jobs < 1:
        parser.error("--threads and --jobs must be at least 1")
    if not 0 <= given.hash_seed < 2**32:
        parser.error("--hash-seed must lie between 0 and 4294967295")
    variables = dict.fromkeys(_THREADS, str(given.threads))
    variables["PYTHONHASHSEED"] = str(given.hash_seed)
    variables |= INSTRUCTIONS.get(given.instructions, {})
    os.environ["PYTHONNOUSERSITE"] = "1"
    try:
        found = run_again(ROOT, given.chapters, variables, given.jobs)
    except (KeyError, RunsFailed) as error:
        print(error.args[0], file=sys.stderr)
        return 2
    print(found.report(given.tolerance))
    return 0 if found.agrees(given.tolerance) else 1


if __name__ == "__main__":
    sys.exit(main())
