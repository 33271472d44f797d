"""Is a name known by its kind or by heart? Seen against unseen names, and names exchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..cloze import target_log_probs
from ..encoder import Encoder
from ..probes import ProbeResult
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli import CoreferenceItem, EntitySentence
from .errors import SemanticsError
from .probing import paired, probe_each, task_split
from .tasks import entity_frame, entity_task, span_vectors

#: verbs that may stand for one another between two people
VERBS = ("met", "saw", "called", "thanked", "knew", "followed", "helped", "visited")


@dataclass(frozen=True, eq=False)
class NameGap:
    """Accuracy at the types of names that the probe was trained on, minus of others.

    Attributes:
        result: the gap, mean over all layers above the embedding output.
        seen, unseen: accuracy at every layer; 0 is the embedding output.
        gaps: [L + 1] their difference.
        frames: sentence frames held out: no test sentence has a frame of the training part.
    """

    result: Estimate
    seen: tuple[ProbeResult, ...]
    unseen: tuple[ProbeResult, ...]
    gaps: np.ndarray
    frames: tuple[str, ...]


def name_gap(
    encoder: Encoder,
    known: Sequence[EntitySentence],
    new: Sequence[EntitySentence],
    *,
    held_out: int = 5,
    width: int = 96,
    seed: int = 0,
) -> NameGap:
    """Train an entity-type probe on names, test it on the same names and on others in new frames.

    Args:
        known: sentences of one set of names (``stimuli.entities(n, split="train")``); those with
            held-out frames are the test of seen names.
        new: sentences of other names; only those with held-out frames are used.
        held_out: number of sentence frames kept for testing.
        width: principal components of the training part that the probe reads.

    Raises:
        SemanticsError: too few frames, or a name of ``new`` that occurs in ``known``.
    """
    frames = sorted({entity_frame(sentence) for sentence in known})
    if not 0 < held_out < len(frames):
        raise SemanticsError(f"cannot hold out {held_out} of {len(frames)} frames")
    met = {name for sentence in known for name in _names(sentence)}
    if both := sorted(met & {name for sentence in new for name in _names(sentence)}):
        raise SemanticsError(f"the name {both[0]!r} is among the known and the new ones")
    order = np.random.default_rng(seed).permutation(len(frames))
    away = {frames[i] for i in order[:held_out]}
    train = [s for s in known if entity_frame(s) not in away]
    tests = [[s for s in side if entity_frame(s) in away] for side in (known, new)]
    task = entity_task(train, [*tests[0], *tests[1]])
    split = task_split(task, seed=seed)
    groups = np.array(task.sentence_of)
    vectors = paired(span_vectors(encoder, task), 1, split, width)
    n_seen = sum(len(sentence.spans) for sentence in tests[0])
    parts = [replace(split, test=rows) for rows in np.split(split.test, [n_seen])]
    seen, unseen = (
        probe_each(
            vectors, task.labels, part, groups=groups.tolist(), seed=seed, model=encoder.name
        )
        for part in parts
    )
    gaps = np.array([a.accuracy - b.accuracy for a, b in zip(seen, unseen, strict=True)])
    draws = [
        _mean_draws(np.mean([probe.correct for probe in side[1:]], axis=0), groups[part.test], s)
        for side, part, s in zip((seen, unseen), parts, (seed, seed + 1), strict=True)
    ]
    value = float(gaps[1:].mean())
    result = Estimate(
        value=value, unit="share difference", n=len(split.test), model=encoder.name, seed=seed,
        interval=percentile_interval(draws[0] - draws[1], value),
    )  # fmt: skip
    return NameGap(result, seen, unseen, gaps, tuple(sorted(away)))


def _names(sentence: EntitySentence) -> list[str]:
    """Single words of names; parts of dates and articles may well recur."""
    return [
        word
        for start, end, kind in sentence.spans
        if kind in ("PERSON", "PLACE")
        for word in sentence.words[start:end]
    ]


def _mean_draws(values: np.ndarray, groups: np.ndarray, seed: int) -> np.ndarray:
    _, codes = np.unique(groups, return_inverse=True)
    return resampled_means(np.bincount(codes, weights=values), np.bincount(codes), seed=seed)


# -- exchanged names -----------------------------------------------------------------------------


@dataclass(frozen=True)
class NameQuestion:
    """Two people and a pronoun that only one of them fits, asked about by name.

    Attributes:
        people: the two names in order of appearance.
        genders: "m" or "f" of each.
        verb: what the first does to the second.
        rest: the sentence after the second name, up to the pronoun's predicate.
        clause: the predicate of the pronoun.
        answer: 0 or 1, the person meant.
    """

    people: tuple[str, str]
    genders: tuple[str, str]
    verb: str
    rest: str
    clause: str
    answer: int

    def text(self, mask: str) -> str:
        """The sentence and the question with ``mask`` for the answer."""
        first, second = self.people
        pronoun = "he" if self.genders[self.answer] == "m" else "she"
        said = f"{first} {self.verb} {second} {self.rest} {pronoun} {self.clause}."
        return f"{said} It was {mask} who {self.clause}."

    def with_name(self, place: int, name: str) -> NameQuestion:
        """Another name for one of the two people."""
        people = (name, self.people[1]) if place == 0 else (self.people[0], name)
        return replace(self, people=people)


def name_questions(
    items: Sequence[CoreferenceItem], men: Sequence[str], women: Sequence[str]
) -> list[NameQuestion]:
    """The items in which two people of known names do something that :data:`VERBS` names."""
    out = []
    genders = {name: "m" for name in men} | {name: "f" for name in women}
    for item in items:
        first, verb, second = item.words[:3]
        if first in genders and second in genders and verb in VERBS:
            between = item.words[3 : item.pronoun]
            clause = item.words[item.pronoun + 1 : -1]
            out.append(
                NameQuestion(
                    (first, second), (genders[first], genders[second]), verb, " ".join(between),
                    " ".join(clause), 0 if item.antecedent == 0 else 1,
                )
            )  # fmt: skip
    return out


@dataclass(frozen=True, eq=False)
class NameSwaps:
    """How often the person chosen changes with a name that should not matter.

    Attributes:
        result: mean over the questions of the share of exchanged names that overturn the answer;
            baseline ``other_word_swap``, the same for exchanged verbs.
        verbs: that baseline with its interval.
        any_change: share of questions that at least one of the names overturns.
        accuracy: share of questions answered rightly with the names they came with.
        chosen: [Q] 0 or 1, the person chosen at first.
        after_names, after_verbs: [Q, R] the person chosen after each exchange.
    """

    result: Estimate
    verbs: Estimate
    any_change: Estimate
    accuracy: Estimate
    chosen: np.ndarray
    after_names: np.ndarray
    after_verbs: np.ndarray


def exchange_names(
    encoder: Encoder,
    questions: Sequence[NameQuestion],
    men: Sequence[str],
    women: Sequence[str],
    *,
    swaps: int = 10,
    seed: int = 0,
) -> NameSwaps:
    """Exchange one name for another of the same gender (after Balasubramanian et al. 2020).

    The control exchanges the verb, which should not matter either.

    Raises:
        SemanticsError: no questions, or too few names to exchange.
        TargetError: a name that is not one piece.
        MissingHeadError: no trained MLM head.
    """
    if not questions:
        raise SemanticsError("no questions")
    pools = {"m": list(men), "f": list(women)}
    if min(map(len, pools.values())) < swaps + 1:
        raise SemanticsError(f"{swaps} exchanges need at least {swaps + 1} names of each gender")
    draw = np.random.default_rng(seed)
    asked: list[NameQuestion] = []
    for number, question in enumerate(questions):
        asked.append(question)
        place = number % 2
        others = [n for n in pools[question.genders[place]] if n not in question.people]
        asked += [question.with_name(place, n) for n in draw.permutation(others)[:swaps].tolist()]
        asked += [replace(question, verb=verb) for verb in VERBS if verb != question.verb]
    mask = encoder.tokenizer.mask_token
    scores = np.array(
        target_log_probs(encoder, [q.text(mask) for q in asked], [q.people for q in asked])
    )
    picked = scores.argmax(1).reshape(len(questions), -1)
    chosen, names, verbs = picked[:, 0], picked[:, 1 : swaps + 1], picked[:, swaps + 1 :]
    moved = (names != chosen[:, None]).mean(1)
    control = _mean((verbs != chosen[:, None]).mean(1), encoder.name, seed)
    gold = np.array([question.answer for question in questions])
    return NameSwaps(
        _mean(moved, encoder.name, seed).with_baselines(other_word_swap=control),
        control,
        _mean(moved > 0, encoder.name, seed),
        replace(_mean(chosen == gold, encoder.name, seed), baselines={"chance": 0.5}),
        chosen,
        names,
        verbs,
    )


def _mean(values: np.ndarray, model: str, seed: int) -> Estimate:
    numbers = np.asarray(values, dtype=float)
    value = float(numbers.mean())
    draws = resampled_means(numbers, np.ones(len(numbers)), seed=seed)
    return Estimate(
        value=value, unit="share", n=len(numbers), model=model, seed=seed,
        interval=percentile_interval(draws, value),
    )  # fmt: skip
