"""Span-labelling tasks of meaning: sentences, one or two spans each, and a label to read off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..activations import collect
from ..encoder import Encoder
from ..stimuli import CoreferenceItem, EntitySentence, Fact, RoleExample
from ..words import WordList
from .errors import SemanticsError

#: a span of words: first and one past the last
Span = tuple[int, int]


@dataclass(frozen=True)
class SpanTask:
    """N labelled examples over M sentences.

    Attributes:
        name: of the task.
        sentences: M sentences as words.
        sentence_of: [N] sentence of every example.
        spans: [N] its one or two spans; the same number for all.
        labels: [N] what to read off.
        is_test: [N] True for examples of the test part; the parts share no sentence.
    """

    name: str
    sentences: tuple[tuple[str, ...], ...]
    sentence_of: tuple[int, ...]
    spans: tuple[tuple[Span, ...], ...]
    labels: tuple[str, ...]
    is_test: tuple[bool, ...]

    def __len__(self) -> int:
        return len(self.labels)


def entity_frame(sentence: EntitySentence) -> str:
    """The sentence with every entity replaced by its type."""
    words, place = [], 0
    for start, end, kind in sentence.spans:
        words += [*sentence.words[place:start], kind]
        place = end
    return " ".join((*words, *sentence.words[place:])).lower()


def entity_task(train: Sequence[EntitySentence], test: Sequence[EntitySentence]) -> SpanTask:
    """Which type is this name: person, place, organisation or date?"""
    rows = [
        (sentence.words, [(((start, end),), kind) for start, end, kind in sentence.spans])
        for sentence in (*train, *test)
    ]
    return _task("entity types", rows, len(train))


def role_task(train: Sequence[RoleExample], test: Sequence[RoleExample]) -> SpanTask:
    """Which role does the argument play for the predicate: agent, patient, recipient...?"""
    return _task("semantic roles", [_role_row(e) for e in (*train, *test)], len(train))


def _role_row(example: RoleExample) -> tuple:
    pair = tuple((i, i + 1) for i in (example.predicate, example.argument))
    return example.words, [(pair, example.role)]


def coreference_task(train: Sequence[CoreferenceItem], test: Sequence[CoreferenceItem]) -> SpanTask:
    """Is this person the one that the pronoun stands for?"""
    rows = []
    for item in (*train, *test):
        people = ((item.antecedent, "same"), (item.other, "other"))
        pronoun = (item.pronoun, item.pronoun + 1)
        rows.append((item.words, [((pronoun, (i, i + 1)), label) for i, label in people]))
    return _task("coreference", rows, len(train))


def relation_task(
    train: Sequence[Fact],
    test: Sequence[Fact],
    *,
    train_templates: Sequence[int] = (0, 1),
    test_templates: Sequence[int] = (2, 3),
) -> SpanTask:
    """Which relation does the sentence state between its two names?

    Facts of the test part are new, and so is their wording. Relations between names of the same
    types (two countries, a country and a city) keep the names from telling the label.

    Raises:
        SemanticsError: a template or a subject in both parts.
    """
    if shared := sorted(set(train_templates) & set(test_templates)):
        raise SemanticsError(f"template {shared[0]} is in both parts")
    if both := sorted({fact.subject for fact in train} & {fact.subject for fact in test}):
        raise SemanticsError(f"the subject {both[0]!r} is in both parts")
    parts = [
        [_relation_row(fact, fact.templates[number]) for fact in facts for number in numbers]
        for facts, numbers in ((train, train_templates), (test, test_templates))
    ]
    return _task("relations", parts[0] + parts[1], len(parts[0]))


def _relation_row(fact: Fact, template: str) -> tuple:
    words: list[str] = []
    spans: dict[str, Span] = {}
    for piece in template.replace(",", " ,").replace(".", " .").split():
        slot, rest = piece[:3], piece[3:]
        if slot not in ("[X]", "[Y]"):
            words.append(piece)
            continue
        name = (fact.subject if slot == "[X]" else fact.object).split()
        spans[slot] = (len(words), len(words) + len(name))
        words += [*name, rest] if rest else name
    return tuple(words), [((spans["[X]"], spans["[Y]"]), fact.relation)]


def _task(name: str, rows: list[tuple], n_train: int) -> SpanTask:
    if not 0 < n_train < len(rows):
        raise SemanticsError(f"{name}: no sentences in the training or in the test part")
    # Two examples of one sentence must not be encoded twice, nor fall on both sides.
    numbers: dict[tuple[str, ...], int] = {}
    first = [numbers.setdefault(tuple(words), len(numbers)) for words, _ in rows]
    if both := set(first[:n_train]) & set(first[n_train:]):
        text = " ".join(list(numbers)[min(both)])
        raise SemanticsError(f"{name}: in the training and in the test part: {text!r}")
    found = [
        (sentence, spans, label, row >= n_train)
        for row, (sentence, (_, examples)) in enumerate(zip(first, rows, strict=True))
        for spans, label in examples
    ]
    sentence_of, spans, labels, is_test = zip(*found, strict=True)
    return SpanTask(name, tuple(numbers), sentence_of, spans, labels, is_test)


def span_vectors(encoder: Encoder, task: SpanTask) -> np.ndarray:
    """[L + 1, N, D * spans] mean vector of every span, two spans side by side."""
    texts = [WordList(sentence) for sentence in task.sentences]
    collected = collect(encoder, texts)
    states = collected.arrays["hidden_states"]
    starts = np.searchsorted(collected.text_index, np.arange(len(texts)))
    out = []
    for number in range(len(task.spans[0])):
        span = np.array([spans[number] for spans in task.spans])
        first = starts[np.array(task.sentence_of)] + span[:, 0]
        length = span[:, 1] - span[:, 0]
        total = np.zeros((states.shape[0], len(task), states.shape[2]), dtype=np.float32)
        for step in range(int(length.max())):
            inside = length > step
            total[:, inside] += states[:, first[inside] + step]
        out.append(total / length[:, None])
    return np.concatenate(out, axis=2)
