"""Questions with a "not" or a misleading word in front (Kassner and Schuetze 2020, 1911.03343)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..cloze import compare_at_mask
from ..encoder import Encoder
from ..resampling import Estimate
from ..stimuli import Fact, misprimes
from .answers import Answers, ask
from .errors import KnowledgeError
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


def negation(encoder: Encoder, found: Sequence[Fact], *, seed: int = 0) -> Negation:
    """Ask the first template and its negation about every fact.

    Raises:
        KnowledgeError: no facts, or one without negated templates (public files have none).
        FactError: a relation with one answer only, so that none is wrong.
    """
    if bare := next((fact for fact in found if not fact.negated_templates), None):
        raise KnowledgeError(f"{bare.subject!r} ({bare.relation}) has no negated templates")
    plain = ask(encoder, found)
    negative = ask(encoder, found, [fact.negated_queries[0] for fact in found])
    wrong = [word for _, word in _primes(found, seed)]
    right = [fact.object for fact in found]
    stays = [a == b for a, b in zip(plain.first, negative.first, strict=True)]
    ranks = [rank_correlation(a, b) for a, b in zip(plain.scores, negative.scores, strict=True)]
    margins = {
        "affirmative": compare_at_mask(encoder, plain.queries, right, wrong).margins,
        "negated": compare_at_mask(encoder, negative.queries, wrong, right).margins,
    }

    def mean(values: Sequence[float], unit: str = "share") -> Estimate:
        return macro_mean(values, plain.relations, seed=seed, model=encoder.name, unit=unit)

    true = {
        name: mean([_won(m) for m in own]).with_baselines(chance=0.5)
        for name, own in margins.items()
    }
    return Negation(
        mean(stays), mean(ranks, "correlation"), true["affirmative"], true["negated"], plain,
        negative,
    )  # fmt: skip


def mispriming(encoder: Encoder, found: Sequence[Fact], *, seed: int = 0) -> Priming:
    """Ask the first template of every fact alone, after a neutral word, and after a wrong answer.

    "Munich? The capital of France is [MASK]." The wrong answer is right for another fact of the
    same relation.

    Raises:
        KnowledgeError: no facts.
        FactError: a relation with one answer only, so that none is wrong.
    """
    primes = tuple(word for _, word in _primes(found, seed))
    draw = np.random.default_rng(seed)
    calm = [NEUTRAL[i] for i in draw.integers(0, len(NEUTRAL), len(found))]
    asked = {
        "none": ask(encoder, found),
        "neutral": ask(encoder, found, _primed(found, calm)),
        "misleading": ask(encoder, found, _primed(found, primes)),
    }
    hits = {name: answers.hits(1) for name, answers in asked.items()}
    groups = asked["none"].relations

    def mean(values: np.ndarray, unit: str = "share") -> Estimate:
        return macro_mean(values, groups, seed=seed, model=encoder.name, unit=unit)

    copied = {name: _copies(encoder, asked[name], primes) for name in ("none", "misleading")}
    return Priming(
        mean(hits["none"] - hits["misleading"], "share difference"),
        mean(hits["none"] - hits["neutral"], "share difference"),
        {name: mean(own) for name, own in hits.items()},
        mean(copied["misleading"]).with_baselines(no_prime=mean(copied["none"])),
        primes,
        asked,
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


def _primes(found: Sequence[Fact], seed: int) -> list[tuple[Fact, str]]:
    """A wrong answer for each fact, drawn among the answers of its own relation."""
    if not found:
        raise KnowledgeError("no facts to ask about")
    groups: dict[str, list[int]] = {}
    for i, fact in enumerate(found):
        groups.setdefault(fact.relation, []).append(i)
    out: dict[int, tuple[Fact, str]] = {}
    for rows in groups.values():
        drawn = misprimes([found[i] for i in rows], seed)
        out |= dict(zip(rows, drawn, strict=True))
    return [out[i] for i in range(len(found))]


def _primed(found: Sequence[Fact], primes: Sequence[str]) -> list[str]:
    return [primed(prime, fact.queries[0]) for fact, prime in zip(found, primes, strict=True)]


def _copies(encoder: Encoder, answers: Answers, primes: Sequence[str]) -> np.ndarray:
    tokenizer = encoder.tokenizer
    pieces = [tokenizer.tokenize(f" {prime}")[0] for prime in primes]
    return np.array([float(a == b) for a, b in zip(answers.first, pieces, strict=True)])


def _won(margin: float) -> float:
    return 1.0 if margin > 0 else 0.5 if margin == 0 else 0.0
