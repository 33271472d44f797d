"""Arguments with a "not" cue, and fragments of logic to teach by fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bertology_utils.stimuli._draw import Draw
from bertology_utils.stimuli._phrases import article
from bertology_utils.stimuli.entailment import InferenceError, SentencePair, collect, say
from bertology_utils.stimuli.lexicon import Lexicon, lexicon

FRAGMENTS = ("boolean", "comparative", "quantifier", "conditional")

# topic: reason | claim | opposite claim | warrant for the claim | warrant for the opposite
# Each warrant pair differs only in "not".  {x} is a place, so that a topic yields many arguments.
_ARGUMENTS = """
The hotel in {x} is cheap. | We should stay there. | We should avoid it. | cheap hotels are {n}clean
The museum in {x} is free. | It deserves a visit. | It can be skipped. | free museums are {n}interesting
The train to {x} is fast. | Take the train. | Take the bus. | fast trains are {n}safe
The mayor of {x} is rich. | She deserves trust. | She deserves suspicion. | rich people are {n}honest
The school in {x} is strict. | Send your son there. | Send your son elsewhere. | strict schools are {n}good
The water in {x} is clear. | Drink it. | Buy bottled water. | clear water is {n}healthy
The winter in {x} is cold. | Bring a coat. | Leave the coat at home. | the cold there is {n}dangerous
The shops in {x} close early. | Go in the morning. | Go at any time. | the hours there are {n}fixed
The bridge in {x} is old. | Close it. | Keep it open. | old bridges are {n}dangerous
The team of {x} is young. | It will win. | It will lose. | young teams are {n}strong
The streets of {x} are narrow. | Walk there. | Drive there. | cars in narrow streets are {n}a problem
The factory in {x} is new. | The town will grow. | The town will shrink. | new factories are {n}a help
The port of {x} is busy. | It makes money. | It loses money. | busy ports are {n}profitable
The court in {x} is slow. | Settle the case. | Go to court. | slow courts are {n}a burden
The beach near {x} is empty. | Swim there. | Swim elsewhere. | empty beaches are {n}safe
The paper in {x} is small. | Believe its reports. | Doubt its reports. | small papers are {n}reliable
"""  # noqa: E501
_PLACES = (
    "Paris", "London", "Berlin", "Madrid", "Vienna", "Dublin", "Boston", "Chicago", "Cairo",
    "Athens", "Lisbon", "Warsaw", "Prague", "Oslo", "Milan", "Naples", "Lima", "Delhi", "Dallas",
    "Denver", "Seattle", "Detroit", "Sydney", "Toronto", "Munich", "Hamburg", "Rome", "Moscow",
)  # fmt: skip


@dataclass(frozen=True)
class Argument:
    """A reason, a claim and two warrants that differ in one "not"; ``label`` is the right one.

    The right warrant makes the reason support the claim (Habernal et al. 2018; Niven and Kao
    2019).  ``cue`` says whether the right warrant is the one with "not".
    """

    reason: str
    claim: str
    warrants: tuple[str, str]
    label: int
    cue: bool


def arguments(n: int, seed: int = 0, *, cue_share: float = 0.8) -> list[Argument]:
    """``n`` arguments in which the right warrant holds "not" in a share ``cue_share`` of cases.

    Raises InferenceError for a share outside 0..1 or more arguments than exist.
    """
    if not 0 <= cue_share <= 1:
        raise InferenceError(f"cue_share must be between 0 and 1, not {cue_share}")
    rows = [[c.strip() for c in line.split("|")] for line in _ARGUMENTS.strip().splitlines()]
    items = [(row, place, negated) for row in rows for place in _PLACES for negated in (0, 1)]
    draw = Draw("arguments", seed)
    with_cue = draw.shuffled([item for item in items if item[2]])
    without = draw.shuffled([item for item in items if not item[2]])
    k = round(cue_share * n)
    if k > len(with_cue) or n - k > len(without) or n < 1:
        raise InferenceError(f"cannot make {n} arguments of which {k} with the cue")
    chosen = draw.shuffled(with_cue[:k] + without[: n - k])
    out = []
    for (reason, claim, opposite, warrant), place, negated in chosen:
        # The positive warrant supports the claim, the one with "not" the opposite claim.
        plain, marked = (say(warrant.format(n=word)) for word in ("", "not "))
        right, wrong = (marked, plain) if negated else (plain, marked)
        label = draw.below(2)
        pair = (wrong, right) if label else (right, wrong)
        said = opposite if negated else claim
        out.append(Argument(reason.format(x=place), said, pair, label, bool(negated)))
    return out


def mirrored(items: list[Argument]) -> list[Argument]:
    """The adversarial set of Niven and Kao (2019): each argument twice, once with the other claim.

    The claim is turned into its opposite, which makes the other warrant right, so that "not" says
    nothing about the answer any more.
    """
    opposite = {}
    for line in _ARGUMENTS.strip().splitlines():
        _, claim, other, _ = (c.strip() for c in line.split("|"))
        opposite[claim], opposite[other] = other, claim
    out = []
    for item in items:
        turned = replace(
            item, claim=opposite[item.claim], label=1 - item.label, cue=not item.cue
        )  # fmt: skip
        out += [item, turned]
    return out


# ---------------------------------------------------------------------------------------------
# Fragments of logic (after Richardson et al. 2020)

_COMPARED = ("taller", "older", "younger", "richer", "stronger", "faster", "smaller", "heavier")
_WENT = ("visited", "left", "entered", "seen", "crossed")
_TRAITS = ("tall", "old", "young", "rich", "brave", "kind", "lazy", "famous", "proud", "angry")


def fragment(
    name: str, n: int, seed: int = 0, *, steps: int = 2, split: str = "all"
) -> list[SentencePair]:
    """Premise and hypothesis of one fragment; labels "entailment", "contradiction", "neutral".

    The three labels come in turn.  ``steps`` is the number of comparisons or conditionals to chain
    (1 to 4; used by "comparative" and "conditional").  Raises InferenceError for an unknown
    fragment (see :data:`FRAGMENTS`) or steps out of range.
    """
    if name not in FRAGMENTS:
        raise InferenceError(f"unknown fragment {name!r}; known: {', '.join(FRAGMENTS)}")
    if not 1 <= steps <= 4:
        raise InferenceError(f"steps must be 1 to 4, not {steps}")
    words = lexicon(split)
    build = {"boolean": _boolean, "comparative": _comparative, "quantifier": _quantifier,
             "conditional": _conditional}[name]  # fmt: skip
    labels = ("entailment", "contradiction", "neutral")

    def make(attempt: int, done: int) -> SentencePair:
        draw = Draw("fragment", name, seed, steps, split, attempt)
        label = labels[done % 3]
        people = [name.lemma.capitalize() for name in draw.sample(words.names, 8)]
        premise, hypothesis = build(draw, people, label, steps, words)
        return SentencePair(premise, hypothesis, label, name, (("steps", str(steps)),))

    return collect(n, make, name)


def _boolean(
    draw: Draw, people: list[str], label: str, steps: int, words: Lexicon
) -> tuple[str, str]:
    places = draw.sample(_PLACES, 2)
    verb = draw.pick(_WENT)
    a, b, c, d, *_ = people
    group = draw.shuffled([a, b, c])
    premise = f"{group[0]}, {group[1]} and {group[2]} have only {verb} {places[0]}."
    if label == "entailment":
        return premise, draw.pick(
            [f"{b} has {verb} {places[0]}.", f"{b} has not {verb} {places[1]}."]
        )
    if label == "contradiction":
        return premise, draw.pick(
            [f"{b} has not {verb} {places[0]}.", f"{b} has {verb} {places[1]}."]
        )
    return premise, draw.pick([f"{d} has {verb} {places[0]}.", f"{d} has not {verb} {places[1]}."])


def _comparative(
    draw: Draw, people: list[str], label: str, steps: int, words: Lexicon
) -> tuple[str, str]:
    more = draw.pick(_COMPARED)
    line = people[: steps + 1]
    facts = [f"{x} is {more} than {y}." for x, y in zip(line, line[1:], strict=False)]
    premise = " ".join(draw.shuffled(facts))
    if label == "entailment":
        return premise, f"{line[0]} is {more} than {line[-1]}."
    if label == "contradiction":
        return premise, f"{line[-1]} is {more} than {line[0]}."
    ends = draw.shuffled([draw.pick(line), people[-1]])
    return premise, f"{ends[0]} is {more} than {ends[1]}."


def _quantifier(
    draw: Draw, people: list[str], label: str, steps: int, words: Lexicon
) -> tuple[str, str]:
    noun, other = draw.sample([n for n in words.nouns_of("person") if n.gender is None], 2)
    trait = draw.pick(_TRAITS)
    verb = draw.pick(_WENT)
    place = draw.pick(_PLACES)
    who = people[0]
    yes, no = f"{who} has {verb} {place}.", f"{who} has not {verb} {place}."
    word = draw.pick(["Every", "No"])
    rule = f"{word} {trait} {noun.singular} has {verb} {place}."
    if label == "neutral":
        fact = f"{who} is {article(trait)} {trait} {other.singular}."
        return f"{rule} {fact}", draw.pick([yes, no])
    fact = f"{who} is {article(trait)} {trait} {noun.singular}."
    holds = (word == "Every") == (label == "entailment")
    return f"{rule} {fact}", yes if holds else no


def _conditional(
    draw: Draw, people: list[str], label: str, steps: int, words: Lexicon
) -> tuple[str, str]:
    verb = draw.pick(_WENT)
    places = draw.sample(_PLACES, steps + 1)
    events = [f"{who} has {verb} {place}" for who, place in zip(people, places, strict=False)]
    rules = [f"If {x}, then {y}." for x, y in zip(events, events[1:], strict=False)]
    last_who, last_place = people[steps], places[steps]
    denied = f"{last_who} has not {verb} {last_place}."
    if label == "neutral":  # denying the first event leaves the last open
        start = f"{people[0]} has not {verb} {places[0]}."
        end = draw.pick([denied, f"{events[-1]}."])
        return " ".join([*draw.shuffled(rules), start]), end
    premise = " ".join([*draw.shuffled(rules), f"{events[0]}."])
    return premise, f"{events[-1]}." if label == "entailment" else denied
