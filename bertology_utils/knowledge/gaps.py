"""Everyday gaps and scenes: does the model think of the word that everybody thinks of?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..cloze import compare_at_mask, fill_mask, spell_mask, wilson_interval
from ..encoder import Encoder
from ..resampling import Estimate
from ..stimuli.everyday import Gap, Scene
from .answers import one_piece
from .errors import KnowledgeError


@dataclass(frozen=True, eq=False)
class Gaps:
    """Gaps filled by a model.

    Attributes:
        result: share of gaps with an accepted answer among the guesses; its baseline
            ``prompt_without_subject`` is the share when the sentence does not say what it is about.
        guesses, bare_guesses: the pieces guessed for each gap, with and without its subject.
        found: for each gap, whether an accepted answer is among the guesses.
    """

    result: Estimate
    guesses: tuple[tuple[str, ...], ...]
    bare_guesses: tuple[tuple[str, ...], ...]
    found: tuple[bool, ...]


def fill_gaps(encoder: Encoder, gaps: Sequence[Gap], *, k: int = 10) -> Gaps:
    """Fill everyday gaps with ``k`` guesses each.

    Raises:
        KnowledgeError: no gaps.
        ValueError: ``k`` below 1 or above the vocabulary.
    """
    if not gaps:
        raise KnowledgeError("no gaps to fill")
    texts = [spell_mask(encoder, text) for gap in gaps for text in (gap.text, gap.bare)]
    guesses = [tuple(_word(t) for t in f.tokens) for f in fill_mask(encoder, texts, k=k)]
    full, bare = guesses[0::2], guesses[1::2]
    found, luck = (
        [any(word in gap.accepted for word in own) for gap, own in zip(gaps, part, strict=True)]
        for part in (full, bare)
    )
    result = Estimate(
        value=sum(found) / len(gaps),
        unit="share",
        n=len(gaps),
        model=encoder.name,
        baselines={"prompt_without_subject": sum(luck) / len(gaps)},
        interval=wilson_interval(sum(found), len(gaps)),
    )
    return Gaps(result, tuple(full), tuple(bare), tuple(found))


@dataclass(frozen=True, eq=False)
class Scenes:
    """Scenes whose last word has to be inferred.

    Attributes:
        result: share of scenes whose expected word is the first guess; the baseline ``majority`` is
            the share of the most frequent expected word.
        in_five: share whose expected word is among the first five guesses.
        preferred: share in which it scores higher than the related word that does not fit, with the
            baseline ``chance``.
        guesses: the first five pieces for each scene.
        scenes: the scenes asked, those whose two words are one piece each.
    """

    result: Estimate
    in_five: Estimate
    preferred: Estimate
    guesses: tuple[tuple[str, ...], ...]
    scenes: tuple[Scene, ...]


def read_scenes(encoder: Encoder, scenes: Sequence[Scene]) -> Scenes:
    """Ask for the missing word of every scene (after Ettinger 2020, arXiv 1907.13528).

    Raises:
        KnowledgeError: no scene has two words of one piece.
    """
    kept = [s for s in scenes if one_piece(encoder, s.expected) and one_piece(encoder, s.related)]
    if not kept:
        raise KnowledgeError("no scene has words that are one piece of this vocabulary")
    texts = [spell_mask(encoder, scene.text) for scene in kept]
    guesses = [tuple(_word(t) for t in f.tokens) for f in fill_mask(encoder, texts, k=5)]
    expected = [scene.expected for scene in kept]
    margins = compare_at_mask(encoder, texts, expected, [scene.related for scene in kept])
    most = max(expected.count(word) for word in expected)

    def share(hits: float, **baselines: float) -> Estimate:
        return Estimate(
            value=hits / len(kept), unit="share", n=len(kept), model=encoder.name,
            baselines=baselines, interval=wilson_interval(hits, len(kept)),
        )  # fmt: skip

    pairs = list(zip(expected, guesses, strict=True))
    return Scenes(
        share(sum(word == own[0] for word, own in pairs), majority=most / len(kept)),
        share(sum(word in own for word, own in pairs)),
        share(margins.accuracy * len(kept), chance=margins.chance),
        tuple(guesses),
        tuple(kept),
    )


def _word(piece: str) -> str:
    """A piece without the mark that byte-level vocabularies put before a word."""
    return piece.removeprefix("\u0120").lower()
