"""Relations, links, trees, combination, norms, null space, similarity."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tiny import tiny_encoder

from bertology_utils import stimuli
from bertology_utils.activations import run_with_cache
from bertology_utils.attention import (
    DECODERS,
    KINDS,
    HeadDistances,
    LinkItem,
    NothingToScoreError,
    agreement_items,
    alternative_attention,
    attention_maps,
    combine_heads,
    coreference_items,
    effective_attention,
    head_distances,
    last_layers_change,
    link_confusion,
    link_scores,
    norm_attention,
    norm_shares,
    pair_attention,
    pattern_change,
    recomputed_pattern,
    relation_scores,
    tree_scores,
    value_norms,
    value_vectors,
    weight_norm_correlation,
)
from bertology_utils.words import WordList


@pytest.fixture(scope="module")
def bank():
    return stimuli.treebank(24, seed=5, max_words=12)


@pytest.fixture(scope="module")
def wide_bert():
    """Room for the grammar's words, which this vocabulary spells letter by letter."""
    return tiny_encoder("bert")


def short(bank, n=6):
    return [s for s in bank if sum(map(len, s.words)) < 50][:n]


def silent_separator():
    """All heads look at [SEP], and its value vectors vanish."""
    encoder = tiny_encoder("bert", n_layers=1)
    sep = encoder.tokenizer.sep_token_id
    parts, layer = encoder.embeddings, encoder.layers[0]
    with torch.no_grad():
        # [SEP] gets a direction of its own, which all keys like and the values ignore.
        parts.position.weight.zero_()
        parts.segment.weight.zero_()
        parts.norm.weight.fill_(1)
        parts.norm.bias.zero_()
        parts.token.weight[:, 0] = 0
        parts.token.weight[sep] = 0
        parts.token.weight[sep, 0] = 5
        layer.value.bias.zero_()
        layer.value.weight.zero_()
        layer.value.weight[:, 1:] = 0.2
        layer.value.weight[:, 1:] -= layer.value.weight[:, 1:].mean()
        layer.value.weight[:, 2] = 1.0
        layer.value.weight[:, 3] = -1.0
        layer.query.weight.zero_()
        layer.query.bias.fill_(1)
        layer.key.weight.zero_()
        layer.key.weight[:, 0] = 0.4
    return encoder


# --- relations ----------------------------------------------------------------------------------


def test_relation_hits_are_those_of_a_slow_count(any_encoder, bank):
    sentences = short(bank)
    table = relation_scores(any_encoder, sentences)
    texts = [WordList(s.words, s.text) for s in sentences]
    found = {m.index: m.words for m in attention_maps(any_encoder, texts)}
    for relation, direction in itertools.product(table.relations[:4], ("dependent", "head")):
        hits = np.zeros((any_encoder.n_layers, any_encoder.n_heads))
        n = 0
        for index, sentence in enumerate(sentences):
            for head, dependent, name in sentence.edges():
                if name != relation and not (relation == "all" and name != "punct"):
                    continue
                n += 1
                source, target = dependent, head
                if direction == "head":
                    source, target = target, source
                for layer, h in np.ndindex(hits.shape):
                    row = found[index][layer, h, source].copy()
                    row[source] = -1
                    hits[layer, h] += row.argmax() == target
        assert n == table.scores(relation, direction).counts.sum()
        np.testing.assert_allclose(table.scores(relation, direction).scores, hits / n)


def test_either_finds_at_least_as_much_and_special_tokens_take_away(wide_bert, bank):
    sentences = short(bank)
    table = relation_scores(wide_bert, sentences)
    either, one = table.scores("all", "either"), table.scores("all", "dependent")
    assert (either.scores >= one.scores).all()
    encoder = silent_separator()
    assert relation_scores(encoder, sentences).scores("all").scores.max() > 0
    strict = relation_scores(encoder, sentences, candidates="pieces")
    assert strict.scores("all").scores.max() == 0


def test_fixed_offsets_are_counted_right(wide_bert):
    sentences = stimuli.treebank(60, seed=2, max_words=9)
    kept = [s for s in sentences if len(s.text) < 45]
    table = relation_scores(wide_bert, kept)
    gaps = [h - d for s in kept for h, d, rel in s.edges() if rel == "det"]
    best = max(gaps.count(o) for o in set(gaps)) / len(gaps)
    assert table.scores("det").control_scores["fixed_offset"] == pytest.approx(best)
    rows = table.table()
    gains = [row.value - row.baselines["fixed_offset"] for row in rows]
    assert gains == sorted(gains, reverse=True)


def test_unknown_relations_directions_and_candidates(wide_bert, bank):
    table = relation_scores(wide_bert, short(bank))
    with pytest.raises(KeyError, match="vocative"):
        table.scores("vocative")
    with pytest.raises(KeyError, match="sideways"):
        table.scores("all", "sideways")
    with pytest.raises(ValueError, match="letters"):
        relation_scores(wide_bert, bank, candidates="letters")
    with pytest.raises(NothingToScoreError):
        relation_scores(wide_bert, [])


# --- links --------------------------------------------------------------------------------------


def test_link_accuracy_confusion_and_controls(any_encoder):
    text = WordList(("the", "cat", "near", "the", "dogs", "is", "old"))
    items = [LinkItem(text, 5, 1, (1, 4)), LinkItem(text, 6, 4, (1, 4))]
    scores, confusion = link_scores(any_encoder, items), link_confusion(any_encoder, items)
    assert scores.control_scores == {"nearest_mention": 0.5, "first_mention": 0.5, "chance": 0.5}
    words = next(iter(attention_maps(any_encoder, [text]))).words
    np.testing.assert_array_equal(scores.sums[0], words[..., 5, 1] > words[..., 5, 4])
    expected = -np.log(words[..., 5, 1] / (words[..., 5, 1] + words[..., 5, 4]))
    np.testing.assert_allclose(confusion.sums[0], expected, atol=1e-4)
    assert confusion.control_scores["uniform"] == pytest.approx(np.log(2))
    with pytest.raises(ValueError, match="item 0: target 2"):
        link_scores(any_encoder, [LinkItem(text, 5, 2, (1, 4))])
    with pytest.raises(NothingToScoreError):
        link_scores(any_encoder, [])


def test_items_from_gold():
    bank = stimuli.treebank(400, seed=3)
    pronouns, verbs = coreference_items(bank), agreement_items(bank)
    assert len(pronouns) > 5 and len(verbs) > 100
    for item in pronouns:
        assert item.target in item.candidates and max(item.candidates) < item.source
    for item in verbs:
        assert item.target in item.candidates and len(item.candidates) > 1


def test_pair_attention_and_matched_distance(wide_bert):
    text = WordList(("the", "cat", "near", "the", "dogs", "is", "old"))
    scores = pair_attention(wide_bert, [text, text], [[(0, 1)], [(2, 4), (5, 1)]])
    words = next(iter(attention_maps(wide_bert, [text]))).words
    np.testing.assert_allclose(scores.sums[0], words[..., 0, 1], atol=1e-6)
    others = np.mean([words[..., i, i + 1] for i in range(1, 6)], axis=0)
    np.testing.assert_allclose(
        scores.controls["matched_distance"][0].reshape(others.shape), others, atol=1e-6
    )
    assert scores.counts.tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"pair \(0, 9\)"):
        pair_attention(wide_bert, [text], [[(0, 9)]])


# --- trees and combination ----------------------------------------------------------------------


def test_trees_of_heads_beside_the_chain(any_encoder, bank):
    sentences = short(bank)
    scores = tree_scores(any_encoder, sentences)
    gold = [
        abs(h - d) == 1 for s in sentences for h, d, rel in s.edges() if rel != "punct"
    ]  # fmt: skip
    assert scores.control_scores["right_branching"] == pytest.approx(np.mean(gold))
    assert ((0 <= scores.scores) & (scores.scores <= 1)).all()
    with pytest.raises(ValueError, match="guess"):
        tree_scores(any_encoder, sentences, decoder="guess")


@pytest.mark.parametrize("decoder", DECODERS)
def test_a_head_that_shows_the_gold_tree_scores_one(decoder, wide_bert, bank, monkeypatch):
    sentences = short(bank, 12)

    def gold_maps(_encoder, texts, **_):
        for index, sentence in enumerate(sentences):
            words = np.full((3, 4, len(sentence), len(sentence)), 0.01)
            for head, dependent, _name in sentence.edges():
                words[1, 2, dependent, head] = 0.9
            yield SimpleNamespace(index=index, words=words)

    monkeypatch.setattr("bertology_utils.attention.trees.attention_maps", gold_maps)
    scores = tree_scores(wide_bert, sentences, decoder=decoder)
    assert scores.ranking()[0] == (1, 2)
    if decoder != "projective" or all(s.projective() for s in sentences):
        assert scores.scores[1, 2] == 1.0
    assert scores.scores[0, 0] < 1.0


def test_a_combination_is_learned_and_measured_elsewhere(wide_bert):
    bank = [s for s in stimuli.treebank(120, seed=1, max_words=10) if len(s.text) < 50]
    found = combine_heads(wide_bert, bank[:30], bank[30:50])
    assert found.to_head.shape == (wide_bert.n_layers, wide_bert.n_heads)
    assert found.interval[0] <= found.value <= found.interval[1]
    assert found.value > found.baselines["best_single_head"] - 0.1
    difference = found.value - found.baselines["best_single_head"]
    assert found.gain.value == pytest.approx(difference)
    with pytest.raises(ValueError, match="are in train and test"):
        combine_heads(wide_bert, bank[:5], bank[4:8])


# --- norms and null space -----------------------------------------------------------------------


def test_attention_from_q_and_k_is_the_library_s(any_encoder, texts):
    cache = run_with_cache(any_encoder, texts, ["pattern", "q", "k"])
    again = recomputed_pattern(any_encoder, cache)
    real = cache.batch.attention_mask.bool()[None, :, None, :, None]
    difference = ((again - cache["pattern"]) * real).abs().max()
    assert difference < 1e-5


def test_weighted_vectors_add_up_to_the_attention_output(any_encoder, texts):
    cache = run_with_cache(any_encoder, texts, ["pattern", "v", "attn_out"])
    norms = value_norms(any_encoder, cache)
    real = cache.batch.attention_mask.bool()
    for layer in range(any_encoder.n_layers):
        vectors = value_vectors(any_encoder, cache, layer)
        mixed = torch.einsum("bhij,bhjd->bid", cache["pattern"][layer], vectors)
        mixed = mixed + any_encoder.layers[layer].output.bias
        torch.testing.assert_close(mixed[real], cache["attn_out"][layer][real], atol=1e-5, rtol=0)
        torch.testing.assert_close(vectors.norm(dim=-1), norms[layer], atol=1e-5, rtol=1e-4)
    weighted = norm_attention(any_encoder, cache)
    one = cache["pattern"][1, 0, 2, 3, 4] * norms[1, 0, 2, 4]
    assert weighted[1, 0, 2, 3, 4] == pytest.approx(float(one), rel=1e-5)


def test_shares_by_norm_and_by_weight(any_encoder, texts):
    found = norm_shares(any_encoder, texts)
    for way in ("weight", "norm"):
        total = sum(found[way][kind].scores for kind in KINDS)
        np.testing.assert_allclose(total, 1, atol=1e-5)
    correlation = weight_norm_correlation(any_encoder, texts, "text")
    assert correlation.shape == (any_encoder.n_layers, any_encoder.n_heads)
    assert (np.abs(correlation) <= 1 + 1e-6).all()


def test_a_silent_separator_has_weight_but_no_norm(texts):
    encoder = silent_separator()
    found = norm_shares(encoder, texts)
    assert found["weight"]["sep"].scores.min() > 0.5
    assert found["norm"]["sep"].scores.max() < 0.01


def test_attention_moves_in_the_null_space_without_effect():
    draw = np.random.default_rng(0)
    pattern = np.exp(draw.standard_normal((24, 24)))
    pattern /= pattern.sum(1, keepdims=True)
    values = draw.standard_normal((24, 6))
    effective = effective_attention(pattern, values)
    np.testing.assert_allclose(effective @ values, pattern @ values, atol=1e-10)
    assert np.abs(effective - pattern).max() > 0.01
    moved = alternative_attention(pattern, values)
    assert moved.n_free == 24 - 7
    assert moved.output_change < 1e-6 and moved.value > 0.3
    assert (moved.pattern >= -1e-9).all()
    np.testing.assert_allclose(moved.pattern.sum(1), 1, atol=1e-8)
    corner = pattern[:5, :5] / pattern[:5, :5].sum(1)[:, None]
    short_text = alternative_attention(corner, values[:5])
    assert short_text.n_free == 0 and short_text.value == 0
    with pytest.raises(ValueError, match="need one pattern"):
        effective_attention(pattern[:3], values)


# --- similarity ---------------------------------------------------------------------------------


def test_head_distances_are_jensen_shannon(any_encoder, texts):
    found = head_distances(any_encoder, texts[:2])
    assert np.allclose(found.matrix, found.matrix.T) and (np.diag(found.matrix) == 0).all()
    assert found.matrix.max() <= np.log(2) + 1e-6
    total, n = 0.0, 0
    for maps in attention_maps(any_encoder, texts[:2]):
        p, q = maps.pattern[0, 1].astype(float), maps.pattern[2, 3].astype(float)
        middle = (p + q) / 2
        total += (p * np.log(p / middle) + q * np.log(q / middle)).sum() / 2
        n += len(maps)
    row = found.heads.index((0, 1)), found.heads.index((2, 3))
    assert found.matrix[row] == pytest.approx(total / n, rel=1e-3)
    assert found.positions().shape == (12, 2) and found.n == n
    assert 0 < found.p_value <= 1


def test_scaling_recovers_distances_of_a_plane():
    points = np.random.default_rng(1).random((8, 2))
    squared = ((points[:, None] - points[None]) ** 2).sum(-1)
    placed = HeadDistances(squared, tuple((i // 4, i % 4) for i in range(8)), 1, "none").positions()
    again = ((placed[:, None] - placed[None]) ** 2).sum(-1)
    np.testing.assert_allclose(again, squared, atol=1e-9)


def test_change_of_maps_sees_the_changed_layer(texts):
    before, after = tiny_encoder("bert"), tiny_encoder("bert")
    same = pattern_change(before, after, texts)
    np.testing.assert_allclose(same.scores, 0, atol=1e-6)
    after.layers[2].query.weight.data.mul_(-1)
    change = pattern_change(before, after, texts)
    assert change.scores[2].min() > 1e-3 and np.abs(change.scores[:2]).max() < 1e-6
    assert last_layers_change(change, 1).value > 0
    with pytest.raises(ValueError, match="n_last is 3"):
        last_layers_change(change, 3)
    with pytest.raises(ValueError, match="differ in layers"):
        pattern_change(before, tiny_encoder("bert", n_layers=2), texts)
