"""Typical mistakes in the exercises on syntax, and what their checks must say."""

import numpy as np


def won(good, bad):
    good, bad = np.asarray(good), np.asarray(bad)
    return np.mean((good > bad) + 0.5 * (good == bad))


def edges(heads, punct=None):
    return {
        frozenset((i, h - 1))
        for i, h in enumerate(heads)
        if h and not (punct and (punct[i] or punct[h - 1]))
    }


def attachment(predicted, gold, punct):
    true = [edges(g, p) for g, p in zip(gold, punct, strict=True)]
    said = [edges(s) for s in predicted]
    return sum(len(a & b) for a, b in zip(true, said, strict=True)) / sum(map(len, true))


def impacts(read, n):
    out = np.zeros((n, n))
    for i in range(n):
        alone = read({i})[i]
        for j in range(n):
            if i != j:
                out[i, j] = np.linalg.norm(read({i, j})[i] - alone)
    return out


def prim(distances, pick=min):
    inside, found = {0}, []
    while len(inside) < len(distances):
        pairs = [(a, b) for a in inside for b in range(len(distances)) if b not in inside]
        found.append(pick(pairs, key=lambda pair: distances[pair]))
        inside.add(found[-1][1])
    return found


def cuts(gaps, pick=np.argmax, start=0):
    if not len(gaps):
        return set()
    cut = int(pick(gaps))
    left, right = cuts(gaps[:cut], pick, start), cuts(gaps[cut + 1 :], pick, start + cut + 1)
    return {(start, start + len(gaps) + 1)} | left | right


def by_sentence(predicted, gold, punct):
    return np.mean(
        [attachment([s], [g], [p]) for s, g, p in zip(predicted, gold, punct, strict=True)]
    )


def directed(predicted, gold, punct):
    hits = [s == g for a, b in zip(predicted, gold, strict=True)
            for s, g in zip(a, b, strict=True) if g]  # fmt: skip
    return np.mean(hits)


def with_root(predicted, gold, punct):
    found = sum(len(edges(a) & edges(b)) for a, b in zip(predicted, gold, strict=True))
    return (found + (predicted == gold)) / sum(map(len, gold))


def blind_to_punctuation(predicted, gold, punct):
    return attachment(predicted, gold, [[False] * len(p) for p in punct])


def one_mask(read, n):
    return np.array(
        [
            [np.linalg.norm(read({j})[i] - read(set())[i]) * (i != j) for j in range(n)]
            for i in range(n)
        ]
    )


def undamaged(read, n):
    """Compares with the vector of the word when nothing is masked."""
    return np.array(
        [
            [np.linalg.norm(read({i, j})[i] - read(set())[i]) * (i != j) for j in range(n)]
            for i in range(n)
        ]
    )


SLIPS = {
    "share_won": [
        (lambda g, b: np.mean(g >= b), "a tie is no win"),
        (lambda g, b: np.mean(g > b), "a tie is no loss"),
        (lambda g, b: np.sum(g > b), "should be 1"),
        (lambda g, b: won(b, g), "should be 1"),
        (lambda g, b: float(np.sign((g - b).mean()) + 1) / 2, "counts alike"),
    ],
    "uuas": [
        (directed, "undirected"),
        (by_sentence, "divide all edges found by all gold edges"),
        (blind_to_punctuation, "touch punctuation"),
        (with_root, "agree with itself"),
    ],
    "impact": [
        (lambda read, n: impacts(read, n).T, "rows and columns"),
        (lambda read, n: impacts(read, n) ** 2, "squared distance"),
        (one_mask, "hides both words"),
        (undamaged, "masked alone"),
        (lambda read, n: impacts(read, n) + np.eye(n), "diagonal"),
        (lambda read, n: np.zeros((n, n)), "call it"),
    ],
    "spanning_tree": [
        (lambda d: prim(d, max), "longest tree"),
        (lambda d: [(i, i + 1) for i in range(len(d) - 1)], "a shorter tree"),
        (lambda d: [(0, 0)] * (len(d) - 1), "two different words"),
        (lambda d: prim(d) + [(0, 1)], "edges, not"),
        (lambda d: [(0, 1)] * (len(d) - 1), "hold a circle"),
        (lambda d: float(d.sum()), "list of pairs"),
    ],
    "brackets": [
        (lambda g: cuts(g, np.argmin), "smallest gap"),
        (lambda g: {(0, len(g) + 1)} if len(g) else set(), "cut again"),
        (lambda g: cuts(g) | {(i, i + 1) for i in range(len(g) + 1)}, "single word"),
        (lambda g: {(a + 1, b + 1) for a, b in cuts(g)}, "leaves the sentence"),
        (lambda g: cuts(g) - {(0, len(g) + 1)}, "whole sentence"),
    ],
}
