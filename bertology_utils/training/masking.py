"""BERT's masking: choose positions, then [MASK] / random / same (Devlin et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class MaskingScheme:
    """Share of positions chosen, and of those the shares turned into [MASK] or a random piece.

    The rest of the chosen positions keep their piece but are predicted all the same.
    """

    rate: float = 0.15
    mask: float = 0.8
    random: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise ValueError(f"masking rate must lie in (0, 1), got {self.rate}")
        if self.mask < 0 or self.random < 0 or self.mask + self.random > 1:
            raise ValueError(
                f"mask and random shares must be >= 0 and sum to at most 1, "
                f"got {self.mask} and {self.random}"
            )


BERT_80_10_10 = MaskingScheme()
ALWAYS_MASK = MaskingScheme(mask=1.0, random=0.0)


def apply_masking(
    input_ids: np.ndarray,
    maskable: np.ndarray,
    scheme: MaskingScheme,
    *,
    mask_id: int,
    vocab_size: int,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Mask a batch.

    Parameters
    ----------
    input_ids, maskable
        int and bool arrays [B, T]; only positions where ``maskable`` holds are chosen.
    weights
        Positive array [vocabulary]: how readily a position is chosen, by its piece; None
        means all alike. The share of positions chosen stays the scheme's.

    Returns
    -------
    masked_ids, chosen
        The new ids [B, T] and a bool array [B, T] of predicted positions. At least one
        position of the batch is chosen.

    Raises
    ------
    ValueError
        When no position may be masked.
    """
    candidates = np.flatnonzero(maskable)
    if not len(candidates):
        raise ValueError("no position in the batch may be masked")
    n = max(1, int(round(scheme.rate * len(candidates))))
    odds = None
    if weights is not None:
        odds = weights[input_ids.reshape(-1)[candidates]]
        odds = odds / odds.sum()
    picks = rng.choice(candidates, size=n, replace=False, p=odds)
    chosen = np.zeros(maskable.size, dtype=bool)
    chosen[picks] = True
    masked = input_ids.reshape(-1).copy()
    fate = rng.random(n)
    masked[picks[fate < scheme.mask]] = mask_id
    swapped = picks[(fate >= scheme.mask) & (fate < scheme.mask + scheme.random)]
    masked[swapped] = rng.integers(0, vocab_size, size=len(swapped))
    return masked.reshape(input_ids.shape), chosen.reshape(input_ids.shape)
