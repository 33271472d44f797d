"""Checks of the exercises of the chapter on syntax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree

from .judging import Wrong, as_array, ask, check, expect


@check("wins count one, ties one half, losses nothing, and only the order matters.")
def share_won(answer: Callable) -> None:
    """``answer(good, bad)``: share of pairs whose good member scores higher."""
    draw = np.random.default_rng()

    def share(good: np.ndarray, bad: np.ndarray) -> float:
        return float(as_array("the share", ask(answer, good, bad), ()))

    low = draw.normal(size=9) - 5
    high = low + draw.uniform(0.1, 3, size=9)
    expect(np.isclose(share(high, low), 1), "if the good form always wins, the share should be 1.")
    expect(np.isclose(share(low, high), 0), "if the bad form always wins, the share should be 0.")
    tied = share(low, low)
    expect(not np.isclose(tied, 1), "a tie is no win: a model that cannot tell would look perfect.")
    expect(not np.isclose(tied, 0), "a tie is no loss: a model that cannot tell is at chance.")
    expect(np.isclose(tied, 0.5), "if all pairs are tied, the model is at chance.")
    wins = int(draw.integers(2, 7))
    mixed = np.concatenate([high[:wins], low[wins:]])
    other = np.concatenate([low[:wins], high[wins:]])
    expect(
        np.isclose(share(mixed, other), wins / 9),
        "every pair counts alike, by however much it is won or lost.",
    )


@check("directions and punctuation do not count, and edges are pooled over sentences.")
def uuas(answer: Callable) -> None:
    """``answer(predicted, gold, punct)``: share of gold edges found, over all sentences."""
    draw = np.random.default_rng()

    def score(predicted, gold, punct) -> float:
        return float(as_array("the score", ask(answer, predicted, gold, punct), ()))

    gold = [_tree(draw, n) for n in draw.permutation([4, 6, 9]).tolist()]
    none = [[False] * len(heads) for heads in gold]
    expect(np.isclose(score(gold, gold, none), 1), "a tree should agree with itself.")
    turned = [_turn(heads) for heads in gold]
    found = score(turned, gold, none)
    expect(
        np.isclose(found, 1),
        "the first U stands for undirected: the same edges hung up at another word are found, too.",
    )
    chain, star = [0, 1, 2, 3, 4], [0, 1, 1, 1, 1]  # one edge in common: words 1 and 2
    found = score([chain], [star], [[False] * 5])
    expect(
        not np.isclose(found, 0.2) and not np.isclose(found, 0.4),
        "a root has no head, so a tree of five words has four edges, not five.",
    )
    expect(np.isclose(found, 0.25), "one of four gold edges found should give a quarter.")
    marks = [[False, False, False, False, True]]
    found = score([[0, 1, 2, 3, 1]], [star], marks)
    expect(
        not np.isclose(found, 0.5),
        "edges that touch punctuation are left out, in the gold tree as well.",
    )
    expect(np.isclose(found, 1 / 3), "only edges between two words that are not punctuation count.")
    small, large = [0, 1], [0, 1, 1, 1, 1, 1, 1, 1]
    found = score([small, [0, *range(1, 8)]], [small, large], [[False] * 2, [False] * 8])
    expect(
        not np.isclose(found, (1 + 1 / 7) / 2),
        "sentences of different lengths: divide all edges found by all gold edges, once.",
    )
    expect(np.isclose(found, 2 / 8), "two of eight gold edges found should give a quarter.")


def _tree(draw: np.random.Generator, n: int) -> list[int]:
    """Heads of a random tree whose root is the first word, 1-based."""
    return [0, *(int(draw.integers(1, word)) for word in range(2, n + 1))]


def _turn(heads: list[int]) -> list[int]:
    """The same edges, hung up at the last word."""
    out, word, above = list(heads), len(heads), 0
    while word:
        out[word - 1], above, word = above, word, heads[word - 1]
    return out


@check("both words are masked, the first one's vector is read, and the diagonal is empty.")
def impact(answer: Callable) -> None:
    """``answer(read, n)``: impact of every word on every other."""
    draw = np.random.default_rng()
    n, width = int(draw.integers(4, 7)), 5
    plain = draw.normal(size=(n, width))
    alone = draw.normal(size=(n, width))  # of a word that is itself masked
    pull, faint = draw.normal(size=(2, n, n, width))  # on a masked word, on one that is not
    asked: list[frozenset[int]] = []

    def read(masked) -> np.ndarray:
        hidden = frozenset(int(word) for word in masked)
        if not hidden <= set(range(n)):
            raise IndexError(f"words are 0 to {n - 1}, not {sorted(hidden)}")
        asked.append(hidden)
        own = np.array([alone[i] if i in hidden else plain[i] for i in range(n)])
        moved = [pull[i] if i in hidden else faint[i] for i in range(n)]
        others = [sum((moved[i][j] for j in hidden if j != i), np.zeros(width)) for i in range(n)]
        return own + np.array(others)

    given = as_array("the matrix", ask(answer, read, n), (n, n))
    expect(bool(asked), "the vectors come from read; call it with the words to mask.")
    wanted = np.linalg.norm(pull, axis=-1)
    np.fill_diagonal(wanted, 0)
    expect((given > -1e-9).all(), "a distance is never negative.")
    expect(np.allclose(np.diag(given), 0), "a word has no impact on itself: keep the diagonal 0.")
    if np.allclose(given, wanted):
        return
    expect(
        not np.allclose(given, wanted.T),
        "rows and columns are exchanged: a row belongs to the word whose vector is read.",
    )
    expect(
        not np.allclose(given, wanted**2),
        "that is the squared distance; take the length of the difference.",
    )
    expect(
        any(len(hidden) == 2 for hidden in asked),
        "the second reading hides both words: the first one stays masked.",
    )
    raise Wrong(
        "compare a word's vector, masked alone, with the vector of the same word when the other "
        "one is masked as well."
    )


@check("every word is reached by n - 1 edges, and no tree is shorter.")
def spanning_tree(answer: Callable) -> None:
    """``answer(distances)``: edges of the tree with the least sum of distances."""
    draw = np.random.default_rng()
    for n in (2, 7, 11):
        points = draw.normal(size=(n, 3))
        distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
        reply = ask(answer, distances)
        try:
            edges = [(int(a), int(b)) for a, b in reply]
        except (TypeError, ValueError):
            raise Wrong("a list of pairs of words should come back.") from None
        expect(
            all(0 <= a < n and 0 <= b < n for a, b in edges),
            f"an edge leaves the sentence: its words are 0 to {n - 1}.",
        )
        expect(all(a != b for a, b in edges), "an edge joins two different words.")
        expect(len(edges) == n - 1, f"a tree of {n} words has {n - 1} edges, not {len(edges)}.")
        reached = {0}
        for _ in range(n):
            reached |= {x for a, b in edges if {a, b} & reached for x in (a, b)}
        expect(len(reached) == n, "some words cannot be reached: the edges hold a circle.")
        least = minimum_spanning_tree(distances).sum()
        most = -minimum_spanning_tree(-distances).sum() if n > 2 else np.inf
        length = sum(distances[a, b] for a, b in edges)
        expect(
            n == 2 or not np.isclose(length, most),
            "that is the longest tree; words that are close belong together.",
        )
        expect(
            np.isclose(length, least),
            "there is a shorter tree; is the closest word outside joined next, to its closest "
            "word inside?",
        )


@check("the largest gap is cut first, and both sides are cut again.")
def brackets(answer: Callable) -> None:
    """``answer(gaps)``: spans (start, end) of the tree cut at the largest gaps."""
    draw = np.random.default_rng()
    for n in (1, 2, 3, 6, 10):
        gaps = draw.permutation(np.arange(n - 1) + draw.uniform(0, 0.5, n - 1))
        reply = ask(answer, gaps)
        try:
            spans = {(int(start), int(end)) for start, end in reply}
        except (TypeError, ValueError):
            raise Wrong("a set of spans (start, end) should come back.") from None
        expect(
            all(end - start > 1 for start, end in spans),
            "a span of a single word is no constituent; leave it out.",
        )
        expect(
            all(0 <= start and end <= n for start, end in spans),
            f"a span leaves the sentence of {n} words; n - 1 gaps lie between n words.",
        )
        if n == 1:
            continue
        expect((0, n) in spans, "the whole sentence is a span, too.")
        expect(
            not any(a < c < b < d for a, b in spans for c, d in spans),
            "two spans overlap without one holding the other.",
        )
        expect(
            len(spans) == n - 1,
            f"a binary tree over {n} words has {n - 1} spans of two words or more, "
            f"not {len(spans)}: each side of a cut is cut again.",
        )
        for start, end in spans:
            if end - start == 2:
                continue
            largest = start + int(np.argmax(gaps[start : end - 1])) + 1
            smallest = start + int(np.argmin(gaps[start : end - 1])) + 1
            sides = {s for s in ((start, largest), (largest, end)) if s[1] - s[0] > 1}
            if sides <= spans:
                continue
            others = {s for s in ((start, smallest), (smallest, end)) if s[1] - s[0] > 1}
            expect(not others <= spans, "a cut falls at the smallest gap instead of the largest.")
            raise Wrong("a cut is not at the largest gap; gap i lies between words i and i + 1.")
