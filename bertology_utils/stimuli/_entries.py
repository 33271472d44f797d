"""Entries of the lexicon: what is known of a noun, verb, adjective, adverb or name."""

from __future__ import annotations

from dataclasses import dataclass

# Names for sets of noun kinds, used in the tables and by the grammar.
GROUPS: dict[str, tuple[str, ...]] = {
    "human": ("person",),
    "animate": ("person", "animal"),
    "site": ("building", "place"),
    "thing": ("object", "clothing", "document", "furniture", "vehicle", "instrument"),
    "concrete": (
        "person", "animal", "object", "clothing", "document", "furniture", "vehicle",
        "instrument", "building", "place", "plant", "food", "drink",
    ),
}  # fmt: skip


class LexiconError(ValueError):
    """A word, kind or split that the lexicon does not have."""


@dataclass(frozen=True)
class Noun:
    """A common noun. ``plural`` is None for a mass noun, ``gender`` is "m", "f" or None."""

    singular: str
    plural: str | None
    kind: str
    gender: str | None
    locative: str

    @property
    def lemma(self) -> str:
        return self.singular

    @property
    def animate(self) -> bool:
        return self.kind in GROUPS["animate"]

    @property
    def irregular(self) -> bool:
        """True when the plural is not made by adding s or es."""
        return self.plural is not None and self.plural not in (
            self.singular + "s",
            self.singular + "es",
            self.singular[:-1] + "ies",
        )

    @property
    def forms(self) -> tuple[str, ...]:
        return (self.singular,) if self.plural is None else (self.singular, self.plural)

    def form(self, number: str) -> str:
        """The form for "sing" or "plur"."""
        if number == "sing":
            return self.singular
        if number == "plur" and self.plural is not None:
            return self.plural
        raise LexiconError(f"{self.singular!r} has no form for number {number!r}")


@dataclass(frozen=True)
class Verb:
    """One use of a verb; a lemma with several frames has several entries.

    ``frame`` is intransitive, transitive, ditransitive, clausal, infinitival or oblique (the last
    with ``preposition``).  ``subjects`` and ``objects`` are noun lemmas it goes well with.
    """

    base: str
    third: str
    past: str
    participle: str
    gerund: str | None
    frame: str
    preposition: str | None
    stative: bool
    subjects: frozenset[str]
    objects: frozenset[str]

    @property
    def lemma(self) -> str:
        return self.base

    @property
    def irregular(self) -> bool:
        return not self.past.endswith("ed")

    @property
    def forms(self) -> tuple[str, ...]:
        parts = (self.base, self.third, self.past, self.participle, self.gerund)
        return tuple(dict.fromkeys(part for part in parts if part))


@dataclass(frozen=True)
class Adjective:
    """An adjective, the nouns it describes, and whether it can follow "is"."""

    lemma: str
    nouns: frozenset[str]
    attributive_only: frozenset[str]

    @property
    def forms(self) -> tuple[str, ...]:
        return (self.lemma,)


@dataclass(frozen=True)
class Adverb:
    """``role`` is manner, sound, frequency, time, place or degree; no ``tenses`` means any."""

    lemma: str
    role: str
    tenses: tuple[str, ...]

    @property
    def forms(self) -> tuple[str, ...]:
        return (self.lemma,)


@dataclass(frozen=True)
class Name:
    """A first name and its usual gender ("m" or "f")."""

    lemma: str
    gender: str

    @property
    def forms(self) -> tuple[str, ...]:
        return (self.lemma,)


@dataclass(frozen=True)
class Relational:
    """A noun that takes a complement: "key to a house", "author of a book"."""

    noun: str
    preposition: str
    complements: frozenset[str]


# Closed-class words; they belong to every split.
FUNCTION_WORDS: dict[str, tuple[str, ...]] = {
    "DET": (
        "the", "a", "an", "this", "these", "that", "those", "some", "every", "each", "no", "any",
        "many", "several", "few", "all", "most",
    ),
    "NUM": ("two", "three", "four", "five", "six"),
    "PRON": (
        "i", "you", "he", "she", "it", "we", "they", "me", "him", "her", "us", "them",
        "myself", "himself", "herself", "itself", "themselves", "who", "that", "what", "which",
        "my", "your", "his", "its", "our", "their", "anyone", "anything", "there",
    ),
    "AUX": (
        "is", "are", "was", "were", "be", "been", "being", "am", "has", "have", "had", "do",
        "does", "did", "will", "can", "could", "may", "might", "must", "should", "would",
    ),
    "ADP": (
        "in", "on", "at", "near", "behind", "beside", "under", "with", "about", "from", "to", "of",
        "by", "for", "over", "inside", "outside", "above",
    ),
    "SCONJ": ("that", "because", "when", "if", "while", "before", "after", "although", "whether"),
    "CCONJ": ("and", "or", "but"),
    "PART": ("not", "to", "'s"),
    "PUNCT": (".", "?", ","),
}  # fmt: skip

NPI_WORDS = ("ever", "any", "yet", "anyone", "anything")

Entry = Noun | Verb | Adjective | Adverb | Name
