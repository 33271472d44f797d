"""Methods that one chapter each uses, against plain recomputation and planted truth."""

import numpy as np
import pytest
import torch
from tiny import TEXTS, tiny_encoder

import bertology_utils
from bertology_utils import basics, heads, lab, limits, probes, stimuli
from bertology_utils import behaviour as bh
from bertology_utils import compression as c
from bertology_utils import embeddings as emb
from bertology_utils import subnetworks as sub
from bertology_utils.activations import collect
from bertology_utils.attention import classify_heads
from bertology_utils.encoder import random_encoder
from bertology_utils.lab.train import train
from bertology_utils.probes.erasure import random_erasure
from bertology_utils.training import little, outside

TINY_LAB = lab.LabConfig(steps=6, batch=8, width=16, sentences=200)
GOOD_OR_BAD = [f"the {kind} {noun}." for noun in ("cat", "dog", "movie", "city", "key", "river")
               for kind in ("good", "bad")]  # fmt: skip
LABELS = [0, 1] * 6


@pytest.fixture(scope="module")
def tiny_runs():
    return train(TINY_LAB.seeds(2))


# -- help from outside the weights -----------------------------------------------------------------


def test_retrieved_sentences_stand_in_front_of_the_questions(embedded):
    found = outside.retrieved_answers(embedded, ["capital"], per_relation=8)
    facts = found.without.facts
    assert len(found.texts) == len(facts) == found.difference.n == 8
    gap = found.with_text.hits(1) - found.without.hits(1)
    assert found.difference.value == pytest.approx(gap.mean())
    # The library holds every fact under its subject's name, which the question holds as well.
    assert all(fact.subject in text for fact, text in zip(facts, found.texts, strict=True))
    holds = [any(o.lower() in text.lower() for o in fact.objects)
             for fact, text in zip(facts, found.texts, strict=True)]  # fmt: skip
    assert found.found == np.mean(holds)


def test_spans_are_picked_from_passages_of_four_facts(embedded):
    found = outside.picked_spans(embedded, ["capital"], passages=10)
    assert found.n == 16 and found.baselines == {"majority": 0.25}
    assert 0 <= found.interval[0] <= found.value <= found.interval[1] <= 1
    assert found == outside.picked_spans(embedded, ["capital"], passages=10)


# -- little to learn from --------------------------------------------------------------------------


def test_four_cells_compare_what_they_say(tiny_bert):
    other = random_encoder(tiny_bert, seed=3)
    task = (GOOD_OR_BAD, LABELS)
    found = little.four_cells(tiny_bert, other, task, task, epochs=1)
    cells = {f"{weights}, {way}" for weights in ("pre-trained", "random")
             for way in ("frozen", "fine-tuned")}  # fmt: skip
    assert set(found.accuracy) == cells
    # Tested on what it was trained on, a head on frozen vectors tells two words apart.
    assert found.accuracy["pre-trained, frozen"].value == 1
    gap = found.accuracy["random, fine-tuned"].value - 1
    assert found.difference.value == pytest.approx(gap) and found.difference.n == 12
    with pytest.raises(ValueError, match="runs is 0"):
        little.four_cells(tiny_bert, other, task, task, runs=0)


def test_parts_of_speech_help_vectors_that_know_nothing(tiny_bert):
    found = little.parts_of_speech(tiny_bert, sizes=(8, 16), draws=2)
    assert found.sizes == (8, 16) and set(found.curves) == {"with", "without"}
    gap = found.curves["with"][0] - found.curves["without"][0]
    assert found.difference.value == pytest.approx(gap)
    assert all(0 < share < 1 for curve in found.curves.values() for share in curve)
    with pytest.raises(ValueError, match="no sizes"):
        little.parts_of_speech(tiny_bert, sizes=())


def test_standardised_vectors_are_measured_on_the_same_texts(embedded):
    found = little.normalised_cls(embedded, draws=2, n=16)
    assert found.means.shape == found.spreads.shape == (embedded.d_model,)
    assert set(found.accuracy) == {"plain", "standardised"}
    assert found.log_ratio.n == 2 and np.isfinite(found.log_ratio.value)


# -- probing and reliance --------------------------------------------------------------------------


def test_amnesic_divergence_is_the_mean_over_words_of_folds(tiny_bert):
    words = probes.masked_words(tiny_bert, TEXTS)
    erasure = random_erasure(32, 8, seed=9)
    found = bh.amnesic_divergence(tiny_bert, TEXTS, words, 2, erasure, folds=2)
    gaps, random = [], []
    for fold in range(2):
        own = [word for word in words if word.text % 2 == fold]
        one = probes.amnesic_probe(tiny_bert, TEXTS, own, 2, erasure, controls=2)
        gaps += [one.kl - one.random_kl] * len(own)
        random += [one.random_kl] * len(own)
    assert found.n == len(words)
    assert found.value == pytest.approx(np.mean(gaps), abs=1e-9)
    assert found.baselines["random directions"] == pytest.approx(np.mean(random))
    alone = [word for word in words if word.text == 0]
    with pytest.raises(ValueError, match="two are needed"):
        bh.amnesic_divergence(tiny_bert, TEXTS, alone, 2, erasure)


def test_first_pieces_are_probed_layer_by_layer(tiny_bert):
    bank = list(stimuli.treebank(40, seed=3, max_words=8))
    labels = ["long" if len(sentence) > 5 else "short" for sentence in bank]
    found = limits.probe_first_piece(
        tiny_bert, bank[:30], bank[30:], (labels[:30], labels[30:])
    )  # fmt: skip
    vectors = collect(tiny_bert, limits.texts_of(bank), reduce="text_first")
    split = probes.Split(range(30), [], range(30, 40), 0)
    plain = probes.probe_layers(
        vectors.arrays["hidden_states"], labels, split, l2=limits.constant.PENALTY
    )
    assert len(found) == tiny_bert.n_layers + 1
    assert [one.value for one in found] == [one.value for one in plain]
    assert all(one.n == 10 for one in found)


def test_nouns_come_in_pairs_scaled_by_the_whole_table():
    nouns = [n for n in stimuli.lexicon("train").nouns if n.plural][:12]
    words = list(dict.fromkeys(form for noun in nouns for form in (noun.singular, noun.plural)))
    vectors = np.random.default_rng(0).normal(2.0, 3.0, size=(len(words), 4))
    table = basics.WordTable(tuple(words), vectors, "made")
    rows, labels = basics.noun_number(table, "train")
    assert labels.tolist() == [0.0, 1.0] * (len(rows) // 2)
    assert len(rows) >= 20 and rows.dtype == torch.float32
    first = (table.of([nouns[0].singular]) - vectors.mean(0)) / (vectors - vectors.mean(0)).std()
    assert any(np.allclose(first[0], row, atol=1e-5) for row in rows[::2].numpy())
    with pytest.raises(ValueError, match="made knows only"):
        basics.noun_number(table, "test")


# -- the lab ---------------------------------------------------------------------------------------


def test_gaps_beside_unknown_words_and_at_rare_ones(tiny_runs):
    beside = lab.beside_unknown(tiny_runs)
    rare, any_word = lab.at_rare_words(tiny_runs), lab.at_rare_words(tiny_runs, share=1.0)
    for shares in (beside, rare, any_word):
        assert len(shares) == 2 and all(0 <= share <= 1 for share in shares)
    # After six steps a model says what is frequent, and a rare word never is.
    assert max(rare) <= min(any_word)
    assert lab.beside_unknown(tiny_runs) == beside and lab.at_rare_words(tiny_runs) == rare


def test_seed_differences_are_those_of_pairs_of_tunings(tiny_runs):
    found = lab.seed_differences(tiny_runs, n=16)
    accuracy = [
        lab.tune(lab.pretrained_weights(tiny_runs, draw=k), TINY_LAB, 16, seed=k).accuracy
        for k in range(4)
    ]
    gaps = np.abs([accuracy[0] - accuracy[1], accuracy[2] - accuracy[3]])
    assert found.n == 4 and found.value == pytest.approx(gaps.mean())


# -- smaller models --------------------------------------------------------------------------------


def test_a_tagging_task_tags_every_word_once(tiny_bert):
    sizes = {"labelled_texts": 4, "unlabelled_texts": 6, "validation_texts": 3, "test_texts": 5}
    found = c.tagging_task(tiny_bert, **sizes)
    parts = (found.labelled, found.unlabelled, found.validation, found.test)
    assert [len(part) for part in parts] == [4, 6, 3, 5]
    texts = [tuple(row[mask.bool()].tolist()) for part in parts
             for row, mask in zip(part.ids, part.mask, strict=True)]  # fmt: skip
    bank = list(stimuli.treebank(36, seed=11))
    tags = sorted({tag for sentence in bank for tag in sentence.pos})
    seen: set[str] = set()
    first = [s for s in bank if not (s.text in seen or seen.add(s.text))][:4]
    for sentence, row in zip(first, found.labelled.labels, strict=True):
        assert [tags[i] for i in row.tolist() if i >= 0] == list(sentence.pos)
    assert not (found.unlabelled.labels >= 0).any()
    assert (found.unlabelled.labels == c.UNKNOWN).any() and len(texts) == 18


def test_a_token_table_of_full_rank_costs_nothing_and_a_flat_one_does():
    encoder = tiny_encoder("bert")
    before = c.masked_losses(encoder, TEXTS)
    kept = encoder.embeddings.token.weight.detach().clone()
    whole = c.masked_losses(c.with_token_rank(encoder, 32), TEXTS)
    flat = c.masked_losses(c.with_token_rank(encoder, 1), TEXTS)
    assert torch.equal(encoder.embeddings.token.weight, kept)
    assert np.allclose(whole.losses, before.losses, atol=1e-3)
    rise = c.loss_rise(flat, before, encoder.name)
    assert rise.value == pytest.approx(flat.loss - before.loss) and rise.n == len(TEXTS)
    assert not np.allclose(flat.losses, before.losses, atol=0.1)
    assert rise.interval[0] <= rise.value <= rise.interval[1]
    assert c.loss_rise(before, before, encoder.name).interval == (0, 0)
    assert 0 <= before.accuracy <= 1
    with pytest.raises(c.CompressionError):
        c.with_token_rank(encoder, 0)


def test_a_teacher_matches_its_own_scores(tiny_bert):
    model = c.compact(tiny_bert, 2)
    taught = c.lessons(model, c.labelled(tiny_bert, TEXTS, [0, 1, 0, 1]).unlabelled())
    loss = c.score_loss(taught)
    everything = torch.arange(len(TEXTS))
    with torch.no_grad():
        own = loss(model, taught.data, everything).item()
        other = loss(c.fresh_layers(model, spread=1.0, seed=1), taught.data, everything).item()
    assert abs(own) < 1e-6 < other


def test_fresh_layers_keep_tables_and_classifier(tiny_bert):
    model = c.compact(tiny_bert, 2)
    fresh = c.fresh_layers(model, seed=1)
    assert torch.equal(fresh.head.weight, model.head.weight)
    assert torch.equal(fresh.token.weight, model.token.weight)
    for name, weight in fresh.blocks.named_parameters():
        if weight.ndim == 2:
            assert weight.std().item() == pytest.approx(0.02, rel=0.2), name
        else:
            assert set(weight.unique().tolist()) <= {0.0, 1.0}, name
    again = c.fresh_layers(model, seed=1)
    assert all(torch.equal(a, b) for a, b in
               zip(fresh.parameters(), again.parameters(), strict=True))  # fmt: skip


def test_the_mean_of_scores_is_taken_text_by_text():
    draws = [c.Score("one", np.array(right), np.ones(2)) for right in ([1.0, 0], [1.0, 1])]
    found = c.mean_score("both", draws)
    assert found.right.tolist() == [1.0, 0.5] and found.name == "both"


# -- heads and survivors ---------------------------------------------------------------------------


def test_patterns_of_models_stand_side_by_side():
    parts = [classify_heads(tiny_encoder("bert", seed=seed), TEXTS) for seed in (0, 1)]
    both = heads.patterns_side_by_side(parts)
    assert both.maps.shape[2] == 2 * parts[0].maps.shape[2]
    assert np.array_equal(both.maps[:, :, :4], parts[0].maps)
    assert np.array_equal(both.features[:, 4:], parts[1].features)
    shallow = classify_heads(tiny_encoder("bert", n_layers=2), TEXTS)
    for wrong in ([], [parts[0], shallow]):
        with pytest.raises(ValueError, match="equally many"):
            heads.patterns_side_by_side(wrong)


def test_the_top_half_and_its_overlap():
    importance = np.array([[4.0, 1.0], [3.0, 2.0]])
    assert sub.top_half(importance) == {(0, 0), (1, 0)}
    assert sub.jaccard([(0, 0), (1, 0)], [(0, 0), (0, 1)]) == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="two empty sets"):
        sub.jaccard([], [])
    found = sub.mean_over_texts(np.array([0.0, 1.0, 1.0, 0.0]), "m", unit="share")
    assert (found.value, found.n, found.unit) == (0.5, 4, "share")
    assert found.interval[0] < 0.5 < found.interval[1]


# -- names -----------------------------------------------------------------------------------------


def test_sentences_and_nouns_for_the_maps_are_distinct():
    sentences, nouns = emb.free_sentences(), emb.other_nouns()
    assert len(set(sentences)) == len(sentences) > 50
    things = {thing.noun for thing in stimuli.things.things()}
    assert len(set(nouns)) == len(nouns) > 50 and not things & set(nouns)


def test_the_package_offers_its_names_on_first_use():
    assert {"load_encoder", "prune_heads", "__version__"} <= set(dir(bertology_utils))
    for name in bertology_utils.__all__:
        assert getattr(bertology_utils, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'load_decoder'"):
        bertology_utils.load_decoder  # noqa: B018
