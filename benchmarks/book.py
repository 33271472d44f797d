"""The whole book: cold, warm, and after one chapter was edited, in a copy of the repository."""

import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import nbformat

from .sides import ROOT, SideError

EDITED = "chapters/01_architecture.md"


@dataclass(frozen=True)
class Book:
    """Seconds on the clock of three builds; seconds and peak MB of every chapter's run; the
    chapters that ran again after one was edited."""

    cold: float
    warm: float
    edited: float
    chapters: dict[str, tuple[float, float]]
    ran_again: tuple[str, ...]
    peak_mb: float


def measure_book(folder: Path, python: str) -> Book:
    """Build a clean copy of the committed files three times."""
    copy = folder / "book"
    subprocess.run(["git", "clone", "--quiet", "--depth=1", ROOT.as_uri(), copy], check=True)
    cold = _build(copy, python)
    before = _finished(copy)
    warm = _build(copy, python)
    if _finished(copy) != before:
        raise SideError("a second build ran chapters again though nothing had changed")
    page = copy / EDITED
    text = page.read_text(encoding="utf-8")
    fence = "```{code-cell} ipython3\n"
    place = text.rindex("\n```\n", 0, text.index(fence, text.index(fence) + 1))
    page.write_text(f"{text[:place]}\n# edited{text[place:]}", encoding="utf-8")
    edited = _build(copy, python)
    after = _finished(copy)
    again = tuple(sorted(n for n, run in after.items() if run["run_id"] != before[n]["run_id"]))
    chapters = {name: (run["seconds"], run["peak_memory_mb"]) for name, run in before.items()}
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    shutil.rmtree(copy)
    unit = 1 if sys.platform == "darwin" else 1024
    return Book(cold, warm, edited, chapters, again, peak * unit / 1e6)


def _build(copy: Path, python: str) -> float:
    start = time.perf_counter()
    done = subprocess.run(
        [python, "-m", "tools.build_book"], cwd=copy, capture_output=True, text=True
    )
    if done.returncode:
        raise SideError(f"the book was not built: {(done.stderr or done.stdout)[-600:]}")
    return time.perf_counter() - start


def _finished(copy: Path) -> dict[str, dict]:
    """Chapter -> the record of its run; every run has an id of its own."""
    (summary,) = (copy / "_build" / "executed").glob("*/executions.json")
    found = {}
    for path in summary.parent.glob("*.ipynb"):
        run = nbformat.read(path, as_version=4).metadata["bertology_run"]
        found[run["docname"]] = dict(run)
    return found
