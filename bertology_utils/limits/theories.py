"""Where a probe places a task: other labels for the same words, and the pipeline with intervals.

Kuznetsov and Gurevych 2020 (doi:10.18653/v1/2020.emnlp-main.13): the linguistic theory behind the
labels moves the layers. Niu et al. 2022 (COLING) doubt that the layers form a pipeline at all.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..probes import EdgeResult, Split, edge_probe, expected_layer, group_split
from ..resampling import Estimate, mean_over_runs, percentile_interval
from ..stimuli import Sentence
from .estimates import magnitude

#: The steps of the pipeline of Tenney et al. 2019 that our grammar has gold labels for, in order.
STEPS = ("parts of speech", "constituents", "dependencies", "kinds of entities", "roles")
#: small, so that tasks with few examples get enough steps to learn anything at all
_BATCH = 48


@dataclass(frozen=True, eq=False)
class LabelledSpans:
    """E spans (or pairs of spans) of rows, their labels, and the sentence of each."""

    spans: tuple
    labels: tuple[Hashable, ...]
    groups: tuple[int, ...]

    def split(self, sentences: Split) -> Split:
        """The examples of each part of a split over sentences."""
        owner = np.array(self.groups)
        parts = (np.flatnonzero(np.isin(owner, part))
                 for part in (sentences.train, sentences.dev, sentences.test))  # fmt: skip
        return Split(*parts, sentences.seed)


def labelled_spans(sentences: Sequence[Sentence], step: str) -> LabelledSpans:
    """Gold labels of one step. Rows are the words of all sentences, one after the other.

    Labels with fewer than ten examples are left out: there would be nothing to learn them from.

    Args:
        step: one of :data:`STEPS`.

    Raises:
        KeyError: unknown step.
        ValueError: a sentence that did not come from the grammar.
    """
    if step not in STEPS:
        raise KeyError(f"unknown step {step!r}; known: {', '.join(STEPS)}")
    found, start = [], 0
    for number, sentence in enumerate(sentences):
        if sentence.gold is None:
            raise ValueError(f"no gold analysis of {sentence.text!r}")
        found += [(spans, label, number) for spans, label in _examples(sentence, step, start)]
        start += len(sentence)
    counts: dict[Hashable, int] = {}
    for _, label, _ in found:
        counts[label] = counts.get(label, 0) + 1
    return LabelledSpans(*zip(*(row for row in found if counts[row[1]] >= 10), strict=True))


def _examples(sentence: Sentence, step: str, start: int):
    def word(i: int) -> tuple[int, int]:
        return start + i, start + i + 1

    gold = sentence.gold
    if step == "parts of speech":
        return [(word(i), tag) for i, tag in enumerate(sentence.upos)]
    if step == "constituents":
        inner = [(label, a, b) for label, a, b in gold.tree.spans() if 1 < b - a < len(sentence)]
        return [((start + a, start + b), label) for label, a, b in inner]
    if step == "dependencies":
        return [((word(h), word(d)), rel) for h, d, rel in sentence.edges() if rel != "punct"]
    if step == "kinds of entities":
        return [(word(i), kind) for i, kind in enumerate(gold.kinds) if kind]
    return [((word(r.predicate), word(r.argument)), r.name) for r in gold.roles]


def word_theories(sentences: Sequence[Sentence]) -> dict[str, list[str]]:
    """Two theories about the same words: the relation to the head, and the phrase a word is in.

    Returns:
        ``"dependency"`` and ``"phrase"`` -> one label per word of all sentences.
    """
    return {
        "dependency": [rel for s in sentences for rel in s.deprels],
        "phrase": [s.gold.tree.ancestors(i)[0] for s in sentences for i in range(len(s))],
    }


@dataclass(frozen=True, eq=False)
class Theories:
    """Edge probes for two label sets over the same words, in several runs.

    Attributes:
        runs: name of the label set -> a probe per run (another split and other first weights).
        names: of the two label sets.
    """

    runs: dict[str, tuple[EdgeResult, ...]]
    names: tuple[str, str]

    def centre(self, name: str) -> Estimate:
        """Centre of gravity of the mix, mean over runs, in layers."""
        return self._over([run.centre_of_gravity for run in self.runs[name]])

    @property
    def distance(self) -> Estimate:
        """Distance between the two centres; runs are paired."""
        first, second = (self.runs[name] for name in self.names)
        gaps = [b.centre_of_gravity - a.centre_of_gravity
                for a, b in zip(first, second, strict=True)]  # fmt: skip
        return magnitude(self._over(gaps))

    def _over(self, values: Sequence[float]) -> Estimate:
        return mean_over_runs(values, unit="layers", model=self.runs[self.names[0]][0].model)


def compare_theories(
    features: np.ndarray,
    theories: dict[str, Sequence[str]],
    sentence: Sequence[int],
    *,
    runs: int = 4,
    epochs: int = 12,
    model: str,
) -> Theories:
    """Train edge probes of single words for two label sets.

    Args:
        features: [L + 1, N, D] word vectors.
        theories: two names -> N labels.
        sentence: [N] sentence of every word.
        runs: splits and seeds.
        epochs: of each probe.
        model: name for the results.

    Raises:
        ValueError: not two label sets.
    """
    if len(theories) != 2:
        raise ValueError(f"two label sets are compared, not {len(theories)}")
    words = [(i, i + 1) for i in range(features.shape[1])]
    groups = list(sentence)
    splits = [group_split(groups, seed=seed) for seed in range(runs)]
    found = {
        name: tuple(
            edge_probe(features, words, labels, split, hidden=32, epochs=epochs, batch_size=96,
                       seed=seed, groups=groups, model=model)
            for seed, split in enumerate(splits))
        for name, labels in theories.items()
    }  # fmt: skip
    return Theories(found, tuple(theories))


@dataclass(frozen=True, eq=False)
class Pipeline:
    """Cumulative edge probes of all steps on one split of the sentences.

    Attributes:
        steps: step -> probe.
        draws: step -> [R] bootstrap replicates of the expected layer; the sentences of a replicate
            are the same for all steps; NaN where no layer adds anything.
        n: test sentences.
        model: name of the encoder; seed: of probes and bootstrap.
    """

    steps: dict[str, EdgeResult]
    draws: dict[str, np.ndarray]
    n: int
    model: str
    seed: int

    def expected(self, step: str) -> Estimate | None:
        """Expected layer of a step; None where no layer above the embeddings adds anything."""
        value = self.steps[step].expected_layer
        if value is None:
            return None
        return Estimate(
            value=value, unit="layers", n=self.steps[step].n_test, model=self.model,
            seed=self.seed, interval=percentile_interval(self.draws[step], value),
        )  # fmt: skip

    def later(self, first: str, second: str) -> Estimate | None:
        """Expected layer of the second step minus that of the first, on the same sentences."""
        ends = [self.steps[step].expected_layer for step in (first, second)]
        if None in ends:
            return None
        value = ends[1] - ends[0]
        draws = self.draws[second] - self.draws[first]
        return Estimate(
            value=value, unit="layers", n=self.n, model=self.model, seed=self.seed,
            interval=percentile_interval(draws, value),
        )  # fmt: skip

    @property
    def neighbours(self) -> list[tuple[str, str, Estimate | None]]:
        """Every step, the next one, and how much later the next one is."""
        names = list(self.steps)
        return [(a, b, self.later(a, b)) for a, b in zip(names, names[1:], strict=False)]

    @property
    def open_share(self) -> Estimate:
        """Share of neighbouring steps whose order the bootstrap leaves open."""
        left = [gap is None or gap.interval[0] <= 0 <= gap.interval[1]
                for _, _, gap in self.neighbours]  # fmt: skip
        return Estimate(
            value=float(np.mean(left)), unit="share", n=len(left), model=self.model,
            seed=self.seed,
        )  # fmt: skip


def pipeline(
    features: np.ndarray,
    sentences: Sequence[Sentence],
    split: Split,
    *,
    epochs: int = 12,
    resamples: int = 500,
    model: str,
    seed: int = 0,
) -> Pipeline:
    """Probe every step of :data:`STEPS`, and resample the test sentences for all at once.

    Args:
        features: [L + 1, N, D] word vectors of all sentences.
        split: over sentences.
        epochs, resamples, model, seed: as usual.

    Raises:
        As :func:`bertology_utils.probes.edge_probe`.
    """
    results, tables = {}, {}
    place = {int(s): i for i, s in enumerate(split.test)}
    for step in STEPS:
        spans = labelled_spans(sentences, step)
        part = spans.split(split)
        result = edge_probe(
            features, spans.spans, spans.labels, part, hidden=32, epochs=epochs,
            batch_size=_BATCH, seed=seed, groups=spans.groups, model=model,
        )  # fmt: skip
        owner = np.array([place[spans.groups[i]] for i in part.test])
        hits = [np.bincount(owner, weights=row, minlength=len(place)) for row in result.correct]
        results[step] = result
        tables[step] = np.stack(hits), np.bincount(owner, minlength=len(place))
    rng = np.random.default_rng(seed)
    times = rng.multinomial(len(place), np.full(len(place), 1 / len(place)), size=resamples)
    draws = {}
    for step, (hits, counts) in tables.items():
        scores = (times @ hits.T) / np.maximum(times @ counts, 1)[:, None]
        middles = [expected_layer(row) for row in scores]
        draws[step] = np.array([np.nan if m is None else m for m in middles])
    return Pipeline(results, draws, len(place), model, seed)
