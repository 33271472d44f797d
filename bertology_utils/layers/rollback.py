"""Putting layers of a fine-tuned model back to their pre-trained weights.

Hao et al. 2019 (arXiv 1908.05620) roll layers back and look at what it costs: a layer whose return
costs nothing was not needed for the task.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..activations import run_with_cache
from ..encoder import Encoder, evaluating
from ..heads import TunedEncoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..words import Text, make_batch


def roll_back(
    tuned: Encoder, original: Encoder, layers: Collection[int], *, embeddings: bool = False
) -> Encoder:
    """A copy of ``tuned`` in which some layers, and the embeddings if asked, are ``original``'s.

    Args:
        tuned, original: two encoders of one architecture; both stay as they are.
        layers: numbers from 1 (the lowest) to L.
        embeddings: put the embedding tables back as well.

    Raises:
        ValueError: the encoders differ in depth.
        LayerIndexError: no such layer.
    """
    if tuned.n_layers != original.n_layers:
        raise ValueError(f"{tuned.n_layers} layers cannot be put back to {original.n_layers}")
    for layer in layers:
        tuned.check_layer(layer - 1)
    made = replace(tuned, model=copy.deepcopy(tuned.model))
    ours, theirs = (e.family.blocks(e.base) for e in (made, original))
    for layer in layers:
        ours[layer - 1].load_state_dict(theirs[layer - 1].state_dict())
    if embeddings:
        made.base.embeddings.load_state_dict(original.base.embeddings.state_dict())
    return made


@dataclass(frozen=True, eq=False)
class RollBack:
    """Right answers of N test texts with k layers put back, k = 0 .. L.

    Attributes:
        lowest: [L + 1, N] with the k lowest layers put back.
        highest: [L + 1, N] with the k highest.
        embeddings: [N] with the embedding tables alone put back.
        majority: accuracy of the most frequent label.
        model: name of the encoder; seed: of the bootstrap.
    """

    lowest: np.ndarray
    highest: np.ndarray
    embeddings: np.ndarray
    majority: float
    model: str
    seed: int = 0

    @property
    def half(self) -> int:
        """Layers in half of the model."""
        return (len(self.lowest) - 1) // 2

    def curve(self, which: str) -> list[Estimate]:
        """Accuracy against k.

        Args:
            which: ``"lowest"`` or ``"highest"``.

        Raises:
            KeyError: another name.
        """
        if which not in ("lowest", "highest"):
            raise KeyError(f"which is {which!r}, must be 'lowest' or 'highest'")
        rows = getattr(self, which).astype(float)
        draws = resampled_means(rows.T, np.ones(rows.shape[1]), seed=self.seed)
        return [
            Estimate(
                value=float(row.mean()), unit="share", n=len(row), model=self.model,
                seed=self.seed, baselines={"majority": self.majority},
                interval=percentile_interval(draws[:, k], float(row.mean())),
            )
            for k, row in enumerate(rows)
        ]  # fmt: skip

    @property
    def lost(self) -> np.ndarray:
        """[N] what the upper half costs minus what the lower half costs, text by text."""
        return self.lowest[self.half].astype(float) - self.highest[self.half]


def roll_back_curve(
    tuned: TunedEncoder,
    original: Encoder,
    texts: Sequence[Text],
    labels: Sequence[int],
    *,
    seed: int = 0,
) -> RollBack:
    """Accuracy on test texts with ever more layers put back, from below and from above.

    Raises:
        ValueError: no texts, or not one label for each; no layer was changed by fine-tuning.
    """
    if not len(texts) or len(texts) != len(labels):
        raise ValueError(f"{len(texts)} texts with {len(labels)} labels")
    depth, batch, gold = original.n_layers, make_batch(original, texts), np.asarray(labels)
    own, mask = tuned.encoder, batch.attention_mask
    # Tuned embeddings below pre-trained layers: all that "k lowest put back" needs of the others.
    below = roll_back(own, original, range(1, depth + 1))
    tables = roll_back(own, original, (), embeddings=True)
    kept = run_with_cache(own, batch, ["hidden_states"]).layers["hidden_states"]
    returned = run_with_cache(below, batch, ["hidden_states"]).layers["hidden_states"]
    with evaluating(own), evaluating(original), evaluating(tables):
        lowest = [own.encode_from(returned[k], mask, k) for k in range(depth + 1)]
        highest = [original.encode_from(kept[depth - k], mask, depth - k)
                   for k in range(depth + 1)]  # fmt: skip
        ends = torch.stack([*lowest, *highest, tables.encode(batch)])[:, :, 0]
        found = tuned.head(ends).cpu().numpy()
    if np.abs(found[1:] - found[0]).max() < 1e-6:
        raise ValueError("fine-tuning changed no layer: putting layers back changes no answer")
    right = found.argmax(-1) == gold
    return RollBack(
        right[: depth + 1], right[depth + 1 : -1], right[-1],
        float(np.bincount(gold).max() / len(gold)), original.name, seed,
    )  # fmt: skip


def upper_minus_lower_loss(found: Sequence[RollBack]) -> Estimate:
    """Accuracy lost by restoring the upper half minus the lower half, texts of all tasks together.

    Raises:
        ValueError: no tasks.
    """
    if not found:
        raise ValueError("no tasks")
    gaps = np.concatenate([task.lost for task in found])
    value = float(gaps.mean())
    draws = resampled_means(gaps, np.ones(len(gaps)), seed=found[0].seed)
    return Estimate(
        value=value, unit="share difference", n=len(gaps), model=found[0].model,
        seed=found[0].seed, interval=percentile_interval(draws, value),
    )  # fmt: skip
