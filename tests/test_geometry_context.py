"""Anisotropy, self-similarity, variance, transforms, and the curves that carry them."""

import itertools

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.decomposition import TruncatedSVD

from bertology_utils.activations import Collected, collect
from bertology_utils.encoder import LayerIndexError
from bertology_utils.geometry import (
    LayerScores,
    TooFewError,
    anisotropy,
    collected_blocks,
    explained_by_first_component,
    intra_sentence_similarity,
    layer_rows,
    max_explainable_variance,
    mean_pairwise_cosine,
    occurrences,
    piece_ids,
    random_pairs,
    remove_components,
    rows_at,
    self_similarity,
    similarity_to_input,
    variance_along_first_component,
    whiten,
    word_labels,
)


def made(vectors, per_text=4):
    """A collection of given vectors [S, N, D], four rows a text."""
    n = vectors.shape[1]
    text = np.arange(n) // per_text
    return Collected({"hidden_states": vectors}, text, np.arange(n) % per_text, "word_mean", "made")


def gaussian(seed, layers=3, n=4000, width=32):
    return np.random.default_rng(seed).standard_normal((layers, n, width)).astype(np.float32)


# --- the cone -----------------------------------------------------------------------------------


def test_isotropic_noise_has_no_cone_and_the_interval_says_so():
    held = 0
    for seed in range(20):
        scores = anisotropy(made(gaussian(seed, n=1200)), n_pairs=600, seed=seed)
        for estimate in scores.by_layer():
            low, high = estimate.interval
            assert abs(estimate.value) < 0.04
            held += low <= 0 <= high
    assert held >= 52, "a 95 % interval must hold the true 0 in about 57 of 60 cases"


def test_a_cone_is_seen_and_removing_the_mean_opens_it():
    vectors = gaussian(1)
    vectors[1] += 1.0  # one common direction of length sqrt(D)
    scores = anisotropy(made(vectors))
    assert scores.at(1).value == pytest.approx(0.5, abs=0.03)
    assert scores.at(1).interval[0] > 0.4 > abs(scores.at(0).value)
    assert abs(scores.controls["isotropic"][0]) < 0.03
    centred = np.stack([remove_components(layer, 0)(layer) for layer in vectors])
    assert abs(anisotropy(made(centred)).at(1).value) < 0.03


def test_random_pairs_are_independent_and_across_texts():
    text = np.arange(100) // 5
    pairs = random_pairs(text, 30, seed=0)
    assert pairs.shape == (30, 2) and len(np.unique(pairs)) == 60
    assert (text[pairs[:, 0]] != text[pairs[:, 1]]).all()
    with pytest.raises(TooFewError):
        random_pairs(np.zeros(10, int), 5, seed=0)


@pytest.mark.parametrize("seed", range(8))
def test_the_one_pair_of_few_rows_is_found(seed):
    text = np.array([0, 0, 0, 1])
    (pair,) = random_pairs(text, 5, seed)
    assert sorted(text[pair]) == [0, 1]


# --- context ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 17, 60])
def test_closed_form_equals_the_pairwise_mean(n):
    vectors = np.random.default_rng(n).standard_normal((n, 24)) + 0.5
    slow = [
        a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        for a, b in itertools.combinations(vectors, 2)
    ]
    assert mean_pairwise_cosine(vectors) == pytest.approx(np.mean(slow), abs=1e-6)
    single = vectors.astype(np.float32)
    assert mean_pairwise_cosine(single) == pytest.approx(np.mean(slow), abs=1e-6)
    with pytest.raises(TooFewError):
        mean_pairwise_cosine(vectors[:1])


def test_static_vectors_are_fully_self_similar():
    draw = np.random.default_rng(0)
    words = draw.standard_normal((10, 16))
    kind = np.arange(400) % 10
    static = words[kind].astype(np.float32)
    noisy = static + draw.standard_normal((400, 16)).astype(np.float32)
    collected = made(np.stack([static, noisy]))
    groups = {str(k): np.flatnonzero(kind == k)[:20] for k in range(10)}
    scores = self_similarity(collected, groups)
    assert scores.at(0).value == pytest.approx(1)
    assert 0.3 < scores.at(1).value < 0.7
    adjusted = scores.minus("anisotropy")
    np.testing.assert_allclose(adjusted.values, scores.values - scores.controls["anisotropy"])
    assert adjusted.unit == "cosine difference" and adjusted.n == 10
    variance = max_explainable_variance(collected, groups)
    assert variance.at(0).value == pytest.approx(1)
    assert variance.at(1).value < 0.9
    assert variance.controls["random_words"][1] < variance.at(1).value


def test_first_component_is_that_of_the_singular_values():
    for shape in ((5, 30), (30, 5)):
        vectors = np.random.default_rng(3).standard_normal(shape)
        values = np.linalg.svd(vectors, compute_uv=False) ** 2
        assert explained_by_first_component(vectors) == pytest.approx(values[0] / values.sum())
    with pytest.raises(TooFewError):
        explained_by_first_component(np.zeros((4, 3)))


def test_variance_around_the_mean_is_that_of_truncated_svd():
    draw = np.random.default_rng(0)
    for mean in (0.0, 3.0):
        vectors = draw.standard_normal((9, 20)) + mean
        theirs = TruncatedSVD(1, algorithm="arpack").fit(vectors).explained_variance_ratio_[0]
        assert variance_along_first_component(vectors) == pytest.approx(theirs)
    # One far-off static vector and small noise: nearly all is explained, and nearly nothing.
    assert explained_by_first_component(vectors) > 0.8 > 0.3 > theirs
    assert variance_along_first_component(np.ones((3, 4))) == 0
    with pytest.raises(TooFewError):
        variance_along_first_component(np.ones((1, 4)))
    with pytest.raises(KeyError, match="half"):
        max_explainable_variance(made(gaussian(0, n=40)), {"a": np.arange(9)}, kind="half")


def test_intra_sentence_similarity_by_hand():
    vectors = gaussian(5, layers=2, n=40, width=8)
    scores = intra_sentence_similarity(made(vectors))
    slow = []
    for text in range(10):
        rows = vectors[1, 4 * text : 4 * text + 4].astype(float)
        mean = rows.mean(0)
        slow.append(np.mean([r @ mean / np.linalg.norm(r) / np.linalg.norm(mean) for r in rows]))
    assert scores.at(1).value == pytest.approx(np.mean(slow), abs=1e-6)
    same = intra_sentence_similarity(made(np.repeat(vectors[:, ::4], 4, axis=1)))
    np.testing.assert_allclose(same.values, 1, atol=1e-6)


def test_similarity_to_the_input_starts_at_one():
    vectors = gaussian(6)
    vectors[1] = vectors[0] * 3
    scores = similarity_to_input(made(vectors))
    np.testing.assert_allclose(scores.values[:2], 1, atol=1e-6)
    assert abs(scores.values[2]) < 0.05


# --- rows ---------------------------------------------------------------------------------------


def test_labels_fit_the_rows(any_encoder, texts):
    words = collect(any_encoder, texts, reduce="word_mean")
    labels = word_labels(any_encoder, texts)
    assert len(labels) == len(words)
    assert labels[words.rows_of(2)].tolist() == ["dogs", "bark", "."]
    pieces = collect(any_encoder, texts, reduce="piece")
    ids = piece_ids(any_encoder, texts)
    assert len(ids) == len(pieces)
    assert ids[pieces.rows_of(1)][0] == any_encoder.tokenizer.cls_token_id
    row = rows_at(words, [(1, 2), (0, 0)])
    assert labels[row].tolist() == ["to", "the"]
    for bad in ((0, 99), (9, 0), (3, -1)):
        with pytest.raises(IndexError, match="no row"):
            rows_at(words, [bad])


def test_occurrences_count_texts_not_tokens():
    labels = np.array(["cat", "cat", "dog", "cat", "cat", "dog", ".", ".", "cat"])
    text = np.array([0, 0, 0, 1, 2, 2, 2, 3, 3])
    found = occurrences(labels, text, min_count=2)
    assert set(found) == {"cat", "dog"}
    assert found["cat"].tolist() == [0, 3, 4, 8] and found["dog"].tolist() == [2, 5]
    assert len(occurrences(labels, text, min_count=2, max_count=3)["cat"]) == 3
    with pytest.raises(TooFewError):
        occurrences(labels, text, min_count=5)
    with pytest.raises(ValueError, match="min_count"):
        occurrences(labels, text, min_count=1)


def test_measures_are_the_same_from_disk(tiny_bert, texts, tmp_path):
    many = [f"{a} {b}" for a in ("the cat", "a dog", "old keys") for b in ("sat", "bark", "is")]
    memory = collect(tiny_bert, many)
    disk = collect(tiny_bert, many, out=tmp_path / "rows")
    labels = word_labels(tiny_bert, many)
    words = occurrences(labels, memory.text_index, min_count=3)
    for measure in (anisotropy, intra_sentence_similarity):
        np.testing.assert_array_equal(measure(memory).values, measure(disk).values)
    np.testing.assert_array_equal(
        self_similarity(memory, words).values, self_similarity(disk, words).values
    )
    np.testing.assert_array_equal(layer_rows(disk, 2, np.array([3, 1])),
                                  memory.arrays["hidden_states"][2, [3, 1]])  # fmt: skip


# --- transforms ---------------------------------------------------------------------------------


def test_removing_components_leaves_nothing_along_them():
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((500, 12)) * np.linspace(5, 1, 12) + 3
    fitted = remove_components(vectors, 2)
    after = fitted(vectors)
    np.testing.assert_allclose(after.mean(0), 0, atol=1e-9)
    left = np.linalg.svd(after, compute_uv=False)
    before = np.linalg.svd(vectors - vectors.mean(0), compute_uv=False)
    np.testing.assert_allclose(left[:10], before[2:], rtol=1e-8)
    assert left[10:].max() < 1e-6
    assert fitted.explained.sum() == pytest.approx(1)
    assert (np.diff(fitted.explained) <= 1e-12).all()
    with pytest.raises(ValueError, match="k is 12"):
        remove_components(vectors, 12)
    with pytest.raises(ValueError, match="5 wide"):
        fitted(np.zeros((2, 5)))


def test_whitening_makes_the_covariance_the_identity_in_blocks_too():
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((3000, 6)) @ draw.standard_normal((6, 6)) + 100
    whole = whiten(vectors)
    np.testing.assert_allclose(np.cov(whole(vectors).T), np.eye(6), atol=1e-8)
    blocks = whiten(vectors[i : i + 700] for i in range(0, 3000, 700))
    np.testing.assert_allclose(np.abs(blocks.matrix), np.abs(whole.matrix), rtol=1e-6)
    assert whiten(vectors, 2)(vectors).shape == (3000, 2)
    flat = np.hstack([vectors, vectors[:, :1]])
    assert whiten(flat).matrix.shape[1] == 6
    with pytest.raises(ValueError, match="7 components"):
        whiten(flat, 7)
    collected = made(vectors[None].astype(np.float32))
    np.testing.assert_allclose(
        whiten(collected_blocks(collected, 0, size=500)).mean, whole.mean, rtol=1e-5
    )


# --- curves -------------------------------------------------------------------------------------


def curve(n=200, layers=7, slope=0.1):
    draw = np.random.default_rng(0)
    sums = np.arange(layers) * slope + draw.normal(0, 0.1, (n, layers))
    return LayerScores("made", "cosine", sums, np.ones(n), "none", 0, {"zero": np.zeros(layers)})


def test_summaries_of_a_curve():
    up = curve()
    assert up.value == up.by_layer()[-1].value and up.baselines == {"zero": 0.0}
    assert up.upper_half().value == pytest.approx(up.values[4:].mean())
    assert up.upper_half().baselines["embedding_layer"] == pytest.approx(up.values[0])
    assert up.depth_correlation().value == pytest.approx(1)
    assert curve(slope=-0.1).depth_correlation().value == pytest.approx(-1)
    assert up.best()[0] == 6
    with_it = up.with_control("other", curve(slope=0.0))
    assert with_it.at(6).baselines["other"] == pytest.approx(0, abs=0.05)
    with pytest.raises(ValueError, match="shape"):
        up.with_control("short", np.zeros(3))
    with pytest.raises(LayerIndexError):
        up.at(7)
    with pytest.raises(KeyError, match="nothing"):
        up.minus("nothing")
    with pytest.raises(TooFewError):
        LayerScores("none", "share", np.zeros((0, 3)), np.zeros(0), "none")


def test_the_mean_of_item_correlations_has_an_interval_of_some_width():
    """A U-turn that all items make: the curve of the means has one order, items have many."""
    draw = np.random.default_rng(0)
    turn = np.array([0.8, 0.6, 0.5, 0.45, 0.5, 0.55, 0.6])
    scores = LayerScores("made", "cosine", turn + draw.normal(0, 0.15, (80, 7)), np.ones(80), "m")
    found = scores.mean_depth_correlation()
    own = [spearmanr(row[1:], np.arange(6)).statistic for row in scores.sums]
    assert found.value == pytest.approx(np.mean(own)) and found.n == 80
    assert 0.1 < found.interval[1] - found.interval[0] < 0.4
    assert curve(slope=-0.5).mean_depth_correlation().interval[1] < -0.9
    flat = LayerScores("made", "cosine", np.ones((9, 7)), np.ones(9), "m")
    assert flat.mean_depth_correlation().value == 0
    with pytest.raises(TooFewError):
        LayerScores("made", "cosine", np.ones((9, 3)), np.ones(9), "m").mean_depth_correlation()
