"""Head experiments: planted truth, plain recomputation, and errors."""

import numpy as np
import pytest
import torch
from tiny import TEXTS, tiny_encoder

from bertology_utils import attention, heads, stimuli
from bertology_utils.attention import HeadScores, RelationScores
from bertology_utils.interventions import ablate_heads
from bertology_utils.stimuli import Sentence
from bertology_utils.stimuli.commonsense import triples
from bertology_utils.words import TextPair


def measure(sums, counts, **controls) -> HeadScores:
    return HeadScores("m", "share", np.array(sums, float), np.array(counts), "toy", 0, controls)


def planted_relations(n: int = 40) -> RelationScores:
    """Two relations of 2 edges a sentence, one layer of three heads: head 1 finds all "obj"."""
    hits = np.zeros((n, 3, 3, 1, 3), np.uint16)
    hits[:, 2, 0, 0, 1] = 2  # obj, from the dependent
    hits[:, 2, 2, 0, 1] = 2
    hits[:, 1, 1, 0, 2] = 1  # nsubj, from the head, in half of the edges
    hits[:, 1, 2, 0, 2] = 1
    counts = np.full((n, 3), 2)
    offsets = np.zeros((n, 3, 3, 2), np.uint16)
    offsets[:, :, :, 0] = 1
    return RelationScores(hits, counts, offsets, ("all", "nsubj", "obj"), "toy", 0, "words")


def test_functions_name_the_planted_head_and_no_other():
    ((none, found, tied),) = heads.head_functions(planted_relations())
    assert (found.relation, found.direction) == ("obj", "dependent")
    assert (found.accuracy, found.offset, found.named) == (1.0, 0.5, True)
    assert not none.named and none.gain == -0.5
    assert tied.relation == "nsubj" and not tied.named
    with pytest.raises(ValueError, match="no relation with 1000 edges"):
        heads.head_functions(planted_relations(), min_edges=1000)


def test_protocols_agree_where_either_direction_adds_nothing():
    same = heads.protocol_change(planted_relations(), ("obj", "nsubj"))
    assert same.value == 0 and same.one_way == {"obj": 0.5, "nsubj": 0.0} == same.either
    relations = planted_relations()
    relations.hits[:, 2, 2, 0, 0] = 0
    relations.offset_hits[:, 2, 2, 0] = 2  # either way, the offset finds all
    moved = heads.protocol_change(relations, ("obj",))
    assert moved.value == 0.5 and moved.either["obj"] == 0.0
    with pytest.raises(KeyError):
        heads.protocol_change(relations, ("iobj",))
    with pytest.raises(ValueError):
        heads.protocol_change(relations, ())


def test_a_cherry_is_the_best_sentence():
    sums = np.zeros((30, 1, 1))
    sums[::10] = 4  # three perfect sentences of thirty
    found = heads.cherry_pick(measure(sums, np.full(30, 4)), looked_at=30)
    assert found.value == pytest.approx(0.9) and found.overall == pytest.approx(0.1)
    assert found.best_of(30) % 10 == 0 and found.accuracy[found.best_of(30)] == 1.0
    assert sorted(found.order) == list(range(30))
    assert found.best_of(1) == found.order[0]
    with pytest.raises(ValueError):
        found.best_of(0)
    counts = np.full(30, 4)
    counts[::2] = 9
    long = heads.cherry_pick(measure(sums, counts), min_items=5)
    assert sorted(long.order) == list(range(0, 30, 2))
    with pytest.raises(ValueError, match="two sentences of 10 items"):
        heads.cherry_pick(measure(sums, counts), min_items=10)


def test_counting_heads_above_a_threshold():
    one = measure([[[0.9, 0.1]]] * 3, [1, 1, 1])
    two = measure([[[0.2, 0.8]]] * 3, [1, 1, 1])
    count = heads.heads_above({"one": one, "two": two}, 0.5)
    assert count.value == 2 and count.unit == "count" and count.interval == (2, 2)
    share = heads.share_of(heads.heads_above({"one": one}, 0.5), 2)
    assert share.value == 0.5 and share.unit == "share" and share.interval == (0.5, 0.5)
    with pytest.raises(ValueError, match="no measures"):
        heads.heads_above({}, 0.5)
    with pytest.raises(ValueError, match="differ"):
        heads.heads_above({"one": one, "two": measure([[[0.2]]] * 3, [1, 1, 1])}, 0.5)
    with pytest.raises(ValueError, match="no share"):
        heads.share_of(count, 1)


def test_sums_and_rows_of_measures():
    one = measure([[[1.0]], [[2.0]]], [2, 2], uniform=np.ones((2, 1)))
    two = measure([[[0.0]], [[1.0]]], [2, 2], uniform=np.ones((2, 1)))
    both = heads.total("both", [one, two])
    assert both.scores[0, 0] == 1.0 and both.control_scores["uniform"] == 1.0
    with pytest.raises(ValueError, match="other|different"):
        heads.total("both", [one, measure([[[1.0]], [[2.0]]], [3, 1])])
    # The second model was asked more often; each head keeps its own rate.
    beside = heads.side_by_side([one, measure([[[4.0]], [[4.0]]], [4, 4])])
    assert beside.scores.tolist() == [[0.75, 1.0]]
    with pytest.raises(ValueError):
        heads.side_by_side([])


def test_depth_gap_in_layers():
    low = measure([[[1.0], [0.0], [0.0]]] * 4, [1] * 4)
    high = measure([[[0.0], [0.0], [0.5]]] * 4, [1] * 4)
    assert heads.depth_gap(high, low).value == 2.0
    assert heads.depth_gap(low, high).value == -2.0
    assert heads.depth_gap(low, low).interval == (0.0, 0.0)


def test_advantage_of_even_attention_is_zero(tiny_bert):
    items = heads.antecedent_items(stimuli.coreference(6))
    confusion = attention.link_confusion(tiny_bert, items)
    found = heads.advantage(confusion)
    np.testing.assert_allclose(found.scores, np.log(2) - confusion.scores, atol=1e-9)


def test_first_pieces_by_hand(any_encoder):
    texts = ["The cats barks sleepest.", "goodest dogs sleeping"]
    found = heads.first_piece_attention(any_encoder, texts)
    sums, n = np.zeros((any_encoder.n_layers, any_encoder.n_heads)), 0
    for maps in attention.attention_maps(any_encoder, texts):
        for start, end in maps.row.spans:
            for piece in range(start + 1, end):
                others = [
                    row for row in range(piece - start, len(maps))
                    if (a := _word(maps, row)) is not None
                    and (b := _word(maps, row - piece + start)) is not None and a != b
                ]  # fmt: skip
                if others:
                    sums += maps.pattern[..., piece, start]
                    n += 1
    assert n == found.counts.sum() > 0
    np.testing.assert_allclose(found.scores, sums / n, rtol=1e-5)


def _word(maps, piece):
    inside = [k for k, (a, b) in enumerate(maps.row.spans) if a <= piece < b]
    return inside[0] if inside else None


def test_related_words_keep_their_places(tiny_bert):
    chosen = triples()[::40]
    found = heads.related_words(tiny_bert, chosen)
    assert set(found.controls) == {"matched_distance", "shuffled"}
    assert found.controls["shuffled"].shape == (len(chosen), found.scores.size)
    assert 0 <= found.best.value <= 1


def test_pairs_of_the_grammar():
    bank = stimuli.Grammar(None, stimuli.GrammarConfig(negation=0.9)).treebank(20)
    for sentence, roles, scope in zip(
        bank, heads.role_pairs(bank), heads.scope_pairs(bank), strict=True
    ):
        assert set(roles) == {(b, a) for a, b in roles}
        assert len(scope) == sum(len(n.scope) for n in sentence.gold.negations)
        assert {to for _, to in scope} == {n.cue for n in sentence.gold.negations}
    labels = heads.scope_labels(bank)
    assert [len(row) for row in labels] == [len(s) for s in bank]
    control = heads.control_labels(bank, labels, seed=3)
    by_type = {}
    for sentence, row in zip(bank, control, strict=True):
        for word, label in zip(sentence.words, row, strict=True):
            assert by_type.setdefault(word.lower(), label) == label
    assert set(by_type.values()) == {0, 1}


def test_frequency_is_measured_on_text_pieces(tiny_bert):
    found, received = heads.frequency_and_attention(tiny_bert, TEXTS * 3)
    assert -1 <= found.value <= 1 and found.n < len(received)
    assert "[CLS]" in received
    with pytest.raises(attention.NothingToScoreError):
        heads.frequency_and_attention(tiny_bert, ["The cat."], min_count=3)


def test_half_of_the_attention_moves_without_effect(tiny_bert):
    text = "the old cat sat near the dogs and they bark " * 3
    found = heads.move_half(tiny_bert, text, heads=[(0, 0), (1, 1)])
    assert found.n == 2 * found.n_pieces
    assert found.value < 1e-8 < found.baselines["shuffled"]
    assert 0 < found.moved <= 0.5 + 1e-6
    with pytest.raises(ValueError, match="no freedom"):
        heads.move_half(tiny_bert, "Dogs bark.", heads=[(0, 0)])
    with pytest.raises(ValueError, match="no heads"):
        heads.move_half(tiny_bert, text, heads=[])


def test_tuning_learns_and_leaves_the_original_alone(any_encoder):
    before = {k: v.clone() for k, v in any_encoder.model.state_dict().items()}
    texts = ["the cats sleep", "the dogs bark", "cats sleep", "dogs bark"] * 4
    labels = [0, 1] * 8
    tuned = heads.tune_classifier(any_encoder, texts, labels, epochs=12, lr=2e-3)
    assert tuned.right(texts, labels).mean() > 0.9
    assert tuned.losses[-1] < tuned.losses[0]
    after = any_encoder.model.state_dict()
    assert all(torch.equal(before[k], after[k]) for k in before)
    with pytest.raises(ValueError, match="1 kinds"):
        heads.tune_classifier(any_encoder, texts, [0] * 16)


def test_pairs_of_texts_can_be_classified(tiny_bert):
    texts = [TextPair("the cat", "dogs bark"), TextPair("the dog", "cats sleep")] * 4
    tuned = heads.tune_classifier(tiny_bert, texts, [0, 1] * 4, epochs=1)
    assert tuned.right(texts, [0, 1] * 4).shape == (8,)


def test_a_tagger_learns_which_words(tiny_bert):
    bank = [_sentence(words) for words in ("the cats sleep", "the dogs bark", "old dogs sleep")] * 4
    labels = [[int(word in ("cats", "dogs")) for word in s.words] for s in bank]
    tuned = heads.tune_tagger(tiny_bert, bank, labels, epochs=40, lr=5e-3)
    assert tuned.losses[-1] < 0.5 * tuned.losses[0]
    with pytest.raises(ValueError, match="labels for 3 words"):
        heads.tune_tagger(tiny_bert, bank[:1], [[0]])


def _sentence(text: str) -> Sentence:
    words = tuple(text.split())
    n = len(words)
    return Sentence(words, ("X",) * n, tuple(range(n)), ("root", *["dep"] * (n - 1)), words,
                    ("_",) * n, text)  # fmt: skip


def test_importance_is_the_slope_of_the_gate():
    encoder = tiny_encoder("bert")
    tuned = heads.tune_classifier(encoder, ["cats sleep", "dogs bark"] * 4, [0, 1] * 4, epochs=2)
    texts, labels = ["the old cats", "dogs bark"], [0, 1]
    found = heads.head_importance(tuned, texts, labels)
    assert found.shape == (encoder.n_layers, encoder.n_heads) and (found > 0).all()
    left = heads.surviving_heads(tuned, (texts, labels), (texts, labels))
    order = [found[at] for at in left.heads]
    assert order == sorted(order, reverse=True)
    gone = [(k, h) for k, h in np.ndindex(found.shape) if (k, h) not in left.heads]
    if gone:
        assert max(found[at] for at in gone) <= min(order)
        with ablate_heads(tuned.encoder, {k: [h for j, h in gone if j == k] for k, _ in gone}):
            assert tuned.right(texts, labels).mean() == left.accuracy
    with pytest.raises(ValueError):
        heads.head_importance(tuned, texts, [0])


def test_depth_probe_reports_its_baselines(any_encoder):
    bank = [_sentence(" ".join(["cats"] * n)) for n in (2, 3, 4)] * 20
    found = heads.cls_depth_probe(any_encoder, bank)
    assert len(found.by_layer) == any_encoder.n_layers + 1
    assert set(found.baselines) == {"majority", "length"}
    assert found.baselines["length"] == 1.0  # in a chain, length is depth
    assert found.value == found.by_layer[found.layer].accuracy


def test_found_edges_are_edges_that_the_head_finds(tiny_bert):
    bank = [_sentence(w) for w in ("the cats sleep", "dogs bark", "old dogs near the mat")]
    functions = [
        [heads.HeadFunction("dep", "dependent", 0.5, 0.5)] * tiny_bert.n_heads
    ] * tiny_bert.n_layers
    found = heads.found_edges(tiny_bert, bank, functions)
    scores = attention.relation_scores(tiny_bert, bank).scores("dep", "dependent").scores
    for k, h in np.ndindex(scores.shape):
        assert (found[k][h] is not None) == (scores[k, h] > 0)
        if found[k][h]:
            words = found[k][h].text.split()
            assert words.index(found[k][h].source) == words.index(found[k][h].target) + 1
    with pytest.raises(ValueError, match="do not fit"):
        heads.found_edges(tiny_bert, bank, functions[:1])
