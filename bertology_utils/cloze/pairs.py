"""Minimal pairs: does the model prefer the good one? At one mask, or over whole sentences."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..encoder import Encoder
from ..words.errors import excerpt
from .errors import UnequalPairError
from .fill import target_log_probs
from .pll import Scheme, pll


class SentencePair(Protocol):
    """Two sentences that differ in one feature; ``good`` is the acceptable one."""

    good: str
    bad: str


@dataclass(frozen=True)
class Preference:
    """How often the good member of a pair scores higher.

    Attributes:
        accuracy: share of pairs with a positive margin; an exact tie counts one half.
        interval: 95 % Wilson interval of the accuracy.
        margins: good minus bad log-probability of every pair, in nats.
        n: number of pairs.
        chance: 0.5, what a model without any preference scores.
        model: name of the model.
    """

    accuracy: float
    interval: tuple[float, float]
    margins: tuple[float, ...]
    n: int
    model: str
    chance: float = 0.5

    unit = "share"

    @property
    def value(self) -> float:
        """The accuracy."""
        return self.accuracy

    @property
    def baselines(self) -> Mapping[str, float]:
        return {"chance": self.chance}

    @property
    def seed(self) -> None:
        """Nothing here is drawn at random."""


def wilson_interval(successes: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson score interval of a share (Wilson 1927), which stays inside [0, 1].

    Raises:
        ValueError: ``n`` below 1, or successes outside 0..n.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"need 0 <= successes <= n and n >= 1, got {successes} of {n}")
    p = successes / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def preference(margins: Sequence[float], model: str) -> Preference:
    """Summarise margins.

    Raises:
        UnequalPairError: no margins.
        ValueError: a margin that is not a finite number.
    """
    if not margins:
        raise UnequalPairError("no pairs")
    if (odd := next((i for i, m in enumerate(margins) if not math.isfinite(m)), None)) is not None:
        raise ValueError(f"the margin of pair {odd} is {margins[odd]}")
    won = sum(1.0 if m > 0 else 0.5 if m == 0 else 0.0 for m in margins)
    n = len(margins)
    return Preference(won / n, wilson_interval(won, n), tuple(margins), n, model)


def compare_at_mask(
    encoder: Encoder,
    frames: Sequence[str],
    good: Sequence[str],
    bad: Sequence[str],
    *,
    max_tokens: int = 4096,
) -> Preference:
    """Compare two words at the one mask of each frame, as Goldberg 2019 (arXiv 1901.05287) does.

    Raises:
        UnequalPairError: lists of different lengths, none at all, or twice the same word.
        TargetError: a word that is not one piece.
        MaskCountError: a frame without exactly one mask.
    """
    if not len(frames) == len(good) == len(bad):
        raise UnequalPairError(f"{len(frames)} frames, {len(good)} good and {len(bad)} bad words")
    if (same := next((i for i, w in enumerate(good) if w == bad[i]), None)) is not None:
        raise UnequalPairError(f"pair {same} offers {excerpt(str(good[same]))} twice")
    scores = target_log_probs(
        encoder, frames, list(zip(good, bad, strict=True)), max_tokens=max_tokens
    )
    return preference([g - b for g, b in scores], encoder.name)


def compare_sentences(
    encoder: Encoder,
    pairs: Iterable[SentencePair],
    *,
    scheme: Scheme = "original",
    max_tokens: int = 4096,
) -> Preference:
    """Compare whole sentences by their total pseudo-log-likelihood.

    Raises:
        UnequalPairError: no pairs, or a pair of twice the same sentence.
    """
    listed = list(pairs)
    if (same := next((i for i, p in enumerate(listed) if p.good == p.bad), None)) is not None:
        raise UnequalPairError(
            f"pair {same} is twice the same sentence: {excerpt(str(listed[same].good))}"
        )
    texts = [text for pair in listed for text in (pair.good, pair.bad)]
    totals = [score.total for score in pll(encoder, texts, scheme=scheme, max_tokens=max_tokens)]
    margins = [totals[i] - totals[i + 1] for i in range(0, len(totals), 2)]
    return preference(margins, encoder.name)
