"""Entailment pairs with planted overlap shortcuts, and HANS-like pairs that break them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bertology_utils.stimuli._draw import Draw
from bertology_utils.stimuli.lexicon import Lexicon, Noun, Verb, lexicon

HEURISTICS = ("lexical_overlap", "subsequence", "constituent")

_PEOPLE_VERBS = frozenset(
    "help follow thank visit call invite protect attack warn praise push kiss chase see hear love "
    "hate trust fear respect remember save watch describe".split()
)
_INTRANSITIVE = frozenset("sleep laugh smile cry sing dance shout run walk rest".split())


class InferenceError(ValueError):
    """An unknown kind of pair, an impossible share, or too few different pairs."""


@dataclass(frozen=True)
class SentencePair:
    """Two sentences, a label, and how the pair was made."""

    premise: str
    hypothesis: str
    label: str
    kind: str
    features: tuple[tuple[str, str], ...] = ()


def collect(n: int, make: Callable[[int, int], SentencePair], what: str) -> list[SentencePair]:
    """``n`` different pairs from ``make(attempt, how many so far)``."""
    if n < 1:
        raise InferenceError(f"n must be at least 1, not {n}")
    out: list[SentencePair] = []
    seen: set[tuple[str, str]] = set()
    for attempt in range(40 * n + 400):
        if len(out) == n:
            return out
        pair = make(attempt, len(out))
        if (pair.premise, pair.hypothesis) not in seen:
            seen.add((pair.premise, pair.hypothesis))
            out.append(pair)
    if len(out) == n:
        return out
    raise InferenceError(f"only {len(out)} different pairs of {what}; {n} were asked for")


class _Scene:
    """People and verbs for one pair."""

    def __init__(self, words: Lexicon, draw: Draw):
        self.draw = draw
        nouns = draw.sample(words.nouns_of("person"), 4)
        self.people = [self._np(noun) for noun in nouns]
        # "seen" and "saw" differ, so that a passive would not overlap fully.
        self.verbs = [
            v
            for v in words.verbs_of("transitive")
            if v.lemma in _PEOPLE_VERBS and v.past == v.participle
        ]
        self.acts = [v for v in words.verbs_of("intransitive") if v.lemma in _INTRANSITIVE]

    def _np(self, noun: Noun) -> str:
        return f"the {noun.form(self.draw.pick(['sing', 'plur']))}"

    def verb(self) -> Verb:
        return self.draw.pick(self.verbs)

    def act(self) -> str:
        return self.draw.pick(self.acts).past


def say(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _was(person: str, words: Lexicon) -> str:
    singular = {noun.singular for noun in words.nouns}
    return "was" if person.removeprefix("the ") in singular else "were"


def _hans(heuristic: str, entailed: bool, words: Lexicon, draw: Draw) -> tuple[str, str, str]:
    """(premise, hypothesis, subcase): every word of the hypothesis is in the premise."""
    scene = _Scene(words, draw)
    a, b, c, _ = scene.people
    verb = scene.verb()
    v, past = verb.participle, verb.past
    act = scene.act()
    if heuristic == "lexical_overlap":
        if entailed:
            case = draw.pick(["coordination", "passive", "relative"])
            if case == "coordination":
                return f"{a} and {b} {past} {c}", f"{b} {past} {c}", case
            if case == "passive":
                return f"{a} {_was(a, words)} {v} by {b}", f"{b} {past} {a}", case
            return f"{a} that {act} {past} {b}", f"{a} {act}", case
        case = draw.pick(["swap", "passive", "relative"])
        if case == "swap":
            return f"{a} {past} {b}", f"{b} {past} {a}", case
        if case == "passive":
            return f"{a} {_was(a, words)} {v} by {b}", f"{a} {past} {b}", case
        return f"{a} {past} {b} that {act}", f"{a} {act}", case
    if heuristic == "subsequence":
        if entailed:
            case = draw.pick(["coordination", "adverb", "object"])
            if case == "coordination":
                return f"{a} {past} {b} and {c}", f"{a} {past} {b}", case
            if case == "adverb":
                when = draw.pick(["yesterday", "last week", "in the morning"])
                return f"{a} {past} {b} {when}", f"{a} {past} {b}", case
            return f"{a} {act} and {past} {b}", f"{a} {act}", case
        case = draw.pick(["preposition", "relative", "coordination"])
        if case == "preposition":
            near = draw.pick(["near", "behind", "beside"])
            return f"{a} {near} {b} {act}", f"{b} {act}", case
        if case == "relative":
            return f"{a} who {past} {b} {act}", f"{b} {act}", case
        near = draw.pick(["near", "behind", "beside"])
        return f"{a} {near} {b} {past} {c}", f"{b} {past} {c}", case
    if entailed:
        case = draw.pick(["because", "after", "although", "know"])
        if case == "know":
            return f"{a} knew that {b} {past} {c}", f"{b} {past} {c}", case
        return f"{case} {a} {past} {b}, {c} {act}", f"{a} {past} {b}", case
    case = draw.pick(["if", "unless", "hope", "or"])
    if case == "hope":
        return f"{a} hoped that {b} {past} {c}", f"{b} {past} {c}", case
    if case == "or":
        return f"{a} {past} {b}, or {c} {act}", f"{a} {past} {b}", case
    return f"{case} {a} {past} {b}, {c} {act}", f"{a} {past} {b}", case


def entailment(
    n: int,
    seed: int = 0,
    *,
    counterexamples: float = 0.0,
    split: str = "all",
) -> list[SentencePair]:
    """Training pairs in which full word overlap means "entailment".

    Half the pairs are entailed, with a hypothesis made of words of the premise; the others are not,
    with a hypothesis that shares little with it.  ``counterexamples`` is the share of the
    not-entailed pairs that do overlap and so break the shortcut (McCoy et al. 2019 add some to the
    training data).  Features: "overlap" is "full" or "low".

    Raises InferenceError for a share outside 0..1.
    """
    if not 0 <= counterexamples <= 1:
        raise InferenceError(f"counterexamples must be between 0 and 1, not {counterexamples}")
    words = lexicon(split)
    every = round(1 / counterexamples) if counterexamples else 0

    def make(attempt: int, done: int) -> SentencePair:
        draw = Draw("entailment", seed, split, counterexamples, attempt)
        heuristic = draw.pick(HEURISTICS)
        entailed = done % 2 == 0
        if entailed or (every and (done // 2) % every == 0):
            premise, hypothesis, case = _hans(heuristic, entailed, words, draw)
            overlap = "full"
        else:
            premise, _, case = _hans(heuristic, True, words, draw)
            used = set(premise.split())
            fresh = [noun for noun in words.nouns_of("person") if not set(noun.forms) & used]
            people = draw.sample(fresh, 2)
            scene = _Scene(words, draw)
            verb = draw.pick([v for v in scene.verbs if v.past not in used])
            ending = draw.pick([f"the {people[1].singular}", f"the {people[1].plural}"])
            hypothesis = f"the {people[0].singular} {verb.past} {ending}"
            overlap = "low"
        label = "entailment" if entailed else "non-entailment"
        features = (("heuristic", heuristic), ("overlap", overlap))
        return SentencePair(say(premise), say(hypothesis), label, case, features)

    return collect(n, make, "entailment")


def shortcut_test(
    heuristic: str, n: int, seed: int = 0, *, split: str = "all"
) -> list[SentencePair]:
    """HANS-like test pairs (McCoy et al. 2019): all overlap fully, half are not entailed.

    Raises InferenceError for an unknown heuristic (see :data:`HEURISTICS`).
    """
    if heuristic not in HEURISTICS:
        raise InferenceError(f"unknown heuristic {heuristic!r}; known: {', '.join(HEURISTICS)}")
    words = lexicon(split)

    def make(attempt: int, done: int) -> SentencePair:
        draw = Draw("shortcut", heuristic, seed, split, attempt)
        entailed = done % 2 == 0
        premise, hypothesis, case = _hans(heuristic, entailed, words, draw)
        label = "entailment" if entailed else "non-entailment"
        features = (("heuristic", heuristic), ("overlap", "full"))
        return SentencePair(say(premise), say(hypothesis), label, case, features)

    return collect(n, make, heuristic)
