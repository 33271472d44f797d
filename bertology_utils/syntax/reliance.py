"""Does the model need the directions in which the tree can be read?

Amnesic probing (Elazar et al. 2021, doi:10.1162/tacl_a_00359) with the structural probe's own
subspace: it is projected out of one layer, and the masked-token loss is compared with the loss
after removing a random subspace of equal rank. Whether this could show a harm at all is asked with
directions that the loss is known to lean on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..activations import capture
from ..cloze import target_id, target_log_probs
from ..encoder import Encoder, evaluating
from ..interventions import erase
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli.trees import join_words
from ..words import token_batches
from .spoilt import HiddenWord


@dataclass(frozen=True, eq=False)
class Reliance:
    """Loss at N hidden words, with and without directions.

    Attributes:
        intact: [N] negative log-probability of the hidden word, in nats.
        without: [N] the same once the subspace is projected out.
        without_random: [R, N] for R random subspaces of equal rank.
        variance: share of the layer's variance in the subspace; random_variance: in the random
            ones, on average.
        layer, rank: where, and how many directions.
        model: name of the encoder; seed: of subspaces and bootstrap.
    """

    intact: np.ndarray
    without: np.ndarray
    without_random: np.ndarray
    variance: float
    random_variance: float
    layer: int
    rank: int
    model: str
    seed: int

    def _mean(self, items: np.ndarray) -> Estimate:
        value = float(items.mean())
        draws = resampled_means(items, np.ones(len(items)), seed=self.seed)
        return Estimate(
            value=value, unit="nats", n=len(items), model=self.model, seed=self.seed,
            interval=percentile_interval(draws, value),
        )  # fmt: skip

    @property
    def rise(self) -> Estimate:
        """Loss without the subspace minus the intact loss."""
        return self._mean(self.without - self.intact)

    @property
    def random_rise(self) -> Estimate:
        """The same for random subspaces, averaged."""
        return self._mean(self.without_random.mean(0) - self.intact)

    @property
    def excess(self) -> Estimate:
        """What removing the subspace costs more than removing a random one."""
        return self._mean(self.without - self.without_random.mean(0))


def reliance(
    encoder: Encoder,
    items: Sequence[HiddenWord],
    layer: int,
    directions: Tensor,
    states: np.ndarray,
    *,
    controls: int = 3,
    seed: int = 0,
) -> Reliance:
    """Remove a subspace from a layer and see what the masked-token loss does.

    Args:
        encoder: with a trained MLM head.
        items: hidden words; those of several pieces are left out.
        layer: 0 .. L, as for ``"hidden_states"``.
        directions: [D, R]; their span is removed, around the mean of ``states``.
        states: [N, D] hidden states of that layer, for the mean and the variance.
        controls: number of random subspaces.
        seed: of the random subspaces and the bootstrap.

    Raises:
        ValueError: no hidden word of one piece; directions of another width.
        LayerIndexError, MissingHeadError: as the encoder.
    """
    if directions.ndim != 2 or directions.shape[0] != encoder.d_model:
        raise ValueError(
            f"directions of shape {tuple(directions.shape)}, expected ({encoder.d_model}, R)"
        )
    encoder.check_layer(layer, last=encoder.n_layers)
    known = _of_one_piece(encoder, items)
    texts = [_masked(encoder, item) for item in known]
    targets = [[item.words[item.target]] for item in known]
    data = torch.as_tensor(states, dtype=torch.float64)
    centre = data.mean(0)
    moved = data - centre

    def loss() -> np.ndarray:
        return -np.array([score for (score,) in target_log_probs(encoder, texts, targets)])

    def removed(span: Tensor) -> tuple[np.ndarray, float]:
        axes, _ = torch.linalg.qr(span.double())
        keep = torch.eye(encoder.d_model, dtype=torch.float64) - axes @ axes.T
        share = float((moved @ axes).square().sum() / moved.square().sum())
        with erase(encoder, layer, keep.float(), centre=centre.float()):
            return loss(), share

    generator = torch.Generator().manual_seed(seed)
    without, variance = removed(directions)
    drawn = [
        removed(torch.randn(directions.shape, generator=generator)) for _ in range(controls)
    ]
    return Reliance(
        loss(),
        without,
        np.stack([losses for losses, _ in drawn]),
        variance,
        float(np.mean([share for _, share in drawn])),
        layer,
        directions.shape[1],
        encoder.name,
        seed,
    )


def steepest_directions(
    encoder: Encoder,
    items: Sequence[HiddenWord],
    layer: int,
    rank: int,
    *,
    max_tokens: int = 4096,
) -> Tensor:
    """Orthonormal directions [D, rank] of a layer along which the loss at hidden words is steepest.

    They are the leading right singular vectors of the loss's gradients at all pieces of all texts:
    small steps along them change the loss most. A subspace that the model does use, to set beside
    one of which that is asked.

    Args:
        encoder: with a trained MLM head.
        items: hidden words; those of several pieces are left out.
        layer: 0 .. L, as for ``"hidden_states"``.
        rank: 1 .. D.
        max_tokens: pieces a batch.

    Raises:
        ValueError: no hidden word of one piece; a rank outside its range, or fewer pieces.
        LayerIndexError, MissingHeadError: as the encoder.
    """
    encoder.check_layer(layer, last=encoder.n_layers)
    known = _of_one_piece(encoder, items)
    texts = [_masked(encoder, item) for item in known]
    gold = torch.tensor(
        [target_id(encoder, item.words[item.target]) for item in known], device=encoder.device
    )
    slopes = []
    for batch in token_batches(encoder, texts, max_tokens=max_tokens):
        hidden = (batch.input_ids == encoder.tokenizer.mask_token_id).to(encoder.device)
        with evaluating(encoder), torch.enable_grad():
            with capture(encoder, ["hidden_states"]) as cache:
                logits = encoder.mlm_logits(encoder.encode(batch)[hidden])
            loss = torch.nn.functional.cross_entropy(
                logits, gold[list(batch.index)], reduction="sum"
            )
            (slope,) = torch.autograd.grad(loss, cache.layers["hidden_states"][layer])
        slopes.append(slope[batch.attention_mask.bool().to(slope.device)].double().cpu())
    stacked = torch.cat(slopes)
    if not 1 <= rank <= min(stacked.shape):
        raise ValueError(f"rank {rank} of {len(stacked)} gradients of width {stacked.shape[1]}")
    return torch.linalg.svd(stacked, full_matrices=False).Vh[:rank].T.float()


def _of_one_piece(encoder: Encoder, items: Sequence[HiddenWord]) -> list[HiddenWord]:
    known = [i for i in items if len(encoder.tokenizer.tokenize(f" {i.words[i.target]}")) == 1]
    if not known:
        raise ValueError("no hidden word is one piece of the vocabulary")
    return known


def _masked(encoder: Encoder, item: HiddenWord) -> str:
    shown = list(item.words)
    shown[item.target] = encoder.tokenizer.mask_token
    return join_words(shown)
