"""Erasure drives planted directions to chance; amnesic probing equals the plain intervention."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from tiny import tiny_encoder

from bertology_utils.encoder import LayerIndexError, MissingHeadError, evaluating
from bertology_utils.interventions import erase
from bertology_utils.probes import (
    Erasure,
    OneClassError,
    ProbeError,
    TooFewExamplesError,
    amnesic_probe,
    inlp,
    leace,
    masked_vectors,
    masked_words,
    probe_layers,
    random_erasure,
    random_split,
)
from bertology_utils.words import make_batch

TEXTS = [
    "The cats sleep on the table.",
    "A doctor said that the old dog barks.",
    "They were in the city and it was good.",
]


def planted(n=2500, width=24, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    x = rng.normal(size=(n, width)) + 2 * rng.normal(size=(classes, width))[y] + 1.0
    return x.astype(np.float32), y


def test_inlp_drives_a_planted_direction_to_chance():
    x, y = planted()
    split = random_split(len(y))
    erasure = inlp(x, y, split)
    assert erasure.accuracies[0] > 0.95
    assert erasure.accuracies[-1] <= erasure.majority + 0.03
    assert erasure.remaining < 1 / 3 + 0.06
    assert 2 <= erasure.rank < 24
    erased = erasure.apply(torch.from_numpy(x)).numpy()
    theirs = LogisticRegression(max_iter=500).fit(erased[split.train], y[split.train])
    assert theirs.score(erased[split.test], y[split.test]) < 1 / 3 + 0.06
    # As many random directions take away much less.
    control = random_erasure(24, erasure.rank, seed=1, centre=erasure.centre)
    kept = control.apply(torch.from_numpy(x))[None]
    assert probe_layers(kept, y, split)[0].accuracy > 0.8


def test_projections_are_orthogonal_and_keep_the_centre():
    x, y = planted(n=900)
    for erasure in (inlp(x, y, random_split(900)), random_erasure(24, 5)):
        p = erasure.projection
        torch.testing.assert_close(p @ p, p, atol=1e-4, rtol=0)
        torch.testing.assert_close(p, p.T, atol=1e-5, rtol=0)
        assert round(float(p.trace())) == 24 - erasure.rank
        torch.testing.assert_close(erasure.apply(erasure.centre), erasure.centre)


def test_leace_leaves_no_linear_trace_and_changes_less_than_inlp():
    x, y = planted()
    split = random_split(len(y))
    closed = leace(x, y, split)
    assert closed.remaining < 1 / 3 + 0.06
    assert closed.rank == 2  # three classes differ in two dimensions
    erased = closed.apply(torch.from_numpy(x)).numpy()
    rows, gold = erased[split.train], np.eye(3)[y[split.train]]
    covariance = (rows - rows.mean(0)).T @ (gold - gold.mean(0)) / len(rows)
    assert np.abs(covariance).max() < 1e-4
    left = probe_layers(erased[None], y, split)[0].accuracy
    assert left < closed.majority + 0.05
    torch.testing.assert_close(
        closed.projection @ closed.projection, closed.projection, atol=1e-4, rtol=0
    )


def test_masked_words_are_single_known_pieces(tiny_bert):
    words = masked_words(tiny_bert, TEXTS)
    batch = make_batch(tiny_bert, TEXTS)
    assert {word.text for word in words} == {0, 1, 2}
    for word in words:
        assert batch.spans[word.text][word.word] == (word.piece, word.piece + 1)
        assert int(batch.input_ids[word.text, word.piece]) == word.target
    some = masked_words(tiny_bert, TEXTS, per_text=2, seed=3)
    assert len(some) == 6 and set(some) < set(words)
    assert some == masked_words(tiny_bert, TEXTS, per_text=2, seed=3)
    with pytest.raises(TooFewExamplesError):
        masked_words(tiny_bert, ["cabinets"])


def test_masked_vectors_equal_one_text_at_a_time(tiny_bert):
    words = masked_words(tiny_bert, TEXTS)
    found = masked_vectors(tiny_bert, TEXTS, words, max_tokens=40)
    for i, word in enumerate(words):
        batch = make_batch(tiny_bert, TEXTS[word.text])
        ids = batch.input_ids.clone()
        ids[0, word.piece] = tiny_bert.tokenizer.mask_token_id
        with torch.no_grad():
            out = tiny_bert.base(input_ids=ids, output_hidden_states=True).hidden_states
        expected = torch.stack(out)[:, 0, word.piece].numpy()
        np.testing.assert_allclose(found[:, i], expected, atol=1e-5)


@pytest.mark.parametrize("layer", [0, 1, 3])
def test_amnesic_probe_equals_the_plain_intervention(tiny_bert, layer):
    words = masked_words(tiny_bert, TEXTS)
    erasure = random_erasure(32, 6, seed=9, centre=torch.full((32,), 0.3))
    found = amnesic_probe(tiny_bert, TEXTS, words, layer, erasure, controls=2, max_tokens=40)
    before, after, divergence, hits = [], [], [], []
    for word in words:
        batch = make_batch(tiny_bert, TEXTS[word.text])
        ids = batch.input_ids.clone()
        ids[0, word.piece] = tiny_bert.tokenizer.mask_token_id
        batch = batch.with_ids(ids)
        with evaluating(tiny_bert):
            own = tiny_bert.mlm_logits(tiny_bert.encode(batch))[0, word.piece].log_softmax(0)
            with erase(tiny_bert, layer, erasure.projection, centre=erasure.centre):
                said = tiny_bert.mlm_logits(tiny_bert.encode(batch))[0, word.piece].log_softmax(0)
        before.append(float(own[word.target]))
        after.append(float(said[word.target]))
        divergence.append(float((own.exp() * (own - said)).sum()))
        hits.append(int(said.argmax()) == word.target)
    assert found.log_prob_before == pytest.approx(np.mean(before), abs=1e-5)
    assert found.log_prob == pytest.approx(np.mean(after), abs=1e-5)
    assert found.kl == pytest.approx(np.mean(divergence), abs=1e-5)
    assert found.correct.tolist() == hits
    assert len(found.random_drops) == 2
    assert found.drop == pytest.approx(found.accuracy_before - found.accuracy)
    assert found.interval[0] <= found.drop <= found.interval[1]
    assert found == amnesic_probe(
        tiny_bert, TEXTS, words, layer, erasure, controls=2, max_tokens=40
    )


def test_what_the_head_reads_hurts_more_than_random_directions():
    """Remove from the last layer just the directions that the MLM head amplifies most."""
    encoder = tiny_encoder("bert")
    words = masked_words(encoder, TEXTS)
    head = encoder.model.cls.predictions.transform.dense.weight.detach()
    _, _, right = torch.linalg.svd(head)
    basis = right[:8].T
    used = Erasure(torch.eye(32) - basis @ basis.T, torch.zeros(32), 8, "planted")
    found = amnesic_probe(encoder, TEXTS, words, encoder.n_layers, used, controls=5)
    assert found.kl > found.random_kl


def test_bad_input_is_named(tiny_bert):
    x, y = planted(n=100)
    split = random_split(100)
    with pytest.raises(OneClassError):
        inlp(x, [0] * 100, split)
    with pytest.raises(ProbeError, match="expected \\[examples, width\\]"):
        inlp(x[None], y, split)
    with pytest.raises(ValueError, match="rounds"):
        inlp(x, y, split, rounds=0)
    with pytest.raises(ValueError, match="rank must lie in 1..24"):
        random_erasure(24, 25)
    words = masked_words(tiny_bert, TEXTS)
    with pytest.raises(LayerIndexError):
        amnesic_probe(tiny_bert, TEXTS, words, 4, random_erasure(32, 2))
    with pytest.raises(ProbeError, match="32 wide"):
        amnesic_probe(tiny_bert, TEXTS, words, 1, random_erasure(24, 2))
    with pytest.raises(ValueError, match="controls"):
        amnesic_probe(tiny_bert, TEXTS, words, 1, random_erasure(32, 2), controls=0)
    with pytest.raises(TooFewExamplesError, match="no words"):
        amnesic_probe(tiny_bert, TEXTS, [], 1, random_erasure(32, 2))
    with pytest.raises(MissingHeadError):
        amnesic_probe(tiny_encoder("electra"), TEXTS, words, 1, random_erasure(32, 2))
