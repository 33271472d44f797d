"""The whole book: cold, warm, and after one chapter was edited, in a copy of the repository."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat

from bertology_utils.reproduce.chapters import read_book
from bertology_utils.reproduce.surroundings import default_jobs

from .sides import ROOT, SideError

EDITED = "chapters/01_architecture.md"


@dataclass(frozen=True)
class Book:
    """Seconds on the clock of three builds; seconds and peak MB of every chapter's run; the
    chapters that ran again after one was edited; the peak MB of the largest process; and how many
    chapters run at once."""

    cold: float
    warm: float
    edited: float
    chapters: dict[str, tuple[float, float]]
    ran_again: tuple[str, ...]
    peak_mb: float
    jobs: int


def measure_book(folder: Path, python: str) -> Book:
    """Build a clean copy of the committed files three times.

    Raises:
        SideError: a build failed, or ran a chapter for which nothing had changed.
    """
    copy = folder / "book"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", ROOT.as_uri(), copy], check=True)
    cold, peak = _build(copy, python)
    before = _finished(copy)
    warm, _ = _build(copy, python)
    if _finished(copy) != before:
        raise SideError("a second build ran chapters again though nothing had changed")
    page = copy / EDITED
    text = page.read_text(encoding="utf-8")
    fence = "```{code-cell} ipython3\n"
    place = text.rindex("\n```\n", 0, text.index(fence, text.index(fence) + 1))
    page.write_text(f"{text[:place]}\n# edited{text[place:]}", encoding="utf-8")
    edited, _ = _build(copy, python)
    after = _finished(copy)
    again = tuple(sorted(n for n, run in after.items() if run["run_id"] != before[n]["run_id"]))
    # Pages that gather what the others recorded run after every change.
    gather = {chapter.docname for chapter in read_book(copy).chapters if chapter.runs_last}
    if set(again) - gather != {EDITED.removesuffix(".md")}:
        raise SideError(f"one chapter was edited, and these ran: {', '.join(again)}")
    chapters = {name: (run["seconds"], run["peak_memory_mb"]) for name, run in before.items()}
    shutil.rmtree(copy)
    return Book(cold, warm, edited, chapters, again, peak, default_jobs())


def _build(copy: Path, python: str) -> tuple[float, float]:
    """Seconds on the clock, and the peak MB of the largest process, kernels included."""
    log = copy.with_suffix(".log")
    start = time.perf_counter()
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            [python, "-m", "tools.build_book"], cwd=copy, stdout=out, stderr=subprocess.STDOUT
        )
        # What the system keeps of all children together would hold other parts' processes too.
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SideError(f"the book was not built: {log.read_text(encoding='utf-8')[-600:]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return seconds, usage.ru_maxrss * unit / 1e6


def _finished(copy: Path) -> dict[str, dict]:
    """Chapter -> the record of its run; every run has an id of its own."""
    (summary,) = (copy / "_build" / "executed").glob("*/executions.json")
    found = {}
    for path in summary.parent.glob("*.ipynb"):
        run = nbformat.read(path, as_version=4).metadata["bertology_run"]
        found[run["docname"]] = dict(run)
    return found
