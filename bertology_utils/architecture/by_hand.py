"""One head, one layer and the input, written out with weights alone and compared with the library.

Devlin et al. 2019 (arXiv 1810.04805) take their layers from Vaswani et al. 2017 (arXiv 1706.03762).
Nothing here calls a module of the model: every line multiplies and adds its weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers.activations import ACT2FN

from ..activations import SITES, merge_heads, run_with_cache, split_heads
from ..encoder import Encoder, additive_mask, evaluating
from ..resampling import Estimate
from ..words import Batch, Text

#: what :func:`layer_by_hand` computes, in this order
STEPS = tuple(name for name in SITES if name != "hidden_states") + ("hidden_states",)


@dataclass(frozen=True)
class HeadByHand:
    """One attention head on one text of T pieces.

    Attributes:
        q, k, v: [T, K] queries, keys and values.
        scores: [T, T] scaled products of queries (rows) and keys (columns).
        pattern: [T, T] softmax of the scores; rows sum to 1.
        z: [T, K] values mixed by the pattern.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    scores: Tensor
    pattern: Tensor
    z: Tensor


@dataclass(frozen=True)
class HandCheck:
    """How far computing by hand is from the library, for every step of every layer.

    Attributes:
        steps: step -> largest absolute difference over layers, pieces and dimensions.
        scales: step -> largest absolute value of that step, which says what a difference means.
        heads: [L][H] largest difference of a head's pattern and z.
        result: the largest number of ``heads``, for the ledger.
    """

    steps: dict[str, float]
    scales: dict[str, float]
    heads: tuple[tuple[float, ...], ...]
    result: Estimate


def head_by_hand(encoder: Encoder, hidden: Tensor, layer: int, head: int) -> HeadByHand:
    """One head from the rows of W_Q, W_K and W_V that belong to it.

    Args:
        encoder: any encoder.
        hidden: [T, D], what enters the layer, without padding.
        layer, head: which head.

    Raises:
        LayerIndexError, HeadIndexError: no such head.
    """
    encoder.check_heads({layer: [head]})
    part, d_head = encoder.layers[layer], encoder.d_head
    rows = slice(head * d_head, (head + 1) * d_head)
    with torch.no_grad():
        q, k, v = (
            hidden @ table.weight[rows].T + table.bias[rows]
            for table in (part.query, part.key, part.value)
        )
        scores = q @ k.T / d_head**0.5
        pattern = scores.softmax(dim=-1)
        return HeadByHand(q, k, v, scores, pattern, pattern @ v)


def layer_by_hand(
    encoder: Encoder, hidden: Tensor, attention_mask: Tensor, layer: int
) -> dict[str, Tensor]:
    """Every step of one layer, under the names and shapes of ``activations.SITES``.

    Args:
        encoder: any encoder.
        hidden: [B, T, D], what enters the layer.
        attention_mask: [B, T], 1 for pieces and 0 for padding.
        layer: which layer.

    Raises:
        LayerIndexError: no such layer.
    """
    encoder.check_layer(layer)
    part, d_head = encoder.layers[layer], encoder.d_head
    act = ACT2FN[getattr(encoder.config, "hidden_act", None) or encoder.config.activation]
    with torch.no_grad():
        made = {
            name: split_heads(_affine(hidden, table), d_head)
            for name, table in (("q", part.query), ("k", part.key), ("v", part.value))
        }
        scores = made["q"] @ made["k"].transpose(-1, -2) / d_head**0.5
        scores = scores + additive_mask(attention_mask.to(hidden.device), hidden.dtype)
        made["pattern"] = scores.softmax(dim=-1)
        made["z"] = made["pattern"] @ made["v"]
        made["attn_out"] = _affine(merge_heads(made["z"]), part.output)
        made["resid_mid_sum"] = made["attn_out"] + hidden
        made["resid_mid"] = layer_norm(made["resid_mid_sum"], part.attn_norm)
        made["mlp_act"] = act(_affine(made["resid_mid"], part.ffn_in))
        made["mlp_out"] = _affine(made["mlp_act"], part.ffn_out)
        made["resid_post_sum"] = made["mlp_out"] + made["resid_mid"]
        made["hidden_states"] = layer_norm(made["resid_post_sum"], part.ffn_norm)
    return {name: made[name] for name in STEPS}


def layer_norm(x: Tensor, norm: nn.LayerNorm) -> Tensor:
    """Layer normalisation of [..., D] with a module's gain and bias (Ba et al. 2016)."""
    centred = x - x.mean(dim=-1, keepdim=True)
    spread = centred.square().mean(dim=-1, keepdim=True)
    return centred / torch.sqrt(spread + norm.eps) * norm.weight + norm.bias


def input_parts(encoder: Encoder, batch: Batch) -> dict[str, Tensor]:
    """The vectors that are summed into the input, [B, T, E] each.

    E is the width of the tables: D, but for ELECTRA. "segment" is missing where the family has no
    segment table (DistilBERT).
    """
    tables = encoder.embeddings
    ids = batch.input_ids.to(encoder.device)
    # RoBERTa's first position is padding_idx + 1.
    padding = tables.position.padding_idx
    start = 0 if padding is None else padding + 1
    numbers = torch.arange(start, start + ids.shape[1], device=ids.device).expand_as(ids)
    parts = {"token": tables.token.weight[ids], "position": tables.position.weight[numbers]}
    if tables.segment is not None:
        segments = batch.token_type_ids.to(ids.device) * (tables.segment.num_embeddings > 1)
        parts["segment"] = tables.segment.weight[segments]
    return {name: vectors.detach() for name, vectors in parts.items()}


def input_by_hand(encoder: Encoder, batch: Batch) -> Tensor:
    """What enters the first layer, [B, T, D]: the normalised sum of :func:`input_parts`."""
    tables = encoder.embeddings
    with torch.no_grad():
        total = layer_norm(sum(input_parts(encoder, batch).values()), tables.norm)
        return total if tables.projection is None else _affine(total, tables.projection)


def check_by_hand(encoder: Encoder, texts: Batch | Text | Sequence[Text]) -> HandCheck:
    """Compare every step of every layer with the library's, at all pieces but padding.

    Each layer is given the library's own input, so that differences do not add up.

    Raises:
        As :func:`~bertology_utils.activations.run_with_cache`.
    """
    with evaluating(encoder):
        cache = run_with_cache(encoder, texts, STEPS)
    batch = cache.batch
    real = batch.attention_mask.bool().to(encoder.device)
    first = cache.layers["hidden_states"][0]
    steps = {"input": _largest((input_by_hand(encoder, batch) - first), real)}
    scales = {"input": _largest(first, real)}
    heads = []
    for layer in range(encoder.n_layers):
        made = layer_by_hand(
            encoder, cache.layers["hidden_states"][layer], batch.attention_mask, layer
        )
        by_head = torch.zeros(encoder.heads_per_layer[layer], device=encoder.device)
        for name, value in made.items():
            entry = layer + 1 if name == "hidden_states" else layer
            apart = value - cache.layers[name][entry]
            steps[name] = max(steps.get(name, 0.0), _largest(apart, real))
            scales[name] = max(scales.get(name, 0.0), _largest(value, real))
            if name in ("pattern", "z"):
                apart = apart.abs() * real[:, None, :, None]
                by_head = torch.maximum(by_head, apart.amax(dim=(0, 2, 3)))
        heads.append(tuple(by_head.tolist()))
    largest = max(max(row) for row in heads)
    n = sum(encoder.heads_per_layer)
    result = Estimate(value=largest, unit="absolute error", n=n, model=encoder.name)
    return HandCheck(steps, scales, tuple(heads), result)


def _largest(values: Tensor, real: Tensor) -> float:
    """Largest absolute value of [B, T, .] or [B, H, T, .] at the pieces that are not padding."""
    mask = real[:, None, :, None] if values.ndim == 4 else real[:, :, None]
    return float((values.abs() * mask).max())


def _affine(x: Tensor, table: nn.Linear) -> Tensor:
    return x @ table.weight.T + table.bias
