"""Sentences with gold structure: what the grammar makes and what the CoNLL-U reader returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral


class TreeError(ValueError):
    """Heads that do not form a single rooted tree, or parts of unequal length."""


@dataclass(frozen=True)
class Tree:
    """A constituent over ``words[start:end]``; a leaf carries the word's UPOS as its label."""

    label: str
    start: int
    end: int
    children: tuple[Tree, ...] = ()

    def subtrees(self) -> Iterator[Tree]:
        """This constituent and everything below it, top down, left to right."""
        yield self
        for child in self.children:
            yield from child.subtrees()

    def spans(self) -> tuple[tuple[str, int, int], ...]:
        """(label, start, end) of every constituent, leaves excluded."""
        return tuple((t.label, t.start, t.end) for t in self.subtrees() if t.children)

    def ancestors(self, index: int) -> tuple[str, ...]:
        """Labels above word ``index``: parent, grandparent, ... up to the root."""
        if not self.start <= index < self.end:
            raise IndexError(f"word {index} is outside the tree {self.start}:{self.end}")
        path: list[str] = []
        node = self
        while node.children:
            path.append(node.label)
            node = next(c for c in node.children if c.start <= index < c.end)
        return tuple(reversed(path))

    def height(self) -> int:
        """Number of constituents on the longest path from the root down to a word."""
        return 1 + max(child.height() for child in self.children) if self.children else 0

    def bracketed(self, words: Sequence[str]) -> str:
        """Penn-style brackets: ``(S (NP (DET the) (NOUN key)) ...)``."""
        if not self.children:
            return f"({self.label} {words[self.start]})"
        return f"({self.label} {' '.join(child.bracketed(words) for child in self.children)})"


@dataclass(frozen=True)
class Agreement:
    """A finite verb and the head noun or pronoun it agrees with (0-based word indices)."""

    subject: int
    verb: int
    number: str


@dataclass(frozen=True)
class Role:
    """A semantic role; the argument of a relative-clause gap is the noun the clause modifies."""

    predicate: int
    name: str
    argument: int


@dataclass(frozen=True)
class Negation:
    """A negation cue and its scope: the words of the clause it negates, cue excluded."""

    cue: int
    scope: tuple[int, ...]


@dataclass(frozen=True)
class Gold:
    """What the grammar knows about a sentence. All positions are 0-based word indices.

    ``attractors`` counts nouns between the main subject and its finite verb whose number differs
    from the subject's.  ``embedding`` is the number of clauses nested inside one another below the
    main clause.  ``kinds`` gives each word's semantic kind ("person", "animal", ...; "" if none).
    """

    tree: Tree
    construction: str
    features: tuple[str, ...]
    tense: str
    voice: str
    negated: bool
    subject: int
    subject_number: str
    main_verb: int
    main_auxiliary: int | None
    object: int | None
    object_number: str | None
    attractors: int
    embedding: int
    agreements: tuple[Agreement, ...]
    roles: tuple[Role, ...]
    coreference: tuple[tuple[int, int], ...]
    negations: tuple[Negation, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class Sentence:
    """Words with a dependency tree.

    ``heads`` follow CoNLL-U: 1-based, 0 for the root. ``words`` are as written, punctuation apart.
    Use :meth:`head_of`, :meth:`edges`, :meth:`distances` to work with 0-based indices.

    Raises TreeError when the parts differ in length, a word is empty or no text, or the heads have
    no root, several roots, a head out of range or a cycle.
    """

    words: tuple[str, ...]
    upos: tuple[str, ...]
    heads: tuple[int, ...]
    deprels: tuple[str, ...]
    lemmas: tuple[str, ...]
    feats: tuple[str, ...]
    text: str
    sent_id: str = ""
    gold: Gold | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        n = len(self.words)
        if n == 0:
            raise TreeError(f"sentence {self._name} has no words")
        for name in ("upos", "heads", "deprels", "lemmas", "feats"):
            if len(getattr(self, name)) != n:
                raise TreeError(
                    f"sentence {self._name}: {n} words but "
                    f"{len(getattr(self, name))} {name}"
                )
        for i, word in enumerate(self.words):
            if not isinstance(word, str) or not word:
                raise TreeError(f"sentence {self._name}: word {i + 1} is {word!r}")
        check_heads(self.heads, self.sent_id or self.text)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def _name(self) -> str:
        """What error messages call it."""
        return repr((self.sent_id or self.text)[:60])

    @property
    def pos(self) -> tuple[str, ...]:
        """Universal part-of-speech tags (the same as ``upos``)."""
        return self.upos

    @property
    def root(self) -> int:
        """0-based index of the root word."""
        return self.heads.index(0)

    def head_of(self, index: int) -> int | None:
        """0-based head of a 0-based word index; None for the root."""
        head = self.heads[index]
        return None if head == 0 else head - 1

    def edges(self) -> tuple[tuple[int, int, str], ...]:
        """(head, dependent, relation) for every word but the root, 0-based."""
        return tuple(
            (head - 1, i, rel)
            for i, (head, rel) in enumerate(zip(self.heads, self.deprels, strict=True))
            if head
        )

    def depths(self) -> tuple[int, ...]:
        """Edges between each word and the root."""
        return tuple(len(self._path(i)) - 1 for i in range(len(self)))

    def distances(self) -> tuple[tuple[int, ...], ...]:
        """Path lengths in the dependency tree between all pairs of words, [n][n]."""
        paths = [self._path(i) for i in range(len(self))]
        rows = []
        for a in paths:
            order = {word: k for k, word in enumerate(a)}
            row = []
            for b in paths:
                k, meet = next((k, w) for k, w in enumerate(b) if w in order)
                row.append(k + order[meet])
            rows.append(tuple(row))
        return tuple(rows)

    def projective(self) -> bool:
        """True when no two dependency arcs cross (the root's arc included)."""
        arcs = [
            (min(head, i + 1), max(head, i + 1)) for i, head in enumerate(self.heads)
        ]  # fmt: skip
        return not any(a < c < b < d for a, b in arcs for c, d in arcs)

    def _path(self, index: int) -> list[int]:
        path = [index]
        while (head := self.heads[path[-1]]) != 0:
            path.append(head - 1)
        return path


@dataclass(frozen=True)
class Treebank:
    """A named sequence of sentences."""

    name: str
    sentences: tuple[Sentence, ...]
    seed: int | None = None

    def __len__(self) -> int:
        return len(self.sentences)

    def __iter__(self) -> Iterator[Sentence]:
        return iter(self.sentences)

    def __getitem__(self, index: int) -> Sentence:
        return self.sentences[index]

    @property
    def texts(self) -> tuple[str, ...]:
        """The sentences as plain text."""
        return tuple(sentence.text for sentence in self.sentences)

    @property
    def n_words(self) -> int:
        """Number of words, punctuation included."""
        return sum(len(sentence) for sentence in self.sentences)

    def select(self, keep: Callable[[Sentence], bool]) -> Treebank:
        """The sentences for which ``keep`` is true."""
        return Treebank(self.name, tuple(s for s in self.sentences if keep(s)), self.seed)

    def chained(self) -> Treebank:
        """The same sentences in trees in which every word hangs on the one before it.

        A structure that is known to be simple: whoever looks one word back finds all of it.
        Punctuation keeps its relation, so that it is left out where it was; gold is dropped.
        """
        return Treebank(f"{self.name}, chained", tuple(map(_chain, self.sentences)), self.seed)


def _chain(sentence: Sentence) -> Sentence:
    named = ("punct" if relation == "punct" else "dep" for relation in sentence.deprels)
    relations = ("root", *tuple(named)[1:])
    return replace(sentence, heads=tuple(range(len(sentence))), deprels=relations, gold=None)


def check_heads(heads: Sequence[int], where: str = "") -> None:
    """Raise TreeError unless ``heads`` (1-based, 0 = root) is one tree."""
    label = f"sentence {where[:60]!r}: " if where else ""
    n = len(heads)
    for i, head in enumerate(heads):
        if not isinstance(head, Integral) or isinstance(head, bool):
            raise TreeError(f"{label}word {i + 1} has head {head!r}, not a number")
        if not 0 <= head <= n:
            raise TreeError(f"{label}word {i + 1} has head {head}, outside 0..{n}")
    roots = [i + 1 for i, head in enumerate(heads) if head == 0]
    if len(roots) != 1:
        raise TreeError(f"{label}expected one root, found {len(roots)}: {roots}")
    safe = {roots[0]}
    for i in range(1, n + 1):
        path: list[int] = []
        node = i
        while node not in safe:
            if node in path:
                raise TreeError(f"{label}cycle through words {path[path.index(node) :]}")
            path.append(node)
            node = heads[node - 1]
        safe.update(path)


_NO_SPACE_BEFORE = frozenset({".", ",", "?", "!", ";", ":", "'s"})


def join_words(words: Iterable[str]) -> str:
    """Words to running text: no space before punctuation or 's."""
    out = ""
    for word in words:
        out += word if not out or word in _NO_SPACE_BEFORE else f" {word}"
    return out
