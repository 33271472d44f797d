"""Gaps in real text: pieces beside their siblings, spans of growing length, every token in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..cloze import PLL, Query, pll, read_queries, wilson_interval
from ..encoder import BertologyError, Encoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..words import Text, align_all


class TrainingDataError(BertologyError):
    """Texts that hold nothing a method can ask about."""


def _right(encoder: Encoder, queries: Sequence[Query]) -> np.ndarray:
    """[N] True where the likeliest piece is the one that stands there."""

    def read(logits, batch):
        best = logits.argmax(dim=1).tolist()
        return [guess == q.row.input_ids[q.read] for guess, q in zip(best, batch, strict=True)]

    return np.array(list(read_queries(encoder, queries, read)), dtype=float)


def _by_text(values: np.ndarray, owners: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """(sums, counts) [texts, ...] of values [N, ...]."""
    codes = np.unique(np.asarray(owners), return_inverse=True)[1]
    sums = np.zeros((codes.max() + 1, *values.shape[1:]))
    np.add.at(sums, codes, values)
    return sums, np.bincount(codes)


@dataclass(frozen=True)
class Siblings:
    """A hidden piece of a word of several, with its siblings visible and hidden.

    Attributes:
        difference: accuracy visible minus hidden, texts resampled.
        visible, hidden: the two accuracies.
    """

    difference: Estimate
    visible: float
    hidden: float


def hidden_siblings(
    encoder: Encoder, texts: Sequence[Text], *, most: int = 300, seed: int = 0
) -> Siblings:
    """Why hiding single pieces is too easy (whole-word masking: Devlin et al. 2019, release notes).

    Args:
        texts: whatever holds words of several pieces; ``most`` pieces are asked about.

    Raises:
        TrainingDataError: no word of the texts has several pieces.
        MissingHeadError: no trained MLM head.
    """
    alone, together, owners = [], [], []
    for text, row in enumerate(align_all(encoder, texts)):
        for start, stop in row.spans:
            if stop - start > 1:
                for piece in range(start, stop):
                    alone.append(Query(row, (piece,), piece))
                    together.append(Query(row, tuple(range(start, stop)), piece))
                    owners.append(text)
    if not owners:
        raise TrainingDataError("no word of the texts has several pieces")
    order = np.sort(np.random.default_rng(seed).permutation(len(owners))[:most])
    picked = [[queries[i] for i in order] for queries in (alone, together)]
    visible, hidden = (_right(encoder, queries) for queries in picked)
    sums, counts = _by_text(visible - hidden, [owners[i] for i in order])
    value = float((visible - hidden).mean())
    difference = Estimate(
        value=value, unit="share difference", n=len(order), model=encoder.name, seed=seed,
        interval=percentile_interval(resampled_means(sums, counts, seed=seed), value),
    )  # fmt: skip
    return Siblings(difference, float(visible.mean()), float(hidden.mean()))


@dataclass(frozen=True)
class SpanLengths:
    """Accuracy at the piece in the middle of a hidden span.

    Attributes:
        slope: change of accuracy for each further token (least squares), texts resampled.
        lengths: of the spans; by_length: accuracy at each, with an interval.
    """

    slope: Estimate
    lengths: tuple[int, ...]
    by_length: tuple[Estimate, ...]


def span_lengths(
    encoder: Encoder, texts: Sequence[Text], *, longest: int = 6, seed: int = 0
) -> SpanLengths:
    """Hide 1, 2, ... pieces around one and the same place, and read what is put there.

    The place is the same for all lengths, so that only the length differs (after Joshi et al.
    2020, who train on such spans). Texts too short for the longest span are left out.

    Raises:
        TrainingDataError: no text is long enough.
    """
    lengths = tuple(range(1, longest + 1))
    rng = np.random.default_rng(seed)
    queries = []
    for text, row in enumerate(align_all(encoder, texts)):
        free = [i for i, special in enumerate(row.is_special) if not special]
        margin = longest // 2 + 1
        if len(free) < 2 * margin + 1:
            continue
        place = free[int(rng.integers(margin, len(free) - margin))]
        for length in lengths:
            start = place - (length - 1) // 2
            queries.append(Query(row, tuple(range(start, start + length)), place, text))
    if not queries:
        raise TrainingDataError(f"no text is long enough for a span of {longest}")
    right = _right(encoder, queries).reshape(-1, longest)
    centred = np.array(lengths) - np.mean(lengths)
    weights = centred / (centred**2).sum()
    ones = np.ones(len(right))
    draws = resampled_means(right, ones, seed=seed)
    means = right.mean(0)
    slope = float(means @ weights)
    own = {"n": len(right), "model": encoder.name, "seed": seed}
    return SpanLengths(
        Estimate(value=slope, unit="slope", interval=percentile_interval(draws @ weights, slope),
                 **own),
        lengths,
        tuple(
            Estimate(value=float(mean), unit="share", **own,
                     interval=percentile_interval(draws[:, k], float(mean)))
            for k, mean in enumerate(means)
        ),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ShuffledChoice:
    """Sentences against their own words in another order.

    Attributes:
        preferred: share for which the sum over all gaps is higher in the right order.
        scores, shuffled: pseudo-log-likelihoods of the first sentence in both orders.
        passes: forward rows it took; one for every piece of every text.
    """

    preferred: Estimate
    scores: PLL
    shuffled: PLL
    passes: int


def shuffled_choice(
    encoder: Encoder, sentences: Sequence[str], *, seed: int = 0
) -> ShuffledChoice:
    """Hide every token in turn and sum up (Baevski et al. 2019 train on this; Salazar et al. 2020
    score with it). The final mark stays in its place. Both are compared in lower case: a capital
    letter would tell which word came first.

    Raises:
        TrainingDataError: fewer than two sentences.
    """
    if len(sentences) < 2:
        raise TrainingDataError("a share takes at least two sentences")
    sentences = [sentence.lower() for sentence in sentences]
    rng = np.random.default_rng(seed)
    others = []
    for sentence in sentences:
        words = sentence.rstrip(".").split()
        order = words
        while order == words and len(set(words)) > 1:
            order = [words[i] for i in rng.permutation(len(words))]
        others.append(" ".join(order) + ".")
    found = pll(encoder, [*sentences, *others])
    right, wrong = found[: len(sentences)], found[len(sentences) :]
    won = sum(a.total > b.total for a, b in zip(right, wrong, strict=True))
    preferred = Estimate(
        value=won / len(right), unit="share", n=len(right), model=encoder.name, seed=seed,
        baselines={"chance": 0.5}, interval=wilson_interval(won, len(right)),
    )  # fmt: skip
    return ShuffledChoice(preferred, right[0], wrong[0], sum(len(p.pieces) for p in found))
