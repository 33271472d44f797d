"""People and other entities: typed spans, name origins, occupations, coreference."""

from __future__ import annotations

from dataclasses import dataclass

from bertology_utils.stimuli import _meaning_tables as tables
from bertology_utils.stimuli._draw import Draw
from bertology_utils.stimuli.meaning import MeaningError
from bertology_utils.stimuli.pairs import MASK

# -- entities ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EntitySentence:
    """Words and typed spans: (start, end, type), 0-based, end exclusive."""

    words: tuple[str, ...]
    spans: tuple[tuple[int, int, str], ...]

    @property
    def text(self) -> str:
        return " ".join(self.words[:-1]) + self.words[-1]


def entities(n: int, seed: int = 0, split: str = "all") -> list[EntitySentence]:
    """Sentences with people, places, organisations and dates.

    "train" and "test" use disjoint names (every third name of each list is held out).  Raises
    MeaningError for an unknown split or too few different sentences.
    """
    if split not in ("all", "train", "test"):
        raise MeaningError(f"unknown split {split!r}")

    def pool(name: str) -> list[str]:
        items = tables.ENTITY_NAMES[name]
        return [
            x for i, x in enumerate(items) if split == "all" or (i % 3 == 2) == (split == "test")
        ]

    pools = {name: pool(name) for name in tables.ENTITY_NAMES}
    out: list[EntitySentence] = []
    seen: set[str] = set()
    for attempt in range(30 * n + 300):
        if len(out) == n:
            return out
        draw = Draw("entities", seed, split, attempt)
        made = _entity_sentence(draw, pools)
        if made.text not in seen:
            seen.add(made.text)
            out.append(made)
    if len(out) == n:
        return out
    raise MeaningError(f"only {len(out)} different entity sentences; {n} were asked for")


def _entity_sentence(draw: Draw, pools: dict[str, list[str]]) -> EntitySentence:
    words: list[str] = []
    spans: list[tuple[int, int, str]] = []
    used: set[str] = set()
    for piece in draw.pick(tables.ENTITY_FRAMES).split():
        kind = piece.rstrip(".,")
        if kind not in tables.ENTITY_TYPES:
            core = piece.rstrip(".,")
            words.append(core)
        else:
            if kind == "PERSON":
                name = f"{draw.pick(pools['given'])} {draw.pick(pools['surname'])}"
                if draw.chance(0.3):
                    name = name.split()[draw.below(2)]
            else:
                options = [x for x in pools[tables.ENTITY_TYPES[kind]] if x not in used]
                name = draw.pick(options)
            used.add(name)
            parts = name.split()
            spans.append((len(words), len(words) + len(parts), kind))
            words += parts
        if piece[-1] in ".,":
            words.append(piece[-1])
    words[0] = words[0][0].upper() + words[0][1:]
    return EntitySentence(tuple(words), tuple(spans))


# -- names and stereotypes -----------------------------------------------------------------------


@dataclass(frozen=True)
class NameItem:
    """An invented person whose name suggests an origin, with cloze questions.

    ``origin`` is the adjective ("Italian"), ``country`` the country ("Italy"); a model that knows
    nothing about this invented person can only go by the look of the name.  ``nationality`` asks
    for the adjective, ``citizen`` and ``born`` for the country.
    """

    name: str
    origin: str
    country: str
    nationality: str
    citizen: str
    born: str


def stereotyped_names(n: int, seed: int = 0) -> list[NameItem]:
    """``n`` invented full names, the origins in turn (after Poerner et al. 2019).

    Raises MeaningError when there are fewer than ``n``.
    """
    pools = []
    for origin, (country, given, surnames) in tables.ORIGINS.items():
        names = [f"{g} {s}" for g in given.split() for s in surnames.split()]
        pools.append([(name, origin, country) for name in Draw("names", seed, origin)
                      .shuffled(names)])  # fmt: skip
    most = min(len(pool) for pool in pools) * len(pools)
    if not 1 <= n <= most:
        raise MeaningError(f"there are {most} balanced names, not {n}")
    out = []
    for i in range(n):
        name, origin, country = pools[i % len(pools)][i // len(pools)]
        out.append(
            NameItem(
                name,
                origin,
                country,
                f"By nationality, {name} is {MASK}.",
                f"{name} is a citizen of {MASK}.",
                f"{name} was born in {MASK}.",
            )
        )
    return out


@dataclass(frozen=True)
class PronounItem:
    """An occupation and a frame whose mask may be "he" or "she"."""

    occupation: str
    stereotype: str
    frame: str


def occupation_pronouns() -> list[PronounItem]:
    """Frames in which only the occupation hints at "he" or "she".

    ``stereotype`` is the gender commonly associated with the job ("m", "f" or "neutral"), listed
    by hand; it is a label for measuring bias, not a fact.
    """
    out = []
    for stereotype, jobs in tables.OCCUPATIONS.items():
        for job in jobs.split():
            for frame in tables.PRONOUN_FRAMES:
                out.append(PronounItem(job, stereotype, frame.format(x=job, mask=MASK)))
    return out


@dataclass(frozen=True)
class CoreferenceItem:
    """A sentence with two people, a pronoun, and the person it refers to (0-based word indices).

    The genders differ, so the answer is certain.  ``distance`` is "near" when the antecedent is
    the last person mentioned before the pronoun, otherwise "far".
    """

    words: tuple[str, ...]
    pronoun: int
    antecedent: int
    other: int
    distance: str

    @property
    def text(self) -> str:
        return " ".join(self.words[:-1]) + self.words[-1]


def coreference(n: int, seed: int = 0) -> list[CoreferenceItem]:
    """``n`` gender-disambiguated coreference sentences, near and far antecedents in turn.

    Raises MeaningError when there are fewer than ``n``.
    """
    out: list[CoreferenceItem] = []
    seen: set[tuple[str, ...]] = set()
    for attempt in range(40 * n + 400):
        if len(out) == n:
            return out
        draw = Draw("coreference", seed, attempt)
        near = len(out) % 2 == 0
        first_male = draw.chance(0.5)
        people = []
        for male in (first_male, not first_male):
            table = tables.MEN if male else tables.WOMEN
            people.append(draw.pick(table).split())
        target = 1 if near else 0
        pronoun = "he" if (first_male == (target == 0)) else "she"
        frame = draw.pick(tables.COREFERENCE_FRAMES)
        words: list[str] = []
        places = [0, 0, 0]
        for piece in frame.split():
            if piece in ("A", "B"):
                person = people["AB".index(piece)]
                places["AB".index(piece)] = len(words) + len(person) - 1
                words += person
            elif piece == "P":
                places[2] = len(words)
                words.append(pronoun)
            else:
                words.append(piece)
        words[0] = words[0][0].upper() + words[0][1:]
        key = tuple(words)
        if key not in seen:
            seen.add(key)
            out.append(
                CoreferenceItem(
                    key, places[2], places[target], places[1 - target], "near" if near else "far"
                )
            )
    if len(out) == n:
        return out
    raise MeaningError(f"only {len(out)} different sentences; {n} were asked for")
