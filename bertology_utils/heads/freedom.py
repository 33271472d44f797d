"""How freely a head's weights could be others (Brunner et al. 2020, arXiv 1908.04211)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..activations import run_with_cache
from ..attention import alternative_attention
from ..encoder import Encoder
from ..resampling import Estimate
from ..words import Text

#: How much of a row's attention is to move.
HALF = 0.5


@dataclass(frozen=True, kw_only=True)
class MovedAttention(Estimate):
    """Largest change of a head's output when attention moves within the null space.

    ``baselines``: ``shuffled``, the same when as much attention moves without such care.

    Attributes:
        moved: share of attention moved, mean over all rows of all heads.
        reached: share of the rows in which half of the attention could be moved.
        n_pieces: length of the text.
    """

    moved: float
    reached: float
    n_pieces: int


def move_half(
    encoder: Encoder, text: Text, *, heads: Sequence[tuple[int, int]], seed: int = 0
) -> MovedAttention:
    """Move half of each row's attention of some heads, or what is possible, without effect.

    Args:
        encoder: any encoder.
        text: of more pieces than a head is wide.
        heads: (layer, head) of those tried.
        seed: of the shuffled control.

    Raises:
        ValueError: no heads, or a text of no more pieces than a head is wide.
        LayerIndexError, HeadIndexError: no such head.
    """
    if not heads:
        raise ValueError("no heads to move attention in")
    for layer, head in heads:
        encoder.check_heads({layer: [head]})
    cache = run_with_cache(encoder, text, ["pattern", "v"])
    length = cache["pattern"].shape[-1]
    if length <= encoder.d_head + 1:
        raise ValueError(f"{length} pieces leave no freedom to a head of {encoder.d_head}")
    draw = np.random.default_rng(seed)
    changes, controls, moved = [], [], []
    for layer, head in heads:
        old, values = (cache[name][layer, 0, head].double().cpu().numpy()
                       for name in ("pattern", "v"))  # fmt: skip
        far = alternative_attention(old, values)
        # The rows between two solutions are solutions, too: go as far as half of the attention.
        step = np.minimum(1.0, HALF / np.maximum(far.moved, 1e-9))[:, None]
        new = old + step * (far.pattern - old)
        share = np.abs(new - old).sum(1) / 2
        other = np.stack([row[draw.permutation(length)] for row in old])
        way = np.abs(other - old).sum(1) / 2
        careless = old + (share / np.maximum(way, 1e-9)).clip(max=1)[:, None] * (other - old)
        changes.append(np.abs(new @ values - old @ values).max())
        controls.append(np.abs(careless @ values - old @ values).max())
        moved.append(share)
    shares = np.concatenate(moved)
    return MovedAttention(
        value=float(max(changes)),
        unit="absolute error",
        n=len(shares),
        model=encoder.name,
        seed=seed,
        baselines={"shuffled": float(max(controls))},
        moved=float(shares.mean()),
        reached=float((shares > HALF - 1e-6).mean()),
        n_pieces=length,
    )
