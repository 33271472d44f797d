"""Text beyond the single sentence: pairs that belong together, and facts about named people."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..stimuli import Sentence
from .language import (
    CLS,
    PAIR_LENGTH,
    SEP,
    SPECIAL,
    UNK,
    Text,
    held_out_sentences,
    training_sentences,
    vocabulary,
)

#: sentence task -> label of (next, swapped, stranger); None: such pairs are not shown
LABELS = {
    "none": (0, None, 0),
    "next": (1, None, 0),
    "order": (1, 0, None),
    "three-way": (0, 1, 2),
}
CLASSES = {"none": 2, "next": 2, "order": 2, "three-way": 3}

FACT_PEOPLE, FACT_PLACES = 24, 8
#: different last names, and different first (and last) pieces of places
_LAST_NAMES, _PLACE_PIECES = 6, 4
_TEMPLATES = (
    "{0} {1} lives in {2} {3} .",
    "{0} {1} was near {2} {3} .",
    "{0} {1} left for {2} {3} .",
    "{0} {1} stayed at {2} {3} .",
)
#: the wording in which some people are met and the others asked about
_ASKED = 3


def _mentions(sentences: tuple[Sentence, ...]):
    """Noun -> rows that introduce it ("a N") and rows that take it up ("the N"), and all nouns."""
    opens, takes, nouns = defaultdict(list), defaultdict(list), []
    for row, sentence in enumerate(sentences):
        own = set()
        for word, head in enumerate(sentence.heads):
            if sentence.upos[head - 1] == "NOUN" and sentence.deprels[word] == "det" and head:
                noun, determiner = sentence.lemmas[head - 1], sentence.words[word].lower()
                if determiner in ("a", "an"):
                    opens[noun].append(row)
                if determiner == "the":
                    takes[noun].append(row)
        own |= {lemma for lemma, pos in zip(sentence.lemmas, sentence.upos, strict=True)
                if pos == "NOUN"}  # fmt: skip
        nouns.append(own)
    return opens, takes, nouns


@lru_cache(maxsize=16)
def sentence_pairs(task: str, n: int, held_out: bool, seed: int = 0) -> Text:
    """``n`` pairs of sentences.

    The second of a pair *follows* when it takes up with "the" what the first has introduced with
    "a". A stranger shares no noun; a swapped pair is one that follows, back to front.

    Raises:
        KeyError: no such sentence task.
    """
    sentences = held_out_sentences() if held_out else training_sentences()
    opens, takes, nouns = _mentions(sentences)
    common = sorted(noun for noun in opens if takes.get(noun))
    kinds = [k for k, label in enumerate(LABELS[task]) if label is not None]
    rng = np.random.default_rng([seed, n, held_out])
    known = vocabulary()
    ids = np.zeros((n, PAIR_LENGTH), dtype=int)
    segments, labels = np.zeros_like(ids), np.zeros(n, dtype=int)
    for i in range(n):
        kind = kinds[i % len(kinds)]
        noun = common[rng.integers(len(common))]
        first, second = rng.choice(opens[noun]), rng.choice(takes[noun])
        while kind == 2 and nouns[first] & nouns[second]:
            second = rng.integers(len(sentences))
        if kind == 1:
            first, second = second, first
        parts = [
            [known.get(w.lower(), UNK) for w in sentences[row].words] for row in (first, second)
        ]
        row = [CLS, *parts[0], SEP, *parts[1], SEP]
        ids[i, : len(row)] = row
        segments[i, len(parts[0]) + 2 : len(row)] = 1
        labels[i] = LABELS[task][kind]
    return Text(ids, segments, labels, np.broadcast_to(np.arange(PAIR_LENGTH), ids.shape))


@dataclass(frozen=True, eq=False)
class FactQuestions:
    """Sentences whose place is asked for.

    Attributes:
        text: with the place in it; gaps: [N, T] True at the pieces of the place.
        words: piece -> id of the vocabulary of this corpus.
    """

    text: Text
    gaps: np.ndarray
    words: dict[str, int]


@lru_cache(maxsize=4)
def fact_corpus(seed: int = 0) -> tuple[Text, FactQuestions]:
    """Statements to train on and questions.

    People have first names of their own and share last names; places have two pieces, neither of
    which alone tells the place. Every person is met in three wordings, and
    some in a fourth, in which the others are asked about.
    """
    rng = np.random.default_rng([seed, 18])
    stems = [f"{a}{b}{c}" for a in "bdfgklmn" for b in "aeiou" for c in "rlnt"]
    drawn = rng.permutation(stems)
    few = _PLACE_PIECES
    sizes = np.cumsum([FACT_PEOPLE, _LAST_NAMES, few, few])
    firsts, lasts, heads, tails = np.split(drawn[: sizes[-1]], sizes[:-1])
    places = rng.permutation(few * few)[:FACT_PLACES]
    rows, asked = [], []
    for number, first in enumerate(firsts):
        place = places[number % FACT_PLACES]
        pieces = [first, lasts[rng.integers(_LAST_NAMES)], heads[place // few], tails[place % few]]
        for template in range(len(_TEMPLATES)):
            target = asked if template == _ASKED and number // FACT_PLACES % 2 else rows
            target.append((_TEMPLATES[template].split(), pieces))
    fixed = {word for template in _TEMPLATES for word in template.split() if "{" not in word}
    everything = (*SPECIAL, *sorted(fixed), *sorted(str(n) for n in drawn[: sizes[-1]]))
    words = {word: i for i, word in enumerate(everything)}
    return _fact_text(rows, words)[0], FactQuestions(*_fact_text(asked, words), words)


def _fact_text(rows, words: dict[str, int]) -> tuple[Text, np.ndarray]:
    length = 2 + max(len(template) for template, _ in rows)
    ids = np.zeros((len(rows), length), dtype=int)
    wholes = np.broadcast_to(np.arange(length), ids.shape).copy()
    gaps = np.zeros(ids.shape, dtype=bool)
    for i, (template, pieces) in enumerate(rows):
        ids[i, 0], ids[i, len(template) + 1] = CLS, SEP
        for j, slot in enumerate(template, start=1):
            if slot[0] == "{":
                number = int(slot[1])
                ids[i, j] = words[str(pieces[number])]
                if number % 2:  # the second piece belongs to the unit of the first
                    wholes[i, j] = wholes[i, j - 1]
                gaps[i, j] = number >= 2
            else:
                ids[i, j] = words[slot]
    nothing = np.zeros_like(ids)
    return Text(ids, nothing, nothing[:, 0], wholes), gaps
