"""Questions with a "not" or a misleading word in front (Kassner and Schuetze 2020, 1911.03343)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..cloze import spell_mask
from ..encoder import Encoder
from ..resampling import Estimate
from ..stimuli import Fact, misprimes
from .answers import Answers, ask
from .errors import KnowledgeError, UnmatchedError
from .precision import macro_mean

#: primes that answer no question about a country, a person, a work or an element
NEUTRAL = ("Table", "Seven", "Maybe", "Window", "Yesterday", "Lunch", "Round", "Paper")


@dataclass(frozen=True, eq=False)
class Negation:
    """The same facts with and without "not".

    Attributes:
        overlap: share of facts whose first piece stays the same, mean over relations.
        correlation: Spearman correlation of a relation's candidates with and without "not",
            mean over facts and relations; 1.0 means that "not" changes nothing in their order.
        affirmative, negated: share of facts for which the word that makes the sentence true scores
            higher: the right answer without "not", a wrong one with it. Chance is one half.
        plain, negative: the answers themselves.
    """

    overlap: Estimate
    correlation: Estimate
    affirmative: Estimate
    negated: Estimate
    plain: Answers
    negative: Answers


@dataclass(frozen=True, eq=False)
class Priming:
    """The same facts with nothing, a neutral word, or a wrong answer in front of the question.

    Attributes:
        drop: P@1 without a prime minus with the misleading one, mean over relations.
        neutral_drop: the same for a prime that answers nothing.
        precision: "none", "neutral", "misleading" -> P@1.
        copied: share of facts whose first piece is the misleading prime itself, after it; its
            baseline ``no_prime`` is how often that word comes first without it.
        primes: the misleading word of each fact.
        answers: "none", "neutral", "misleading" -> the answers.
    """

    drop: Estimate
    neutral_drop: Estimate
    precision: dict[str, Estimate]
    copied: Estimate
    primes: tuple[str, ...]
    answers: dict[str, Answers]


def negation(encoder: Encoder, plain: Answers, *, template: int = 0, seed: int = 0) -> Negation:
    """Ask the facts of some answers again, with "not".

    Args:
        plain: answers to the questions of one template.
        template: its number.
        seed: of the wrong answers, which are right for another fact of the same relation.

    Raises:
        KnowledgeError: a fact without negated templates (public files have none).
        UnmatchedError: ``plain`` answers another question than that template's.
        FactError: a relation with one answer only, so that none is wrong.
    """
    found = plain.facts
    if bare := next((fact for fact in found if not fact.negated_templates), None):
        raise KnowledgeError(f"{bare.subject!r} ({bare.relation}) has no negated templates")
    for fact, query in zip(found, plain.queries, strict=True):
        if query != spell_mask(encoder, fact.queries[template]):
            raise UnmatchedError(f"{query!r} is not template {template} of {fact.relation!r}")
    asked = [fact.negated_queries[template] for fact in found]
    negative = ask(encoder, found, asked, among=plain.candidates)
    wrong = _wrong_answers(found, seed)
    stays = [a == b for a, b in zip(plain.first, negative.first, strict=True)]
    ranks = [rank_correlation(a, b) for a, b in zip(plain.scores, negative.scores, strict=True)]
    margins = [_margins(answers, wrong) for answers in (plain, negative)]

    def mean(values: Sequence[float], unit: str = "share") -> Estimate:
        return macro_mean(values, plain.relations, seed=seed, model=encoder.name, unit=unit)

    return Negation(
        overlap=mean(stays),
        correlation=mean(ranks, "correlation"),
        affirmative=mean(_won(margins[0])).with_baselines(chance=0.5),
        negated=mean(_won(-margins[1])).with_baselines(chance=0.5),
        plain=plain,
        negative=negative,
    )


def mispriming(encoder: Encoder, plain: Answers, *, seed: int = 0) -> Priming:
    """Ask the questions of some answers again, after a neutral word and after a wrong answer.

    "Munich? The capital of France is [MASK]." The wrong answer is right for another fact of the
    same relation.

    Args:
        plain: answers to any one question about each fact.
        seed: of the primes.

    Raises:
        FactError: a relation with one answer only, so that none is wrong.
    """
    found, primes = plain.facts, tuple(_wrong_answers(plain.facts, seed))
    draw = np.random.default_rng(seed)
    calm = [NEUTRAL[i] for i in draw.integers(0, len(NEUTRAL), len(found))]

    def after(words: Sequence[str]) -> Answers:
        asked = [primed(w, query) for w, query in zip(words, plain.queries, strict=True)]
        return ask(encoder, found, asked, among=plain.candidates)

    asked = {"none": plain, "neutral": after(calm), "misleading": after(primes)}
    hits = {name: answers.hits(1) for name, answers in asked.items()}

    def mean(values: np.ndarray, unit: str = "share") -> Estimate:
        return macro_mean(values, plain.relations, seed=seed, model=encoder.name, unit=unit)

    copied = {name: _copies(encoder, asked[name], primes) for name in ("none", "misleading")}
    return Priming(
        drop=mean(hits["none"] - hits["misleading"], "share difference"),
        neutral_drop=mean(hits["none"] - hits["neutral"], "share difference"),
        precision={name: mean(own) for name, own in hits.items()},
        copied=mean(copied["misleading"]).with_baselines(no_prime=mean(copied["none"])),
        primes=primes,
        answers=asked,
    )


def primed(prime: str, query: str) -> str:
    """The question after a prime: "Munich? The capital of France is [MASK]."

    Raises:
        KnowledgeError: an empty prime.
    """
    if not prime.strip():
        raise KnowledgeError("the prime is empty")
    word = prime.strip()
    return f"{word[0].upper()}{word[1:]}? {query}"


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's rank correlation of two score vectors [C]; ties (never met in scores) by order.

    Raises:
        KnowledgeError: fewer than two scores, or vectors of different lengths.
    """
    if len(first) != len(second) or len(first) < 2:
        raise KnowledgeError(f"cannot correlate {len(first)} scores with {len(second)}")
    places = [np.argsort(np.argsort(v, kind="stable"), kind="stable") for v in (first, second)]
    return float(np.corrcoef(*places)[0, 1])


def _wrong_answers(found: Sequence[Fact], seed: int) -> list[str]:
    """A wrong answer for each fact, drawn among the answers of its own relation."""
    groups: dict[str, list[int]] = {}
    for i, fact in enumerate(found):
        groups.setdefault(fact.relation, []).append(i)
    out: dict[int, str] = {}
    for rows in groups.values():
        drawn = misprimes([found[i] for i in rows], seed)
        out |= {i: word for i, (_, word) in zip(rows, drawn, strict=True)}
    return [out[i] for i in range(len(found))]


def _margins(answers: Answers, wrong: Sequence[str]) -> np.ndarray:
    """[N] log-probability of the right answer minus that of the wrong one."""
    out = []
    for fact, score, word in zip(answers.facts, answers.scores, wrong, strict=True):
        place = answers.candidates[fact.relation].index
        out.append(score[place(fact.object)] - score[place(word)])
    return np.array(out)


def _copies(encoder: Encoder, answers: Answers, primes: Sequence[str]) -> np.ndarray:
    tokenizer = encoder.tokenizer
    pieces = [tokenizer.tokenize(f" {prime}")[0] for prime in primes]
    return np.array([float(a == b) for a, b in zip(answers.first, pieces, strict=True)])


def _won(margins: np.ndarray) -> np.ndarray:
    """1.0 where a margin is positive, 0.5 at a tie, else 0.0."""
    return (1 + np.sign(margins)) / 2
