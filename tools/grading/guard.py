"""The innermost layer: an audit hook that refuses what an assignment never needs.

Refused: writing, removing or renaming outside of one folder; reading hidden folders and other
processes; starting processes; network; signals to others; foreign functions; raising limits.
Python says itself that audit hooks are no sandbox: code that corrupts memory gets around them.
They stop accidents and ordinary mischief on every platform; the namespaces of
:mod:`tools.grading.sandbox` stand behind them where the system has them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

#: events refused whatever their arguments are
_REFUSED = frozenset(
    """subprocess.Popen os.system os.exec os.fork os.forkpty os.posix_spawn os.spawn pty.spawn
    os.startfile socket.connect socket.bind socket.sendto socket.sendmsg socket.getaddrinfo
    socket.gethostbyname socket.gethostbyaddr socket.sethostname ftplib.connect http.client.connect
    urllib.Request smtplib.connect ctypes.dlopen ctypes.dlsym ctypes.dlsym/handle
    ctypes.call_function ctypes.cdata ctypes.cdata/buffer ctypes.string_at ctypes.wstring_at
    signal.pthread_kill resource.setrlimit resource.prlimit sys.addaudithook sys.setprofile
    gc.get_objects gc.get_referrers gc.get_referents os.setxattr os.removexattr
    fcntl.ioctl webbrowser.open""".split()
)
#: events that change a file system, and which of their arguments are paths
_CHANGES = {
    "os.remove": (0,), "os.rmdir": (0,), "os.mkdir": (0,), "os.rename": (0, 1),
    "os.link": (0, 1), "os.symlink": (0, 1), "os.truncate": (0,), "os.chmod": (0,),
    "os.chown": (0,), "os.utime": (0,), "os.chflags": (0,), "shutil.rmtree": (0,),
    "shutil.move": (0, 1), "shutil.unpack_archive": (1,), "tempfile.mkstemp": (0,),
    "tempfile.mkdtemp": (0,),
}  # fmt: skip
_LISTS = frozenset({"os.listdir", "os.scandir", "os.walk", "os.chdir"})
_SIGNALS = frozenset({"os.kill", "os.killpg"})
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Refused(PermissionError):
    """A submission tried something that it may not do."""


def install(folder: str, hidden: Sequence[str], note: Callable[[str], None]) -> None:
    """Refuse, from now on and for the rest of this process, what the module's text lists.

    Args:
        folder: the only folder in which anything may be changed.
        hidden: folders that may not be read.
        note: called with one line for everything refused.
    """
    inside = os.path.realpath(folder)
    closed = tuple(os.path.realpath(path) for path in hidden)
    me = os.getpid()
    # Bound now: a submission may replace the modules' functions, but not these cells.
    realpath, fspath, fsdecode, separator = os.path.realpath, os.fspath, os.fsdecode, os.sep
    refused, changes, lists, signals = _REFUSED, _CHANGES, _LISTS, _SIGNALS

    def under(path: str, parent: str) -> bool:
        return path == parent or path.startswith(parent + separator)

    def real(path: object) -> str | None:
        # A number is a file that is open already; None is the present folder.
        if path is None or isinstance(path, int):
            return None
        return realpath(fsdecode(fspath(path)))

    def refuse(what: str) -> None:
        note(what)
        raise Refused(f"not allowed while grading: {what}")

    def may_change(event: str, path: object) -> None:
        place = real(path)
        if place is not None and not under(place, inside) and place != os.devnull:
            refuse(f"{event} outside of the submission's folder")

    def may_read(path: object) -> None:
        place = real(path)
        if place is None:
            return
        if any(under(place, parent) for parent in closed):
            refuse("reading the assignments or the submissions")
        if place.startswith("/proc/") and not place.startswith(
            (f"/proc/{me}/", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/")
        ):
            refuse("reading another process")

    def hook(event: str, arguments: tuple) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = (flags or 0) & _WRITING or (mode and set(mode) & set("wax+"))
            if writes:
                may_change("writing", path)
            may_read(path)
        elif event in refused:
            refuse(event)
        elif event in changes:
            for place in changes[event]:
                if place < len(arguments):
                    may_change(event, arguments[place])
        elif event in lists:
            if arguments:
                may_read(arguments[0])
        elif event in signals:
            if arguments[0] != me or event == "os.killpg":
                refuse(event)
        elif event == "socket.__new__" and int(arguments[1]) != 1:
            refuse("a network socket")

    sys.addaudithook(hook)
