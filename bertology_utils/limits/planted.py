"""Vectors in which we know what is where: a probe's silence and a probe's success, both misleading.

Tenney et al. 2019 (arXiv 1905.05950) warn that a pattern not found may still be there, and that one
found need not be used.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from ..probes import fit_linear


@dataclass(frozen=True, eq=False)
class Planted:
    """Vectors with one property hidden in them.

    Attributes:
        vectors: [N, D].
        hidden: [N] the property: 1 where exactly one of two planted signs is positive.
        sign: [N] one of the two signs alone, which any probe can read.
    """

    vectors: np.ndarray
    hidden: np.ndarray
    sign: np.ndarray


def exclusive_or(n: int, width: int = 16, *, noise: float = 0.3, seed: int = 0) -> Planted:
    """Plant two independent signs along random directions; the property is whether they differ.

    Each sign is open to a linear probe; their exclusive or has the same mean vector in both
    classes, so that no linear probe can see it.

    Raises:
        ValueError: fewer than one vector or two dimensions, or negative noise.
    """
    if n < 1 or width < 2 or noise < 0:
        raise ValueError(f"need n >= 1, width >= 2 and noise >= 0, got {n}, {width}, {noise}")
    rng = np.random.default_rng(seed)
    signs = rng.integers(0, 2, (n, 2))
    directions = np.linalg.qr(rng.normal(size=(width, 2)))[0].T
    vectors = (2 * signs - 1) @ directions + noise * rng.normal(size=(n, width))
    return Planted(vectors.astype(np.float32), signs[:, 0] ^ signs[:, 1], signs[:, 0])


@dataclass(frozen=True)
class Unused:
    """A property that can be read and is not used.

    Attributes:
        readable: held-out accuracy of a probe for the property.
        task: held-out accuracy of a classifier on its own task.
        unchanged: share of the classifier's answers that stay when the property is projected out.
        n: held-out vectors.
    """

    readable: float
    task: float
    unchanged: float
    n: int


def unused_property(n: int = 1200, width: int = 16, *, seed: int = 0) -> Unused:
    """A classifier of one planted sign, on vectors that hold a second one it has no use for.

    Raises:
        ValueError: fewer than ten vectors.
    """
    if n < 10:
        raise ValueError(f"ten vectors at least, got {n}")
    rng = np.random.default_rng(seed)
    labels = torch.from_numpy(rng.integers(0, 2, (n, 2)))
    directions = torch.from_numpy(np.linalg.qr(rng.normal(size=(width, 2)))[0].T).float()
    vectors = (2 * labels - 1).float() @ directions
    vectors = (vectors + 0.3 * torch.from_numpy(rng.normal(size=(n, width))).float())[None]
    cut = n // 2
    task, other = (fit_linear(vectors[:, :cut], labels[:cut, k], 2, l2=0.01) for k in (0, 1))
    held, gold = vectors[:, cut:], labels[cut:]
    said = task.logits(held)[0].argmax(1)
    normal = other.weight[0, :, 1] - other.weight[0, :, 0]
    normal = normal / normal.norm()
    without = held - (held @ normal)[..., None] * normal
    after = task.logits(without)[0].argmax(1)
    return Unused(
        float((other.logits(held)[0].argmax(1) == gold[:, 1]).float().mean()),
        float((said == gold[:, 0]).float().mean()),
        float((said == after).float().mean()),
        n - cut,
    )
