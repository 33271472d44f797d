"""Short passages with questions whose answer is one word of the passage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..stimuli.lexicon import lexicon
from ..words import TextPair

# kind of event: sentence | question about who | question about the other thing | its fillers
_EVENTS = {
    "place": ("{who} travelled to {what} .", "Who travelled to {what}?",
              "Where did {who} travel?",
              "London Paris Berlin Rome Madrid Vienna Boston Chicago Moscow Dublin"),
    "thing": ("{who} bought a {what} .", "Who bought a {what}?", "What did {who} buy?",
              "car horse book house boat guitar coat table lamp camera"),
    "food": ("{who} ate some {what} .", "Who ate some {what}?", "What did {who} eat?",
             "bread soup cheese rice fruit cake meat fish chicken salad"),
    "animal": ("{who} saw a {what} .", "Who saw a {what}?", "What did {who} see?",
               "dog cat bird bear lion wolf fox snake tiger rabbit"),
    "day": ("{who} left on {what} .", "Who left on {what}?", "When did {who} leave?",
            "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
}  # fmt: skip
EVENTS = tuple(_EVENTS)


@dataclass(frozen=True)
class Question:
    """A passage, a question, and the word that answers it.

    Attributes:
        words: of the passage.
        question: a string; empty where it was taken away.
        answer: one of the words.
        rivals: how many other words of the passage are of the same kind and fit the same
            question word; 0 means that the kind alone gives the answer away.
    """

    words: tuple[str, ...]
    question: str
    answer: str
    rivals: int

    @property
    def pair(self) -> TextPair | str:
        """Passage and question as the model reads them."""
        passage = " ".join(self.words)
        return TextPair(passage, self.question) if self.question else passage


def questions(n: int, seed: int = 0, *, sentences: int = 3, split: str = "all") -> list[Question]:
    """``n`` passages of a few events, each with a question about one of them.

    Kinds of events are drawn independently, so that a passage tells of two journeys as often as
    chance has it. Names of the splits "train" and "test" differ.

    Raises:
        ValueError: no questions or sentences asked for, or more sentences than names.
    """
    names = [name.lemma.capitalize() for name in lexicon(split).names]
    if n < 1 or not 1 <= sentences <= len(names):
        raise ValueError(f"{n} questions about {sentences} sentences with {len(names)} names")
    draw = np.random.default_rng(seed)
    out = []
    for _ in range(n):
        people = draw.choice(names, sentences, replace=False).tolist()
        kinds = draw.choice(EVENTS, sentences).tolist()
        taken: dict[str, list[str]] = {}
        for kind in kinds:
            free = [f for f in _EVENTS[kind][3].split() if f not in taken.get(kind, [])]
            taken.setdefault(kind, []).append(str(draw.choice(free)))
        used = {kind: iter(fillers) for kind, fillers in taken.items()}
        events = [(who, kind, next(used[kind])) for who, kind in zip(people, kinds, strict=True)]
        words = [w for who, kind, what in events
                 for w in _EVENTS[kind][0].format(who=who, what=what).split()]  # fmt: skip
        who, kind, what = events[int(draw.integers(sentences))]
        if draw.integers(2):
            asked, answer, rivals = _EVENTS[kind][1].format(what=what), who, sentences - 1
        else:
            asked, answer = _EVENTS[kind][2].format(who=who), what
            rivals = sum(_same_question(kind, other) for _, other, _ in events) - 1
        out.append(Question(tuple(words), asked, answer, rivals))
    return out


def _same_question(kind: str, other: str) -> bool:
    """True where answers of both kinds answer to the same question word."""
    word = {name: row[2].split()[0] for name, row in _EVENTS.items()}
    return word[kind] == word[other]


def shuffled(items: Sequence[Question], seed: int = 0) -> list[Question]:
    """The same questions about the same words in random order."""
    draw = np.random.default_rng(seed)
    return [replace(q, words=tuple(draw.permutation(q.words).tolist())) for q in items]


def unasked(items: Sequence[Question]) -> list[Question]:
    """The same passages without the question: what can be guessed from the passage alone."""
    return [replace(q, question="") for q in items]
