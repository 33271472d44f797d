"""Models of the Hugging Face hub: fetched once, verified, and from then on read from this machine.

A lecture hall's network is absent, slow, or lies. What is here already is used without asking it.
What is not is fetched with patience: files that arrived stay, a file that broke off goes on where
it stopped as long as the process lives, and every file must have the checksum that the hub
announced for it.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from pathlib import Path

from huggingface_hub import constants, snapshot_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    HTTPError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import get_session

from .errors import UnknownModelError

#: address of the hub; the client's own variable HF_ENDPOINT names another
ENDPOINT = constants.ENDPOINT
#: seconds to wait for the hub to answer at all
PATIENCE = 5.0
#: seconds before the second, third ... attempt
WAITS = (1.0, 3.0)
#: what a model consists of; weights in other formats are never fetched
WANTED = ("*.json", "*.txt", "*.model", "*.safetensors")
#: folders hold exports for other programs
UNWANTED = ("*/*",)
#: answers that do not change when one asks again
_FINAL = (RepositoryNotFoundError, GatedRepoError, RevisionNotFoundError, HFValidationError)
_HUB_ID = re.compile(r"([A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*", re.ASCII)
_TOKEN_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN")


def model_folder(name: str) -> Path:
    """The folder of a hub model on this machine; fetched first when it is not here.

    Raises:
        UnknownModelError: no such model, no answer, or files that arrive damaged each time. One
            line, and what has arrived safely is kept for the next attempt.
    """
    if not _HUB_ID.fullmatch(name) or ".." in name or "--" in name or len(name) > 96:
        raise UnknownModelError(f"no model folder {name[:80]!r}, and no name that the hub knows")
    here = _cached(name)
    if here is not None:
        return here
    if constants.HF_HUB_OFFLINE or not answers():
        raise UnknownModelError(
            f"cannot load the model {name!r} (not embedded, not a folder, not downloaded before, "
            "and the hub is offline)"
        )
    reason = ""
    for wait in (*WAITS, None):
        try:
            folder = Path(_snapshot(name, local_files_only=False))
        except Exception as error:  # garbage makes the client raise nearly anything
            reason = first_line(error)
            if isinstance(error, _FINAL) or isinstance(error.__cause__, _FINAL):
                break
        else:
            damaged = [path for path in sorted(folder.iterdir()) if not _is_whole(path)]
            if not damaged and (lacking := _lacking(folder)):
                reason = f"it has {lacking}"
                break
            if not damaged:
                return folder
            reason = f"{damaged[0].name} arrived damaged"
            for path in damaged:
                _remove(path)
        if wait is not None:
            time.sleep(wait)
    raise UnknownModelError(f"cannot load the model {name!r} (the hub says: {reason})")


def answers() -> bool:
    """Short requests, since the client's own retries take half a minute to give up."""
    for wait in (0.3, 1.0, None):
        try:
            get_session().head(ENDPOINT, timeout=PATIENCE)
            return True
        except HTTPError as error:
            # One who waited in vain waits no longer; a line that was cut is tried again.
            if wait is None or "Timeout" in type(error).__name__:
                return False
            time.sleep(wait)
    return False


def first_line(error: Exception) -> str:
    """The first line of an error's text, without secrets."""
    lines = (line.strip() for line in str(error).splitlines())
    line = next((line for line in lines if line), type(error).__name__)
    for variable in _TOKEN_VARIABLES:
        if secret := os.environ.get(variable):
            line = line.replace(secret, "***")
    line = re.sub(r"\bhf_[A-Za-z0-9]{8,}", "***", line)
    line = re.sub(r"//[^/\s@]+@", "//***@", line)  # a password in the address of a proxy
    return line[:200].encode("utf-8", "backslashreplace").decode()


def _snapshot(name: str, *, local_files_only: bool) -> str:
    return snapshot_download(
        name,
        allow_patterns=list(WANTED),
        ignore_patterns=list(UNWANTED),
        cache_dir=constants.HF_HUB_CACHE,
        endpoint=ENDPOINT,
        local_files_only=local_files_only,
    )


def _cached(name: str) -> Path | None:
    """The folder of a model that was fetched before, if all that is needed is in it."""
    try:
        folder = Path(_snapshot(name, local_files_only=True))
    except (LocalEntryNotFoundError, EntryNotFoundError, HfHubHTTPError, OSError, ValueError):
        return None
    return None if _lacking(folder) else folder


def _lacking(folder: Path) -> str:
    """What a model's folder lacks; nothing for a whole one."""
    names = {path.name for path in folder.iterdir() if path.exists()}
    if "config.json" not in names:
        return "no config.json"
    if not any(name.endswith((".safetensors", ".safetensors.index.json")) for name in names):
        return "no safetensors weights"
    if not {"tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model"} & names:
        return "no tokenizer"
    return ""


def _is_whole(path: Path) -> bool:
    """Whether a fetched file has the checksum under which the hub's cache keeps it."""
    blob = path.resolve()
    if not path.is_symlink():
        return path.is_file()  # a file system without links: the checksum is not kept
    if re.fullmatch(r"[0-9a-f]{64}", blob.name):
        with blob.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == blob.name
    if re.fullmatch(r"[0-9a-f]{40}", blob.name):  # small files go by their name in git
        content = blob.read_bytes()
        header = f"blob {len(content)}\0".encode()
        return hashlib.sha1(header + content, usedforsecurity=False).hexdigest() == blob.name
    return False


def _remove(path: Path) -> None:
    blob = path.resolve()
    path.unlink(missing_ok=True)
    blob.unlink(missing_ok=True)
