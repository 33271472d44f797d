"""Impact matrices against a one-text-at-a-time loop, and the trees read off them."""

import numpy as np
import pytest
import torch

from bertology_utils.encoder import LayerIndexError
from bertology_utils.probes import (
    DecodingError,
    Impact,
    ProbeError,
    UnequalLengthError,
    decode_impact,
    impact_matrices,
    impact_trees,
)
from bertology_utils.stimuli import treebank
from bertology_utils.words import TextTooLongError, WordList, align

WORDS = [["Dogs", "bark"], ["the", "cats", "sleep", "well-known", "."], ["cabinets", "are", "old"]]


def plain_vectors(encoder, words, masked):
    """Hidden states [L + 1, T, D] with all pieces of the given words masked; no batching."""
    row = align(encoder, words)
    ids = list(row.input_ids)
    for word in masked:
        for piece in range(*row.spans[word]):
            ids[piece] = encoder.tokenizer.mask_token_id
    with torch.no_grad():
        out = encoder.base(input_ids=torch.tensor([ids]), output_hidden_states=True)
    return row, torch.stack(out.hidden_states)[:, 0]


def test_impacts_equal_the_definition(any_encoder):
    layers = (0, 1, any_encoder.n_layers)
    found = impact_matrices(any_encoder, WORDS, layers=layers, max_tokens=40)
    for impact, words in zip(found, WORDS, strict=True):
        assert impact.words == tuple(words)
        assert impact.matrix.shape == (3, len(words), len(words))
        for i in range(len(words)):
            row, alone = plain_vectors(any_encoder, words, [i])
            start, end = row.spans[i]
            for j in range(len(words)):
                _, both = plain_vectors(any_encoder, words, [i, j])
                change = (alone - both)[list(layers), start:end].mean(1).norm(dim=-1)
                np.testing.assert_allclose(impact.matrix[:, i, j], change.numpy(), atol=2e-5)


def test_a_word_of_several_pieces_is_masked_whole(tiny_bert):
    assert len(align(tiny_bert, ["cabinets"]).input_ids) > 3
    (impact,) = impact_matrices(tiny_bert, [["cabinets", "are"]])
    row, alone = plain_vectors(tiny_bert, ["cabinets", "are"], [1])
    _, both = plain_vectors(tiny_bert, ["cabinets", "are"], [0, 1])
    place = row.spans[1][0]
    expected = (alone[-1, place] - both[-1, place]).norm().item()
    assert impact.matrix[0, 1, 0] == pytest.approx(expected, abs=1e-5)
    assert impact.matrix[0, 1, 0] != pytest.approx(impact.matrix[0, 0, 1], abs=1e-4)


def test_the_embedding_layer_has_no_impacts(tiny_bert):
    (impact,) = impact_matrices(tiny_bert, [WORDS[1]], layers=[0])
    assert np.abs(impact.matrix).max() == 0


@pytest.mark.parametrize("decoder", ["eisner", "arborescence", "spanning"])
def test_planted_impacts_give_the_gold_trees(decoder):
    bank = treebank(25, seed=3).select(lambda s: s.projective())
    rng = np.random.default_rng(0)
    impacts = []
    for sentence in bank:
        matrix = 0.1 * rng.random((1, len(sentence), len(sentence)))
        for head, word, _ in sentence.edges():
            matrix[0, word, head] += 1.0  # the head matters to the dependent
        impacts.append(Impact(sentence.words, matrix, (4,), "planted"))
    (found,) = impact_trees(impacts, bank, decoder=decoder, gold_root=True)
    assert found.uuas == 1.0
    assert found.uas == 1.0
    assert (found.layer, found.n, found.model) == (4, len(bank), "planted")
    assert 0 < found.right_uas < 0.6 and 0 < found.left_uas < 0.6
    assert 0.2 < found.chain_uuas < 0.7
    for heads, sentence in zip(found.heads, bank, strict=True):
        words = [i for i, tag in enumerate(sentence.upos) if tag != "PUNCT"]
        assert [heads[i] for i in words] == [sentence.heads[i] for i in words]


def test_random_impacts_stay_below_the_chain():
    bank = treebank(40, seed=4)
    rng = np.random.default_rng(0)
    impacts = [Impact(s.words, rng.random((1, len(s), len(s))), (0,), "noise") for s in bank]
    (found,) = impact_trees(impacts, bank)
    assert found.uuas < found.chain_uuas
    assert found.interval[0] < found.uuas < found.interval[1]


def test_treebank_sentences_pass_through(tiny_bert):
    bank = treebank(4, seed=0)
    texts = [WordList(s.words, s.text) for s in bank]
    impacts = impact_matrices(tiny_bert, texts, layers=range(4))
    results = impact_trees(impacts, bank)
    assert [r.layer for r in results] == [0, 1, 2, 3]
    assert all(0 <= r.uas <= r.uuas <= 1 for r in results)


def test_direction_of_arcs():
    matrix = np.array([[0, 5, 0], [1, 0, 1], [0, 5, 0]])  # word 1 matters to both others
    assert decode_impact(matrix) == (2, 0, 2)
    assert decode_impact(matrix, decoder="spanning") == (2, 0, 2)
    assert decode_impact(matrix, root=0)[0] == 0


def test_bad_input_is_named(tiny_bert):
    with pytest.raises(LayerIndexError, match="layer 9"):
        impact_matrices(tiny_bert, WORDS, layers=[9])
    with pytest.raises(ProbeError, match="no layers"):
        impact_matrices(tiny_bert, WORDS, layers=[])
    with pytest.raises(TextTooLongError):
        impact_matrices(tiny_bert, ["cat " * 100])
    with pytest.raises(ValueError, match="'greedy'"):
        decode_impact(np.zeros((2, 2)), decoder="greedy")
    with pytest.raises(DecodingError, match="NaN"):
        decode_impact(np.full((2, 2), np.nan))
    bank = treebank(2, seed=0)
    impact = Impact(("a", "b"), np.zeros((1, 2, 2)), (3,), "x")
    with pytest.raises(UnequalLengthError, match="1 impact matrices for 2"):
        impact_trees([impact], bank)
    with pytest.raises(UnequalLengthError, match="2 words in the impacts"):
        impact_trees([impact, impact], bank)
    with pytest.raises(ProbeError, match="no sentences"):
        impact_trees([], [])
