"""How often words occur in 16 million words of text: a sample over all frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files


@dataclass(frozen=True)
class WordCounts:
    """Counts of a sample of words that is equally large in every half power of ten.

    Attributes:
        counts: word (lower case, letters only) -> occurrences, most frequent first.
        total: all the words that were counted, also those that are not in the sample.
    """

    counts: dict[str, int]
    total: int

    def per_million(self, word: str) -> float:
        """Occurrences of a word of the sample in a million words; KeyError for any other."""
        return self.counts[word] * 1e6 / self.total


@lru_cache(maxsize=1)
def word_counts() -> WordCounts:
    """The sample; see ``build_word_counts`` for the texts behind it."""
    source = files(__package__).joinpath("data", "word_counts.tsv").read_text(encoding="utf-8")
    head, *lines = source.splitlines()
    rows = (line.split("\t") for line in lines)
    return WordCounts({word: int(n) for word, n in rows}, int(head.split()[1]))
