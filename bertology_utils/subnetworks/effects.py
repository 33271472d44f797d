"""What is lost without a head, with one head a layer, or without a set of heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ..encoder import evaluating
from ..interventions import Edit, editing, scale_heads
from ..interventions.heads import check_mode
from ..resampling import Estimate, percentile_interval, rank_correlation, resampled_means
from .passes import run_without
from .trials import Trial

#: a head: (layer, number in the layer)
Head = tuple[int, int]


@dataclass(frozen=True, eq=False)
class HeadEffects:
    """Loss and accuracy of N texts under an intervention at each head, beside the whole model.

    Attributes:
        loss, right: [L, H, N].
        whole_loss, whole_right: [N].
        model: name; task: name.
    """

    loss: np.ndarray = field(repr=False)
    right: np.ndarray = field(repr=False)
    whole_loss: np.ndarray = field(repr=False)
    whole_right: np.ndarray = field(repr=False)
    model: str
    task: str

    @property
    def rises(self) -> np.ndarray:
        """[L, H, N] rise of the loss, in nats."""
        return self.loss - self.whole_loss

    @property
    def losses_of_accuracy(self) -> np.ndarray:
        """[L, H, N] accuracy lost."""
        return self.whole_right - self.right


def without_each(trial: Trial) -> HeadEffects:
    """Every head silenced by itself (Michel et al. 2019, arXiv 1905.10650)."""
    return _each(trial, torch.eye(trial.encoder.n_heads, dtype=torch.bool))


def with_only_each(trial: Trial) -> HeadEffects:
    """In one layer all heads but one are silenced, for every head of every layer."""
    return _each(trial, ~torch.eye(trial.encoder.n_heads, dtype=torch.bool))


def _each(trial: Trial, patterns: Tensor) -> HeadEffects:
    """Each row of ``patterns`` [H, H], True for heads that are off, in every layer by turns."""
    encoder = trial.encoder
    whole = trial.whole()
    shape = (encoder.n_layers, encoder.n_heads, len(trial))
    loss, right = np.empty(shape), np.empty(shape)
    for layer in range(encoder.n_layers):
        off = torch.zeros(len(patterns), *shape[:2], dtype=torch.bool)
        off[:, layer] = patterns
        loss[layer], right[layer] = run_without(trial, off)
    return HeadEffects(loss, right, *whole, encoder.name, trial.name)


def grouped(heads: Sequence[Head]) -> dict[int, list[int]]:
    """Heads by layer, as interventions want them."""
    out: dict[int, list[int]] = {}
    for layer, head in heads:
        out.setdefault(int(layer), []).append(int(head))
    return out


def without_set(
    trial: Trial, heads: Sequence[Head], *, means: Tensor | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(loss [N], right [N]) without some heads; with ``means``, each is replaced by its mean.

    Raises:
        ValueError: no heads. LayerIndexError, HeadIndexError: no such head.
    """
    if not heads:
        raise ValueError("no heads to take away")
    encoder = trial.encoder
    fill = check_mode(encoder, "zero" if means is None else "mean", means)
    off = torch.zeros(1, encoder.n_layers, max(encoder.heads_per_layer), dtype=torch.bool)
    for layer, gone in encoder.check_heads(grouped(heads)).items():
        off[0, layer, list(gone)] = True
    loss, right = run_without(trial, off, fill=fill)
    return loss[0], right[0]


def random_sets(encoder, size: int, n: int, seed: int = 0) -> list[list[Head]]:
    """``n`` random sets of ``size`` heads.

    Raises:
        ValueError: more heads than there are.
    """
    every = [(k, h) for k in range(encoder.n_layers) for h in range(encoder.n_heads)]
    if not 1 <= size <= len(every) or n < 1:
        raise ValueError(f"{n} sets of {size} out of {len(every)} heads")
    draw = np.random.default_rng(seed)
    return [[every[i] for i in draw.choice(len(every), size, replace=False)] for _ in range(n)]


@dataclass(frozen=True, eq=False)
class Slopes:
    """Size of the loss's slope in gates of value 1, text by text.

    Attributes:
        heads: [N, L, H] at every head's output.
        blocks: [N, L] at the output of every feed-forward block.
    """

    heads: np.ndarray
    blocks: np.ndarray


def slopes(trial: Trial) -> Slopes:
    """|d loss / d gate| for heads (Michel et al. 2019) and blocks (Prasanna et al. 2020)."""
    encoder, n = trial.encoder, len(trial)
    gates = torch.ones(n, encoder.n_layers, encoder.n_heads, device=encoder.device)
    blocks = torch.ones(n, encoder.n_layers, device=encoder.device)
    gates.requires_grad_(True)
    blocks.requires_grad_(True)

    def gated(layer: int):
        return lambda out, _args: out * blocks[:, layer, None, None]

    edits = [Edit(part.ffn_out, "out", gated(k)) for k, part in enumerate(encoder.layers)]
    with evaluating(encoder), torch.enable_grad():
        with scale_heads(encoder, gates), editing(encoder, edits):
            loss, _ = trial.run()
            found = torch.autograd.grad(loss.sum(), [gates, blocks])
    return Slopes(*(slope.abs().double().cpu().numpy() for slope in found))


def order_of(importance: np.ndarray) -> list[Head]:
    """Heads from the least to the most important, of [L, H]."""
    width = importance.shape[1]
    order = np.argsort(importance, axis=None, kind="stable")
    return [(int(i) // width, int(i) % width) for i in order]


def pruning_curve(trial: Trial, order: Sequence[Head], steps: int = 12) -> dict[float, np.ndarray]:
    """Share of heads gone -> [N] right, taking heads away in order, without further training.

    The last step leaves at least one head.
    """
    _, whole = trial.whole()
    curve = {0.0: whole}
    for step in range(1, steps + 1):
        gone = min(round(step * len(order) / steps), len(order) - 1)
        curve[gone / len(order)] = without_set(trial, order[:gone])[1]
    return curve


def prunable_share(
    curves: Mapping[str, Mapping[float, np.ndarray]], model: str, *, most: float = 0.01,
    seed: int = 0,
) -> Estimate:  # fmt: skip
    """Largest share of heads that can go before accuracy falls by ``most``, mean over tasks.

    The interval resamples texts and reads the share off again.

    Raises:
        ValueError: no curves.
    """
    if not curves:
        raise ValueError("no curves")
    values, draws = [], []
    for curve in curves.values():
        shares = np.array(list(curve))
        right = np.stack(list(curve.values()), axis=1)
        values.append(_last_before(shares, right.mean(0)[None], most)[0])
        resampled = resampled_means(right, np.ones(len(right)), seed=seed)
        draws.append(_last_before(shares, resampled, most))
    value = float(np.mean(values))
    return Estimate(
        value=value, unit="share", n=min(len(next(iter(c.values()))) for c in curves.values()),
        model=model, seed=seed, interval=percentile_interval(np.mean(draws, axis=0), value),
    )  # fmt: skip


def _last_before(shares: np.ndarray, accuracy: np.ndarray, most: float) -> np.ndarray:
    """[R] share before the first step that loses ``most`` or more; accuracy is [R, steps]."""
    broken = accuracy[:, :1] - accuracy >= most - 1e-12
    first = np.where(broken.any(1), broken.argmax(1), broken.shape[1])
    return shares[first - 1]


def mean_over_texts(
    values: np.ndarray, model: str, *, unit: str = "share difference", seed: int = 0
) -> Estimate:
    """Mean of [N] numbers with a bootstrap over texts."""
    numbers = np.asarray(values, float)
    value = float(numbers.mean())
    draws = resampled_means(numbers, np.ones(len(numbers)), seed=seed)
    return Estimate(
        value=value, unit=unit, n=len(numbers), model=model, seed=seed,
        interval=percentile_interval(draws, value),
    )  # fmt: skip


def rating_agreement(one: np.ndarray, other: np.ndarray, model: str, *, seed: int = 0) -> Estimate:
    """Spearman's correlation over heads of two ratings of the same texts.

    Args:
        one, other: [N, L, H]; the mean over texts is the rating. The interval resamples texts.

    Raises:
        ValueError: different shapes, or a rating that is the same for all heads.
    """
    if one.shape != other.shape:
        raise ValueError(f"ratings of shapes {one.shape} and {other.shape}")
    flat = [part.reshape(len(part), -1) for part in (one, other)]
    value = float(rank_correlation(*(part.mean(0) for part in flat)))
    if not np.isfinite(value):
        raise ValueError("a rating is the same for all heads")
    draws = [resampled_means(part, np.ones(len(part)), seed=seed) for part in flat]
    return Estimate(
        value=value, unit="correlation", n=flat[0].shape[1], model=model, seed=seed,
        interval=percentile_interval(rank_correlation(*draws), value),
    )  # fmt: skip


def log_ratio(above: np.ndarray, below: np.ndarray, model: str, *, seed: int = 0) -> Estimate:
    """log of (mean of one number a text over mean of another), paired bootstrap over texts.

    Replicates in which one mean is not positive have no logarithm and are left out.

    Raises:
        ValueError: a mean that is not positive.
    """
    a, b = np.asarray(above, float), np.asarray(below, float)
    if a.mean() <= 0 or b.mean() <= 0:
        raise ValueError(f"means of {a.mean():g} and {b.mean():g} have no log ratio")
    value = float(np.log(a.mean() / b.mean()))
    means = [resampled_means(part, np.ones(len(part)), seed=seed) for part in (a, b)]
    with np.errstate(invalid="ignore", divide="ignore"):
        draws = np.log(means[0] / means[1])
    draws = draws[np.isfinite(draws)]
    return Estimate(
        value=value, unit="log ratio", n=len(a), model=model, seed=seed,
        interval=percentile_interval(draws, value),
    )  # fmt: skip
