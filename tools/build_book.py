"""Build the book: run the chapters, then make the pages, with every warning an error."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path

from filelock import FileLock, Timeout

from bertology_utils.reproduce.chapters import environment_digest, read_book
from bertology_utils.reproduce.surroundings import default_jobs
from bertology_utils.writing import NotWrittenError, remove_leftovers, told
from tools import build_record
from tools.execution import Store, run_book

ROOT = Path(__file__).resolve().parent.parent


def say(line: str) -> None:
    """Print a line at once, also when the output goes to a file."""
    print(line, flush=True)


def build(root: Path, jobs: int) -> int:
    """Build the book in ``root/_build/html``; return the exit status.

    Builds of one folder take turns.

    Raises:
        NotWrittenError: the disk is full, or the folder takes nothing; finished chapters are kept.
    """
    lock = FileLock(root / ".book.lock")
    try:
        with told(root / ".book.lock"):
            held = lock.acquire(timeout=0)
    except Timeout:
        say("Another build of this book is running; waiting for it to end ...")
        held = lock.acquire()
    with held, told(root / "_build", root / "_build"):
        return _build(root, jobs)


def _build(root: Path, jobs: int) -> int:
    begin = time.perf_counter()
    book = read_book(root)
    store = Store(root / "_build" / "executed", environment_digest(root))
    for folder in (store.parent, store.folder, store.results):
        remove_leftovers(folder)  # of builds that were killed: this one holds the lock
    executed, failures = run_book(book, store, jobs, say)
    for failure in failures:
        print(f"\n{'=' * 80}\n{failure}", file=sys.stderr)
    if failures:
        print(f"\n{len(failures)} chapter(s) failed; no pages were made.", file=sys.stderr)
        return 1
    runs = json.loads(store.summary.read_text(encoding="utf-8"))
    build_record.write(store.folder / build_record.FILE, build_record.build_record(book, runs))
    store.fill_jupyter_cache(book, executed)
    store.remove_old_stores()
    say("Making the pages ...")
    ran = time.perf_counter()
    if not make_pages(root, store.jupyter_cache):
        print("\nThe pages have warnings (above), which count as errors.", file=sys.stderr)
        return 1
    end = time.perf_counter()
    say(f"Done in {end - begin:.0f} s (chapters {ran - begin:.0f} s, pages {end - ran:.0f} s).")
    say(f"Open {(root / '_build' / 'html' / 'index.html').as_uri()} or run: make serve")
    return 0


def make_pages(root: Path, jupyter_cache: Path) -> bool:
    """Run Sphinx over the executed chapters, once a language; return whether no warning came up.

    Sphinx shows a page's warnings only when it reads the page, so after a failed or broken-off
    run nothing it remembers is kept: the warnings must come back until they are gone.
    """
    output = root / "_build"
    unfinished = output / "pages-unfinished"
    if unfinished.exists():
        for folder in ("html", ".doctrees", ".doctrees-zh"):
            shutil.rmtree(output / folder, ignore_errors=True)
    unfinished.touch()
    good = _make_edition(root, "html", ".doctrees", jupyter_cache, {})
    # The Chinese pages lie inside the English ones, and share what is large with them.
    good &= _make_edition(
        root,
        "html/zh",
        ".doctrees-zh",
        jupyter_cache,
        {"language": "zh_CN", "mathjax_path": "../../_static/mathjax/tex-chtml.js"},
    )
    if good:
        unfinished.unlink()
    return good


def _make_edition(
    root: Path, pages: str, doctrees: str, jupyter_cache: Path, settings: dict[str, str]
) -> bool:
    from jupyter_book.sphinx import build_sphinx

    output = root / "_build"
    status = build_sphinx(
        root,
        output / pages,
        noconfig=True,
        path_config=root / "_config.yml",
        confoverrides={
            "nb_execution_cache_path": str(jupyter_cache),
            "latex_individualpages": False,
            **settings,
        },
        doctreedir=output / doctrees,
        quiet=True,
        warningiserror=True,
        keep_going=True,
    )
    if isinstance(status, OSError):
        raise status  # the caller knows what a full disk is
    return status == 0


def main() -> int:
    """Parse the command line and build this checkout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--jobs", type=int, default=default_jobs(), help="chapters to run at once"
    )
    arguments = parser.parse_args()
    if arguments.jobs < 1:
        parser.error("--jobs must be at least 1")
    # Nothing of the reader's may enter: neither user packages nor a hub that answers or hangs.
    os.environ["PYTHONNOUSERSITE"] = "1"
    try:
        return build(ROOT, arguments.jobs)
    except KeyboardInterrupt:
        print("\nInterrupted; finished chapters are kept.", file=sys.stderr)
        return 130
    except NotWrittenError as error:
        print(f"\nerror: {error}; finished chapters are kept.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
