"""The book's build: killed at any moment, on a full disk, with damaged stores and odd clocks; the
next build makes the pages that an undisturbed one makes."""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import lru_cache
from pathlib import Path

import nbformat
import pytest
from faults import Disk, at_change, die, die_when_a_file_reaches, in_child, on_a_small_disk
from minibook import ROOT, MiniBook, printed

from bertology_utils.reproduce.chapters import Book, Chapter, read_book
from tools import build_book, sphinx_playground
from tools.execution import Run, Store
from tools.export_notebooks import export, last_costs


@pytest.fixture
def mini(tmp_path: Path) -> MiniBook:
    return MiniBook(tmp_path / "book")


# -- the store of executed chapters, without kernels -----------------------------------------------


@lru_cache
def only(mini: MiniBook) -> tuple[Book, Chapter]:
    book = read_book(mini.root)
    return book, book.chapters[0]


def keep(mini: MiniBook, version: int) -> None:
    """Keep a run as if it had just finished: an output, and a file of results."""
    book, chapter = only(mini)
    store = mini.store()
    notebook = chapter.notebook(book)
    notebook.cells[-1].outputs = [nbformat.v4.new_output("stream", text=f"{version}")]
    results = store.scratch_of(chapter)
    shutil.rmtree(results, ignore_errors=True)
    (results / "model").mkdir(parents=True)
    (results / "model" / "SYN-13.json").write_text(f"{version}")
    store.save(chapter, notebook, Run(chapter.docname, f"key {version}", f"run {version}", 1.0, 1.0,
                                      1.0, 1, "", "", "", ""))  # fmt: skip


def kept(mini: MiniBook) -> int | None:
    """Which version can be had; None where the chapter would run again."""
    _, chapter = only(mini)
    store, found = mini.store(), []
    for version in (1, 2):
        run = store.load(chapter, f"key {version}")
        if run is not None:
            assert printed(run[0]) == f"{version}"
            results = store.results_of(chapter)
            assert (results / "model" / "SYN-13.json").read_text() == f"{version}"
            found.append(version)
    return found[0] if len(found) == 1 else None


def test_a_run_that_is_killed_while_it_is_saved_is_kept_whole_or_not_at_all(mini):
    mini.write("one", "print(1)")
    seen = set()
    for number in range(1, 40):
        keep(mini, 1)
        assert kept(mini) == 1

        def save(number=number):
            at_change(number, mini.root / "_build", die)
            keep(mini, 2)

        end = in_child(save)
        seen.add(kept(mini))
        keep(mini, 2)
        assert kept(mini) == 2
        if not end.killed:
            break
    assert seen == {1, None, 2} and number > 9
    for size in (0, 2, 500):
        keep(mini, 1)

        def save(size=size):
            die_when_a_file_reaches(size)
            keep(mini, 2)

        assert in_child(save).killed and kept(mini) == 1


def damage_results(store: Store, chapter: Chapter) -> Path:
    return store.results_of(chapter) / "model" / "SYN-13.json"


def damage_run(store: Store, chapter: Chapter) -> Path:
    return store.folder / "chapters--one.ipynb"


@pytest.mark.parametrize("place", [damage_results, damage_run])
@pytest.mark.parametrize("how", ["cut off", "changed", "gone", "foreign", "not text"])
def test_damage_to_a_kept_run_is_noticed(mini, place, how):
    mini.write("one", "print(1)")
    keep(mini, 1)
    _, chapter = only(mini)
    path = place(mini.store(), chapter)
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        changed = {"cut off": content[: len(content) // 2], "not text": b"\xff\x00" * 9,
                   "changed": content.replace(b"1", b"7"), "foreign": b'{"cells": []}'}  # fmt: skip
        path.write_bytes(changed[how])
    assert kept(mini) is None
    keep(mini, 1)
    (damage_results(mini.store(), chapter).parent / "SYN-14.json").write_text("slipped in")
    assert kept(mini) is None


def test_stores_go_by_use_and_not_by_the_clock(mini, monkeypatch):
    mini.write("one", "print(1)")

    def use(model: str) -> Path:
        monkeypatch.setenv("BERTOLOGY_MODEL", model)
        store = mini.store()
        store.remove_old_stores()
        return store.folder

    future = [use(f"model {n}") for n in range(3)]
    for folder in future:  # the clock was years ahead then
        os.utime(folder, (2**32, 2**32))
    (mini.root / "_build" / "executed" / ".DS_Store").write_text("no store")
    now = [use("now"), use("other")]
    assert [folder.is_dir() for folder in (*future, *now)] == [False, False, True, True, True]
    assert use("model 2") == future[2] and all(folder.is_dir() for folder in now)
    (mini.root / "_build" / "executed" / "used.txt").write_bytes(b"\xff damaged")
    assert use("other") == now[1] and all(f.is_dir() for f in (*now, future[2]))


def test_damaged_notes_of_costs_are_no_costs(mini):
    store = mini.store()
    store.summary.write_text('{"chapters/one": {"cpu_sec')
    assert last_costs(mini.root) == {}


def test_exported_notebooks_stay_when_the_disk_is_full():
    def scenario(disk: Disk) -> None:
        mini = MiniBook(disk.root / "book")
        mini.write("one", "print(1)")
        book, folder = read_book(mini.root), disk.root / "notebooks"
        (path,) = export(book, folder, None, {})
        before = path.read_bytes()
        mini.write("one", "print(2)")
        book = read_book(mini.root)
        disk.fill()
        with pytest.raises(OSError, match="notebooks.* cannot be written"):
            export(book, folder, None, {})
        assert path.read_bytes() == before and list(folder.iterdir()) == [path]

    on_a_small_disk(scenario, 64)


def test_an_environment_that_cannot_be_made_is_told_in_one_line():
    def scenario(disk: Disk) -> None:
        (disk.root / "tools").mkdir()
        for name in ("requirements.txt", "pyproject.toml", "tools/setup_env.py"):
            shutil.copyfile(ROOT / name, disk.root / name)
        disk.freeze()
        done = subprocess.run([sys.executable, str(disk.root / "tools" / "setup_env.py")],
                              capture_output=True, text=True)  # fmt: skip
        assert done.returncode == 1 and done.stderr.count("\n") == 1
        assert done.stderr.startswith(f"{disk.root} cannot be written: ")

    on_a_small_disk(scenario)


def test_a_damaged_runtime_of_the_playground_is_not_used(tmp_path, monkeypatch):
    def unpack(archive: Path, folder: Path) -> None:
        folder.mkdir()
        for name in sphinx_playground.DIGESTS:
            (folder / name).write_bytes(b"whole")

    for name in sphinx_playground.DIGESTS:
        digest = hashlib.sha256(b"whole").hexdigest()
        monkeypatch.setitem(sphinx_playground.DIGESTS, name, digest)
    monkeypatch.setattr(sphinx_playground, "_pack", lambda place: place / "package")
    monkeypatch.setattr(sphinx_playground, "unpack", unpack)
    folder = tmp_path / "kept" / "runtime"
    sphinx_playground.fetch_runtime(folder)
    for damaged in (b"", b"whol"):
        (folder / "onnxruntime.wasm").write_bytes(damaged)
        sphinx_playground.fetch_runtime(folder)
        assert (folder / "onnxruntime.wasm").read_bytes() == b"whole"

    # Another checkout's build puts it there at the same moment.
    (folder / "onnxruntime.wasm").write_bytes(b"")

    def write() -> None:
        at_change(2, folder.parent, lambda: sphinx_playground.fetch_runtime(folder))
        sphinx_playground.fetch_runtime(folder)

    assert in_child(write).error is None and sphinx_playground.is_sound(folder)
    assert list(folder.parent.iterdir()) == [folder]


def test_a_full_disk_leaves_the_pages_without_the_playgrounds_runtime(monkeypatch):
    monkeypatch.setattr(sphinx_playground, "_pack", lambda place: place / "package")
    monkeypatch.setattr(sphinx_playground, "unpack", lambda archive, folder: (
        folder.mkdir(), (folder / "onnxruntime.wasm").write_bytes(b"x" * 9000)))  # fmt: skip

    def scenario(disk: Disk) -> None:
        disk.must_be_mounted()
        disk.fill()
        with pytest.raises(sphinx_playground.RuntimeUnavailableError, match="cannot be kept: "):
            sphinx_playground.fetch_runtime(disk.root / "share" / "runtime")
        assert not list((disk.root / "share").iterdir())

    on_a_small_disk(scenario)


# -- whole builds ----------------------------------------------------------------------------------


def run_in_a_process(mini: MiniBook, code: str, **options) -> subprocess.Popen:
    program = f"""
import sys; sys.path.insert(0, "tests")
from pathlib import Path
from faults import at_change, die
root = Path({str(mini.root)!r})
{code}
"""
    return subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, text=True, **options)


RECORDING = """import os, pathlib, time
folder = pathlib.Path(os.environ["BERTOLOGY_RESULTS"])
(folder / "half.json").write_text("{0}")
started = pathlib.Path({1!r})
if {0} == 2 and not started.exists():
    started.write_text(str(os.getpid()))
    time.sleep(600)
(folder / "whole.json").write_text("{0}")
print({0})"""


def test_a_build_killed_between_two_cells_takes_nothing_from_the_run_before(mini):
    started = mini.root / "started"
    mini.write("one", RECORDING.format(1, str(started)))
    texts, _, _ = mini.run()
    mini.write("one", RECORDING.format(2, str(started)))
    code = "from tools.build_book import build; build(root, 1)"
    process = run_in_a_process(mini, code, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 600
    while not (started.exists() and started.read_text()):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.1)
    process.kill()
    process.wait()
    # The reader takes the change back: what ran before is there, whole, and need not run again.
    mini.write("one", RECORDING.format(1, str(started)))
    assert mini.run() == (texts, [], set())
    _, chapter = only(mini)
    folder = mini.store().results_of(chapter)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "half.json": "1", "whole.json": "1"}  # fmt: skip
    mini.write("one", RECORDING.format(2, str(started)))
    assert mini.run() == ({"one": "2\n"}, [], {"one"})
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        "half.json": "2", "whole.json": "2"}  # fmt: skip


def pages_of(mini: MiniBook) -> dict[str, bytes]:
    """All files of the built book but what Sphinx notes for itself."""
    html = mini.root / "_build" / "html"
    return {str(path.relative_to(html)): path.read_bytes() for path in sorted(html.rglob("*"))
            if path.is_file() and path.name != ".buildinfo"}  # fmt: skip


CATALOGUE = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\n'


def test_pages_are_those_of_an_undisturbed_build(mini):
    """Killed while the pages are written, then with a clock set back by an hour."""
    mini.write("one", "print(1)", text="The first page.")
    mini.write("two", "print(2)", text="```{run-cost}\n```")
    po = mini.root / "locale" / "zh_CN" / "LC_MESSAGES" / "chapters" / "one.po"
    po.parent.mkdir(parents=True)
    po.write_text(CATALOGUE + 'msgid "The first page."\nmsgstr "第一页。"\n')
    status, output = mini.build()
    assert status == 0, output
    whole = pages_of(mini)

    for folder in ("html", ".doctrees", ".doctrees-zh"):
        shutil.rmtree(mini.root / "_build" / folder)
    mo = po.with_suffix(".mo")
    mo.unlink()
    code = """
at_change(1, root / "_build" / "html" / "zh" / "chapters" / "two.html", die)
from tools.build_book import build
build(root, 1)"""
    process = run_in_a_process(mini, code, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert process.wait(600) == -signal.SIGKILL
    assert pages_of(mini) != whole and (mini.root / "_build" / "pages-unfinished").exists()
    mo.write_bytes(mo.read_bytes()[:40])  # as if killed a moment earlier
    (mini.root / "_build" / "html" / "chapters" / "one.html").write_text("half a pa")
    status, output = mini.build()
    assert status == 0 and "Running" not in output, output
    assert pages_of(mini) == whole

    # What is changed now is older than what was built: the clock has been set back.
    an_hour_ago = time.time() - 3600
    for path in (
        mini.write("two", "print(2)", text="The second page."),
        po,
    ):
        if path is po:
            po.write_text(po.read_text().replace("第一页", "首页"))
        os.utime(path, (an_hour_ago, an_hour_ago))
    status, output = mini.build()
    assert status == 0, output
    assert "The second page." in mini.page("two")
    chinese = (mini.root / "_build" / "html" / "zh" / "chapters" / "one.html").read_text()
    assert "首页" in chinese and "第一页" not in chinese


MAIN = """
from tools import build_book
build_book.ROOT = root
sys.argv = ["build_book", "--jobs", "1"]
sys.exit(build_book.main())"""


REFUSED = r"error: /\S+ cannot be written: [A-Z][\w -]+; finished chapters are kept\."


def test_a_build_on_a_full_disk_says_so_and_keeps_what_was_finished():
    def scenario(disk: Disk) -> None:
        mini = MiniBook(disk.root / "book")
        mini.write("one", "print(1)")
        assert mini.run()[2] == {"one"}
        mini.write("two", "print('2' * 9000)")
        disk.fill()
        process = run_in_a_process(mini, MAIN, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        _, said = process.communicate(timeout=600)
        disk.free()
        assert process.returncode == 1
        assert re.fullmatch(REFUSED, said.strip().splitlines()[-1]), said
        assert "Traceback" not in said
        assert not list((mini.root / "_build").rglob("*two*"))
        assert mini.run()[2] == {"two"}

    on_a_small_disk(scenario, 64)


def test_a_build_in_a_read_only_folder_is_refused_in_one_line(monkeypatch, capfd):
    def scenario(disk: Disk) -> None:
        mini = MiniBook(disk.root / "book")
        mini.write("one", "print(1)")
        keep(mini, 1)
        disk.freeze()
        monkeypatch.setattr(build_book, "ROOT", mini.root)
        assert build_book.main() == 1

    monkeypatch.setattr(sys, "argv", ["build_book", "--jobs", "1"])
    on_a_small_disk(scenario, 64)
    assert re.fullmatch(REFUSED, capfd.readouterr().err.strip())


def test_kernels_need_no_home_to_write_into(mini, monkeypatch):
    monkeypatch.setenv("HOME", "/proc/nowhere")
    for variable in ("JUPYTER_RUNTIME_DIR", "XDG_RUNTIME_DIR", "MPLCONFIGDIR"):
        monkeypatch.delenv(variable, raising=False)
    mini.write("one", "import os\nprint(os.environ['MPLCONFIGDIR'])")
    texts, failures, _ = mini.run()
    assert (texts, failures) == ({"one": f"{mini.root / '_build' / 'matplotlib'}\n"}, [])
