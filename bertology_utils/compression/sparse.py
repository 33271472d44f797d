"""Unstructured pruning: single weights become zero. Files shrink; dense hardware gains no time."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from .data import Labelled
from .errors import CompressionError
from .model import Compact, linear_maps
from .training import Loss, Recipe, label_loss, train, trainable

#: share of training before which nothing is cut, and after which the cut no longer changes
_WARM, _HOLD = 0.1, 0.3

Masks = dict[str, Tensor]


def check_share(share: float) -> float:
    """Return ``share`` if it lies in (0, 1], else raise.

    Raises:
        CompressionError: it does not.
    """
    if not 0 < share <= 1:
        raise CompressionError(f"the share of weights to keep is {share}, not in (0, 1]")
    return share


def top_masks(scores: Mapping[str, Tensor], share: float) -> Masks:
    """Keep the ``share`` of all weights with the highest scores, over all matrices together."""
    check_share(share)
    flat = torch.cat([score.flatten() for score in scores.values()])
    gone = flat.numel() - max(1, round(share * flat.numel()))
    if gone == 0:
        return {name: torch.ones_like(score, dtype=torch.bool) for name, score in scores.items()}
    border = _smallest(flat, gone)
    return {name: score > border for name, score in scores.items()}


def _smallest(flat: Tensor, k: int) -> float:
    """The k-th smallest number, counted from 1. NumPy finds it several times faster than torch."""
    return float(np.partition(flat.cpu().numpy(), k - 1)[k - 1])


def _about(scores: Mapping[str, Tensor], share: float) -> Masks:
    """As :func:`top_masks` by a border taken from every 16th weight: near enough on the way."""
    flat = torch.cat([score.flatten()[::16] for score in scores.values()])
    gone = max(1, flat.numel() - round(share * flat.numel()))
    border = _smallest(flat, gone)
    return {name: score > border for name, score in scores.items()}


def magnitudes(model: nn.Module, *, tables: bool = False) -> dict[str, Tensor]:
    """|w| of every matrix in the layers; with ``tables``, of the token table, too."""
    found = {name: linear.weight.detach().abs() for name, linear in linear_maps(model).items()}
    if tables and isinstance(model, Compact) and isinstance(model.token, nn.Embedding):
        found["token"] = model.token.weight.detach().abs()
    return found


def random_like(scores: Mapping[str, Tensor], seed: int) -> dict[str, Tensor]:
    """Scores drawn at random: cuts of the same size that know nothing."""
    draw = torch.Generator().manual_seed(seed)
    return {name: torch.rand(score.shape, generator=draw) for name, score in scores.items()}


def apply_masks(model: nn.Module, masks: Mapping[str, Tensor]) -> None:
    """Set the weights outside of the masks to zero, in place."""
    with torch.no_grad():
        for name, mask in masks.items():
            module = model.get_submodule(name)
            if isinstance(module, nn.Embedding):
                # Copies of a model share their table of token vectors.
                module.weight = nn.Parameter(module.weight * mask)
            else:
                module.weight.mul_(mask)


def masked(model: nn.Module, masks: Mapping[str, Tensor]) -> nn.Module:
    """A copy with the weights outside of the masks at zero."""
    made = copy.deepcopy(model)
    apply_masks(made, masks)
    return made


def sparsity(model: nn.Module) -> float:
    """Share of zeros among the weights of all layers."""
    maps = linear_maps(model).values()
    zeros = sum(int((linear.weight == 0).sum()) for linear in maps)
    return zeros / sum(linear.weight.numel() for linear in maps)


def cubic_share(done: float, final: float) -> float:
    """Share kept after a share ``done`` of the training: 1 at first, ``final`` for the last part.

    The cubic schedule of Zhu and Gupta (2017) that Sanh et al. (2020) use.
    """
    progress = min(1.0, max(0.0, (done - _WARM) / (1 - _HOLD - _WARM)))
    return final + (1 - final) * (1 - progress) ** 3


class _MaskedLinear(torch.autograd.Function):
    """y = x (w * mask)^T whose gradient reaches all of w, as if nothing were masked."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, mask: Tensor) -> Tensor:
        cut = weight * mask
        ctx.save_for_backward(x, cut)
        return x @ cut.T

    @staticmethod
    def backward(ctx, grad: Tensor):
        x, cut = ctx.saved_tensors
        rows = grad.flatten(0, -2)
        return grad @ cut, rows.T @ x.flatten(0, -2), None


class _Masked(nn.Module):
    """A linear map during pruning; its dense weight stays reachable."""

    def __init__(self, linear: nn.Linear):
        super().__init__()
        self.linear = linear
        self.mask = torch.ones_like(linear.weight)

    def forward(self, x: Tensor) -> Tensor:
        return _MaskedLinear.apply(x, self.linear.weight, self.mask) + self.linear.bias


CRITERIA = ("magnitude", "movement")


def prune_while_training(
    model: Compact, data: Labelled, recipe: Recipe, *, criterion: str, share: float,
    loss: Loss = label_loss,
) -> Compact:  # fmt: skip
    """Fine-tune a copy while its weights are cut, gradually, down to ``share``.

    By *magnitude* the smallest weights go first (Han et al. 2015; Zhu and Gupta 2017). By
    *movement* (Sanh et al. 2020) those go first that training has pushed towards zero: the score
    of a weight w with gradient g is the sum of -w g over the steps so far, and the gradient also
    reaches weights that are cut at present, so that they may return.

    Args:
        model: stays as it is; where movement is the criterion, usually pre-trained only.
        data, recipe, loss: as for :func:`train`.
        criterion: one of :data:`CRITERIA`.
        share: of the weights of all layers that are left in the end.

    Raises:
        CompressionError: unknown criterion or impossible share.
    """
    check_share(share)
    if criterion not in CRITERIA:
        raise CompressionError(f"criterion is {criterion!r}, must be one of {', '.join(CRITERIA)}")
    made = copy.deepcopy(model)
    wrapped: dict[str, _Masked] = {}
    for name, linear in linear_maps(made).items():
        owner, _, attribute = name.rpartition(".")
        wrapped[name] = _Masked(linear)
        setattr(made.get_submodule(owner), attribute, wrapped[name])
    moved = {name: torch.zeros_like(part.linear.weight) for name, part in wrapped.items()}
    before: dict[str, Tensor] = {}

    def remember(_done: float) -> None:
        if criterion == "movement":
            before.update({n: p.linear.weight.detach().clone() for n, p in wrapped.items()})

    def cut(done: float) -> None:
        if criterion == "movement":
            pulls = {n: before[n] * part.linear.weight.grad for n, part in wrapped.items()}
            # One wild step must not outweigh all others; the paper's scores are trained by Adam,
            # which evens steps out, too.
            size = torch.stack([pull.norm() for pull in pulls.values()]).norm().clamp_min(1e-12)
            for name, pull in pulls.items():
                moved[name] -= pull / size
            scores: Mapping[str, Tensor] = moved
        else:
            scores = {name: part.linear.weight.detach().abs() for name, part in wrapped.items()}
        now = cubic_share(done, share)
        masks = top_masks(scores, now) if done == 1 else _about(scores, now)
        for name, mask in masks.items():
            wrapped[name].mask = mask.float()

    train(made, data, recipe, loss=loss, parameters=trainable(made),
          before_step=remember, after_step=cut)  # fmt: skip
    for name, part in wrapped.items():
        owner, _, attribute = name.rpartition(".")
        with torch.no_grad():
            part.linear.weight.mul_(part.mask)
        setattr(made.get_submodule(owner), attribute, part.linear)
    return made


def reweighted_pruning(
    model: Compact, data: Labelled, recipe: Recipe, *, share: float, strength: float = 1.0,
    every: int = 10, loss: Loss = label_loss,
) -> Compact:  # fmt: skip
    """Reweighted proximal pruning (Guo et al. 2019), a copy cut to exactly ``share``.

    After every step a weight shrinks towards zero by gamma / (|w0| + eps), where |w0| is its size
    when the penalties were last reweighted: what is small is pushed harder, what is large is left
    alone. In the end the smallest weights go.

    Args:
        model: stays as it is.
        data, recipe, loss: as for :func:`train`.
        share: of the weights of all layers that are left.
        strength: how hard to push; 1 moves a weight at the future border to zero in the course of
            the training.
        every: steps between reweightings.

    Raises:
        CompressionError: impossible share.
    """
    made = copy.deepcopy(model)
    maps = linear_maps(made)
    count = 0
    push: dict[str, Tensor] = {}

    def reweigh() -> None:
        sizes = {name: linear.weight.detach().abs() for name, linear in maps.items()}
        flat = torch.cat([size.flatten() for size in sizes.values()])
        border = _smallest(flat, max(1, round((1 - check_share(share)) * flat.numel())))
        for name, size in sizes.items():
            push[name] = strength * border / recipe.steps * border / (size + 0.1 * border)

    def shrink(_done: float) -> None:
        nonlocal count
        if count % every == 0:
            reweigh()
        count += 1
        with torch.no_grad():
            for name, linear in maps.items():
                linear.weight.sub_(linear.weight.clamp(-push[name], push[name]))

    train(made, data, recipe, loss=loss, after_step=shrink)
    apply_masks(made, top_masks(magnitudes(made), share))
    return made


def train_masked(
    model: Compact, masks: Mapping[str, Tensor], data: Labelled, recipe: Recipe,
    *, loss: Loss = label_loss,
) -> Compact:  # fmt: skip
    """Train a copy whose weights outside of the masks are, and stay, zero."""
    made = masked(model, masks)
    train(made, data, recipe, loss=loss, after_step=lambda _done: apply_masks(made, masks))
    return made


def rewound(
    start: Compact, finished: Compact, shares: Sequence[float], data: Labelled,
    recipe: Recipe, *, loss: Loss = label_loss,
) -> tuple[Compact, Masks]:  # fmt: skip
    """Iterative magnitude pruning with rewinding (Frankle and Carbin 2019; Chen et al. 2020).

    Cut the smallest weights of the trained model, set what is left back to ``start``, train again;
    repeat with the next share.

    Args:
        start: the model before any fine-tuning.
        finished: ``start`` fine-tuned; its weights decide the first cut.
        shares: of weights kept after each round, falling.
        data, recipe, loss: of every round.

    Returns:
        the last subnetwork, trained, and its masks.

    Raises:
        CompressionError: shares do not fall.
    """
    if not shares or list(shares) != sorted(set(shares), reverse=True):
        raise CompressionError(f"shares {tuple(shares)} do not fall")
    now, masks = finished, {}
    for share in shares:
        masks = top_masks(magnitudes(now), share)
        now = train_masked(start, masks, data, recipe, loss=loss)
    return now, masks

