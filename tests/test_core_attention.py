"""Rollout, flow, norms and scores of heads on maps small enough to work out by hand."""

import math

import numpy as np
import pytest
import torch
from tiny import tiny_encoder

from bertology_utils.activations import run_with_cache
from bertology_utils.attention import (
    HeadScores,
    NothingToScoreError,
    attention_flow,
    correlation_over_heads,
    norm_attention,
    norm_shares,
    recomputed_pattern,
    rollout,
    value_norms,
    value_vectors,
    weight_norm_correlation,
)
from bertology_utils.attention.flow import with_residual
from bertology_utils.encoder import HeadIndexError

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

# --- rollout and flow ---------------------------------------------------------------------------

#: two layers of one head over two pieces
FIRST = np.array([[0.5, 0.5], [0.0, 1.0]])
SECOND = np.array([[0.0, 1.0], [1.0, 0.0]])
PATTERN = np.stack([FIRST, SECOND])[:, None]


def test_residual_takes_half_of_the_mean_over_heads():
    heads = np.stack([FIRST, SECOND])[None]  # one layer of two heads
    mixed = [[[0.25 / 2 + 0.5, 0.75 / 2], [0.5 / 2, 0.5 / 2 + 0.5]]]
    np.testing.assert_allclose(with_residual(heads), mixed)


def test_rollout_multiplies_from_the_input_upwards():
    found = rollout(PATTERN)
    low = np.array([[0.75, 0.25], [0.0, 1.0]])
    high = np.array([[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_allclose(found, [low, high @ low])
    np.testing.assert_allclose(found.sum(-1), 1)
    batch = np.stack([PATTERN, PATTERN[::-1]], axis=1)
    both = rollout(batch)
    np.testing.assert_allclose(both[:, 0], found)
    np.testing.assert_allclose(both[1, 1], low @ high)
    for shape in ((2, 2, 2), (1, 1, 1, 1, 2, 2)):
        with pytest.raises(ValueError, match="need"):
            rollout(np.zeros(shape))


def test_flow_is_what_the_narrowest_place_lets_through():
    # One layer: the weights themselves. Residual: [[.75, .25], [0, 1]]
    np.testing.assert_allclose(attention_flow(PATTERN[:1], 0), [0.75, 0.25])
    np.testing.assert_allclose(attention_flow(PATTERN[:1], 1), [0.0, 1.0])
    # Two layers: into each position flow .5 + .5; from piece 0 only .75 reach position 0 of the
    # middle, of which .5 go on; piece 1 sends .25 there and 1 to the other, which passes .5.
    np.testing.assert_allclose(attention_flow(PATTERN, 0), [0.5, 0.75])
    np.testing.assert_allclose(attention_flow(PATTERN, 1), [0.5, 0.75])
    for target in (-1, 2):
        with pytest.raises(IndexError, match=rf"position {target} is not in 0\.\.1"):
            attention_flow(PATTERN, target)
    with pytest.raises(ValueError, match="need"):
        attention_flow(FIRST, 0)


# --- norms --------------------------------------------------------------------------------------


def test_norms_are_those_of_the_vectors_that_heads_hand_over(tiny_bert, texts):
    cache = run_with_cache(tiny_bert, texts[:2], ["pattern", "v"])
    norms = value_norms(tiny_bert, cache)
    for layer in range(tiny_bert.n_layers):
        vectors = value_vectors(tiny_bert, cache, layer)
        torch.testing.assert_close(norms[layer], vectors.norm(dim=-1), rtol=1e-4, atol=1e-5)
        weighted = cache["pattern"][layer][..., None] * vectors[:, :, None]
        torch.testing.assert_close(
            norm_attention(tiny_bert, cache)[layer], weighted.norm(dim=-1), rtol=1e-4, atol=1e-5
        )
    # One head by hand: v times the rows of the output matrix that belong to it.
    parts, head = tiny_bert.layers[1], 2
    maps = parts.output.weight[:, head * 8 : head * 8 + 8].detach()
    torch.testing.assert_close(
        value_vectors(tiny_bert, cache, 1)[0, head], cache["v"][1, 0, head] @ maps.T
    )


def test_norms_of_any_size_and_of_nothing(texts):
    encoder = tiny_encoder("bert")
    cache = run_with_cache(encoder, texts, ["v"])
    norms = value_norms(encoder, cache)
    with torch.no_grad():
        for part in encoder.layers:
            part.output.weight *= 1e-3
        encoder.layers[1].output.weight[:, 8:16] = 0  # a head that hands nothing over
    small = value_norms(encoder, cache)
    assert small.max() < 1 and small[1, :, 1].max() == 0
    torch.testing.assert_close(small[0], 1e-3 * norms[0])
    shares = norm_shares(encoder, texts[:2])["norm"].values()
    np.testing.assert_allclose(sum(kind.scores for kind in shares)[0], 1, atol=1e-5)
    found = weight_norm_correlation(encoder, texts, "sep")
    assert np.issubdtype(found.dtype, np.floating)
    assert np.isnan(found[1, 1]) and np.isnan(found).sum() == 1


def test_patterns_follow_from_queries_and_keys(tiny_bert, texts):
    cache = run_with_cache(tiny_bert, texts, ["pattern", "q", "k"])
    torch.testing.assert_close(
        recomputed_pattern(tiny_bert, cache), cache["pattern"], atol=1e-5, rtol=0
    )


def test_shares_of_norms_and_weights_by_a_slow_count(tiny_bert, texts):
    found = norm_shares(tiny_bert, texts[:3], seed=5)
    kinds = {"cls": 0.0, "sep": 0.0, "punctuation": 0.0, "text": 0.0}
    for way in ("weight", "norm"):
        for kind, scores in found[way].items():
            assert scores.name == f"{kind} by {way}" and scores.unit == "share"
            assert (scores.seed, scores.model) == (5, "tiny-bert")
            kinds[kind] = scores.scores
        np.testing.assert_allclose(sum(kinds.values()), 1, atol=1e-6)
    total = hits = 0.0
    by_norm = 0.0
    for text in texts[:3]:
        cache = run_with_cache(tiny_bert, [text], ["pattern", "v"])
        weights = cache["pattern"][1, 0, 3]
        norms = norm_attention(tiny_bert, cache)[1, 0, 3]
        total += len(weights)
        hits += float(weights[:, 0].sum())
        by_norm += float((norms[:, 0] / norms.sum(1)).sum())
    assert found["weight"]["cls"].scores[1, 3] == pytest.approx(hits / total, abs=1e-5)
    assert found["norm"]["cls"].scores[1, 3] == pytest.approx(by_norm / total, abs=1e-5)
    assert found["weight"]["cls"].counts.sum() == total
    assert found["norm"]["sep"].control_scores["uniform"] == pytest.approx(3 / total)


def test_budgets_reach_the_model_and_no_seed_is_0(tiny_bert, texts):
    for measure in (norm_shares, weight_norm_correlation):
        with pytest.raises(ValueError, match="max_tokens .*starts? at 1, got 0"):
            measure(tiny_bert, texts, max_tokens=0)
    found = norm_shares(tiny_bert, texts[:2])
    assert {scores.seed for kinds in found.values() for scores in kinds.values()} == {0}


def test_correlation_of_weight_and_norm_is_pearson_s(tiny_bert, texts):
    found = weight_norm_correlation(tiny_bert, texts, "sep")
    weights, norms = [], []
    for text in texts:
        cache = run_with_cache(tiny_bert, [text], ["pattern", "v"])
        weights.append(cache["pattern"][:, 0, :, :, -1].mean(-1).numpy())
        norms.append(value_norms(tiny_bert, cache)[:, 0, :, -1].numpy())
    for layer, head in np.ndindex(found.shape):
        pair = [[rows[layer, head] for rows in side] for side in (weights, norms)]
        assert found[layer, head] == pytest.approx(np.corrcoef(pair)[0, 1], abs=1e-3)
    assert weight_norm_correlation(tiny_bert, texts).shape == found.shape
    np.testing.assert_array_equal(weight_norm_correlation(tiny_bert, texts), found)
    three = [[rows[1, 2] for rows in side[:3]] for side in (weights, norms)]
    enough = weight_norm_correlation(tiny_bert, texts[:3], "sep")[1, 2]
    assert enough == pytest.approx(np.corrcoef(three)[0, 1], abs=1e-3)
    with pytest.raises(ValueError, match="0 pieces of kind 'sep'"):
        weight_norm_correlation(tiny_bert, [])
    with pytest.raises(ValueError, match="2 pieces of kind 'cls'"):
        weight_norm_correlation(tiny_bert, texts[:2], "cls")
    with pytest.raises(KeyError, match="unknown kind 'verbs'"):
        weight_norm_correlation(tiny_bert, texts, "verbs")


# --- scores of heads ----------------------------------------------------------------------------


def made(**changes):
    """Four texts, one layer of two heads and one of silent ones; head (0, 1) is best everywhere."""
    fields = {
        "name": "made",
        "unit": "share",
        "sums": np.array([[[1, 2], [0, 0]], [[1, 3], [0, 0]], [[2, 4], [0, 0]], [[0, 0], [0, 0]]]),
        "counts": np.array([4, 4, 8, 0]),
        "model": "m",
        "seed": 0,
        "controls": {"offset": np.array([[1, 0], [1, 0], [0, 3], [0, 0]])},
    }
    return HeadScores(**{**fields, **changes})


def test_scores_of_heads_are_ratios_of_sums():
    scores = made()
    np.testing.assert_allclose(scores.scores, [[4 / 16, 9 / 16], [0, 0]])
    assert scores.control_scores == {"offset": 3 / 16}
    assert scores.ranking() == [(0, 1), (0, 0), (1, 0), (1, 1)]
    assert scores.draws.shape == (1000, 2, 2)
    assert scores.at(0, 1).value == pytest.approx(9 / 16)
    assert scores.at(0, 0).value == pytest.approx(4 / 16) and scores.at(1, 1).value == 0
    assert scores.at(0, 1).n == 16 and scores.at(0, 1).baselines == {"offset": 3 / 16}
    assert (scores.at(0, 1).unit, scores.at(0, 1).model, scores.at(0, 1).seed) == ("share", "m", 0)
    assert scores.mean().value == pytest.approx(13 / 64)
    low, high = scores.mean().interval
    assert low < 13 / 64 < high
    even = made(sums=np.tile([2, 1, 2, 1], (4, 6, 4)), controls={}).ranking()
    assert even == [(i, k) for first in (0, 1) for i in range(6) for k in range(first, 16, 2)]
    assert [e.value for e in scores.by_layer()] == pytest.approx([13 / 32, 0])
    assert scores.by_layer()[1].interval == (0, 0)
    text = scores.per_text(0, 1)
    assert text[:3].tolist() == [0.5, 0.75, 0.5] and math.isnan(text[3])


def test_counting_heads_and_weighing_layers():
    scores = made()
    above = scores.count_above(0.2)
    assert (above.value, above.unit, above.baselines) == (2, "count", {"offset": 0.0})
    assert scores.count_above(0.1).baselines == {"offset": 4.0}
    assert scores.count_above(9 / 16).value == 0, "above, not at"
    assert scores.count_above(3 / 16).baselines == {"offset": 0.0}
    sums = np.array([[[1, 1, 1], [1, 2, 3]]] * 4)
    centre = made(sums=sums, counts=np.ones(4)).centre_of_depth()
    # layer 1 weighs 1, layer 2 weighs 2
    assert centre.value == pytest.approx((1 + 2 * 2) / 3)
    assert (centre.unit, centre.baselines) == ("layers", {})
    wide = made(sums=sums, counts=np.ones(4), controls={})
    assert [e.value for e in wide.by_layer()] == [1, 2]
    assert wide.by_layer()[1].interval == wide.at(1, 1).interval == (2, 2)
    assert (wide.mean().value, wide.mean().interval) == (1.5, (1.5, 1.5))
    # Texts alike leave nothing to chance.
    assert centre.interval == pytest.approx((5 / 3, 5 / 3))
    alike = made(sums=sums, counts=np.ones(4), controls={}).count_above(1.5)
    assert (alike.value, alike.interval) == (2, (2, 2))


def test_the_best_head_comes_from_one_half_and_its_score_from_the_other():
    scores = made()
    best = scores.best
    assert (best.layer, best.head) == (0, 1)
    assert (scores.value, scores.n, scores.interval) == (best.value, best.n, best.interval)
    assert scores.baselines == best.baselines
    # Three texts hold items: one chooses, two are scored.
    halves = [(2 / 4, 7 / 12, 12), (3 / 4, 6 / 12, 12), (4 / 8, 5 / 8, 8)]
    assert (best.chosen_value, pytest.approx(best.value), best.n) in halves
    seeds = {made(seed=s).best.n for s in range(12)}
    assert seeds == {8, 12}
    for seed in range(12):
        found = made(seed=seed).best
        if found.n == 8:  # the third text chose: there, alternative 1 was the better one
            assert found.baselines == {"offset": 0.0} and found.chosen_value == 0.5
        else:
            assert found.baselines == {"offset": pytest.approx(1 / 12)}
    with pytest.raises(NothingToScoreError, match="fewer than 2 texts"):
        _ = made(counts=np.array([4, 0, 0, 0])).best


def test_scores_that_do_not_fit():
    with pytest.raises(ValueError, match="4 totals, but 3 counts"):
        made(counts=np.ones(3))
    with pytest.raises(NothingToScoreError, match="no item in 4 texts"):
        made(counts=np.zeros(4))
    for layer, head in ((2, 0), (0, 2), (-1, 0), (0, -1)):
        with pytest.raises(HeadIndexError, match=rf"\({layer}, {head}\)"):
            made().at(layer, head)


def test_difference_of_two_measures_over_the_same_texts():
    other = made(name="other", counts=np.array([2, 2, 4, 0]))
    ours = made(seed=3)
    found = ours.minus(other)
    np.testing.assert_allclose(found.scores, ours.scores - other.scores)
    assert (found.name, found.unit) == ("made minus other", "share difference")
    assert (found.model, found.seed, found.controls) == ("m", 3, {})
    np.testing.assert_array_equal(found.counts, ours.counts)
    assert made(unit="nats").minus(other).unit == "nats"
    assert made(unit="cosine").minus(other).unit == "cosine difference"
    with pytest.raises(ValueError, match="differ in texts or heads"):
        ours.minus(made(sums=np.zeros((4, 2, 3))))


def test_correlation_over_heads_by_rank():
    rising = np.array([[[1, 2], [3, 4]]] * 3)
    one = made(sums=rising, counts=np.ones(3), controls={})
    swapped = np.array([[[10, 30], [20, 40]]] * 3)
    two = made(name="two", sums=swapped, counts=np.ones(3), controls={}, seed=4)
    found = correlation_over_heads(one, two)
    # ranks 1 2 3 4 against 1 3 2 4: 1 - 6 * 2 / 60
    assert found.value == pytest.approx(0.8)
    assert found.interval == (pytest.approx(0.8), pytest.approx(0.8))
    assert (found.n, found.unit, found.model, found.seed) == (4, "correlation", "m", 0)
    flat = made(name="flat", sums=np.ones((3, 2, 2)), counts=np.ones(3))
    for pair in ((one, flat), (flat, one)):
        with pytest.raises(ValueError, match="the same for all heads"):
            correlation_over_heads(*pair)
    with pytest.raises(ValueError, match="not of the same heads"):
        correlation_over_heads(one, made(sums=np.ones((4, 1, 2))))
