"""Is attention an explanation? Jain and Wallace 2019; Wiegreffe and Pinter 2019."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.stats import kendalltau
from torch import Tensor

from ..activations import capture
from ..encoder import Encoder, evaluating
from ..interventions import PatternEdit, editing
from ..resampling import Estimate, percentile_interval, resampled_means
from ..words import Batch, Text, token_batches
from .attribution import MAX_TOKENS, with_gradients
from .scores import NothingToScoreError

#: Class probabilities of every text: (encoder, batch) -> [B, C].
Predict = Callable[[Encoder, Batch], Tensor]


def permuted_attention(
    encoder: Encoder,
    texts: Sequence[Text],
    predict: Predict,
    *,
    layers: Sequence[int] | None = None,
    n_permutations: int = 10,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> Estimate:
    """Shuffle the attention weights of every row and see how far the prediction moves.

    The distance is total variation, 0 (nothing changed) to 1; the value is the mean over texts of
    the median over permutations (Jain and Wallace 2019, section 4.2.1). The baseline
    ``uniform_attention`` is the distance when every row attends evenly.

    Args:
        encoder: any encoder, usually fine-tuned.
        texts: texts or pairs.
        predict: class probabilities [B, C] of a batch.
        layers: layers whose attention is shuffled; all by default.
        n_permutations: permutations a text.
        seed: of the permutations.
        max_tokens: pieces a batch.

    Raises:
        LayerIndexError: no such layer.
        ValueError: ``n_permutations`` below 1, or ``predict`` returns no probabilities [B, C].
        NothingToScoreError: no texts.
    """
    if n_permutations < 1:
        raise ValueError(f"n_permutations starts at 1, got {n_permutations}")
    if not len(texts):
        raise NothingToScoreError("no texts to permute attention on")
    numbers = range(encoder.n_layers) if layers is None else layers
    parts = [encoder.layers[encoder.check_layer(k)] for k in numbers]
    draw = torch.Generator().manual_seed(seed)
    moved, even = np.zeros((n_permutations, len(texts))), np.zeros(len(texts))
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        index, real = list(batch.index), batch.attention_mask.bool()

        def shuffled(pattern: Tensor, real=real) -> Tensor:
            keys = torch.rand(pattern.shape, generator=draw).to(pattern.device)
            outside = ~real.to(pattern.device)[:, None, None]
            # Two sorts that both send padding to the end: a permutation of the real columns only.
            to = keys.masked_fill(outside, 2.0).argsort(-1)
            fixed = torch.arange(pattern.shape[-1], device=pattern.device).expand_as(pattern)
            source = (fixed + outside * pattern.shape[-1]).argsort(-1)
            return torch.empty_like(pattern).scatter(-1, source, pattern.gather(-1, to))

        def uniform(pattern: Tensor, real=real) -> Tensor:
            mask = real.to(pattern.device, pattern.dtype)[:, None, None]
            return (mask / mask.sum(-1, keepdim=True)).expand_as(pattern)

        with evaluating(encoder):
            plain = _probabilities(predict(encoder, batch), len(batch))

            def distance(change, batch=batch, plain=plain) -> np.ndarray:
                with editing(encoder, [PatternEdit(part, change) for part in parts]):
                    now = _probabilities(predict(encoder, batch), len(batch))
                return ((now - plain).abs().sum(-1) / 2).cpu().numpy()

            for k in range(n_permutations):
                moved[k, index] = distance(shuffled)
            even[index] = distance(uniform)
    per_text = np.median(moved, axis=0)
    value = float(per_text.mean())
    draws = resampled_means(per_text, np.ones(len(texts)), seed=seed)
    return Estimate(
        value=value,
        unit="share",
        n=len(texts),
        model=encoder.name,
        baselines={"uniform_attention": float(even.mean())},
        seed=seed,
        interval=percentile_interval(draws, value),
    )


def attention_and_gradient(
    encoder: Encoder,
    texts: Sequence[Text],
    predict: Predict,
    *,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> Estimate:
    """Rank correlation (Kendall's tau-b) of attention received with |gradient x input|.

    Attention is the mean over layers, heads and rows; the gradient is that of the log-probability
    of the predicted class with respect to the embedding output. Mean over texts. The baseline
    ``shuffled`` ranks the attention weights of each text at random.

    Raises:
        ValueError: ``predict`` returns no probabilities [B, C].
        NothingToScoreError: no text with three or more pieces and varying ranks.
    """
    draw = np.random.default_rng(seed)
    taus, controls = [], []
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        influence, patterns, _ = _gradient_times_input(encoder, batch, predict)
        pattern = torch.stack(patterns).detach().cpu().numpy()
        for b, row in enumerate(batch.rows):
            t = len(row.input_ids)
            received = pattern[:, b, :, :t, :t].mean((0, 1, 2))
            tau = _tau(received, influence[b, :t])
            if np.isfinite(tau):
                taus.append(tau)
                controls.append(_tau(draw.permutation(received), influence[b, :t]))
    found = _mean_tau(taus, encoder.name, len(texts), seed)
    return found.with_baselines(shuffled=float(np.mean(controls)))


def omission_and_gradient(
    encoder: Encoder,
    texts: Sequence[Text],
    predict: Predict,
    *,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> Estimate:
    """Rank correlation of what leaving out each piece changes with its |gradient x input|.

    The other rating that Jain and Wallace 2019 hold against attention: how far the log-probability
    of the predicted class moves when a piece is replaced by the mask token. Both ratings are of
    importance, so this is what :func:`attention_and_gradient` can be expected to reach at best.

    Raises:
        As :func:`attention_and_gradient`.
    """
    taus = []
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        influence, _, said = _gradient_times_input(encoder, batch, predict)
        moved = np.zeros(influence.shape)
        for place in range(influence.shape[1]):
            ids = batch.input_ids.clone()
            ids[:, place] = encoder.tokenizer.mask_token_id
            with evaluating(encoder):
                now = _probabilities(predict(encoder, batch.with_ids(ids)), len(batch))
            change = (_log(now) - _log(said)).gather(1, said.argmax(1)[:, None])
            moved[:, place] = change[:, 0].cpu().numpy()
        for b, row in enumerate(batch.rows):
            t = len(row.input_ids)
            tau = _tau(np.abs(moved[b, :t]), influence[b, :t])
            if np.isfinite(tau):
                taus.append(tau)
    return _mean_tau(taus, encoder.name, len(texts), seed)


def _gradient_times_input(
    encoder: Encoder, batch: Batch, predict: Predict
) -> tuple[np.ndarray, list[Tensor], Tensor]:
    """|gradient x input| [B, T], the layers' attention, the class probabilities [B, C]."""
    with with_gradients(encoder):
        with capture(encoder, ["pattern", "hidden_states"]) as cache:
            scores = _probabilities(predict(encoder, batch), len(batch))
            total = _log(scores.max(-1).values).sum()
        inputs = cache.layers["hidden_states"][0]
        (gradient,) = torch.autograd.grad(total, inputs)
    influence = (gradient * inputs).sum(-1).abs().detach().cpu().numpy()
    return influence, list(cache.layers["pattern"]), scores.detach()


def _log(probabilities: Tensor) -> Tensor:
    return probabilities.clamp_min(1e-30).log()


def _tau(one: np.ndarray, other: np.ndarray) -> float:
    """Kendall's tau-b, NaN for fewer than three pieces or ranks that do not vary."""
    return kendalltau(one, other).statistic if len(one) > 2 else np.nan


def _mean_tau(taus: list[float], model: str, texts: int, seed: int) -> Estimate:
    if not taus:
        raise NothingToScoreError(f"no text among {texts} whose pieces can be ranked")
    value = float(np.mean(taus))
    draws = resampled_means(np.array(taus), np.ones(len(taus)), seed=seed)
    return Estimate(
        value=value,
        unit="correlation",
        n=len(taus),
        model=model,
        seed=seed,
        interval=percentile_interval(draws, value),
    )


def _probabilities(found: Tensor, n: int) -> Tensor:
    ok = found.ndim == 2 and len(found) == n and bool((found.detach() >= -1e-6).all())
    if not ok or (found.detach().sum(-1) - 1).abs().max() > 1e-3:
        raise ValueError(f"predict must return probabilities [{n}, C] that sum to 1")
    return found
