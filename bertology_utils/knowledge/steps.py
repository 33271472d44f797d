"""Questions that take several facts in a row: does each further step cost accuracy?"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..encoder import Encoder
from ..resampling import RESAMPLES, Estimate, percentile_interval
from ..stimuli import Chain, Fact, FactError, candidates, chains
from .answers import ask, known_facts
from .errors import KnowledgeError

#: what questions of every number of steps can end in
LAST = ("language", "currency", "continent")


@dataclass(frozen=True, eq=False)
class Steps:
    """Accuracy at the same last facts, reached in one step or in several.

    Attributes:
        slope: change of accuracy for each further step, by least squares; n counts last facts.
        by_steps: number of steps -> share of last facts answered rightly among all answers of
            their relation (several questions about one fact are averaged first), with the
            baseline ``majority``: the most frequent answer of each relation for all.
        last: F last facts.
        table: [F, S] accuracy of every last fact at every number of steps.
        questions: number of steps -> how many questions were asked.
    """

    slope: Estimate
    by_steps: Mapping[int, Estimate]
    last: tuple[Fact, ...]
    table: np.ndarray
    questions: Mapping[int, int]


def step_questions(
    encoder: Encoder, hops: Sequence[int] = (1, 2, 3, 4), *, most: int = 4, seed: int = 0
) -> dict[int, list[Chain]]:
    """Questions of each number of steps that end in the same facts.

    Without this matching, long questions would be about other countries than short ones, since
    they start from famous works and people. Of each number of steps, at most ``most`` questions
    end in the same fact.

    Raises:
        KnowledgeError: fewer than two numbers of steps, or no fact that all of them reach.
    """
    if len(set(hops)) < 2:
        raise KnowledgeError("a slope takes questions of at least two numbers of steps")
    reached: dict[int, dict[tuple[str, str], list[Chain]]] = {}
    for number in hops:
        groups = reached.setdefault(number, {})
        for chain in _all_chains(encoder, number, seed):
            if chain.steps[-1].relation in LAST:
                groups.setdefault(_key(chain.steps[-1]), []).append(chain)
    shared = [key for key in reached[hops[0]] if all(key in groups for groups in reached.values())]
    if not shared:
        raise KnowledgeError(f"no fact is reached by {', '.join(map(str, hops))} steps alike")
    return {
        number: [chain for key in shared for chain in groups[key][:most]]
        for number, groups in reached.items()
    }


def ask_steps(
    encoder: Encoder,
    questions: Mapping[int, Sequence[Chain]],
    *,
    among: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
) -> Steps:
    """Ask the questions of :func:`step_questions` and fit the slope; facts are resampled.

    Args:
        among: last relation -> the answers to choose from; by default all that occur in our facts
            and are one piece.

    Raises:
        KnowledgeError: fewer than two numbers of steps, or a last fact that one of them lacks.
    """
    if len(questions) < 2:
        raise KnowledgeError("a slope takes questions of at least two numbers of steps")
    asked = [(number, chain) for number, group in questions.items() for chain in group]
    last = {_key(chain.steps[-1]): chain.steps[-1] for _, chain in asked}
    if among is None:
        whole = known_facts(encoder, LAST)
        among = {name: candidates([f for f in whole if f.relation == name]) for name in LAST}
    answers = ask(
        encoder, [c.steps[-1] for _, c in asked], [c.query for _, c in asked], among=among
    )
    scores: dict[tuple, list[float]] = {}
    for (number, chain), right in zip(asked, answers.right(), strict=True):
        scores.setdefault((_key(chain.steps[-1]), number), []).append(float(right))
    numbers = sorted(questions)
    for key in last:
        for number in numbers:
            if (key, number) not in scores:
                end = f"{key[1]} of {key[0]!r}"
                raise KnowledgeError(f"no question of {number} steps ends in {end}")
    table = np.array([[np.mean(scores[key, number]) for number in numbers] for key in last])
    majority = _majority(list(last.values()))
    drawn = np.random.default_rng(seed).integers(0, len(table), (RESAMPLES, len(table)))
    draws = table[drawn].mean(axis=1)  # [R, S]
    at = np.array(numbers, dtype=float)
    value = least_squares_slope(at, table.mean(axis=0))
    slope = Estimate(
        value=value, unit="slope", n=len(table), model=encoder.name, seed=seed,
        interval=percentile_interval(least_squares_slope(at, draws.T), value),
    )  # fmt: skip
    by_steps = {
        number: Estimate(
            value=float(table[:, i].mean()), unit="share", n=len(table), model=encoder.name,
            seed=seed, baselines={"majority": majority},
            interval=percentile_interval(draws[:, i], float(table[:, i].mean())),
        )
        for i, number in enumerate(numbers)
    }  # fmt: skip
    counts = {number: len(group) for number, group in questions.items()}
    return Steps(slope, by_steps, tuple(last.values()), table, counts)


def least_squares_slope(x: np.ndarray, y: np.ndarray) -> float | np.ndarray:
    """Slope of y [P], or of every column of y [P, R], against x [P].

    Raises:
        KnowledgeError: x does not vary.
    """
    centred = np.asarray(x, dtype=float) - np.mean(x)
    if not np.any(centred):
        raise KnowledgeError("a slope takes at least two different x")
    found = centred @ np.asarray(y, dtype=float) / (centred @ centred)
    return float(found) if np.ndim(found) == 0 else found


def _key(fact: Fact) -> tuple[str, str]:
    return fact.subject.lower().removeprefix("the "), fact.relation


def _majority(last: Sequence[Fact]) -> float:
    """Share right if each relation's most frequent answer is given to all of its facts."""
    right = 0
    for relation in dict.fromkeys(fact.relation for fact in last):
        own = [fact.objects for fact in last if fact.relation == relation]
        right += max(sum(word in objects for objects in own) for word in sum(own, ()))
    return right / len(last)


def _all_chains(encoder: Encoder, hops: int, seed: int) -> list[Chain]:
    """All questions there are: ``chains`` gives as many as it is asked for, or refuses."""
    pieces = cache(lambda word: encoder.tokenizer.tokenize(f" {word}"))

    def drawn(n: int) -> list[Chain] | None:
        try:
            return chains(hops, n, seed, pieces)
        except FactError:
            return None

    most = bisect_left(range(1, 1 << 12), True, key=lambda n: drawn(n) is None)
    return drawn(most) or []
