"""A sweep over all heads against one run a head."""

import numpy as np
import pytest
import torch
from tiny import tiny_encoder

from bertology_utils.encoder import Trunk, evaluating
from bertology_utils.interventions import (
    NoEffectError,
    ablate_heads,
    ablate_layers,
    mean_heads,
    prune_heads,
    sweep_heads,
)
from bertology_utils.words import align_all, token_batches


def total(hidden, batch):
    """One number a text that hangs on every real piece."""
    weights = torch.linspace(-1, 1, hidden.shape[-1])
    if hidden.ndim == 2:
        return hidden @ weights
    return ((hidden @ weights) * batch.attention_mask).sum(1)


def naive(encoder, texts, places=None, **mode):
    values = np.empty((encoder.n_layers, encoder.n_heads, len(texts)))
    for layer in range(encoder.n_layers):
        for head in range(encoder.n_heads):
            for batch in token_batches(encoder, texts):
                index = list(batch.index)
                with evaluating(encoder), ablate_heads(encoder, {layer: [head]}, **mode):
                    hidden = encoder.encode(batch)
                if places is not None:
                    hidden = hidden[range(len(index)), [places[i] for i in index]]
                values[layer, head, index] = total(hidden, batch).numpy()
    return values


def test_every_value_has_the_bits_of_its_own_run(any_encoder, texts):
    found = sweep_heads(any_encoder, texts, total)
    assert np.array_equal(found.values, naive(any_encoder, texts))
    assert found.n == len(texts) and found.effect.shape == (3, 4)


def test_the_embedded_model_too_at_one_place_a_text(embedded):
    texts = [f"The {noun} of the old farmers sleep in the {place}." for noun in ("dogs", "owls")
             for place in ("barn", "shade of a tree", "house", "field behind it")]  # fmt: skip
    places = [2 + i % 3 for i in range(len(texts))]
    found = sweep_heads(embedded, texts, total, places=places)
    assert np.array_equal(found.values, naive(embedded, texts, places))


@pytest.mark.parametrize(
    "some",
    [
        ["The dogs sleep."],
        ["The dogs bark.", "Cats."],
        ["Cats.", "The old farmers near the barn said that the dogs sleep.", "The dogs bark."],
    ],
    ids=["one short text", "two short texts", "much padding"],
)
def test_short_and_padded_texts_keep_the_bits_of_the_embedded_model(embedded, some):
    assert np.array_equal(sweep_heads(embedded, some, total).values, naive(embedded, some))
    places = [1 + i % 2 for i in range(len(some))]
    found = sweep_heads(embedded, some, total, places=places)
    assert np.array_equal(found.values, naive(embedded, some, places))
    few = sweep_heads(embedded, some, total, places=places, max_tokens=24)
    assert np.allclose(few.values, found.values, atol=1e-4)


def test_padding_is_zeros_for_the_measure(tiny_bert, texts):
    def padding(hidden, batch):
        return (hidden * (1 - batch.attention_mask[..., None])).abs().sum((1, 2))

    seen = []

    def measure(hidden, batch):
        seen.append(padding(hidden, batch))
        return total(hidden, batch)

    sweep_heads(tiny_bert, texts, measure)
    with ablate_layers(tiny_bert, [1], "mlp"):
        sweep_heads(tiny_bert, texts, measure)
    assert not torch.stack(seen).any()


def test_means_in_place_of_zeros(tiny_bert, texts):
    means = mean_heads(tiny_bert, texts)
    found = sweep_heads(tiny_bert, texts, total, mode="mean", means=means)
    assert np.array_equal(found.values, naive(tiny_bert, texts, mode="mean", means=means))
    assert not np.array_equal(found.values, sweep_heads(tiny_bert, texts, total).values)


def test_small_batches_and_short_texts_change_no_value(tiny_bert, texts):
    many = [*texts, "Cats.", "The dogs bark."] * 3
    whole = sweep_heads(tiny_bert, many, total)
    parts = sweep_heads(tiny_bert, many, total, max_tokens=20)
    assert np.allclose(whole.values, parts.values, atol=1e-4)
    assert np.allclose(whole.intact, parts.intact, atol=1e-4)


def test_heads_go_one_by_one_where_taller_matrices_change_bits(tiny_bert, texts, monkeypatch):
    expected = sweep_heads(tiny_bert, texts, total)
    plain = Trunk.finish
    seen = []

    def uneven(self, layer, z, hidden):
        seen.append(len(z))
        return plain(self, layer, z, hidden) + 1e-3 * (len(z) > len(texts))

    monkeypatch.setattr(Trunk, "finish", uneven)
    found = sweep_heads(tiny_bert, texts, total)
    assert max(seen) > len(texts), "stacked heads were never tried"
    assert np.array_equal(found.values, expected.values)


def test_inside_another_intervention_the_model_itself_is_run(tiny_bert, texts):
    with ablate_layers(tiny_bert, [1], "mlp"):
        found = sweep_heads(tiny_bert, texts, total)
        expected = naive(tiny_bert, texts)
    assert np.array_equal(found.values, expected)
    assert not np.array_equal(found.values, sweep_heads(tiny_bert, texts, total).values)


def test_layers_below_are_run_once(texts, monkeypatch):
    encoder = tiny_encoder("bert", n_layers=4, n_heads=4)
    runs = dict.fromkeys(range(4), 0)
    plain = Trunk._attend

    def counted(self, layer, asking, hidden, mask):
        runs[layer] += hidden.numel() // hidden.shape[-1]
        return plain(self, layer, asking, hidden, mask)

    monkeypatch.setattr(Trunk, "_attend", counted)
    sweep_heads(encoder, texts, total)
    real = sum(len(row.input_ids) for row in align_all(encoder, texts))
    padded = len(texts) * max(len(row.input_ids) for row in align_all(encoder, texts))
    # Layer 0 attends once as it is and once for its sweep; layer 3 for every head below it too.
    assert runs[0] <= 2 * padded
    assert 3 * 4 * real <= runs[3] <= 3 * 4 * padded + 4 * padded


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"texts": []}, "no texts"),
        ({"places": [1]}, "1 places for 4 texts"),
        ({"places": [1, 1, 99, 1]}, "place 99"),
        ({"mode": "noise"}, "mode is 'noise'"),
        ({"mode": "mean"}, "needs means"),
        ({"measure": lambda hidden, batch: hidden.sum()}, "returned shape"),
    ],
)
def test_bad_calls_are_told(tiny_bert, texts, change, says):
    arguments = {"texts": texts, "measure": total} | change
    with pytest.raises(ValueError, match=says):
        sweep_heads(tiny_bert, **arguments)


def test_unequal_layers_and_idle_heads_are_told(tiny_bert, texts):
    with pytest.raises(ValueError, match="differ in heads"):
        sweep_heads(prune_heads(tiny_bert, {0: [1]}), texts, total)
    with pytest.raises(NoEffectError, match="no head"):
        sweep_heads(tiny_bert, texts, lambda hidden, batch: torch.zeros(len(batch)))
