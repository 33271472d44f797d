"""What a build was made from: versions and digests, in one JSON file beside the pages.

``build.json`` names the model and the digest of each of its files, the digests of the package and
of every page's source, the commit where the book is a git checkout, Python, every pinned package
in the version that is installed, and for each chapter when, and with which of the processor's
instructions, it ran. It holds nothing of the person or the machine that built, such as names or
folders.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import try_to_load_from_cache

from bertology_utils.defaults import DEFAULT_MODEL, MODEL_VARIABLE
from bertology_utils.ledger import default_model
from bertology_utils.reproduce.chapters import Book, package_files
from bertology_utils.writing import write_whole

FILE = "build.json"
FORMAT = 1
_HUB_FILES = ("config.json", "model.safetensors", "tokenizer.json", "vocab.txt")
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==", re.MULTILINE)


def build_record(book: Book, runs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Collect what the build of a book was made from.

    Args:
        book: the book that was built.
        runs: its runs by chapter, as :meth:`tools.execution.Store.write_summary` writes them.
    """
    root = book.root
    sources = {f"{name}.md": sha256(root / f"{name}.md") for name in book.pages}
    shared = ("_config.yml", "_toc.yml", "references.bib", "requirements.txt")
    sources |= {name: sha256(root / name) for name in shared if (root / name).is_file()}
    package = {path.relative_to(root).as_posix(): sha256(path) for path in package_files(root)}
    return {
        "format": FORMAT,
        "commit": commit(root),
        "model": {"name": default_model(), "files": model_files(root)},
        "package": {"sha256": _of_all(package), "files": len(package)},
        "sources": {"sha256": _of_all(sources), "files": sources},
        "python": platform.python_version(),
        "platform": f"{platform.system()}, {platform.machine()}",
        "packages": installed((root / "requirements.txt").read_text(encoding="utf-8")),
        "chapters": {
            name: {key: run[key] for key in ("finished", "instructions", "key", "run_id")}
            for name, run in sorted(runs.items())
        },
    }


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record in one step, unless it is there already: pages that show it follow it."""
    text = json.dumps(record, indent=1, sort_keys=True) + "\n"
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    write_whole(path, text)


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def commit(root: Path) -> dict[str, Any] | None:
    """The commit that is checked out in ``root`` and whether files differ from it.

    None where ``root`` is not the top of a git checkout, or git is not installed.
    """
    top, head = _git(root, "rev-parse", "--show-toplevel"), _git(root, "rev-parse", "HEAD")
    if not top or not head or Path(top) != root.resolve():
        return None
    return {"sha1": head, "changed": bool(_git(root, "status", "--porcelain"))}


def model_files(root: Path) -> dict[str, str]:
    """File -> SHA-256 of the default model's files; empty when none is on this machine."""
    name = os.environ.get(MODEL_VARIABLE) or DEFAULT_MODEL
    for folder in (root / "bertology_utils" / "models" / name, Path(name)):
        if (folder / "config.json").is_file():
            return {path.name: sha256(path) for path in sorted(folder.iterdir()) if path.is_file()}
    try:
        cached = {file: try_to_load_from_cache(name, file) for file in _HUB_FILES}
    except ValueError:  # no name that the hub knows
        return {}
    return {file: sha256(Path(path)) for file, path in cached.items() if isinstance(path, str)}


def installed(pins: str) -> dict[str, str]:
    """Package -> installed version, of every package that a requirements file pins."""
    found = {}
    for name in sorted(_PIN.findall(pins), key=str.lower):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def _of_all(digests: Mapping[str, str]) -> str:
    lines: Iterable[str] = (f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
