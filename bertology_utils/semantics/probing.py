"""Can meaning be read off the layers? One linear probe for each task and layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..encoder import Encoder
from ..probes import ProbeResult, Split, probe_layers
from ..resampling import Estimate, percentile_interval, resampled_means
from .errors import SemanticsError
from .tasks import SpanTask, span_vectors


@dataclass(frozen=True, eq=False)
class SemanticProbes:
    """Linear probes on every layer for several tasks.

    Attributes:
        layers: task -> one result a layer; 0 is the embedding output.
        sentences: task -> sentence of every test example, for resampling.
        model: name of the model.
        seed: of splits and resampling.
    """

    layers: Mapping[str, tuple[ProbeResult, ...]]
    sentences: Mapping[str, np.ndarray]
    model: str
    seed: int

    def curve(self, task: str) -> list[Estimate]:
        """Accuracy at every layer, with the interval over sentences."""
        return [
            Estimate(
                value=probe.accuracy,
                unit="share",
                n=probe.n,
                model=self.model,
                seed=self.seed,
                interval=probe.interval,
                baselines={"majority": probe.majority},
            )  # fmt: skip
            for probe in self.layers[task]
        ]

    def best(self) -> tuple[int, Estimate]:
        """The best layer for all tasks together, and the mean accuracy of the tasks there.

        The layer is chosen on one half of the test sentences and scored on the other, so that
        choosing it does not flatter. Baselines: ``majority`` and ``embedding_layer``, both on the
        scored half.
        """
        chosen = np.mean([self._means(task, 0) for task in self.layers], axis=0)
        layer = int(chosen.argmax())
        values = np.array([self._means(task, 1) for task in self.layers])
        draws = np.mean([self._draws(task, layer) for task in self.layers], axis=0)
        value = float(values[:, layer].mean())
        counts = [int((self.sentences[task] % 2 == 1).sum()) for task in self.layers]
        result = Estimate(
            value=value, unit="share", n=sum(counts), model=self.model, seed=self.seed,
            interval=percentile_interval(draws, value),
            baselines={
                "majority": float(np.mean([p[0].majority for p in self.layers.values()])),
                "embedding_layer": float(values[:, 0].mean()),
            },
        )  # fmt: skip
        return layer, result

    def _means(self, task: str, half: int) -> np.ndarray:
        keep = self.sentences[task] % 2 == half
        return np.array([probe.correct[keep].mean() for probe in self.layers[task]])

    def _draws(self, task: str, layer: int) -> np.ndarray:
        keep = self.sentences[task] % 2 == 1
        hits, groups = self.layers[task][layer].correct[keep], self.sentences[task][keep]
        _, codes = np.unique(groups, return_inverse=True)
        sums = np.bincount(codes, weights=hits.astype(float))
        return resampled_means(sums, np.bincount(codes), seed=self.seed)


def semantic_probes(
    encoder: Encoder, tasks: Sequence[SpanTask], *, width: int = 96, seed: int = 0
) -> SemanticProbes:
    """Probe every layer for every task (after Tenney et al. 2019, who mix the layers).

    Every span is reduced to ``width`` principal components of the training part; a pair of spans
    a, b becomes [a, b, a * b], since a linear probe on a and b alone cannot compare them.

    Raises:
        SemanticsError: no tasks, or two of one name.
        OneClassError, TooFewExamplesError: as in ``probes``.
    """
    names = [task.name for task in tasks]
    if not names or len(set(names)) != len(names):
        raise SemanticsError(f"tasks need names of their own, got {names}")
    layers, sentences = {}, {}
    for task in tasks:
        split = task_split(task, seed=seed)
        features = paired(span_vectors(encoder, task), len(task.spans[0]), split, width)
        groups = list(task.sentence_of)
        layers[task.name] = probe_each(
            features, task.labels, split, groups=groups, seed=seed, model=encoder.name
        )
        sentences[task.name] = np.array(groups)[split.test]
    return SemanticProbes(layers, sentences, encoder.name, seed)


def probe_each(
    features: np.ndarray,
    labels: Sequence[str],
    split: Split,
    *,
    groups: Sequence[int],
    seed: int,
    model: str,
) -> tuple[ProbeResult, ...]:
    """``probe_layers`` one layer at a time, each with the columns that vary in it."""
    found = []
    for layer, rows in enumerate(features):
        # Empty columns make the probe's curvature singular, and layers differ in how many.
        varies = np.ptp(rows[split.train], axis=0) > 0
        (probe,) = probe_layers(
            rows[None][:, :, varies], labels, split, groups=groups, seed=seed, model=model
        )
        found.append(replace(probe, layer=layer))
    return tuple(found)


def task_split(task: SpanTask, *, dev: float = 0.15, seed: int = 0) -> Split:
    """The task's own test part; whole sentences of the rest are set aside for development."""
    test = np.array(task.is_test)
    sentence_of = np.array(task.sentence_of)
    rest = np.unique(sentence_of[~test])
    n_dev = max(1, round(dev * len(rest)))
    held = np.random.default_rng(seed).permutation(rest)[:n_dev]
    in_dev = ~test & np.isin(sentence_of, held)
    return Split(
        np.flatnonzero(~test & ~in_dev), np.flatnonzero(in_dev), np.flatnonzero(test), seed
    )


def paired(vectors: np.ndarray, spans: int, split: Split, width: int) -> np.ndarray:
    """[S, N, D * spans] -> [S, N, F]: components of one span, or of two as [a, b, a * b].

    Raises:
        SemanticsError: neither one span nor two.
    """
    if spans not in (1, 2):
        raise SemanticsError(f"{spans} spans an example; one or two are handled")
    sides = [components(side, split.train, width) for side in np.split(vectors, spans, axis=2)]
    if spans == 2:
        sides.append(sides[0] * sides[1])
    return np.concatenate(sides, axis=2)


def components(vectors: np.ndarray, train: np.ndarray, width: int) -> np.ndarray:
    """[S, N, D] -> [S, N, width] principal components of the rows ``train``, of unit variance.

    A layer whose training rows span fewer dimensions (a few names in the embedding layer) has
    zeros in the columns that are left.
    """
    out = np.zeros((*vectors.shape[:2], width), dtype=np.float32)
    for layer, rows in enumerate(vectors):
        known = rows[train].astype(float)
        centre = known.mean(0)
        # The D x D table is much smaller than the rows: cheaper than their decomposition.
        values, axes = np.linalg.eigh(np.cov(known, rowvar=False, bias=True))
        order = np.argsort(values)[::-1][:width]
        order = order[values[order] > 1e-6 * values[order[0]]]
        found = (rows - centre) @ axes[:, order] / np.sqrt(values[order])
        out[layer, :, : len(order)] = found
    return out
