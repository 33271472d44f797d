"""From the word tables to entries, and the classes over which entries are divided."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from bertology_utils.stimuli import _lexicon_tables as tables
from bertology_utils.stimuli._entries import (
    GROUPS,
    Adjective,
    Adverb,
    Entry,
    LexiconError,
    Name,
    Noun,
    Relational,
    Verb,
)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


@lru_cache(maxsize=1)
def read_nouns() -> tuple[Noun, ...]:
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
    nouns = read_nouns()
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
def read_relational() -> tuple[Relational, ...]:
    out = []
    for noun, preposition, selector in _rows(tables.RELATIONAL):
        _select(noun)
        out.append(Relational(noun, preposition, _select(selector) - {noun}))
    return tuple(out)


@lru_cache(maxsize=1)
def read_entries() -> tuple[Entry, ...]:
    out: list[Entry] = list(read_nouns())
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


def is_closed(entry: Entry) -> bool:
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
def read_classes() -> dict[str, list[list[Entry]]]:
    """Class -> groups of entries that share a surface form, in a fixed random-looking order."""
    owner: dict[int, int] = {}
    entries = read_entries()

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
        group.sort(key=lambda members: digest(members[0].lemma))
    return classes
