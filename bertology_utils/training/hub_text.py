"""Plain text from a data set of the Hugging Face hub, kept as the folder that training reads."""

from __future__ import annotations

import re
from pathlib import Path

from ..writing import whole_file
from .text import CorpusError


def looks_like_hub(text: str) -> bool:
    """Whether ``text`` can be a hub id: one name, or owner/name, and no path that exists here."""
    return (
        not Path(text).exists() and text.count("/") <= 1 and not text.startswith((".", "/", "~"))
    )


def download_text(
    hub_id: str, folder: str | Path, *, config: str = "", split: str = "train", column: str = "text"
) -> Path:
    """Write a data set's text column as ``NAME.txt`` into ``folder``, one line a row's line.

    Args:
        hub_id: "owner/name" on the hub, or a folder that ``datasets.load_dataset`` reads.
        folder: made when missing; a file that is already there is used again, without network.
        config, split, column: which part of the data set, and where its text stands.

    Returns:
        ``folder``, ready for :func:`bertology_utils.training.text.load_corpus`.

    Raises:
        CorpusError: the data set cannot be had, lacks the column, or holds no text. Nothing is
            left behind then.
        NotWrittenError: a full disk, or a folder that takes nothing.
    """
    parts = (re.sub(r"[^\w.-]+", "_", part) for part in (Path(hub_id).name, config, split) if part)
    name = "-".join(parts)
    target = Path(folder) / f"{name}.txt"
    if target.exists():
        return target.parent
    # Slow to import, and only this way of reading text needs it.
    import datasets

    try:
        rows = datasets.load_dataset(hub_id, config or None, split=split)
    except Exception as error:  # the library raises a dozen kinds, some of them bare
        raise CorpusError(f"data set {hub_id!r} cannot be read: {error}") from error
    if column not in rows.column_names:
        raise CorpusError(
            f"data set {hub_id!r} has no column {column!r}; it has {', '.join(rows.column_names)}"
        )
    with whole_file(target) as scratch:
        written = 0
        with open(scratch, "w", encoding="utf-8") as handle:
            for row in rows:
                for line in str(row[column] or "").splitlines():
                    if line.strip():
                        written += handle.write(line.strip() + "\n")
        if not written:
            raise CorpusError(f"data set {hub_id!r}: column {column!r} holds no text")
    return target.parent
