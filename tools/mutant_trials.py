"""Try mutants of the package one by one, each in a forked process of its own.

``tools.mutants`` starts this in its copy of the package, where every function carries its mutants
with it. Importing PyTorch and collecting the tests takes seconds, so both are done once: pytest
collects, and from then on every mutant gets a copy of the process, which runs only the tests that
reach the changed function, the fast ones first, until one fails. Nothing that a test or a mutant
leaves behind can reach another one.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

#: a mutant may take this many times as long as the tests take without it, and some seconds more
_PATIENCE, _GRACE = 10, 20
#: seconds after which one that still waits is given up; long, for the machine may be busy
_WAIT = 1800
#: and this many bytes of memory
_MEMORY = 4 << 30
#: a pipe takes this much though nobody reads yet
_PIPE = 60_000
#: seconds between two lines of progress
_EVERY = 60


class _Failed:
    """A plugin of pytest that keeps the names of the tests that failed."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.names.append(report.nodeid)


def _run(items: Sequence[pytest.Item]) -> str:
    """The first of these tests that fails, or nothing."""
    failed = _Failed()
    for item, after in zip(items, [*items[1:], None], strict=True):
        if not item.config.pluginmanager.is_registered(failed):
            item.config.pluginmanager.register(failed)
        # The whole protocol, with all plugins: that of warnings can make a test fail.
        item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
        if failed.names:
            return failed.names[0]
    return ""


class Fork:
    """A copy of this process that works for itself and hands back a text."""

    def __init__(self, work: Callable[[], str], seconds: float) -> None:
        self.started = time.monotonic()
        self.scratch = tempfile.mkdtemp(prefix="mutant-")
        self._read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._read)
            faulthandler.disable()  # a crash of a mutant is a result, not a report
            _within(seconds)
            tempfile.tempdir = self.scratch
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            try:
                said = work()
            except BaseException as error:  # also what would end the whole run of tests
                said = f"{type(error).__name__}: {error}"
            os.write(write, said.encode(errors="replace")[:_PIPE])
            os._exit(0)
        os.close(write)

    def close(self, status: int) -> tuple[str, int, float]:
        """What it handed back, the signal that ended it (or 0), and its seconds."""
        with os.fdopen(self._read, "rb") as pipe:
            said = pipe.read().decode()
        shutil.rmtree(self.scratch, ignore_errors=True)
        ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        return said, ended, time.monotonic() - self.started


def _within(seconds: float) -> None:
    """End this process when it takes too long, or more memory than there is."""
    limit = math.ceil(seconds * _PATIENCE + _GRACE)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
    signal.alarm(_WAIT)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + _MEMORY, mapped + _MEMORY))


def fate(said: str, ended: int) -> str | None:
    """What became of a mutant; None if its process was ended or given up: nothing was found."""
    if ended == signal.SIGXCPU:
        return "timeout"
    if ended in (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS):
        return "crash"
    if ended:
        return None
    return "killed" if said else "survived"


class Trials:
    """A plugin of pytest that runs mutants where pytest would run the tests once.

    Args:
        mutants: name of a mutant -> hash of the function it changes, in the order to try them.
        results: file that gets a line for every mutant tried.
        tests: which state of the tests that line is about.
        jobs: how many at a time.
    """

    def __init__(self, mutants: Mapping[str, str], results: Path, tests: str, jobs: int) -> None:
        self._mutants, self._results, self._tests, self._jobs = mutants, results, tests, jobs
        self._seconds: dict[str, float] = {}
        self._reach: dict[str, list[pytest.Item]] = {}
        self.failed: list[str] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        gc.collect()
        gc.freeze()
        self._survey(session.items)
        if not self.failed:
            self._try_all()
        return True

    def _survey(self, items: Sequence[pytest.Item]) -> None:
        """Run every test alone and without a mutant: it passes, and reaches these functions."""

        from mutmut.mutation.trampoline import set_mutant_under_test
        from mutmut.state import state

        def look(item: pytest.Item) -> str:
            set_mutant_under_test("stats")
            state()._stats.clear()
            failed = _run([item])
            return json.dumps([failed, sorted(state()._stats)])

        for item, said, ended, seconds in self._forks((i, lambda i=i: look(i), 60) for i in items):
            failed, reached = ("crash", []) if ended else _survey_of(said)
            if failed:
                self.failed.append(item.nodeid)
            self._seconds[item.nodeid] = seconds
            for function in reached:
                self._reach.setdefault(function, []).append(item)
        for tests in self._reach.values():
            tests.sort(key=lambda item: (self._seconds[item.nodeid], item.nodeid))

    def _try_all(self) -> None:
        from mutmut.mutation.trampoline import set_mutant_under_test

        def trial(name: str) -> tuple[str, Callable[[], str], float]:
            tests = self._reach.get(name.partition("__mutmut_")[0], [])

            def work() -> str:
                set_mutant_under_test(name)
                return _run(tests)

            return name, work, sum(self._seconds[item.nodeid] for item in tests)

        told, tried, found = time.monotonic(), 0, 0
        with self._results.open("a", encoding="utf-8") as results:
            for name, said, ended, seconds in self._forks(map(trial, self._mutants)):
                tried += 1
                known = fate(said, ended)
                if known is not None:
                    found += known != "survived"
                    entry = {"mutant": name, "function": self._mutants[name], "fate": known}
                    entry |= {"by": said, "tests": self._tests, "seconds": round(seconds, 2)}
                    results.write(json.dumps(entry) + "\n")
                    results.flush()
                if time.monotonic() - told > _EVERY:
                    told = time.monotonic()
                    line = f"{tried} of {len(self._mutants)} tried, {found} noticed\n"
                    os.write(1, line.encode())

    def _forks(
        self, works: Iterator[tuple[Any, Callable[[], str], float]]
    ) -> Iterator[tuple[Any, str, int, float]]:
        """Do (key, work, expected seconds), some at a time; yield what came of each."""
        running: dict[int, tuple[Any, Fork]] = {}
        works = iter(works)
        more = True
        while more or running:
            while more and len(running) < self._jobs:
                work = next(works, None)
                more = work is not None
                if work is not None:
                    fork = Fork(work[1], work[2])
                    running[fork.pid] = (work[0], fork)
            if running:
                pid, status = os.wait()
                if pid in running:
                    key, fork = running.pop(pid)
                    yield key, *fork.close(status)


def _survey_of(said: str) -> tuple[str, list[str]]:
    """Read what a test without a mutant handed back; an error of its own is a failure."""
    try:
        failed, reached = json.loads(said)
    except ValueError:
        return said, []
    return failed, reached


def main() -> int:
    """Read the order from the file named first, and try what it names."""
    order = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    trials = Trials(order["mutants"], Path(order["results"]), order["tests"], order["jobs"])
    code = pytest.main(order["pytest"], plugins=[trials])
    if trials.failed:
        print("These tests fail without any change:", *trials.failed, sep="\n  ", file=sys.stderr)
    return int(bool(trials.failed) or code not in (pytest.ExitCode.OK, 5))


if __name__ == "__main__":
    sys.exit(main())
