"""Predictions in spoilt sentences, removed directions, and where induced trees go astray."""

import numpy as np
import pytest
import torch
from planted import planted_encoder

from bertology_utils import stimuli, syntax
from bertology_utils.cloze import fill_mask, target_id
from bertology_utils.encoder import LayerIndexError
from bertology_utils.interventions import patch
from bertology_utils.stimuli.trees import join_words
from bertology_utils.words import make_batch


@pytest.fixture(scope="module")
def sentences():
    return list(stimuli.treebank(40, seed=5, split="test", max_words=10))


@pytest.fixture(scope="module")
def encoder(sentences):
    made = syntax.tiny_encoder([w for s in sentences for w in s.words], width=32)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():  # the default spread is so small that nothing depends on anything
        for parameter in made.model.parameters():
            if parameter.ndim == 2:
                parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return made


@pytest.fixture(scope="module")
def items(sentences):
    return syntax.hidden_words(sentences, seed=1)


def test_hidden_words_are_words(items, sentences):
    assert [i.sentence for i in items] == sentences
    assert all(i.tag != "PUNCT" and i.words[i.target].isalpha() for i in items)
    again = syntax.hidden_words(sentences, seed=1)
    assert [i.target for i in again] == [i.target for i in items]
    assert [i.target for i in syntax.hidden_words(sentences, seed=2)] != [i.target for i in items]


def test_predictions_are_those_of_fill_mask(encoder, items):
    found = syntax.predictions(encoder, [(i.words, i.target) for i in items[:6]])
    for item, row in zip(items[:6], found, strict=True):
        shown = list(item.words)
        shown[item.target] = "[MASK]"
        (best,) = fill_mask(encoder, [join_words(shown)], k=3)
        values, ids = row.topk(3)
        assert tuple(encoder.tokenizer.convert_ids_to_tokens(ids.tolist())) == best.tokens
        assert values.tolist() == pytest.approx(best.log_probs, abs=1e-4)
        assert row.exp().sum().item() == pytest.approx(1, abs=1e-4)


def test_spoilers_keep_the_hidden_word_in_sight(items):
    for name, spoil in syntax.SPOILERS.items():
        made = [(item, spoil(item)) for item in items]
        applied = [(item, *found) for item, found in made if found is not None]
        assert len(applied) > 5, name
        for item, words, place in applied:
            if "without" not in name:
                assert words[place] == item.words[item.target]
            assert len(words) <= len(item.words)
    item = max(items, key=lambda i: len(i.words))
    words, place = syntax.shuffled(1.0)(item)
    assert place == item.target and sorted(words) == sorted(item.words) != list(words)
    assert words[-1] == item.words[-1] and words != item.words
    few, _ = syntax.shuffled(0.25)(item)
    same = lambda ws: sum(a == b for a, b in zip(ws, item.words, strict=True))  # noqa: E731
    assert same(few) > same(words)
    words, place = syntax.cut(2)(item)
    assert list(words) == list(item.words[max(0, item.target - 2) : item.target + 1])
    assert place == len(words) - 1


def test_subjects_and_objects_go_as_a_whole(sentences):
    sentence = next(s for s in sentences if s.gold.object is not None)
    verb = syntax.HiddenWord(sentence, sentence.gold.main_verb)
    for role, head in (("subject", sentence.gold.subject), ("object", sentence.gold.object)):
        words, place = syntax.without(role)(verb)
        assert len(words) < len(sentence) and sentence.words[head] not in words
        assert words[:place] + words[place + 1 :] == tuple(
            w for w in words if w != words[place]
        )
        assert syntax.without(role)(syntax.HiddenWord(sentence, head)) is None


def test_a_bag_of_words_does_not_notice_the_order(sentences, items):
    """A model that only counts words survives every shuffling, and only that."""
    texts = [s.text for s in sentences]
    content = sorted({w.lower() for s in sentences for w, t in zip(s.words, s.upos, strict=True)
                      if t in ("NOUN", "VERB")})  # fmt: skip
    rules = {word: {content[(k + 1) % len(content)]: 3.0} for k, word in enumerate(content)}
    bag = planted_encoder(texts, rules)
    spoilers = {"shuffled": syntax.shuffled(1.0), "same": lambda item: (item.words, item.target)}
    spoilers["object gone"] = syntax.without("object")
    found = syntax.survival(bag, items, spoilers)
    for name in ("shuffled", "same"):
        assert found[name].first_guess.value == 1 and found[name].top_five.value == 1
        assert found[name].kl.value == pytest.approx(0, abs=1e-5)
        assert 0 <= found[name].first_guess.baselines["other_sentence"] < 0.5
    gone = found["object gone"]
    assert gone.first_guess.value < 1 and gone.kl.value > 0.01
    assert gone.first_guess.n < len(items) == found["same"].first_guess.n
    low, high = gone.kl.interval
    assert low <= gone.kl.value <= high


def test_what_does_not_apply_is_said(encoder, items):
    with pytest.raises(ValueError, match="'never' applies to none of the 40"):
        syntax.survival(encoder, items, {"never": lambda item: None})
    with pytest.raises(ValueError, match="no hidden words"):
        syntax.survival(encoder, [])


def test_removing_the_whole_space_hurts_and_an_empty_one_does_not(encoder, items):
    states = np.random.default_rng(0).normal(size=(50, 32))
    everything = syntax.reliance(encoder, items, 1, torch.eye(32), states, controls=1)
    assert everything.variance == pytest.approx(1) and everything.rank == 32
    # All of the space is removed either way.
    assert everything.excess.value == pytest.approx(0, abs=1e-4)
    assert np.abs(everything.without - everything.intact).max() > 0.01
    # The encoder is as it was.
    again = syntax.reliance(encoder, items, 1, torch.eye(32)[:, :2], states, controls=1)
    np.testing.assert_allclose(again.intact, everything.intact, atol=1e-5)
    assert again.rise.value != 0 and again.rise.n == len(items)
    assert again.excess.interval[0] <= again.excess.value <= again.excess.interval[1]


def test_directions_that_the_model_reads_cost_more_than_others(encoder, items):
    """With one direction carrying all of the next layer's input, removing it must show."""
    with torch.no_grad():
        hidden = syntax.treebank_vectors(encoder, [i.sentence for i in items]).words[1]
    moved = torch.tensor(hidden - hidden.mean(0))
    _, _, axes = torch.linalg.svd(moved, full_matrices=False)
    leading = syntax.reliance(encoder, items, 1, axes[:4].T, hidden, controls=2)
    assert leading.variance > leading.random_variance + 0.1
    assert np.abs(leading.without - leading.intact).mean() > 0


def test_the_steepest_directions_are_where_the_loss_changes_most(encoder, items):
    """Against differences: small steps along them, piece by piece, move the loss further."""
    for layer in (1, encoder.n_layers):
        found = syntax.steepest_directions(encoder, items, layer, 3)
        assert found.shape == (32, 3)
        torch.testing.assert_close(found.T @ found, torch.eye(3), atol=1e-4, rtol=0)
    item = min(items, key=lambda one: len(one.words))
    steep = syntax.steepest_directions(encoder, [item], 1, 1)[:, 0]
    batch = make_batch(encoder, [_shown(item)])
    hidden = batch.input_ids == encoder.tokenizer.mask_token_id
    target = target_id(encoder, item.words[item.target])

    def loss(place, step):
        with patch(encoder, "hidden_states", 1, lambda h: h + step, positions=place):
            with torch.no_grad():
                logits = encoder.mlm_logits(encoder.encode(batch)[hidden])
        return -logits[0].log_softmax(-1)[target].item()

    def moved(way):
        return sum((loss(t, 0.1 * way) - loss(t, -0.1 * way)) ** 2
                   for t in range(batch.input_ids.shape[1]))

    draw = torch.Generator().manual_seed(0)
    others = torch.nn.functional.normalize(torch.randn(5, 32, generator=draw), dim=1)
    assert moved(steep) > max(map(moved, others))


def _shown(item):
    words = list(item.words)
    words[item.target] = "[MASK]"
    return join_words(words)


def test_removing_what_the_loss_leans_on_harms_more_than_removing_anything_else(encoder, items):
    states = syntax.treebank_vectors(encoder, [i.sentence for i in items]).words[1]
    steep = syntax.steepest_directions(encoder, items, 1, 4)
    away = torch.linalg.qr(torch.cat([steep, torch.eye(32)], 1)).Q[:, 4:8]   # at right angles
    most, other = (syntax.reliance(encoder, items, 1, way, states, controls=1)
                   for way in (steep, away))
    moved = [np.abs(found.without - found.intact).mean() for found in (most, other)]
    assert moved[0] > moved[1]


def test_steepest_directions_refuse_what_does_not_fit(encoder, items):
    with pytest.raises(ValueError, match="rank 33 of"):
        syntax.steepest_directions(encoder, items, 1, 33)
    with pytest.raises(ValueError, match="no hidden word"):
        syntax.steepest_directions(encoder, [], 1, 2)
    with pytest.raises(LayerIndexError):
        syntax.steepest_directions(encoder, items, 9, 2)


def test_reliance_refuses_what_does_not_fit(encoder, items):
    states = np.zeros((3, 32))
    with pytest.raises(ValueError, match=r"shape \(16, 2\), expected \(32, R\)"):
        syntax.reliance(encoder, items, 1, torch.zeros(16, 2), states)
    with pytest.raises(LayerIndexError):
        syntax.reliance(encoder, items, 9, torch.zeros(32, 2), states)


def test_gold_trees_agree_with_themselves(sentences):
    heads = [s.heads for s in sentences]
    recalls = syntax.relation_recalls(heads, sentences)
    assert all(r.recall == 1 and r.turned == 0 for r in recalls)
    assert [r.n for r in recalls] == sorted((r.n for r in recalls), reverse=True)
    assert syntax.strange_edges(heads, sentences) == []


def test_turned_and_strange_edges_are_counted(sentences):
    sentence = next(s for s in sentences if len(s) > 4)
    top = sentence.root
    other = next(d for h, d, rel in sentence.edges() if h == top and rel != "punct")
    heads = list(sentence.heads)
    heads[top], heads[other] = other + 1, 0  # the same tree, hung up at another word
    (recall,) = [r for r in syntax.relation_recalls([heads], [sentence], min_n=1)
                 if r.relation == sentence.deprels[other]]  # fmt: skip
    assert recall.turned == 1 and recall.recall == 1
    assert syntax.strange_edges([heads], [sentence]) == []
    chain = [0, *range(1, len(sentence))]
    strange = syntax.strange_edges([chain], [sentence])
    gold = {frozenset((h, d)) for h, d, _ in sentence.edges()}
    words = [i for i, t in enumerate(sentence.upos) if t != "PUNCT"]
    expected = sum(
        frozenset((i - 1, i)) not in gold for i in words if i and i - 1 in words
    )
    assert sum(n for _, _, n in strange) == expected
    with pytest.raises(ValueError, match="heads for 1 of 2"):
        syntax.strange_edges([chain], [sentence, sentence])
    with pytest.raises(ValueError, match="2 heads for the"):
        syntax.relation_recalls([[0, 1]], [sentence])


def test_a_planted_head_draws_its_tree(tiny_bert, monkeypatch):
    sentence = syntax.example_sentence()
    assert sentence.projective() and sentence.words[sentence.root] == "table"

    class Maps:
        words = np.zeros((3, 4, 10, 10))

    for head, word, _ in sentence.edges():
        Maps.words[1, 2, word, head] = 1.0
    monkeypatch.setattr("bertology_utils.syntax.attention_trees.attention_maps", lambda *_: [Maps])
    edges = syntax.head_tree(tiny_bert, sentence, 1, 2)
    gold = {(h, d) for h, d, rel in sentence.edges() if rel != "punct"}
    assert set(edges) == gold and len(edges) == 8
    with pytest.raises(LayerIndexError):
        syntax.head_tree(tiny_bert, sentence, 9, 0)


def test_heads_are_compared_with_the_chain(encoder, sentences):
    from bertology_utils.attention import tree_scores

    scores = tree_scores(encoder, sentences[:12])
    gap = syntax.above_chain(scores)
    assert gap.unit == "share difference"
    expected = scores.at(0, 0).value - scores.control_scores["right_branching"]
    assert gap.at(0, 0).value == pytest.approx(expected)
    best = scores.best
    assert gap.value == pytest.approx(best.value - best.baselines["right_branching"])


def test_probe_trees_are_compared_with_the_same_chain_on_the_same_half(encoder, sentences):
    from bertology_utils.attention import tree_scores
    from bertology_utils.probes import Split

    vectors = syntax.treebank_vectors(encoder, sentences)
    split = Split(np.arange(20), np.arange(20, 24), np.arange(24, 40))
    probe = syntax.structural_scores(vectors, sentences, split, rank=4, epochs=1)
    rows = [9, 2, 5, 14]
    heads = syntax.above_chain(tree_scores(encoder, [sentences[24 + i] for i in rows]))
    gap = syntax.probe_above_chain(probe, rows, heads)
    assert gap.best.n == heads.best.n and gap.unit == "share difference"
    hits, totals = probe.uuas.hits[1, rows], probe.uuas.counts[0, rows]
    expected = (hits.sum() - probe.chain.hits[0, rows].sum()) / totals.sum()
    assert gap.at(1, 0).value == pytest.approx(expected)
    with pytest.raises(ValueError, match="sentences are not those"):
        syntax.probe_above_chain(probe, [0, 1, 3, 4], heads)
