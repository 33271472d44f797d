"""Effects of heads, masks, survivors and twins: identities on tiny models, planted numbers."""

import numpy as np
import pytest
import torch
from tiny import TEXTS, tiny_encoder

from bertology_utils import behaviour as bh
from bertology_utils import stimuli
from bertology_utils import subnetworks as sub
from bertology_utils.encoder import evaluating
from bertology_utils.interventions import ablate_heads, mean_heads
from bertology_utils.words import make_batch

LABELS = [0, 1, 0, 1]


@pytest.fixture(scope="module")
def tuned():
    return bh.learn(tiny_encoder("bert"), TEXTS, LABELS, epochs=2)


@pytest.fixture(scope="module")
def trial(tuned):
    return sub.classified(tuned, TEXTS, LABELS)


def direct(tuned, off):
    """Loss of each text with heads silenced, by the plain way through the whole model."""
    with evaluating(tuned.encoder), ablate_heads(tuned.encoder, off):
        said = tuned.predict(tuned.encoder, make_batch(tuned.encoder, TEXTS))
    return -said.log()[range(4), LABELS].numpy()


def test_running_from_a_layer_equals_running_from_the_start(tuned, trial):
    loss, right = trial.whole()
    with evaluating(tuned.encoder):
        for layer in range(tuned.encoder.n_layers + 1):
            again, _ = trial.run(layer, copies=2)
            assert np.allclose(again.numpy(), loss, atol=1e-5)
    assert set(right) <= {0.0, 1.0}


def test_single_effects_equal_plain_ablation(tuned, trial):
    found = sub.without_each(trial)
    for layer in range(tuned.encoder.n_layers):
        for head in range(tuned.encoder.n_heads):
            plain = direct(tuned, {layer: [head]})
            assert np.allclose(found.loss[layer, head], plain, atol=1e-5)
            one, _ = sub.without_set(trial, [(layer, head)])
            assert np.allclose(one, plain, atol=1e-5)


def test_only_one_head_equals_silencing_the_others(tuned, trial):
    found = sub.with_only_each(trial)
    n = tuned.encoder.n_heads
    off = {1: [h for h in range(n) if h != 1]}
    assert np.allclose(found.loss[1, 1], direct(tuned, off), atol=1e-5)


@pytest.mark.parametrize("ask", ["classified", "masked"])
def test_passes_by_parts_equal_those_by_hooks(tuned, ask):
    encoder = tuned.encoder
    if ask == "classified":
        trial = sub.classified(tuned, TEXTS, LABELS)
    else:
        trial = sub.masked_words(encoder, TEXTS, rate=0.3)
    means = mean_heads(encoder, TEXTS)
    sets = [[(0, 1)], [(0, 0), (1, 1)], [(encoder.n_layers - 1, 0)]]

    def everything():
        found = [sub.without_each(trial), sub.with_only_each(trial)]
        singles = [part for one in found for part in (one.loss, one.right)]
        return singles + [values for chosen in sets for own in (None, means)
                          for values in sub.without_set(trial, chosen, means=own)]  # fmt: skip

    by_parts = everything()
    # A hook that does nothing is enough: the model may be more than its layers.
    handle = encoder.layers[0].ffn_in.register_forward_hook(lambda *_: None)
    try:
        by_hooks = everything()
    finally:
        handle.remove()
    for one, other in zip(by_parts, by_hooks, strict=True):
        assert np.allclose(one, other, atol=1e-5)
    assert not np.allclose(by_parts[0], by_parts[2])


def test_a_trial_can_be_cut(trial):
    loss, _ = trial.whole()
    part = trial.select([2, 0])
    assert len(part) == 2 and np.allclose(part.whole()[0], loss[[2, 0]], atol=1e-5)
    assert part.mask.shape[1] <= trial.mask.shape[1]
    with pytest.raises(ValueError, match="no texts"):
        trial.select([])


def test_masked_words_count_only_hidden_pieces(tiny_bert):
    found = sub.masked_words(tiny_bert, TEXTS, rate=0.3, seed=1)
    loss, right = found.whole()
    assert loss.shape == (4,) and (loss > 0).all() and ((right >= 0) & (right <= 1)).all()
    again, _ = found.select([1, 3]).whole()
    assert np.allclose(again, loss[[1, 3]], atol=1e-5)
    with pytest.raises(ValueError, match="share"):
        sub.masked_words(tiny_bert, TEXTS, rate=0)


def test_slopes_are_those_of_finite_differences(tuned, trial):
    found = sub.slopes(trial)
    shape = (4, tuned.encoder.n_layers, tuned.encoder.n_heads)
    assert found.heads.shape == shape and found.blocks.shape == shape[:2]
    from bertology_utils.interventions import scale_heads

    step, (layer, head) = 1e-2, (1, 0)
    losses = []
    for size in (1 - step, 1 + step):
        gates = torch.ones(shape[1:])
        gates[layer, head] = size
        with evaluating(tuned.encoder), scale_heads(tuned.encoder, gates):
            losses.append(trial.run()[0][0].double().numpy())
    numeric = np.abs(losses[1] - losses[0]) / (2 * step)
    assert np.allclose(found.heads[:, layer, head], numeric, atol=2e-3)


def test_mean_ablation_needs_the_means(tuned, trial):
    means = mean_heads(tuned.encoder, TEXTS)
    zero, _ = sub.without_set(trial, [(0, 0), (1, 1)])
    mean, _ = sub.without_set(trial, [(0, 0), (1, 1)], means=means)
    assert not np.allclose(zero, mean)
    with pytest.raises(ValueError, match="no heads"):
        sub.without_set(trial, [])


# --- numbers from effects ---------------------------------------------------------------------


def test_the_prunable_share_is_the_last_before_a_loss():
    right = np.ones(50)
    worse = right.copy()
    worse[:10] = 0
    curve = {0.0: right, 0.25: right, 0.5: right, 0.75: worse, 0.9: right}
    found = sub.prunable_share({"task": curve}, "m")
    assert found.value == 0.5
    assert sub.prunable_share({"task": {0.0: right, 0.5: right}}, "m").value == 0.5


def test_a_pruning_curve_leaves_one_head(tuned, trial):
    order = sub.order_of(sub.slopes(trial).heads.mean(0))
    assert len(set(order)) == tuned.encoder.n_layers * tuned.encoder.n_heads
    curve = sub.pruning_curve(trial, order, steps=2)
    assert list(curve)[0] == 0 and list(curve)[-1] == pytest.approx(1 - 1 / len(order))


def test_random_sets_are_drawn_without_repetition(tiny_bert):
    sets = sub.random_sets(tiny_bert, 3, 5, seed=2)
    assert all(len(set(chosen)) == 3 for chosen in sets)
    assert sets == sub.random_sets(tiny_bert, 3, 5, seed=2)
    with pytest.raises(ValueError, match="sets"):
        sub.random_sets(tiny_bert, 1000, 1)


def test_agreement_of_ratings():
    draw = np.random.default_rng(0)
    rating = np.arange(12).reshape(3, 4) + 0.01 * draw.normal(size=(20, 3, 4))
    assert sub.rating_agreement(rating, 2 * rating + 1, "m").value == pytest.approx(1)
    assert sub.rating_agreement(rating, -rating, "m").value == pytest.approx(-1)
    with pytest.raises(ValueError, match="same for all"):
        sub.rating_agreement(rating, np.ones_like(rating), "m")


def test_log_ratio_needs_harm():
    assert sub.log_ratio(np.full(9, 2.0), np.full(9, 1.0), "m").value == pytest.approx(np.log(2))
    with pytest.raises(ValueError, match="no log ratio"):
        sub.log_ratio(np.full(9, -1.0), np.full(9, 1.0), "m")


# --- masks ------------------------------------------------------------------------------------


def test_masked_weights_are_the_smallest_and_stay_zero_in_training(tiny_bert):
    masks = sub.magnitude_masks(tiny_bert, 0.4)
    mask, weight = masks[0, "query", "weight"], tiny_bert.layers[0].query.weight
    assert weight[~mask].abs().max() <= weight[mask].abs().min()
    cut = sub.masked(tiny_bert, masks)
    assert sub.share_cut(cut) == pytest.approx(0.4, abs=0.01)
    assert sub.share_cut(tiny_bert) < 0.01
    tuned = bh.learn(cut, TEXTS, LABELS, epochs=2, lr=1e-2)
    after = tuned.encoder.layers[0].query.weight
    assert (after[~mask] == 0).all() and not torch.equal(after[mask], weight[mask])


def test_random_masks_cut_as_many(tiny_bert):
    by_size, at_random = sub.magnitude_masks(tiny_bert, 0.5), sub.random_masks(tiny_bert, 0.5)
    assert all(int(by_size[k].sum()) == int(at_random[k].sum()) for k in by_size)
    assert any(not torch.equal(by_size[k], at_random[k]) for k in by_size)


def test_structure_masks_equal_ablated_heads(tuned, trial):
    heads = [(0, 1), (1, 0)]
    cut = sub.masked(tuned.encoder, sub.structure_masks(tuned.encoder, heads, []))
    with evaluating(cut):
        said = tuned.predict(cut, make_batch(cut, TEXTS))
    loss, _ = sub.without_set(trial, heads)
    assert np.allclose(-said.log()[range(4), LABELS].numpy(), loss, atol=1e-5)
    gone = sub.masked(tuned.encoder, sub.structure_masks(tuned.encoder, [], [1]))
    assert not gone.layers[1].ffn_out.weight.any() and not gone.layers[1].ffn_out.bias.any()


def test_bad_masks_are_refused(tiny_bert):
    with pytest.raises(KeyError, match="nonsense"):
        sub.masked(tiny_bert, {(0, "nonsense", "weight"): torch.ones(1)})
    with pytest.raises(ValueError, match="shape"):
        sub.masked(tiny_bert, {(0, "query", "weight"): torch.ones(1)})
    with pytest.raises(ValueError, match="share"):
        sub.magnitude_masks(tiny_bert, 1.0)


def test_halves_by_importance():
    heads, blocks = np.arange(8.0).reshape(2, 4), np.array([5.0, 1.0])
    off, out = sub.split_by_importance(heads, blocks, "good")
    assert set(off) == {(0, h) for h in range(4)} and out == [1]
    off, out = sub.split_by_importance(heads, blocks, "bad")
    assert set(off) == {(1, h) for h in range(4)} and out == [0]
    assert len(sub.split_by_importance(heads, blocks, "random")[0]) == 4
    with pytest.raises(ValueError, match="keep"):
        sub.split_by_importance(heads, blocks, "best")


# --- survivors and twins ----------------------------------------------------------------------


def test_overlap_of_equal_and_of_opposite_runs():
    one = np.tile(np.arange(12.0).reshape(3, 4), (10, 1, 1))
    same = sub.overlap_of_seeds([one, one + 1], "m")
    assert same.value == 1 and same.baselines["same_run"] == 1
    assert 0.2 < same.baselines["chance"] < 0.5
    assert sub.overlap_of_seeds([one, -one], "m").value == 0
    with pytest.raises(ValueError, match="two runs"):
        sub.overlap_of_seeds([one], "m")


def test_survival_gap():
    special = [(0, h) for h in range(4)]
    found = sub.survival_gap(special, special, (3, 4), "m")
    assert found.value == 1
    with pytest.raises(ValueError, match="no comparison"):
        sub.survival_gap(special, [], (3, 4), "m")


def test_range_is_compared_with_that_of_equal_pairs():
    draw = np.random.default_rng(0)
    alike = {("a", str(i)): draw.normal(size=200) for i in range(4)}
    found = sub.range_of_pairs(alike, "m")
    assert found.value < found.baselines["alike_pairs"] < 0.5
    apart = alike | {("a", "z"): draw.normal(size=200) - 5}
    far = sub.range_of_pairs(apart, "m")
    assert far.interval[0] > 4 and far.baselines["alike_pairs"] < 0.6


def test_likeness_and_added_layers(tiny_bert):
    found = sub.likeness_in_layers(tiny_bert, list(TEXTS))
    assert abs(found.baselines["shuffled"]) < 0.05 and found.interval[0] <= found.value
    assert (sub.within_layers(tiny_bert, list(TEXTS)) >= 0).all()
    short = [s for s in stimuli.treebank(60, seed=1) if len(s) < 8][:24]
    added = sub.added_layers(tiny_bert, short, epochs=1)
    assert len(added.results) == 5
    harmed = added.harmed()
    assert 0 <= harmed.value <= 1 and 0 <= harmed.baselines["noise"] <= 1
    # Five tasks leave much open, whatever they say.
    assert harmed.interval[1] - harmed.interval[0] > 0.3


def test_a_twin_learns_and_repeats():
    sentences, pairs = sub.language(200, 30)
    assert not {p.sentence for p in pairs} & set(sentences)
    one, two = (sub.train_tiny(sentences, steps=12, width=16, seed=1) for _ in range(2))
    assert one.loss == two.loss and one.loss < 6
    dropped = sub.train_tiny(sentences, steps=12, width=16, seed=1, attention_dropout=0.5)
    assert dropped.loss != one.loss
    assert sub.agreement(one, pairs).shape == (len(pairs),)
    assert sub.likeness(one, sentences[:5]) >= 0
    gap = sub.over_seeds([1.0, 1.2], [0.5, 0.9], "m", "nats")
    assert gap.value == pytest.approx(0.4) and gap.interval[0] < 0.4 < gap.interval[1]
