"""Where induced trees and the treebank part ways (Wu et al. 2020, arXiv 2004.14786)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..probes.tree_metrics import content_words
from ..stimuli import Sentence


@dataclass(frozen=True)
class RelationRecall:
    """How many gold edges of one relation an induced tree also has, direction aside.

    Attributes:
        relation: of the treebank.
        found: edges that are there, with head and dependent as in the treebank.
        turned: edges that are there the other way round.
        n: gold edges.
    """

    relation: str
    found: int
    turned: int
    n: int

    @property
    def recall(self) -> float:
        """Share of the gold edges that are there in either direction."""
        return (self.found + self.turned) / self.n


def relation_recalls(
    heads: Sequence[Sequence[int]], sentences: Sequence[Sentence], *, min_n: int = 5
) -> list[RelationRecall]:
    """Recall of every relation with at least ``min_n`` edges, the most frequent first.

    Args:
        heads: induced heads of every sentence, 1-based, 0 for the root.
        sentences: the gold. Edges that touch punctuation are left out.

    Raises:
        ValueError: heads do not fit the sentences.
    """
    counts: dict[str, list[int]] = {}
    for said, sentence in _paired(heads, sentences):
        kept = set(content_words(sentence).tolist())
        for head, word, relation in sentence.edges():
            if head in kept and word in kept:
                row = counts.setdefault(relation, [0, 0, 0])
                row[0] += said[word] == head + 1
                row[1] += said[head] == word + 1
                row[2] += 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1][2], item[0]))
    return [RelationRecall(name, *row) for name, row in ordered if row[2] >= min_n]


def strange_edges(
    heads: Sequence[Sequence[int]], sentences: Sequence[Sentence]
) -> list[tuple[str, str, int]]:
    """Induced edges that the treebank lacks, as (tag of the head, tag of the word, how often).

    Raises:
        ValueError: heads do not fit the sentences.
    """
    counts: Counter[tuple[str, str]] = Counter()
    for said, sentence in _paired(heads, sentences):
        gold = {(min(h, d), max(h, d)) for h, d, _ in sentence.edges()}
        kept = set(content_words(sentence).tolist())
        for word, head in enumerate(said):
            if head and word in kept and head - 1 in kept:
                if (min(head - 1, word), max(head - 1, word)) not in gold:
                    counts[sentence.upos[head - 1], sentence.upos[word]] += 1
    return [(a, b, n) for (a, b), n in sorted(counts.items(), key=lambda x: (-x[1], x[0]))]


def _paired(heads: Sequence[Sequence[int]], sentences: Sequence[Sentence]):
    if len(heads) != len(sentences):
        raise ValueError(f"heads for {len(heads)} of {len(sentences)} sentences")
    for said, sentence in zip(heads, sentences, strict=True):
        if len(said) != len(sentence):
            raise ValueError(f"{len(said)} heads for the {len(sentence)} words {sentence.text!r}")
        yield said, sentence
