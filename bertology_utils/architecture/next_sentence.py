"""Next-sentence prediction on segment pairs, beside guesses that need no model.

Devlin et al. 2019 (arXiv 1810.04805), section 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..encoder import Encoder, evaluating
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli.passages import SegmentPair
from ..words import TextPair, in_order, split_words, token_batches

#: words this short are mostly grammar and say nothing about the topic
_SHORTEST = 4


def judged_to_follow(encoder: Encoder, pairs: Sequence[SegmentPair]) -> np.ndarray:
    """[n] True where the model says that the second segment follows the first.

    Raises:
        MissingHeadError: no trained next-sentence head.
    """
    texts = [TextPair(pair.first, pair.second) for pair in pairs]
    with evaluating(encoder):
        results = []
        for batch in token_batches(encoder, texts):
            logits = encoder.nsp_logits(encoder.encode(batch))
            results.append((batch, (logits[:, 0] > logits[:, 1]).tolist()))
    return np.array(in_order(results))


def shares_a_word(pair: SegmentPair) -> bool:
    """True if a word of four letters or more occurs in both segments."""
    first, second = (
        {text[a:b].lower() for a, b in split_words(text) if b - a >= _SHORTEST}
        for text in (pair.first, pair.second)
    )
    return bool(first & second)


def next_sentence(
    encoder: Encoder, control: Encoder, pairs: Sequence[SegmentPair], *, seed: int = 0
) -> Estimate:
    """Accuracy at telling followers from strangers.

    Pairs of one passage share segments, so whole passages are resampled.

    Args:
        encoder: a model with a trained next-sentence head.
        control: the same architecture with random weights.
        pairs: half of them follow.
        seed: of the resampling.

    Returns:
        A share with the baselines ``chance`` (the more frequent answer), ``random_model`` and
        ``word_overlap`` (guess "follows" if the segments share a word of four letters or more).

    Raises:
        ValueError: no pairs.
        MissingHeadError: no trained next-sentence head.
    """
    if not pairs:
        raise ValueError("no pairs to judge")
    gold = np.array([pair.follows for pair in pairs])
    right = judged_to_follow(encoder, pairs) == gold
    blank = judged_to_follow(control, pairs) == gold
    overlap = np.array([shares_a_word(pair) for pair in pairs]) == gold
    home = np.array([pair.passage for pair in pairs])
    passages = np.unique(home)
    draws = resampled_means(
        np.array([right[home == p].sum() for p in passages]),
        np.array([(home == p).sum() for p in passages]),
        seed=seed,
    )
    value = float(right.mean())
    return Estimate(
        value=value,
        unit="share",
        n=len(pairs),
        model=encoder.name,
        baselines={
            "chance": float(max(gold.mean(), 1 - gold.mean())),
            "random_model": float(blank.mean()),
            "word_overlap": float(overlap.mean()),
        },
        seed=seed,
        interval=percentile_interval(draws, value),
    )
