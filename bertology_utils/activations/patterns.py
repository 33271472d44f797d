"""Attention patterns of many texts on disk: one block a text, nothing padded."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from .cache import Cache

VALUES, LENGTHS = "pattern.npy", "pattern_lengths.npy"


@dataclass(frozen=True, eq=False)
class Patterns:
    """Patterns of N texts; ``patterns[i]`` is [L, H, T, T] of text i, read from disk when asked.

    Attributes:
        values: the numbers of all texts, one text after the other, memory-mapped.
        lengths: [N] pieces T of every text, special tokens included.
        shape: (L, H).
    """

    values: np.ndarray
    lengths: np.ndarray
    shape: tuple[int, int]

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, text: int) -> np.ndarray:
        """[L, H, T, T], rows sum to 1; a view into the file.

        Raises:
            IndexError: no such text.
        """
        if not 0 <= text < len(self):
            raise IndexError(f"text {text} is not in 0..{len(self) - 1}")
        heads, length = self.shape[0] * self.shape[1], int(self.lengths[text])
        start = heads * int(np.square(self.lengths[:text]).sum())
        flat = self.values[start : start + heads * length**2]
        return flat.reshape(*self.shape, length, length)


class PatternWriter:
    """Writes the patterns of texts into a folder as they come, in any order.

    Args:
        folder: exists already.
        lengths: [N] pieces of every text.
        shape: (L, H).
        dtype: ``"float32"`` or ``"float16"``.
    """

    def __init__(self, folder: Path, lengths: np.ndarray, shape: tuple[int, int], dtype: str):
        self.lengths, self.dtype = lengths, np.dtype(dtype)
        numbers = shape[0] * shape[1] * np.square(lengths)
        self.starts = np.cumsum(numbers) - numbers
        np.save(folder / LENGTHS, lengths)
        self.file = (folder / VALUES).open("wb")
        header = {
            "descr": self.dtype.str,
            "fortran_order": False,
            "shape": (int(numbers.sum()),),
        }
        np.lib.format.write_array_header_1_0(self.file, header)
        self.origin = self.file.tell()
        self.file.truncate(self.origin + int(numbers.sum()) * self.dtype.itemsize)

    def write(self, cache: Cache) -> None:
        """The patterns of one batch."""
        layers = cache.layers["pattern"]
        for place, text in enumerate(cache.batch.index):
            n = int(self.lengths[text])
            block = torch.stack([layer[place, :, :n, :n] for layer in layers])
            self.file.seek(self.origin + int(self.starts[text]) * self.dtype.itemsize)
            numbers = np.ascontiguousarray(block.cpu().numpy(), dtype=self.dtype)
            self.file.write(numbers.data)

    def close(self) -> None:
        self.file.close()


def read_patterns(folder: Path, shape: tuple[int, int]) -> Patterns:
    """What a :class:`PatternWriter` left in a folder.

    Raises:
        ValueError: sizes that do not fit; OSError: files that are missing.
    """
    lengths = np.load(folder / LENGTHS, allow_pickle=False)
    values = np.load(folder / VALUES, mmap_mode="r", allow_pickle=False)
    expected = shape[0] * shape[1] * int(np.square(lengths).sum())
    if values.shape != (expected,):
        raise ValueError(f"patterns of {values.size} numbers, where {expected} belong")
    return Patterns(values, lengths, shape)
