"""Meaning tasks: categories under negation, role fillers, sizes, properties, affordances."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

from bertology_utils.stimuli import _meaning_tables as tables
from bertology_utils.stimuli._draw import Draw
from bertology_utils.stimuli._phrases import article
from bertology_utils.stimuli.pairs import MASK
from bertology_utils.stimuli.trees import Treebank


class MeaningError(ValueError):
    """An unknown task option, or more items than there are."""


def _take(items: list, n: int | None, draw: Draw, what: str) -> list:
    """``n`` items in random order; all of them, in order, when ``n`` is None."""
    if n is None:
        return items
    if not 1 <= n <= len(items):
        raise MeaningError(f"there are {len(items)} {what}, not {n}")
    return draw.sample(items, n)


# -- categories and negation ---------------------------------------------------------------------


@dataclass(frozen=True)
class CategoryItem:
    """ "A robin is (not) a [MASK]." with a category that is right and one that is wrong."""

    instance: str
    category: str
    other: str
    affirmative: str
    negative: str


def category_completions(n: int | None = None, seed: int = 0) -> list[CategoryItem]:
    """Category statements with and without "not" (after Ettinger 2020; our own words).

    The article before the mask is part of the frame, so both categories of an item take the same
    one.  Raises MeaningError for more items than there are.
    """
    draw = Draw("categories", seed)
    out = []
    for category, instances in tables.CATEGORIES.items():
        others = [c for c in tables.CATEGORIES if c != category and article(c) == article(category)
                  and frozenset((c, category)) not in tables.OVERLAPPING]  # fmt: skip
        for instance in instances.split():
            first = article(instance).capitalize()
            before = article(category)
            other = draw.pick(others)
            out.append(
                CategoryItem(
                    instance,
                    category,
                    other,
                    f"{first} {instance} is {before} {MASK}.",
                    f"{first} {instance} is not {before} {MASK}.",
                )
            )
    return _take(out, n, draw, "category items")


# -- role fillers --------------------------------------------------------------------------------


@dataclass(frozen=True)
class RoleFiller:
    """A frame with a fitting filler, a wrong one from the same scene, and an unrelated one."""

    frame: str
    right: str
    related: str
    unrelated: str


def role_fillers(n: int | None = None, seed: int = 0) -> list[RoleFiller]:
    """Frames in which right > related > unrelated is expected (tip a waiter > chef > robin)."""
    rows = [[c.strip() for c in line.split("|")]
            for line in tables.ROLE_FILLERS.strip().splitlines()]  # fmt: skip
    items = [RoleFiller(row[0].replace("_", MASK), *row[1:]) for row in rows]
    return _take(items, n, Draw("fillers", seed), "role fillers")


@dataclass(frozen=True)
class RoleExample:
    """A predicate and an argument in a sentence, with the argument's semantic role."""

    words: tuple[str, ...]
    predicate: int
    argument: int
    role: str


def role_examples(treebank: Treebank) -> list[RoleExample]:
    """Every predicate-argument pair of grammar sentences, for edge probing of semantic roles.

    Raises MeaningError when the sentences carry no gold structure.
    """
    out = []
    for sentence in treebank:
        if sentence.gold is None:
            raise MeaningError(f"no roles in {sentence.text!r}: not made by the grammar")
        out += [
            RoleExample(sentence.words, r.predicate, r.argument, r.name)
            for r in sentence.gold.roles
        ]
    return out


# -- sizes, properties, affordances --------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """ "A mouse is [MASK] than a horse." with its right and wrong word."""

    frame: str
    right: str
    wrong: str
    small: str
    large: str
    gap: int


def size_comparisons(n: int, seed: int = 0, *, min_gap: int = 2) -> list[Comparison]:
    """Size comparisons of things at least ``min_gap`` size classes apart, "smaller" in half.

    Raises MeaningError when there are fewer than ``n``.
    """
    pairs = [
        (a, b, y - x)
        for (x, group_a), (y, group_b) in permutations(enumerate(tables.SIZES), 2)
        if y - x >= min_gap
        for a in group_a.split()
        for b in group_b.split()
    ]
    chosen = _take(pairs, n, Draw("sizes", seed, min_gap), "size comparisons")
    out = []
    for i, (small, large, gap) in enumerate(chosen):
        first, second = (small, large) if i % 2 == 0 else (large, small)
        right, wrong = ("smaller", "bigger") if i % 2 == 0 else ("bigger", "smaller")
        frame = f"{article(first).capitalize()} {first} is {MASK} than {article(second)} {second}."
        out.append(Comparison(frame, right, wrong, small, large, gap))
    return out


@dataclass(frozen=True)
class PropertyItem:
    """A noun and whether it has a property or affordance.

    ``kind`` is "perceptual", "abstract", "taxonomic" or "affordance".
    """

    noun: str
    property: str
    kind: str
    holds: bool
    statement: str


def properties() -> list[PropertyItem]:
    """Every noun with every property and affordance, true or false.

    The statement asserts it: "A knife is sharp.", "You can cut with a knife."
    """
    nouns = sorted({noun for row in tables.PROPERTIES for noun in row[3].split()})
    out = []
    for name, kind, frame, having in tables.PROPERTIES:
        members = set(having.split())
        for noun in nouns:
            statement = frame.format(a=article(noun), x=noun)
            statement = statement[0].upper() + statement[1:]
            out.append(PropertyItem(noun, name, kind, noun in members, statement))
    return out


@dataclass(frozen=True)
class Inference:
    """A statement that follows from a property of a thing, and the reversed one.

    People can enter houses, so a house is bigger than a person.
    """

    premise: str
    right: str
    wrong: str


def affordance_inferences() -> list[Inference]:
    """Property-to-affordance steps that texts leave unsaid (after Forbes et al. 2019)."""
    rows = [[c.strip() for c in line.split("|")]
            for line in tables.INFERENCES.strip().splitlines()]  # fmt: skip
    return [Inference(*row) for row in rows]
