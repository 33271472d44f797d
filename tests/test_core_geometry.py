"""Curves over layers, cosines and similarities on vectors small enough to work out by hand."""

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from bertology_utils.activations import Collected
from bertology_utils.encoder import LayerIndexError
from bertology_utils.geometry import (
    LayerScores,
    TooFewError,
    anisotropy,
    collected_blocks,
    explained_by_first_component,
    intra_sentence_similarity,
    layer_change,
    layer_similarity,
    linear_cka,
    max_explainable_variance,
    mean_pairwise_cosine,
    pwcca,
    random_pairs,
    remove_components,
    rsa,
    self_similarity,
    similarity_to_input,
    variance_along_first_component,
    whiten,
)

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def made(vectors, text=None, model="made"):
    """A collection of given vectors [S, N, D]; two rows a text unless told."""
    vectors = np.asarray(vectors, np.float32)
    n = vectors.shape[1]
    text = np.arange(n) // 2 if text is None else np.asarray(text)
    return Collected({"hidden_states": vectors}, text, np.arange(n), "word_mean", model)


# --- curves -------------------------------------------------------------------------------------


def curve(**changes):
    """Two items, of three and of one measured thing, over five layers."""
    fields = {
        "name": "made",
        "unit": "cosine",
        "sums": np.array([[3.0, 0, 3, 6, 9], [1.0, 4, 1, 2, 3]]),
        "counts": np.array([3, 1]),
        "model": "m",
        "seed": 4,
        "controls": {"floor": np.array([0.0, 0.1, 0.2, 0.3, 0.4])},
    }
    return LayerScores(**{**fields, **changes})


def test_a_curve_is_a_ratio_of_sums():
    found = curve()
    np.testing.assert_allclose(found.values, [1, 1, 1, 2, 3])
    assert (found.n, found.n_layers, found.value) == (2, 5, 3.0)
    assert found.draws.shape == (1000, 5)
    assert {round(v, 6) for v in found.draws[:, 1]} == {0.0, 1.0, 4.0}
    one = found.at(1)
    assert (one.value, one.unit, one.n, one.model, one.seed) == (1.0, "cosine", 2, "m", 4)
    assert one.baselines == {"floor": 0.1} and one.interval == (0.0, 4.0)
    assert found.interval == (3.0, 3.0) and found.baselines == {"floor": 0.4}
    assert [e.value for e in found.by_layer()] == [1, 1, 1, 2, 3]
    for layer in (-1, 5):
        with pytest.raises(LayerIndexError, match=rf"layer {layer} is not in 0..4"):
            found.at(layer)


def test_summaries_of_a_curve_by_hand():
    found = curve()
    upper = found.upper_half()  # of layers 1..4 the upper two
    assert upper.value == 2.5
    assert upper.baselines == {"embedding_layer": 1.0, "floor": pytest.approx(0.35)}
    lone = LayerScores("two", "share", np.array([[0.2, 0.6]]), np.ones(1), "m")
    assert lone.upper_half().value == pytest.approx(0.6)
    layer, best = found.best()
    assert (layer, best.value) == (4, 3.0)
    assert best.baselines == {"embedding_layer": 1.0, "floor": 0.4}
    depth = found.depth_correlation()
    assert depth.value == pytest.approx(spearmanr([1, 1, 2, 3], [1, 2, 3, 4]).statistic)
    assert depth.unit == "correlation" and (depth.n, depth.seed) == (2, 4)
    alike = LayerScores("alike", "share", np.tile([0.3, 0.1, 0.9, 0.5], (3, 1)), np.ones(3), "m")
    half = alike.upper_half()  # of layers 1..3 the upper one
    assert (half.value, half.interval) == (0.5, (0.5, 0.5))
    assert half.baselines == {"embedding_layer": pytest.approx(0.3)}
    sums = np.array([[0.0, 0, 1, 3], [0, 0, 1, 1]])
    uneven = LayerScores("uneven", "nats", sums, np.ones(2), "m").upper_half()
    assert (uneven.value, uneven.interval) == (2, (1, 3))
    layer, top = alike.best()
    assert (layer, top.value) == (2, pytest.approx(0.9))
    assert top.baselines == {"embedding_layer": pytest.approx(0.3)}
    flat = LayerScores("flat", "share", np.ones((3, 4)), np.ones(3), "m")
    assert flat.depth_correlation().value == 0 and flat.depth_correlation().interval == (0, 0)
    with pytest.raises(TooFewError, match="2 layers are too few"):
        LayerScores("short", "share", np.ones((3, 3)), np.ones(3), "m").depth_correlation()


def test_mean_of_the_items_own_correlations():
    sums = np.array([[0.0, 1, 2, 3], [0.0, 6, 4, 2], [0.0, 1, 1, 1], [9.0, 9, 9, 9]])
    many = LayerScores(
        "many", "nats", np.random.default_rng(0).normal(size=(60, 6)), np.ones(60), "m"
    )
    assert many.mean_depth_correlation() == many.mean_depth_correlation()
    found = LayerScores("own", "cosine", sums, np.array([1, 2, 1, 0]), "m", 3)
    estimate = found.mean_depth_correlation()
    assert estimate.value == pytest.approx((1 - 1 + 0) / 3)
    assert (estimate.n, estimate.unit, estimate.seed, estimate.model) == (3, "correlation", 3, "m")
    assert estimate.interval[0] < 0 < estimate.interval[1]
    assert estimate == found.mean_depth_correlation(), "the seed decides"
    with pytest.raises(TooFewError, match="2 layers are too few"):
        LayerScores("s", "share", np.ones((3, 3)), np.ones(3), "m").mean_depth_correlation()


def test_a_control_is_taken_off_and_another_put_beside():
    found = curve()
    less = found.minus("floor")
    np.testing.assert_allclose(less.values, found.values - found.controls["floor"])
    assert (less.name, less.unit) == ("made minus floor", "cosine difference")
    assert (less.model, less.seed, less.controls) == ("m", 4, {})
    np.testing.assert_array_equal(less.counts, found.counts)
    assert curve(unit="share").minus("floor").unit == "share difference"
    assert curve(unit="nats").minus("floor").unit == "nats"
    both = found.with_control("other", curve(sums=np.ones((2, 5)) * [[3], [1]]))
    assert both.at(2).baselines == {"floor": 0.2, "other": 1.0}
    assert found.with_control("plain", [1, 2, 3, 4, 5]).at(4).baselines["plain"] == 5.0
    with pytest.raises(ValueError, match=r"shape \(4,\), not \(5,\)"):
        found.with_control("short", np.ones(4))
    with pytest.raises(KeyError, match="no control 'roof'"):
        found.minus("roof")


def test_curves_that_hold_nothing():
    with pytest.raises(ValueError, match="do not fit 2 counts"):
        curve(sums=np.ones((3, 5)))
    with pytest.raises(ValueError, match="do not fit 2 counts"):
        curve(sums=np.ones(2))
    for sums, counts in ((np.ones((2, 5)), np.zeros(2)), (np.ones((0, 5)), np.ones(0))):
        with pytest.raises(TooFewError, match="made: nothing to measure"):
            curve(sums=sums, counts=counts)


# --- cosines ------------------------------------------------------------------------------------


def test_pairs_use_each_row_once_and_cross_texts():
    text = np.array([0, 0, 1, 1, 2, 2, 3])
    seen = set()
    for seed in range(20):
        pairs = random_pairs(text, 10, seed)
        assert len(np.unique(pairs)) == 2 * len(pairs) <= 6
        assert (text[pairs[:, 0]] != text[pairs[:, 1]]).all()
        seen |= {tuple(pair) for pair in pairs.tolist()}
    assert len(seen) > 15
    assert random_pairs(text, 1, 0).shape == (1, 2)
    assert random_pairs(np.array([0, 1]), 5, 0).shape == (1, 2)


def test_anisotropy_of_a_line_and_of_a_cross():
    # Layer 0: all vectors along one line. Layer 1: texts alternate between two axes.
    n = 40
    line = np.outer(np.arange(1, n + 1), [3.0, 4.0])
    cross = np.eye(2)[np.arange(n) // 2 % 2]
    found = anisotropy(made([line, cross, -line]), n_pairs=15, seed=2)
    assert found.values[0] == found.values[2] == pytest.approx(1)
    assert 0.1 < found.values[1] < 0.9
    assert set(found.sums[:, 1].tolist()) <= {0.0, 1.0}
    assert found.n == len(found.sums) <= 15 and found.counts.tolist() == [1] * found.n
    assert (found.name, found.unit, found.model, found.seed) == ("anisotropy", "cosine", "made", 2)
    wide = np.random.default_rng(0).normal(size=(1, 400, 50))
    noise = anisotropy(made(wide, np.arange(400)))
    assert noise.n == 200 and abs(noise.values[0]) < 0.04
    assert noise.controls["isotropic"].shape == (1,)
    # The control is a mean over as many pairs, so small, and the same for every layer.
    assert 0 < abs(noise.controls["isotropic"][0]) < 4 / math.sqrt(50 * 200)
    assert len(set(found.controls["isotropic"])) == 1
    drawn = np.random.default_rng(0).standard_normal((400, 50))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    expected = (drawn[::2] * drawn[1::2]).sum(1).mean()
    assert noise.controls["isotropic"][0] == pytest.approx(expected)


def test_mean_cosine_of_three_vectors():
    vectors = np.array([[2.0, 0], [0, 5], [1, 1]])
    assert mean_pairwise_cosine(vectors) == pytest.approx((0 + 2 / math.sqrt(2)) / 3)
    assert mean_pairwise_cosine(vectors[:2]) == pytest.approx(0)
    with pytest.raises(TooFewError, match="no pairs"):
        mean_pairwise_cosine(vectors[:1])


def test_self_similarity_is_a_mean_over_words():
    vectors = np.array([[1.0, 0], [0, 1], [1, 1], [1, 1], [0, 1], [2, 2]])
    words = {"a": np.array([0, 1]), "b": np.array([2, 3, 5]), "c": np.array([0, 2])}
    found = self_similarity(made([vectors, vectors[::-1]]), words, n_pairs=2, seed=1)
    cosines = [0, 1, math.sqrt(0.5)]
    np.testing.assert_allclose(found.sums[:, 0], cosines, atol=1e-6)
    assert found.values[0] == pytest.approx(sum(cosines) / 3)
    assert (found.name, found.unit, found.model, found.seed, found.n) == (
        "self-similarity", "cosine", "made", 1, 3,
    )  # fmt: skip
    floor = anisotropy(made([vectors, vectors[::-1]]), n_pairs=2, seed=1).values
    np.testing.assert_array_equal(found.controls["anisotropy"], floor)
    apart = made([vectors, vectors[::-1]], range(6))  # up to three pairs
    for pairs in (1, 2):
        one = self_similarity(apart, words, n_pairs=pairs, seed=3).controls["anisotropy"]
        assert one.tolist() == anisotropy(apart, n_pairs=pairs, seed=3).values.tolist()
        assert one.tolist() != anisotropy(apart, n_pairs=3, seed=3).values.tolist()
    with pytest.raises(TooFewError, match="no words"):
        self_similarity(made([vectors]), {})
    with pytest.raises(TooFewError, match="no pairs"):
        self_similarity(made([vectors]), {"a": np.array([0])})


def test_similarity_inside_a_text_by_hand():
    # Text 0: two equal vectors and one across; text 1: a single row, left out; text 2: opposites.
    vectors = np.array([[2.0, 0], [2, 0], [0, 2], [7, 7], [1, 0], [1, 2]])
    found = intra_sentence_similarity(made([vectors], [0, 0, 0, 1, 2, 2]), n_pairs=3, seed=5)
    one = (2 * 2 / math.sqrt(5) + 1 / math.sqrt(5)) / 3
    two = (1 / math.sqrt(2) + 3 / math.sqrt(10)) / 2
    np.testing.assert_allclose(found.sums[:, 0], [one, two], atol=1e-6)
    assert (found.name, found.unit) == ("intra-sentence similarity", "cosine")
    assert (found.n, found.seed, found.model) == (2, 5, "made")
    floor = anisotropy(made([vectors], [0, 0, 0, 1, 2, 2]), n_pairs=3, seed=5).values
    np.testing.assert_array_equal(found.controls["anisotropy"], floor)
    rows = made([vectors], [0, 0, 0, 1, 2, 2])
    lone = intra_sentence_similarity(rows, n_pairs=1, seed=5).controls["anisotropy"]
    assert lone.tolist() == anisotropy(rows, n_pairs=1, seed=5).values.tolist()
    assert lone.tolist() != floor.tolist()
    some = {float(intra_sentence_similarity(rows, max_texts=1, seed=s).values[0]) for s in range(8)}
    assert sorted(some) == [pytest.approx(one), pytest.approx(two)]
    pairs = made(np.random.default_rng(0).normal(size=(1, 200, 3)))
    drawn = [intra_sentence_similarity(pairs, max_texts=40, seed=2).sums.tolist() for _ in "ab"]
    assert drawn[0] == drawn[1]
    # No text is drawn twice.
    alone = [[1.0, 1]] * 8  # texts of one row
    rows = [[1.0, 0], [1, 0], [1, 0], [0, 1], [1, 0], [1, 2], *alone]
    three = made([rows], [0, 0, 1, 1, 2, 2, *range(3, 11)])
    for seed in range(9):
        drawn = intra_sentence_similarity(three, max_texts=2, seed=seed).sums[:, 0]
        assert len(set(drawn.round(6))) == 2
    with pytest.raises(TooFewError, match="no text with two rows"):
        intra_sentence_similarity(made([vectors], range(6)))


def test_how_many_pairs_texts_and_rows_are_taken_for_granted():
    draw = np.random.default_rng(0)
    n = 10_004
    apart = made(draw.normal(size=(1, n, 2)), np.arange(n))
    found = anisotropy(apart)
    assert (found.n, found.seed) == (5000, 0)
    own = self_similarity(apart, {"a": np.arange(4)})
    assert own.controls["anisotropy"].tolist() == found.values.tolist() and own.seed == 0
    paired = made(draw.normal(size=(1, n, 2)), np.arange(n) // 2)
    inside = intra_sentence_similarity(paired)
    assert (inside.n, inside.seed) == (1000, 0)
    floor = anisotropy(paired, n_pairs=5000, seed=0).values
    assert inside.controls["anisotropy"].tolist() == floor.tolist()
    assert layer_change(paired, paired).counts.sum() == 5000
    assert similarity_to_input(paired).counts.sum() == 5000
    alike = layer_similarity(paired, paired)
    assert (alike.n, alike.method, alike.seed) == (2000, "cka", 0)


def test_variance_of_one_vector_by_hand():
    vectors = np.array([[3.0, 0], [-3, 0], [0, 1], [0, -1]])
    assert explained_by_first_component(vectors) == pytest.approx(0.9)
    assert explained_by_first_component(vectors.T) == pytest.approx(0.9)
    assert explained_by_first_component(np.ones((2, 3))) == pytest.approx(1)
    assert variance_along_first_component(vectors) == pytest.approx(0.9)
    assert variance_along_first_component(1e-3 * vectors) == pytest.approx(0.9)
    half = (100 * vectors).astype(np.float16)  # whose squares are more than it holds
    assert variance_along_first_component(half) == pytest.approx(0.9)
    assert explained_by_first_component(half) == pytest.approx(0.9)
    # Moved far off along the second axis, the first direction is that axis, which varies least.
    assert variance_along_first_component(vectors + [0, 100]) == pytest.approx(0.1, abs=0.01)
    assert explained_by_first_component(vectors + [0, 100]) > 0.99
    assert variance_along_first_component(np.ones((2, 3))) == 0
    for wrong in (np.ones((1, 3)), np.zeros((2, 3))):
        with pytest.raises(TooFewError, match="two rows or more"):
            explained_by_first_component(wrong)
    with pytest.raises(TooFewError, match="two rows or more"):
        variance_along_first_component(np.ones((1, 3)))


def test_explainable_variance_beside_random_words():
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(2, 60, 8))
    vectors[1, :5] = vectors[1, 0]
    words = {"same": np.arange(5), "other": np.arange(20, 26)}
    found = max_explainable_variance(made(vectors), words, seed=2)
    assert found.sums[0, 1] == pytest.approx(1)
    for row, word in enumerate(words.values()):
        assert found.sums[row, 0] == pytest.approx(explained_by_first_component(vectors[0, word]))
    assert (found.name, found.unit) == ("maximum explainable variance", "share")
    assert (found.n, found.seed, found.model) == (2, 2, "made")
    assert found.counts.tolist() == [1, 1]
    assert found.controls["random_words"].shape == (2,)
    assert 0.2 < found.controls["random_words"][1] < 0.7
    # Random words of which all are taken are all words.
    whole = {name: np.arange(60) for name in "abc"}
    control = max_explainable_variance(made(vectors), whole, seed=1).controls["random_words"]
    assert control == pytest.approx([explained_by_first_component(v) for v in vectors], rel=1e-5)
    default = max_explainable_variance(made(vectors), words)
    assert default.seed == 0
    for seed in (0, 1):
        again = max_explainable_variance(made(vectors), words, seed=seed).controls["random_words"]
        random = np.random.default_rng(seed)
        groups = [random.choice(60, size, replace=False) for size in (5, 6)]
        expected = [np.mean([explained_by_first_component(v[g]) for g in groups]) for v in vectors]
        assert again == pytest.approx(expected, rel=1e-5)
        assert (again.tolist() == default.controls["random_words"].tolist()) == (seed == 0)
    around = max_explainable_variance(made(vectors), words, kind="around_mean")
    assert around.sums[1, 0] == pytest.approx(variance_along_first_component(vectors[0, 20:26]))
    with pytest.raises(KeyError, match="unknown kind 'all'"):
        max_explainable_variance(made(vectors), words, kind="all")


# --- likeness -----------------------------------------------------------------------------------

X = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]])
Y = np.array([[2.0], [-2], [0], [0]])


def test_cka_by_hand():
    # |X'Y|^2 = 16; |X'X| = |diag(2, 2)| = sqrt(8); |Y'Y| = 8
    assert linear_cka(X, Y) == pytest.approx(16 / (math.sqrt(8) * 8))
    assert linear_cka(X + 5, 3 * Y - 1) == pytest.approx(linear_cka(X, Y))
    assert linear_cka(X + [5, -3], Y) == pytest.approx(linear_cka(X, Y))
    assert linear_cka(Y, X) == pytest.approx(linear_cka(X, Y))
    wide = np.hstack([X, X, X])
    assert linear_cka(wide, X) == pytest.approx(1)
    for wrong in (X[:3], X[0], X[:, 0]):
        with pytest.raises(ValueError, match="need the same rows twice"):
            linear_cka(X, wrong)
        with pytest.raises(ValueError, match="need the same rows twice"):
            linear_cka(wrong, X)
    with pytest.raises(TooFewError, match="1 rows are too few"):
        linear_cka(X[:1], X[:1])
    with pytest.raises(TooFewError, match="all rows are alike"):
        linear_cka(X, np.ones((4, 2)))
    assert linear_cka(X[:2], X[:2]) == pytest.approx(1)
    # Half precision is left before anything is computed.
    far = (X + 100).astype(np.float16)
    assert linear_cka(far, far * 100) == pytest.approx(1, abs=1e-6)


def test_rsa_is_the_rank_correlation_of_cosines():
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(6, 3)), draw.normal(size=(6, 4))

    def cosines(rows):
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return (unit @ unit.T)[np.triu_indices(6, 1)]

    assert rsa(x, y) == pytest.approx(spearmanr(cosines(x), cosines(y)).statistic)
    with pytest.raises(TooFewError, match="2 rows are too few"):
        rsa(x[:2], y[:2])
    assert -1 <= rsa(x[:3], y[:3]) <= 1
    with pytest.raises(TooFewError, match="equally similar"):
        rsa(x, np.ones((6, 2)))
    with pytest.raises(ValueError, match="need the same rows twice"):
        rsa(x, y[:5])


def test_pwcca_weighs_correlations_by_what_they_carry():
    draw = np.random.default_rng(1)
    u = np.linalg.qr(draw.normal(size=(50, 4)) - 0)[0]
    u = np.linalg.qr(u - u.mean(0))[0]
    x = np.stack([5 * u[:, 0], 1 * u[:, 1]], axis=1)
    # y shares the first direction wholly, and the second at a correlation of 0.6.
    y = np.stack([u[:, 0], 0.6 * u[:, 1] + 0.8 * u[:, 2]], axis=1)
    assert pwcca(x, y) == pytest.approx((5 * 1 + 1 * 0.6) / 6, abs=1e-6)
    assert pwcca(x + 3, 2 * y) == pytest.approx(pwcca(x, y))
    assert pwcca(x[:, :1], y) == pytest.approx(1) and pwcca(x[:, 1:], y) == pytest.approx(0.6)
    with pytest.raises(TooFewError, match="2 rows for 2 columns"):
        pwcca(x[:2], y[:2])
    with pytest.raises(TooFewError, match="all rows are alike"):
        pwcca(np.ones((5, 2)), np.ones((5, 2)))
    with pytest.raises(ValueError, match="need the same rows twice"):
        pwcca(x, y[:9])
    # A direction that y knows nothing of has no part in any correlation.
    more = np.hstack([x, u[:, 3:4]])
    assert pwcca(more, y) == pytest.approx((5 * 1 + 1 * 0.6) / 6, abs=1e-6)
    # A direction that hardly varies counts for nothing.
    faint = np.hstack([x, 1e-6 * u[:, 3:4]])
    assert pwcca(faint, y) == pytest.approx(pwcca(x, y), abs=1e-3)


def two_models():
    draw = np.random.default_rng(3)
    first = draw.normal(size=(2, 30, 3))
    second = np.stack([first[0], draw.normal(size=(30, 3)), first[1]])
    return made(first), made(second, model="other")


@pytest.mark.parametrize("method", ["cka", "rsa", "pwcca"])
def test_layers_are_compared_pair_by_pair(method):
    first, second = two_models()
    found = layer_similarity(first, second, method=method, seed=1)
    measure = {"cka": linear_cka, "rsa": rsa, "pwcca": pwcca}[method]
    assert found.matrix.shape == found.shuffled.shape == (2, 3)
    assert [found.matrix[0, 0], found.matrix[1, 2]] == pytest.approx([1, 1])
    x, y = first.arrays["hidden_states"][1], second.arrays["hidden_states"][1]
    assert found.matrix[1, 1] == pytest.approx(measure(x, y))
    assert found.shuffled[0, 0] < 0.7
    draw = np.random.default_rng(1)
    draw.permutation(30)  # of which rows are taken: all
    mixed = y[draw.permutation(30)]
    assert found.shuffled[1, 1] == pytest.approx(measure(x, mixed))
    assert (found.method, found.n, found.models, found.seed) == (method, 30, ("made", "other"), 1)
    one = found.at(1, 2)
    assert (one.value, one.n, one.model, one.seed) == (found.matrix[1, 2], 30, "made and other", 1)
    assert one.unit == ("correlation" if method == "rsa" else "share")
    assert one.baselines == {"shuffled": found.shuffled[1, 2]}
    with pytest.raises(ValueError, match="'made' and 'other' differ in depth"):
        found.same_depth()
    same = layer_similarity(first, first, method=method)
    assert same.same_depth().value == pytest.approx(1) and same.same_depth().model == "made"
    assert same.same_depth().baselines["shuffled"] == pytest.approx(same.shuffled.trace() / 2)
    again = layer_similarity(first, second, method=method, seed=1)
    assert again.shuffled.tolist() == found.shuffled.tolist()
    assert (
        layer_similarity(first, second, method=method, seed=2).shuffled[0, 0]
        != (found.shuffled[0, 0])
    )
    some = layer_similarity(first, second, method=method, max_rows=12)
    assert some.n == 12 and some.matrix[0, 0] == pytest.approx(1)
    with pytest.raises(KeyError, match="unknown method 'dot'"):
        layer_similarity(first, second, method="dot")
    with pytest.raises(ValueError, match="not of the same rows"):
        layer_similarity(first, made(np.ones((1, 30, 3)), np.arange(30)), method=method)


def test_change_and_likeness_to_the_input_by_hand():
    before = np.array([[[1.0, 0], [1, 0], [0, 2]], [[1, 0], [0, 1], [1, 1]]])
    after = np.array([[[3.0, 0], [0, 1], [0, -2]], [[2, 0], [0, 5], [1, 1]]])
    text = [0, 0, 1]
    found = layer_change(made(before, text), made(after, text, "tuned"), seed=2)
    np.testing.assert_allclose(found.sums, [[0 + 1, 0], [2, 0]], atol=1e-6)
    assert found.counts.tolist() == [2, 1]
    assert (found.name, found.unit) == ("change of vectors", "cosine difference")
    assert (found.model, found.seed, found.n) == ("tuned", 2, 2)
    some = layer_change(made(before, text), made(after, text), max_rows=2)
    assert some.counts.sum() == 2
    with pytest.raises(ValueError, match="not of the same rows"):
        layer_change(made(before, text), made(after, [0, 1, 1]))
    like = similarity_to_input(made(before, text), seed=3)
    np.testing.assert_allclose(like.sums, [[2, 1], [1, math.sqrt(0.5)]], atol=1e-6)
    assert (like.name, like.unit, like.seed) == ("similarity to the input", "cosine", 3)
    assert like.model == "made" and like.counts.tolist() == [2, 1]
    assert similarity_to_input(made(before, text), max_rows=1).counts.tolist() == [1]


def test_rows_are_drawn_by_the_seed():
    draw = np.random.default_rng(0)
    before, after = (made(draw.normal(size=(1, 90, 3))) for _ in range(2))
    for measure in (
        lambda **seed: layer_change(before, after, max_rows=30, **seed).sums.tolist(),
        lambda **seed: similarity_to_input(after, max_rows=30, **seed).counts.tolist(),
    ):
        assert measure() == measure(seed=0) != measure(seed=1) == measure(seed=1)


# --- transforms ---------------------------------------------------------------------------------

#: variance 36 / 5 along the first axis, 2 / 5 along the second, none along the third
CLOUD = np.array([[3.0, 0, 5], [-3, 0, 5], [3, 0, 5], [-3, 0, 5], [0, 1, 5], [0, -1, 5]])


def test_removing_the_strongest_direction():
    centred = remove_components(CLOUD, 0)
    np.testing.assert_allclose(centred(CLOUD), CLOUD - [0, 0, 5])
    np.testing.assert_allclose(centred.mean, [0, 0, 5])
    np.testing.assert_allclose(centred.explained, [36 / 38, 2 / 38, 0], atol=1e-12)
    assert centred.n == 6
    one = remove_components(CLOUD, 1)
    np.testing.assert_allclose(one(CLOUD), (CLOUD - [0, 0, 5]) * [0, 1, 1], atol=1e-12)
    np.testing.assert_allclose(remove_components(CLOUD, 2)(CLOUD), 0, atol=1e-12)
    for k in (-1, 3):
        with pytest.raises(ValueError, match=f"k is {k}, of 3 directions"):
            remove_components(CLOUD, k)
    with pytest.raises(TooFewError, match="1 vectors have no covariance"):
        remove_components(CLOUD[:1], 0)
    with pytest.raises(ValueError, match="2 wide, not 3"):
        one(CLOUD[:, :2])
    np.testing.assert_allclose(one(CLOUD[4]), [0, 1, 0], atol=1e-12)
    assert one(CLOUD[None, :, None]).shape == (1, 6, 1, 3)
    half = (100 * CLOUD).astype(np.float16)  # whose squares are more than it holds
    np.testing.assert_allclose(remove_components(half, 0).explained, centred.explained, atol=1e-12)
    assert remove_components(CLOUD[:2], 0).n == 2


def test_blocks_of_rows_give_what_all_rows_give():
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(50, 4)) * [1, 2, 3, 4] + 100
    whole = remove_components(rows, 1)
    parts = remove_components(iter([rows[:7], rows[7:8], rows[8:]]), 1)
    blocks = list(collected_blocks(made([rows, 2 * rows]), 1, size=20))
    assert [len(block) for block in blocks] == [20, 20, 10]
    many = collected_blocks(made(np.zeros((1, 16_400, 1))), 0)
    assert [len(block) for block in many] == [16_384, 16]
    np.testing.assert_allclose(np.concatenate(blocks), 2 * rows, rtol=1e-6)
    other = Collected({"z": rows[None]}, np.arange(50), np.arange(50), "word_mean", "m")
    assert len(list(collected_blocks(other, 0, name="z"))) == 1
    np.testing.assert_allclose(parts.mean, rows.mean(0))
    np.testing.assert_allclose(parts.matrix, whole.matrix, atol=1e-9)
    np.testing.assert_allclose(parts.explained, whole.explained)
    values = np.linalg.eigvalsh(np.cov(rows.T))[::-1]
    np.testing.assert_allclose(whole.explained, values / values.sum())


def test_whitened_vectors_have_unit_variance():
    full = whiten(CLOUD)
    assert full.matrix.shape == (3, 2)  # the third axis does not vary
    np.testing.assert_allclose(np.cov(full(CLOUD).T), np.eye(2), atol=1e-9)
    np.testing.assert_allclose(full.explained, [36 / 38, 2 / 38, 0], atol=1e-12)
    np.testing.assert_allclose(whiten(1e-3 * CLOUD).explained, full.explained, atol=1e-12)
    one = whiten(CLOUD, 1)
    np.testing.assert_allclose(np.abs(one(CLOUD)[:, 0]), np.abs(CLOUD[:, 0]) / math.sqrt(36 / 5))
    assert one.n == 6
    for scale in (1e-8, 1e-4, 1, 1e4):  # what hardly varies is left out, whatever the scale
        assert whiten(scale * (CLOUD + np.outer(np.arange(6), [0, 0, 1e-7]))).matrix.shape == (3, 2)
    # Shares of the largest variance: 1, 1e-8 and 1e-12, the last of which is too little.
    signs = np.array(np.meshgrid([-1.0, 1], [-1.0, 1], [-1.0, 1])).reshape(3, 8).T
    assert whiten(signs * [1, 1e-4, 1e-6]).matrix.shape == (3, 2)
    assert whiten(signs * [1, 1e-4, 2e-5]).matrix.shape == (3, 3)
    assert whiten(signs[:, :1]).matrix.shape == (1, 1)
    for wrong in (0, 3):
        with pytest.raises(ValueError, match=f"{wrong} components asked for, 2 directions"):
            whiten(CLOUD, wrong)
    with pytest.raises(ValueError, match="0 directions have variance"):
        whiten(np.ones((4, 2)))
