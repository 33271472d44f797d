"""Static vectors, senses, positions, poolings, layer similarity and lenses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import silhouette_score
from tiny import tiny_encoder

from bertology_utils import stimuli
from bertology_utils.activations import Collected, collect, run_with_cache
from bertology_utils.encoder import MissingHeadError
from bertology_utils.geometry import (
    POOLINGS,
    SenseVectors,
    TooFewError,
    bleached_vectors,
    centroid_accuracy,
    compare_poolings,
    context_information,
    correlation_gain,
    few_shot_accuracy,
    hidden_positions,
    input_embeddings,
    layer_change,
    layer_similarity,
    linear_cka,
    logit_lens,
    nearest_neighbour_accuracy,
    occurrences,
    plane,
    pooled_texts,
    position_effects,
    pwcca,
    relatedness_correlation,
    rsa,
    sense_vectors,
    silhouette,
    static_vectors,
    token_recovery,
    word_labels,
)
from bertology_utils.words import align

MANY = [
    f"the {a} {b} {c}" for a in ("cat", "dog", "key") for b in ("sat", "is") for c in ("near", "on")
]


# --- static vectors -----------------------------------------------------------------------------


def test_static_vectors_pool_contexts(any_encoder):
    collected = collect(any_encoder, MANY)
    words = occurrences(word_labels(any_encoder, MANY), collected.text_index, min_count=3)
    static = static_vectors(collected, words, 2)
    states = collected.arrays["hidden_states"][2]
    np.testing.assert_allclose(static["cat"], states[words["cat"]].mean(0), atol=1e-6)
    top = static_vectors(collected, words, 2, pool="max")
    np.testing.assert_allclose(top["dog"], states[words["dog"]].max(0), atol=1e-6)
    one = static_vectors(collected, words, 2, max_contexts=1, seed=3)
    assert one.counts.tolist() == [1] * len(words)
    assert static.cosine("cat", "cat") == pytest.approx(1)
    near = static.nearest("cat", k=3)
    assert len(near) == 3 and near == sorted(near, key=lambda pair: -pair[1])
    assert "cat" not in dict(near) and "unicorn" not in static
    with pytest.raises(KeyError, match="unicorn"):
        static["unicorn"]
    with pytest.raises(ValueError, match="median"):
        static_vectors(collected, words, 2, pool="median")


def test_input_and_bleached_vectors(any_encoder):
    table = any_encoder.embeddings.token.weight.detach().numpy()
    row = align(any_encoder, "cats")
    pieces = [i for i, s in zip(row.input_ids, row.is_special, strict=True) if not s]
    static = input_embeddings(any_encoder, ["cats", "dog"])
    np.testing.assert_allclose(static["cats"], table[pieces].mean(0), atol=1e-6)
    bleached = bleached_vectors(any_encoder, ["cat", "dog"], 1)
    cache = run_with_cache(any_encoder, [["this", "is", "dog", "."]], ["hidden_states"])
    start, end = cache.batch.spans[0][2]
    expected = cache["hidden_states"][1, 0, start:end].mean(0).numpy()
    np.testing.assert_allclose(bleached["dog"], expected, atol=1e-5)
    with pytest.raises(ValueError, match="no place"):
        bleached_vectors(any_encoder, ["cat"], 1, frame="this is it")


def test_relatedness_is_a_rank_correlation(tiny_bert):
    words = "cat dog bank money river france paris city movie key".split()
    static = input_embeddings(tiny_bert, words)
    pairs = [(a, b, static.cosine(a, b)) for i, a in enumerate(words) for b in words[:i]]
    assert relatedness_correlation(static, pairs).value == pytest.approx(1)
    turned = [(a, b, -score) for a, b, score in pairs] + [("cat", "unknown", 3.0)]
    found = relatedness_correlation(static, turned)
    assert found.value == pytest.approx(-1) and found.n == 45
    noise = static.mapped(
        lambda v: np.random.default_rng(0).standard_normal(v.shape), "noise"
    )  # fmt: skip
    gain = correlation_gain(static, noise, pairs)
    assert gain.value > 0.5 and gain.interval[0] > 0.3
    with pytest.raises(TooFewError):
        relatedness_correlation(static, pairs[:3])


# --- senses -------------------------------------------------------------------------------------


def planted_senses(spread):
    """Two words of two senses; layer 0 knows the word only, layer 1 knows the sense."""
    draw = np.random.default_rng(0)
    words, senses, contexts = [], [], []
    for word in ("bank", "pitch"):
        for sense in ("one", "two"):
            for _frame in range(6):
                words += [word] * 4
                senses += [sense] * 4
                contexts += [len(contexts) // 4] * 4
    words, senses = np.array(words), np.array(senses)
    centres = {key: draw.standard_normal(12) for key in set(zip(words, senses, strict=True))}
    noise = draw.standard_normal((2, len(words), 12))
    known = np.stack([centres[key] for key in zip(words, senses, strict=True)])
    vectors = noise * spread
    vectors[1] += known
    return SenseVectors(vectors, words, senses, np.array(contexts), "made")


def test_sense_measures_find_planted_clusters_and_nothing_else():
    data = planted_senses(0.3)
    assert len(data) == 96 and len(data.of("bank")) == 48
    for measure in (nearest_neighbour_accuracy, centroid_accuracy, few_shot_accuracy):
        scores = measure(data)
        assert scores.at(1).value > 0.95, measure
        # In few contexts the centre without one's own leans to the other sense, so low is fine.
        assert scores.at(0).value < 0.65, measure
        assert scores.controls["majority"][0] == pytest.approx(0.5, abs=0.08)
    found = silhouette(data)
    assert found.at(1).value > 0.5 > 0.1 > abs(found.at(0).value)
    assert abs(found.controls["shuffled"][1]) < 0.2
    with pytest.raises(KeyError, match="crane"):
        data.of("crane")


def test_silhouette_is_the_textbook_s():
    data = planted_senses(1.0)
    by_hand = []
    for word in ("bank", "pitch"):
        one = data.of(word)
        by_hand.append(silhouette_score(one.vectors[1], one.senses, metric="cosine"))
    assert silhouette(data).at(1).value == pytest.approx(np.mean(by_hand), abs=1e-9)


def test_neighbours_of_the_same_context_do_not_count():
    data = planted_senses(0.3)
    # Layer 0: all examples of a context coincide, contexts are random.
    draw = np.random.default_rng(1)
    by_context = draw.standard_normal((data.contexts.max() + 1, 12))
    vectors = data.vectors.copy()
    vectors[0] = by_context[data.contexts]
    assert nearest_neighbour_accuracy(replace(data, vectors=vectors)).at(0).value < 0.8


def test_sense_vectors_of_our_examples(any_encoder):
    word = stimuli.SENSE_WORDS[0]
    examples = [e for e in stimuli.sense_examples(word) if len(e.text) < 50][:8]
    data = sense_vectors(any_encoder, examples)
    assert data.vectors.shape == (any_encoder.n_layers + 1, len(examples), 32)
    first = examples[0]
    cache = run_with_cache(any_encoder, [first.words], ["hidden_states"])
    start, end = cache.batch.spans[0][first.target]
    assert cache.batch.words[0][first.target].lower().startswith(word[:3])
    if any_encoder.family.name != "roberta":  # bytes see the space before punctuation
        expected = cache["hidden_states"][3, 0, start:end].mean(0).numpy()
        np.testing.assert_allclose(data.vectors[3, 0], expected, atol=1e-4)
    with pytest.raises(TooFewError):
        sense_vectors(any_encoder, [])
    one_sense = replace(planted_senses(0.3), senses=np.full(96, "one"))
    with pytest.raises(TooFewError, match="two senses"):
        nearest_neighbour_accuracy(one_sense)


def test_plane_keeps_the_most_variance():
    vectors = np.random.default_rng(0).standard_normal((30, 5)) * [5, 3, 1, 1, 1]
    placed = plane(vectors)
    values = np.linalg.svd(vectors - vectors.mean(0), compute_uv=False)
    np.testing.assert_allclose(np.linalg.norm(placed, axis=0), values[:2])
    np.testing.assert_array_equal(plane(vectors), placed)


# --- positions ----------------------------------------------------------------------------------


def test_position_effects(any_encoder):
    sentences = ["the cats sat on the mat.", "the dogs bark."]
    fillers = ["he said it.", "they sleep near a bank."]
    found = position_effects(any_encoder, sentences, fillers)
    assert found.second.values.shape == (any_encoder.n_layers + 1,)
    np.testing.assert_allclose(
        found.difference.values, found.second.values - found.first.values, atol=1e-9
    )
    assert found.second.values.min() > 1e-4
    if any_encoder.n_segments > 1:
        assert found.segment_ids.values.min() > 1e-5
    else:
        np.testing.assert_allclose(found.segment_ids.values, 0, atol=1e-7)
    with pytest.raises(ValueError, match="1 fillers"):
        position_effects(any_encoder, sentences, fillers[:1])
    with pytest.raises(TooFewError):
        position_effects(any_encoder, ["Dogs"], ["It is."])


def test_without_positions_segments_and_attention_nothing_moves():
    encoder = tiny_encoder("bert")
    encoder.embeddings.position.weight.data.zero_()
    encoder.embeddings.segment.weight.data.zero_()
    for layer in encoder.layers:
        layer.output.weight.data.zero_()
    found = position_effects(encoder, ["the cats sat."], ["he said it."])
    np.testing.assert_allclose(found.second.values, 0, atol=1e-6)
    np.testing.assert_allclose(found.first.values, 0, atol=1e-6)


# --- poolings -----------------------------------------------------------------------------------


def test_poolings_by_hand(any_encoder, texts):
    found = pooled_texts(any_encoder, texts, max_tokens=30)
    assert tuple(found) == POOLINGS
    for i, text in enumerate(texts):
        cache = run_with_cache(any_encoder, text, ["hidden_states"])
        layers = cache["hidden_states"][:, 0]
        inside = layers[:, cache.batch.is_text[0]]
        last = inside[-1]
        unit = last / last.norm(dim=-1, keepdim=True)
        expected = {
            "cls": layers[-1, 0],
            "mean": last.mean(0),
            "normalised_mean": unit.mean(0),
            "max": last.max(0).values,
            "last_four": inside[-4:].mean(1).flatten(),
        }
        for name, vector in expected.items():
            np.testing.assert_allclose(found[name][i], vector.numpy(), atol=1e-5)
    assert pooled_texts(any_encoder, texts, layer=0)["last_four"].shape == (4, 32)
    with pytest.raises(KeyError, match="median"):
        pooled_texts(any_encoder, texts, poolings=["median"])


def test_the_pooling_that_knows_wins():
    draw = np.random.default_rng(0)
    labels = np.arange(200) % 2
    vectors = {name: draw.standard_normal((200, 6)) for name in ("cls", "mean", "max")}
    vectors["mean"][:, 0] += 4 * labels
    found = compare_poolings(vectors, labels, model="none")
    assert found.chosen == "mean" and found.gain.value > 0.3 and found.gain.interval[0] > 0.2
    assert found.accuracy["cls"].value < 0.65 and found.accuracy["cls"].baselines["majority"] == 0.5
    with pytest.raises(KeyError, match="cls"):
        compare_poolings({"mean": vectors["mean"]}, labels, model="none")
    with pytest.raises(TooFewError):
        compare_poolings(vectors, np.zeros(200), model="none")


# --- layers and models --------------------------------------------------------------------------


def test_similarities_have_their_invariances():
    draw = np.random.default_rng(0)
    x = draw.standard_normal((400, 10))
    rotation = np.linalg.qr(draw.standard_normal((10, 10)))[0]
    linear = draw.standard_normal((10, 10))
    noise = draw.standard_normal((400, 10))
    assert linear_cka(x, 3 * x @ rotation + 5) == pytest.approx(1)
    assert rsa(x, 3 * x @ rotation) == pytest.approx(1)
    assert pwcca(x, x @ linear + 2) == pytest.approx(1)
    assert linear_cka(x, x @ linear) < 0.95
    assert linear_cka(x, noise) < 0.1 and abs(rsa(x, noise)) < 0.1 and pwcca(x, noise) < 0.3
    wide = draw.standard_normal((20, 50))
    centred = wide - wide.mean(0)
    assert linear_cka(wide, wide @ draw.standard_normal((50, 50))) <= 1
    gram = centred @ centred.T
    other = (centred[:, :7]) @ (centred[:, :7]).T
    expected = (gram * other).sum() / np.linalg.norm(gram) / np.linalg.norm(other)
    assert linear_cka(wide, wide[:, :7]) == pytest.approx(expected)
    with pytest.raises(ValueError, match="same rows"):
        linear_cka(x, x[:5])
    with pytest.raises(TooFewError):
        pwcca(wide, wide)
    with pytest.raises(TooFewError):
        linear_cka(np.ones((5, 3)), np.ones((5, 3)))


@pytest.mark.parametrize("method", ["cka", "rsa", "pwcca"])
def test_layers_of_one_model_and_of_two(method, tiny_bert):
    rows = collect(tiny_bert, MANY * 3)
    same = layer_similarity(rows, rows, method=method)
    np.testing.assert_allclose(same.matrix.diagonal(), 1, atol=1e-6)
    other = collect(tiny_encoder("bert", seed=5), MANY * 3)
    across = layer_similarity(rows, other, method=method)
    measure = {"cka": linear_cka, "rsa": rsa, "pwcca": pwcca}[method]
    x, y = rows.arrays["hidden_states"][1], other.arrays["hidden_states"][2]
    assert across.matrix[1, 2] == pytest.approx(measure(x, y), abs=1e-9)
    assert across.at(1, 2).baselines["shuffled"] < across.matrix[1, 2] <= 1
    assert across.same_depth().value == pytest.approx(across.matrix.diagonal().mean())
    with pytest.raises(KeyError, match="svcca"):
        layer_similarity(rows, rows, method="svcca")
    with pytest.raises(ValueError, match="not of the same rows"):
        layer_similarity(rows, collect(tiny_bert, MANY), method=method)


def test_change_is_seen_from_the_changed_layer_up():
    before, after = tiny_encoder("bert"), tiny_encoder("bert")
    after.layers[1].ffn_out.weight.data.mul_(-1)
    change = layer_change(collect(before, MANY), collect(after, MANY))
    np.testing.assert_allclose(change.values[:2], 0, atol=1e-6)
    assert change.values[2:].min() > 1e-3 and change.n == len(MANY)
    short = Collected({}, np.zeros(1, int), np.zeros(1, int), "word_mean", "x")
    with pytest.raises(ValueError, match="not of the same rows"):
        layer_change(collect(before, MANY), short)


# --- lenses -------------------------------------------------------------------------------------


def test_the_lens_on_the_last_layer_is_the_model(any_encoder, texts):
    if not any_encoder.has_mlm:
        with pytest.raises(MissingHeadError):
            logit_lens(any_encoder, texts)
        return
    found = logit_lens(any_encoder, texts, rate=0.3)
    total, hits, n = 0.0, 0, 0
    for t, text in enumerate(texts):
        row = align(any_encoder, text)
        ids = torch.tensor([row.input_ids])
        places = list(found.positions[t])
        assert places == hidden_positions(row, 0.3, 0).tolist()
        gold = ids[0, places].clone()
        ids[0, places] = any_encoder.tokenizer.mask_token_id
        with torch.no_grad():
            output = any_encoder.model(input_ids=ids)
        logits = getattr(output, "prediction_logits", None)
        logits = output.logits if logits is None else logits
        logs = torch.log_softmax(logits[0, places], -1)
        total += float(logs[range(len(places)), gold].sum())
        hits += int((logs.argmax(-1) == gold).sum())
        n += len(places)
        assert [v for v, _ in found.top[-1][t]] == logs.argmax(-1).tolist()
    assert found.log_prob.value == pytest.approx(total / n, abs=1e-4)
    assert found.accuracy.value == pytest.approx(hits / n)
    with pytest.raises(ValueError, match="rate"):
        logit_lens(any_encoder, texts, rate=0)
    with pytest.raises(TooFewError):
        logit_lens(any_encoder, [])


@pytest.mark.parametrize("decoder", ["input", "centroid"])
def test_tokens_are_recovered_where_they_must_be(any_encoder, decoder):
    encoder = tiny_encoder(any_encoder.name.removeprefix("tiny-"))
    encoder.embeddings.position.weight.data.zero_()  # so that a place betrays no token
    found = token_recovery(encoder, MANY, decoder=decoder, rate=0.5, min_count=2)
    assert set(found) == {"kept", "masked", "replaced"}
    assert found["kept"].at(0).value == 1.0 > found["kept"].controls["most_frequent"][0]
    # In the embedding layer all masks are one vector, and a replacement is another token.
    guesses = found["masked"].at(0)
    assert guesses.value <= found["masked"].controls["most_frequent"][0] + 1e-9
    assert found["replaced"].at(0).value == 0.0
    with pytest.raises(TooFewError, match="occur"):
        token_recovery(encoder, MANY, decoder=decoder, min_count=99)


def test_information_is_bounded_and_blind_models_have_none(texts):
    encoder = tiny_encoder("bert")
    found = context_information(encoder, MANY)
    assert found.value <= np.log(len(MANY)) and found.n == len(MANY)
    for layer in encoder.layers:
        layer.output.weight.data.zero_()  # nothing of the context reaches the mask
    encoder.embeddings.position.weight.data.zero_()
    assert context_information(encoder, MANY).value == pytest.approx(0, abs=1e-5)
    with pytest.raises(MissingHeadError):
        context_information(tiny_encoder("electra"), texts)
    with pytest.raises(TooFewError):
        context_information(encoder, MANY[:1])
