"""Does attention to a kind of piece matter to the loss? Gradients and knock-outs.

Clark et al. 2019, section 3.2: the [SEP] token as a no-op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..activations import capture
from ..encoder import Encoder, evaluating
from ..interventions import PatternEdit, editing
from ..resampling import Estimate, percentile_interval, resampled_means
from ..words import Batch, Text, token_batches
from .maps import KINDS, piece_kinds
from .scores import HeadScores, NothingToScoreError

MAX_TOKENS = 1024
#: One loss per text: (encoder, batch) -> [B], differentiable.
Loss = Callable[[Encoder, Batch], Tensor]


def masked_loss(rate: float = 0.15, seed: int = 0) -> Loss:
    """A loss per text: mean cross-entropy, in nats, of pieces hidden behind the mask token.

    At least one piece a text is hidden; which ones depends on the text and the seed alone, not on
    the batch.

    Raises:
        ValueError: ``rate`` outside (0, 1].
        MissingHeadError: (when called) the encoder has no trained MLM head.
    """
    if not 0 < rate <= 1:
        raise ValueError(f"rate must lie in (0, 1], got {rate}")

    def loss(encoder: Encoder, batch: Batch) -> Tensor:
        hidden_ids, where = batch.input_ids.clone(), torch.zeros_like(batch.input_ids)
        for b, row in enumerate(batch.rows):
            text = np.flatnonzero(~np.array(row.is_special))
            draw = np.random.default_rng([seed, *row.input_ids])
            chosen = draw.choice(text, max(1, round(rate * len(text))), replace=False)
            where[b, torch.from_numpy(chosen)] = 1
        where = where.bool()
        hidden_ids[where] = encoder.tokenizer.mask_token_id
        states = encoder.encode(batch.with_ids(hidden_ids))
        owner = where.nonzero()[:, 0].to(states.device)
        logits = encoder.mlm_logits(states[where.to(states.device)])
        gold = batch.input_ids[where].to(logits.device)
        each = torch.nn.functional.cross_entropy(logits, gold, reduction="none")
        sums = each.new_zeros(len(batch)).index_add(0, owner, each)
        return sums / torch.bincount(owner, minlength=len(batch))

    return loss


def replaced_loss(encoder: Encoder, batch: Batch) -> Tensor:
    """ELECTRA's loss per text when nothing was replaced: mean -log p(original), in nats.

    Raises:
        MissingHeadError: the encoder has no trained discriminator head.
    """
    logits = encoder.rtd_logits(encoder.encode(batch))
    mask = batch.attention_mask.to(logits.device)
    losses = torch.nn.functional.softplus(logits) * mask
    return losses.sum(1) / mask.sum(1)


def attention_gradients(
    encoder: Encoder,
    texts: Sequence[Text],
    *,
    loss: Loss | None = None,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> dict[str, HeadScores]:
    """Mean |d loss / d attention weight| towards every kind of piece, in nats per unit of weight.

    Attention that grows while its gradient falls is a sign of a no-op. The mean is over all
    (row, column) cells whose column is of the kind; texts without such a piece count nothing.

    Args:
        encoder: any encoder.
        texts: texts or pairs.
        loss: a loss per text; :func:`masked_loss` with this seed by default.
        seed: of masking and bootstrap.
        max_tokens: pieces a batch; gradients need more memory than a plain pass.

    Returns:
        kind -> scores. A kind that no text holds is left out.

    Raises:
        MissingHeadError: the loss needs a head that the encoder lacks.
        NothingToScoreError: no texts.
    """
    loss = masked_loss(seed=seed) if loss is None else loss
    if not len(texts):
        raise NothingToScoreError("no texts to take gradients on")
    shape = (len(texts), encoder.n_layers, encoder.n_heads)
    sums = {kind: np.zeros(shape) for kind in KINDS}
    counts = {kind: np.zeros(len(texts)) for kind in KINDS}
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        with with_gradients(encoder):
            with capture(encoder, ["pattern"]) as cache:
                total = loss(encoder, batch).sum()
            gradients = torch.autograd.grad(total, cache.layers["pattern"])
        sizes = torch.stack(gradients).abs().cpu().numpy()
        for b, (index, row) in enumerate(zip(batch.index, batch.rows, strict=True)):
            t = len(row.input_ids)
            for kind, mask in piece_kinds(row).items():
                sums[kind][index] = sizes[:, b, :, :t, :t][..., mask].sum((-2, -1))
                counts[kind][index] = mask.sum() * t
    return {
        kind: HeadScores(
            f"gradient to {kind}", "nats", sums[kind], counts[kind], encoder.name, seed
        )
        for kind in KINDS
        if counts[kind].any()
    }


@dataclass(frozen=True, kw_only=True)
class KnockOut(Estimate):
    """Rise of the loss without attention to a kind of piece, minus the rise without as much
    attention to ordinary text. Negative: attention to that kind is worth less than other attention.

    Attributes:
        rise: rise of the loss without attention to the kind.
        control_rise: rise without the same amount of attention to ordinary text.
    """

    rise: Estimate
    control_rise: Estimate


def knock_out(
    encoder: Encoder,
    texts: Sequence[Text],
    kind: str = "sep",
    *,
    loss: Loss | None = None,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> KnockOut:
    """Forbid every head to look at a kind of piece, and compare with an equal loss elsewhere.

    Rows are made to sum to 1 again. The control takes from every row the same mass, but from its
    weights on pieces of the kind ``text``, in proportion (all of them where there is less).

    Raises:
        KeyError: unknown kind, or "text" itself.
        MissingHeadError, NothingToScoreError: as :func:`attention_gradients`.
    """
    if kind not in KINDS or kind == "text":
        raise KeyError(f"kind is {kind!r}; can be {', '.join(k for k in KINDS if k != 'text')}")
    loss = masked_loss(seed=seed) if loss is None else loss
    if not len(texts):
        raise NothingToScoreError("no texts to knock attention out on")
    found = np.zeros((3, len(texts)))
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        target, ordinary = _columns(batch, kind), _columns(batch, "text")

        def without(pattern: Tensor, target=target) -> Tensor:
            return _renormalised(pattern * ~target.to(pattern.device), pattern)

        def control(pattern: Tensor, target=target, ordinary=ordinary) -> Tensor:
            here = ordinary.to(pattern.device)
            mass = (pattern * target.to(pattern.device)).sum(-1, keepdim=True)
            available = (pattern * here).sum(-1, keepdim=True).clamp_min(1e-12)
            keep = (1 - mass / available).clamp_min(0)
            return _renormalised(torch.where(here, pattern * keep, pattern), pattern)

        index = list(batch.index)
        with evaluating(encoder):
            found[0, index] = loss(encoder, batch).cpu().numpy()
            for k, edit in enumerate((without, control), start=1):
                edits = [PatternEdit(layer, edit) for layer in encoder.layers]
                with editing(encoder, edits):
                    found[k, index] = loss(encoder, batch).cpu().numpy()
    plain, cut, other = found

    def estimate(values: np.ndarray) -> dict:
        value, ones = float(values.mean()), np.ones(len(values))
        interval = percentile_interval(resampled_means(values, ones, seed=seed), value)
        return {
            "value": value, "unit": "nats", "n": len(values), "model": encoder.name,
            "seed": seed, "interval": interval,
        }  # fmt: skip

    return KnockOut(
        **estimate(cut - other),
        baselines={"control_rise": float((other - plain).mean())},
        rise=Estimate(**estimate(cut - plain)),
        control_rise=Estimate(**estimate(other - plain)),
    )


def _columns(batch: Batch, kind: str) -> Tensor:
    """[B, 1, 1, T] True at the pieces of a kind."""
    mask = torch.zeros(batch.input_ids.shape, dtype=torch.bool)
    for b, row in enumerate(batch.rows):
        mask[b, : len(row.input_ids)] = torch.from_numpy(piece_kinds(row)[kind])
    return mask[:, None, None]


def _renormalised(weights: Tensor, before: Tensor) -> Tensor:
    total = weights.sum(-1, keepdim=True)
    # A row that attended to nothing else stays as it was.
    return torch.where(total > 1e-12, weights / total.clamp_min(1e-12), before)


@contextmanager
def with_gradients(encoder: Encoder) -> Iterator[None]:
    with evaluating(encoder), torch.enable_grad():
        yield
