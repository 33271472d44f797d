"""Interventions against surgery on the weights, and always undone."""

import copy
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from tiny import tiny_encoder

from bertology_utils.activations import SITES, UnknownSiteError, run_with_cache
from bertology_utils.encoder import (
    HeadIndexError,
    LayerIndexError,
    UnknownModelError,
    evaluating,
    kept_heads,
    load_encoder,
    save_encoder,
)
from bertology_utils.interventions import (
    NoEffectError,
    ablate_heads,
    ablate_layers,
    assert_changes,
    erase,
    is_edited,
    mean_heads,
    patch,
    prune_heads,
    prune_layers,
    scale_heads,
    zero_embeddings,
)
from bertology_utils.words import TextPair, make_batch

HEADS = {0: [1], 2: [0, 3]}


def last(encoder, texts):
    """Last hidden states of the real pieces, flat."""
    batch = make_batch(encoder, texts)
    with evaluating(encoder):
        return encoder.encode(batch)[batch.attention_mask.bool()]


def close(a, b):
    return torch.allclose(a, b, atol=1e-5)


def copied(encoder):
    return replace(encoder, model=copy.deepcopy(encoder.model))


def n_hooks(encoder) -> int:
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks)
        for module in encoder.model.modules()
    )


def rolled(now):
    """Shift along the last dimension. (Scaling would be lost on what a LayerNorm reads.)"""
    return torch.roll(now, 1, dims=-1)


def everything(encoder):
    """One of each intervention, by name; unentered."""
    width = encoder.d_model
    return {
        "ablate_heads": ablate_heads(encoder, HEADS),
        "mean": ablate_heads(encoder, HEADS, "mean", means=torch.ones(3, 4, 8)),
        "scale_heads": scale_heads(encoder, torch.full((3, 4), 0.5)),
        "layer": ablate_layers(encoder, [1]),
        "attention": ablate_layers(encoder, [1], "attention"),
        "mlp": ablate_layers(encoder, [0, 2], "mlp"),
        "erase": erase(encoder, 1, torch.diag((torch.arange(width) > 3).float())),
        "token": zero_embeddings(encoder, "token"),
        "position": zero_embeddings(encoder, "position"),
        **{name: patch(encoder, name, 1, rolled) for name in SITES},
    }


NAMES = list(everything(tiny_encoder("bert")))


@pytest.mark.parametrize("name", NAMES)
def test_every_intervention_works_and_leaves_no_trace(any_encoder, texts, name):
    before, hooks = last(any_encoder, texts), n_hooks(any_encoder)
    assert not is_edited(any_encoder)
    assert assert_changes(any_encoder, texts, everything(any_encoder)[name]) > 1e-4
    assert torch.equal(last(any_encoder, texts), before)
    with pytest.raises(RuntimeError, match="stop"), everything(any_encoder)[name]:
        last(any_encoder, texts)
        assert is_edited(any_encoder)
        raise RuntimeError("stop")
    assert torch.equal(last(any_encoder, texts), before)
    assert n_hooks(any_encoder) == hooks and not is_edited(any_encoder)
    assert any_encoder.config._attn_implementation == "eager"


@pytest.mark.parametrize("name", NAMES)
def test_an_intervention_that_nothing_reaches_raises(tiny_bert, name):
    hooks = n_hooks(tiny_bert)
    with pytest.raises(NoEffectError, match="no forward pass of 'tiny-bert' reached"):
        with everything(tiny_bert)[name]:
            pass
    assert n_hooks(tiny_bert) == hooks


def test_ablating_is_pruning_is_zeroing_columns(any_encoder, texts):
    with ablate_heads(any_encoder, HEADS):
        ablated = last(any_encoder, texts)
    pruned = prune_heads(any_encoder, HEADS)
    zeroed = copied(any_encoder)
    with torch.no_grad():
        for layer, heads in HEADS.items():
            for head in heads:
                zeroed.layers[layer].output.weight[:, head * 8 : (head + 1) * 8] = 0
    assert close(ablated, last(pruned, texts))
    assert close(ablated, last(zeroed, texts))
    assert not close(ablated, last(any_encoder, texts))
    gates = torch.ones(3, 4)
    for layer, heads in HEADS.items():
        gates[layer, heads] = 0
    with scale_heads(any_encoder, gates):
        assert close(ablated, last(any_encoder, texts))


def test_pruned_model_really_is_smaller(any_encoder):
    pruned = prune_heads(any_encoder, HEADS)
    assert pruned.heads_per_layer == (3, 4, 2) and any_encoder.heads_per_layer == (4, 4, 4)
    layer = pruned.layers[2]
    assert tuple(layer.query.weight.shape) == tuple(layer.value.weight.shape) == (16, 32)
    assert tuple(layer.key.bias.shape) == (16,) and tuple(layer.output.weight.shape) == (32, 16)
    # per head: 3 matrices of K x D with K biases, and K columns of the output matrix
    assert any_encoder.n_parameters - pruned.n_parameters == 3 * (4 * 8 * 32 + 3 * 8)
    assert pruned.name == f"{any_encoder.name} (without 3 heads)"
    assert kept_heads(pruned.model) == {0: [0, 2, 3], 2: [1, 2]}
    assert kept_heads(any_encoder.model) == {}


def test_pruning_twice_counts_from_what_is_left(any_encoder, texts):
    twice = prune_heads(prune_heads(any_encoder, {2: [0]}), {2: [0, 2]})
    once = prune_heads(any_encoder, {2: [0, 1, 3]})
    assert kept_heads(twice.model) == kept_heads(once.model) == {2: [2]}
    assert torch.equal(last(twice, texts), last(once, texts))
    with pytest.raises(HeadIndexError, match=r"head 1 is not in 0\.\.0 of layer 2"):
        prune_heads(once, {2: [1]})


def test_a_layer_may_lose_all_heads(any_encoder, texts, tmp_path):
    all_of_1 = {1: range(4)}
    bare = prune_heads(any_encoder, all_of_1)
    assert bare.heads_per_layer == (4, 0, 4)
    with ablate_heads(any_encoder, all_of_1):
        assert close(last(any_encoder, texts), last(bare, texts))
    cache = run_with_cache(bare, texts, ["pattern", "z"])
    assert cache.layers["pattern"][1].shape[1] == 0 and cache.layers["z"][1].shape[1] == 0
    with pytest.raises(ValueError, match="'pattern' differs in shape between layers"):
        _ = cache["pattern"]
    again = load_encoder(save_encoder(bare, tmp_path / "bare"), device="cpu")
    assert torch.equal(last(again, texts), last(bare, texts))


def test_pruned_models_survive_saving(any_encoder, texts, tmp_path):
    pruned = prune_heads(any_encoder, HEADS)
    whole = save_encoder(any_encoder, tmp_path / "whole") / "model.safetensors"
    small = save_encoder(pruned, tmp_path / "small") / "model.safetensors"
    assert small.stat().st_size < whole.stat().st_size - 3 * 4 * 8 * 32 * 3
    again = load_encoder(tmp_path / "small", device="cpu")
    assert again.heads_per_layer == (3, 4, 2)
    assert again.trained_heads == any_encoder.trained_heads
    assert torch.equal(last(again, texts), last(pruned, texts))
    if again.has_mlm:
        hidden = torch.randn(5, 32)
        with evaluating(again):
            assert torch.equal(again.mlm_logits(hidden), pruned.mlm_logits(hidden))
        table = again.embeddings.token.weight
        assert again.model.get_output_embeddings().weight is table, "the head is tied"
    assert kept_heads(prune_heads(again, {0: [0]}).model)[0] == [2, 3]


def test_torn_pruned_model_is_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = save_encoder(prune_heads(tiny_encoder("bert"), HEADS), tmp_path / "torn")
    weights = folder / "model.safetensors"
    state = load_file(weights)
    state.pop("bert.encoder.layer.0.attention.self.key.weight")
    save_file(state, weights, {"format": "pt"})
    with pytest.raises(UnknownModelError, match="'torn' lack 1 .*self.key.weight"):
        load_encoder(folder, device="cpu")


def test_pruning_keeps_training_possible(tiny_bert, texts):
    pruned = prune_heads(tiny_bert, HEADS)
    pruned.encode(make_batch(pruned, texts)).pow(2).mean().backward()
    assert all(p.grad is not None for p in pruned.base.encoder.parameters())


def test_prune_layers(any_encoder, texts, tmp_path):
    shallow = prune_layers(any_encoder, [1])
    assert shallow.n_layers == shallow.config.num_hidden_layers == 2 and any_encoder.n_layers == 3
    with ablate_layers(any_encoder, [1]):
        assert close(last(any_encoder, texts), last(shallow, texts))
    again = load_encoder(save_encoder(shallow, tmp_path / "shallow"), device="cpu")
    assert torch.equal(last(again, texts), last(shallow, texts))
    both = prune_layers(prune_heads(any_encoder, HEADS), [0])
    assert both.heads_per_layer == (4, 2) and kept_heads(both.model) == {1: [1, 2]}
    again = load_encoder(save_encoder(both, tmp_path / "both"), device="cpu")
    assert torch.equal(last(again, texts), last(both, texts))
    with pytest.raises(ValueError, match="no layer of .* would be left"):
        prune_layers(any_encoder, range(3))
    with pytest.raises(LayerIndexError):
        prune_layers(any_encoder, [3])


def test_pruning_inside_an_intervention_is_refused(tiny_bert, texts):
    with ablate_heads(tiny_bert, HEADS):
        last(tiny_bert, texts)
        with pytest.raises(ValueError, match="an intervention is active on 'tiny-bert'"):
            prune_heads(tiny_bert, HEADS)


def test_mean_ablation_is_a_constant_output(any_encoder, texts):
    means = mean_heads(any_encoder, texts, max_tokens=40)
    total, count = 0, 0
    for text in texts:
        z = run_with_cache(any_encoder, text, ["z"])["z"][:, 0]
        total, count = total + z.sum(2), count + z.shape[2]
    assert close(means, total / count)
    with ablate_heads(any_encoder, HEADS, "mean", means=means):
        z = run_with_cache(any_encoder, texts, ["z"])["z"]
    assert close(z[2, :, 3], means[2, 3].expand_as(z[2, :, 3]))
    free = run_with_cache(any_encoder, texts, ["z"])["z"]
    assert close(z[1], free[1]) is False and close(z[0, :, 0], free[0, :, 0])


def test_gates_give_head_importance(any_encoder, texts):
    """The gradient of a gate is the derivative that two nearby gates give."""
    batch = make_batch(any_encoder, texts)
    model = copied(any_encoder)
    model = replace(model, model=model.model.double())

    def loss(gates):
        with scale_heads(model, gates):
            return model.encode(batch)[:, 0].pow(2)[:, :7].sum()

    gates = torch.ones(3, 4, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(gates), gates)
    step = 1e-5
    for layer, head in ((0, 0), (1, 2), (2, 3)):
        shift = torch.zeros(3, 4, dtype=torch.float64)
        shift[layer, head] = step
        with torch.no_grad():
            slope = (loss(gates + shift) - loss(gates - shift)) / (2 * step)
        assert torch.allclose(slope, gradient[layer, head], rtol=1e-4, atol=1e-8)


def test_gates_per_row_are_many_ablations_at_once(any_encoder, texts):
    gates = torch.ones(12, 3, 4)
    for i in range(12):
        gates[i, i // 4, i % 4] = 0
    batch = make_batch(any_encoder, [texts[0]] * 12)
    with evaluating(any_encoder), scale_heads(any_encoder, gates):
        together = any_encoder.encode(batch)
    for i in range(12):
        with ablate_heads(any_encoder, {i // 4: [i % 4]}):
            assert close(together[i], last(any_encoder, texts[0]))
    with pytest.raises(ValueError, match="gates for 12 rows, but a batch of 4"):
        with scale_heads(any_encoder, gates):
            last(any_encoder, texts)


def test_patching_with_a_whole_run_moves_that_run_over(any_encoder, texts):
    """The hidden states of one text, patched into another, give the first text's output."""
    donor = "the cat sat on the mat ."
    other = "a dog bark s in the city"
    length = make_batch(any_encoder, [donor]).input_ids.shape[1]
    words = other.split()
    while make_batch(any_encoder, " ".join(words)).input_ids.shape[1] > length:
        words.pop()
    while make_batch(any_encoder, " ".join(words)).input_ids.shape[1] < length:
        words.append("a")
    other = " ".join(words)
    run = run_with_cache(any_encoder, donor, list(SITES))
    for layer in range(4):
        with patch(any_encoder, "hidden_states", layer, run["hidden_states"][layer]):
            assert close(last(any_encoder, other), run["hidden_states"][3, 0])
    for name in ("attn_out", "z", "pattern", "mlp_act", "resid_mid", "q", "resid_post_sum"):
        with patch(any_encoder, name, 2, run[name][2]):
            seen = run_with_cache(any_encoder, other, [name])[name]
        assert close(seen[2], run[name][2]), name
        free = run_with_cache(any_encoder, other, [name])[name]
        assert not close(free[2], run[name][2]) and torch.equal(free[0], seen[0]), name


def test_patching_only_some_places(any_encoder, texts):
    free = run_with_cache(any_encoder, texts, ["z", "hidden_states"])
    with patch(any_encoder, "z", 1, 0.0, positions=[0, 2], heads=[1]):
        z = run_with_cache(any_encoder, texts, ["z"])["z"]
    changed = (z != free["z"])[1].any(-1)  # [B, H, T]
    assert changed.nonzero()[:, 1].unique().tolist() == [1]
    assert changed.nonzero()[:, 2].unique().tolist() == [0, 2]
    assert z[1, :, 1, [0, 2]].abs().max() == 0
    mask = torch.zeros(free["z"].shape[1], free["z"].shape[3], dtype=torch.bool)
    mask[1, 3] = mask[2, 1] = True
    with patch(any_encoder, "hidden_states", 2, torch.arange(32.0), positions=mask):
        hidden = run_with_cache(any_encoder, texts, ["hidden_states"])["hidden_states"]
    assert torch.equal((hidden != free["hidden_states"])[2].any(-1), mask)
    assert torch.equal(hidden[2, 1, 3], torch.arange(32.0))
    with patch(any_encoder, "hidden_states", 0, 0.0, positions=3):
        hidden = run_with_cache(any_encoder, texts, ["hidden_states"])["hidden_states"]
    assert hidden[0, :, 3].abs().max() == 0 and torch.equal(
        hidden[0, :, 2], free["hidden_states"][0, :, 2]
    )


def test_patched_pattern_by_hand(any_encoder, texts):
    free = run_with_cache(any_encoder, texts, ["pattern", "v", "z"])
    uniform = torch.full_like(free["pattern"][1], 1.0) / free["pattern"].shape[-1]
    with patch(any_encoder, "pattern", 1, uniform, heads=[2]):
        seen = run_with_cache(any_encoder, texts, ["pattern", "v", "z"])
    assert torch.equal(seen["pattern"][1, :, 2], uniform[:, 2])
    assert close(seen["z"][1, :, 2], uniform[:, 2] @ free["v"][1, :, 2])
    assert close(seen["z"][1, :, [0, 1, 3]], free["z"][1, :, [0, 1, 3]])
    with patch(any_encoder, "pattern", 1, lambda now: now):
        same = last(any_encoder, texts)
    assert close(same, last(any_encoder, texts))


def test_nested_interventions_act_from_the_outside_in(any_encoder, texts):
    for name in ("z", "pattern", "hidden_states"):
        with patch(any_encoder, name, 1, 1.0), patch(any_encoder, name, 1, lambda now: now * 3):
            assert run_with_cache(any_encoder, texts, [name])[name][1].eq(3).all(), name
        with patch(any_encoder, name, 1, lambda now: now * 3), patch(any_encoder, name, 1, 1.0):
            assert run_with_cache(any_encoder, texts, [name])[name][1].eq(1).all(), name
    with ablate_heads(any_encoder, {0: [1]}), ablate_heads(any_encoder, {2: [0, 3]}):
        nested = last(any_encoder, texts)
    with ablate_heads(any_encoder, HEADS):
        assert torch.equal(nested, last(any_encoder, texts))


def test_recorders_of_transformers_see_the_edited_values(texts):
    """Its recording hooks are installed on first use and stay; edits must come before them."""
    encoder = tiny_encoder("bert")
    batch = make_batch(encoder, texts)
    for _ in range(2):
        with evaluating(encoder), patch(encoder, "hidden_states", 1, 1.0):
            with patch(encoder, "pattern", 2, 0.5):
                plain = encoder.base(
                    **encoder.inputs(batch), output_hidden_states=True, output_attentions=True
                )
        assert plain.hidden_states[1].eq(1).all() and plain.attentions[2].eq(0.5).all()


def test_layers_and_sublayers_passed_by(any_encoder, texts):
    names = ["hidden_states", "attn_out", "mlp_out", "resid_mid_sum"]
    with ablate_layers(any_encoder, [0, 2]):
        cache = run_with_cache(any_encoder, texts, names)
    assert torch.equal(cache["hidden_states"][1], cache["hidden_states"][0])
    assert torch.equal(cache["hidden_states"][3], cache["hidden_states"][2])
    with ablate_layers(any_encoder, [1], "attention"):
        cache = run_with_cache(any_encoder, texts, names)
    assert cache["attn_out"][1].abs().max() == 0 and cache["attn_out"][0].abs().max() > 0
    assert torch.equal(cache["resid_mid_sum"][1], cache["hidden_states"][1])
    with ablate_layers(any_encoder, [1], "mlp"):
        assert run_with_cache(any_encoder, texts, names)["mlp_out"][1].abs().max() == 0


def test_erase_projects(any_encoder, texts):
    torch.manual_seed(0)
    direction = torch.nn.functional.normalize(torch.randn(32), dim=0)
    projection = torch.eye(32) - torch.outer(direction, direction)
    free = run_with_cache(any_encoder, texts, ["hidden_states"])["hidden_states"]
    for layer in range(4):
        with erase(any_encoder, layer, projection):
            hidden = run_with_cache(any_encoder, texts, ["hidden_states"])["hidden_states"]
        assert (hidden[layer] @ direction).abs().max() < 1e-5
        assert close(hidden[layer], free[layer] @ projection.T)
        assert torch.equal(hidden[:layer], free[:layer])
    centre = torch.randn(32)
    with erase(any_encoder, 1, projection, centre=centre):
        hidden = run_with_cache(any_encoder, texts, ["hidden_states"])["hidden_states"][1]
    assert close(hidden, centre + (free[1] - centre) @ projection.T)


@pytest.mark.parametrize("part", ["token", "position", "segment"])
def test_zeroed_table_equals_a_table_of_zeros(any_encoder, part):
    pair = TextPair("the cat sat", "it was good")
    if getattr(any_encoder.embeddings, part) is None:
        with pytest.raises(ValueError, match="'tiny-distilbert' has no segment embeddings"):
            with zero_embeddings(any_encoder, part):
                pass
        return
    zeroed = copied(any_encoder)
    with torch.no_grad():
        getattr(zeroed.embeddings, part).weight.zero_()
    with zero_embeddings(any_encoder, part):
        assert close(last(any_encoder, [pair]), last(zeroed, [pair]))


def test_assert_changes_catches_idle_interventions(tiny_bert, texts):
    with pytest.raises(NoEffectError, match="changed 'tiny-bert' by 0.0e\\+00 only"):
        assert_changes(tiny_bert, texts, nullcontext())
    with pytest.raises(NoEffectError):
        assert_changes(tiny_bert, texts, scale_heads(tiny_bert, torch.ones(3, 4)))
    with pytest.raises(NoEffectError):
        assert_changes(tiny_bert, texts, ablate_heads(tiny_bert, {}))
    with pytest.raises(NoEffectError):
        assert_changes(tiny_bert, texts, ablate_heads(tiny_bert, {1: []}))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda e: ablate_heads(e, {3: [0]}), LayerIndexError, r"layer 3 is not in 0\.\.2"),
        (lambda e: ablate_heads(e, {0: [4]}), HeadIndexError, r"head 4 is not in 0\.\.3"),
        (lambda e: ablate_heads(e, {0: [-1]}), HeadIndexError, "head -1"),
        (lambda e: ablate_heads(e, {0: [0]}, "max"), ValueError, "mode is 'max'"),
        (lambda e: ablate_heads(e, {0: [0]}, "mean"), ValueError, "needs means"),
        (
            lambda e: ablate_heads(e, {0: [0]}, means=torch.ones(3, 4, 8)),
            ValueError,
            "'zero' takes none",
        ),
        (
            lambda e: ablate_heads(e, {0: [0]}, "mean", means=torch.ones(4, 8)),
            ValueError,
            r"means have shape \(4, 8\), expected \(3, 4, 8\)",
        ),
        (lambda e: scale_heads(e, torch.ones(4, 3)), ValueError, r"expected \(3, 4\)"),
        (lambda e: ablate_layers(e, [3]), LayerIndexError, "layer 3"),
        (lambda e: ablate_layers(e, [0], "ffn"), ValueError, "part is 'ffn'"),
        (lambda e: erase(e, 4, torch.eye(32)), LayerIndexError, r"layer 4 is not in 0\.\.3"),
        (lambda e: erase(e, 1, torch.eye(8)), ValueError, r"expected \(32, 32\)"),
        (lambda e: erase(e, 1, torch.eye(32), centre=torch.ones(1)), ValueError, "centre has"),
        (lambda e: zero_embeddings(e, "word"), ValueError, "part is 'word'"),
        (lambda e: patch(e, "attentions", 0, 0.0), UnknownSiteError, "unknown activation"),
        (lambda e: patch(e, "q", 3, 0.0), LayerIndexError, "layer 3"),
        (lambda e: patch(e, "mlp_out", 0, 0.0, heads=[0]), ValueError, "'mlp_out' has no heads"),
        (lambda e: patch(e, "q", 0, 0.0, heads=[4]), HeadIndexError, "head 4"),
        (lambda e: patch(e, "q", 0, torch.ones(5)), ValueError, r"shape \(5,\) does not fit 'q'"),
        (lambda e: patch(e, "q", 0, 0.0, positions=99), ValueError, "position 99 is not in"),
        (
            lambda e: patch(e, "q", 0, 0.0, positions=torch.ones(1, 1, dtype=torch.bool)),
            ValueError,
            r"positions have shape \(1, 1\)",
        ),
    ],
)
def test_bad_input(tiny_bert, texts, make, error, message):
    before, hooks = last(tiny_bert, texts), n_hooks(tiny_bert)
    with pytest.raises(error, match=message), make(tiny_bert):
        last(tiny_bert, texts)
    assert n_hooks(tiny_bert) == hooks and torch.equal(last(tiny_bert, texts), before)


def test_mean_heads_needs_texts(tiny_bert):
    with pytest.raises(ValueError, match="no texts"):
        mean_heads(tiny_bert, [])


def test_identities_on_the_embedded_model(embedded, texts, tmp_path):
    heads = {0: [0, 11], 3: [5], 5: range(12)}
    before = last(embedded, texts)
    with ablate_heads(embedded, heads):
        ablated = last(embedded, texts)
    pruned = prune_heads(embedded, heads)
    assert close(ablated, last(pruned, texts)) and not close(ablated, before)
    zeroed = copied(embedded)
    with torch.no_grad():
        for layer, numbers in heads.items():
            for head in numbers:
                zeroed.layers[layer].output.weight[:, head * 32 : (head + 1) * 32] = 0
    assert close(ablated, last(zeroed, texts))
    again = load_encoder(save_encoder(pruned, tmp_path / "pruned"), device="cpu")
    assert again.has_mlm and torch.equal(last(again, texts), last(pruned, texts))
    for name in SITES:
        assert_changes(embedded, texts, patch(embedded, name, 2, rolled))
    assert torch.equal(last(embedded, texts), before)
