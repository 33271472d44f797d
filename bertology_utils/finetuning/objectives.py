"""What is minimised: the plain loss, or one that asks for calm in the neighbourhood."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from .tuned import Tuned

#: (model, states [B, T, D], mask [B, T], labels [B]) -> mean loss with its graph
Objective = Callable[[Tuned, Tensor, Tensor, Tensor], Tensor]


def plain(tuned: Tuned, hidden: Tensor, mask: Tensor, gold: Tensor) -> Tensor:
    """Cross-entropy, in nats."""
    return nn.functional.cross_entropy(tuned.score(hidden, mask), gold)


def adversarial(size: float) -> Objective:
    """Half of the loss on disturbed input: one step of FreeLB (Zhu et al. 2020).

    The input of every piece is moved by ``size`` times its own length, all pieces of a text in the
    direction in which the text's loss rises most.

    The pass that finds this direction also gives the gradients of the other half, on the input as
    it is, and they are added to those of the weights at once. ``backward`` on the loss adds the
    rest; call it, once, before the next step.

    Raises:
        ValueError: a size that is not positive.
    """
    _positive(size)

    def objective(tuned: Tuned, hidden: Tensor, mask: Tensor, gold: Tensor) -> Tensor:
        given = hidden.detach().requires_grad_()
        half = plain(tuned, given, mask, gold) / 2
        half.backward()
        slope = given.grad
        loss = plain(tuned, hidden + _push(slope, given, size), mask, gold) / 2 + half.detach()
        if hidden.requires_grad:
            # What the first half asks of everything below the input; its value is counted already.
            below = (hidden * slope).sum()
            loss = loss + below - below.detach()
        return loss

    return objective


def disturbed(tuned: Tuned, hidden: Tensor, mask: Tensor, gold: Tensor, size: float) -> Tensor:
    """[B, T, D] states moved in the direction in which this model's loss rises, without a graph.

    ``size`` 0 returns them as they are. A worst case by one step of gradient ascent.
    """
    if size == 0:
        return hidden.detach()
    with torch.enable_grad():
        given = hidden.detach().clone().requires_grad_()
        (slope,) = torch.autograd.grad(plain(tuned, given, mask, gold), given)
    return given.detach() + _push(slope, given, size)


def noised(hidden: Tensor, size: float, seed: int = 0) -> Tensor:
    """[B, T, D] states moved as far in a random direction."""
    draw = torch.Generator().manual_seed(seed)
    noise = torch.randn(hidden.shape, generator=draw).to(hidden.device)
    return hidden.detach() + _push(noise, hidden, size)


def _push(slope: Tensor, hidden: Tensor, size: float) -> Tensor:
    """The direction of a text's slope [B, T, D], as long as ``size`` of the text's states."""
    length = slope.flatten(1).norm(dim=1)[:, None, None].clamp_min(1e-12)
    scale = hidden.detach().flatten(1).norm(dim=1)[:, None, None]
    return (size * scale / length * slope).detach()


class Smooth:
    """Smoothness-inducing regularisation with a proximal term (SMART; Jiang et al. 2020).

    loss + weight * KL between the answers to the input and to a nearby one, found by one step of
    gradient ascent + proximal * KL between the answers now and those of a moving average of all
    trained weights. KL is taken in both directions.

    Args:
        size: how near, relative to the length of the input.
        weight, proximal: of the two terms.
        momentum: of the moving average.
        seed: of the first, random, disturbance.
    """

    def __init__(
        self,
        size: float = 0.05,
        weight: float = 1.0,
        proximal: float = 1.0,
        momentum: float = 0.9,
        seed: int = 0,
    ):
        _positive(size)
        self.size, self.weight, self.proximal = size, weight, proximal
        self.momentum, self.draw = momentum, torch.Generator().manual_seed(seed)
        self.average: Tuned | None = None

    def __call__(self, tuned: Tuned, hidden: Tensor, mask: Tensor, gold: Tensor) -> Tensor:
        logits = tuned.score(hidden, mask)
        loss = nn.functional.cross_entropy(logits, gold)
        noise = torch.randn(hidden.shape, generator=self.draw).to(hidden.device)
        start = hidden.detach() + 0.1 * _push(noise, hidden, self.size)
        start.requires_grad_()
        rise = _both_kl(tuned.score(start, mask), logits.detach())
        (slope,) = torch.autograd.grad(rise, start)
        moved = hidden + _push(slope, hidden, self.size)
        loss = loss + self.weight * _both_kl(tuned.score(moved, mask), logits)
        return loss + self.proximal * _both_kl(logits, self._average_logits(tuned, hidden, mask))

    def _average_logits(self, tuned: Tuned, hidden: Tensor, mask: Tensor) -> Tensor:
        with torch.no_grad():
            if self.average is None:
                self.average = copy.deepcopy(tuned)
            else:
                pairs = zip(_trained(self.average), _trained(tuned), strict=True)
                for old, new in pairs:
                    old.lerp_(new, 1 - self.momentum)
            return self.average.score(hidden.detach(), mask)


def _trained(tuned: Tuned) -> list[Tensor]:
    return [p for p in (*tuned.encoder.base.parameters(), *tuned.head.parameters())
            if p.requires_grad]  # fmt: skip


def _both_kl(a: Tensor, b: Tensor) -> Tensor:
    """Mean KL divergence between two sets of logits [B, C], in both directions, in nats."""
    p, q = a.log_softmax(-1), b.log_softmax(-1)
    return ((p.exp() - q.exp()) * (p - q)).sum(-1).mean()


def _positive(size: float) -> None:
    if size <= 0:
        raise ValueError(f"a disturbance of size {size}")


class Mixout:
    """Mix the weights of the start back in at random (Lee et al. 2020).

    In every step a share ``share`` of the entries of every matrix is put back to where it began,
    and the rest is moved further, so that the mean is as it was: with ``share`` 0 nothing changes.
    Enter :meth:`step` around the forward and backward pass.

    Args:
        parameters: matrices among them are mixed, vectors are not.
        share: from 0 to below 1.
        seed: of the choice of entries.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], share: float, seed: int = 0):
        if not 0 <= share < 1:
            raise ValueError(f"a share of {share}, must lie in [0, 1)")
        self.share = share
        self.pairs = [(p, p.detach().clone()) for p in parameters if p.ndim == 2]
        # NumPy draws small integers many times faster than torch draws numbers.
        self.draw = np.random.default_rng(seed)
        self.threshold = round(share * 2**16)

    @contextmanager
    def step(self) -> Iterator[None]:
        """Weights are mixed inside; after it, gradients are those of the weights themselves."""
        scales, own = [], []
        for weight, start in self.pairs:
            drawn = self.draw.integers(0, 2**16, size=tuple(weight.shape), dtype=np.uint16)
            kept = torch.from_numpy(drawn >= self.threshold).to(weight.device)
            scales.append(kept.to(weight.dtype).div_(1 - self.share))
            own.append(weight.data)
            weight.data = torch.addcmul(start, weight.data - start, scales[-1])
        try:
            yield
        finally:
            for (weight, _), scale, before in zip(self.pairs, scales, own, strict=True):
                weight.data = before
                if weight.grad is not None:
                    weight.grad.mul_(scale)
