"""The processes that run now, so that an interrupt can end them all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress


class Running:
    """Processes by their number, and how each is killed. Threads may share one."""

    def __init__(self) -> None:
        self._kills: dict[int, Callable[[], None]] = {}
        self._lock = threading.Lock()
        self._closed = False

    def add(self, pid: int, kill: Callable[[], None]) -> None:
        """Remember a process; after :meth:`kill_all`, kill it at once."""
        with self._lock:
            self._kills[pid] = kill
            closed = self._closed
        if closed:
            self.kill_all()

    def remove(self, pid: int) -> None:
        """Forget a process that has ended: its number may soon be another's."""
        with self._lock:
            self._kills.pop(pid, None)

    def kill_all(self) -> None:
        """Kill all there are, and all that are still to come."""
        with self._lock:
            self._closed = True
            for kill in self._kills.values():
                with suppress(ProcessLookupError):
                    kill()
