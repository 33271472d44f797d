"""One fact, several wordings: how far does the answer hang on the template?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from ..encoder import Encoder
from ..resampling import Estimate
from ..stimuli import Fact
from .answers import Answers, ask
from .errors import KnowledgeError
from .precision import macro_mean


@dataclass(frozen=True, eq=False)
class Phrasings:
    """Every template of one relation, asked about each of its N facts.

    Attributes:
        relation: its name.
        templates: T templates, [X] for the subject and [Y] for the object.
        answers: T answers, one a template.
    """

    relation: str
    templates: tuple[str, ...]
    answers: tuple[Answers, ...]

    def hits(self, k: int = 1) -> np.ndarray:
        """[T, N] hits at ``k`` of every template."""
        return np.stack([answers.hits(k) for answers in self.answers])

    def ensemble_hits(self) -> np.ndarray:
        """[N] right (1.0) or wrong (0.0) choices by the mean log-probability over templates.

        The choice is among the relation's candidates.
        """
        return replace(self.answers[0], scores=self._mean_scores()).right()

    def consistency(self) -> np.ndarray:
        """[N] share of template pairs that choose the same candidate (Elazar et al. 2021).

        Raises:
            KnowledgeError: fewer than two templates.
        """
        if len(self.answers) < 2:
            raise KnowledgeError(f"relation {self.relation!r} has one template: no pair to compare")
        chosen = [answers.chosen for answers in self.answers]
        same = [
            [a == b for a, b in zip(chosen[i], chosen[j], strict=True)]
            for i, j in combinations(range(len(chosen)), 2)
        ]
        return np.mean(same, axis=0)

    def _mean_scores(self) -> tuple[np.ndarray, ...]:
        rows = zip(*(answers.scores for answers in self.answers), strict=True)
        return tuple(np.mean(row, axis=0) for row in rows)


@dataclass(frozen=True)
class Wording:
    """What wording does to P@1, as means over relations.

    Attributes:
        gain: P@1 with the template that is best on *other* facts, minus with the first template.
        first, chosen_on_others, oracle: P@1 with the first template, with the one chosen on other
            facts, and counting a fact if any template finds it.
        worst, best: P@1 with the worst and the best template of each relation, judged on the very
            same facts.
        first_choice, ensemble: right choices among the relation's candidates, with the first
            template and with the mean log-probability over all templates.
        consistency: share of template pairs that give the same answer (candidates only).
        templates: relation -> template -> P@1.
    """

    gain: Estimate
    first: Estimate
    chosen_on_others: Estimate
    oracle: Estimate
    worst: Estimate
    best: Estimate
    first_choice: Estimate
    ensemble: Estimate
    consistency: Estimate
    templates: Mapping[str, Mapping[str, Estimate]]


def ask_phrasings(
    encoder: Encoder, found: Sequence[Fact], *, max_tokens: int = 4096
) -> list[Phrasings]:
    """Ask every template about every fact, relation by relation.

    Raises:
        KnowledgeError: no facts, or facts of one relation with different templates.
    """
    if not found:
        raise KnowledgeError("no facts to ask about")
    groups: dict[str, list[Fact]] = {}
    for fact in found:
        groups.setdefault(fact.relation, []).append(fact)
    out = []
    for relation, group in groups.items():
        templates = group[0].templates
        if odd := next((f for f in group if f.templates != templates), None):
            raise KnowledgeError(f"{odd.subject!r} has other templates than {group[0].subject!r}")
        asked = [
            ask(encoder, group, [fact.queries[t] for fact in group], max_tokens=max_tokens)
            for t in range(len(templates))
        ]
        out.append(Phrasings(relation, templates, tuple(asked)))
    return out


def best_on_others(hits: np.ndarray, *, folds: int = 5, seed: int = 0) -> np.ndarray:
    """[N] hits of the template that is best on the other folds; ties go to the earlier template.

    Args:
        hits: [T, N] hits of every template.
        folds: parts the facts are cut into; at most one part a fact.

    Raises:
        KnowledgeError: fewer than two facts.
    """
    n = hits.shape[1]
    if n < 2:
        raise KnowledgeError("choosing a template on other facts takes at least two facts")
    part = np.random.default_rng(seed).permutation(n) % min(folds, n)
    out = np.empty(n)
    for number in range(part.max() + 1):
        test = part == number
        out[test] = hits[hits[:, ~test].mean(axis=1).argmax()][test]
    return out


def wording(asked: Sequence[Phrasings], *, folds: int = 5, seed: int = 0) -> Wording:
    """Summarise the spread over templates, with paired bootstraps over facts.

    Raises:
        KnowledgeError: nothing was asked, or a relation with one fact or one template.
    """
    if not asked:
        raise KnowledgeError("no relation was asked about")
    model = asked[0].answers[0].model
    columns: dict[str, list[np.ndarray]] = {}
    groups: list[str] = []
    templates: dict[str, dict[str, Estimate]] = {}
    for phrasings in asked:
        hits = phrasings.hits()
        order = hits.mean(axis=1)
        row = {
            "first": hits[0],
            "chosen_on_others": best_on_others(hits, folds=folds, seed=seed),
            "oracle": hits.max(axis=0),
            "worst": hits[order.argmin()],
            "best": hits[order.argmax()],
            "first_choice": phrasings.answers[0].right(),
            "ensemble": phrasings.ensemble_hits(),
            "consistency": phrasings.consistency(),
        }
        row["gain"] = row["chosen_on_others"] - row["first"]
        for name, values in row.items():
            columns.setdefault(name, []).append(values)
        groups += [phrasings.relation] * hits.shape[1]
        templates[phrasings.relation] = {
            template: macro_mean(own, ["all"] * len(own), seed=seed, model=model)
            for template, own in zip(phrasings.templates, hits, strict=True)
        }
    found = {
        name: macro_mean(
            np.concatenate(parts), groups, seed=seed, model=model,
            unit="share difference" if name == "gain" else "share",
        )
        for name, parts in columns.items()
    }  # fmt: skip
    return Wording(**found, templates=templates)
