"""The trunk's plain arithmetic against the model's own forward pass."""

import copy
from dataclasses import replace

import pytest
import torch

from bertology_utils.activations import run_with_cache
from bertology_utils.encoder import (
    Packing,
    Trunk,
    additive_mask,
    evaluating,
    first_states,
    is_plain,
    pick,
    pieces_at_once,
)
from bertology_utils.encoder.packing import FEW
from bertology_utils.interventions import ablate_heads, prune_heads
from bertology_utils.words import TextPair, make_batch


def both(encoder, texts):
    batch = make_batch(encoder, texts)
    with evaluating(encoder):
        return batch, encoder.encode(batch), Trunk(encoder)


def test_the_trunk_is_the_model_for_every_family(any_encoder, texts):
    batch, expected, trunk = both(any_encoder, texts)
    real = batch.attention_mask.bool()
    with evaluating(any_encoder):
        assert torch.equal(trunk.encode(batch)[real], expected[real])


def test_an_unpadded_batch_and_a_pair_agree_too(tiny_bert):
    for texts in (["Dogs bark."], ["The cat sat."] * 3, [TextPair("Dogs bark.", "Cats sleep.")]):
        batch, expected, trunk = both(tiny_bert, texts)
        with evaluating(tiny_bert):
            assert torch.equal(trunk.encode(batch), expected)


def test_reading_without_hooks_is_reading_with_them(any_encoder, texts):
    names = ["hidden_states", "pattern"]
    fast = run_with_cache(any_encoder, texts, names)
    slow = run_with_cache(any_encoder, texts, [*names, "z"])
    for name in names:
        for one, other in zip(fast.layers[name], slow.layers[name], strict=True):
            real = fast.batch.attention_mask.bool()
            pick = one.transpose(1, 2)[real] if name == "pattern" else one[real]
            assert torch.equal(pick, (other.transpose(1, 2) if name == "pattern" else other)[real])


def test_one_place_a_text_is_that_place_of_all(any_encoder, texts):
    batch, expected, trunk = both(any_encoder, texts)
    places = torch.tensor([1, 4, 0, 2])
    with evaluating(any_encoder):
        found = trunk.encode_at(batch, places)
    wanted = expected[torch.arange(4), places]
    assert torch.allclose(found, wanted, atol=1e-5)


def test_packed_texts_come_back_as_they_were(tiny_bert, texts):
    batch = make_batch(tiny_bert, texts)
    pieces = batch.attention_mask.bool()
    padded = torch.randn(*pieces.shape, 3)
    packing = Packing.of(pieces, additive_mask(batch.attention_mask, padded.dtype))
    rows = packing.pack(padded)
    assert torch.equal(rows, padded[pieces])
    assert torch.equal(packing.spread(rows)[pieces], padded[pieces])
    places = torch.tensor([1, 4, 0, 2])
    assert torch.equal(pick(rows, places, packing), pick(padded, places))
    few = Packing.of(pieces[2:3], packing.mask[2:3])
    assert len(few.pack(padded[2:3])) == FEW > pieces[2].sum()
    assert torch.equal(few.spread(few.pack(padded[2:3]))[pieces[2:3]], padded[2][pieces[2]])


def test_packed_layers_are_the_padded_ones(any_encoder, texts):
    batch, expected, trunk = both(any_encoder, texts)
    pieces = batch.attention_mask.bool()
    with evaluating(any_encoder):
        hidden, mask = trunk.embed(batch)
        packing = Packing.of(pieces, mask)
        rows = packing.pack(hidden)
        for layer in range(2):
            rows = trunk.layer(layer, rows, packing)
        places = torch.tensor([1, 4, 0, 2])
        at = trunk.layer_at(2, rows, packing, places)
        rows = trunk.layer(2, rows, packing)
    assert torch.allclose(packing.spread(rows)[pieces], expected[pieces], atol=1e-5)
    assert torch.allclose(at, pick(expected, places), atol=1e-5)


def test_several_small_batches_in_one_are_those_batches(tiny_bert):
    some = [make_batch(tiny_bert, [f"{noun} bark.", "The dogs sleep."]) for noun in ("cats", "he")]
    with evaluating(tiny_bert):
        alone = [tiny_bert.encode(batch) for batch in some]
        trunk = Trunk(tiny_bert).stacked(2, some[0].input_ids.shape[1])
        assert trunk.together == 2
        entering = [trunk.embed(batch) for batch in some]
        hidden, mask = (torch.cat(part) for part in zip(*entering, strict=True))
        places = torch.tensor([1, 2, 0, 3])
        for layer in range(2):
            hidden = trunk.layer(layer, hidden, mask)
        at = trunk.layer_at(2, hidden, mask, places)
        hidden = trunk.layer(2, hidden, mask)
    assert torch.allclose(hidden, torch.cat(alone), atol=1e-5)
    assert torch.allclose(at, pick(torch.cat(alone), places), atol=1e-5)


def test_first_states_are_those_of_the_model_with_hooks_and_without(any_encoder, texts):
    batch, expected, _ = both(any_encoder, texts)
    with evaluating(any_encoder):
        assert torch.allclose(first_states(any_encoder, batch), expected[:, 0], atol=1e-5)
        with ablate_heads(any_encoder, {0: [0]}):
            found, silenced = first_states(any_encoder, batch), any_encoder.encode(batch)
    assert torch.equal(found, silenced[:, 0]) and not torch.allclose(found, expected[:, 0])
    assert first_states(any_encoder, batch).requires_grad


def test_a_pruned_model_is_still_plain(tiny_bert, texts):
    small = prune_heads(tiny_bert, {0: [1, 2], 2: [0]})
    batch, expected, trunk = both(small, texts)
    real = batch.attention_mask.bool()
    with evaluating(small):
        assert torch.equal(trunk.encode(batch)[real], expected[real])


def test_whatever_a_layer_does_besides_its_parts_is_not_plain(tiny_bert):
    assert not is_plain(tiny_bert), "gradients are wanted here"
    with evaluating(tiny_bert):
        assert is_plain(tiny_bert)
        with ablate_heads(tiny_bert, {1: [0]}):
            assert not is_plain(tiny_bert)
            tiny_bert.encode(make_batch(tiny_bert, "Dogs bark."))
            with pytest.raises(ValueError, match="own forward pass"):
                Trunk(tiny_bert)
        assert is_plain(tiny_bert)

    def changed(change):
        encoder = replace(tiny_bert, model=copy.deepcopy(tiny_bert.model))
        change(encoder)
        with torch.no_grad():
            return not is_plain(encoder)

    class Wide(torch.nn.Linear):
        pass

    def swap(encoder):
        encoder.layers[0].block.intermediate.dense = Wide(32, 64)

    def own_forward(encoder):
        encoder.layers[1].attention.forward = lambda *args, **kwargs: None

    def sdpa(encoder):
        encoder.config._attn_implementation = "sdpa"

    def chunks(encoder):
        encoder.config.chunk_size_feed_forward = 2

    def parametrised(encoder):
        torch.nn.utils.parametrizations.weight_norm(encoder.layers[0].query)

    def recorded(encoder):
        encoder.model.eval()
        encoder.base(**encoder.inputs(make_batch(encoder, "Cats.")), output_attentions=True)

    assert not changed(recorded), "what transformers leaves behind only records"
    assert changed(lambda encoder: encoder.model.train())
    for change in (swap, own_forward, sdpa, chunks, parametrised):
        assert changed(lambda e, change=change: (e.model.eval(), change(e))), change.__name__
    assert not changed(lambda encoder: encoder.model.eval())


def test_the_size_of_a_pass_is_chosen_by_device(tiny_bert):
    assert pieces_at_once(tiny_bert, 4096) < 4096
    assert pieces_at_once(tiny_bert, 10) == 10
    elsewhere = replace(tiny_bert, device=torch.device("cuda"))
    assert pieces_at_once(elsewhere, 4096) == 4096
    with evaluating(tiny_bert):
        trunk = Trunk(tiny_bert)
        assert trunk.stacked(1, FEW - 1).together == 1 and trunk.stacked(1, FEW) is trunk
        there = Trunk(elsewhere)
        assert there.stacked(1, FEW - 1) is there
