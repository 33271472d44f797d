"""The small tasks on which models are compared: reviews, and parts of speech."""

from __future__ import annotations

from dataclasses import dataclass

from .. import stimuli
from ..encoder import Encoder
from ..words import WordList
from .data import Labelled, labelled, labelled_words


@dataclass(frozen=True, eq=False)
class Task:
    """Four sets of texts, no text in two of them.

    Attributes:
        labelled: what models are fine-tuned on.
        unlabelled: more texts of the same kind, whose labels nobody paid for.
        validation: for choices that have to be made.
        test: for numbers that are reported.
    """

    labelled: Labelled
    unlabelled: Labelled
    validation: Labelled
    test: Labelled

    @property
    def n_classes(self) -> int:
        return self.labelled.n_classes

    @property
    def lessons(self) -> Labelled:
        """Everything a teacher may be asked about: labelled and unlabelled texts, no labels."""
        return self.labelled.unlabelled().joined(self.unlabelled)


def review_task(
    encoder: Encoder, *, labelled_texts: int = 64, unlabelled_texts: int = 320,
    validation_texts: int = 100, test_texts: int = 240, seed: int = 11,
) -> Task:  # fmt: skip
    """Is a review positive? Half of the reviews name both sides, and the last clause decides.

    Positive and negative reviews take turns in every set of an even number of texts.
    """
    sizes = (labelled_texts, unlabelled_texts, validation_texts, test_texts)
    found = stimuli.sentiment(sum(sizes), seed, kinds=("plain", "contrast"))
    parts, start = [], 0
    for size in sizes:
        part = found[start : start + size]
        start += size
        parts.append(
            labelled(encoder, [r.text for r in part], [int(r.label == "positive") for r in part])
        )
    return Task(parts[0], parts[1].unlabelled(), parts[2], parts[3])


def tagging_task(
    encoder: Encoder, *, labelled_texts: int = 24, unlabelled_texts: int = 160,
    validation_texts: int = 20, test_texts: int = 80, seed: int = 11,
) -> Task:  # fmt: skip
    """Which part of speech has each word? Sentences of our grammar."""
    sizes = (labelled_texts, unlabelled_texts, validation_texts, test_texts)
    bank = list(stimuli.treebank(2 * sum(sizes), seed=seed))
    seen: set[str] = set()
    sentences = [s for s in bank if not (s.text in seen or seen.add(s.text))][: sum(sizes)]
    tags = sorted({tag for sentence in bank for tag in sentence.pos})
    parts, start = [], 0
    for size in sizes:
        part = sentences[start : start + size]
        start += size
        words = [WordList(sentence.words, sentence.text) for sentence in part]
        parts.append(
            labelled_words(encoder, words, [[tags.index(t) for t in s.pos] for s in part])
        )
    return Task(parts[0], parts[1].unlabelled(), parts[2], parts[3])
