"""Files and folders that appear whole or not at all, and locks that end with their process.

Whoever is killed and however full the disk is, what lies under a name is what was there before, or
what was meant to come there. A process that is killed leaves at most a scratch beside it, hidden
and ending in ``.new``, that nobody reads; the next one to hold the folder's lock takes it away.
Imports nothing of this package.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from safetensors import SafetensorError

#: what a disk says that takes no more
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
#: how :func:`_beside` names what is not complete yet
_SCRATCH = re.compile(r"\..+\.[0-9a-f]{12}\.new", re.DOTALL)
#: how often somebody else may be faster in replacing a folder
_ATTEMPTS = 9


class NotWrittenError(OSError):
    """Something cannot be written: a full disk, a read-only folder. What was there still is."""


class NameTakenError(FileExistsError):
    """There is something of that name already."""


def not_written(path: str | os.PathLike, cause: Exception) -> NotWrittenError:
    """The error that says in one line what cannot be written, and why."""
    reason = getattr(cause, "strerror", None)
    if not reason:  # safetensors puts the system's words into a sentence of its own
        found = re.search(r'I/O error: (.*?)(?: \(os error|$)|message: "(.*?)"', str(cause))
        reason = (found[1] or found[2]) if found else str(cause).partition("\n")[0]
    error = NotWrittenError(f"{os.fspath(path)} cannot be written: {reason}")
    error.errno = getattr(cause, "errno", None)
    return error


def write_whole(path: str | os.PathLike, content: str | bytes) -> None:
    """Write a file in one step: readers see the old one or the new one, never a part.

    Raises:
        NotWrittenError: the disk or the folder takes no file; the old one is still there.
    """
    with whole_file(path) as scratch:
        scratch.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)


@contextmanager
def whole_file(path: str | os.PathLike) -> Iterator[Path]:
    """A scratch file that takes the place of ``path`` if the block succeeds, else vanishes.

    A link stays one: the file it leads to is replaced. What is no file, such as ``/dev/stdout``,
    cannot be replaced and is given itself.

    Raises:
        NotWrittenError: as for :func:`write_whole`.
    """
    target = Path(path)
    with told(target):
        special = _is_special(target)
    if special:
        with told(target, target):
            yield target
        return
    target = Path(os.path.realpath(target))
    scratch = _beside(target)
    try:
        with told(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            scratch.touch(exist_ok=False)
        with told(target, scratch):
            yield scratch
        with told(target):
            # Some file systems find out only now that they are full.
            with scratch.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(scratch, target)
    finally:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)


@contextmanager
def whole_folder(path: str | os.PathLike, *, replace: bool = False) -> Iterator[Path]:
    """A scratch folder that takes the name ``path`` if the block succeeds, else vanishes.

    Args:
        path: of the folder.
        replace: take the place of a folder that is there. It goes only when the new one is
            complete; who is killed in that moment leaves neither.

    Raises:
        NotWrittenError: as for :func:`write_whole`.
        NameTakenError: there is something of that name, which is not to be replaced.
    """
    target = Path(path)
    if not replace and target.exists():
        raise _exists(target)
    scratch, old = _beside(target), _beside(target)
    try:
        with told(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            scratch.mkdir()
            if replace:
                old.mkdir()
        with told(target, scratch):
            yield scratch
        with told(target):
            for attempt in range(_ATTEMPTS if replace else 1):
                if replace:
                    with suppress(FileNotFoundError):
                        os.rename(target, old / str(attempt))
                if _renamed(scratch, target, old / str(attempt)):
                    break
            else:
                raise _exists(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def remove_leftovers(folder: str | os.PathLike) -> int:
    """Remove what processes that were killed had half written straight into a folder.

    Only for who holds the lock that keeps others from writing there: what a process at work has
    half written looks the same.

    Returns:
        how many files and folders went; what cannot be removed stays.
    """
    with suppress(FileNotFoundError):
        return sum(_removed(path) for path in Path(folder).iterdir())
    return 0


@contextmanager
def locked(path: str | os.PathLike, busy: Exception) -> Iterator[None]:
    """Hold a lock without waiting for it. It ends with the process, however that ends.

    Args:
        path: of the lock's file, which says nothing by being there.
        busy: raised when another process holds it.

    Raises:
        NotWrittenError: the folder takes no file.
    """
    lock = FileLock(path)
    try:
        with told(path):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
    except Timeout:
        raise busy from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def told(target: str | os.PathLike, scratch: Path | None = None) -> Iterator[None]:
    """Turn what the system says about writing ``target`` into one line.

    Args:
        target: what is being written.
        scratch: where the block writes in truth, if it also does other things: then errors that
            speak of something else stay what they are.

    Raises:
        NotWrittenError: the block could not write.
    """
    try:
        yield
    except (NotWrittenError, NameTakenError, Timeout):
        raise
    except (OSError, SafetensorError) as error:
        name = str(getattr(error, "filename", None) or "")
        own = scratch is None or name.startswith(str(scratch))
        writing = isinstance(error, SafetensorError) and "serializ" in str(error)
        if not (own or writing or getattr(error, "errno", None) in _FULL):
            raise
        raise not_written(target if own or not name else name, error) from error


def _beside(target: Path) -> Path:
    # Not by tempfile: its files can be read by their owner only.
    return target.with_name(f".{target.name[:50]}.{secrets.token_hex(6)}.new")


def _removed(path: Path) -> bool:
    """True if it was a scratch, and is gone."""
    if not _SCRATCH.fullmatch(path.name):
        return False
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    return not os.path.lexists(path)


def _is_special(path: Path) -> bool:
    if path.parts[:2] in (("/", "dev"), ("/", "proc")):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _renamed(scratch: Path, target: Path, old: Path) -> bool:
    """False where something of that name has appeared; after any error, ``old`` has it again."""
    try:
        os.rename(scratch, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            return False
        with suppress(OSError):
            os.rename(old, target)
        raise
    return True


def _exists(target: Path) -> NameTakenError:
    return NameTakenError(f"{target.name!r} exists already; choose another name")
