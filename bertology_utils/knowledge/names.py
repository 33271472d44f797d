"""What a name suggests, and what changes when one name stands for another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..cloze import fill_mask, spell_mask, target_log_probs, wilson_interval
from ..encoder import Encoder
from ..resampling import Estimate
from ..stimuli import NameItem
from .answers import Answers
from .errors import KnowledgeError, UnmatchedError
from .precision import Precision, precision_at_k

#: question -> what it asks for
QUESTIONS = {"nationality": "origin", "citizen": "country", "born": "country"}


@dataclass(frozen=True, eq=False)
class Stereotypes:
    """Where a model takes invented people to be from, by the look of their names.

    Attributes:
        result: share of names given the origin that they suggest (the best of the origins), with
            the baselines ``chance`` and ``one_answer``, the share right if the model's favourite
            answer were given to everybody.
        origins: O names of origins, in order.
        table: [O, O] share of names of each origin (row) that are given each origin (column).
        mass: [O, O] mean probability, over the origins alone, likewise.
        n: names.
    """

    result: Estimate
    origins: tuple[str, ...]
    table: np.ndarray
    mass: np.ndarray
    n: int


def name_stereotypes(
    encoder: Encoder, items: Sequence[NameItem], *, question: str = "nationality"
) -> Stereotypes:
    """Ask where invented people with telling names are from (after Poerner et al. 2019).

    Nobody of these names exists, so nothing but the name can guide the answer.

    Args:
        items: from :func:`~bertology_utils.stimuli.stereotyped_names`.
        question: "nationality" ("By nationality, X is [MASK]."), "citizen" or "born".

    Raises:
        KnowledgeError: an unknown question, or names of fewer than two origins.
        TargetError: an origin that is not one piece.
    """
    if question not in QUESTIONS:
        raise KnowledgeError(f"unknown question {question!r}; known: {', '.join(QUESTIONS)}")
    words = [getattr(item, QUESTIONS[question]) for item in items]
    origins = tuple(dict.fromkeys(words))
    if len(origins) < 2:
        raise KnowledgeError(f"names of {len(origins)} origins; at least two are needed")
    texts = [spell_mask(encoder, getattr(item, question)) for item in items]
    scores = np.array(target_log_probs(encoder, texts, [origins] * len(texts)))
    gold = np.array([origins.index(word) for word in words])
    given = scores.argmax(axis=1)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    size = len(origins)
    table, mass = np.zeros((size, size)), np.zeros((size, size))
    for row in range(size):
        table[row] = np.bincount(given[gold == row], minlength=size) / (gold == row).sum()
        mass[row] = shares[gold == row].mean(axis=0)
    favourite = int(np.bincount(given, minlength=size).argmax())
    right = float((given == gold).sum())
    result = Estimate(
        value=right / len(gold),
        unit="share",
        n=len(gold),
        model=encoder.name,
        baselines={"chance": 1 / size, "one_answer": float((gold == favourite).mean())},
        interval=wilson_interval(right, len(gold)),
    )
    return Stereotypes(result, origins, table, mass, len(gold))


@dataclass(frozen=True)
class NameFilter:
    """P@k before and after facts are removed whose name gives the answer away.

    Attributes:
        all_facts, kept: P@k of all facts, and of those whose name holds no hint.
        hinted: relation -> share of its facts that the filter removes.
    """

    all_facts: Precision
    kept: Precision
    hinted: dict[str, float]


def name_filter(answers: Answers, k: int = 1, *, seed: int = 0) -> NameFilter:
    """Apply the string filter of Poerner et al. (2019) to answers already given.

    Relations that lose all their facts are left out of both figures, so that the means compare the
    same relations.

    Raises:
        KnowledgeError: the filter removes every fact.
    """
    hints = np.array([fact.leaks for fact in answers.facts])
    names = np.array(answers.relations)
    hinted = {r: float(hints[names == r].mean()) for r in dict.fromkeys(answers.relations)}
    stay = np.array([hinted[name] < 1 for name in names])
    if not stay.any():
        raise KnowledgeError("the filter removes every fact")
    return NameFilter(
        precision_at_k(answers.only(stay), k, seed=seed),
        precision_at_k(answers.only(stay & ~hints), k, seed=seed),
        hinted,
    )


@dataclass(frozen=True, eq=False)
class Changes:
    """How often the prediction at the mask changes with a word elsewhere in the text.

    Attributes:
        result: share of items whose answer changes.
        before, after: the answers.
    """

    result: Estimate
    before: tuple[str, ...]
    after: tuple[str, ...]


def changed_predictions(
    encoder: Encoder,
    texts: Sequence[str],
    changed: Sequence[str],
    *,
    candidates: Sequence[str] | None = None,
) -> Changes:
    """Share of predictions that a change to the text overturns (after Balasubramanian et al. 2020).

    Args:
        texts: N texts with one ``[MASK]``.
        changed: the same with a name (or, for the control, another word) exchanged.
        candidates: choose among these words only; by default the whole vocabulary.

    Raises:
        KnowledgeError: no texts, or a text that was not changed.
        UnmatchedError: not one changed text for each text.
        TargetError, MaskCountError, MissingHeadError: as in ``cloze``.
    """
    if not texts:
        raise KnowledgeError("no texts")
    if len(texts) != len(changed):
        raise UnmatchedError(f"{len(changed)} changed texts for {len(texts)} texts")
    if same := [a for a, b in zip(texts, changed, strict=True) if a == b]:
        raise KnowledgeError(f"nothing was exchanged in {same[0]!r}")
    asked = [spell_mask(encoder, text) for text in (*texts, *changed)]
    if candidates is None:
        found = [filling.tokens[0] for filling in fill_mask(encoder, asked, k=1)]
    else:
        scores = np.array(target_log_probs(encoder, asked, [list(candidates)] * len(asked)))
        found = [candidates[i] for i in scores.argmax(axis=1)]
    before, after = tuple(found[: len(texts)]), tuple(found[len(texts) :])
    moved = sum(a != b for a, b in zip(before, after, strict=True))
    result = Estimate(
        value=moved / len(texts), unit="share", n=len(texts), model=encoder.name,
        interval=wilson_interval(moved, len(texts)),
    )  # fmt: skip
    return Changes(result, before, after)
