"""Maps, targets, patterns and the scores that carry them."""

import numpy as np
import pytest
from tiny import tiny_encoder

from bertology_utils.activations import run_with_cache
from bertology_utils.attention import (
    KINDS,
    PATTERNS,
    HeadScores,
    NothingToScoreError,
    attention_entropy,
    attention_maps,
    attention_received,
    attention_to,
    classify_heads,
    correlation_over_heads,
    map_features,
    most_attended,
    piece_kinds,
    rule,
    segments,
    synthetic_maps,
    train_pattern_classifier,
    word_attention,
)
from bertology_utils.encoder import HeadIndexError
from bertology_utils.resampling import Estimate, percentile_interval, resampled_means
from bertology_utils.words import TextPair, align


def test_maps_are_the_library_s_without_padding(any_encoder, texts):
    seen = {}
    for maps in attention_maps(any_encoder, texts, max_tokens=40):
        alone = run_with_cache(any_encoder, texts[maps.index], ["pattern"])["pattern"][:, 0]
        np.testing.assert_allclose(maps.pattern, alone.numpy(), atol=1e-5)
        np.testing.assert_allclose(maps.pattern.sum(-1), 1, atol=1e-5)
        seen[maps.index] = maps
    assert sorted(seen) == [0, 1, 2, 3]


def test_every_piece_is_of_one_kind(any_encoder):
    row = align(any_encoder, TextPair("The cat sat, near.", "Dogs bark."))
    kinds = piece_kinds(row)
    assert (sum(mask.astype(int) for mask in kinds.values()) == 1).all()
    assert kinds["cls"].nonzero()[0].tolist() == [0]
    assert kinds["sep"].sum() == sum(row.is_special) - 1
    marks = [row.pieces[i] for i in kinds["punctuation"].nonzero()[0]]
    assert [mark.strip("Ġ") for mark in marks] == [",", ".", "."]
    found = segments(row)
    assert found[0] == 0 and found[-1] == 1 and (np.diff(found) >= 0).all()


def test_attention_to_words_sums_and_from_words_averages():
    rows = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25] * 4, [0.7, 0.1, 0.1, 0.1]]
    pattern = np.array(rows)
    words = word_attention(pattern, [(1, 3), (3, 4)])
    np.testing.assert_allclose(words, [[(0.5 + 0.5) / 2, (0.1 + 0.25) / 2], [0.2, 0.1]])
    with pytest.raises(ValueError, match=r"span \(3, 5\)"):
        word_attention(pattern, [(3, 5)])


def test_kinds_add_up_to_one_and_offsets_are_the_diagonals(any_encoder, texts):
    found = attention_to(any_encoder, texts)
    total = sum(found[kind].scores for kind in KINDS)
    np.testing.assert_allclose(total, 1, atol=1e-5)
    assert sum(found[kind].control_scores["uniform"] for kind in KINDS) == pytest.approx(1)
    by_hand, n = 0.0, 0
    for maps in attention_maps(any_encoder, texts):
        for i in range(1, len(maps)):
            by_hand, n = by_hand + maps.pattern[1, 2, i, i - 1], n + 1
    assert found["previous"].scores[1, 2] == pytest.approx(by_hand / n, abs=1e-6)


def test_most_attended_counts_winners(tiny_bert, texts):
    found = most_attended(tiny_bert, texts)
    np.testing.assert_allclose(sum(found[kind].scores for kind in KINDS), 1)
    maps = next(m for m in attention_maps(tiny_bert, texts) if m.index == 0)
    own = [maps.pattern[0, 0, i].argmax() == i for i in range(len(maps))]
    assert found["self"].sums[0, 0, 0] == sum(own)


def test_entropy_is_that_of_even_attention_when_queries_vanish(texts):
    encoder = tiny_encoder("bert")
    for layer in encoder.layers:
        layer.query.weight.data.zero_()
        layer.query.bias.data.zero_()
    found = attention_entropy(encoder, texts)
    np.testing.assert_allclose(found.scores, found.control_scores["uniform"], rtol=1e-5)
    to = attention_to(encoder, texts)
    for scores in to.values():
        np.testing.assert_allclose(scores.scores, scores.control_scores["uniform"], atol=1e-6)
    for share, _ in attention_received(encoder, texts).values():
        assert share == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("n_layers", [12, 24])
def test_deep_models(n_layers, texts):
    encoder = tiny_encoder("bert", n_layers=n_layers)
    assert len(attention_to(encoder, texts, targets=["sep"])["sep"].by_layer()) == n_layers
    assert len(classify_heads(encoder, texts).labels) == n_layers


def test_unknown_targets_and_no_texts_are_refused(tiny_bert):
    with pytest.raises(KeyError, match="middle"):
        attention_to(tiny_bert, ["Dogs bark."], targets=["middle"])
    with pytest.raises(NothingToScoreError):
        attention_to(tiny_bert, [])
    with pytest.raises(NothingToScoreError):
        classify_heads(tiny_bert, [])


# --- patterns -----------------------------------------------------------------------------------


def _label(pattern, segment=None):
    segment = np.zeros(len(pattern), int) if segment is None else segment
    return PATTERNS[int(rule(map_features(pattern, segment)))]


@pytest.mark.parametrize("size", [8, 12, 40])
def test_pure_patterns_are_named(size):
    eye = np.eye(size)
    previous = np.roll(eye, -1, axis=1)
    assert _label(eye) == "diagonal"
    assert _label(0.5 * previous + 0.5 * previous.T) == "diagonal"
    column = np.zeros((size, size))
    column[:, 0] = 1
    assert _label(column) == "vertical"
    assert _label(0.5 * column + 0.5 * eye) == "vertical+diagonal"
    half = np.arange(size) // (size // 2)
    same = (half[:, None] == half[None, :]) / (size // 2)
    assert _label(same, half) == "block"
    assert _label(np.full((size, size), 1 / size)) == "heterogeneous"
    assert _label(np.full((size, size), 1 / size), half) == "heterogeneous"


def test_features_are_excesses_over_even_attention():
    size = 10
    even = map_features(np.full((size, size), 1 / size), np.arange(size) // 5)
    np.testing.assert_allclose(even[:3], 0, atol=1e-12)
    stacked = map_features(np.stack([np.eye(size)] * 3), np.zeros(size, int))
    assert stacked.shape == (3, 9)
    np.testing.assert_allclose(stacked[:, 0], 1)
    with pytest.raises(ValueError, match="do not fit"):
        map_features(np.eye(4), np.zeros(3, int))


def test_the_classifier_learns_from_synthetic_maps_and_is_repeatable():
    first = train_pattern_classifier(n_train=600, n_test=300, seed=1)
    again = train_pattern_classifier(n_train=600, n_test=300, seed=1)
    assert first.value == again.value and first.f1 == again.f1
    assert first.value > 0.9 > 2 * first.baselines["majority"]
    assert first.interval[0] < first.value <= first.interval[1]
    assert min(first.f1.values()) > 0.8
    features = np.stack([map_features(m.pattern, m.segment) for m in synthetic_maps(10, 77)])
    probabilities = first.probabilities(features)
    np.testing.assert_allclose(probabilities.sum(-1), 1)
    assert (probabilities.argmax(-1) == first.predict(features)).all()
    with pytest.raises(ValueError, match="3 features"):
        first.predict(np.zeros((2, 3)))


def test_synthetic_maps_are_maps():
    maps = synthetic_maps(50, seed=3)
    assert {m.label for m in maps} == set(PATTERNS)
    for made in maps:
        assert (made.pattern >= 0).all() and made.segment.shape == made.pattern.shape[:1]
        np.testing.assert_allclose(made.pattern.sum(-1), 1)


def test_head_patterns_add_up(any_encoder, texts):
    found = classify_heads(any_encoder, [*texts, TextPair(texts[0], texts[2])])
    np.testing.assert_allclose(found.shares.sum(-1), 1)
    np.testing.assert_allclose(found.by_layer.sum(-1), 1)
    assert sum(found.share(p).value for p in PATTERNS) == pytest.approx(1)
    assert sum(found.share_of_heads(p).value for p in PATTERNS) == pytest.approx(1)
    assert found.n == 5 and len(found.labels) == any_encoder.n_layers
    assert found.agreement(found) == 1.0
    with pytest.raises(KeyError, match="stripes"):
        found.share("stripes")


# --- scores -------------------------------------------------------------------------------------


def _scores(seed=0, n=60, planted=0.3):
    draw = np.random.default_rng(seed)
    sums = draw.random((n, 2, 3)) * 4
    sums[:, 1, 2] += planted * 4
    return HeadScores("made", "share", sums / 2, np.full(n, 4), "none", 0)


def test_the_best_head_is_chosen_and_measured_on_different_texts():
    scores = _scores()
    assert (scores.best.layer, scores.best.head) == (1, 2)
    assert scores.n == 120
    low, high = scores.interval
    assert low <= scores.value <= high
    picked = [_scores(seed=s, n=10, planted=0.0).best for s in range(60)]
    optimism = np.mean([best.chosen_value - best.value for best in picked])
    assert optimism > 0.02, "the choosing half must overstate the best of equal heads"


def test_summaries_of_scores():
    scores = _scores()
    assert scores.at(1, 2).value == pytest.approx(scores.scores[1, 2])
    assert scores.mean().value == pytest.approx(scores.scores.mean())
    assert [e.value for e in scores.by_layer()] == pytest.approx(scores.scores.mean(1).tolist())
    assert scores.count_above(scores.scores[1, 2] - 1e-9).value == 1
    assert 1 <= scores.centre_of_depth().value <= 2
    assert np.nanmean(scores.per_text(1, 2)) == pytest.approx(scores.scores[1, 2])
    np.testing.assert_allclose(scores.minus(scores).scores, 0, atol=1e-12)
    assert correlation_over_heads(scores, scores).value == pytest.approx(1)
    with pytest.raises(HeadIndexError):
        scores.at(2, 0)
    with pytest.raises(NothingToScoreError):
        HeadScores("none", "share", np.zeros((3, 1, 1)), np.zeros(3), "none")


def test_bootstrap_intervals_cover_about_as_often_as_they_say():
    draw = np.random.default_rng(0)
    covered = 0
    for trial in range(200):
        sample = draw.normal(size=60)
        draws = resampled_means(sample, np.ones(60), seed=trial, resamples=300)
        low, high = percentile_interval(draws, sample.mean())
        covered += low <= 0 <= high
    assert 0.89 <= covered / 200 <= 0.99


def test_estimates_take_baselines_of_other_models():
    one = Estimate(value=0.5, unit="share", n=3, model="a")
    two = one.with_baselines(random_model=Estimate(value=0.2, unit="share", n=3, model="b"))
    assert two.baselines == {"random_model": 0.2} and one.baselines == {}
