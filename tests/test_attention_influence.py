"""Rollout, flow, gradients, knock-outs, permutations."""

import numpy as np
import pytest
import torch
from tiny import tiny_encoder

from bertology_utils.activations import capture, run_with_cache
from bertology_utils.attention import (
    KINDS,
    NothingToScoreError,
    attention_and_gradient,
    attention_flow,
    attention_gradients,
    knock_out,
    masked_loss,
    omission_and_gradient,
    permuted_attention,
    replaced_loss,
    rollout,
    with_residual,
)
from bertology_utils.encoder import LayerIndexError, MissingHeadError
from bertology_utils.interventions import is_edited, patch
from bertology_utils.words import make_batch


def own_loss(encoder):
    return replaced_loss if encoder.has_rtd else masked_loss()


def classify(encoder, batch):
    """Two classes from [CLS]: enough to move when attention does."""
    hidden = encoder.encode(batch)[:, 0]
    return torch.softmax(hidden[:, :8].sum(-1, keepdim=True) * torch.tensor([1.0, -1.0]), -1)


def test_rollout_mixes_identities(any_encoder, texts):
    pattern = run_with_cache(any_encoder, texts[2], ["pattern"])["pattern"].numpy()
    mixed = rollout(pattern)
    assert mixed.shape == (any_encoder.n_layers, 1, pattern.shape[-1], pattern.shape[-1])
    np.testing.assert_allclose(mixed.sum(-1), 1, atol=1e-5)
    layers = with_residual(pattern)[:, 0]
    np.testing.assert_allclose(mixed[2, 0], layers[2] @ layers[1] @ layers[0], atol=1e-6)
    np.testing.assert_allclose(rollout(pattern[:, 0]), mixed[:, 0], atol=1e-7)
    with pytest.raises(ValueError, match="need"):
        rollout(pattern[0, 0])


def test_flow_of_one_layer_is_its_attention_and_more_layers_are_bounded(tiny_bert, texts):
    pattern = run_with_cache(tiny_bert, texts[2], ["pattern"])["pattern"][:, 0].numpy()
    one = attention_flow(pattern[:1], 2)
    np.testing.assert_allclose(one, with_residual(pattern[:1])[0, 2], atol=1e-5)
    three = attention_flow(pattern, 2)
    assert (three <= 1 + 1e-5).all() and (three >= rollout(pattern)[-1, 2] - 1e-4).all()
    with pytest.raises(IndexError, match="position 99"):
        attention_flow(pattern, 99)


def test_gradients_agree_with_finite_differences(texts):
    encoder = tiny_encoder("bert")
    encoder.model.double()
    loss = masked_loss()
    found = attention_gradients(encoder, texts[2:3], loss=loss)
    batch = make_batch(encoder, texts[2])
    length = batch.input_ids.shape[1]
    step, total = 1e-5, 0.0
    for i in range(length):
        ends = []
        for sign in (1, -1):

            def nudge(pattern, i=i, sign=sign):
                changed = pattern.clone()
                changed[:, 1, i, 0] += sign * step
                return changed

            with torch.no_grad(), patch(encoder, "pattern", 2, nudge):
                ends.append(float(loss(encoder, batch)))
        total += abs(ends[0] - ends[1]) / (2 * step)
    assert found["cls"].scores[2, 1] == pytest.approx(total / length, rel=1e-3)


def test_gradients_do_not_depend_on_the_batch(any_encoder, texts):
    loss = own_loss(any_encoder)
    together = attention_gradients(any_encoder, texts, loss=loss, max_tokens=1000)
    alone = attention_gradients(any_encoder, texts, loss=loss, max_tokens=1)
    assert set(together) == set(KINDS)
    for kind in KINDS:
        np.testing.assert_allclose(together[kind].scores, alone[kind].scores, rtol=1e-3, atol=1e-7)
        assert together[kind].scores.max() > 0


def test_losses_need_their_heads(texts):
    with pytest.raises(MissingHeadError):
        attention_gradients(tiny_encoder("electra"), texts)
    with pytest.raises(MissingHeadError):
        attention_gradients(tiny_encoder("bert"), texts, loss=replaced_loss)
    with pytest.raises(ValueError, match="rate"):
        masked_loss(rate=0)
    with pytest.raises(NothingToScoreError):
        attention_gradients(tiny_encoder("bert"), [])


def test_knocking_out_what_no_head_uses_costs_nothing(texts):
    encoder = tiny_encoder("bert")
    plain = knock_out(encoder, texts, "sep")
    assert plain.rise.value != 0 and plain.control_rise.value != 0
    assert plain.value == pytest.approx(plain.rise.value - plain.control_rise.value, abs=1e-6)
    for layer in encoder.layers:
        layer.output.weight.data.zero_()
    silent = knock_out(encoder, texts, "sep")
    assert silent.rise.value == pytest.approx(0, abs=1e-6) == silent.control_rise.value
    assert not is_edited(encoder)
    with pytest.raises(KeyError, match="text"):
        knock_out(encoder, texts, "text")


def test_permutations_move_the_prediction_only_where_attention_acts(any_encoder, texts):
    moved = permuted_attention(any_encoder, texts, classify, n_permutations=5)
    assert 0 < moved.value <= 1 and moved.n == 4
    assert moved == permuted_attention(any_encoder, texts, classify, n_permutations=5)
    assert not is_edited(any_encoder)

    def fixed(encoder, batch):
        encoder.encode(batch)
        return torch.tensor([[0.3, 0.7]]).expand(len(batch), 2)

    still = permuted_attention(any_encoder, texts, fixed, n_permutations=2)
    assert still.value == 0 and still.baselines["uniform_attention"] == 0
    with pytest.raises(LayerIndexError):
        permuted_attention(any_encoder, texts, classify, layers=[9])
    with pytest.raises(ValueError, match="probabilities"):
        permuted_attention(any_encoder, texts, lambda e, b: e.encode(b)[:, 0])


def test_permuting_even_attention_changes_nothing(texts):
    encoder = tiny_encoder("bert")
    for layer in encoder.layers:
        layer.query.weight.data.zero_()
        layer.query.bias.data.zero_()
    moved = permuted_attention(encoder, texts, classify, n_permutations=3)
    assert moved.value < 1e-5 and moved.baselines["uniform_attention"] < 1e-5


def test_attention_against_gradient(any_encoder, texts):
    found = attention_and_gradient(any_encoder, texts, classify)
    assert found.n == 4 and -1 <= found.interval[0] <= found.value <= found.interval[1] <= 1
    assert "shuffled" in found.baselines
    with pytest.raises(NothingToScoreError):
        attention_and_gradient(any_encoder, [], classify)


def reads_by_attention(encoder, batch):
    """A rule for which weight is importance, so that gradient times input must follow the weight.

    The evidence is the squared length of each piece's vector, in units of its own, times the
    attention that the piece receives; weights and units go without a gradient.
    """
    with capture(encoder, ["pattern", "hidden_states"]) as cache:
        encoder.encode(batch)
    inputs = cache.layers["hidden_states"][0]
    real = batch.attention_mask.to(inputs.dtype)
    rows = torch.stack(cache.layers["pattern"]).detach().mean((0, 2)) * real[:, :, None]
    received = rows.sum(1) / real.sum(1, keepdim=True)
    lengths = inputs.square().sum(-1)
    evidence = (received * real * lengths / lengths.detach().clamp_min(1e-12)).sum(-1)
    return torch.stack([evidence, torch.zeros_like(evidence)], -1).softmax(-1)


def reads_by_piece(encoder, batch):
    """A rule that adds up one number a piece, 0 for the mask: what leaving it out changes."""
    with capture(encoder, ["hidden_states"]) as cache:
        encoder.encode(batch)
    inputs = cache.layers["hidden_states"][0]
    worth = batch.input_ids / len(encoder.tokenizer) * batch.attention_mask
    worth = worth.masked_fill(batch.input_ids == encoder.tokenizer.mask_token_id, 0.0)
    lengths = inputs.square().sum(-1)
    evidence = (worth * lengths / lengths.detach().clamp_min(1e-12)).sum(-1)
    return torch.stack([evidence, torch.zeros_like(evidence)], -1).div(10).softmax(-1)


def test_two_ratings_of_importance_agree_where_each_piece_has_its_worth(any_encoder, texts):
    found = omission_and_gradient(any_encoder, texts, reads_by_piece)
    assert found.value > 0.95 and found.unit == "correlation" and found.n == 4
    other = omission_and_gradient(any_encoder, texts, classify)
    assert -1 <= other.interval[0] <= other.value <= other.interval[1] <= 1 and other.value < 0.95
    with pytest.raises(NothingToScoreError):
        omission_and_gradient(any_encoder, [], classify)


def test_a_rule_that_reads_by_attention_is_found_out(any_encoder, texts):
    found = attention_and_gradient(any_encoder, texts, reads_by_attention)
    assert found.value > 0.9 > 0.4 > abs(found.baselines["shuffled"])
    alone = [reads_by_attention(any_encoder, make_batch(any_encoder, [text])) for text in texts]
    together = reads_by_attention(any_encoder, make_batch(any_encoder, texts))
    assert torch.allclose(torch.cat(alone), together, atol=1e-5)  # padding gets and gives nothing
