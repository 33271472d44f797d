"""From scores of word pairs to trees: spanning trees, arborescences, projective trees.

Directed trees come back as *heads* in the CoNLL-U convention of ``stimuli.Sentence``: for every
word the 1-based number of its head, 0 for the root. Exactly one word is the root.
"""

import numpy as np

from .errors import DecodingError


def spanning_edges(distances: np.ndarray) -> np.ndarray:
    """Minimum spanning trees (Prim 1957), for many sentences of one length at once.

    Args:
        distances: [..., n, n]; the two directions of a pair are averaged. For a maximum spanning
            tree of scores, negate them.

    Returns:
        [..., n - 1, 2] edges (smaller word, larger word), 0-based, in the order found.

    Raises:
        DecodingError: not square, no words, or NaN.
    """
    matrix = _square(distances)
    n = matrix.shape[-1]
    flat = matrix.reshape(-1, n, n)
    flat = (flat + flat.swapaxes(1, 2)) / 2
    count = len(flat)
    every = np.arange(count)
    outside = np.ones((count, n), dtype=bool)
    outside[:, 0] = False
    nearest = np.zeros((count, n), dtype=np.int64)  # the word inside that is nearest to each
    reach = flat[:, 0].copy()
    edges = np.empty((count, n - 1, 2), dtype=np.int64)
    for k in range(n - 1):
        new = np.where(outside, reach, np.inf).argmin(1)
        # A sentence whose remaining distances are all infinite still gets one of its own words.
        stuck = ~outside[every, new]
        new[stuck] = outside[stuck].argmax(1)
        old = nearest[every, new]
        edges[:, k, 0], edges[:, k, 1] = np.minimum(old, new), np.maximum(old, new)
        outside[every, new] = False
        row = flat[every, new]
        closer = outside & (row < reach)
        reach = np.where(closer, row, reach)
        nearest = np.where(closer, new[:, None], nearest)
    return edges.reshape(*matrix.shape[:-2], n - 1, 2)


def max_arborescence(
    scores: np.ndarray, *, root: int | None = None, root_scores: np.ndarray | None = None
) -> tuple[int, ...]:
    """The best directed tree, crossing arcs allowed (Chu and Liu 1965; Edmonds 1967).

    Args:
        scores: [n, n], ``scores[h, d]`` for word h as the head of word d, higher is better; the
            diagonal is not read.
        root: the root word, 0-based, if it is given.
        root_scores: [n] of each word as the root; all 0 by default.

    Returns:
        Heads, 1-based, 0 for the root.

    Raises:
        DecodingError: not square, no words, NaN or infinite scores, a root outside the sentence.
    """
    table = _with_root(scores, root, root_scores)
    heads = _edmonds(table)
    return tuple(int(head) for head in heads[1:])


def eisner(
    scores: np.ndarray, *, root: int | None = None, root_scores: np.ndarray | None = None
) -> tuple[int, ...]:
    """The best projective tree (Eisner 1996), arguments and errors as :func:`max_arborescence`.

    O(n^3), the two inner loops in numpy.
    """
    table = _with_root(scores, root, root_scores)
    arcs, as_root = table[1:, 1:], table[0, 1:]
    n = len(arcs)
    # Spans s..t: complete ones are headed at an end ("right": head s, "left": head t); incomplete
    # ones carry the arc between their ends.
    right, left = np.full((n, n), -np.inf), np.full((n, n), -np.inf)
    arc_right, arc_left = np.full((n, n), -np.inf), np.full((n, n), -np.inf)
    cut_arc = np.zeros((n, n), dtype=np.int64)
    cut_right, cut_left = np.zeros((n, n), dtype=np.int64), np.zeros((n, n), dtype=np.int64)
    np.fill_diagonal(right, 0.0)
    np.fill_diagonal(left, 0.0)
    for width in range(1, n):
        starts = np.arange(n - width)
        ends = starts + width
        inner = np.arange(width)
        r = starts[:, None] + inner
        both = right[starts[:, None], r] + left[r + 1, ends[:, None]]
        best = both.argmax(1)
        cut_arc[starts, ends] = starts + best
        joined = both[starts, best]
        arc_right[starts, ends] = joined + arcs[starts, ends]
        arc_left[starts, ends] = joined + arcs[ends, starts]
        options = arc_right[starts[:, None], r + 1] + right[r + 1, ends[:, None]]
        best = options.argmax(1)
        right[starts, ends], cut_right[starts, ends] = options[starts, best], starts + best + 1
        options = left[starts[:, None], r] + arc_left[r, ends[:, None]]
        best = options.argmax(1)
        left[starts, ends], cut_left[starts, ends] = options[starts, best], starts + best
    # One root: a word that heads everything to its left and everything to its right.
    top = int((left[0] + right[:, n - 1] + as_root).argmax())
    heads = [0] * n
    stack = [("left", 0, top), ("right", top, n - 1)]
    while stack:
        kind, s, t = stack.pop()
        if s == t:
            continue
        if kind == "right":
            cut = int(cut_right[s, t])
            stack += [("arc right", s, cut), ("right", cut, t)]
        elif kind == "left":
            cut = int(cut_left[s, t])
            stack += [("left", s, cut), ("arc left", cut, t)]
        else:
            head, dependent = (s, t) if kind == "arc right" else (t, s)
            heads[dependent] = head + 1
            cut = int(cut_arc[s, t])
            stack += [("right", s, cut), ("left", cut + 1, t)]
    return tuple(heads)


def heads_from_edges(edges: np.ndarray, root: int) -> tuple[int, ...]:
    """An undirected tree hung up at a root word.

    Args:
        edges: [n - 1, 2] pairs of words, 0-based.
        root: 0-based.

    Returns:
        Heads, 1-based, 0 for the root.

    Raises:
        DecodingError: a word or root out of range, a cycle, or words that are not connected.
    """
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    n = len(pairs) + 1
    if not 0 <= root < n:
        raise DecodingError(f"root {root} is not in 0..{n - 1}")
    neighbours: list[list[int]] = [[] for _ in range(n)]
    for a, b in pairs.tolist():
        if not (0 <= a < n and 0 <= b < n):
            raise DecodingError(f"edge ({a}, {b}) leaves the {n} words of a tree of {n - 1} edges")
        neighbours[a].append(b)
        neighbours[b].append(a)
    heads: list[int | None] = [None] * n
    heads[root] = 0
    stack = [root]
    while stack:
        word = stack.pop()
        for other in neighbours[word]:
            if heads[other] is None:
                heads[other] = word + 1
                stack.append(other)
    # n - 1 edges that reach every word hold no cycle; a word left out means there is one.
    if lost := [i for i, head in enumerate(heads) if head is None]:
        raise DecodingError(
            f"words {lost} are not connected to root {root}: the edges hold a cycle"
        )
    return tuple(int(head) for head in heads)


def _square(scores: np.ndarray) -> np.ndarray:
    matrix = np.asarray(scores, dtype=np.float64)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise DecodingError(f"scores have shape {matrix.shape}, expected [..., n, n]")
    if matrix.shape[-1] == 0:
        raise DecodingError("a sentence without words has no tree")
    if np.isnan(matrix).any():
        where = tuple(int(i) for i in np.argwhere(np.isnan(matrix))[0])
        raise DecodingError(f"the score at {where} is NaN")
    return matrix


def _with_root(scores: np.ndarray, root: int | None, root_scores: np.ndarray | None) -> np.ndarray:
    """[n + 1, n + 1] with an artificial root in front that can have one dependent only."""
    matrix = _square(scores)
    if matrix.ndim != 2:
        raise DecodingError(f"scores have shape {matrix.shape}, expected [n, n]")
    n = len(matrix)
    matrix = matrix.copy()
    np.fill_diagonal(matrix, 0.0)
    as_root = np.zeros(n) if root_scores is None else np.asarray(root_scores, dtype=np.float64)
    if as_root.shape != (n,):
        raise DecodingError(f"root_scores have shape {as_root.shape}, expected ({n},)")
    if root is not None and not 0 <= root < n:
        raise DecodingError(f"root {root} is not in 0..{n - 1}")
    if not (np.isfinite(matrix).all() and np.isfinite(as_root).all()):
        raise DecodingError("scores hold infinities or NaN; use large numbers for forbidden arcs")
    # More than any tree can gain: a second word under the root never pays.
    wide = 1 + 2 * (n + 1) * max(np.abs(matrix).max(), np.abs(as_root).max())
    table = np.full((n + 1, n + 1), -np.inf)
    table[1:, 1:] = matrix
    table[0, 1:] = as_root - wide
    if root is not None:
        others = np.arange(1, n + 1) != root + 1
        table[0, 1:][others] -= n * wide
    np.fill_diagonal(table, -np.inf)
    return table


def _edmonds(table: np.ndarray) -> np.ndarray:
    """Heads under node 0 of the best arborescence; node 0's own entry is -1."""
    n = len(table)
    heads = table.argmax(0)
    heads[0] = -1
    cycle = _cycle(heads)
    if cycle is None:
        return heads
    inside = np.zeros(n, dtype=bool)
    inside[cycle] = True
    outside = np.flatnonzero(~inside)
    kept = table[heads[cycle], cycle]
    # Contract the cycle to one node, the last. An arc into it breaks the arc it replaces.
    size = len(outside) + 1
    small = np.full((size, size), -np.inf)
    small[:-1, :-1] = table[np.ix_(outside, outside)]
    entering = table[np.ix_(outside, cycle)] - kept
    enter_at = entering.argmax(1)
    small[:-1, -1] = entering.max(1)
    leaving = table[np.ix_(cycle, outside)]
    leave_at = leaving.argmax(0)
    small[-1, :-1] = leaving.max(0)
    small[:, 0] = -np.inf  # node 0 comes first among the outsiders and has no head
    found = _edmonds(small)
    result = heads.copy()
    for i, node in enumerate(outside):
        if node == 0:
            continue
        head = found[i]
        result[node] = cycle[leave_at[i]] if head == size - 1 else outside[head]
    entry = found[-1]
    result[cycle[enter_at[entry]]] = outside[entry]
    result[0] = -1
    return result


def _cycle(heads: np.ndarray) -> np.ndarray | None:
    """The nodes of one cycle, or None."""
    state = np.zeros(len(heads), dtype=np.int64)  # 0 unseen, else the walk that saw it
    state[0] = -1
    for start in range(1, len(heads)):
        node, walk = start, []
        while state[node] == 0:
            state[node] = start
            walk.append(node)
            node = int(heads[node])
        if state[node] == start:
            return np.array(walk[walk.index(node) :])
    return None
