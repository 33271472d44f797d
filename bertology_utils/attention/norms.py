"""Attention weighted by what it carries (Kobayashi et al. 2020, arXiv 2004.10102).

A head adds sum_j alpha_ij f(x_j) to position i, with f(x) = (x W_V + b_V) W_O. A large weight
alpha_ij on a vector f(x_j) of small norm moves nothing, so the norm |alpha_ij f(x_j)| is the better
measure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..activations import Cache, stream
from ..encoder import Encoder, additive_mask
from ..words import Text
from .maps import KINDS, MAX_TOKENS, piece_kinds
from .scores import HeadScores


def recomputed_pattern(encoder: Encoder, cache: Cache) -> Tensor:
    """softmax(q k^T / sqrt(K) + mask) [L, B, H, T, T] from captured ``q`` and ``k``.

    Equals the library's ``pattern`` to rounding, which the tests demand.

    Raises:
        UnknownSiteError: the cache lacks ``q`` or ``k``.
    """
    q, k = cache["q"], cache["k"]
    mask = additive_mask(cache.batch.attention_mask.to(q.device), q.dtype)
    return torch.softmax(q @ k.transpose(-1, -2) / encoder.d_head**0.5 + mask, dim=-1)


def value_vectors(encoder: Encoder, cache: Cache, layer: int) -> Tensor:
    """f(x_j) of every head [B, H, T, D]: what a head hands over from piece j at weight 1.

    The pattern times these, summed over heads, plus the bias of the output map is ``attn_out``.

    Raises:
        UnknownSiteError: the cache lacks ``v``.
        LayerIndexError: no such layer.
    """
    encoder.check_layer(layer)
    return torch.einsum("bhtk,hkd->bhtd", cache["v"][layer], _output_maps(encoder, layer))


def value_norms(encoder: Encoder, cache: Cache) -> Tensor:
    """|f(x_j)| of every layer and head [L, B, H, T].

    Computed from K x K Gram matrices of the output maps, without the [B, H, T, D] vectors.

    Raises:
        UnknownSiteError: the cache lacks ``v``.
    """
    found = []
    for layer, v in enumerate(cache["v"]):
        maps = _output_maps(encoder, layer).double()
        gram = maps @ maps.transpose(-1, -2)
        wide = v.double()
        squared = torch.einsum("bhtk,hkm,bhtm->bht", wide, gram, wide)
        found.append(squared.clamp_min(0).sqrt().to(v.dtype))
    return torch.stack(found)


def norm_attention(encoder: Encoder, cache: Cache) -> Tensor:
    """|alpha_ij f(x_j)| [L, B, H, T, T], not normalised.

    Raises:
        UnknownSiteError: the cache lacks ``v`` or ``pattern``.
    """
    return cache["pattern"] * value_norms(encoder, cache)[..., None, :]


def norm_shares(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> dict[str, dict[str, HeadScores]]:
    """Share of every kind of piece by weight and by norm.

    Rows of norms are divided by their sum, so that both are shares of one. The control ``uniform``
    is the share of the pieces themselves.

    Returns:
        ``{"weight": {kind: scores}, "norm": {kind: scores}}`` with the kinds ``cls``, ``sep``,
        ``punctuation`` and ``text``.
    """
    shape = (len(texts), encoder.n_layers, encoder.n_heads)
    sums = {way: {kind: np.zeros(shape) for kind in KINDS} for way in ("weight", "norm")}
    counts = np.zeros(len(texts))
    even = {kind: np.zeros((len(texts), 1)) for kind in KINDS}
    for cache in stream(encoder, texts, ["pattern", "v"], max_tokens=max_tokens):
        weights = cache["pattern"]
        norms = norm_attention(encoder, cache)
        norms = norms / norms.sum(-1, keepdim=True).clamp_min(1e-30)
        for b, (index, row) in enumerate(zip(cache.batch.index, cache.batch.rows, strict=True)):
            t = len(row.input_ids)
            counts[index] = t
            received = {"weight": weights, "norm": norms}
            for kind, mask in piece_kinds(row).items():
                even[kind][index] = mask.sum()
                for way, values in received.items():
                    columns = values[:, b, :, :t, :t].sum(-2).cpu().numpy()
                    sums[way][kind][index] = columns[..., mask].sum(-1)
    return {
        way: {
            kind: HeadScores(
                f"{kind} by {way}", "share", sums[way][kind], counts, encoder.name, seed,
                {"uniform": even[kind]},
            )
            for kind in KINDS
        }
        for way in sums
    }  # fmt: skip


def weight_norm_correlation(
    encoder: Encoder,
    texts: Sequence[Text],
    kind: str = "sep",
    *,
    max_tokens: int = MAX_TOKENS,
) -> np.ndarray:
    """Pearson's correlation [L, H] of the mean weight a piece receives with the norm |f(x_j)|.

    Over all pieces of a kind in all texts. Negative values mean that a head makes vectors small
    where it looks often. NaN for a head whose weights or norms do not vary.

    Raises:
        KeyError: unknown kind.
        ValueError: fewer than three such pieces.
    """
    if kind not in KINDS:
        raise KeyError(f"unknown kind {kind!r}; known: {', '.join(KINDS)}")
    weights, norms = [], []
    for cache in stream(encoder, texts, ["pattern", "v"], max_tokens=max_tokens):
        size = value_norms(encoder, cache)
        for b, row in enumerate(cache.batch.rows):
            t = len(row.input_ids)
            mask = piece_kinds(row)[kind]
            received = cache["pattern"][:, b, :, :t, :t].mean(-2).cpu().numpy()
            weights.append(received[..., mask])
            norms.append(size[:, b, :, :t].cpu().numpy()[..., mask])
    x = np.concatenate(weights, -1) if weights else np.zeros((1, 1, 0))
    y = np.concatenate(norms, -1) if norms else x
    if x.shape[-1] < 3:
        raise ValueError(f"{x.shape[-1]} pieces of kind {kind!r} are too few for a correlation")
    x, y = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    scale = np.sqrt((x**2).sum(-1) * (y**2).sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(scale > 0, (x * y).sum(-1) / scale, np.nan)


def _output_maps(encoder: Encoder, layer: int) -> Tensor:
    """The output map of a layer, a slice for each head: [H, K, D]."""
    parts = encoder.layers[layer]
    return parts.output.weight.detach().T.reshape(parts.n_heads, parts.d_head, -1)
