"""A hand-made English lexicon with features, and its split into training and held-out words.

The lexicon is small enough to read and large enough that a grammar over it does not repeat itself.
Each content word carries what a grammar needs to make it agree and to make it plausible: number
forms, gender, a semantic kind, the kinds of subject and object a verb takes.  Every form is one
WordPiece of ``bert-base-uncased``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from bertology_utils.stimuli import _lexicon_tables as tables

SPLITS = ("all", "train", "test")
TEST_SHARE = 0.3

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


class Lexicon:
    """Content words of one split, with look-ups by kind, frame and role.

    Use :func:`lexicon` to obtain one.  ``nouns``, ``verbs``, ``adjectives``, ``adverbs`` and
    ``names`` are tuples in a fixed order.
    """

    def __init__(self, entries: Iterable[Entry], relational: Iterable[Relational], split: str):
        items = tuple(entries)
        self.split = split
        self.nouns = tuple(e for e in items if isinstance(e, Noun))
        self.verbs = tuple(e for e in items if isinstance(e, Verb))
        self.adjectives = tuple(e for e in items if isinstance(e, Adjective))
        self.adverbs = tuple(e for e in items if isinstance(e, Adverb))
        self.names = tuple(e for e in items if isinstance(e, Name))
        self._noun = {noun.lemma: noun for noun in self.nouns}
        self._among: dict[frozenset[str], tuple[Noun, ...]] = {}
        self._of: dict[tuple[str, ...], tuple[Noun, ...]] = {}
        self._describing: dict[str, tuple[tuple[Adjective, ...], tuple[Adjective, ...]]] = {}
        self.relational = tuple(
            r
            for r in relational
            if r.noun in self._noun and any(c in self._noun for c in r.complements)
        )

    def __repr__(self) -> str:
        return (
            f"Lexicon(split={self.split!r}, nouns={len(self.nouns)}, verbs={len(self.verbs)}, "
            f"adjectives={len(self.adjectives)}, adverbs={len(self.adverbs)}, "
            f"names={len(self.names)})"
        )

    def noun(self, lemma: str) -> Noun:
        """The noun with this singular form; LexiconError when it is not in this split."""
        try:
            return self._noun[lemma]
        except KeyError:
            raise LexiconError(f"no noun {lemma!r} in the {self.split!r} lexicon") from None

    def nouns_of(self, *kinds: str) -> tuple[Noun, ...]:
        """Nouns of the given kinds (or groups such as "animate", "site")."""
        if kinds not in self._of:
            wanted = {kind for name in kinds for kind in GROUPS.get(name, (name,))}
            known = {noun.kind for noun in _nouns()}
            if not wanted <= known:
                raise LexiconError(f"unknown noun kind {sorted(wanted - known)[0]!r}")
            self._of[kinds] = tuple(noun for noun in self.nouns if noun.kind in wanted)
        return self._of[kinds]

    def nouns_among(self, lemmas: frozenset[str]) -> tuple[Noun, ...]:
        """The nouns of this split whose lemma is in ``lemmas``."""
        if lemmas not in self._among:
            self._among[lemmas] = tuple(noun for noun in self.nouns if noun.lemma in lemmas)
        return self._among[lemmas]

    def verbs_of(self, frame: str) -> tuple[Verb, ...]:
        """Usable verbs of a frame: those with a subject (and object) in this split."""
        return self._usable.get(frame, ())

    @cached_property
    def _usable(self) -> dict[str, tuple[Verb, ...]]:
        out: dict[str, list[Verb]] = {}
        for verb in self.verbs:
            needs_object = bool(verb.objects)
            if not self.nouns_among(verb.subjects):
                continue
            if needs_object and not self.nouns_among(verb.objects):
                continue
            out.setdefault(verb.frame, []).append(verb)
        return {frame: tuple(verbs) for frame, verbs in out.items()}

    def adverbs_of(self, role: str, tense: str | None = None) -> tuple[Adverb, ...]:
        """Adverbs of a role that fit a tense ("past", "pres", "fut")."""
        name = {"fut": "future", "pres": "present"}.get(tense or "", tense)
        return tuple(
            adverb
            for adverb in self.adverbs
            if adverb.role == role and (not adverb.tenses or name in adverb.tenses)
        )

    def adjectives_for(self, noun: Noun) -> tuple[Adjective, ...]:
        """Adjectives that may stand before this noun."""
        return self._adjectives(noun)[0]

    def predicates_for(self, noun: Noun) -> tuple[Adjective, ...]:
        """Adjectives that may be said of this noun ("the key is heavy")."""
        return self._adjectives(noun)[1]

    def _adjectives(self, noun: Noun) -> tuple[tuple[Adjective, ...], tuple[Adjective, ...]]:
        if noun.lemma not in self._describing:
            said = tuple(a for a in self.adjectives if noun.lemma in a.nouns)
            also = tuple(a for a in self.adjectives if noun.lemma in a.attributive_only)
            self._describing[noun.lemma] = (said + also, said)
        return self._describing[noun.lemma]

    def complements_of(self, noun: Noun) -> tuple[Relational, ...]:
        """The complements this noun takes."""
        return tuple(r for r in self.relational if r.noun == noun.lemma)

    def names_of(self, gender: str) -> tuple[Name, ...]:
        """First names of gender "m" or "f"."""
        return tuple(name for name in self.names if name.gender == gender)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All content entries."""
        return self.nouns + self.verbs + self.adjectives + self.adverbs + self.names

    def content_forms(self) -> frozenset[str]:
        """All surface forms of the words that the split divides, lower case.

        Adverbs of frequency, place and degree count as closed-class and are not among them.
        """
        return frozenset(
            form for entry in self.entries if not _is_closed(entry) for form in entry.forms
        )

    def vocabulary(self) -> tuple[str, ...]:
        """Every surface form, closed-class words included, sorted."""
        closed = {word for words in FUNCTION_WORDS.values() for word in words}
        forms = {form for entry in self.entries for form in entry.forms}
        return tuple(sorted(forms | closed | set(NPI_WORDS)))


def lexicon(split: str = "all") -> Lexicon:
    """The whole lexicon, or its training or held-out words.

    ``train`` and ``test`` share no surface form of a content word; closed-class words and adverbs
    of degree, frequency and place are in both.  The division is fixed: about 30% of each class
    (part of speech, and kind, gender or frame within it) is held out, ordered by the SHA-256 of
    the lemma.

    Raises LexiconError for an unknown split.
    """
    if split not in SPLITS:
        raise LexiconError(f"unknown split {split!r}; choose one of {', '.join(SPLITS)}")
    return _build(split)


def core_lexicon(words: int = 600) -> Lexicon:
    """A smaller lexicon of at most ``words`` surface forms for models trained in a minute.

    Entries are dropped evenly over the classes, in an order fixed by the SHA-256 of the lemma.
    Raises LexiconError when ``words`` leaves too little for a grammar (below 300).
    """
    if words < 300:
        raise LexiconError(f"a core lexicon needs at least 300 words, not {words}")
    full = _build("all")
    ranked = sorted(
        (rank / len(group), _digest(members[0].lemma), members)
        for group in _classes().values()
        for rank, members in enumerate(group)
    )
    closed = {word for group in FUNCTION_WORDS.values() for word in group} | set(NPI_WORDS)
    kept: set[Entry] = set()
    forms = set(closed)
    for _, _, members in ranked:
        added = {form for entry in members for form in entry.forms}
        if len(forms | added) > words:
            break
        forms |= added
        kept.update(members)
    return Lexicon([e for e in full.entries if e in kept], _relational(), "core")


# ---------------------------------------------------------------------------------------------
# reading the tables


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


@lru_cache(maxsize=1)
def _nouns() -> tuple[Noun, ...]:
    place = {
        lemma: preposition
        for preposition, lemmas in tables.LOCATIVES.items()
        for lemma in lemmas.split()
    }
    out = []
    for kind_gender, words in _rows(tables.NOUNS):
        kind, _, gender = kind_gender.partition(".")
        for word in words.split():
            singular, _, plural = word.partition("/")
            locative = place.get(singular, "in")
            out.append(Noun(singular, plural or None, kind, gender or None, locative))
    return tuple(out)


def _select(selector: str) -> frozenset[str]:
    """Lemmas named by kinds, groups or the lemmas themselves."""
    nouns = _nouns()
    kinds = {noun.kind for noun in nouns}
    lemmas = {noun.lemma for noun in nouns}
    out: set[str] = set()
    for name in selector.split():
        if name in GROUPS or name in kinds:
            wanted = GROUPS.get(name, (name,))
            out.update(noun.lemma for noun in nouns if noun.kind in wanted)
        elif name in lemmas:
            out.add(name)
        else:
            raise LexiconError(f"the tables name an unknown noun or kind: {name!r}")
    return frozenset(out)


@lru_cache(maxsize=1)
def _relational() -> tuple[Relational, ...]:
    out = []
    for noun, preposition, selector in _rows(tables.RELATIONAL):
        _select(noun)
        out.append(Relational(noun, preposition, _select(selector) - {noun}))
    return tuple(out)


@lru_cache(maxsize=1)
def _all_entries() -> tuple[Entry, ...]:
    out: list[Entry] = list(_nouns())
    for forms, frame_cell, selection in _rows(tables.VERBS):
        base, third, past, participle, gerund = forms.split()
        frame, *rest = frame_cell.split()
        subjects, _, objects = selection.partition(">")
        out.append(
            Verb(
                base, third, past, participle, None if gerund == "-" else gerund,
                frame, rest[0] if frame == "oblique" else None, "stative" in rest,
                _select(subjects), _select(objects),
            )
        )  # fmt: skip
    for word, selector in _rows(tables.ADJECTIVES):
        fixed = selector.startswith("!")
        nouns = _select(selector.lstrip("!"))
        none: frozenset[str] = frozenset()
        out.append(Adjective(word, none if fixed else nouns, nouns if fixed else none))
    for row in _rows(tables.ADVERBS):
        out.append(Adverb(row[0], row[1], tuple(row[2].split()) if len(row) > 2 else ()))
    for gender, names in tables.NAMES.items():
        out.extend(Name(name, gender) for name in names.split())
    return tuple(out)


def _is_closed(entry: Entry) -> bool:
    return isinstance(entry, Adverb) and entry.role in ("frequency", "place", "degree")


def _class_of(entry: Entry) -> str:
    if isinstance(entry, Noun):
        return f"noun/{entry.kind}/{entry.gender}/{entry.locative}/{entry.irregular}"
    if isinstance(entry, Verb):
        subject = "person" if "man" in entry.subjects else "other"
        return f"verb/{entry.frame}/{entry.stative}/{subject}"
    if isinstance(entry, Name):
        return f"name/{entry.gender}"
    if isinstance(entry, Adverb):
        return f"adverb/{entry.role}"
    return f"adjective/{'man' in entry.nouns}"


@lru_cache(maxsize=1)
def _classes() -> dict[str, list[list[Entry]]]:
    """Class -> groups of entries that share a surface form, in a fixed random-looking order."""
    owner: dict[int, int] = {}
    entries = _all_entries()

    def find(i: int) -> int:
        while owner[i] != i:
            i = owner[i]
        return i

    first: dict[str, int] = {}
    for i, entry in enumerate(entries):
        owner[i] = i
        for form in entry.forms:
            if form in first:
                owner[find(i)] = find(first[form])
            else:
                first[form] = i
    groups: dict[int, list[Entry]] = {}
    for i, entry in enumerate(entries):
        groups.setdefault(find(i), []).append(entry)
    classes: dict[str, list[list[Entry]]] = {}
    for members in groups.values():
        classes.setdefault(_class_of(members[0]), []).append(members)
    for group in classes.values():
        group.sort(key=lambda members: _digest(members[0].lemma))
    return classes


@lru_cache(maxsize=3)
def _build(split: str) -> Lexicon:
    if split == "all":
        return Lexicon(_all_entries(), _relational(), split)
    chosen: set[Entry] = set()
    for groups in _classes().values():
        held_out = max(1, round(TEST_SHARE * len(groups))) if len(groups) > 1 else 0
        if _is_closed(groups[0][0]):
            part = groups
        else:
            part = groups[:held_out] if split == "test" else groups[held_out:]
        chosen.update(entry for members in part for entry in members)
    return Lexicon([e for e in _all_entries() if e in chosen], _relational(), split)
