"""How close are predicted trees, distances and depths to the gold ones? Definitions in full.

* **UUAS** (undirected unlabelled attachment score): share of the gold edges that are in the
  predicted tree, over all edges of all sentences. Words tagged PUNCT are taken out first: edges
  that touch them do not count, and the spanning tree is built over the other words.
* **UAS**: share of the words (PUNCT and the root aside) with the right head. Words whose gold head
  is punctuation are counted as they stand.
* **Root accuracy**: share of the sentences whose predicted root is right, PUNCT excluded.
* **DSpr**: for every word the Spearman correlation of its predicted and gold distances to all words
  (itself included); mean over the words of a sentence, then over the sentences of one length, then
  over the lengths 5 to 50.
* **NSpr**: Spearman correlation of predicted and gold depths in a sentence; means as for DSpr.

Punctuation counts as words in the two correlations, as in Hewitt and Manning 2019 (N19-1419).
"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from ..stimuli import Sentence
from .decoding import spanning_edges
from .errors import ProbeError, UnequalLengthError

#: lengths, in words, over which DSpr and NSpr are averaged
SPEARMAN_LENGTHS = range(5, 51)


def content_words(sentence: Sentence) -> np.ndarray:
    """Words that are not punctuation, 0-based."""
    return np.flatnonzero(np.array(sentence.upos) != "PUNCT")


def gold_edges(sentence: Sentence) -> set[tuple[int, int]]:
    """Edges (smaller word, larger word) between words that are not punctuation."""
    keep = set(content_words(sentence).tolist())
    return {
        (min(head, word), max(head, word))
        for head, word, _ in sentence.edges()
        if head in keep and word in keep
    }


def edge_hits(
    edges: Sequence[np.ndarray], sentences: Sequence[Sentence]
) -> tuple[np.ndarray, np.ndarray]:
    """Right edges and gold edges of every sentence: UUAS is the ratio of the sums.

    Args:
        edges: for every sentence [m, 2] predicted pairs of words, 0-based.
        sentences: the gold.

    Raises:
        UnequalLengthError: not one set of edges for each sentence.
    """
    if len(edges) != len(sentences):
        raise UnequalLengthError(f"{len(edges)} sets of edges for {len(sentences)} sentences")
    hits, totals = np.zeros(len(sentences)), np.zeros(len(sentences))
    for i, (found, sentence) in enumerate(zip(edges, sentences, strict=True)):
        gold = gold_edges(sentence)
        said = {(min(a, b), max(a, b)) for a, b in np.asarray(found).reshape(-1, 2).tolist()}
        hits[i], totals[i] = len(gold & said), len(gold)
    return hits, totals


def uuas(edges: Sequence[np.ndarray], sentences: Sequence[Sentence]) -> float:
    """Undirected unlabelled attachment score, as defined above.

    Raises:
        ProbeError: no gold edge in any sentence.
        UnequalLengthError: as :func:`edge_hits`.
    """
    hits, totals = edge_hits(edges, sentences)
    if not totals.sum():
        raise ProbeError("the sentences hold no edge between two words")
    return float(hits.sum() / totals.sum())


def spanning_trees(
    distances: Sequence[np.ndarray], sentences: Sequence[Sentence]
) -> list[np.ndarray]:
    """Minimum spanning tree of every sentence over its words that are not punctuation.

    Args:
        distances: for every sentence [n, n].
        sentences: the sentences, for their tags.

    Returns:
        For every sentence [m, 2] edges, 0-based in the whole sentence.
    """
    kept = [content_words(sentence) for sentence in sentences]
    trees: list[np.ndarray] = [np.empty((0, 2), dtype=np.int64)] * len(sentences)
    # Sentences with equally many words share one vectorised run.
    groups: dict[int, list[int]] = {}
    for i, words in enumerate(kept):
        if len(words) > 1:
            groups.setdefault(len(words), []).append(i)
    for members in groups.values():
        stack = np.stack([distances[i][np.ix_(kept[i], kept[i])] for i in members])
        for i, edges in zip(members, spanning_edges(stack), strict=True):
            trees[i] = kept[i][edges]
    return trees


def head_hits(
    heads: Sequence[Sequence[int]], sentences: Sequence[Sentence]
) -> tuple[np.ndarray, np.ndarray]:
    """Words with the right head and words counted, of every sentence: UAS is their ratio.

    Args:
        heads: for every sentence its predicted heads, 1-based, 0 for the root.

    Raises:
        UnequalLengthError: sentences or words that do not match.
    """
    if len(heads) != len(sentences):
        raise UnequalLengthError(f"heads for {len(heads)} of {len(sentences)} sentences")
    hits, totals = np.zeros(len(sentences)), np.zeros(len(sentences))
    for i, (said, sentence) in enumerate(zip(heads, sentences, strict=True)):
        if len(said) != len(sentence):
            raise UnequalLengthError(
                f"{len(said)} heads for the {len(sentence)} words of {sentence.text!r}"
            )
        for word in content_words(sentence).tolist():
            if sentence.heads[word]:
                totals[i] += 1
                hits[i] += said[word] == sentence.heads[word]
    return hits, totals


def uas(heads: Sequence[Sequence[int]], sentences: Sequence[Sentence]) -> float:
    """Unlabelled attachment score, as defined above; errors as :func:`uuas`."""
    hits, totals = head_hits(heads, sentences)
    if not totals.sum():
        raise ProbeError("the sentences hold no word with a head")
    return float(hits.sum() / totals.sum())


def root_hits(depths: Sequence[np.ndarray], sentences: Sequence[Sentence]) -> np.ndarray:
    """[sentences] True where the word of least depth, punctuation aside, is the root."""
    hits = []
    for depth, sentence in zip(depths, sentences, strict=True):
        words = content_words(sentence)
        hits.append(len(words) > 0 and words[np.argmin(depth[words])] == sentence.root)
    return np.array(hits, dtype=bool)


def chain(sentence: Sentence) -> np.ndarray:
    """Every word tied to the next, punctuation left out: the right- and the left-branching
    baseline are the same chain once arcs have no direction."""
    words = content_words(sentence)
    return np.stack([words[:-1], words[1:]], axis=1)


def branching_heads(sentence: Sentence, direction: str) -> tuple[int, ...]:
    """Directed chain baselines.

    Args:
        direction: ``"right"``: each word hangs from the one before, the first is the root;
            ``"left"``: from the one after, the last is the root. Punctuation takes no part and
            hangs from the root.

    Raises:
        ValueError: another direction.
    """
    if direction not in ("right", "left"):
        raise ValueError(f"direction is {direction!r}, must be 'right' or 'left'")
    words = content_words(sentence)
    words = (words if direction == "right" else words[::-1]).tolist()
    words = words or list(range(len(sentence)))
    heads = [words[0] + 1] * len(sentence)
    heads[words[0]] = 0
    for head, word in zip(words, words[1:], strict=False):
        heads[word] = head + 1
    return tuple(heads)


def spearman_by_length(predicted: Sequence[np.ndarray], gold: Sequence[np.ndarray]) -> dict:
    """Mean Spearman correlation of the sentences of every length.

    Args:
        predicted, gold: for every sentence [n, n] distances (correlated row by row) or [n] depths.

    Returns:
        length -> mean over its sentences. Rows where either side is constant have no correlation
        and are left out.
    """
    groups: dict[int, list[int]] = {}
    for i, rows in enumerate(gold):
        groups.setdefault(len(rows), []).append(i)
    means = {}
    for length in sorted(groups):
        members = groups[length]
        said = np.stack([np.atleast_2d(predicted[i]) for i in members])
        true = np.stack([np.atleast_2d(gold[i]) for i in members])
        by_row = _pearson(rankdata(said, axis=-1), rankdata(true, axis=-1))
        valid = ~np.isnan(by_row)
        of_sentence = np.where(valid, by_row, 0).sum(1) / np.maximum(valid.sum(1), 1)
        if (counted := valid.any(1)).any():
            means[length] = float(of_sentence[counted].mean())
    return means


def mean_spearman(by_length: dict[int, float]) -> float | None:
    """Mean over the lengths 5 to 50; None if there are none."""
    values = [value for length, value in by_length.items() if length in SPEARMAN_LENGTHS]
    return float(np.mean(values)) if values else None


def _pearson(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a = a - a.mean(-1, keepdims=True)
    b = b - b.mean(-1, keepdims=True)
    below = np.sqrt((a**2).sum(-1) * (b**2).sum(-1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > 0, (a * b).sum(-1) / below, np.nan)
