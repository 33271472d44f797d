"""Several tiny BERTs of one shape as one computation.

A model this small spends its time on starting operations, not on arithmetic. So every weight has a
leading dimension M over *members* (seeds, masking schemes...), and one batched product serves
all. Members share nothing: the gradient of a sum of losses is each member's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

Weights = dict[str, Tensor]
#: spread of first weights is this over sqrt(width)
INITIAL = 0.3
EPSILON = 1e-12


def initial_weights(
    seeds: Sequence[int], *, order: str, width: int, vocabulary: int, length: int, classes: int
) -> Weights:
    """Fresh weights of len(seeds) members, each a function of its own seed only.

    ``order`` holds "a" and "f" from the input upwards. Matrices are [M, in, out].
    """
    shapes: dict[str, tuple[int, ...]] = {
        "words": (vocabulary, width), "positions": (length, width), "segments": (2, width),
    }  # fmt: skip
    for number, kind in enumerate(order):
        if kind == "a":
            shapes[f"{number}.in"] = (width, 3 * width)
            shapes[f"{number}.out"] = (width, width)
        else:
            shapes[f"{number}.in"] = (width, 4 * width)
            shapes[f"{number}.out"] = (4 * width, width)
    shapes |= {"transform": (width, width), "pooler": (width, width), "classes": (width, classes)}
    scale = INITIAL / width**0.5
    drawn = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(1000 + seed)
        drawn.append({n: scale * torch.randn(s, generator=generator) for n, s in shapes.items()})
    weights = {name: torch.stack([own[name] for own in drawn]) for name in shapes}
    members = len(seeds)
    for name in ("embedded", *(str(n) for n in range(len(order))), "transform"):
        weights[f"{name}.gain"] = torch.ones(members, 1, width)
        weights[f"{name}.shift"] = torch.zeros(members, 1, width)
    for name, shape in shapes.items():
        if name not in ("words", "positions", "segments"):
            weights[f"{name}.bias"] = torch.zeros(members, 1, shape[-1])
    weights["decoder.bias"] = torch.zeros(members, 1, vocabulary)
    return weights


def linear(weights: Weights, name: str, x: Tensor) -> Tensor:
    """[M, N, in] -> [M, N, out]."""
    return torch.baddbmm(weights[f"{name}.bias"], x, weights[name])


def normalise(weights: Weights, name: str, x: Tensor) -> Tensor:
    """Layer normalisation over the last dimension of [M, N, D]."""
    plain = F.layer_norm(x, x.shape[-1:], eps=EPSILON)
    return torch.addcmul(weights[f"{name}.shift"], plain, weights[f"{name}.gain"])


def embed(weights: Weights, ids: Tensor, segments: Tensor | None) -> Tensor:
    """Ids [M, B, T] -> vectors [M, B * T, D]."""
    members, batch, length = ids.shape
    table = weights["words"]
    offsets = torch.arange(members)[:, None, None] * table.shape[1]
    x = F.embedding(ids + offsets, table.flatten(0, 1))
    x = x + weights["positions"][:, None, :length]
    if segments is None:
        x = x + weights["segments"][:, None, :1]
    else:
        both = torch.arange(members)[:, None, None] * 2 + segments
        x = x + F.embedding(both, weights["segments"].flatten(0, 1))
    return normalise(weights, "embedded", x.reshape(members, batch * length, -1))


def forward(
    weights: Weights, ids: Tensor, *, order: str, heads: int, segments: Tensor | None = None,
    outputs: list[Tensor] | None = None, patterns: list[Tensor] | None = None,
    states: list[Tensor] | None = None, at: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Last vectors [M, B * T, D] of ids [M, B, T]; padding (id 0) is never attended to.

    With ``at``, places [M, K] among B * T, only the vectors there, [M, K, D]: blocks above the last
    attention are computed for these alone, as no other place reads them.

    Lists, where given, are filled: ``outputs`` with the output of heads [M * B, H, T, D / H] of
    every attention block, ``patterns`` with its weights [M, B, H, T, T], and ``states`` with the
    embedding output and the vectors after every block.
    """
    members, batch, length = ids.shape
    x = embed(weights, ids, segments)
    width = x.shape[-1]
    seen = (ids != 0).view(members * batch, 1, 1, length)
    if states is not None:
        states.append(x)
    above = order.rindex("a") + 1
    for number, kind in enumerate(order):
        if number == above and at is not None:
            x = take(x, at)
        inner = linear(weights, f"{number}.in", x)
        if kind == "a":
            parts = inner.view(members * batch, length, 3, heads, width // heads)
            query, key, value = parts.permute(2, 0, 3, 1, 4)
            if patterns is not None:
                scores = query @ key.transpose(-1, -2) / (width // heads) ** 0.5
                pattern = scores.masked_fill(~seen, -torch.inf).softmax(-1)
                patterns.append(pattern.view(members, batch, heads, length, length))
            mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=seen)
            if outputs is not None:
                outputs.append(mixed)
            inner = mixed.transpose(1, 2).reshape(members, batch * length, width)
        else:
            inner = F.gelu(inner)
        x = normalise(weights, str(number), x + linear(weights, f"{number}.out", inner))
        if states is not None:
            states.append(x)
    return take(x, at) if at is not None and above == len(order) else x


def take(x: Tensor, places: Tensor) -> Tensor:
    """Rows of [M, N, D] at places [M, K] -> [M, K, D]."""
    return x.gather(1, places[..., None].expand(-1, -1, x.shape[-1]))


def word_logits(weights: Weights, x: Tensor) -> Tensor:
    """[M, K, D] -> [M, K, V]; the output matrix is the table of words, as in BERT."""
    x = normalise(weights, "transform", F.gelu(linear(weights, "transform", x)))
    return torch.baddbmm(weights["decoder.bias"], x, weights["words"].transpose(1, 2))


def first_pieces(ids: Tensor) -> Tensor:
    """Places [M, B] of the first piece of every row among the B * T of ids [M, B, T]."""
    members, batch, length = ids.shape
    return torch.arange(0, batch * length, length).expand(members, -1)


def class_logits(weights: Weights, first: Tensor) -> Tensor:
    """From the vectors of first pieces, [M, B, D] -> [M, B, classes]."""
    return linear(weights, "classes", torch.tanh(linear(weights, "pooler", first)))


def replaced_logits(weights: Weights, x: Tensor) -> Tensor:
    """Logits that each piece has been replaced, [M, N, D] -> [M, N], from the first class."""
    return linear(weights, "classes", F.gelu(linear(weights, "pooler", x)))[..., 0]


def stacked(weights: Weights, order: str) -> Weights:
    """Twice the layers: blocks of ``order`` on top of a copy of themselves (Gong et al. 2019)."""
    grown = {name: value.clone() for name, value in weights.items()}
    for name, value in weights.items():
        number, _, rest = name.partition(".")
        if number.isdigit():
            grown[f"{int(number) + len(order)}.{rest}"] = value.clone()
    return grown


def member(weights: Weights, index: int) -> Weights:
    """One member alone, still with a leading dimension of 1."""
    return {name: value[index : index + 1].clone() for name, value in weights.items()}
