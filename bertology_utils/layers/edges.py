"""Seven steps of the classical pipeline as edge-probing tasks, and three readings of their probes.

Tenney et al. 2019 (P19-1452). The readings: the *best layer* of probes that see one layer each,
the *expected layer* (layers weighted by what each adds to a probe that sees all below), and the
*mixing centre* (mean layer under the weights of a probe that sees all).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..activations import collect
from ..encoder import Encoder
from ..geometry import LayerScores
from ..limits import labelled_spans
from ..probes import EdgeResult, Split, edge_probe, edge_probe_layers, expected_layer
from ..resampling import Estimate, percentile_interval, rank_correlation, student_reach
from ..semantics import SpanTask, coreference_task, held_out_subjects, relation_task
from ..semantics.probing import task_split
from ..stimuli import Sentence, coreference
from ..syntax import TreebankVectors
from ..words import WordList

#: task -> (expected layer in BERT-base, in BERT-large), as computed from the authors' outputs
PUBLISHED: Mapping[str, tuple[float, float]] = {
    "parts of speech": (1.76, 3.39),
    "constituents": (2.38, 3.79),
    "dependencies": (2.52, 5.69),
    "kinds of entities": (2.42, 4.64),
    "roles": (2.59, 6.54),
    "coreference": (3.62, 9.47),
    "relations": (4.16, 9.40),
}
#: task -> divergence of the mixing weights of BERT-large from even ones, in nats (the same outputs)
PUBLISHED_DIVERGENCE: Mapping[str, float] = {
    "parts of speech": 0.19,
    "constituents": 0.83,
    "dependencies": 0.87,
    "kinds of entities": 0.06,
    "roles": 0.46,
    "coreference": 0.50,
    "relations": 0.01,
}
#: the tasks that are about form; the others are about meaning
SYNTACTIC = ("parts of speech", "constituents", "dependencies")
RESAMPLES = 500
#: a probe trained on few examples needs many small steps
_BATCH = 48


@dataclass(frozen=True, eq=False)
class EdgeTask:
    """E labelled spans, or pairs of spans, over rows of word vectors.

    Attributes:
        name: a key of :data:`PUBLISHED`.
        features: [S, N, D] word vectors.
        spans: E spans of rows, or pairs of them.
        labels: [E]; groups: [E] sentence of each.
        split: over the E examples.
    """

    name: str
    features: np.ndarray
    spans: tuple
    labels: tuple[Hashable, ...]
    groups: tuple[int, ...]
    split: Split

    def limited(self, most: int, seed: int) -> EdgeTask:
        """At most ``most`` training and half as many development examples, drawn at random."""
        draw = np.random.default_rng(seed)
        parts = [
            np.sort(draw.permutation(part)[:size])
            for part, size in (
                (self.split.train, most), (self.split.dev, most // 2), (self.split.test, None)
            )
        ]  # fmt: skip
        kept = np.sort(np.concatenate(parts))
        split = Split(*(np.searchsorted(kept, part) for part in parts), self.split.seed)
        columns = (self.spans, self.labels, self.groups)
        spans, labels, groups = (tuple(column[i] for i in kept) for column in columns)
        return replace(self, spans=spans, labels=labels, groups=groups, split=split)


def edge_tasks(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    vectors: TreebankVectors,
    split: Split,
    *,
    n: int = 240,
    most: int = 400,
    seed: int = 0,
) -> list[EdgeTask]:
    """The seven tasks of :data:`PUBLISHED`: five on a treebank, two on sentences of their own.

    No task has more than ``most`` training examples: with more examples a probe takes more steps,
    and its mixing weights move further from even ones whatever the task.

    Args:
        encoder: whose vectors the last two tasks are about.
        sentences, vectors: a treebank of the grammar and its word vectors.
        split: over its sentences.
        n: training sentences of the coreference task, half as many for testing; relations take at
            most a sixth of it for each kind.
        most: training examples of a task, drawn at random where there are more.
        seed: of the sentences of the last two, and of that draw.
    """
    tasks = []
    for name in list(PUBLISHED)[:5]:
        found = labelled_spans(sentences, name)
        tasks.append(
            EdgeTask(name, vectors.words, found.spans, found.labels, found.groups,
                     found.split(split))
        )  # fmt: skip
    people = coreference(n + n // 2, seed)
    for name, task in (
        ("coreference", coreference_task(people[:n], people[n:])),
        ("relations", relation_task(*held_out_subjects(max(2, n // 6)))),
    ):
        tasks.append(_from_spans(name, encoder, task, seed))
    return [task.limited(most, seed) for task in tasks]


def _from_spans(name: str, encoder: Encoder, task: SpanTask, seed: int) -> EdgeTask:
    found = collect(encoder, [WordList(words) for words in task.sentences])
    start = np.searchsorted(found.text_index, np.arange(len(task.sentences)))
    spans = tuple(
        tuple((int(start[owner]) + a, int(start[owner]) + b) for a, b in both)
        for owner, both in zip(task.sentence_of, task.spans, strict=True)
    )
    split = task_split(task, dev=0.2, seed=seed)
    states = found.arrays["hidden_states"]
    return EdgeTask(name, states, spans, task.labels, task.sentence_of, split)


@dataclass(frozen=True, eq=False)
class Readings:
    """One task read three ways. S layers, T test sentences, R bootstrap replicates.

    Attributes:
        single: accuracy of the same classifier on each layer alone, mean over the runs.
        runs: cumulative edge probes, one run a seed.
        expected_draws: [R] replicates of the expected layer, mean over runs, inside 0 .. L.
        best_draws: [R] replicates of the best layer, on the same sentences.
        gain_draws: [R] replicates of what all layers add to layer 0, mean over runs.
        model: name of the encoder; seed: of the bootstrap.
    """

    single: LayerScores
    runs: tuple[EdgeResult, ...]
    expected_draws: np.ndarray
    best_draws: np.ndarray
    gain_draws: np.ndarray
    model: str
    seed: int

    @property
    def depth(self) -> int:
        """L."""
        return self.single.n_layers - 1

    @property
    def best_layer(self) -> Estimate:
        """Layer of the best probe that sees one layer."""
        return self._estimate(float(self.single.values.argmax()), self.best_draws)

    @property
    def gain(self) -> Estimate:
        """Accuracy of the probe over all layers minus over layer 0 alone, mean over runs."""
        value = float(np.mean([run.cumulative[-1] - run.cumulative[0] for run in self.runs]))
        return Estimate(
            value=value, unit="share difference", n=self.single.n, model=self.model,
            seed=self.seed, interval=percentile_interval(self.gain_draws, value),
        )  # fmt: skip

    @property
    def expected(self) -> Estimate | None:
        """Expected layer, mean over runs.

        None where the interval of :attr:`gain` holds 0, or a run gains nothing: gains are divided
        by their sum, so that the mean says nothing where there is no sum to speak of.
        """
        found = [run.expected_layer for run in self.runs]
        if None in found or self.gain.interval[0] <= 0:
            return None
        return self._estimate(
            float(np.clip(np.mean(found), 0, self.depth)), self.expected_draws
        )

    @property
    def centre(self) -> Estimate:
        """Mixing centre, mean over runs, with Student's interval over them."""
        return self._over_runs([run.centre_of_gravity for run in self.runs], "layers")

    @property
    def divergence(self) -> float:
        """Kullback-Leibler divergence of mixing weights from even ones, mean over runs, in nats:
        0 if all layers weigh the same, log(L + 1) if one has all the weight."""
        return float(np.mean([_from_even(run.mix) for run in self.runs]))

    @property
    def distance(self) -> Estimate:
        """Largest relative distance between any two of the three readings that are defined.

        The interval resamples test sentences; the mixing weights of the trained probes stay.
        """
        def spread(best, expected):
            rows = np.stack(np.broadcast_arrays(best, expected, self.centre.value))
            return (np.nanmax(rows, axis=0) - np.nanmin(rows, axis=0)) / self.depth

        expected = np.nan if self.expected is None else self.expected.value
        value = float(spread(self.best_layer.value, expected))
        draws = spread(self.best_draws, self.expected_draws)
        return Estimate(
            value=value, unit="relative depth", n=self.single.n, model=self.model, seed=self.seed,
            interval=percentile_interval(np.clip(draws, 0, 1), value),
        )  # fmt: skip

    def _estimate(self, value: float, draws: np.ndarray) -> Estimate:
        return Estimate(
            value=value, unit="layers", n=self.single.n, model=self.model, seed=self.seed,
            interval=percentile_interval(draws, value),
        )  # fmt: skip

    def _over_runs(self, values: Sequence[float], unit: str) -> Estimate:
        mean, interval = float(np.mean(values)), None
        if len(values) > 1:
            reach = student_reach(values)
            interval = (mean - reach, mean + reach)
        return Estimate(
            value=mean, unit=unit, n=len(values), model=self.model, seed=self.seed,
            interval=interval,
        )  # fmt: skip


def _from_even(mix: Sequence[float]) -> float:
    weights = np.asarray(mix, float)
    known = weights[weights > 0]
    return float((known * np.log(known * len(weights))).sum())


def read_three_ways(
    task: EdgeTask, *, seeds: Sequence[int] = (0, 1, 2), epochs: int = 10, model: str
) -> Readings:
    """Train edge probes of single layers and cumulative ones of one task.

    One kind of classifier serves all three readings, so that they differ by the question alone.

    Args:
        task: see :func:`edge_tasks`.
        seeds: one run of all probes each.
        epochs: of each.
        model: name for the results.

    Raises:
        ValueError: no seeds.
        As :func:`bertology_utils.probes.edge_probe`.
    """
    if not seeds:
        raise ValueError("needs one seed or more")
    owners = [task.groups[i] for i in task.split.test]
    seed = seeds[0]
    data = (task.features, task.spans, task.labels, task.split)
    recipe = {"hidden": 32, "epochs": epochs, "batch_size": _BATCH}
    runs = tuple(
        edge_probe(*data, **recipe, seed=number, groups=task.groups, model=model)
        for number in seeds
    )
    alone = np.mean([edge_probe_layers(*data, **recipe, seed=number) for number in seeds], axis=0)
    _, code = np.unique(owners, return_inverse=True)
    counts = np.bincount(code)
    single = LayerScores(
        "probe accuracy", "share", np.stack([np.bincount(code, weights=row) for row in alone], 1),
        counts, model, seed, {"majority": np.full(len(alone), runs[0].majority)},
    )  # fmt: skip
    times = np.random.default_rng(seed).multinomial(
        len(counts), np.full(len(counts), 1 / len(counts)), size=RESAMPLES
    )
    below = np.maximum(times @ counts, 1)[:, None]
    middles, gains = [], []
    for run in runs:
        hits = np.stack([np.bincount(code, weights=row) for row in run.correct], axis=1)
        curves = (times @ hits) / below
        found = [expected_layer(row) for row in curves]
        middles.append([np.nan if m is None else m for m in found])
        gains.append(curves[:, -1] - curves[:, 0])
    # Far outside 0 .. L nothing is meant any more: the gains nearly cancel.
    expected = np.clip(np.mean(middles, axis=0), 0, single.n_layers - 1)
    best = ((times @ single.sums) / below).argmax(1).astype(float)
    return Readings(single, runs, expected, best, np.mean(gains, axis=0), model, seed)


def order_correlation(
    readings: Mapping[str, Readings], other: Mapping[str, float] | Mapping[str, Readings]
) -> Estimate | None:
    """Rank correlation of expected layers with published ones, or with those of another model.

    Tasks whose expected layer is not defined are left out; None if fewer than three are left. The
    interval resamples test sentences and, since the claim is about tasks and they are few, tasks.

    Args:
        readings: task -> readings.
        other: task -> expected layer, or readings of another model.
    """
    names = [name for name in readings if name in other]
    ours = [readings[name].expected for name in names]
    theirs = [
        other[name].expected if isinstance(other[name], Readings) else other[name]
        for name in names
    ]
    kept = [k for k in range(len(names)) if ours[k] is not None and theirs[k] is not None]
    if len(kept) < 3:
        return None
    fixed = [getattr(theirs[k], "value", theirs[k]) for k in kept]
    value = float(np.nan_to_num(rank_correlation(np.array([ours[k].value for k in kept]), fixed)))
    table = np.stack([readings[names[k]].expected_draws for k in kept], axis=1)
    second = np.stack(
        [
            other[names[k]].expected_draws
            if isinstance(other[names[k]], Readings)
            else np.full(len(table), other[names[k]])
            for k in kept
        ],
        axis=1,
    )  # fmt: skip
    chosen = np.random.default_rng(0).integers(len(kept), size=table.shape)
    draws = np.array(
        [_defined(a[c], b[c]) if len(set(c)) > 2 else 0.0
         for a, b, c in zip(table, second, chosen.tolist(), strict=True)]
    )  # fmt: skip
    first = readings[names[kept[0]]]
    return Estimate(
        value=value, unit="correlation", n=len(kept), model=first.model, seed=first.seed,
        interval=percentile_interval(draws, value),
    )  # fmt: skip


def _defined(a: np.ndarray, b: np.ndarray) -> float:
    both = ~(np.isnan(a) | np.isnan(b))
    if both.sum() < 3:
        return 0.0
    return float(np.nan_to_num(rank_correlation(a[both], b[both])))


def divergence_gap(
    readings: Mapping[str, Readings], syntactic: Sequence[str] = SYNTACTIC, *, seed: int = 0
) -> Estimate:
    """Divergence of mixing weights from even ones, syntactic tasks minus the others, in nats.

    The interval resamples tasks inside each family: what is asked is whether *tasks* of one kind
    differ from those of the other, and there are few.

    Raises:
        KeyError: a syntactic task that is not there. ValueError: no other task.
    """
    first = [readings[name].divergence for name in syntactic]
    second = [found.divergence for name, found in readings.items() if name not in syntactic]
    if not second:
        raise ValueError("there is no task besides the syntactic ones")
    value = float(np.mean(first) - np.mean(second))
    draw = np.random.default_rng(seed)
    means = [
        np.array(part)[draw.integers(len(part), size=(1000, len(part)))].mean(1)
        for part in (first, second)
    ]
    model = next(iter(readings.values())).model
    return Estimate(
        value=value, unit="nats", n=len(readings), model=model, seed=seed,
        interval=percentile_interval(means[0] - means[1], value),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Corrections:
    """Test items of one task that more layers put right or wrong.

    Attributes:
        lower, upper: [N] right with the layers up to ``low`` alone, and with all of them.
        low: the highest layer that the lower probe sees.
        right: [S, N] right with layers 0 .. l.
        net: share put right minus share put wrong.
    """

    lower: np.ndarray
    upper: np.ndarray
    low: int
    right: np.ndarray
    net: Estimate


def corrections(task: EdgeTask, readings: Readings) -> Corrections:
    """How many items does a probe of all layers get right that one of the lowest third gets wrong?

    All runs are taken together; the interval resamples sentences.
    """
    low = max(1, readings.depth // 3)
    right = np.concatenate([run.correct for run in readings.runs], axis=1)
    owners = [task.groups[i] for i in task.split.test] * len(readings.runs)
    _, code = np.unique(owners, return_inverse=True)
    change = right[-1].astype(float) - right[low]
    sums = np.bincount(code, weights=change)[:, None]
    curve = LayerScores(
        "items put right", "share difference", sums, np.bincount(code), readings.model,
        readings.seed,
    )  # fmt: skip
    return Corrections(
        right[low], right[-1], low, readings.runs[0].correct, curve.summary(lambda v: v[..., 0])
    )
