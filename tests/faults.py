"""Real faults for the tests: kills at any moment, full disks, folders that take nothing.

They happen to a forked child, so that its limits, mounts and end are its own. A small disk is a
``tmpfs`` in a mount namespace of the child. Where the system does not allow that, a limit on the
size of files stands in for a full disk, and permissions for a read-only one; what these cannot
stand in for is skipped.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_RDONLY, _MS_REMOUNT, _MS_REC, _MS_PRIVATE = 1, 32, 0x4000, 1 << 18
#: audited operations that change a disk
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link"}


@dataclass(frozen=True)
class End:
    """How a child ended: by a signal, with an error, or with a value."""

    killed: bool
    value: Any = None
    error: Exception | None = None


def in_child(call: Callable[[], Any]) -> End:
    """Call a function in a forked child and tell how that ended; failed assertions go through."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        try:
            told = pickle.dumps(End(False, value=call()))
        except AssertionError:
            told = pickle.dumps(traceback.format_exc())
        except BaseException as error:
            try:
                told = pickle.dumps(End(False, error=error))
                pickle.loads(told)
            except Exception:
                told = pickle.dumps(traceback.format_exc())
        with suppress(OSError), os.fdopen(sink, "wb") as file:
            file.write(told)
        os._exit(0)
    os.close(sink)
    with os.fdopen(source, "rb") as file:
        told = file.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return End(True)
    found = pickle.loads(told)
    if isinstance(found, str):
        raise AssertionError(found)
    return found


def at_change(number: int, folder: Path, then: Callable[[], None]) -> None:
    """Call ``then`` before the given change of the disk below ``folder``, the first being 1.

    For a child or a process that ends soon: hooks cannot be taken away.
    """
    left = number
    place = str(folder)

    def hook(event: str, args: tuple) -> None:
        nonlocal left
        if event == "open":
            path, _, flags = args
            if not (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
                return
        elif event in _CHANGES:
            path = args[0]
        else:
            return
        if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(place):
            left -= 1
            if left == 0:
                then()

    sys.addaudithook(hook)


def die() -> None:
    """As by ``kill -9``."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_when_a_file_reaches(size: int) -> None:
    """Let the system kill this process in the middle of the write that reaches this size."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class NotMountedError(Exception):
    """This system mounts no file system for us, and nothing else can stand in for it."""


class Disk:
    """A small disk that can be full or read-only; see :func:`on_a_small_disk`."""

    def __init__(self, root: Path, megabytes: int) -> None:
        self.root, self._filler = root, root / ".filler"
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.is_mounted = sys.platform == "linux" and self._mount(megabytes)

    def _mount(self, megabytes: int) -> bool:
        flags = _CLONE_NEWNS | (0 if os.geteuid() == 0 else _CLONE_NEWUSER)
        if self._libc.unshare(flags) != 0:
            return False
        options = f"size={megabytes}m".encode()
        return (
            self._libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) == 0
            and self._libc.mount(b"tmpfs", os.fsencode(self.root), b"tmpfs", 0, options) == 0
        )

    def must_be_mounted(self) -> None:
        """Skip the test where nothing is mounted."""
        if not self.is_mounted:
            raise NotMountedError("no file system can be mounted here")

    def fill(self) -> None:
        """From now on, no byte more fits on it."""
        if not self.is_mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            return
        with suppress(OSError), open(self._filler, "wb", buffering=0) as file:
            while True:
                file.write(b"x" * 4096)

    def free(self) -> None:
        """Room again."""
        if not self.is_mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            return
        self._filler.unlink()

    def freeze(self) -> None:
        """From now on, it can only be read."""
        if os.geteuid() == 0:  # permissions do not stop root
            self.must_be_mounted()
        if self.is_mounted:
            self._remount(_MS_RDONLY)
            return
        for folder in (self.root, *(p for p in self.root.rglob("*") if p.is_dir())):
            folder.chmod(0o555)

    def thaw(self) -> None:
        """It can be written again."""
        if self.is_mounted:
            self._remount(0)
            return
        for folder in (self.root, *(p for p in self.root.rglob("*") if p.is_dir())):
            folder.chmod(0o755)

    def _remount(self, flags: int) -> None:
        done = self._libc.mount(b"none", os.fsencode(self.root), None, _MS_REMOUNT | flags, None)
        assert done == 0, os.strerror(ctypes.get_errno())


def on_a_small_disk(scenario: Callable[[Disk], Any], megabytes: int = 8) -> Any:
    """Run a scenario in a child, on a disk of its own; return what it returns."""
    root = Path(tempfile.mkdtemp(prefix="bertology-disk-"))
    root.chmod(0o755)
    try:
        end = in_child(lambda: scenario(Disk(root, megabytes)))
    finally:
        shutil.rmtree(root, ignore_errors=True)
    assert not end.killed
    if isinstance(end.error, NotMountedError):
        pytest.skip(str(end.error))
    if end.error is not None:
        raise end.error
    return end.value
