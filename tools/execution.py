"""Run the chapters in parallel, once each, and keep what they showed.

A finished run is one file, written in one step: an executed notebook whose metadata carries the
key it was made under and digests of its outputs and of what it recorded beside them. A chapter
runs again only when that file is missing, made under another key, or damaged, itself or what was
recorded. So a build that is killed loses at most the chapters it was running, and damage on disk is
noticed instead of shown.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbclient.util import ensure_async
from sqlalchemy.exc import OperationalError

from bertology_utils.ledger import default_model, folder_name
from bertology_utils.ledger.store import RESULTS_FOLDER
from bertology_utils.reproduce.chapters import Book, Chapter
from bertology_utils.reproduce.running import Running
from bertology_utils.reproduce.surroundings import cell_environment
from bertology_utils.reproduce.unasked import Unasked, claims_named
from bertology_utils.writing import not_written, told, whole_file, write_whole
from tools.schedule import estimated_costs, last_seconds, starting_order

_STORES_KEPT = 3
#: names of the stores in the order in which they were last used
_USED = "used.txt"
_USAGE = (
    "(lambda use, torch: (use.ru_maxrss, use.ru_utime + use.ru_stime,"
    " torch.backends.cpu.get_cpu_capability() if torch else ''))"
    "(__import__('resource').getrusage(__import__('resource').RUSAGE_SELF),"
    " __import__('sys').modules.get('torch'))"
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Run:
    """One finished execution of one chapter.

    Attributes:
        docname: the chapter.
        key: digest of everything the outputs depend on.
        run_id: new for every execution, so that pages can tell two runs apart.
        seconds: wall-clock time with one thread, from kernel start to the last cell.
        cpu_seconds: processor time of the kernel; unlike the former, other programs on the
            machine hardly change it.
        peak_memory_mb: largest resident size of the kernel, in 10^6 bytes.
        code_cells: number of code cells.
        finished: end of the run, ISO 8601, UTC.
        machine: processor architecture and number of cores.
        instructions: the processor's instructions that PyTorch chose to compute with, empty for a
            chapter without PyTorch.
        model: value of BERTOLOGY_MODEL, empty for the embedded model.
    """

    docname: str
    key: str
    run_id: str
    seconds: float
    cpu_seconds: float
    peak_memory_mb: float
    code_cells: int
    finished: str
    machine: str
    instructions: str
    model: str


class ChapterFailed(Exception):
    """A cell of a chapter raised, ran out of time, or took its kernel down.

    The message names the chapter, the cell and its line, and holds the source and traceback.
    """


class Store:
    """The folder of finished runs made under one package, model and set of pins.

    Args:
        parent: folder of all stores.
        digest: see :func:`bertology_utils.reproduce.chapters.environment_digest`.
        variables: what the kernels' environment has beyond, or instead of, that of the book.
    """

    def __init__(self, parent: Path, digest: str, variables: Mapping[str, str] | None = None):
        self.parent = parent
        self.digest = digest
        self.variables = dict(variables or {})
        self.folder = parent / digest[:16]
        self.results = self.folder / "results"
        self.summary = self.folder / "executions.json"
        self.jupyter_cache = self.folder / "jupyter_cache"
        with told(self.folder):
            self.results.mkdir(parents=True, exist_ok=True)
        order = [path.name for path in stores_by_use(parent) if path != self.folder]
        write_whole(parent / _USED, "\n".join([*order, self.folder.name]) + "\n")

    def key(self, chapter: Chapter, upstream: str = "") -> str:
        """Digest of all that a run depends on; ``upstream`` stands for the runs it reports on."""
        return _digest(self.digest, chapter.docname, chapter.code_digest, upstream)

    def load(self, chapter: Chapter, key: str) -> tuple[nbformat.NotebookNode, Run] | None:
        """Return the run made under this key, or None when there is none that can be trusted."""
        try:
            notebook = nbformat.read(self._path(chapter), as_version=4)
            meta = notebook.metadata["bertology_run"]
            run = Run(**{field.name: meta[field.name] for field in fields(Run)})
            sound = meta["outputs_digest"] == _outputs_digest(notebook)
            # What the run recorded lies beside it; without that half the run is lost.
            sound = sound and meta["results_digest"] == _folder_digest(self.results_of(chapter))
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            nbformat.ValidationError,
        ):
            return None
        return (notebook, run) if sound and run.key == key else None

    def results_of(self, chapter: Chapter) -> Path:
        """Return the folder into which the chapter records what it measured."""
        return self.results / chapter.docname.replace("/", "--")

    def scratch_of(self, chapter: Chapter) -> Path:
        """Return the folder into which the chapter records while it runs."""
        return self.results / f"{chapter.docname.replace('/', '--')}.new"

    def save(self, chapter: Chapter, notebook: nbformat.NotebookNode, run: Run) -> None:
        """Keep a finished run, and what it recorded in its scratch.

        Readers see the earlier run, none, or the new one; never a part, nor parts of two.

        Raises:
            NotWrittenError: the disk is full, or the folder takes nothing.
        """
        scratch, results = self.scratch_of(chapter), self.results_of(chapter)
        notebook.metadata["bertology_run"] = {
            **asdict(run),
            "outputs_digest": _outputs_digest(notebook),
            "results_digest": _folder_digest(scratch),
        }
        with whole_file(self._path(chapter)) as place:
            # Everything that needs room on the disk comes before anything is taken away.
            place.write_text(nbformat.writes(notebook), encoding="utf-8")
            with told(results):
                self._path(chapter).unlink(missing_ok=True)
                shutil.rmtree(results, ignore_errors=True)
                os.rename(scratch, results)

    def write_summary(self, runs: Iterable[Run]) -> None:
        """Write time and memory of every run as JSON, for the pages that report them."""
        table = {run.docname: asdict(run) for run in runs}
        write_whole(self.summary, json.dumps(table, indent=1, sort_keys=True) + "\n")

    def fill_jupyter_cache(
        self, book: Book, executed: Mapping[Chapter, nbformat.NotebookNode]
    ) -> None:
        """Hand all outputs to the cache that Sphinx reads; built anew, so it is never stale.

        Sphinx looks a page up by its code and its cells' settings. Alt texts and captions are
        settings that may have changed since the run, so the outputs are put into today's source.

        Raises:
            NotWrittenError: the disk is full, or the folder takes nothing.
        """
        try:
            with told(self.jupyter_cache):
                self._fill_jupyter_cache(book, executed)
        except OperationalError as error:  # the cache has a data base
            raise not_written(self.jupyter_cache, error.orig) from error

    def _fill_jupyter_cache(
        self, book: Book, executed: Mapping[Chapter, nbformat.NotebookNode]
    ) -> None:
        shutil.rmtree(self.jupyter_cache, ignore_errors=True)
        cache = get_cache(self.jupyter_cache)
        for chapter, ran in executed.items():
            notebook = chapter.notebook(book)
            for cell, done in zip(_code_cells(notebook), _code_cells(ran), strict=True):
                cell.outputs = done.outputs
                cell.execution_count = done.execution_count
            notebook.metadata["language_info"] = ran.metadata["language_info"]
            seconds = ran.metadata["bertology_run"]["seconds"]
            bundle = CacheBundleIn(notebook, str(chapter.path), data={"execution_seconds": seconds})
            # Two chapters with the same code share one entry.
            cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)

    def remove_old_stores(self) -> None:
        """Keep the few stores used last, so that going back to another model costs nothing."""
        for path in stores_by_use(self.parent)[:-_STORES_KEPT]:
            shutil.rmtree(path, ignore_errors=True)

    def _path(self, chapter: Chapter) -> Path:
        return self.folder / (chapter.docname.replace("/", "--") + ".ipynb")


def stores_by_use(parent: Path) -> list[Path]:
    """Return the stores in a folder, the one used last at the end.

    The order is written down: times of folders are those of a clock that may be set back. Stores
    that nothing is written of count as oldest.
    """
    there = sorted(path.name for path in parent.iterdir() if path.is_dir())
    try:
        written = (parent / _USED).read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        written = []
    order = [name for name in there if name not in written]
    order += [name for name in written if name in there]
    return [parent / name for name in order]


def run_book(
    book: Book, store: Store, jobs: int, report: Callable[[str], None]
) -> tuple[dict[Chapter, nbformat.NotebookNode], list[ChapterFailed]]:
    """Run every chapter whose outputs are missing; return all outputs and all failures.

    Chapters that report on the others run after them, and run again whenever one of them did.
    """
    executed: dict[Chapter, nbformat.NotebookNode] = {}
    runs: list[Run] = []
    failures: list[ChapterFailed] = []
    for last in (False, True):
        upstream = "".join(sorted(run.run_id for run in runs)) if last else ""
        if last:
            upstream += "".join(_other_results(book.root).values())
        due: dict[Chapter, str] = {}
        for chapter in (c for c in book.chapters if c.runs_last is last):
            key = store.key(chapter, upstream)
            found = store.load(chapter, key)
            if found is None:
                due[chapter] = key
            else:
                executed[chapter] = found[0]
                runs.append(found[1])
        if last and failures:
            break
        due = _in_order(book, store, due, jobs)
        for result in _run_in_parallel(book, store, due, jobs, report):
            if isinstance(result, ChapterFailed):
                failures.append(result)
            else:
                chapter, notebook, run = result
                executed[chapter] = notebook
                runs.append(run)
        store.write_summary(runs)
    return executed, failures


def _in_order(
    book: Book, store: Store, due: Mapping[Chapter, str], jobs: int
) -> dict[Chapter, str]:
    """The chapters that are due, in the order in which they should be started."""
    pages = {chapter.docname: chapter for chapter in due}
    sizes = {
        page: sum(len(cell.source) for cell in _code_cells(chapter.notebook(book)))
        for page, chapter in pages.items()
    }
    costs = estimated_costs(sizes, last_seconds(sorted(store.parent.glob("*/executions.json"))))
    return {pages[page]: due[pages[page]] for page in starting_order(costs, jobs)}


def _copy_other_models(root: Path, target: Path) -> None:
    """Copy what ``reproduce`` recorded for models other than the one this build is about."""
    for path in _other_results(root):
        copy = target / path.parent.name / path.name
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, copy)


def _other_results(root: Path) -> dict[Path, str]:
    """Files of results of other models beside the book -> their contents, in order."""
    own = folder_name(default_model())
    return {
        path: path.read_text(encoding="utf-8")
        for path in sorted((root / RESULTS_FOLDER).glob("*/*.json"))
        if path.parent.name != own
    }


def _run_in_parallel(
    book: Book,
    store: Store,
    due: Mapping[Chapter, str],
    jobs: int,
    report: Callable[[str], None],
) -> Iterable[ChapterFailed | tuple[Chapter, nbformat.NotebookNode, Run]]:
    """Yield each chapter's run, or its failure, as it ends."""
    if not due:
        return
    report(f"Running {len(due)} chapter(s), {jobs} at a time ...")
    kernels = Running()
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures: dict[Future, Chapter] = {
            pool.submit(_run_chapter, book, store, chapter, key, kernels): chapter
            for chapter, key in due.items()
        }
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                name = futures[future].docname
                try:
                    notebook, run = future.result()
                except ChapterFailed as failure:
                    report(f"  [{done}/{len(due)}] {name}: FAILED")
                    yield failure
                else:
                    cost = f"{run.seconds:.1f} s, {run.peak_memory_mb:.0f} MB"
                    report(f"  [{done}/{len(due)}] {name}: {cost}")
                    yield futures[future], notebook, run
        except BaseException:
            # An interrupt must not wait for cells that may run for minutes.
            pool.shutdown(wait=False, cancel_futures=True)
            kernels.kill_all()
            raise


def _run_chapter(
    book: Book, store: Store, chapter: Chapter, key: str, kernels: Running
) -> tuple[nbformat.NotebookNode, Run]:
    """Execute one chapter in a kernel of its own and keep the result.

    Raises:
        ChapterFailed: a cell raised, timed out, or ended the kernel.
    """
    notebook = chapter.notebook(book)
    code_cells = [i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    seen = {"cell": 0, "pid": -1, "usage": (0.0, 0.0, "")}
    # What an earlier run recorded stays until this one is finished.
    results = store.scratch_of(chapter)
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    if chapter.runs_last:
        _copy_other_models(book.root, results)
        for other in book.chapters:
            if not other.runs_last:
                shutil.copytree(
                    store.results_of(other), results, dirs_exist_ok=True,
                    # Measurements are what reports are about; an exported model is large.
                    ignore=shutil.ignore_patterns("playground"),
                )  # fmt: skip

    def started(notebook: nbformat.NotebookNode) -> None:
        seen["pid"] = client.km.provisioner.pid
        kernels.add(seen["pid"], lambda: os.kill(seen["pid"], signal.SIGKILL))

    def entered(cell: nbformat.NotebookNode, cell_index: int) -> None:
        seen["cell"] = cell_index

    unasked = Unasked()

    async def ran(cell: nbformat.NotebookNode, cell_index: int, execute_reply: dict) -> None:
        content = execute_reply["content"]
        client.allow_error_names = []
        # The book's own model has to face every cell.
        if content["status"] == "error" and os.environ.get("BERTOLOGY_MODEL"):
            why = unasked.reason(cell.source, content["ename"], content["evalue"])
            if why is not None:
                client.allow_error_names = [content["ename"]]
                cell.outputs = [_note(f"Not asked of this model: {why}")]
                if claims := claims_named(cell.source):
                    await _record_unasked(client, claims, why)
        if cell_index == code_cells[-1] and content["status"] == "ok":
            seen["usage"] = await _usage(client)

    client = NotebookClient(
        notebook,
        timeout=book.cell_timeout,
        # A page has no kernel behind it: widgets show the static form they bring themselves.
        store_widget_state=False,
        # Times inside the cells would make Sphinx take the page for another one.
        record_timing=False,
        on_notebook_start=started,
        on_cell_execute=entered,
        on_cell_executed=ran,
    )
    begin = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory(prefix="bertology-") as folder:
            # An empty folder: a chapter must not depend on, or litter, the folder it runs in.
            cwd = Path(folder, "work")
            cwd.mkdir()
            client.km = AsyncKernelManager(
                kernel_name=notebook.metadata.get("kernelspec", {}).get("name", "python3"),
                # Sockets in a private folder: no ports to clash, and nobody else can listen.
                transport="ipc",
                ip=str(Path(folder, "socket")),
                # Not in the reader's home, which may take nothing and which a kill would litter.
                connection_file=str(Path(folder, "kernel.json")),
            )
            client.execute(cwd=str(cwd), env=_kernel_environment(book, store, chapter, results))
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise ChapterFailed(_describe(book, chapter, notebook, seen["cell"], error)) from error
    finally:
        kernels.remove(seen["pid"])
    run = Run(
        docname=chapter.docname,
        key=key,
        run_id=uuid.uuid4().hex,
        seconds=round(time.perf_counter() - begin, 2),
        cpu_seconds=round(seen["usage"][1], 2),
        peak_memory_mb=round(seen["usage"][0], 1),
        code_cells=len(code_cells),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=f"{platform.machine()}, {os.cpu_count()} cores",
        instructions=seen["usage"][2],
        model=os.environ.get("BERTOLOGY_MODEL", ""),
    )
    store.save(chapter, notebook, run)
    return notebook, run


def _kernel_environment(
    book: Book, store: Store, chapter: Chapter, results: Path
) -> dict[str, str]:
    """Return the environment of a kernel: that of every cell, and the book's own settings."""
    found = cell_environment(book.root, chapter.docname, results) | {
        # Neither the reader's IPython profile nor another installed kernel may change the book.
        "IPYTHONDIR": str(store.parent.parent / "ipython"),
        "JUPYTER_PREFER_ENV_PATH": "1",
        "BERTOLOGY_EXECUTIONS": str(store.summary),
        **store.variables,
    }
    home = Path(os.path.expanduser("~"))
    if not os.access(home, os.W_OK):  # matplotlib would complain of that on the pages
        found.setdefault("MPLCONFIGDIR", str(store.parent.parent / "matplotlib"))
    return found


async def _usage(client: NotebookClient) -> tuple[float, float, str]:
    """Ask a kernel for its largest size in 10^6 bytes, its processor time, its instructions."""
    reply = await ensure_async(
        client.kc.execute(
            "", silent=True, user_expressions={"usage": _USAGE}, reply=True, timeout=60
        )
    )
    text = reply["content"]["user_expressions"]["usage"]["data"]["text/plain"]
    peak, seconds, instructions = ast.literal_eval(text)
    size = peak / 1e6 if platform.system() == "Darwin" else peak * 1024 / 1e6
    return size, seconds, instructions


def _note(text: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_output("display_data", data={"text/plain": text})


async def _record_unasked(client: NotebookClient, claims: Iterable[str], why: str) -> None:
    """Record claims that the kernel's model cannot face, unless they have been recorded.

    Raises:
        DeadKernelError: the kernel could not do it.
    """
    code = (
        "from bertology_utils import ledger as _ledger\n"
        "_name = _ledger.default_model()\n"
        f"for _claim in _ledger.missing(_name, {list(claims)!r}):\n"
        f"    _ledger.record(_claim, _ledger.NotTestable(model=_name, reason={why!r}))"
    )
    reply = await ensure_async(client.kc.execute(code, silent=True, reply=True, timeout=60))
    if reply["content"]["status"] != "ok":
        raise DeadKernelError(f"{', '.join(claims)} could not be recorded: {reply['content']}")


def _describe(
    book: Book, chapter: Chapter, notebook: nbformat.NotebookNode, index: int, error: Exception
) -> str:
    number = sum(cell.cell_type == "code" for cell in notebook.cells[: index + 1])
    line = notebook.metadata["source_map"][index]
    place = f"{chapter.path.relative_to(book.root)}, code cell {number} (line {line})"
    if isinstance(error, DeadKernelError):
        text = (
            "The kernel died while running this cell (often: out of memory):\n\n"
            + notebook.cells[index].source
        )
    else:
        text = _ANSI.sub("", str(error)).strip()
    return f"{place}\n{text}"


def _code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _outputs_digest(notebook: nbformat.NotebookNode) -> str:
    cells = [[cell.source, cell.outputs] for cell in _code_cells(notebook)]
    return _digest(json.dumps(cells, sort_keys=True))


def _folder_digest(folder: Path) -> str:
    """Of names and contents of all files below a folder.

    Raises:
        OSError: there is no such folder.
    """
    digest = hashlib.sha256()
    for path in sorted(_files(folder)):
        name = path.relative_to(folder).as_posix().encode("utf-8", "surrogateescape")
        digest.update(name + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _files(folder: Path) -> Iterable[Path]:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            yield from _files(entry)
        else:
            yield entry


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
