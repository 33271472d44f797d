"""Linear (softmax) probes of all layers at once.

The penalised softmax loss is convex, so there is one right answer; the work is in reaching it
soon. All layers step together, each by its own L-BFGS (Nocedal 1980) whose starting
metric is the inverse of Böhning's (1992) bound on the curvature, ``X'X / 2 + l2 I``, which takes
the correlations between features out of the way. A step needs one product with X and one with X';
trying several step lengths needs none, since logits are linear in the weights. Most of the way is
made on a sample of the rows.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from .data import standardise

#: prior precisions (``l2`` times the number of examples) that are tried from strong to weak
PRECISIONS = (1000.0, 100.0, 10.0, 1.0, 0.1)
_MEMORY = 8
_STEPS = (1.0, 0.5, 2.0, 0.25, 0.1, 0.03, 0.01, 1e-3)


@dataclass(frozen=True, eq=False)
class LinearProbes:
    """S trained probes; ``features`` below are raw, standardisation is inside.

    Attributes:
        weight: [S, D, K]; bias: [S, 1, K], both for raw features.
        l2: the penalty used or chosen for each of the S layers.
        steps: optimiser steps over all rows that each layer took.
    """

    weight: Tensor
    bias: Tensor
    l2: tuple[float, ...]
    steps: tuple[int, ...]

    def logits(self, features: Tensor) -> Tensor:
        """[S, N, D] -> [S, N, K]"""
        return torch.baddbmm(self.bias, features, self.weight)

    def log_probs(self, features: Tensor) -> Tensor:
        """[S, N, D] -> natural log-probabilities [S, N, K]"""
        return self.logits(features).log_softmax(-1)


def fit_linear(
    train: Tensor,
    labels: Tensor,
    n_classes: int,
    *,
    dev: tuple[Tensor, Tensor] | None = None,
    l2: float | None = None,
    max_steps: int = 300,
    tolerance: float = 1e-4,
) -> LinearProbes:
    """Minimise mean cross-entropy + l2 / 2 * ||weight||^2 over standardised features.

    ``l2`` equals ``1 / (C * N)`` of scikit-learn's ``LogisticRegression``. Nothing is random.

    Args:
        train: [S, N, D]; labels: [N] classes 0 .. n_classes - 1.
        dev: features [S, M, D] and labels [M]. Each layer keeps the weights with the lowest
            development loss met on the way, the start (no weights, class frequencies) included.
        l2: the penalty. None lets the development part choose: :data:`PRECISIONS` are gone
            through on a sample of the rows, and from the best of each layer on with all of them.
        max_steps: most steps at one penalty.
        tolerance: largest entry of the gradient at which a layer is done.

    Raises:
        ValueError: no penalty and no development part to choose by; a penalty below 0.
    """
    if dev is None and l2 is None:
        raise ValueError("choosing a penalty takes a development part: give one, or l2")
    if l2 is not None and not l2 >= 0:
        raise ValueError(f"l2 must be 0 or above, got {l2}")
    rows, mean, scale = standardise(train)
    problem = _Problem(rows, labels, n_classes)
    best = None
    if dev is not None:
        best = _Best(problem, (dev[0] - mean) / scale, dev[1])
    layers, n, width = rows.shape
    if l2 is None:
        stride = max(1, n // (4 * width))
        sample = problem if stride == 1 else problem.sampled(stride)
        penalty = _choose(sample, best, max_steps) * sample.n / n
        if sample is not problem:
            problem.set(best.weight, best.bias)
            best.reset(problem)
            problem.run(penalty, max_steps, tolerance, best, patience=5)
            penalty = _weaker(problem, best, penalty, max_steps, tolerance)
    else:
        penalty = rows.new_full((layers,), float(l2))
        problem.run(penalty, max_steps, tolerance, best, patience=5)
    chosen = problem if best is None else best
    raw = (chosen.weight / scale).transpose(1, 2).contiguous()
    bias = chosen.bias.transpose(1, 2) - mean @ raw
    return LinearProbes(raw, bias, tuple(penalty.tolist()), tuple(problem.steps.tolist()))


def _choose(problem: "_Problem", best: "_Best", max_steps: int) -> Tensor:
    """The penalty [S] with the lowest development loss, from strong to weak until it rises."""
    live = torch.ones(len(problem.x), dtype=torch.bool, device=problem.x.device)
    used = problem.x.new_full((len(problem.x),), PRECISIONS[0] / problem.n)
    for precision in PRECISIONS:
        before = best.loss.clone()
        penalty = torch.full_like(used, precision / problem.n)
        # A station on the way need not be reached exactly.
        problem.run(penalty, max_steps, 1e-3, best, live)
        better = best.loss < before
        used[better & live] = precision / problem.n
        live &= better
        if not live.any():
            break
    return used


def _weaker(
    problem: "_Problem", best: "_Best", penalty: Tensor, max_steps: int, tolerance: float
) -> Tensor:
    """More rows may bear a weaker penalty than the sample did: go on while that helps."""
    live = penalty * problem.n > 1.5 * PRECISIONS[-1]
    while live.any():
        before = best.loss.clone()
        trial = torch.where(live, penalty / 10, penalty)
        problem.run(trial, max_steps, tolerance, best, live)
        better = live & (best.loss < before * (1 - 1e-2))
        penalty = torch.where(better, trial, penalty)
        live = better & (penalty * problem.n > 1.5 * PRECISIONS[-1])
    return penalty


class _Problem:
    """Standardised rows, the present weights [S, K, D] and biases [S, K, 1], and their logits.

    Logits are [S, K, N]: with the long dimension last, softmax is many times faster on a CPU.
    """

    def __init__(self, rows: Tensor, labels: Tensor, n_classes: int):
        self.x, self.labels, self.n = rows, labels, len(labels)
        layers, _, width = rows.shape
        self.weight = rows.new_zeros(layers, n_classes, width)
        self.onehot = torch.nn.functional.one_hot(labels, n_classes).T.to(rows.dtype)
        # Half an example more for every class, so that one not yet seen stays possible.
        frequency = (self.onehot.sum(1) + 0.5) / (self.n + 0.5 * n_classes)
        self.bias = frequency.log()[None, :, None].repeat(layers, 1, 1)
        self.logits = self.bias.repeat(1, 1, self.n)
        self.steps = torch.zeros(layers, dtype=torch.long, device=rows.device)
        # The metric shapes the steps, not the answer, so a sample of rows is enough for it.
        part = rows[:, :: max(1, self.n // (4 * width))]
        gram = part.transpose(1, 2) @ part / part.shape[1]
        self.values, self.vectors = torch.linalg.eigh(gram)

    def sampled(self, stride: int) -> "_Problem":
        """The same problem on every ``stride``-th row."""
        return _Problem(self.x[:, ::stride].contiguous(), self.labels[::stride], len(self.onehot))

    def set(self, weight: Tensor, bias: Tensor) -> None:
        self.weight, self.bias = weight.clone(), bias.clone()
        self.logits = _logits(self.x, range(len(self.x)), weight, bias)

    def run(
        self,
        l2: Tensor,
        max_steps: int,
        tolerance: float,
        best: "_Best | None",
        live: Tensor | None = None,
        patience: int = 3,
    ) -> None:
        """L-BFGS at the penalties [S] for the live layers, each until its gradient is small or
        its development loss has stopped falling."""
        which = torch.arange(len(self.x), device=l2.device)
        which = which if live is None else which[live]
        curvature = 0.5 * self.values.clamp_min(0) + l2[:, None]
        # Directions without data would divide by 0 where there is no penalty.
        curvature = curvature.clamp_min(1e-4 * curvature.max().item())[:, None]
        pairs: list[tuple[Tensor, Tensor]] = []
        gradient = self._gradient(which, l2)
        stale = torch.zeros(len(which), dtype=torch.long, device=l2.device)
        lowest = torch.full((len(which),), torch.inf, device=l2.device)
        for _ in range(max_steps):
            basis, bound = _part(self.vectors, which), curvature[which]
            direction = -_two_loop(gradient, pairs, basis, bound)
            slope = (gradient * direction).sum((1, 2))
            # A direction that does not descend means that curvature pairs have gone bad.
            uphill = (slope >= 0)[:, None, None]
            direction = torch.where(uphill, -_metric(gradient, basis, bound), direction)
            slope = (gradient * direction).sum((1, 2))
            step = self._move(which, direction, slope, l2, best)
            self.steps[which] += 1
            new = self._gradient(which, l2)
            pairs = [*pairs, (step * direction, new - gradient)][-_MEMORY:]
            gradient = new
            going = (gradient.abs().amax((1, 2)) > tolerance) & (step[:, 0, 0] > 0)
            if best is not None:
                loss = best.consider(self, which)
                stale = torch.where(loss < lowest * (1 - 1e-3), torch.zeros_like(stale), stale + 1)
                lowest = torch.minimum(loss, lowest)
                going &= stale < patience
            if not going.any():
                return
            if not going.all():
                which, gradient, stale, lowest = (
                    tensor[going] for tensor in (which, gradient, stale, lowest)
                )
                pairs = [(s[going], y[going]) for s, y in pairs]

    def _gradient(self, which: Tensor, l2: Tensor) -> Tensor:
        """[R, K, D + 1]; the last column belongs to the bias, which is not penalised."""
        residual = (_part(self.logits, which).softmax(1) - self.onehot) / self.n
        weight = _products(residual, self.x, which)
        weight += l2[which, None, None] * self.weight[which]
        return torch.cat([weight, residual.sum(2, keepdim=True)], dim=2)

    def _move(self, which, direction, slope, l2: Tensor, best: "_Best | None") -> Tensor:
        """Go along the direction by the first step length that lowers the objective enough."""
        d_weight, d_bias = direction[:, :, :-1], direction[:, :, -1:]
        change = _logits(self.x, which, d_weight, d_bias)
        logits, weight, half = self.logits[which], self.weight[which], l2[which] / 2
        start = _cross_entropy(logits, self.labels) + half * weight.square().sum((1, 2))
        step = torch.zeros_like(slope)
        open_ = torch.ones_like(slope, dtype=torch.bool)
        for length in _STEPS:
            part = open_.nonzero()[:, 0]
            value = _cross_entropy(logits[part] + length * change[part], self.labels)
            moved = weight[part] + length * d_weight[part]
            value = value + half[part] * moved.square().sum((1, 2))
            enough = value <= start[part] + 1e-4 * length * slope[part]
            step[part[enough]] = length
            open_[part[enough]] = False
            if not open_.any():
                break
        step = step[:, None, None]
        self.logits[which] = logits + step * change
        self.weight[which] = weight + step * d_weight
        self.bias[which] += step * d_bias
        if best is not None:
            moved = _logits(best.rows, which, d_weight, d_bias)
            best.logits[which] += step * moved
        return step


class _Best:
    """The weights with the lowest development loss so far, layer by layer."""

    def __init__(self, problem: _Problem, rows: Tensor, labels: Tensor):
        self.rows, self.labels = rows, labels
        self.weight, self.bias = problem.weight.clone(), problem.bias.clone()
        self.reset(problem)
        self.loss = _cross_entropy(self.logits, labels)

    def reset(self, problem: _Problem) -> None:
        """Follow another problem from its present weights on."""
        every = range(len(self.rows))
        self.logits = _logits(self.rows, every, problem.weight, problem.bias)

    def consider(self, problem: _Problem, which: Tensor) -> Tensor:
        """Loss now of the given layers; keeps what is better than before."""
        loss = _cross_entropy(_part(self.logits, which), self.labels)
        better = which[loss < self.loss[which]]
        self.loss[better] = loss[loss < self.loss[which]]
        self.weight[better], self.bias[better] = problem.weight[better], problem.bias[better]
        return loss


def _two_loop(gradient: Tensor, pairs, basis: Tensor, bound: Tensor) -> Tensor:
    """L-BFGS inverse curvature times the gradient, for every layer by itself."""

    def dot(a: Tensor, b: Tensor) -> Tensor:
        return (a * b).sum((1, 2), keepdim=True)

    q, used = gradient, []
    for s, y in reversed(pairs):
        sy = dot(s, y)
        rho = torch.where(sy > 1e-10, 1 / sy.clamp_min(1e-30), 0.0)
        alpha = rho * dot(s, q)
        q = q - alpha * y
        used.append((s, y, rho, alpha))
    q = _metric(q, basis, bound)
    if pairs:
        s, y = pairs[-1]
        sy = dot(s, y)
        scaled = sy / dot(y, _metric(y, basis, bound)).clamp_min(1e-30)
        q = torch.where(sy > 1e-10, scaled, 1.0) * q
    for s, y, rho, alpha in reversed(used):
        q = q + s * (alpha - rho * dot(y, q))
    return q


def _metric(gradient: Tensor, basis: Tensor, bound: Tensor) -> Tensor:
    """Böhning's inverse curvature times the gradient; the bias has a curvature of its own, 1/2."""
    weight = (gradient[:, :, :-1] @ basis / bound) @ basis.transpose(1, 2)
    return torch.cat([weight, gradient[:, :, -1:] / 0.5], dim=2)


def _logits(rows: Tensor, which: Iterable[int], weight: Tensor, bias: Tensor) -> Tensor:
    """[S, N, D] and weights of R of its layers -> [R, K, N]"""
    # One product a layer reads the rows where they are; a batched one would need a copy of the
    # chosen layers. The product with [D, K] on the right, then turned, beats the turned product.
    pairs = zip(which, weight, strict=True)
    return torch.stack([(rows[int(i)] @ w.T).T for i, w in pairs]) + bias


def _products(residual: Tensor, rows: Tensor, which: Iterable[int]) -> Tensor:
    """[R, K, N] times [S, N, D] of R layers -> [R, K, D]"""
    pairs = zip(which, residual, strict=True)
    return torch.stack([r @ rows[int(i)] for i, r in pairs])


def _part(tensor: Tensor, which: Tensor) -> Tensor:
    """The given layers, without a copy while all are there."""
    return tensor if len(which) == len(tensor) else tensor[which]


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """[R, K, N], [N] -> mean cross-entropy [R]"""
    target = labels[None, None].expand(len(logits), 1, -1)
    return (logits.logsumexp(1) - logits.gather(1, target)[:, 0]).mean(-1)
