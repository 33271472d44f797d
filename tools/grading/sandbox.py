"""Starting a worker behind as many walls as the system offers, and ending it for certain.

Layers, from the outside in:

* Linux namespaces (``unshare``, needs no privileges on most systems): no network, no other
  processes, every file system read-only but the throw-away folder, hidden folders emptied, no
  capabilities. Used where a trial shows that they work.
* limits of the kernel: processor time, memory, file size, open files, no core files.
* the audit hook of :mod:`tools.grading.guard`: always.
* the judge's own watch: wall-clock time and the memory of the whole group, which is then killed.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent.parent
_LONGEST_REPLY = 32 * 2**20
_TICK = 0.1
_STOPS = {signal.SIGINT, signal.SIGTERM}
_ENTER = ROOT / "tools" / "grading" / "enter.py"


@dataclass(frozen=True)
class Limits:
    """What one submission may use from a start to its end; see :func:`.judge.judge`.

    Attributes:
        wall: seconds from start to end.
        cpu: seconds of processor time.
        memory: bytes, over all its processes.
        file: bytes of the largest file it may write.
    """

    wall: float = 600.0
    cpu: int = 120
    memory: int = 3 * 2**30
    file: int = 64 * 2**20

    def __post_init__(self) -> None:
        for name in ("wall", "cpu", "memory", "file"):
            if getattr(self, name) <= 0:
                raise ValueError(f"the limit {name} has to be above 0")


class Ended(Exception):
    """A worker is gone, or had to be ended.

    Attributes:
        status: ``timeout``, ``memory`` or ``crashed``.
        foul: whether answers came that the worker's own code never gives.
    """

    def __init__(self, status: str, reason: str, *, foul: bool = False):
        super().__init__(reason)
        self.status = status
        self.foul = foul


@functools.cache
def isolation_layers() -> tuple[str, ...]:
    """Names of the layers that work here, the outermost first (tried once, in a moment)."""
    inner = ("limits", "audit")
    if not sys.platform.startswith("linux") or not shutil.which("unshare"):
        return inner
    with tempfile.TemporaryDirectory(prefix="grading-") as box, \
            tempfile.TemporaryDirectory(prefix="grading-") as secret:  # fmt: skip
        (Path(secret) / "file").write_text("hidden")
        trial = (
            "import os, sys\n"
            "open('inside', 'w').close()\n"
            "assert not os.listdir(sys.argv[1])\n"
            "try: open(os.path.join(sys.argv[2], '.trial'), 'w')\n"
            "except OSError: sys.exit(0)\n"
            "sys.exit(1)\n"
        )
        command = [*_namespaces(box, [secret]), sys.executable, "-c", trial, secret, str(ROOT)]
        try:
            done = subprocess.run(command, cwd=box, capture_output=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            return inner
        return ("namespaces", *inner) if done.returncode == 0 else inner


def _namespaces(box: str, hidden: Sequence[str]) -> list[str]:
    return [
        "unshare", "--user", "--map-root-user", "--mount", "--net", "--ipc", "--uts", "--pid",
        "--fork", "--kill-child", sys.executable, "-I", str(_ENTER),
        json.dumps({"box": box, "hidden": list(hidden)}),
    ]  # fmt: skip


class Worker:
    """A process for one submission. Use as a context manager: it is gone afterwards.

    Args:
        limits: what it may use.
        hidden: folders that it may not read.
        preload: modules to import before the guard closes.
        layers: as :func:`isolation_layers` gives them; without ``namespaces`` for the inner ones.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        hidden: Sequence[Path] = (),
        preload: Sequence[str] = (),
        layers: Sequence[str] | None = None,
    ):
        self._limits = limits
        self._layers = tuple(isolation_layers() if layers is None else layers)
        self._hidden = [str(path.resolve()) for path in hidden if _can_be_hidden(path)]
        self._preload = list(preload)
        self._buffer = bytearray()
        self._number = 0
        self._looked = 0.0
        self._process: subprocess.Popen | None = None

    def __enter__(self) -> Worker:
        # A stop that comes between the folder and the process would leave one of them behind.
        try:
            with _undisturbed():
                self._start()
        except KeyboardInterrupt:
            if self._process is not None:
                self.__exit__()
            raise
        return self

    def _start(self) -> None:
        self._box = tempfile.mkdtemp(prefix="grading-")
        self._log = tempfile.TemporaryFile()
        self._deadline = time.monotonic() + self._limits.wall
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        start = json.dumps({
            "requests": theirs_in, "replies": theirs_out, "root": str(ROOT),
            "hidden": self._hidden, "preload": self._preload,
        })  # fmt: skip
        run = f"import sys; sys.path.insert(0, {str(ROOT)!r}); " \
              "from tools.grading.worker import main; sys.exit(main())"  # fmt: skip
        command = [sys.executable, "-c", run, start]
        if "namespaces" in self._layers:
            command = [*_namespaces(self._box, self._hidden), *command]
        try:
            self._process = subprocess.Popen(
                command, cwd=self._box, env=_environment(self._box), stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=self._log, pass_fds=(theirs_in, theirs_out),
                start_new_session=True, preexec_fn=functools.partial(_limit, self._limits),
            )  # fmt: skip
        finally:
            os.close(theirs_in)
            os.close(theirs_out)

    def __exit__(self, *exception: Any) -> None:
        self._kill()
        for end in (self._in, self._out):
            os.close(end)
        self._log.close()
        shutil.rmtree(self._box, onerror=_force)

    def ask(self, **request: Any) -> dict:
        """Send a request, return the answer.

        Raises:
            Ended: no answer came; the worker is dead by then.
        """
        self._number += 1
        line = json.dumps(request | {"id": self._number}) + "\n"
        try:
            self._write(line.encode())
            reply = json.loads(self._read_line())
        except Ended:
            self._kill()
            raise
        except (ValueError, RecursionError):
            self._kill()
            reason = "the process answered with something unreadable"
            raise Ended("crashed", reason, foul=True) from None
        if not isinstance(reply, dict) or reply.get("id") != self._number:
            self._kill()
            raise Ended("crashed", "the process answered out of turn", foul=True)
        return reply

    def _write(self, data: bytes) -> None:
        os.set_blocking(self._out, False)
        while data:
            self._watch()
            _, ready, _ = select.select([], [self._out], [], _TICK)
            if ready:
                try:
                    data = data[os.write(self._out, data) :]
                except BrokenPipeError:
                    raise self._gone() from None

    def _read_line(self) -> bytes:
        while True:
            end = self._buffer.find(b"\n")
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                return line
            if len(self._buffer) > _LONGEST_REPLY:
                raise Ended("crashed", "the answer is larger than 32 MiB")
            self._watch()
            ready, _, _ = select.select([self._in], [], [], _TICK)
            if ready:
                chunk = os.read(self._in, 1 << 20)
                if not chunk:
                    raise self._gone()
                self._buffer += chunk

    def _watch(self) -> None:
        now = time.monotonic()
        if now - self._looked < _TICK:
            return
        self._looked = now
        if now > self._deadline:
            raise Ended("timeout", f"not done after {self._limits.wall:g} s")
        memory, cpu = self._used()
        if memory > self._limits.memory:
            raise Ended("memory", f"used more than {self._limits.memory / 2**20:.0f} MiB")
        if cpu > self._limits.cpu:
            raise Ended("timeout", f"used more than {self._limits.cpu} s of processor time")

    def _family(self) -> list[psutil.Process]:
        try:
            first = psutil.Process(self._process.pid)
            return [first, *first.children(recursive=True)]
        except psutil.Error:
            return []

    def _used(self) -> tuple[int, float]:
        """(bytes of memory now, seconds of processor time so far) of the whole family."""
        memory, cpu = 0, 0.0
        for process in self._family():
            try:
                memory += process.memory_info().rss
                cpu += sum(process.cpu_times()[:2])
            except psutil.Error:
                continue
        return memory, cpu

    def _gone(self) -> Ended:
        try:
            code = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return Ended("crashed", "the process closed its answers")
        number = -code if code < 0 else code - 128
        name = signal.Signals(number).name if number in set(signal.Signals) else ""
        if name:
            return Ended("crashed", f"the process was ended by {name}")
        return Ended("crashed", f"the process left with code {code}{self._last_words()}")

    def _last_words(self) -> str:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - 2000))
        lines = self._log.read().decode("utf-8", "replace").strip().splitlines()
        return f": {lines[-1][:300]}" if lines else ""

    def _kill(self) -> None:
        family = self._family()
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
        for process in family:
            try:
                process.kill()
            except psutil.Error:
                continue
        self._process.wait()


@contextlib.contextmanager
def _undisturbed():
    """Hold SIGINT and SIGTERM back until the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _can_be_hidden(folder: Path) -> bool:
    # A folder that holds what the worker itself needs cannot be emptied.
    needed = (ROOT / "tools", Path(sys.prefix), Path(sys.base_prefix), Path(tempfile.gettempdir()))
    folder = folder.resolve()
    return folder.is_dir() and not any(place.resolve().is_relative_to(folder) for place in needed)


def _environment(box: str) -> dict[str, str]:
    kept = ("LANG", "LC_ALL", "PATH", "LD_LIBRARY_PATH", "BERTOLOGY_MODEL")
    return {name: os.environ[name] for name in kept if name in os.environ} | {
        "HOME": box, "TMPDIR": box, "MPLCONFIGDIR": box, "MPLBACKEND": "Agg",
        "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false",
        "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "CUDA_VISIBLE_DEVICES": "",
    }  # fmt: skip


def _limit(limits: Limits) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    wanted = {
        # Behind the judge's own watch: the first process of a namespace may ignore this signal.
        "RLIMIT_CPU": (limits.cpu + 5, limits.cpu + 10),
        # Private writable memory; the address space would count what torch only maps.
        "RLIMIT_DATA": (limits.memory, limits.memory),
        "RLIMIT_FSIZE": (limits.file, limits.file),
        "RLIMIT_NOFILE": (256, 256),
        "RLIMIT_CORE": (0, 0),
    }
    for name, pair in wanted.items():
        if hasattr(resource, name):
            resource.setrlimit(getattr(resource, name), pair)


def _force(remove: Any, path: str, error: Any) -> None:
    # A submission may have taken away its own right to write in the folder.
    os.chmod(os.path.dirname(path), 0o700)
    if not os.path.islink(path):
        os.chmod(path, 0o700)
    remove(path)
