"""Every head against every dependency relation (Clark et al. 2019; Htut et al. 2019)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..encoder import Encoder
from ..stimuli import Sentence
from ..words import WordList
from .maps import MAX_TOKENS, attention_maps, word_attention
from .scores import HeadScores, NothingToScoreError

#: dependent: the dependent's most attended word is its head; head: the head's most attended word
#: is the dependent; either: one of the two.
DIRECTIONS = ("dependent", "head", "either")
#: The pseudo-relation of all edges but punctuation.
ALL = "all"
#: Fixed-offset baselines look at most this far.
MAX_OFFSET = 10
#: "words": the most attended *word* decides. "pieces": attention to special tokens competes, so a
#: word that attends mostly to [SEP] finds nothing.
CANDIDATES = ("words", "pieces")


@dataclass(frozen=True, eq=False)
class RelationScores:
    """Accuracy of every head at every relation.

    Attributes:
        hits: [N, R, 3, L, H] edges found in each sentence, by relation and direction.
        counts: [N, R] edges.
        offset_hits: [N, R, 3, O] edges that a fixed offset finds.
        relations: the R names; the first is ``"all"``.
        model, seed: of the encoder; of halves and bootstrap.
        candidates: one of :data:`CANDIDATES`.
    """

    hits: np.ndarray
    counts: np.ndarray
    offset_hits: np.ndarray
    relations: tuple[str, ...]
    model: str
    seed: int
    candidates: str

    def scores(self, relation: str, direction: str = "dependent") -> HeadScores:
        """The heads' accuracy at one relation, with the best fixed offset as control.

        Raises:
            KeyError: no such relation in the treebank, or no such direction.
        """
        if relation not in self.relations:
            raise KeyError(f"no relation {relation!r} here; there are {', '.join(self.relations)}")
        if direction not in DIRECTIONS:
            raise KeyError(f"unknown direction {direction!r}; known: {', '.join(DIRECTIONS)}")
        r, d = self.relations.index(relation), DIRECTIONS.index(direction)
        return HeadScores(
            f"{relation} ({direction})",
            "share",
            self.hits[:, r, d],
            self.counts[:, r],
            self.model,
            self.seed,
            {"fixed_offset": self.offset_hits[:, r, d]},
        )

    def best_direction(self, relation: str) -> HeadScores:
        """The direction, dependent or head, whose best head finds more edges.

        Chosen on the half of the sentences that also chooses the head (see ``HeadScores.best``).
        """
        found = [self.scores(relation, direction) for direction in DIRECTIONS[:2]]
        return max(found, key=lambda scores: scores.best.chosen_value)

    def table(self, *, min_n: int = 10) -> list[HeadScores]:
        """Each relation with at least ``min_n`` edges in its best direction, the largest held-out
        gain of the best head over the fixed offset first."""
        rows = []
        for r, relation in enumerate(self.relations):
            if self.counts[:, r].sum() >= min_n and (self.counts[:, r] > 0).sum() >= 2:
                rows.append(self.best_direction(relation))
        return sorted(rows, key=lambda s: s.baselines["fixed_offset"] - s.value)


def relation_scores(
    encoder: Encoder,
    sentences: Iterable[Sentence],
    *,
    candidates: str = "words",
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> RelationScores:
    """Let each word's most attended other word be a guess, and count the edges found.

    Clark's protocol is direction "dependent" or "head" with ``candidates="words"``; Htut's is
    "either", which asks only that one of the two words attends most to the other.

    Args:
        encoder: any encoder.
        sentences: sentences with dependency trees.
        candidates: one of :data:`CANDIDATES`.
        seed: of the halves and the bootstrap.
        max_tokens: pieces per batch.

    Raises:
        ValueError: unknown ``candidates``.
        NothingToScoreError: no sentences, or none with an edge.
        TextTooLongError, AlignmentError: naming the sentence.
    """
    if candidates not in CANDIDATES:
        raise ValueError(f"candidates is {candidates!r}, must be one of {', '.join(CANDIDATES)}")
    listed = list(sentences)
    relations = (ALL, *sorted({rel for s in listed for _, _, rel in s.edges()}))
    if len(relations) == 1:
        raise NothingToScoreError(f"no dependency edge in {len(listed)} sentences")
    n, r = len(listed), len(relations)
    offsets = np.array([o for o in range(-MAX_OFFSET, MAX_OFFSET + 1) if o])
    hits = np.zeros((n, r, 3, encoder.n_layers, encoder.n_heads), np.uint16)
    counts = np.zeros((n, r), np.int64)
    offset_hits = np.zeros((n, r, 3, len(offsets)), np.uint16)
    texts = [WordList(s.words, s.text) for s in listed]
    for maps in attention_maps(encoder, texts, max_tokens=max_tokens):
        guess = _guesses(maps.pattern, maps.row.spans, candidates)
        for head, dependent, relation in listed[maps.index].edges():
            up, down = guess[..., dependent] == head, guess[..., head] == dependent
            far_up, far_down = offsets == head - dependent, offsets == dependent - head
            names = (relation,) if relation == "punct" else (relation, ALL)
            for name in names:
                k = relations.index(name)
                counts[maps.index, k] += 1
                hits[maps.index, k] += np.stack([up, down, up | down])
                offset_hits[maps.index, k] += np.stack([far_up, far_down, far_up | far_down])
    return RelationScores(hits, counts, offset_hits, relations, encoder.name, seed, candidates)


def _guesses(
    pattern: np.ndarray, spans: Sequence[tuple[int, int]], candidates: str
) -> np.ndarray:
    """[L, H, W] the most attended other word of every word; -1 where a special token wins."""
    words = word_attention(pattern, spans)
    n = words.shape[-1]
    words[..., np.arange(n), np.arange(n)] = -1.0  # no word is its own head
    guess = words.argmax(-1)
    if candidates == "pieces":
        inside = np.zeros(pattern.shape[-1], bool)
        for span in spans:
            inside[slice(*span)] = True
        outside = np.flatnonzero(~inside)
        rows = np.stack([pattern[..., slice(*s), :].mean(-2) for s in spans], axis=-2)
        special = rows[..., outside].max(-1) if len(outside) else -1.0
        guess = np.where(special > words.max(-1), -1, guess)
    return guess
