"""Small classification tasks; training and test parts share no sentences and no key words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from random import Random

from ..encoder import BertologyError
from ..stimuli import entailment, minimal_pairs, sentiment
from ..words import Text, TextPair

#: Longer texts, or pairs of texts, are left out, so that a step costs little.
MAX_WORDS = 12
#: Phenomena of the acceptability task; training and test sentences differ in their content words.
ACCEPTABILITY = ("agreement_simple", "agreement_pp", "determiner_noun", "reflexive_simple")


class TaskError(BertologyError, ValueError):
    """An unknown task, or parts that share a text."""


@dataclass(frozen=True)
class Part:
    """Texts and their labels, which count from 0."""

    texts: tuple[Text, ...]
    labels: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels) or not self.texts:
            raise TaskError(f"{len(self.texts)} texts with {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.texts)

    def first(self, n: int) -> Part:
        """The first ``n`` texts."""
        return Part(self.texts[:n], self.labels[:n])

    def without(self, texts: Collection[Text]) -> Part:
        """All texts but the given ones.

        Raises:
            TaskError: none is left.
        """
        kept = [i for i, text in enumerate(self.texts) if text not in texts]
        return Part(tuple(self.texts[i] for i in kept), tuple(self.labels[i] for i in kept))


@dataclass(frozen=True)
class Task:
    """A training and a test part.

    Attributes:
        name: of the task.
        classes: names of the labels.
        train, test: the parts.

    Raises:
        TaskError: a text is in both parts, or a label has no name.
    """

    name: str
    classes: tuple[str, ...]
    train: Part
    test: Part

    def __post_init__(self) -> None:
        if shared := set(self.train.texts) & set(self.test.texts):
            raise TaskError(f"{self.name}: in both parts: {shared.pop()!r}")
        odd = max(*self.train.labels, *self.test.labels)
        if odd >= len(self.classes) or min(*self.train.labels, *self.test.labels) < 0:
            raise TaskError(f"{self.name}: label {odd} of {len(self.classes)} classes")

    @property
    def majority(self) -> float:
        """Share of the most frequent label in the test part."""
        labels = self.test.labels
        return max(map(labels.count, set(labels))) / len(labels)


def make_task(name: str, n_train: int, n_test: int = 100, *, seed: int = 0) -> Task:
    """One of :data:`TASKS`, balanced, with texts of at most :data:`MAX_WORDS` words.

    The test part is the same whatever the seed: the seed draws the training part.

    * ``sentiment``: reviews; test reviews have other adjectives than training reviews.
    * ``negated sentiment``: half of the reviews with a negation that turns the adjective around.
    * ``inference``: does the second sentence follow? Every word of it is in the first one, so
      counting common words is of no use.
    * ``acceptability``: agreement and reflexives, one of each minimal pair at a time.

    Raises:
        TaskError: no such task, or fewer than two texts.
    """
    if name not in TASKS:
        raise TaskError(f"no task {name!r}; known: {', '.join(TASKS)}")
    classes, draw = TASKS[name]
    return Task(name, classes, draw(n_train, seed, "train"), draw(n_test, 0, "test"))


def reviews(
    n: int,
    seed: int,
    split: str,
    *,
    kinds: Sequence[str] = ("plain",),
    domain: str | None = None,
) -> Part:
    """``n`` short reviews, as many positive (1) as negative (0); see ``stimuli.sentiment``."""
    found = sentiment(3 * n, seed=seed, split=split, kinds=kinds, domain=domain)
    return _balanced([(r.text, int(r.label == "positive")) for r in found], n, "reviews")


def _inference(n: int, seed: int, split: str) -> Part:
    found = entailment(3 * n, seed=seed, split=split, counterexamples=1.0)
    rows = [(TextPair(p.premise, p.hypothesis), int(p.label == "entailment")) for p in found]
    return _balanced(rows, n, "inference")


def _acceptability(n: int, seed: int, split: str) -> Part:
    each = -(-2 * n // len(ACCEPTABILITY))
    columns = [minimal_pairs(kind, each, seed=seed, split=split) for kind in ACCEPTABILITY]
    pairs = [pair for row in zip(*columns, strict=True) for pair in row]
    # Of each pair one sentence only: both would make the task a comparison.
    rows = [(p.good, 1) if (i // len(columns)) % 2 else (p.bad, 0) for i, p in enumerate(pairs)]
    return _balanced(rows, n, "acceptability")


def _balanced(rows: Sequence[tuple[Text, int]], n: int, name: str) -> Part:
    if n < 2:
        raise TaskError(f"{name}: {n} texts; a task needs two or more")
    kept: dict[int, list[Text]] = {0: [], 1: []}
    for text, label in rows:
        if _n_words(text) <= MAX_WORDS and text not in kept[label]:
            kept[label].append(text)
    half = [n - n // 2, n // 2]
    if any(len(kept[label]) < half[label] for label in kept):
        raise TaskError(f"{name}: only {len(kept[0])} and {len(kept[1])} short texts for {n}")
    chosen = [(text, label) for label in kept for text in kept[label][: half[label]]]
    # Labels in turn, so that every prefix is balanced, too.
    chosen.sort(key=lambda row: (kept[row[1]].index(row[0]), row[1]))
    return Part(tuple(text for text, _ in chosen), tuple(label for _, label in chosen))


def _n_words(text: Text) -> int:
    if isinstance(text, TextPair):
        return _n_words(text.first) + _n_words(text.second)
    return len(str(text).split())


def shuffled_labels(part: Part, seed: int = 0) -> Part:
    """The same texts with the labels dealt anew: a task in which there is nothing to learn."""
    labels = list(part.labels)
    Random(seed).shuffle(labels)
    return Part(part.texts, tuple(labels))


TASKS: dict[str, tuple[tuple[str, str], Callable[[int, int, str], Part]]] = {
    "sentiment": (("negative", "positive"), reviews),
    "negated sentiment": (
        ("negative", "positive"),
        lambda n, seed, split: reviews(n, seed, split, kinds=("plain", "negated")),
    ),
    "inference": (("does not follow", "follows"), _inference),
    "acceptability": (("unacceptable", "acceptable"), _acceptability),
}
