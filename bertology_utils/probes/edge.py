"""Edge probing: one probe for spans and pairs of spans, over a learnt mixture of the layers.

Tenney et al. 2019a (arXiv 1905.05950) and 2019b (arXiv 1905.06316). A scalar mix
``gamma * sum_l s_l h_l`` feeds a small classifier; where its weights s lie (centre of gravity) and
how much each further layer adds (cumulative gain) say at what depth a task is solved. The probes
over layers 0, 0-1, ..., 0-L differ in a mask on s only and are trained together.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from .data import Split, as_features, as_task
from .errors import ProbeError, UnequalLengthError
from .fit import same_start, shuffled, train_together
from .results import share_interval

#: rows of the features: (first, one past the last); or two of them
Span = tuple[int, int]
POOLINGS = ("mean", "attention")
#: how much faster than the classifier the mix moves: it has to travel far in few epochs
_MIX_SPEED = 10.0


@dataclass(frozen=True)
class EdgeResult:
    """Probes over layers 0 .. l for every l, and the mixture of the last of them.

    Attributes:
        cumulative: [L + 1] test accuracy (for single labels the same as micro F1) of the probe that
            may mix layers 0 .. l.
        mix: [L + 1] weights s of the probe over all layers; they add up to 1.
        centre_of_gravity: sum of l * mix[l].
        expected_layer: mean layer weighted by what each adds to ``cumulative``; None where the
            layers above 0 add nothing in all.
        expected_interval: 95 % bootstrap interval of it over test examples (groups), with the
            trained probes as they are; None with it.
        majority: accuracy of the most frequent training class.
        n_train, n_test: examples.
        seed: of the probes.
        interval: 95 % interval of the accuracy over all layers.
        model: name of the probed model.
        correct: [L + 1, n_test] hits of every cumulative probe.
    """

    cumulative: tuple[float, ...]
    mix: tuple[float, ...]
    centre_of_gravity: float
    expected_layer: float | None
    expected_interval: tuple[float, float] | None
    majority: float
    n_train: int
    n_test: int
    seed: int
    interval: tuple[float, float]
    model: str
    correct: np.ndarray = field(repr=False, compare=False)

    unit = "share"

    @property
    def value(self) -> float:
        """Accuracy of the probe over all layers."""
        return self.cumulative[-1]

    @property
    def gains(self) -> tuple[float, ...]:
        """[L] what layer l = 1 .. L adds to the accuracy."""
        return tuple(np.diff(self.cumulative).tolist())

    @property
    def baselines(self) -> dict[str, float]:
        return {"majority class": self.majority, "embedding layer": self.cumulative[0]}

    @property
    def n(self) -> int:
        return self.n_test


def centre_of_gravity(weights: Sequence[float]) -> float:
    """Mean layer under non-negative weights of layers 0 .. L.

    Raises:
        ProbeError: weights that are negative, not finite, or all 0.
    """
    values = np.asarray(weights, dtype=float)
    if not (np.isfinite(values).all() and (values >= 0).all() and values.sum() > 0):
        raise ProbeError(f"weights must be 0 or above and not all 0, got {tuple(weights)}")
    return float((np.arange(len(values)) * values).sum() / values.sum())


def expected_layer(cumulative: Sequence[float]) -> float | None:
    """Mean of the layers 1 .. L, weighted by what each adds to the scores of layers 0 .. l.

    Single gains may be negative and then count as such, as in Tenney et al. 2019a; None where they
    do not add up to more than 0.
    """
    gains = np.diff(np.asarray(cumulative, dtype=float))
    if gains.sum() <= 1e-12:
        return None
    return float((np.arange(1, len(gains) + 1) * gains).sum() / gains.sum())


def row_spans(lengths: Sequence[int], spans: Sequence[tuple[int, int, int]]) -> list[Span]:
    """Spans of words inside sentences as rows of features that hold all sentences in a line.

    Args:
        lengths: words of every sentence.
        spans: (sentence, first word, one past the last).

    Raises:
        ProbeError: a span outside its sentence.
    """
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
    found = []
    for sentence, first, end in spans:
        if not (0 <= sentence < len(lengths) and 0 <= first < end <= lengths[sentence]):
            raise ProbeError(f"span {(sentence, first, end)} is not inside a sentence")
        found.append((int(starts[sentence]) + first, int(starts[sentence]) + end))
    return found


def edge_probe(
    features: np.ndarray | Tensor,
    spans: Sequence[Span] | Sequence[tuple[Span, Span]],
    labels: Sequence[Hashable],
    split: Split,
    *,
    pooling: str = "mean",
    hidden: int = 64,
    epochs: int = 15,
    patience: int = 3,
    lr: float = 5e-3,
    batch_size: int = 256,
    seed: int = 0,
    groups: Sequence[Hashable] | None = None,
    model: str = "features",
) -> EdgeResult:
    """Train the cumulative edge probes of one task.

    Layers are centred and brought to the same mean size first, so that a weight of the mix is not
    spent on making up for a layer's larger numbers.

    Args:
        features: [L + 1, N, D] word vectors.
        spans: E spans of rows, or E pairs of spans; :func:`row_spans` makes them.
        labels: [E].
        split: over the E examples.
        pooling: ``"mean"`` of a span's vectors, or ``"attention"`` with a learnt score per word.
        hidden, epochs, patience, lr, batch_size, seed: of the classifier and its training.
        groups: [E] sentence of every example, for the intervals.
        model: name for the result.

    Raises:
        ValueError: unknown pooling.
        ProbeError: a span out of range, or single spans among pairs.
        OneClassError, TooFewExamplesError, UnequalLengthError, NonFiniteError: bad data.
    """
    if groups is not None and len(groups) != len(spans):
        raise UnequalLengthError(f"{len(groups)} groups for {len(spans)} examples")
    below = torch.ones(len(features), len(features), dtype=torch.bool).tril()
    majority, correct, weights = _train(
        features, spans, labels, split, below, pooling=pooling, hidden=hidden, epochs=epochs,
        patience=patience, lr=lr, batch_size=batch_size, seed=seed,
    )  # fmt: skip
    cumulative = tuple(correct.mean(1).tolist())
    held = None if groups is None else [groups[i] for i in split.test]
    middle = expected_layer(cumulative)
    return EdgeResult(
        cumulative,
        tuple(weights),
        centre_of_gravity(weights),
        middle,
        None if middle is None else _expected_interval(correct, held, middle, seed),
        majority,
        len(split.train),
        len(split.test),
        seed,
        share_interval(correct[-1], held, seed),
        model,
        correct,
    )


def edge_probe_layers(
    features: np.ndarray | Tensor,
    spans: Sequence[Span] | Sequence[tuple[Span, Span]],
    labels: Sequence[Hashable],
    split: Split,
    **recipe,
) -> np.ndarray:
    """The classifier of :func:`edge_probe` on every layer by itself, nothing mixed.

    Arguments (``recipe`` from ``pooling`` to ``seed``) and errors are those of :func:`edge_probe`.

    Returns:
        [L + 1, n_test] True where the probe of a layer is right, in the order of the test part.
    """
    alone = torch.eye(len(features), dtype=torch.bool)
    return _train(features, spans, labels, split, alone, **recipe)[1]


def _train(
    features: np.ndarray | Tensor,
    spans: Sequence,
    labels: Sequence[Hashable],
    split: Split,
    seen: Tensor,
    *,
    pooling: str = "mean",
    hidden: int = 64,
    epochs: int = 15,
    patience: int = 3,
    lr: float = 5e-3,
    batch_size: int = 256,
    seed: int = 0,
) -> tuple[float, np.ndarray, list[float]]:
    """(majority, hits [M, n_test], mix of the last probe [S]) of probes that see layers ``seen``.

    ``seen`` is [M, S] with M = S: which layers each probe may mix.
    """
    if pooling not in POOLINGS:
        raise ValueError(f"pooling is {pooling!r}, must be one of {', '.join(POOLINGS)}")
    data = as_features(features)
    sides = _sides(spans, data.shape[1])
    task = as_task(labels, split, len(spans))
    data = data - data.mean(1, keepdim=True)
    data = data / data.square().mean((1, 2), keepdim=True).sqrt().clamp_min(1e-12)
    inputs = [_Side(data, side, pooling) for side in sides]
    layers, _, width = data.shape
    classes = len(task.classes)
    parameters = {
        "mix": torch.zeros(layers, layers),
        "gamma": torch.ones(layers, 1),
        "score": torch.zeros(layers, len(sides) * width),
        "in_weight": same_start(
            (len(sides) * width, hidden), layers, 1 / math.sqrt(width * len(sides)), seed
        ),
        "in_bias": torch.zeros(layers, hidden),
        "out_weight": torch.zeros(layers, hidden, classes),
        "out_bias": torch.zeros(layers, classes),
    }
    parameters = {name: value.to(data.device) for name, value in parameters.items()}
    hidden_from = ~seen.to(data.device)

    def mix() -> Tensor:
        return (_MIX_SPEED * parameters["mix"]).masked_fill(hidden_from, -torch.inf).softmax(1)

    def logits(rows: Tensor) -> Tensor:
        """[E'] examples -> [M, E', K]"""
        weights = mix() * parameters["gamma"]
        scores = parameters["score"].chunk(len(sides), dim=1)
        pooled = [side(rows, weights, score) for side, score in zip(inputs, scores, strict=True)]
        both = torch.cat(pooled, dim=2)
        inner = torch.baddbmm(parameters["in_bias"][:, None], both, parameters["in_weight"])
        return torch.baddbmm(
            parameters["out_bias"][:, None], inner.relu(), parameters["out_weight"]
        )

    codes = task.codes.to(data.device)

    def losses(rows: Tensor) -> Tensor:
        out = logits(rows).transpose(1, 2)
        gold = codes[rows].expand(layers, -1)
        return torch.nn.functional.cross_entropy(out, gold, reduction="none").mean(1)

    train = torch.as_tensor(split.train, device=data.device)
    dev = torch.as_tensor(split.dev, device=data.device)
    generator = torch.Generator().manual_seed(seed)

    def dev_loss() -> Tensor:
        parts = [losses(rows) * len(rows) for rows in dev.split(1024)]
        return torch.stack(parts).sum(0) / len(dev)

    train_together(
        parameters,
        lambda: [train[b.to(data.device)] for b in shuffled(len(train), batch_size, generator)],
        losses,
        dev_loss if len(dev) else None,
        epochs=epochs,
        patience=patience,
        lr=lr,
        weight_decay=1e-2,
    )
    test = torch.as_tensor(split.test, device=data.device)
    with torch.no_grad():
        said = torch.cat([logits(rows).argmax(2) for rows in test.split(1024)], dim=1)
        weights = mix()[-1].cpu().tolist()
    return task.majority, (said == codes[test]).cpu().numpy(), weights


class _Side:
    """The first or the second span of every example."""

    def __init__(self, data: Tensor, spans: Sequence[Span], pooling: str):
        lengths = torch.tensor([end - start for start, end in spans])
        longest = int(lengths.max())
        place = torch.arange(longest)
        first = torch.tensor([start for start, _ in spans])
        self.real = (place < lengths[:, None]).to(data.device)
        self.rows = torch.where(self.real.cpu(), first[:, None] + place, 0).to(data.device)
        self.data = data
        self.pooled = None
        if pooling == "mean" or longest == 1:
            # Mixing layers and averaging words commute, so that means are taken once, beforehand.
            total = data.new_zeros(data.shape[0], len(spans), data.shape[2])
            for k in range(longest):
                total += data[:, self.rows[:, k]] * self.real[:, k, None]
            self.pooled = total / lengths.to(data.device)[:, None]

    def __call__(self, examples: Tensor, weights: Tensor, score: Tensor) -> Tensor:
        """[E'] -> [M, E', D]"""
        if self.pooled is not None:
            return _mixed(weights, self.pooled[:, examples])
        words = _mixed(weights, self.data[:, self.rows[examples]])  # [M, E', W, D]
        attention = torch.einsum("mewd,md->mew", words, score)
        attention = attention.masked_fill(~self.real[examples], -torch.inf).softmax(2)
        return torch.einsum("mew,mewd->med", attention, words)


def _mixed(weights: Tensor, vectors: Tensor) -> Tensor:
    """[M, S], [S, ...] -> [M, ...]"""
    return (weights @ vectors.flatten(1)).unflatten(1, vectors.shape[1:])


def _sides(spans: Sequence, n: int) -> list[list[Span]]:
    if not len(spans):
        raise ProbeError("no spans")
    pairs = [isinstance(span[0], (tuple, list)) for span in spans]
    if any(pairs) != all(pairs):
        odd = pairs.index(not pairs[0])
        raise ProbeError(f"example {odd} has another number of spans than those before it")
    listed = [tuple(map(tuple, span)) if pairs[0] else (tuple(span),) for span in spans]
    for i, example in enumerate(listed):
        for start, end in example:
            if not 0 <= start < end <= n:
                raise ProbeError(f"span {(start, end)} of example {i} is empty or not in 0..{n}")
    return [list(side) for side in zip(*listed, strict=True)]


def _expected_interval(
    correct: np.ndarray, groups: Sequence[Hashable] | None, value: float, seed: int
) -> tuple[float, float]:
    numbers: dict[Hashable, int] = {}
    items = range(correct.shape[1]) if groups is None else groups
    codes = np.array([numbers.setdefault(group, len(numbers)) for group in items])
    hits = np.stack([np.bincount(codes, weights=row) for row in correct], axis=1)
    rng = np.random.default_rng(seed)
    layers = np.arange(1, correct.shape[0])
    means = []
    for _ in range(1000):
        gains = np.diff(hits[rng.integers(0, len(hits), len(hits))].sum(0))
        if gains.sum() > 0:
            means.append((layers * gains).sum() / gains.sum())
    if not means:
        return value, value
    low, high = np.percentile(means, [2.5, 97.5])
    return float(min(low, value)), float(max(high, value))
