"""Tasks about whole sentences, after Conneau et al. 2018 (P18-1198) and Jawahar et al. 2019.

Training and test sentences share no content word, so that no task can be solved by knowing words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..activations import collect
from ..encoder import Encoder
from ..geometry import LayerScores
from ..probes import Split, probe_layers
from ..stimuli import Sentence, passages
from ..stimuli.perturb import fix_articles, nonsense
from ..stimuli.trees import join_words
from ..syntax import TreebankVectors, treebank_vectors
from .curves import cross_probe, scores_of

#: labels with fewer training sentences are left out
_RARE = 8


@dataclass(frozen=True)
class SentenceTask:
    """N labelled sentences.

    Attributes:
        name: of the task.
        family: ``"surface"``, ``"syntax"`` or ``"meaning"``.
        sentences: as they are read; altered ones where altering is what is asked about.
        labels: [N].
        is_test: [N] True for sentences of the test part.
    """

    name: str
    family: str
    sentences: tuple[Sentence, ...]
    labels: tuple[Hashable, ...]
    is_test: tuple[bool, ...]

    def split(self, *, dev: float = 0.2, seed: int = 0) -> Split:
        """Parts of the task; the development part is drawn from the training sentences."""
        test = np.array(self.is_test)
        rest = np.random.default_rng(seed).permutation(np.flatnonzero(~test))
        n_dev = max(1, round(dev * len(rest)))
        return Split(np.sort(rest[n_dev:]), np.sort(rest[:n_dev]), np.flatnonzero(test), seed)


def sentence_tasks(
    train: Sequence[Sentence], test: Sequence[Sentence], *, seed: int = 0
) -> list[SentenceTask]:
    """Nine of the ten tasks of Conneau et al. 2018, on our own sentences.

    Surface: length in quarters, the one preposition. Syntax: depth of the dependency tree, the
    constituents of the two top levels, neighbours exchanged. Meaning: tense, number of the subject
    and of the object, one content word replaced. The tenth, clauses exchanged, is asked on real
    texts by :func:`order_of_sentences`.

    Args:
        train, test: sentences of the grammar over words that do not overlap.
        seed: of what is altered.

    Raises:
        ValueError: a sentence without a gold analysis, or too few sentences for a task.
    """
    for sentence in (*train, *test):
        if sentence.gold is None:
            raise ValueError(f"no gold analysis of {sentence.text!r}")
    quarters = np.quantile([len(s) for s in train], [0.25, 0.5, 0.75])
    plain: list[tuple[str, str, Callable[[Sentence], Hashable | None]]] = [
        ("sentence length", "surface", lambda s: int(np.searchsorted(quarters, len(s)))),
        ("preposition", "surface", _preposition),
        ("tree depth", "syntax", lambda s: min(max(s.depths()), 5)),
        ("top constituents", "syntax", _top),
        ("tense", "meaning", lambda s: s.gold.tense),
        ("subject number", "meaning", lambda s: s.gold.subject_number),
        ("object number", "meaning", lambda s: s.gold.object_number),
    ]
    tasks = []
    for name, family, label in plain:
        tasks.append(_labelled(name, family, train, test, label))
    for name, family, alter in (
        ("swapped words", "syntax", _swapped),
        ("odd word", "meaning", _odd),
    ):
        tasks.append(_altered(name, family, train, test, alter, seed))
    return tasks


def _preposition(sentence: Sentence) -> str | None:
    found = [lemma for lemma, tag in zip(sentence.lemmas, sentence.upos, strict=True)
             if tag == "ADP"]  # fmt: skip
    return found[0] if len(found) == 1 else None


def _top(sentence: Sentence) -> str:
    def shown(tree) -> str:
        inner = " ".join(child.label for child in tree.children)
        return f"{tree.label}({inner})" if tree.label == "VP" else tree.label

    return " ".join(shown(child) for child in sentence.gold.tree.children)


def _labelled(name, family, train, test, label) -> SentenceTask:
    rows = [(s, label(s), part) for part, bank in ((False, train), (True, test)) for s in bank]
    counts = Counter(found for _, found, in_test in rows if not in_test and found is not None)
    kept = [row for row in rows if row[1] is not None and counts[row[1]] >= _RARE]
    if not any(row[2] for row in kept):
        raise ValueError(f"{name}: no label of a test sentence has {_RARE} training sentences")
    return SentenceTask(name, family, *(tuple(column) for column in zip(*kept, strict=True)))


def _altered(name, family, train, test, alter, seed) -> SentenceTask:
    """Half of the sentences altered; those that cannot be are left out."""
    draw = np.random.default_rng(seed)
    rows = []
    for in_test, bank in ((False, train), (True, test)):
        for number, sentence in enumerate(bank):
            made = alter(sentence, draw)
            if made is not None:
                changed = number % 2 == 0
                rows.append((made if changed else sentence, changed, in_test))
    return SentenceTask(name, family, *(tuple(column) for column in zip(*rows, strict=True)))


def _swapped(sentence: Sentence, draw: np.random.Generator) -> Sentence | None:
    """Two different neighbours exchanged, final punctuation left in place."""
    words = list(sentence.words)
    places = [i for i in range(len(words) - 2) if words[i].lower() != words[i + 1].lower()]
    if not places:
        return None
    i = int(draw.choice(places))
    words[i], words[i + 1] = words[i + 1], words[i]
    return replace(sentence, words=tuple(words), text=join_words(words), gold=None)


def _odd(sentence: Sentence, draw: np.random.Generator) -> Sentence | None:
    """One noun, verb or adjective replaced by another of the same form."""
    other = nonsense(sentence, int(draw.integers(1 << 30)))
    places = [
        i for i, tag in enumerate(sentence.upos)
        if tag in ("NOUN", "VERB", "ADJ") and sentence.lemmas[i] != other.lemmas[i]
    ]  # fmt: skip
    if not places:
        return None
    i = int(draw.choice(places))
    words, lemmas = list(sentence.words), list(sentence.lemmas)
    words[i], lemmas[i] = other.words[i], other.lemmas[i]
    fix_articles(words, lemmas)
    return replace(
        sentence, words=tuple(words), lemmas=tuple(lemmas), text=join_words(words), gold=None
    )


def mean_vectors(
    encoder: Encoder,
    tasks: Sequence[SentenceTask],
    sentences: Sequence[Sentence] = (),
    vectors: TreebankVectors | None = None,
) -> dict[str, np.ndarray]:
    """text -> [S, D] mean word vector of every sentence of the tasks, each encoded once.

    Args:
        sentences, vectors: sentences whose vectors are known already.
    """
    known: dict[str, np.ndarray] = {}
    if vectors is not None:
        known = _by_text(sentences, vectors)
    needed = {s.text: s for task in tasks for s in task.sentences if s.text not in known}
    if needed:
        new = list(needed.values())
        known |= _by_text(new, treebank_vectors(encoder, new))
    return known


def _by_text(sentences: Sequence[Sentence], vectors: TreebankVectors) -> dict[str, np.ndarray]:
    means = vectors.means()
    return {sentence.text: means[:, i] for i, sentence in enumerate(sentences)}


def probe_sentences(
    known: dict[str, np.ndarray], task: SentenceTask, *, seed: int = 0, model: str
) -> LayerScores:
    """Ridge probes of one task on mean vectors.

    Args:
        known: text -> [S, D], see :func:`mean_vectors`.

    Raises:
        KeyError: a sentence without a vector.
    """
    features = np.stack([known[s.text] for s in task.sentences], axis=1)
    split = task.split(seed=seed)
    found = probe_layers(features, task.labels, split, kind="ridge", seed=seed, model=model)
    return scores_of(found, split.test.tolist(), seed)


def order_of_sentences(encoder: Encoder, *, seed: int = 0) -> LayerScores:
    """Do two neighbouring sentences of a short text stand in their order, or exchanged?

    Texts are cut into pairs; both orders of every pair are there, in cross-validation over texts,
    so that only how the two hang together can tell. Stands for the exchanged clauses of
    Conneau et al. 2018.
    """
    texts, labels, groups = [], [], []
    for number, passage in enumerate(passages()):
        for first, second in zip(passage.sentences[::2], passage.sentences[1::2], strict=False):
            texts += [f"{first} {second}", f"{second} {first}"]
            labels += ["in order", "exchanged"]
            groups += [number, number]
    states = collect(encoder, texts, reduce="text_mean").arrays["hidden_states"]
    return cross_probe(states, labels, groups, seed=seed, model=encoder.name)
