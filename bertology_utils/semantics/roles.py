"""Who does what to whom, as the masked-word head sees it (after Ettinger 2020)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..cloze import Preference, judge_pairs, target_log_probs, target_ranks, wilson_interval
from ..encoder import Encoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli import MASK, MinimalPair, RoleFiller
from .errors import SemanticsError


@dataclass(frozen=True, eq=False)
class Reversal:
    """How often a verb is likelier where the roles fit than where they are reversed.

    Attributes:
        result: share of pairs whose fitting order wins, with the baseline ``chance``. The interval
            resamples events, since pairs about one event rise and fall together.
        margins: [N] log-probability of the verb in the fitting minus in the reversed order, nats.
        events: [N] the verb of every pair.
    """

    result: Estimate
    margins: np.ndarray
    events: tuple[str, ...]


def role_reversal(encoder: Encoder, pairs: Sequence[MinimalPair], *, seed: int = 0) -> Reversal:
    """Compare one verb at the mask of two orders of the same two people.

    "The clerk forgot which student the teacher had [MASK]" against "... which teacher the student
    had [MASK]", both asked for "taught": the words are the same, so their frequency cannot help.

    Args:
        pairs: from ``stimuli.minimal_pairs("role_reversal", n)``.

    Raises:
        SemanticsError: a pair that contrasts targets, not contexts.
        UnequalPairError: no pairs.
        MissingHeadError: no trained MLM head.
    """
    if odd := next((pair for pair in pairs if pair.contrast != "context"), None):
        raise SemanticsError(f"{odd.good!r} contrasts two words, not two orders")
    judged = judge_pairs(encoder, pairs)
    events = tuple(pair.good_word for pair in pairs)
    return Reversal(_over_groups(judged, events, seed), np.array(judged.margins), events)


def _over_groups(judged: Preference, groups: Sequence[Hashable], seed: int) -> Estimate:
    """The accuracy with a bootstrap over groups of pairs."""
    margins = np.array(judged.margins)
    won = (margins > 0) + 0.5 * (margins == 0)
    _, codes = np.unique(np.array(groups), return_inverse=True)
    sums, counts = np.bincount(codes, weights=won), np.bincount(codes)
    return Estimate(
        value=judged.accuracy, unit="share", n=judged.n, model=judged.model, seed=seed,
        interval=percentile_interval(resampled_means(sums, counts, seed=seed), judged.accuracy),
        baselines={"chance": judged.chance},
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class FillerOrder:
    """Are fillers of a role graded: right before related before unrelated?

    Attributes:
        ordered: share of frames whose three fillers come in the expected order (chance 1/6).
        right_first: share in which the right filler beats the related one (chance 1/2).
        related_first: share in which the related filler beats the unrelated one (chance 1/2).
        top: share of frames whose right filler is among the model's own first guesses.
        k: how many guesses count for ``top``.
        scores: [N, 3] natural log-probabilities of right, related, unrelated.
        fillers: the N frames.
        left_out: frames dropped because a filler is not one piece of this vocabulary.
    """

    ordered: Estimate
    right_first: Estimate
    related_first: Estimate
    top: Estimate
    k: int
    scores: np.ndarray
    fillers: tuple[RoleFiller, ...]
    left_out: int


def filler_order(encoder: Encoder, fillers: Sequence[RoleFiller], *, k: int = 5) -> FillerOrder:
    """Score three fillers at the mask of every frame, and look for the right one among the top k.

    The two looks differ: *sensitivity* compares words offered to the model, *accuracy* asks for
    the word unprompted. A tie is no order.

    Raises:
        SemanticsError: no frame all of whose fillers are one piece.
        MissingHeadError: no trained MLM head.
    """
    whole = encoder.tokenizer.tokenize
    kept = [
        item
        for item in fillers
        if all(len(whole(f" {w}")) == 1 for w in (item.right, item.related, item.unrelated))
    ]
    if not kept:
        raise SemanticsError("no frame has three fillers of one piece each in this vocabulary")
    texts = [item.frame.replace(MASK, encoder.tokenizer.mask_token) for item in kept]
    offered = [(item.right, item.related, item.unrelated) for item in kept]
    scores = np.array(target_log_probs(encoder, texts, offered))
    ranks = np.array(target_ranks(encoder, texts, [item.right for item in kept]))
    right, related = scores[:, 0] > scores[:, 1], scores[:, 1] > scores[:, 2]

    def share(hits: np.ndarray, chance: float | None) -> Estimate:
        return Estimate(
            value=float(hits.mean()), unit="share", n=len(hits), model=encoder.name,
            interval=wilson_interval(float(hits.sum()), len(hits)),
            baselines={} if chance is None else {"chance": chance},
        )  # fmt: skip

    return FillerOrder(
        share(right & related, 1 / 6), share(right, 1 / 2), share(related, 1 / 2),
        share(ranks <= k, None), k, scores, tuple(kept), len(fillers) - len(kept),
    )  # fmt: skip
