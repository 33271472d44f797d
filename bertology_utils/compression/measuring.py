"""Scores, ratios and times that can be compared: same texts, same run, side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from ..encoder import evaluating
from ..resampling import RESAMPLES, Estimate, percentile_interval
from .data import Labelled, Score
from .errors import CompressionError

SEED = 11


def _counts(n: int, seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return draw.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(float)


def accuracy(found: Score, model: str, *, seed: int = SEED, **baselines: Score) -> Estimate:
    """Accuracy with a 95 % bootstrap interval over texts, beside that of other models.

    Args:
        found: the model judged.
        model: the name to record.
        seed: of the resampling.
        baselines: name -> scores of what it has to be compared with.
    """
    times = _counts(len(found.right), seed)
    draws = (times @ found.right) / (times @ found.asked)
    return Estimate(
        value=found.value, unit="share", n=len(found.right), model=model, seed=seed,
        interval=percentile_interval(draws, found.value),
        baselines={name: other.value for name, other in baselines.items()},
    )  # fmt: skip


def _paired(a: Score, b: Score, seed: int) -> tuple[np.ndarray, np.ndarray]:
    if not np.array_equal(a.asked, b.asked):
        raise CompressionError(f"{a.name!r} and {b.name!r} were not judged on the same texts")
    times = _counts(len(a.right), seed)
    asked = times @ a.asked
    return (times @ a.right) / asked, (times @ b.right) / asked


def difference(a: Score, b: Score, model: str, *, seed: int = SEED) -> Estimate:
    """Accuracy of ``a`` minus that of ``b``, with a paired bootstrap over their texts.

    Raises:
        CompressionError: they were judged on different texts.
    """
    one, two = _paired(a, b, seed)
    value = a.value - b.value
    return Estimate(value=value, unit="share difference", n=len(a.right), model=model, seed=seed,
                    interval=percentile_interval(one - two, value))  # fmt: skip


def retained(a: Score, full: Score, model: str, *, seed: int = SEED) -> Estimate:
    """Accuracy of ``a`` over that of the full model, with a paired bootstrap over their texts.

    Raises:
        CompressionError: they were judged on different texts, or the full model is never right.
    """
    if full.value == 0:
        raise CompressionError(f"{full.name!r} is never right; no share of that can be kept")
    one, two = _paired(a, full, seed)
    value = a.value / full.value
    ratios = one[two > 0] / two[two > 0]
    return Estimate(value=value, unit="ratio", n=len(a.right), model=model, seed=seed,
                    interval=percentile_interval(ratios, value))  # fmt: skip


def mean_score(name: str, scores: Sequence[Score]) -> Score:
    """The mean of several draws of a control, text by text."""
    return Score(name, np.mean([s.right for s in scores], axis=0), scores[0].asked)


@dataclass(frozen=True, eq=False)
class Times:
    """Seconds of forward passes that took turns.

    Attributes:
        names: of the models.
        seconds: [rounds, models], processor time of one thread or more.
        n_texts: texts of a pass.
    """

    names: tuple[str, ...]
    seconds: np.ndarray = field(repr=False)
    n_texts: int

    def median(self, name: str) -> float:
        """Median seconds of a pass."""
        return float(np.median(self._of(name)))

    def speedup(self, name: str, over: str, model: str, *, seed: int = SEED) -> Estimate:
        """Median over rounds of (seconds of ``over``) / (seconds of ``name``), 1 being no gain.

        The interval resamples rounds.

        Raises:
            CompressionError: a model that was not timed.
        """
        ratios = self._of(over) / self._of(name)
        draw = np.random.default_rng(seed)
        picks = draw.integers(len(ratios), size=(RESAMPLES, len(ratios)))
        value = float(np.median(ratios))
        return Estimate(value=value, unit="ratio", n=len(ratios), model=model, seed=seed,
                        interval=percentile_interval(np.median(ratios[picks], axis=1), value))

    def _of(self, name: str) -> np.ndarray:
        if name not in self.names:
            raise CompressionError(f"{name!r} was not timed; timed: {', '.join(self.names)}")
        return self.seconds[:, self.names.index(name)]


def side_by_side(
    models: Mapping[str, nn.Module], data: Labelled, *, rounds: int = 7, seed: int = 0
) -> Times:
    """Time one forward pass of every model in every round, in an order drawn anew each time.

    Processor time is counted, so that other programs disturb little; the first pass of each model
    is not counted.

    Args:
        models: name -> module called with ids and mask.
        data: the texts of a pass.
        rounds: how often.
        seed: of the orders.

    Raises:
        CompressionError: no models, or fewer than two rounds.
    """
    if not models or rounds < 2:
        raise CompressionError(f"{len(models)} models and {rounds} rounds; rounds start at 2")
    names = list(models)
    draw = np.random.default_rng(seed)
    seconds = np.zeros((rounds, len(names)))
    for round_ in range(-1, rounds):
        for place in draw.permutation(len(names)):
            with evaluating(models[names[place]]):
                start = time.process_time()
                models[names[place]](data.ids, data.mask)
                spent = time.process_time() - start
            if round_ >= 0:
                seconds[round_, place] = spent
    return Times(tuple(names), seconds, len(data))


@dataclass(frozen=True, eq=False)
class Growth:
    """How the time of attention grows with the length of a text.

    Attributes:
        lengths: tokens.
        seconds: [rounds, lengths] of scores, softmax and mixing of one layer.
        maps: [rounds, lengths] of its linear maps, which grow in proportion.
    """

    lengths: tuple[int, ...]
    seconds: np.ndarray = field(repr=False)
    maps: np.ndarray = field(repr=False)

    def exponent(self, model: str, *, seed: int = SEED) -> Estimate:
        """Slope of log time over log length; the interval resamples rounds."""
        draw = np.random.default_rng(seed)
        rounds = len(self.seconds)
        picks = draw.integers(rounds, size=(RESAMPLES, rounds))
        slopes = [_slope(self.lengths, np.median(self.seconds[row], axis=0)) for row in picks]
        value = _slope(self.lengths, np.median(self.seconds, axis=0))
        return Estimate(
            value=value, unit="slope", n=rounds, model=model, seed=seed,
            interval=percentile_interval(np.array(slopes), value),
            baselines={"linear_maps": _slope(self.lengths, np.median(self.maps, axis=0))},
        )  # fmt: skip


def _slope(lengths: Sequence[int], seconds: np.ndarray) -> float:
    return float(np.polyfit(np.log(lengths), np.log(seconds), 1)[0])


def attention_growth(
    layer: nn.Module, lengths: Sequence[int], *, rounds: int = 5, seed: int = 0
) -> Growth:
    """Time a layer's attention and its linear maps on random states of rising length.

    Args:
        layer: a :class:`~bertology_utils.compression.Layer`.
        lengths: tokens, two lengths or more.
        rounds: repetitions of each.
        seed: of the states.

    Raises:
        CompressionError: fewer than two lengths or rounds.
    """
    if len(set(lengths)) < 2 or rounds < 2:
        raise CompressionError("a slope needs two lengths, and an interval two rounds")
    width, heads, size = layer.query.in_features, layer.n_heads, layer.d_head
    draw = torch.Generator().manual_seed(seed)
    seconds, maps = (np.zeros((rounds, len(lengths))) for _ in range(2))
    with evaluating(layer):
        for round_ in range(-1, rounds):
            for place, length in enumerate(lengths):
                hidden = torch.randn(1, length, width, generator=draw)
                three = torch.randn(3, heads, length, size, generator=draw)
                start = time.process_time()
                (three[0] @ three[1].transpose(-1, -2) * size**-0.5).softmax(-1) @ three[2]
                middle = time.process_time()
                for name in ("query", "key", "value", "output"):
                    getattr(layer, name)(hidden)
                layer.feed(hidden)
                end = time.process_time()
                if round_ >= 0:
                    seconds[round_, place], maps[round_, place] = middle - start, end - middle
    return Growth(tuple(lengths), seconds, maps)
