"""The texts of the chapter on embeddings: free sentences, and one set of frames for all nouns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .. import stimuli
from ..activations import Collected, collect
from ..encoder import Encoder
from ..geometry import SenseVectors, TooFewError, rows_at
from ..stimuli import SenseExample
from ..stimuli.things import things
from ..words import WordList, align_all

#: Sentences that fit any thing one can name, so that a noun's contexts say nothing about it. The
#: first is the empty frame of May et al. (2019), kept apart by :attr:`FramedNouns.bleached`.
FRAMES = (
    "This is {a} {x} .",
    "She drew {a} {x} on the blackboard .",
    "On the first page of the book there was {a} {x} .",
    "The children talked about the {x} for the rest of the day .",
    "My brother once wrote a song about {a} {x} .",
    "Nobody could say how the {x} had come into the picture .",
    "In her dream she saw {a} {x} again .",
    "The old man told us a story about the {x} .",
    "We waited two hours for a photograph of the {x} .",
    "The museum has a whole room about the history of the {x} .",
    "He had never seen {a} {x} before .",
    "They put a picture of {a} {x} on the wall .",
    "The teacher asked whether anybody knew the word {x} .",
)


@dataclass(frozen=True, eq=False)
class Tagged:
    """Sense-tagged sentences: one for every context, so that no two are variants of one another.

    Attributes:
        examples: the sentences.
        texts: the same as texts to encode.
        places: (number of the text, number of the word) of every tagged word.
    """

    examples: tuple[SenseExample, ...]
    texts: tuple[WordList, ...]
    places: tuple[tuple[int, int], ...]

    def vectors(self, collected: Collected) -> SenseVectors:
        """The tagged words' vectors, from rows of words of :attr:`texts` and any texts after them.

        Raises:
            IndexError: the collection is of other texts.
        """
        rows = rows_at(collected, self.places)
        return self._sense_vectors(
            np.array(collected.arrays["hidden_states"][:, rows]), collected.model
        )

    def context_only(self, encoder: Encoder) -> SenseVectors:
        """What the other words give away: the mean of their input embeddings, as one layer.

        A control without any mixing of words by the model.
        """
        table = encoder.embeddings.token.weight.detach().cpu().float().numpy()
        means = []
        for row, (_, word) in zip(align_all(encoder, self.texts), self.places, strict=True):
            inside = ~np.array(row.is_special)
            inside[slice(*row.words[word].pieces)] = False
            means.append(table[np.array(row.input_ids)[inside]].mean(0))
        return self._sense_vectors(np.stack(means)[None], encoder.name)

    def _sense_vectors(self, vectors: np.ndarray, model: str) -> SenseVectors:
        contexts = [(e.word, e.sense, e.frame) for e in self.examples]
        number = {key: i for i, key in enumerate(dict.fromkeys(contexts))}
        return SenseVectors(
            vectors,
            np.array([e.word for e in self.examples]),
            np.array([e.sense for e in self.examples]),
            np.array([number[key] for key in contexts]),
            model,
        )


@lru_cache(maxsize=1)
def tagged_senses() -> Tagged:
    """All ambiguous words, eight contexts a sense."""
    examples = tuple(
        example
        for word in stimuli.SENSE_WORDS
        for example in stimuli.sense_examples(word, 8)
    )
    texts = tuple(WordList(tuple(e.words), e.text) for e in examples)
    return Tagged(examples, texts, tuple((i, e.target) for i, e in enumerate(examples)))


@lru_cache(maxsize=1)
def free_sentences() -> tuple[str, ...]:
    """The sentences of the passages written for this book; no two share a template."""
    found = [sentence for passage in stimuli.passages() for sentence in passage.sentences]
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, eq=False)
class FramedNouns:
    """Vectors of nouns in :data:`FRAMES`, every noun in the same ones.

    Attributes:
        nouns: W nouns.
        collected: rows of words of all sentences.
        rows: [W, F] the noun's row in each frame; column 0 is the empty frame.
    """

    nouns: tuple[str, ...]
    collected: Collected
    rows: np.ndarray

    @property
    def bleached(self) -> dict[str, np.ndarray]:
        """noun -> its one row in the empty frame."""
        return self.alone(0)

    def alone(self, frame: int) -> dict[str, np.ndarray]:
        """noun -> its one row in one frame, the same for all nouns; 0 is the empty frame.

        Raises:
            IndexError: no such frame.
        """
        if not 0 <= frame < self.rows.shape[1]:
            raise IndexError(f"frame {frame} of {self.rows.shape[1]}")
        return {noun: self.rows[i, frame : frame + 1] for i, noun in enumerate(self.nouns)}

    @property
    def contexts(self) -> dict[str, np.ndarray]:
        """noun -> its rows in the frames that say something."""
        return {noun: self.rows[i, 1:] for i, noun in enumerate(self.nouns)}


def framed_nouns(
    encoder: Encoder, nouns: Sequence[str], n_frames: int = len(FRAMES)
) -> FramedNouns:
    """Encode every noun in the first ``n_frames`` of :data:`FRAMES`.

    Raises:
        TooFewError: no nouns.
        ValueError: ``n_frames`` is below 2 or more than there are.
    """
    if not len(nouns):
        raise TooFewError("no nouns")
    if not 2 <= n_frames <= len(FRAMES):
        raise ValueError(f"n_frames lies between 2 and {len(FRAMES)}, got {n_frames}")
    texts, places = [], []
    for noun in nouns:
        for frame in FRAMES[:n_frames]:
            places.append((len(texts), frame.split().index("{x}")))
            texts.append(in_frame(frame, noun))
    collected = collect(encoder, texts)
    rows = rows_at(collected, places).reshape(len(nouns), n_frames)
    return FramedNouns(tuple(nouns), collected, rows)


def in_frame(frame: str, noun: str) -> tuple[str, ...]:
    """The words of a frame with a noun in it; "a" becomes "an" before a vowel letter."""
    a = "an" if noun[0].lower() in "aeiou" else "a"
    # Split first: a noun stays one word of the text even where its spelling has a space.
    return tuple({"{x}": noun, "{a}": a}.get(word, word) for word in frame.split())


def other_nouns() -> tuple[str, ...]:
    """Singular nouns of the grammar's lexicon that are not among the labelled things."""
    labelled = {thing.noun for thing in things()}
    found = (noun.singular for noun in stimuli.lexicon().nouns)
    return tuple(dict.fromkeys(word for word in found if word and word not in labelled))

