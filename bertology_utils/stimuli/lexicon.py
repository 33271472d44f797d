"""A hand-made English lexicon with features, and its split into training and held-out words.

The lexicon is small enough to read and large enough that a grammar over it does not repeat itself.
Each content word carries what a grammar needs to make it agree and to make it plausible: number
forms, gender, a semantic kind, the kinds of subject and object a verb takes.  Every form is one
WordPiece of ``bert-base-uncased``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache

from bertology_utils.stimuli._entries import (
    FUNCTION_WORDS,
    GROUPS,
    NPI_WORDS,
    Adjective,
    Adverb,
    Entry,
    LexiconError,
    Name,
    Noun,
    Relational,
    Verb,
)
from bertology_utils.stimuli._lexicon_reading import (
    digest,
    is_closed,
    read_classes,
    read_entries,
    read_nouns,
    read_relational,
)

SPLITS = ("all", "train", "test")
TEST_SHARE = 0.3

__all__ = [
    "FUNCTION_WORDS",
    "GROUPS",
    "NPI_WORDS",
    "SPLITS",
    "Adjective",
    "Adverb",
    "Entry",
    "Lexicon",
    "LexiconError",
    "Name",
    "Noun",
    "Relational",
    "Verb",
    "core_lexicon",
    "lexicon",
]


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
            known = {noun.kind for noun in read_nouns()}
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
            form for entry in self.entries if not is_closed(entry) for form in entry.forms
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
        (rank / len(group), digest(members[0].lemma), members)
        for group in read_classes().values()
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
    return Lexicon([e for e in full.entries if e in kept], read_relational(), "core")


@lru_cache(maxsize=3)
def _build(split: str) -> Lexicon:
    if split == "all":
        return Lexicon(read_entries(), read_relational(), split)
    chosen: set[Entry] = set()
    for groups in read_classes().values():
        held_out = max(1, round(TEST_SHARE * len(groups))) if len(groups) > 1 else 0
        if is_closed(groups[0][0]):
            part = groups
        else:
            part = groups[:held_out] if split == "test" else groups[held_out:]
        chosen.update(entry for members in part for entry in members)
    return Lexicon([e for e in read_entries() if e in chosen], read_relational(), split)
