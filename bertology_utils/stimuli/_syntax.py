"""Phrases under construction, and their assembly into a finished :class:`Sentence`.

A phrase lists its parts with their UD relation to the phrase's head, so one structure yields both
the constituency tree (the phrases) and the dependency tree (head percolation).  Dependency trees
made this way are projective by construction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bertology_utils.stimuli.lexicon import Noun
from bertology_utils.stimuli.trees import (
    Agreement,
    Gold,
    Negation,
    Role,
    Sentence,
    Tree,
    join_words,
)

HEAD = "head"


class NoChoice(Exception):
    """The lexicon offers no word for the construction being built; the caller draws again."""


@dataclass(eq=False)
class Leaf:
    """One word. Identity, not equality, tells two occurrences of a word apart."""

    form: str
    lemma: str
    upos: str
    feats: str = "_"
    kind: str = ""


@dataclass(eq=False)
class Phrase:
    """A constituent. ``rels[i]`` relates part i to the head; exactly one is HEAD.

    A relation written ``"cc>2"`` attaches the part to the head of part 2 instead.
    """

    label: str
    parts: list[Leaf | Phrase]
    rels: list[str]

    def head_leaf(self) -> Leaf:
        part = self.parts[self.rels.index(HEAD)]
        return part if isinstance(part, Leaf) else part.head_leaf()

    def leaves(self) -> Iterator[Leaf]:
        for part in self.parts:
            if isinstance(part, Leaf):
                yield part
            else:
                yield from part.leaves()


def phrase(label: str, *parts: tuple[str, Leaf | Phrase | None]) -> Phrase:
    """A phrase from (relation, part) pairs; pairs whose part is None are dropped."""
    kept = [(rel, part) for rel, part in parts if part is not None]
    return Phrase(label, [part for _, part in kept], [rel for rel, _ in kept])


@dataclass(eq=False)
class NP:
    """A finished noun phrase with the features that agreement and coreference need."""

    phrase: Phrase
    head: Leaf
    number: str
    person: int = 3
    gender: str | None = None
    noun: Noun | None = None
    animate: bool = False
    pronoun: bool = False


@dataclass
class Record:
    """Gold facts gathered while a sentence is built, in terms of leaves."""

    agreements: list[tuple[Leaf, Leaf, str]] = field(default_factory=list)
    roles: list[tuple[Leaf, str, Leaf]] = field(default_factory=list)
    coreference: list[tuple[Leaf, Leaf]] = field(default_factory=list)
    negations: list[tuple[Leaf, Phrase]] = field(default_factory=list)
    features: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    embedding: int = 0


@dataclass(eq=False)
class Clause:
    """A finite clause: its phrase (no final punctuation) and its main grammatical facts."""

    phrase: Phrase
    subject: NP
    verb: Leaf
    finite: Leaf
    tense: str
    voice: str
    negated: bool
    object: NP | None
    construction: str


def _heads(top: Phrase) -> dict[int, tuple[Leaf | None, str]]:
    """id(leaf) -> (head leaf or None, relation)."""
    out: dict[int, tuple[Leaf | None, str]] = {id(top.head_leaf()): (None, "root")}

    def visit(node: Phrase) -> None:
        head = node.head_leaf()
        for part, rel in zip(node.parts, node.rels, strict=True):
            dependent = part if isinstance(part, Leaf) else part.head_leaf()
            if rel != HEAD:
                name, _, sibling = rel.partition(">")
                target = head
                if sibling:
                    other = node.parts[int(sibling)]
                    target = other if isinstance(other, Leaf) else other.head_leaf()
                out[id(dependent)] = (target, name)
            if isinstance(part, Phrase):
                visit(part)

    visit(top)
    return out


def _tree(node: Leaf | Phrase, start: int) -> Tree:
    if isinstance(node, Leaf):
        return Tree(node.upos, start, start + 1)
    children = []
    at = start
    for part in node.parts:
        child = _tree(part, at)
        children.append(child)
        at = child.end
    return Tree(node.label, start, at, tuple(children))


def assemble(top: Phrase, clause: Clause, record: Record, sent_id: str) -> Sentence:
    """The finished sentence with its gold structure."""
    leaves = list(top.leaves())
    at = {id(leaf): i for i, leaf in enumerate(leaves)}
    heads = _heads(top)
    words = [leaf.form for leaf in leaves]
    words[0] = words[0][0].upper() + words[0][1:]
    agreements = tuple(
        Agreement(at[id(s)], at[id(v)], number) for s, v, number in record.agreements
    )
    main = next(a for a in agreements if a.verb == at[id(clause.finite)])
    between = leaves[main.subject + 1 : main.verb]
    opposite = "Number=Plur" if main.number == "sing" else "Number=Sing"
    negations = []
    for cue, scope in record.negations:
        inside = tuple(at[id(leaf)] for leaf in scope.leaves() if leaf is not cue)
        negations.append(Negation(at[id(cue)], inside))
    obj = clause.object
    gold = Gold(
        tree=_tree(top, 0),
        construction=clause.construction,
        features=tuple(sorted(record.features)),
        tense=clause.tense,
        voice=clause.voice,
        negated=clause.negated,
        subject=main.subject,
        subject_number=main.number,
        main_verb=at[id(clause.verb)],
        main_auxiliary=at[id(clause.finite)] if clause.finite.upos == "AUX" else None,
        object=None if obj is None else at[id(obj.head)],
        object_number=None if obj is None else obj.number,
        attractors=sum(leaf.upos == "NOUN" and opposite in leaf.feats for leaf in between),
        embedding=record.embedding,
        agreements=agreements,
        roles=tuple(Role(at[id(p)], name, at[id(a)]) for p, name, a in record.roles),
        coreference=tuple((at[id(a)], at[id(b)]) for a, b in record.coreference),
        negations=tuple(negations),
        kinds=tuple(leaf.kind for leaf in leaves),
    )
    attached = [heads[id(leaf)] for leaf in leaves]
    return Sentence(
        words=tuple(words),
        upos=tuple(leaf.upos for leaf in leaves),
        heads=tuple(0 if head is None else at[id(head)] + 1 for head, _ in attached),
        deprels=tuple(rel for _, rel in attached),
        lemmas=tuple(leaf.lemma for leaf in leaves),
        feats=tuple(leaf.feats for leaf in leaves),
        text=join_words(words),
        sent_id=sent_id,
        gold=gold,
    )
