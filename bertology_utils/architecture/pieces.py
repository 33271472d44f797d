"""Subword vocabularies: how many pieces a word costs, by its frequency.

WordPiece: Schuster and Nakajima 2012; Wu et al. 2016 (arXiv 1609.08144). Byte-pair vocabularies are
measured in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import rankdata, spearmanr

from ..encoder import Encoder
from ..resampling import RESAMPLES, Estimate, percentile_interval, resampled_means


def pieces_of(encoder: Encoder, words: Sequence[str]) -> list[list[str]]:
    """The pieces of every word as it stands inside a sentence.

    Raises:
        ValueError: an empty word.
    """
    if (empty := next((i for i, word in enumerate(words) if not word.strip()), None)) is not None:
        raise ValueError(f"word {empty} is empty")
    # Byte-level vocabularies spell a word inside a sentence with a leading space.
    return [encoder.tokenizer.tokenize(f" {word}") for word in words]


def frequency_correlation(
    encoder: Encoder, counts: Mapping[str, int], *, seed: int = 0
) -> Estimate:
    """Spearman correlation of a word's count with its number of pieces; bootstrap over words.

    Raises:
        ValueError: fewer than three words, or all of them with equally many pieces.
    """
    words = list(counts)
    pieces = np.array([len(split) for split in pieces_of(encoder, words)])
    often = np.array([counts[word] for word in words])
    if len(words) < 3 or len(set(pieces)) == 1:
        raise ValueError("a correlation needs three words, not all with equally many pieces")
    value = float(spearmanr(often, pieces).statistic)
    draw = np.random.default_rng(seed)
    draws = np.empty(RESAMPLES)
    for i in range(RESAMPLES):
        take = draw.integers(0, len(words), len(words))
        # A resample without any variation has no correlation; it counts for none.
        with np.errstate(invalid="ignore"):
            draws[i] = np.corrcoef(rankdata(often[take]), rankdata(pieces[take]))[0, 1]
    return Estimate(
        value=value,
        unit="correlation",
        n=len(words),
        model=encoder.name,
        seed=seed,
        interval=percentile_interval(draws, value),
    )


def pieces_by_frequency(
    encoder: Encoder, counts: Mapping[str, int], total: int, *, seed: int = 0
) -> dict[str, Estimate]:
    """Mean pieces per word in every power of ten of frequency, rarest first.

    Args:
        counts: word -> occurrences.
        total: words counted in all; frequencies are given in a million of these.
    """
    bands: dict[int, list[str]] = {}
    for word, n in counts.items():
        bands.setdefault(math.floor(math.log10(n * 1e6 / total)), []).append(word)
    return {
        _band(power): _mean_pieces(encoder, bands[power], seed) for power in sorted(bands)
    }


def pieces_of_numbers(
    encoder: Encoder, *, longest: int = 7, n: int = 200, seed: int = 0
) -> dict[int, Estimate]:
    """Mean pieces of whole numbers drawn at random, by number of digits 1 .. ``longest``."""
    draw = np.random.default_rng(seed)
    found = {}
    for digits in range(1, longest + 1):
        low = 10 ** (digits - 1) if digits > 1 else 0
        numbers = {str(number) for number in draw.integers(low, 10**digits, size=n)}
        found[digits] = _mean_pieces(encoder, sorted(numbers), seed)
    return found


def _mean_pieces(encoder: Encoder, words: Sequence[str], seed: int) -> Estimate:
    sizes = np.array([len(split) for split in pieces_of(encoder, words)], dtype=float)
    draws = resampled_means(sizes, np.ones(len(sizes)), seed=seed)
    value = float(sizes.mean())
    return Estimate(
        value=value,
        unit="ratio",
        n=len(words),
        model=encoder.name,
        seed=seed,
        interval=percentile_interval(draws, value),
    )


def _band(power: int) -> str:
    def written(exponent: int) -> str:
        return f"{10**exponent:,}" if exponent >= 0 else f"{10.0**exponent:g}"

    return f"{written(power)} to {written(power + 1)}"
