"""The cloze tests of this chapter: agreement, polarity items, negation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from ..cloze import (
    Preference,
    compare_at_mask,
    compare_contexts,
    fill_mask,
    judge_pairs,
    preference,
    spell_mask,
    target_log_probs,
)
from ..encoder import Encoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli import MASK, CategoryItem, category_completions, minimal_pairs
from ..stimuli.trees import join_words

#: Local and coordinated constructions, as Marvin and Linzen 2018 name them. Only in the long
#: coordination does a noun stand between; there the first verb shows the number.
NEAR: Mapping[str, str] = {
    "simple": "agreement_simple",
    "sentential complement": "agreement_complement",
    "short VP coordination": "agreement_vp_coordination",
    "long VP coordination": "agreement_vp_coordination_long",
    "question": "agreement_question",
}
#: Constructions in which another noun, of the other number, stands before the verb.
ACROSS: Mapping[str, str] = {
    "across a prepositional phrase": "agreement_pp",
    "across a subject relative": "agreement_subject_rc",
    "across an object relative": "agreement_object_rc",
    "across an object relative, no 'that'": "agreement_object_rc_no_that",
    "inside an object relative": "agreement_in_object_rc",
}
#: Nouns between subject and verb when attractors are counted, always this many.
INTERVENING = 3


def agreement(
    encoder: Encoder,
    constructions: Mapping[str, str],
    n: int,
    *,
    seed: int = 0,
    version: str = "natural",
) -> dict[str, Preference]:
    """Preference for the agreeing verb at one mask, construction by construction.

    Args:
        encoder: with a trained MLM head.
        constructions: name -> phenomenon of :func:`bertology_utils.stimuli.minimal_pairs`.
        n: pairs of each; seed: of the pairs; version: ``"natural"`` or ``"nonsense"``.

    Raises:
        PairError: unknown phenomenon or version; MissingHeadError: no trained MLM head.
    """
    return {
        name: judge_pairs(encoder, minimal_pairs(phenomenon, n, seed, version=version))
        for name, phenomenon in constructions.items()
    }


def by_attractors(encoder: Encoder, n: int, *, seed: int = 0) -> list[Preference]:
    """Preference with 0, 1, 2, 3 nouns of the other number among the three before the verb.

    The number of nouns is always the same, so that length and depth do not grow with attractors.
    """
    return [
        judge_pairs(
            encoder,
            minimal_pairs(
                "agreement_attractors", n, seed, attractors=count, intervening=INTERVENING
            ),
        )
        for count in range(INTERVENING + 1)
    ]


def pool(preferences: Iterable[Preference]) -> Preference:
    """All pairs of several tests as one test.

    Raises:
        ValueError: nothing to pool, or tests of different models.
    """
    listed = list(preferences)
    models = {p.model for p in listed}
    if len(models) != 1:
        raise ValueError(f"only tests of one model can be pooled, not of {sorted(models)}")
    return preference([m for p in listed for m in p.margins], models.pop())


def polarity(encoder: Encoder, n: int, *, seed: int = 0) -> dict[str, Preference]:
    """Three questions about "ever", all answered at its mask.

    * ``"item"``: without a licensor, is another adverb likelier there than "ever"?
    * ``"licensor"``: is "ever" likelier after "No lady has ..." than after "The lady has ..."?
    * ``"scope"``: is it likelier where "no" stands above it than where "no" is buried in a
      relative clause and "the" stands above?

    In the last two, one word is compared in two contexts, so that its frequency cannot matter.

    Raises:
        MissingHeadError: no trained MLM head; TargetError: "ever" is not one piece.
    """
    found = {"item": judge_pairs(encoder, minimal_pairs("npi_presence", n, seed))}
    for name, phenomenon in (("licensor", "npi_licensor"), ("scope", "npi_scope")):
        pairs = minimal_pairs(phenomenon, n, seed)
        frames = [[_hide(encoder, words) for words in (p.good_words, p.bad_words)] for p in pairs]
        good, bad = zip(*frames, strict=True)
        found[name] = compare_contexts(encoder, good, bad, [_ITEM] * n)
    return found


_ITEM = "ever"


def _hide(encoder: Encoder, words: tuple[str, ...]) -> str:
    return spell_mask(encoder, join_words(MASK if word == _ITEM else word for word in words))


@dataclass(frozen=True, eq=False)
class NegationResult:
    """ "A robin is a [MASK]." beside "A robin is not a [MASK]." N items.

    Attributes:
        items: the items; those whose two categories are one piece each.
        affirmative: preference for the right category.
        negated: preference for the category that makes the negated sentence true, the wrong one.
        guesses: [N] the first guesses (affirmative, negated).
        overlap: [N] share of the five first guesses that both sentences have in common.
        rank_correlation: [N] of the scores of all categories in the two sentences.
        model: name of the encoder.
    """

    items: tuple[CategoryItem, ...]
    affirmative: Preference
    negated: Preference
    guesses: tuple[tuple[str, str], ...]
    overlap: np.ndarray
    rank_correlation: np.ndarray
    model: str

    def mean(self, what: str) -> Estimate:
        """Mean of ``"overlap"`` or ``"rank_correlation"`` over the items.

        Raises:
            KeyError: another name.
        """
        units = {"overlap": "share", "rank_correlation": "correlation"}
        if what not in units:
            raise KeyError(f"what is {what!r}, must be one of {', '.join(units)}")
        items = getattr(self, what)
        value = float(items.mean())
        draws = resampled_means(items, np.ones(len(items)), seed=0)
        return Estimate(
            value=value, unit=units[what], n=len(items), model=self.model, seed=0,
            interval=percentile_interval(draws, value),
        )  # fmt: skip


def negation(encoder: Encoder, *, seed: int = 0) -> NegationResult | None:
    """Categories with and without "not" (after Ettinger 2020, doi:10.1162/tacl_a_00298).

    Args:
        encoder: with a trained MLM head.
        seed: of the wrong categories.

    Returns:
        None when no item has two categories of one piece.

    Raises:
        MissingHeadError: no trained MLM head.
    """
    items = [
        item for item in category_completions(seed=seed)
        if _one_piece(encoder, item.category) and _one_piece(encoder, item.other)
    ]  # fmt: skip
    if not items:
        return None
    plain = [spell_mask(encoder, item.affirmative) for item in items]
    denied = [spell_mask(encoder, item.negative) for item in items]
    right, wrong = [i.category for i in items], [i.other for i in items]
    names = sorted(set(right) | set(wrong))
    fillings = [fill_mask(encoder, frames, k=5) for frames in (plain, denied)]
    scores = [target_log_probs(encoder, f, [names] * len(items)) for f in (plain, denied)]
    return NegationResult(
        tuple(items),
        compare_at_mask(encoder, plain, right, wrong),
        compare_at_mask(encoder, denied, wrong, right),
        tuple((a.tokens[0], b.tokens[0]) for a, b in zip(*fillings, strict=True)),
        np.array([len({*a.tokens} & {*b.tokens}) / 5 for a, b in zip(*fillings, strict=True)]),
        np.array([spearmanr(a, b).statistic for a, b in zip(*scores, strict=True)]),
        encoder.name,
    )


def compare_forms(encoder: Encoder, sentence: str, forms: Iterable[str]) -> dict[str, float]:
    """Probabilities of some words at the mask of a sentence, most probable first.

    Args:
        sentence: with one ``[MASK]``.
        forms: words of one piece each; others are left out.

    Raises:
        MaskCountError: not exactly one mask; MissingHeadError: no trained MLM head.
    """
    known = [form for form in forms if _one_piece(encoder, form)]
    (scores,) = target_log_probs(encoder, [spell_mask(encoder, sentence)], [known])
    ranked = sorted(zip(known, scores, strict=True), key=lambda pair: -pair[1])
    return {form: float(np.exp(score)) for form, score in ranked}


def _one_piece(encoder: Encoder, word: str) -> bool:
    pieces = encoder.tokenizer.tokenize(f" {word}")
    return len(pieces) == 1 and pieces[0] != encoder.tokenizer.unk_token
