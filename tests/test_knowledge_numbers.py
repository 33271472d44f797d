"""Number probes on vectors that hold a value, hold nothing, or hold it in one range only."""

import numpy as np
import pytest
from tiny import tiny_encoder

from bertology_utils import knowledge as k
from bertology_utils import stimuli as s
from bertology_utils.activations import collect
from bertology_utils.words import WordList

EXAMPLES = s.number_examples(0, 400)
VALUES = np.array([e.value for e in EXAMPLES])


def planted(width=6, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    return (VALUES[:, None] * rng.normal(size=width) / 100
            + noise * rng.normal(size=(len(VALUES), width)))[None]  # fmt: skip


def random(width=6, seed=0):
    return np.random.default_rng(seed).normal(size=(1, len(VALUES), width))


def test_vectors_of_numbers_cover_all_their_pieces(tiny_bert):
    examples = s.number_examples(7, 14)
    found = k.number_vectors(tiny_bert, examples)
    assert found.shape == (tiny_bert.n_layers + 1, 7, tiny_bert.d_model)
    alone = collect(tiny_bert, [WordList(("The", "number", "is", "12", "."))])
    assert np.allclose(found[:, 5], alone.arrays["hidden_states"][:, 3], atol=1e-5)
    spelled = k.number_vectors(tiny_bert, s.number_examples(21, 23, form="words"))
    parts = collect(tiny_bert, [WordList(("The", "number", "is", "twenty one", "."))])
    assert np.allclose(spelled[:, 0], parts.arrays["hidden_states"][:, 3], atol=1e-5)
    decimal = k.number_vectors(tiny_bert, s.number_examples(1, 2, form="decimal"))
    assert decimal.shape[1] == 10
    with pytest.raises(k.KnowledgeError, match="no numbers"):
        k.number_vectors(tiny_bert, [])


def test_planted_values_are_decoded_and_noise_is_not():
    both = np.concatenate([random(), planted()])
    found = k.decode_numbers(both, EXAMPLES, model="m")
    assert found.layers[1].r2 > 0.99 > 0.2 > found.layers[0].r2
    assert found.result.value == found.layers[1].r2 and found.result.unit == "R squared"
    # Digits at their places determine the value linearly.
    assert found.characters.r2 > 0.99
    assert found.result.baselines == {"characters": found.characters.r2}
    with pytest.raises(k.UnmatchedError, match="3 numbers"):
        k.decode_numbers(planted(), EXAMPLES[:3])


def test_characters_are_counted_from_both_ends():
    found = k.character_features(["7", "17", "171"])
    assert found.shape == (3, 2 * 3 * 2) and found.sum() == 2 * (1 + 2 + 3)
    assert not np.array_equal(found[0], found[1])
    with pytest.raises(k.KnowledgeError, match="one character"):
        k.character_features(["7", ""])


def test_sums_are_read_from_planted_values_of_new_numbers():
    sums = s.addition(3000, 0, 400)
    found = k.add_numbers(planted(), EXAMPLES, sums)
    assert found.result.value > 0.99
    assert k.add_numbers(random(), EXAMPLES, sums).result.value < 0.1
    with pytest.raises(k.KnowledgeError, match="has no vector"):
        k.add_numbers(planted(), EXAMPLES, s.addition(50, 300, 900))


def test_errors_grow_beyond_the_range_only_where_the_value_does_not():
    straight = k.extrapolate(planted(noise=0.05), EXAMPLES, 200)
    assert abs(straight.result.value) < 0.6
    bent = np.minimum(VALUES, 200)[:, None] * np.ones(4) / 100
    bent = (bent + 0.02 * np.random.default_rng(0).normal(size=bent.shape))[None]
    found = k.extrapolate(bent, EXAMPLES, 200)
    assert found.result.value > 2 and found.beyond > found.inside
    assert found.result.value == pytest.approx(np.log(found.beyond / found.inside))
    # The line is flat beyond the range.
    assert found.predicted[~found.trained].std() < 0.2 * found.values[~found.trained].std()
    with pytest.raises(k.KnowledgeError, match="numbers below 3"):
        k.extrapolate(planted(), EXAMPLES, 3)


def test_the_largest_is_found_by_a_planted_value():
    lists = s.maximum(2500, 0, 400, length=3)
    found = k.find_largest(planted(), EXAMPLES, lists, layer=0)
    assert found.value > 0.95
    assert found.baselines["chance"] == pytest.approx(1 / 3)
    assert found.baselines["characters"] > 0.8
    at_random = k.find_largest(random(), EXAMPLES, lists, layer=0)
    assert at_random.value == pytest.approx(1 / 3, abs=0.12)
    with pytest.raises(k.UnmatchedError, match="different lengths"):
        k.find_largest(planted(), EXAMPLES, lists + s.maximum(2, 0, 400), layer=0)
    with pytest.raises(k.KnowledgeError, match="has no vector"):
        k.find_largest(planted(), EXAMPLES, s.maximum(9, 300, 900, length=3), layer=0)


def test_neighbours_cut_differently_lie_apart_where_pieces_decide(tiny_bert):
    examples = s.number_examples(5, 120)
    vectors = k.number_vectors(tiny_bert, examples)
    found = k.neighbour_cosines(tiny_bert, vectors, examples, layer=0)
    # Digits are single pieces here: the cut changes at 9|10 and 99|100.
    assert found.pieces[9] == ("9",) and found.pieces[117] == ("1", "##1", "##7")
    assert found.different.n == 2 and found.alike.n == 112
    assert found.difference.value == pytest.approx(found.alike.value - found.different.value)
    rows = vectors[0].astype(float)
    cosine = rows[4] @ rows[5] / np.linalg.norm(rows[4]) / np.linalg.norm(rows[5])
    again = rows[94] @ rows[95] / np.linalg.norm(rows[94]) / np.linalg.norm(rows[95])
    assert found.different.value == pytest.approx((cosine + again) / 2, abs=1e-6)
    with pytest.raises(k.KnowledgeError, match="cut in the same way"):
        k.neighbour_cosines(tiny_bert, vectors[:, :4], examples[:4], layer=0)
    with pytest.raises(k.KnowledgeError, match="follow one another"):
        k.neighbour_cosines(tiny_bert, vectors[:, ::2], examples[::2], layer=0)


def test_numbers_can_be_read_by_every_family(any_encoder):
    found = k.number_vectors(any_encoder, s.number_examples(0, 3))
    assert found.shape == (any_encoder.n_layers + 1, 3, any_encoder.d_model)
    assert len({row.tobytes() for row in found[0]}) == 3
    assert tiny_encoder("bert").d_model == 32
