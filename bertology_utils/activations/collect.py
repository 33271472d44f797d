"""Activations of many texts on disk: one row per word, piece or text, memory bounded."""

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from ..encoder import BertologyError, Encoder
from ..words import Batch, Text, TextTypeError, align_all, pool_batch
from ..writing import whole_folder
from .cache import Cache, stream
from .patterns import Patterns, PatternWriter, read_patterns
from .sites import n_entries, site_of

#: what a row is -> how its vector comes about
ROWS = ("word_mean", "word_first", "word_last", "piece", "text_first", "text_mean")


#: what NumPy and JSON raise on files that are damaged or somebody else's
_UNREADABLE = (
    OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, BadZipFile,
)  # fmt: skip


class CollectedError(BertologyError):
    """A folder that holds no complete collection."""


@dataclass(frozen=True, eq=False)
class Collected:
    """Activations of N rows, ordered by text and inside a text from left to right.

    Attributes:
        arrays: name -> [S, N, W] with S = L + 1 (``hidden_states``) or L and W = D, F, or H * K
            (heads side by side). On disk they are memory-mapped: slice what is needed.
        text_index: [N] text of every row.
        position: [N] number of the word or piece in its text; 0 for rows that are whole texts.
        rows: one of :data:`ROWS`.
        model: the encoder's name.
        patterns: the attention patterns of every text, where they were asked for.
    """

    arrays: dict[str, np.ndarray]
    text_index: np.ndarray
    position: np.ndarray
    rows: str
    model: str
    patterns: Patterns | None = None

    def __len__(self) -> int:
        return len(self.text_index)

    def rows_of(self, text: int) -> slice:
        """The rows of one text.

        Raises:
            IndexError: no rows for that text.
        """
        start, stop = np.searchsorted(self.text_index, [text, text + 1])
        if start == stop:
            raise IndexError(f"no rows for text {text}")
        return slice(int(start), int(stop))


def collect(
    encoder: Encoder,
    texts: Sequence[Text],
    names: Iterable[str] = ("hidden_states",),
    *,
    reduce: str = "word_mean",
    out: str | os.PathLike | None = None,
    dtype: str = "float32",
    max_tokens: int = 4096,
    window: int = 4096,
) -> Collected:
    """Encode texts and keep one vector per word, piece or text for every layer.

    Texts are tokenised once to count rows (bad texts are found before any computing) and then
    encoded batch by batch. With ``out``, rows go straight to disk and memory stays bounded
    whatever the number of texts; the folder appears complete or not at all.

    Args:
        encoder: any encoder.
        texts: a sequence of texts (read twice).
        names: any names of :data:`~bertology_utils.activations.SITES`. ``"pattern"`` has no vector
            per position: it needs ``out`` and is stored whole, as ``Collected.patterns``, L * H *
            T^2 numbers for a text of T pieces.
        reduce: ``"word_mean"``, ``"word_first"``, ``"word_last"``: pieces of a word to one row;
            ``"piece"``: every piece, special tokens included; ``"text_first"``: [CLS];
            ``"text_mean"``: mean over the pieces of the text without special tokens.
        out: a new folder; None keeps the arrays in memory.
        dtype: ``"float32"`` or ``"float16"``.
        max_tokens: padded pieces per batch.
        window: texts read ahead and sorted by length.

    Raises:
        ValueError: unknown ``reduce``, ``dtype`` or a name without rows.
        UnknownSiteError: unknown name.
        FileExistsError: ``out`` exists.
        NotWrittenError: a full disk, or a folder that takes nothing.
        TextTypeError: ``texts`` can be read only once, or holds something that is no text.
        EmptyTextError, TextTooLongError: naming the text.
    """
    names = list(dict.fromkeys([names] if isinstance(names, str) else names))
    _check(names, reduce, dtype, on_disk=out is not None)
    if not isinstance(texts, Sequence):
        raise TextTypeError(f"texts are read twice: pass a list, not a {type(texts).__name__}")
    counts, lengths = _count_rows(encoder, texts, reduce, window)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    text_index = np.repeat(np.arange(len(counts)), counts)
    position = np.arange(starts[-1]) - starts[:-1][text_index]
    shapes = {
        name: (n_entries(encoder, name), int(starts[-1]), _width(encoder, name))
        for name in names
        if name != "pattern"
    }

    def fill(writers: dict[str, "_Writer"], patterns: PatternWriter | None = None) -> None:
        for cache in stream(encoder, texts, names, max_tokens=max_tokens, window=window):
            for name in shapes:
                rows = _reduce(cache, name, reduce)
                pieces = rows.to("cpu", getattr(torch, dtype)).numpy()
                offset = 0
                for text in cache.batch.index:
                    stop = offset + counts[text]
                    writers[name].write(int(starts[text]), pieces[:, offset:stop])
                    offset = stop
            if patterns is not None:
                patterns.write(cache)

    if out is None:
        arrays = {name: np.empty(shape, dtype) for name, shape in shapes.items()}
        fill({name: _MemoryWriter(array) for name, array in arrays.items()})
        return Collected(arrays, text_index, position, reduce, encoder.name)
    if Path(out).exists():
        raise FileExistsError(
            f"{Path(out).name!r} exists already; open it or choose another folder"
        )
    with whole_folder(out) as scratch, ExitStack() as files:
        writers = {n: _FileWriter(scratch / f"{n}.npy", s, dtype) for n, s in shapes.items()}
        patterns = None
        if "pattern" in names:
            patterns = PatternWriter(scratch, lengths, _heads(encoder), dtype)
        for writer in (*writers.values(), *([] if patterns is None else [patterns])):
            files.callback(writer.close)
        fill(writers, patterns)
        np.save(scratch / "text_index.npy", text_index)
        np.save(scratch / "position.npy", position)
        about = {
            "model": encoder.name,
            "rows": reduce,
            "names": list(shapes),
            "n_texts": len(counts),
            "patterns": None if patterns is None else _heads(encoder),
        }
        (scratch / "about.json").write_text(json.dumps(about), encoding="utf-8")
    return open_collected(out)


def open_collected(folder: str | os.PathLike) -> Collected:
    """Open what :func:`collect` wrote, memory-mapped and read-only.

    Raises:
        CollectedError: the folder holds no collection.
    """
    place = Path(folder)
    try:
        about = json.loads((place / "about.json").read_text(encoding="utf-8"))
        arrays = {
            name: np.load(place / f"{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in about["names"]
        }
        text_index = np.load(place / "text_index.npy", allow_pickle=False)
        position = np.load(place / "position.npy", allow_pickle=False)
        shape = about.get("patterns")
        patterns = None if shape is None else read_patterns(place, (int(shape[0]), int(shape[1])))
        found = Collected(arrays, text_index, position, about["rows"], about["model"], patterns)
        _check_read(found)
    except _UNREADABLE as error:
        reason = str(error) or type(error).__name__
        raise CollectedError(f"no collection of activations in {place.name!r}: {reason}") from error
    return found


def _check_read(found: Collected) -> None:
    """Raise ValueError where files do not belong together."""
    if found.rows not in ROWS or not isinstance(found.model, str):
        raise ValueError(f"rows {found.rows!r} of the model {found.model!r}")
    n = len(found.text_index)
    for name, array in {"position": found.position[None], **found.arrays}.items():
        if array.shape[1] != n:
            raise ValueError(f"{name!r} has {array.shape[1]} rows, text_index has {n}")


class _MemoryWriter:
    def __init__(self, array: np.ndarray):
        self.array = array

    def write(self, start: int, rows: np.ndarray) -> None:
        self.array[:, start : start + rows.shape[1]] = rows


class _FileWriter:
    """Writes rows of an .npy file in place.

    Plain writes, since pages of a writable memory map count as memory of the process until the
    system chooses to flush them.
    """

    def __init__(self, path: Path, shape: tuple[int, int, int], dtype: str):
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.file = path.open("wb")
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self.file, header)
        self.origin = self.file.tell()
        self.file.truncate(self.origin + int(np.prod(shape)) * self.dtype.itemsize)

    def write(self, start: int, rows: np.ndarray) -> None:
        _, n_rows, width = self.shape
        for entry, block in enumerate(rows):
            self.file.seek(self.origin + (entry * n_rows + start) * width * self.dtype.itemsize)
            self.file.write(np.ascontiguousarray(block).data)

    def close(self) -> None:
        self.file.close()


_Writer = _MemoryWriter | _FileWriter


def _check(names: list[str], reduce: str, dtype: str, on_disk: bool) -> None:
    for name in names:
        if site_of(name).name == "pattern" and not on_disk:
            raise ValueError(
                "'pattern' has no vector per position; give out= to keep it on disk, or reduce it "
                "with stream()"
            )
    if not names:
        raise ValueError("no names of activations to collect")
    if reduce not in ROWS:
        raise ValueError(f"reduce is {reduce!r}, must be one of {', '.join(ROWS)}")
    if dtype not in ("float32", "float16"):
        raise ValueError(f"dtype is {dtype!r}, must be 'float32' or 'float16'")


def _count_rows(
    encoder: Encoder, texts: Sequence[Text], reduce: str, window: int
) -> tuple[np.ndarray, np.ndarray]:
    """[number of texts] rows that each text will have, and its pieces."""
    if isinstance(texts, str):
        raise TextTypeError(f"expected a sequence of texts, got one text: {texts[:60]!r}")
    counts: list[int] = []
    lengths: list[int] = []
    for start in range(0, len(texts), window):
        rows = align_all(encoder, texts[start : start + window])
        lengths += [len(row.input_ids) for row in rows]
        if reduce.startswith("word"):
            counts += [len(row.words) for row in rows]
        else:
            counts += lengths[start:] if reduce == "piece" else [1] * len(rows)
    return np.array(counts, dtype=np.int64), np.array(lengths, dtype=np.int64)


def _heads(encoder: Encoder) -> tuple[int, int]:
    """(L, H)"""
    heads = set(encoder.heads_per_layer)
    if len(heads) > 1:
        raise ValueError(f"layers of {encoder.name!r} differ in heads; collect no patterns")
    return encoder.n_layers, heads.pop()


def _width(encoder: Encoder, name: str) -> int:
    if site_of(name).by_head:
        heads = set(encoder.heads_per_layer)
        if len(heads) > 1:
            raise ValueError(f"layers of {encoder.name!r} differ in heads; collect no {name!r}")
        return heads.pop() * encoder.d_head
    return encoder.layers[0].ffn_out.in_features if name == "mlp_act" else encoder.d_model


def _reduce(cache: Cache, name: str, reduce: str) -> Tensor:
    """[S, rows of the batch, W]"""
    value = cache[name]
    if site_of(name).by_head:
        value = value.transpose(-3, -2).flatten(-2)  # [L, B, H, T, K] -> [L, B, T, H * K]
    batch: Batch = cache.batch
    if reduce.startswith("word"):
        return pool_batch(value, batch, reduce.removeprefix("word_"))
    if reduce == "piece":
        return value[:, batch.attention_mask.bool().to(value.device)]
    if reduce == "text_first":
        return value[:, :, 0]
    weights = batch.is_text.to(value.device, value.dtype)
    return torch.einsum("sbtd,bt->sbd", value, weights / weights.sum(1, keepdim=True))
