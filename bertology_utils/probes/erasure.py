"""Take a property out of vectors: nullspace projection, its closed form, and the random control."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from .data import Split, Task, as_features, as_task
from .errors import ProbeError
from .linear import fit_linear


@dataclass(frozen=True, eq=False)
class Erasure:
    """The map ``h -> centre + projection @ (h - centre)``; fits ``interventions.erase``.

    Attributes:
        projection: [D, D].
        centre: [D] the point that stays in place.
        rank: number of dimensions removed.
        method: ``"inlp"``, ``"leace"`` or ``"random"``.
        accuracies: of INLP, test accuracy of the probe of every round, the last being what that
            probe finds after the last removal; else empty.
        remaining: test accuracy of a new linear probe on the erased vectors, its penalty chosen by
            the development part; None for random directions, or without a development part.
        majority: test accuracy of the most frequent training class; None for random directions.
    """

    projection: Tensor
    centre: Tensor
    rank: int
    method: str
    accuracies: tuple[float, ...] = ()
    remaining: float | None = None
    majority: float | None = None

    def apply(self, vectors: Tensor) -> Tensor:
        """[..., D] -> [..., D], on the device and in the type of ``vectors``."""
        matrix, middle = self.projection.to(vectors), self.centre.to(vectors)
        return middle + (vectors - middle) @ matrix.T


def inlp(
    vectors: np.ndarray | Tensor,
    labels: Sequence[Hashable],
    split: Split,
    *,
    rounds: int = 20,
    margin: float = 0.01,
    l2: float = 0.1,
) -> Erasure:
    """Iterative nullspace projection (Ravfogel et al. 2020, arXiv 2004.07667).

    Each round trains a linear probe and projects the vectors onto the null space of its weights,
    until a new probe is no better than the majority class. All removed directions together form
    one orthogonal projection.

    Args:
        vectors: [N, D].
        labels: [N].
        split: over the N vectors; accuracies are of its test part.
        rounds: most rounds of removal.
        margin: how far above the majority class the probe may stay.
        l2: penalty of the probes. A strong one leans on the directions in which classes lie apart
            most, so that fewer have to go than with weights that exploit every detail.

    Raises:
        ProbeError: vectors that are not [N, D]; as :func:`probe_layers` for bad data.
        ValueError: no round.
    """
    if rounds < 1:
        raise ValueError(f"rounds must be 1 or more, got {rounds}")
    data = as_features(_matrix(vectors)[None])
    task = as_task(labels, split, data.shape[1])
    classes = len(task.classes)
    width = data.shape[2]
    centre = data[0, split.train].mean(0)
    data = data - centre
    train, dev, test = (data[:, rows] for rows in (split.train, split.dev, split.test))
    held = (dev, task.of("dev")) if len(split.dev) else None
    basis = data.new_zeros(width, 0)
    accuracies = []
    for _ in range(rounds + 1):
        flat = [part - (part @ basis) @ basis.T for part in (train, test)]
        flat_dev = None if held is None else (held[0] - (held[0] @ basis) @ basis.T, held[1])
        probe = fit_linear(flat[0], task.of("train"), classes, dev=flat_dev, l2=l2)
        right = probe.logits(flat[1]).argmax(2) == task.of("test").to(data.device)
        accuracies.append(right.float().mean().item())
        enough = accuracies[-1] <= task.majority + margin
        if enough or len(accuracies) > rounds or basis.shape[1] == width:
            break
        if not probe.weight.any():
            break  # no direction was worth having: nothing is left to remove
        basis = _extended(basis, probe.weight[0])
    projection = torch.eye(width, device=data.device) - basis @ basis.T
    found = Erasure(projection, centre, basis.shape[1], "inlp", tuple(accuracies))
    return _checked(found, data[0] + centre, task)


def leace(vectors: np.ndarray | Tensor, labels: Sequence[Hashable], split: Split) -> Erasure:
    """The closed form: the smallest change after which no linear probe beats a constant.

    Belrose et al. 2023 (arXiv 2306.03819): ``I - W^+ P W`` with W the whitening map and P the
    projection onto the whitened covariance of vectors and classes. Exact on the training part.

    Arguments and errors as :func:`inlp`.
    """
    data = as_features(_matrix(vectors)[None])[0]
    task = as_task(labels, split, len(data))
    rows = data[split.train].double()
    onehot = torch.nn.functional.one_hot(task.of("train"), len(task.classes)).to(rows)
    centre = rows.mean(0)
    rows = rows - centre
    values, directions = torch.linalg.eigh(rows.T @ rows / len(rows))
    kept = values > values.max() * 1e-9
    values, directions = values[kept], directions[:, kept]
    whiten = (directions / values.sqrt()) @ directions.T
    colour = (directions * values.sqrt()) @ directions.T
    cross = whiten @ (rows.T @ (onehot - onehot.mean(0)) / len(rows))
    left, sizes, _ = torch.linalg.svd(cross, full_matrices=False)
    left = left[:, sizes > 1e-6 * sizes.max()]
    projection = torch.eye(len(centre), dtype=rows.dtype, device=rows.device)
    projection = projection - colour @ left @ left.T @ whiten
    found = Erasure(projection.float(), centre.float(), left.shape[1], "leace")
    return _checked(found, data, task)


def random_erasure(
    width: int, rank: int, *, seed: int = 0, centre: Tensor | None = None
) -> Erasure:
    """The control: as many random orthogonal directions.

    Args:
        width: D; rank: directions to remove, at most D.
        seed: of the directions.
        centre: [D]; 0 by default. Use that of the erasure it is a control for.

    Raises:
        ValueError: a rank that is not in 1 .. D.
    """
    if not 1 <= rank <= width:
        raise ValueError(f"rank must lie in 1..{width}, got {rank}")
    generator = torch.Generator().manual_seed(seed)
    basis = torch.linalg.qr(torch.randn(width, rank, generator=generator))[0]
    middle = torch.zeros(width) if centre is None else centre
    return Erasure((torch.eye(width) - basis @ basis.T).to(middle), middle, rank, "random")


def _checked(erasure: Erasure, vectors: Tensor, task: Task) -> Erasure:
    """The erasure with what a fresh probe still finds."""
    erased, split = erasure.apply(vectors)[None], task.split
    remaining = None
    if len(split.dev):
        dev = (erased[:, split.dev], task.of("dev"))
        probe = fit_linear(erased[:, split.train], task.of("train"), len(task.classes), dev=dev)
        right = probe.logits(erased[:, split.test]).argmax(2).cpu() == task.of("test")
        remaining = right.float().mean().item()
    return replace(erasure, remaining=remaining, majority=task.majority)


def _matrix(vectors: np.ndarray | Tensor) -> Tensor:
    tensor = vectors if isinstance(vectors, Tensor) else torch.as_tensor(np.asarray(vectors))
    if tensor.ndim != 2:
        raise ProbeError(f"vectors have shape {tuple(tensor.shape)}, expected [examples, width]")
    return tensor


def _extended(basis: Tensor, weight: Tensor) -> Tensor:
    """Orthonormal columns [D, r] and the directions of a probe's weights [D, K]."""
    # Softmax does not see what all classes share: only differences between classes count.
    new = weight - weight.mean(1, keepdim=True)
    new = new - basis @ (basis.T @ new)
    left, sizes, _ = torch.linalg.svd(new, full_matrices=False)
    left = left[:, sizes > 1e-4 * sizes.max()]
    # A second pass keeps the basis orthonormal in single precision.
    left = torch.linalg.qr(left - basis @ (basis.T @ left))[0]
    return torch.cat([basis, left], dim=1)[:, : len(basis)]
