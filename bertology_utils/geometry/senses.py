"""Do the vectors of a word cluster by sense? (Wiedemann et al. 2019; Schmidt and Hofmann 2020)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..activations import collect
from ..encoder import Encoder
from ..stimuli import SenseExample
from ..words import WordList
from .rows import NAME, TooFewError, rows_at, unit_rows
from .scores import LayerScores


@dataclass(frozen=True, eq=False)
class SenseVectors:
    """Vectors of ambiguous words in context, in every layer.

    Attributes:
        vectors: [S, N, D], S = L + 1.
        words, senses: [N] the word and its sense.
        contexts: [N] number of the hand-written context; examples of one context share most of
            their words, so that they must not vouch for each other.
        model: the encoder's name.
    """

    vectors: np.ndarray
    words: np.ndarray
    senses: np.ndarray
    contexts: np.ndarray
    model: str

    def __len__(self) -> int:
        return len(self.words)

    def of(self, word: str) -> SenseVectors:
        """The examples of one word.

        Raises:
            KeyError: no such word.
        """
        keep = self.words == word
        if not keep.any():
            raise KeyError(f"no examples of {word!r}; words: {', '.join(np.unique(self.words))}")
        return SenseVectors(
            self.vectors[:, keep], self.words[keep], self.senses[keep], self.contexts[keep],
            self.model,
        )  # fmt: skip


def sense_vectors(encoder: Encoder, examples: Sequence[SenseExample]) -> SenseVectors:
    """Encode sense-tagged examples and keep the vector of the tagged word.

    Raises:
        TooFewError: no examples.
        TextTooLongError, AlignmentError: naming the text.
    """
    if not examples:
        raise TooFewError("no examples")
    collected = collect(encoder, [WordList(tuple(e.words), e.text) for e in examples])
    rows = rows_at(collected, [(i, e.target) for i, e in enumerate(examples)])
    contexts: dict[tuple, int] = {}
    numbers = [contexts.setdefault((e.word, e.sense, e.frame), len(contexts)) for e in examples]
    return SenseVectors(
        collected.arrays[NAME][:, rows],
        np.array([e.word for e in examples]),
        np.array([e.sense for e in examples]),
        np.array(numbers),
        encoder.name,
    )


def nearest_neighbour_accuracy(data: SenseVectors, *, seed: int = 0) -> LayerScores:
    """Share of examples whose nearest other example of the word (by cosine) has the same sense.

    Neighbours from the example's own context do not count. The control ``majority`` always
    answers the word's most frequent sense; intervals resample contexts.

    Raises:
        TooFewError: no word with two senses in two contexts each.
    """
    right = np.full((len(data), len(data.vectors)), np.nan)
    for index in _testable(data):
        blocked = data.contexts[index][:, None] == data.contexts[index][None, :]
        for layer, vectors in enumerate(data.vectors[:, index]):
            unit = unit_rows(vectors)
            cosines = np.where(blocked, -np.inf, unit @ unit.T)
            found = data.senses[index][cosines.argmax(1)]
            right[index, layer] = found == data.senses[index]
    return _by_context(data, right, "sense of the nearest neighbour", seed)


def centroid_accuracy(data: SenseVectors, *, seed: int = 0) -> LayerScores:
    """Share of examples nearest (by cosine) to the centre of their own sense.

    Every centre is computed without the example's own context. Raises and controls as
    :func:`nearest_neighbour_accuracy`.
    """
    right = np.full((len(data), len(data.vectors)), np.nan)
    for index in _testable(data):
        names, sense = np.unique(data.senses[index], return_inverse=True)
        context = data.contexts[index]
        for layer, vectors in enumerate(data.vectors[:, index]):
            unit = unit_rows(vectors)
            totals = np.stack([unit[sense == k].sum(0) for k in range(len(names))])
            for number in np.unique(context):
                own = context == number
                centres = totals.copy()
                # One context belongs to one sense, so that only its centre changes.
                centres[sense[own][0]] -= unit[own].sum(0)
                guess = (unit[own] @ unit_rows(centres).T).argmax(1)
                right[index[own], layer] = guess == sense[own]
    return _by_context(data, right, "nearest sense centre", seed)


def few_shot_accuracy(
    data: SenseVectors, *, shots: int = 5, repeats: int = 20, seed: int = 0
) -> LayerScores:
    """Accuracy of the nearest centre of ``shots`` examples per sense, on examples of contexts that
    gave none of them; mean over ``repeats`` draws. Items are words.

    Raises:
        TooFewError: no word with two senses in two contexts each.
        ValueError: ``shots`` or ``repeats`` below 1.
    """
    if shots < 1 or repeats < 1:
        raise ValueError(f"shots and repeats start at 1, got {shots} and {repeats}")
    draw = np.random.default_rng(seed)
    sums, counts, usual = [], [], []
    for index in _testable(data):
        names, sense = np.unique(data.senses[index], return_inverse=True)
        hits, n, frequent = np.zeros(len(data.vectors)), 0, 0.0
        for _ in range(repeats):
            taught = np.concatenate([_shots(draw, data, index, sense == k, shots)
                                     for k in range(len(names))])  # fmt: skip
            seen = np.isin(data.contexts[index], data.contexts[index][taught])
            test = np.flatnonzero(~seen)
            if not len(test):
                continue
            n += len(test)
            frequent += np.bincount(sense[test]).max()
            for layer, vectors in enumerate(data.vectors[:, index]):
                unit = unit_rows(vectors)
                kinds = sense[taught]
                centres = np.stack([unit[taught[kinds == k]].mean(0) for k in range(len(names))])
                guess = (unit[test] @ unit_rows(centres).T).argmax(1)
                hits[layer] += (guess == sense[test]).sum()
        if n:
            # Every word counts alike, however many examples it has.
            sums.append(hits / n)
            counts.append(1.0)
            usual.append(frequent / n)
    if not sums:
        raise TooFewError("no context is left to test on")
    control = {"majority": np.full(len(data.vectors), float(np.mean(usual)))}
    name = f"nearest centre of {shots} examples"
    return LayerScores(
        name, "share", np.stack(sums), np.array(counts), data.model, seed, control
    )  # fmt: skip


def silhouette(data: SenseVectors, *, seed: int = 0) -> LayerScores:
    """Mean silhouette by sense, with cosine distance, averaged over words (Rousseeuw 1987).

    1 for tight, distant clusters, 0 for none, negative for mixed ones. Unlike in the accuracies,
    examples of one context count as neighbours. The control ``shuffled`` deals the senses of a
    word to its contexts at random.

    Raises:
        TooFewError: no word with two senses in two contexts each.
    """
    draw = np.random.default_rng(seed)
    curves, controls = [], []
    for index in _testable(data):
        _, sense = np.unique(data.senses[index], return_inverse=True)
        contexts, where = np.unique(data.contexts[index], return_inverse=True)
        of_context = np.array([sense[where == k][0] for k in range(len(contexts))])
        dealt = draw.permutation(of_context)[where]
        units = [unit_rows(vectors) for vectors in data.vectors[:, index]]
        curves.append([_silhouette(1 - unit @ unit.T, sense) for unit in units])
        controls.append([_silhouette(1 - unit @ unit.T, dealt) for unit in units])
    return LayerScores(
        "silhouette by sense",
        "cosine",
        np.array(curves),
        np.ones(len(curves)),
        data.model,
        seed,
        {"shuffled": np.mean(controls, axis=0)},
    )


def plane(vectors: np.ndarray) -> np.ndarray:
    """[N, D] -> [N, 2] principal components, each turned so that its largest entry is positive."""
    centred = np.asarray(vectors, float) - np.mean(vectors, axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    found = np.zeros((len(centred), 2))
    kept = min(2, len(s))
    found[:, :kept] = u[:, :kept] * s[:kept]
    strongest = np.abs(found).argmax(0)
    return found * np.where(found[strongest, [0, 1]] < 0, -1.0, 1.0)


def _silhouette(distance: np.ndarray, label: np.ndarray) -> float:
    one_hot = np.eye(label.max() + 1)[label]
    sizes = one_hot.sum(0)
    means = distance @ one_hot  # sums to each cluster
    own = means[np.arange(len(label)), label] / np.maximum(sizes[label] - 1, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        others = np.where(one_hot > 0, np.inf, means / sizes).min(1)
    scale = np.maximum(own, others)
    score = np.divide(others - own, scale, out=np.zeros_like(own), where=scale > 0)
    return float(np.where(sizes[label] > 1, score, 0.0).mean())


def _testable(data: SenseVectors) -> list[np.ndarray]:
    """Rows of every word of which two senses or more occur in two contexts or more."""
    found = []
    for word in np.unique(data.words):
        index = np.flatnonzero(data.words == word)
        senses = data.senses[index]
        rich = [s for s in np.unique(senses)
                if len(np.unique(data.contexts[index[senses == s]])) > 1]  # fmt: skip
        if len(rich) > 1:
            found.append(index[np.isin(senses, rich)])
    if not found:
        raise TooFewError("no word with two senses in two contexts each")
    return found


def _by_context(data: SenseVectors, right: np.ndarray, name: str, seed: int) -> LayerScores:
    """Group examples by context, the unit of the bootstrap, and add the majority control."""
    scored = ~np.isnan(right[:, 0])
    _, group = np.unique(data.contexts[scored], return_inverse=True)
    sums = np.zeros((group.max() + 1, right.shape[1]))
    np.add.at(sums, group, right[scored])
    frequent = 0
    for word in np.unique(data.words[scored]):
        senses = data.senses[scored & (data.words == word)]
        frequent += np.unique(senses, return_counts=True)[1].max()
    control = {"majority": np.full(right.shape[1], frequent / scored.sum())}
    return LayerScores(name, "share", sums, np.bincount(group), data.model, seed, control)


def _shots(
    draw: np.random.Generator, data: SenseVectors, index: np.ndarray, mine: np.ndarray, shots: int
) -> np.ndarray:
    """Positions within ``index`` of examples that teach one sense; one context stays unseen."""
    context = data.contexts[index]
    available = draw.permutation(np.unique(context[mine]))[:-1]
    pool = draw.permutation(np.flatnonzero(mine & np.isin(context, available)))
    # Different contexts first: five variants of one context would teach little.
    rank = np.zeros(len(pool))
    for i, place in enumerate(pool):
        rank[i] = (context[pool[:i]] == context[place]).sum()
    return pool[np.argsort(rank, kind="stable")][:shots]
