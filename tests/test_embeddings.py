"""Relatedness, honest layers, sentences behind words, static students, explorers and maps."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr
from tiny import tiny_encoder

from bertology_utils import embeddings, widgets
from bertology_utils.activations import Collected, collect
from bertology_utils.encoder import MissingHeadError
from bertology_utils.geometry import (
    LayerScores,
    StaticVectors,
    TooFewError,
    mean_gain,
)
from bertology_utils.stimuli import sentiment
from bertology_utils.stimuli.things import things


def made(vectors, words):
    return StaticVectors(tuple(words), vectors, np.ones(len(words), int), "made", "made")


def curve(values, seed=0):
    values = np.asarray(values, float)
    return LayerScores("made", "share", values, np.ones(len(values)), "made", seed)


# --- relatedness --------------------------------------------------------------------------------


def test_relatedness_is_spearman_over_all_pairs():
    gold = embeddings.shared_features(things())
    place = {w: i for i, w in enumerate(gold.words)}
    assert gold.gold[place["cat"], place["dog"]] > gold.gold[place["cat"], place["hammer"]]
    assert np.allclose(np.diag(gold.gold), 1) and len(gold.words) < len(things())
    # Vectors whose cosines are the gold itself, but for rounding, which breaks its many ties.
    values, directions = np.linalg.eigh(gold.gold)
    root = directions * np.sqrt(np.maximum(values, 0))
    perfect = made(root, gold.words)
    found = gold.agreement(perfect)
    assert found.value > 0.85 and found.interval[0] > 0.8 and found.n == len(gold.words)
    noise = made(np.random.default_rng(0).standard_normal((len(gold.words), 50)), gold.words)
    upper = np.triu_indices(len(gold.words), 1)
    cosines = [noise.cosine(gold.words[i], gold.words[j]) for i, j in zip(*upper, strict=True)]
    plain = spearmanr(cosines, gold.gold[upper]).statistic
    assert gold.agreement(noise).value == pytest.approx(plain)
    by_chance = gold.agreement(noise)
    assert abs(by_chance.value) < 0.06 and by_chance.interval[0] < 0 < by_chance.interval[1]
    gain = gold.gain(perfect, [noise, noise])
    assert gain.value == pytest.approx(found.value - by_chance.value)
    assert gain.interval[0] > 0.7 and gain.unit == "correlation difference"
    same = gold.gain(noise, noise)
    assert same.value == 0 and np.allclose(same.interval, 0)


def test_relatedness_resamples_words_not_pairs():
    """Pairs that share a word are not independent: the interval is that of 60 words, not of 1770
    pairs, which would be more than twice as narrow."""
    draw = np.random.default_rng(1)
    hidden = draw.standard_normal((60, 3))
    gold = hidden @ hidden.T
    words = [f"w{i}" for i in range(60)]
    relatedness = embeddings.Relatedness(tuple(words), (gold + gold.T) / 2)
    noisy = made(hidden + draw.standard_normal((60, 3)), words)
    low, high = relatedness.agreement(noisy).interval
    pairs_alone = 2 * 1.96 / np.sqrt(60 * 59 / 2)
    assert high - low > 2 * pairs_alone


def test_relatedness_halves_and_errors():
    gold = embeddings.shared_features(things()[:20])
    one, two = gold.halves(3)
    assert not set(one.words) & set(two.words) and len(one.words) + len(two.words) == 20
    assert gold.only(["cat", "dog", "lion", "tiger", "wolf", "unicorn"]).words == tuple(
        w for w in gold.words if w in {"cat", "dog", "lion", "tiger", "wolf"}
    )
    with pytest.raises(TooFewError, match="too few"):
        gold.only(["cat", "dog"])
    with pytest.raises(TooFewError, match="equally"):
        embeddings.Relatedness(tuple("abcde"), np.ones((5, 5)))
    with pytest.raises(ValueError, match="symmetric"):
        embeddings.Relatedness(tuple("abcde"), np.arange(25.0).reshape(5, 5))
    with pytest.raises(KeyError, match="cat"):
        gold.agreement(made(np.eye(5), list("abcde")))


# --- honest layers ------------------------------------------------------------------------------


def test_the_best_layer_is_chosen_on_the_other_half():
    draw = np.random.default_rng(0)
    real = draw.random((400, 6)) < np.array([0.9, 0.5, 0.5, 0.8, 0.5, 0.5])
    scores = curve(real).with_control("chance", np.array([9, 1, 2, 3, 4, 5]) / 10)
    found = embeddings.held_out_best(scores)
    assert found.layers == (3, 3)  # the embedding layer, though best, is no candidate
    assert found.value == pytest.approx(real[:, 3].mean())
    assert found.baselines["chance"] == pytest.approx(0.3)
    assert found.baselines["embedding_layer"] == pytest.approx(real[:, 0].mean())
    # Pure noise: the best of many layers on the same items is above chance, this is not.
    values, lucky = [], []
    for seed in range(40):
        noise = (np.random.default_rng(seed).random((60, 25)) < 0.5).astype(float)
        values.append(embeddings.held_out_best(curve(noise, seed), seed=seed).value)
        lucky.append(noise[:, 1:].mean(0).max())
    assert np.mean(lucky) > 0.57
    assert np.mean(values) == pytest.approx(0.5, abs=0.025)


def test_a_dip_has_to_be_found_twice():
    draw = np.random.default_rng(0)
    dip = (draw.random((300, 6)) < np.array([1, 0.9, 0.7, 0.4, 0.6, 0.8])).astype(float)
    found = embeddings.rise_from_poorest(curve(dip))
    assert found.layers == (3, 3) and found.value == pytest.approx(0.4, abs=0.07)
    assert found.interval[0] > 0.25 and found.unit == "share difference"
    falling = (draw.random((300, 6)) < np.array([1, 0.9, 0.8, 0.6, 0.4, 0.2])).astype(float)
    assert embeddings.rise_from_poorest(curve(falling)).interval[1] < 0
    values = [
        embeddings.rise_from_poorest(
            curve((np.random.default_rng(s).random((60, 25)) < 0.5).astype(float), s), seed=s
        ).value
        for s in range(40)
    ]
    assert np.mean(values) == pytest.approx(0, abs=0.035)
    with pytest.raises(TooFewError):
        embeddings.rise_from_poorest(curve(dip[:, :2]))
    with pytest.raises(TooFewError):
        embeddings.held_out_best(curve(dip[:3]))


# --- sentences behind words ---------------------------------------------------------------------


def test_a_sentence_is_named_if_its_words_share_something():
    draw = np.random.default_rng(0)
    owner = np.repeat(np.arange(30), 6)
    noise = draw.standard_normal((180, 20))
    sentence = draw.standard_normal((30, 20))[owner]
    arrays = {"hidden_states": np.stack([noise, noise + sentence, noise + 4 * sentence])}
    collected = Collected(arrays, owner, np.tile(np.arange(6), 30), "word_mean", "made")
    scores = embeddings.sentence_identity(collected)
    assert scores.controls["chance"][0] == pytest.approx(1 / 30)
    assert scores.values[0] < 0.09 < 0.4 < scores.values[1] < scores.values[2]
    assert scores.values[2] > 0.98
    first = embeddings.sentence_identity(collected, collected.position == 0)
    assert first.counts.tolist() == [1] * 30
    alone = Collected(
        {"hidden_states": np.ones((1, 3, 2))}, np.arange(3), np.zeros(3, int), "word_mean", "made"
    )
    with pytest.raises(TooFewError):
        embeddings.sentence_identity(alone)


def test_neutral_words_are_neutral(any_encoder):
    reviews = sentiment(30, seed=1)
    vectors, words = embeddings.neutral_vectors(any_encoder, reviews, seed=2)
    assert vectors.shape == (any_encoder.n_layers + 1, 30, any_encoder.d_model)
    assert not set(words) & {"good", "bad", "wonderful", "terrible", ".", "!"}
    number = next(i for i, w in enumerate(words) if w)
    collected = collect(any_encoder, [reviews[number].text])
    spelt = re.findall(r"\w+|[^\w\s]", reviews[number].text.lower())
    same = [
        np.allclose(collected.arrays["hidden_states"][:, i], vectors[:, number], atol=1e-4)
        for i in range(len(collected))
    ]
    assert spelt[same.index(True)] == words[number]


def test_a_probe_reads_the_layer_that_knows():
    draw = np.random.default_rng(0)
    labels = np.arange(120) % 2
    vectors = draw.standard_normal((3, 120, 8))
    vectors[2, :, 0] += 5 * labels
    scores, found = embeddings.probe_by_layer(
        vectors[:, :80], labels[:80], vectors[:, 80:], labels[80:], model="made"
    )
    assert found.layers == (2, 2) and found.value > 0.9
    assert found.baselines["embedding_layer"] < 0.75
    assert found.baselines["majority"] == 0.5 and scores.n == 40
    with pytest.raises(ValueError, match="labels"):
        embeddings.probe_by_layer(vectors, labels[:5], vectors, labels, model="made")
    with pytest.raises(TooFewError):
        embeddings.probe_by_layer(vectors, labels * 0, vectors, labels, model="made")


# --- information --------------------------------------------------------------------------------


def test_information_bound_in_plain_words():
    draw = np.random.default_rng(0)
    f = draw.random((7, 7)) + 0.1
    expected = [np.log(f[i, i] / f[i].mean()) for i in range(7)]
    np.testing.assert_allclose(embeddings.information_bound(np.log(f)), expected)


def test_static_vectors_share_information_with_their_contexts():
    student = embeddings.skip_gram(corpus(), model="made", width=16, epochs=12)
    found = embeddings.static_information(student, corpus(seed=1))
    assert found.unit == "nats" and found.n == 300
    # Animal or tool is one bit; "the" and "here" make up half of the words drawn.
    assert 0.05 < found.interval[0] < found.value < np.log(12)
    assert found.baselines["shuffled"] < found.interval[0]
    mixed = embeddings.skip_gram(
        [np.random.default_rng(i).permutation(np.concatenate(corpus(40, i))).tolist()
         for i in range(4)], model="made", width=16, epochs=12,
    )  # fmt: skip
    assert embeddings.static_information(mixed, corpus(seed=1)).value < found.value - 0.1
    taught = embeddings.skip_gram(corpus(), np.ones((1200, 16)), model="made", width=16, epochs=1)
    with pytest.raises(ValueError, match="neighbours"):
        embeddings.static_information(taught, corpus())
    with pytest.raises(TooFewError):
        embeddings.static_information(student, [["unknown", "words"]])


# --- students -----------------------------------------------------------------------------------


def corpus(n=300, seed=0):
    draw = np.random.default_rng(seed)
    animals, tools = ["cat", "dog", "cow"], ["saw", "axe", "drill"]
    sentences = []
    for i in range(n):
        noun = str(draw.choice((animals, tools)[i % 2]))
        verb = str(draw.choice((["eats", "sleeps"], ["cuts", "breaks"])[i % 2]))
        sentences.append(["the", noun, verb, "here"])
    return sentences


def within_minus_across(static):
    groups = [["cat", "dog", "cow"], ["saw", "axe", "drill"]]
    within = np.mean([static.cosine(a, b) for g in groups for a in g for b in g if a < b])
    return within - np.mean([static.cosine(a, b) for a in groups[0] for b in groups[1]])


def test_skip_gram_learns_who_keeps_whose_company():
    sentences = corpus()
    alone = embeddings.skip_gram(sentences, model="made", width=16, epochs=12)
    assert within_minus_across(alone) > 0.3
    # A teacher whose vectors say animal or tool, and one whose vectors say nothing.
    kind = np.repeat([1.0 if i % 2 else -1.0 for i in range(300)], 4)
    draw = np.random.default_rng(0)
    knows = draw.standard_normal((1200, 16)) * 0.3
    knows[:, 0] += 2 * kind
    taught = embeddings.skip_gram(sentences, knows, model="made", width=16, epochs=12)
    assert within_minus_across(taught) > 0.3
    idle = [
        within_minus_across(embeddings.skip_gram(
            sentences, draw.standard_normal((1200, 16)), model="made", width=16, epochs=12
        ))
        for _ in range(4)
    ]  # fmt: skip
    assert within_minus_across(taught) > np.mean(idle) + 0.2
    again = embeddings.skip_gram(sentences, model="made", width=16, epochs=12)
    np.testing.assert_array_equal(alone.vectors, again.vectors)
    with pytest.raises(ValueError, match="1200 words"):
        embeddings.skip_gram(sentences, knows[:7], model="made")
    with pytest.raises(TooFewError):
        embeddings.skip_gram([["one"], ["word"]], model="made", min_count=1)


# --- texts --------------------------------------------------------------------------------------


def test_all_nouns_stand_in_the_same_frames(any_encoder):
    framed = embeddings.framed_nouns(any_encoder, ["cat", "book", "apple"], 4)
    assert framed.rows.shape == (3, 4)
    assert [len(rows) for rows in framed.contexts.values()] == [3, 3, 3]
    assert framed.alone(2)["book"] == framed.rows[1, 2] and framed.bleached == framed.alone(0)
    with pytest.raises(IndexError, match="frame 4 of 4"):
        framed.alone(4)
    assert embeddings.in_frame(embeddings.FRAMES[0], "apple") == ("This", "is", "an", "apple", ".")
    # "book" also stands elsewhere in the third frame.
    book = embeddings.in_frame(embeddings.FRAMES[2], "book")
    assert book[framed.collected.position[framed.rows[1, 2]]] == "book"
    assert framed.collected.position[framed.rows[1, 2]] > book.index("book")
    with pytest.raises(ValueError, match="n_frames"):
        embeddings.framed_nouns(any_encoder, ["cat"], 99)
    with pytest.raises(TooFewError):
        embeddings.framed_nouns(any_encoder, [])


def test_tagged_senses_are_one_for_every_context(embedded):
    tagged = embeddings.tagged_senses()
    keys = [(e.word, e.sense, e.frame) for e in tagged.examples]
    assert len(set(keys)) == len(keys) >= 300
    some = replace(
        tagged, examples=tagged.examples[:16], texts=tagged.texts[:16], places=tagged.places[:16]
    )
    data = some.vectors(collect(embedded, [*some.texts, "and one more text"]))
    assert set(data.words) == {"bank"} and len(np.unique(data.contexts)) == 16
    bag = some.context_only(embedded)
    assert bag.vectors.shape == (1, 16, embedded.d_model)
    # The word itself is left out: its own row of the table is no part of the mean.
    swapped = replace(
        some,
        texts=tuple(
            replace(t, words=tuple("tank" if w.lower() == "bank" else w for w in t.words),
                    text=None) for t in some.texts
        ),
    )  # fmt: skip
    np.testing.assert_allclose(bag.vectors, swapped.context_only(embedded).vectors, atol=1e-6)


def test_cones_open_without_their_mean(tiny_bert):
    draw = np.random.default_rng(0)
    states = draw.standard_normal((2, 300, 12)) + np.array([0.0, 3.0])[:, None, None]
    states[1, :, 0] += 20 * np.sign(draw.standard_normal(300))
    collected = Collected(
        {"hidden_states": states}, np.arange(300) // 3, np.arange(300) % 3, "word_mean", "made"
    )
    found = embeddings.cone_without(collected, [0, 1])
    assert np.abs(found[0]).max() < 0.1 and np.abs(found[1]).max() < 0.1


# --- explorer -----------------------------------------------------------------------------------


def test_requests_are_a_word_or_a_word_with_sentences():
    assert embeddings.parse_request(" Mole ") == ("mole", ())
    assert embeddings.parse_request("mole: A mole dug. | Her mole |") == (
        "mole", ("A mole dug.", "Her mole"),
    )  # fmt: skip
    for bad in ("", ": a sentence", "two words: a"):
        with pytest.raises(embeddings.OccurrenceError, match="one word"):
            embeddings.parse_request(bad)


def test_occurrences_are_found_grouped_and_described(tiny_bert):
    texts = ["the cat sat", "a cat", "cats", "The Cat is old", ["near", "the", "cat"], "dog"]
    found = embeddings.find_occurrences(tiny_bert, "cat", texts)
    assert found.places == (1, 1, 1, 2) and found.spelling(3) == "near the cat"
    assert found.vectors.shape == (tiny_bert.n_layers + 1, 4, tiny_bert.d_model)
    scores = embeddings.substitutes(tiny_bert, found)
    np.testing.assert_allclose(np.exp(scores).sum(1), 1, atol=1e-4)
    likely = embeddings.likely_words(tiny_bert, scores, without="cat", k=4)
    assert len(likely) == 4 and all(w.isalpha() and len(w) > 1 and w != "cat" for w in likely)
    with pytest.raises(embeddings.OccurrenceError, match="'dog' occurs in 1"):
        embeddings.find_occurrences(tiny_bert, "dog", texts)
    with pytest.raises(MissingHeadError):
        embeddings.substitutes(tiny_encoder("electra"), found)


def test_groups_are_the_planted_ones():
    draw = np.random.default_rng(0)
    centres = np.linalg.qr(draw.standard_normal((10, 10)))[0][:3]
    planted = np.array([1, 0, 0, 2, 0, 1, 0, 1, 2])
    groups = embeddings.group_occurrences(centres[planted] + 0.05 * draw.standard_normal((9, 10)))
    # Numbered by size: four of 0, three of 1, two of 2.
    assert groups.label.tolist() == planted.tolist() and groups.silhouette > 0.8
    with pytest.raises(embeddings.OccurrenceError):
        embeddings.group_occurrences(np.eye(3))


# --- maps ---------------------------------------------------------------------------------------


def small_map(n=12, layers=3, groups=2):
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((layers, n, 6))
    names = [f"g{i % groups}" for i in range(n)]
    vectors[-1] += 6 * np.eye(6)[np.arange(n) % groups % 6]
    notes = [f"<b>note</b> {i}" for i in range(n)]
    return embeddings.layer_map(vectors, names, ["word"] * n, notes, model="made"), vectors


def test_maps_keep_distances_and_turn_towards_the_layer_below():
    found, vectors = small_map()
    centred = vectors[1] - vectors[1].mean(0)
    _, s, _ = np.linalg.svd(centred)
    assert found.kept[1] == pytest.approx((s[:2] ** 2).sum() / (s**2).sum())
    assert found.pure[-1] == 1 and found.chance == pytest.approx(5 / 11)
    turned = found.places[1].T @ found.places[0]
    # After the best turn this product is symmetric and positive.
    np.testing.assert_allclose(turned, turned.T, atol=1e-9)
    assert np.linalg.eigvalsh(turned).min() > -1e-9
    with pytest.raises(ValueError):
        embeddings.layer_map(vectors, ["a"], ["b"], ["c"], model="made")


def test_a_point_map_is_a_page_of_its_own():
    found, _ = small_map()
    shown = widgets.point_map({"one": {"trained": found}, "two": {"trained": found}}, title="<Map>")
    assert "&lt;Map&gt;" in shown.html and "<b>note" not in shown.html
    assert shown.html.count('class="bx-mark bx-mark-') == 12 + 2  # the points and the legend
    payload = json.loads(re.search(r"\}\)\((\{.*\})\);</script>", shown.html, re.S)[1])
    assert payload["sizes"] == [2, 1] and len(payload["maps"]) == 2
    one = payload["maps"][0]
    assert one["group"] == sorted(one["group"]) and len(one["places"]) == 3
    places = np.array(one["places"])
    assert places[..., 0].min() >= 0 and places[..., 0].max() <= 460
    assert places[..., 1].min() >= 0 and places[..., 1].max() <= 340
    assert one["notes"][0] == "word - <b>note</b> 0" and "Layer 2 of 2" in one["lines"][2]


def test_point_maps_refuse_what_they_cannot_draw():
    found, _ = small_map()
    with pytest.raises(ValueError, match="no map"):
        widgets.point_map({}, title="x")
    with pytest.raises(ValueError, match="variants"):
        widgets.point_map({"a": {"t": found}, "b": {"r": found}}, title="x")
    with pytest.raises(ValueError, match="number of layers"):
        widgets.point_map({"a": {"t": found, "r": small_map(layers=4)[0]}}, title="x")
    with pytest.raises(ValueError, match="7 groups"):
        widgets.point_map({"a": {"t": small_map(14, groups=7)[0]}}, title="x")
    with pytest.raises(ValueError, match="layer 9"):
        widgets.point_map({"a": {"t": found}}, title="x", start=9)


def test_gains_of_tasks_are_averaged():
    from bertology_utils.geometry import compare_poolings

    draw = np.random.default_rng(0)
    labels = np.arange(80) % 2
    weak = draw.standard_normal((80, 5))
    strong = weak + 4 * labels[:, None]
    better = compare_poolings({"cls": weak, "mean": strong}, labels, model="made")
    same = compare_poolings({"cls": strong}, labels, model="made")
    both = mean_gain([better, same])
    assert both.value == pytest.approx(better.gain.value / 2) and both.n == 80
    assert both.interval[0] > 0
    with pytest.raises(TooFewError):
        mean_gain([])
