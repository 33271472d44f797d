"""Sense-tagged sentences for ambiguous words, from hand-written frames."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from bertology_utils.stimuli._draw import Draw
from bertology_utils.stimuli._sense_tables import SENSES as _SENSES

SENSE_WORDS = tuple(_SENSES)
_TOKEN = re.compile(r"[A-Za-z]+(?:[-'][A-Za-z]+)*|[.,?!]")
_SLOT = re.compile(r"\{([^{}]*)\}")


class SenseError(ValueError):
    """An unknown word or more sentences than a sense has."""


# Openings that say nothing about the sense; they also move the word to other positions.
_OPENINGS = ("", "I remember that ", "They told us that ")
_MAY_FOLLOW = frozenset(
    "The A An He She They We I His Her My Our Every Each Two Both In With After Without".split()
)


@dataclass(frozen=True)
class SenseExample:
    """A word in a sentence with its sense.

    ``words`` are the tokens of ``text`` (punctuation apart) and ``target`` the 0-based index of
    the word among them; ``frame`` numbers the hand-written frame, so that training and test
    contexts can be kept apart.
    """

    word: str
    sense: str
    text: str
    words: tuple[str, ...]
    target: int
    frame: int


def senses_of(word: str) -> tuple[str, ...]:
    """Names of the senses of a word; SenseError for a word that is not tagged."""
    if word not in _SENSES:
        raise SenseError(f"no tagged senses for {word!r}; words: {', '.join(SENSE_WORDS)}")
    return tuple(_SENSES[word])


@lru_cache(maxsize=128)
def _all(word: str, sense: str) -> tuple[SenseExample, ...]:
    out = []
    for frame, line in enumerate(_SENSES[word][sense].strip().splitlines()):
        parts = _SLOT.split(line)
        slots = [
            part.split("|") if i % 2 else [part] for i, part in enumerate(parts)
        ]  # fmt: skip
        for opening, *choice in product(_OPENINGS, *slots):
            text = "".join(choice)
            first = text.split()[0]
            if opening and first not in _MAY_FOLLOW:
                continue
            if opening:
                text = opening + (text if first == "I" else text[0].lower() + text[1:])
            words = tuple(_TOKEN.findall(text))
            places = [i for i, w in enumerate(words) if w.lower() == word]
            if len(places) != 1:
                raise SenseError(f"{word!r} must occur once in {text!r}")
            out.append(SenseExample(word, sense, text, words, places[0], frame))
    return tuple(out)


def sense_examples(
    word: str, n_per_sense: int | None = None, seed: int = 0, frames: str = "all"
) -> list[SenseExample]:
    """Sentences for every sense of a word, the same number for each.

    Args:
        word: one of :data:`SENSE_WORDS`.
        n_per_sense: how many sentences a sense; None takes as many as the smallest sense has.
        frames: "all", or "train" / "test" for disjoint sets of frames (every third is test).

    Sentences are drawn so that all frames are used before any is repeated.  Raises SenseError for
    unknown names or when a sense has too few sentences.
    """
    if frames not in ("all", "train", "test"):
        raise SenseError(f"frames must be 'all', 'train' or 'test', not {frames!r}")
    pools = {}
    for sense in senses_of(word):
        pool = [e for e in _all(word, sense)
                if frames == "all" or (e.frame % 3 == 2) == (frames == "test")]  # fmt: skip
        pools[sense] = _interleaved(pool, Draw("senses", word, sense, seed))
    available = min(len(pool) for pool in pools.values())
    n = available if n_per_sense is None else n_per_sense
    if not 1 <= n <= available:
        raise SenseError(f"{word!r} has {available} {frames} sentences a sense, not {n}")
    return [example for pool in pools.values() for example in pool[:n]]


def _interleaved(pool: list[SenseExample], draw: Draw) -> list[SenseExample]:
    """One sentence of each frame in turn, in random order within a frame."""
    by_frame: dict[int, list[SenseExample]] = {}
    for example in draw.shuffled(pool):
        by_frame.setdefault(example.frame, []).append(example)
    out = []
    rounds = max(len(group) for group in by_frame.values())
    for k in range(rounds):
        out += [group[k] for group in by_frame.values() if k < len(group)]
    return out
