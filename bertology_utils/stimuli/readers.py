"""Readers for published formats: BLiMP, CoNLL-U, LAMA, ParaRel, SST-2, CoLA, WiC.

:func:`load` takes a path, or for some formats the id of a data set on the Hugging Face hub.
Malformed input raises :class:`ReaderError` with the file and line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bertology_utils.stimuli._formats import (
    ACCEPTABILITY_LABELS,
    SENTIMENT_LABELS,
    AcceptabilityPair,
    ReaderError,
    WordInContext,
    blimp_row,
    label_of,
    read_blimp,
    read_cola,
    read_conllu,
    read_lama,
    read_pararel,
    read_sst2,
    read_wic,
    text_of,
)
from bertology_utils.stimuli.sentiment import LabelledText

#: owner/name, as the hub writes it
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)

FORMATS = ("blimp", "conllu", "lama", "pararel", "sst2", "cola", "wic")
__all__ = [
    "FORMATS",
    "AcceptabilityPair",
    "ReaderError",
    "WordInContext",
    "load",
    "read_blimp",
    "read_cola",
    "read_conllu",
    "read_lama",
    "read_pararel",
    "read_sst2",
    "read_wic",
]


def load(name: str, path_or_hub: str | Path, *, split: str = "validation", config: str = "") -> Any:
    """Read a public data set.

    Args:
        name: the format, one of :data:`FORMATS`.
        path_or_hub: a file or folder; or "owner/name" on the Hugging Face hub for blimp, sst2,
            cola and wic, which needs the package ``datasets``.
        split, config: for the hub only. ``config`` names a BLiMP paradigm; the GLUE and SuperGLUE
            tasks find theirs from ``name``.

    Returns:
        blimp: list of :class:`AcceptabilityPair`; conllu: :class:`Treebank`; lama and pararel:
        list of :class:`Fact`; sst2 and cola: list of :class:`LabelledText`; wic: list of
        :class:`WordInContext`.

    Raises ReaderError for an unknown format, a path that does not exist, malformed input (with file
    and line), an empty file, or a hub id without ``datasets`` installed.
    """
    if name not in FORMATS:
        raise ReaderError(f"unknown format {name!r}; known: {', '.join(FORMATS)}")
    if not isinstance(path_or_hub, str | Path):
        kind = type(path_or_hub).__name__
        raise ReaderError(f"expected a path or the id of a data set on the hub, not {kind}")
    text = str(path_or_hub)
    path = Path(text)
    if text and _exists(path):
        return _READERS[name](path)
    if not _HUB_ID.fullmatch(text) or path.suffix in (".jsonl", ".tsv", ".conllu", ".txt"):
        raise ReaderError("no such file or folder", path)
    return _from_hub(name, text, split, config)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False  # a name that no file system takes


# -- the hub -------------------------------------------------------------------------------------


def _from_hub(name: str, hub_id: str, split: str, config: str) -> list:
    if name not in _HUB:
        raise ReaderError(
            f"{name!r} is read from a path only; {hub_id!r} is no file or folder here"
        )
    try:
        import datasets
    except ImportError:
        raise ReaderError(
            f"{hub_id!r} is not a path, and reading the hub needs the package 'datasets'"
        ) from None
    default, convert = _HUB[name]
    chosen = config or default
    if not chosen and name == "blimp":
        raise ReaderError("name a BLiMP paradigm with config=..., for instance 'npi_present_1'")
    rows = datasets.load_dataset(hub_id, chosen or None, split=split)
    return [convert(dict(row)) for row in rows]


def _wic_row(row: dict[str, Any]) -> WordInContext:
    """SuperGLUE gives character offsets into untokenised sentences."""
    sentences, targets = [], []
    for k in ("1", "2"):
        text = text_of(row, f"sentence{k}", None, None)
        start, end = int(row[f"start{k}"]), int(row[f"end{k}"])
        before, inside, after = text[:start].split(), text[start:end], text[end:].split()
        sentences.append((*before, inside, *after))
        targets.append(len(before))
    label = row.get("label", -1)
    same = None if label == -1 else bool(label)
    return WordInContext(
        text_of(row, "word", None, None), "", (sentences[0], sentences[1]),
        (targets[0], targets[1]), same,
    )  # fmt: skip


def _glue_row(names: dict[str, str]) -> Callable[[dict[str, Any]], LabelledText]:
    def convert(row: dict[str, Any]) -> LabelledText:
        text = text_of(row, "sentence", None, None).strip()
        return LabelledText(text, label_of(row.get("label"), names, None, None))

    return convert


_HUB: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "blimp": ("", lambda row: blimp_row(row, None, None)),
    "sst2": ("sst2", _glue_row(SENTIMENT_LABELS)),
    "cola": ("cola", _glue_row(ACCEPTABILITY_LABELS)),
    "wic": ("wic", _wic_row),
}
_READERS: dict[str, Callable[[Path], Any]] = {
    "blimp": read_blimp,
    "conllu": read_conllu,
    "lama": read_lama,
    "pararel": read_pararel,
    "sst2": read_sst2,
    "cola": read_cola,
    "wic": read_wic,
}
