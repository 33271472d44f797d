"""Precision at k: how many facts a model retrieves, against the most frequent answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..cloze import wilson_interval
from ..resampling import RESAMPLES, Estimate, percentile_interval
from ..stimuli import Fact
from .answers import Answers, hits_at
from .errors import KnowledgeError, UnmatchedError


@dataclass(frozen=True)
class Precision:
    """P@k over several relations.

    Attributes:
        value: mean over the relations of the mean over their facts, as LAMA reports it.
        k: how many guesses count.
        by_relation: relation -> its own estimate, with the baseline ``majority``.
        baselines: ``majority`` (see :func:`majority_ranks`) and any that were added.
        n: facts.
        interval: 95 % bootstrap over the facts of each relation.
        model: name of the model.
        seed: seed of the bootstrap.
    """

    value: float
    k: int
    by_relation: Mapping[str, Estimate]
    baselines: Mapping[str, float]
    n: int
    interval: tuple[float, float]
    model: str
    seed: int
    unit: str = field(default="share", init=False)

    def estimate(self, **baselines: float | Precision) -> Estimate:
        """The mean over relations as an estimate, beside further baselines."""
        found = Estimate(
            value=self.value, unit=self.unit, n=self.n, model=self.model,
            baselines=self.baselines, seed=self.seed, interval=self.interval,
        )  # fmt: skip
        return found.with_baselines(**baselines)


def majority_ranks(found: Sequence[Fact]) -> list[tuple[int, ...]]:
    """Ranks of every fact's right answers when answers are guessed by their frequency.

    For each relation, the guesses are its answers from the most frequent to the rarest (ties in
    alphabetical order), whatever the subject: LAMA's baseline "Freq". The frequencies are counted
    on these very facts, so the baseline is a little stronger than one that has not seen them.
    """
    counts: dict[str, Counter[str]] = {}
    for fact in found:
        counts.setdefault(fact.relation, Counter()).update(fact.objects)
    places = {
        relation: {
            answer: place
            for place, (answer, _) in enumerate(
                sorted(counter.items(), key=lambda item: (-item[1], item[0])), 1
            )
        }
        for relation, counter in counts.items()
    }
    return [tuple(places[fact.relation][answer] for answer in fact.objects) for fact in found]


def precision_at_k(answers: Answers, k: int = 1, *, seed: int = 0) -> Precision:
    """P@k over the whole vocabulary, for each relation and their mean (Petroni et al. 2019).

    Raises:
        ValueError: ``k`` below 1.
    """
    hits, guessed = answers.hits(k), hits_at(majority_ranks(answers.facts), k)
    names = np.array(answers.relations)
    by_relation = {}
    for relation in dict.fromkeys(answers.relations):
        here = names == relation
        by_relation[relation] = Estimate(
            value=float(hits[here].mean()),
            unit="share",
            n=int(here.sum()),
            model=answers.model,
            baselines={"majority": float(guessed[here].mean())},
            interval=wilson_interval(float(hits[here].sum()), int(here.sum())),
        )
    whole = macro_mean(hits, answers.relations, seed=seed, model=answers.model)
    majority = float(np.mean([e.baselines["majority"] for e in by_relation.values()]))
    return Precision(
        whole.value, k, by_relation, {"majority": majority}, whole.n, whole.interval,
        answers.model, seed,
    )  # fmt: skip


def macro_mean(
    values: Sequence[float] | np.ndarray,
    groups: Sequence[str],
    *,
    seed: int = 0,
    model: str,
    unit: str = "share",
) -> Estimate:
    """Mean over groups of the mean inside each, with a bootstrap that resamples inside groups.

    Given differences of two conditions on the same facts, this is the paired bootstrap.

    Args:
        values: [N] one number a fact.
        groups: [N] its group, such as the relation.

    Raises:
        KnowledgeError: no values.
        UnmatchedError: not one group for each value.
    """
    numbers = np.asarray(values, dtype=float)
    if len(numbers) == 0:
        raise KnowledgeError("no values to average")
    if len(groups) != len(numbers):
        raise UnmatchedError(f"{len(groups)} groups for {len(numbers)} values")
    means, draws = group_means(numbers, groups, np.random.default_rng(seed))
    value, replicates = float(np.mean(means)), draws.mean(axis=1)
    return Estimate(
        value=value, unit=unit, n=len(numbers), model=model, seed=seed,
        interval=percentile_interval(replicates, value),
    )  # fmt: skip


def group_means(
    values: np.ndarray, groups: Sequence[str], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Means [G] of the groups in order of appearance, and their bootstrap replicates [R, G]."""
    names = np.array(groups)
    means, columns = [], []
    for name in dict.fromkeys(groups):
        own = values[names == name]
        means.append(own.mean())
        columns.append(own[rng.integers(0, len(own), (RESAMPLES, len(own)))].mean(axis=1))
    return np.array(means), np.stack(columns, axis=1)


@dataclass(frozen=True)
class CardinalityGap:
    """How much one right answer is easier than many.

    Attributes:
        difference: the gap, for the ledger.
        by_cardinality: "1-1", "N-1", "N-M" -> P@k, mean over relations, with the baseline
            ``majority``.
    """

    difference: Estimate
    by_cardinality: Mapping[str, Estimate]


def cardinality_gap(answers: Answers, k: int = 1, *, seed: int = 0) -> CardinalityGap:
    """P@k of relations with one right answer (1-1, N-1) minus that of relations with many (N-M).

    Raises:
        KnowledgeError: the facts lack relations of one of the two kinds.
    """
    hits, guessed = answers.hits(k), hits_at(majority_ranks(answers.facts), k)
    kinds = np.array([fact.cardinality for fact in answers.facts])
    parts, replicates, by_kind = {}, {}, {}
    # One generator for both sides: the same seed twice would resample them in step.
    rng = np.random.default_rng(seed)
    for kind in dict.fromkeys(kinds.tolist()):
        here = kinds == kind
        own = [r for r, flag in zip(answers.relations, here, strict=True) if flag]
        usual = macro_mean(guessed[here], own, seed=seed, model=answers.model)
        found = macro_mean(hits[here], own, seed=seed, model=answers.model)
        by_kind[kind] = found.with_baselines(majority=usual)
    for name, wanted in (("one", ("1-1", "N-1")), ("many", ("N-M",))):
        here = np.isin(kinds, wanted)
        if not here.any():
            raise KnowledgeError(f"no facts of cardinality {' or '.join(wanted)}")
        own = [r for r, flag in zip(answers.relations, here, strict=True) if flag]
        means, draws = group_means(hits[here], own, rng)
        parts[name], replicates[name] = float(means.mean()), draws.mean(axis=1)
    value = parts["one"] - parts["many"]
    used = int(np.isin(kinds, ("1-1", "N-1", "N-M")).sum())
    difference = Estimate(
        value=value, unit="share difference", n=used, model=answers.model, seed=seed,
        interval=percentile_interval(replicates["one"] - replicates["many"], value),
    )  # fmt: skip
    return CardinalityGap(difference, by_kind)
