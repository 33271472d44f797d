"""Random draws that give the same result on every machine and Python version.

Only ``random.Random.random`` is used: its sequence for a given seed is guaranteed by the language,
which is not true of ``choice``, ``sample`` or ``shuffle``.  Seeds are strings, which
``random.Random`` hashes with SHA-512, so ``PYTHONHASHSEED`` plays no part.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A source of reproducible choices."""

    def __init__(self, *key: object):
        # Encoded here, since keys hold users' words, which may hold halves of surrogate pairs.
        text = "/".join(str(part) for part in key)
        self._random = random.Random(text.encode("utf-8", "surrogatepass"))

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._random.random() < probability

    def below(self, n: int) -> int:
        """An integer in ``range(n)``."""
        if n < 1:
            raise ValueError(f"cannot draw from a range of {n}")
        return int(self._random.random() * n)

    def pick(self, options: Sequence[T]) -> T:
        """One option, all equally likely; ValueError when there is none."""
        if not options:
            raise ValueError("cannot draw from an empty sequence")
        return options[self.below(len(options))]

    def weighted(self, options: Sequence[tuple[T, float]]) -> T:
        """One option from ``(option, weight)`` pairs."""
        total = sum(weight for _, weight in options)
        if total <= 0:
            raise ValueError("weights must sum to more than 0")
        point = self._random.random() * total
        for option, weight in options:
            point -= weight
            if point < 0:
                return option
        return [option for option, weight in options if weight > 0][-1]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """A new list in random order (Fisher-Yates)."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1)
            out[i], out[j] = out[j], out[i]
        return out

    def sample(self, items: Sequence[T], k: int) -> list[T]:
        """``k`` different items in random order."""
        if k > len(items):
            raise ValueError(f"cannot draw {k} different items from {len(items)}")
        return self.shuffled(items)[:k]
