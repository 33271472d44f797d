"""Tree decoders against brute force, networkx and scipy; tree scores against hand counts."""

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.stats import spearmanr
from sentences import sentence

from bertology_utils.probes import DecodingError, ProbeError, UnequalLengthError
from bertology_utils.probes import tree_metrics as metrics
from bertology_utils.probes.decoding import (
    eisner,
    heads_from_edges,
    max_arborescence,
    spanning_edges,
)
from bertology_utils.stimuli import TreeError, treebank
from bertology_utils.stimuli.trees import check_heads


def all_trees(n):
    for heads in itertools.product(range(n + 1), repeat=n):
        try:
            check_heads(heads)
        except TreeError:
            continue
        yield heads


def value(heads, scores, root_scores):
    return sum(root_scores[d] if h == 0 else scores[h - 1, d] for d, h in enumerate(heads))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_directed_decoders_find_the_best_tree_of_all(n):
    rng = np.random.default_rng(n)
    trees = list(all_trees(n))
    projective = [heads for heads in trees if sentence(heads).projective()]
    for trial in range(15):
        scores, roots = rng.normal(size=(n, n)), rng.normal(size=n)
        if trial % 3 == 0:
            scores -= 5  # negative scores must not tempt anyone into several roots
        for decode, pool in ((max_arborescence, trees), (eisner, projective)):
            best = max(value(heads, scores, roots) for heads in pool)
            found = decode(scores, root_scores=roots)
            check_heads(found)
            assert value(found, scores, roots) == pytest.approx(best)
            root = trial % n
            given = [heads for heads in pool if heads[root] == 0]
            found = decode(scores, root=root)
            assert found[root] == 0
            assert value(found, scores, np.zeros(n)) == pytest.approx(
                max(value(heads, scores, np.zeros(n)) for heads in given)
            )


def test_arborescence_equals_networkx_on_long_sentences():
    rng = np.random.default_rng(0)
    for n in (12, 25, 40):
        scores = rng.normal(size=(n, n))
        found = max_arborescence(scores, root=3)
        graph = nx.DiGraph()
        for h, d in itertools.permutations(range(n), 2):
            if d != 3:
                graph.add_edge(h, d, weight=scores[h, d])
        theirs = nx.maximum_spanning_arborescence(graph)
        assert {(h - 1, d) for d, h in enumerate(found) if h} == set(theirs.edges)


def test_eisner_returns_projective_gold_trees():
    for gold in treebank(40, seed=5):
        if not gold.projective():
            continue
        scores = np.zeros((len(gold), len(gold)))
        for head, word, _ in gold.edges():
            scores[head, word] = 1.0
        assert eisner(scores, root=gold.root) == gold.heads
        assert max_arborescence(scores, root=gold.root) == gold.heads


def test_spanning_trees_equal_scipy():
    rng = np.random.default_rng(0)
    stack = rng.random((30, 9, 9)) + 0.1
    stack = stack + stack.swapaxes(1, 2)
    for matrix, edges in zip(stack, spanning_edges(stack), strict=True):
        theirs = minimum_spanning_tree(np.triu(matrix)).toarray()
        assert {tuple(edge) for edge in edges.tolist()} == set(
            zip(*np.nonzero(theirs), strict=True)
        )
    assert spanning_edges(np.zeros((1, 1))).shape == (0, 2)
    forbidden = np.full((3, 3), np.inf)
    assert len(heads_from_edges(spanning_edges(forbidden), 0)) == 3


def test_distances_of_a_tree_give_the_tree_back():
    for gold in treebank(30, seed=1):
        edges = spanning_edges(np.array(gold.distances()))
        assert heads_from_edges(edges, gold.root) == gold.heads


def test_bad_scores_are_named():
    with pytest.raises(DecodingError, match=r"\(0, 1\) is NaN"):
        eisner([[0, np.nan], [1, 0]])
    with pytest.raises(DecodingError, match="infinities"):
        max_arborescence([[0, np.inf], [1, 0]])
    with pytest.raises(DecodingError, match="shape"):
        eisner(np.zeros((2, 3)))
    with pytest.raises(DecodingError, match="without words"):
        spanning_edges(np.zeros((0, 0)))
    with pytest.raises(DecodingError, match="root 5"):
        max_arborescence(np.zeros((2, 2)), root=5)
    with pytest.raises(DecodingError, match="root_scores"):
        eisner(np.zeros((2, 2)), root_scores=[1.0])
    with pytest.raises(DecodingError, match="cycle"):
        heads_from_edges([[0, 1], [1, 2], [2, 0]], 3)
    with pytest.raises(DecodingError, match="root 3"):
        heads_from_edges([[0, 1], [1, 2]], 3)
    with pytest.raises(DecodingError, match="edge"):
        heads_from_edges([[0, 1], [1, 7]], 0)


def test_uuas_leaves_punctuation_out():
    gold = sentence([2, 0, 2, 2], ["NOUN", "VERB", "NOUN", "PUNCT"])
    assert metrics.gold_edges(gold) == {(0, 1), (1, 2)}
    assert metrics.uuas([np.array([[0, 1], [2, 0], [1, 3]])], [gold]) == 0.5
    assert metrics.uuas([metrics.chain(gold)], [gold]) == 1.0
    # The punctuation mark is near to all, yet the tree is built without it.
    distances = np.array([[0, 2, 3, 1], [2, 0, 2, 1], [3, 2, 0, 1], [1, 1, 1, 0]], dtype=float)
    (tree,) = metrics.spanning_trees([distances], [gold])
    assert tree.tolist() == [[0, 1], [1, 2]]
    with pytest.raises(ProbeError, match="no edge"):
        metrics.uuas([np.empty((0, 2))], [sentence([0])])
    with pytest.raises(UnequalLengthError):
        metrics.uuas([], [gold])


def test_uas_and_the_directed_chains():
    gold = sentence([2, 0, 2, 2], ["NOUN", "VERB", "NOUN", "PUNCT"])
    assert metrics.branching_heads(gold, "right") == (0, 1, 2, 1)
    assert metrics.branching_heads(gold, "left") == (2, 3, 0, 3)
    assert metrics.uas([metrics.branching_heads(gold, "right")], [gold]) == 0.5
    assert metrics.uas([gold.heads], [gold]) == 1.0
    with pytest.raises(ValueError, match="'up'"):
        metrics.branching_heads(gold, "up")
    with pytest.raises(UnequalLengthError, match="3 heads"):
        metrics.uas([(0, 1, 1)], [gold])


def test_root_is_the_shallowest_word_that_is_no_punctuation():
    gold = sentence([2, 0, 2, 2], ["NOUN", "VERB", "NOUN", "PUNCT"])
    assert metrics.root_hits([np.array([2, 1, 2, 0.5])], [gold]).tolist() == [True]
    assert metrics.root_hits([np.array([0, 1, 2, 0.5])], [gold]).tolist() == [False]


def test_spearman_equals_scipy_and_averages_over_lengths():
    rng = np.random.default_rng(0)
    gold = [np.array(s.distances(), dtype=float) for s in treebank(40, seed=2)]
    said = [d + rng.normal(size=d.shape) for d in gold]
    by_length = metrics.spearman_by_length(said, gold)
    slow: dict[int, list[float]] = {}
    for p, g in zip(said, gold, strict=True):
        rows = [spearmanr(a, b).statistic for a, b in zip(p, g, strict=True)]
        slow.setdefault(len(g), []).append(float(np.mean(rows)))
    assert by_length == pytest.approx({n: np.mean(v) for n, v in slow.items()})
    kept = [v for n, v in by_length.items() if 5 <= n <= 50]
    assert metrics.mean_spearman(by_length) == pytest.approx(np.mean(kept))
    assert metrics.mean_spearman({3: 1.0}) is None
    depths = metrics.spearman_by_length([np.ones(6)], [np.arange(6)])
    assert depths == {}  # a constant has no rank correlation
