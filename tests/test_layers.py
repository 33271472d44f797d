"""The room of layers, against planted truth."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import FAMILIES, TEXTS, tiny_encoder

from bertology_utils import layers, probes, stimuli, syntax
from bertology_utils.cloze import fill_mask
from bertology_utils.encoder import LayerIndexError, MissingHeadError, evaluating
from bertology_utils.geometry import LayerScores
from bertology_utils.heads import TunedEncoder
from bertology_utils.layers import curves, edges, tasks
from bertology_utils.stimuli.commonsense import triples
from bertology_utils.words import make_batch


def planted(best: int, depth: int = 4, n: int = 60, seed: int = 0) -> LayerScores:
    """A curve that is right in nine of ten items at one layer and in half of them elsewhere."""
    draw = np.random.default_rng(seed)
    chance = np.where(np.arange(depth + 1) == best, 0.95, 0.5)
    hits = draw.random((n, depth + 1)) < chance
    return LayerScores("planted", "share", hits.astype(float), np.ones(n), "m", seed)


# -- curves --------------------------------------------------------------------------------------


def test_the_peak_is_where_it_was_planted():
    for best in (0, 2, 4):
        found = layers.peak(planted(best))
        assert found.unit == "relative depth"
        assert found.value == best / 4
        assert found.interval == (best / 4, best / 4)


def test_a_flat_curve_has_a_peak_anywhere():
    hits = np.random.default_rng(1).random((50, 7)) < 0.5
    flat = LayerScores("flat", "share", hits.astype(float), np.ones(50), "m")
    low, high = layers.peak(flat).interval
    assert high - low >= 0.5


def test_peaks_of_several_tasks():
    curves = {str(best): planted(best, seed=best) for best in (1, 2, 4)}
    assert layers.mean_peak(curves).value == pytest.approx((1 + 2 + 4) / 12)
    assert layers.share_at_last(curves).value == pytest.approx(1 / 3)
    with pytest.raises(ValueError, match="no tasks"):
        layers.mean_peak({})


def test_thirds():
    assert layers.thirds(6) == ([1, 2], [5, 6])
    assert layers.thirds(2) == ([1], [2])
    with pytest.raises(ValueError, match="no bottom"):
        layers.thirds(1)
    assert layers.upper_minus_lower(planted(4)).value > 0.3
    assert layers.upper_minus_lower(planted(1)).value < -0.3
    assert layers.upper_minus_lower(planted(1)).unit == "share difference"


def test_scores_of_probes_keep_items_and_majority():
    draw = np.random.default_rng(0)
    labels = np.arange(120) % 2
    features = draw.normal(size=(2, 120, 5))
    features[1, :, 0] += 4 * labels
    split = probes.random_split(120, seed=1)
    results = probes.probe_layers(features, labels, split, kind="ridge")
    curve = layers.scores_of(results, [i // 2 for i in split.test])
    assert curve.values == pytest.approx([r.accuracy for r in results])
    assert curve.controls["majority"][0] == pytest.approx(results[0].majority)
    assert curve.n == len({i // 2 for i in split.test})
    with pytest.raises(ValueError, match="groups"):
        layers.scores_of(results, [0])


def test_cross_probing_tests_every_item_once_and_keeps_groups_apart():
    draw = np.random.default_rng(0)
    n = 120
    labels = draw.integers(0, 2, n)
    features = draw.normal(size=(3, n, 8)).astype(np.float32)
    features[1, :, 0] += 6 * labels
    # The last layer holds nothing but the group, and groups have one label each.
    groups = (2 * (np.arange(n) // 4) + labels).tolist()
    features[2] = draw.normal(size=(2 * n, 8))[groups]
    curve = layers.cross_probe(features, labels.tolist(), groups, model="m")
    assert curve.counts.sum() == n
    assert curve.values[1] > 0.95
    assert abs(curve.values[0] - 0.5) < 0.2
    assert curve.values[2] < 0.7
    with pytest.raises(ValueError, match="folds"):
        layers.cross_probe(features, labels.tolist(), [0] * n, model="m")


def test_products_let_a_linear_probe_compare_two_sides():
    draw = np.random.default_rng(0)
    sides = np.sign(draw.normal(size=(1, 300, 4))).astype(np.float32)
    same = (sides[0, :, 0] == sides[0, :, 2]).tolist()
    sides[0, :, [1, 3]] *= 0.1
    noise = draw.normal(scale=0.05, size=(1, 300, 4)).astype(np.float32)
    curve = layers.cross_probe(sides + noise, same, range(300), sides=2, model="m")
    assert curve.values[0] > 0.95


def test_curve_of_sentence_scores():
    scores = syntax.LayerScores(np.array([[1.0, 2], [2, 3]]), np.array([2, 3]), "m")
    curve = layers.curve_of(scores, neighbours=0.4)
    assert curve.values == pytest.approx([0.6, 1.0])
    assert curve.controls["neighbours"].tolist() == [0.4, 0.4]
    uneven = syntax.LayerScores(np.ones((2, 2)), np.array([[2, 3], [3, 2]]), "m")
    with pytest.raises(ValueError, match="same number"):
        layers.curve_of(uneven)


# -- position ------------------------------------------------------------------------------------


def test_position_is_found_where_it_is_and_length_earns_nothing():
    draw = np.random.default_rng(0)
    lengths = draw.integers(4, 12, 80)
    place = np.concatenate([np.arange(n) for n in lengths])
    total = np.repeat(lengths, lengths)
    noise = draw.normal(scale=0.05, size=(3, len(place), 6)).astype(np.float32)
    noise[0, :, 0] += place
    noise[1, :, 0] += total
    sentence = np.repeat(np.arange(80), lengths)
    vectors = syntax.TreebankVectors(noise, noise[:, :80], sentence, "m")
    found = layers.position_fit(vectors, probes.random_split(80, test=0.3))
    assert found.values[0] > 0.99
    assert abs(found.values[1]) < 0.1
    assert abs(found.values[2]) < 0.1
    assert found.unit == "R squared"


def test_the_word_table_knows_no_place():
    encoder = tiny_encoder("bert")
    bank = list(stimuli.treebank(6, seed=1))
    table = layers.word_table(encoder, bank)
    words = [word.lower() for s in bank for word in s.words]
    assert table.words.shape[:2] == (1, len(words))
    again = [i for i, word in enumerate(words) if word == "the"]
    assert len(again) > 1
    assert np.allclose(table.words[0, again[0]], table.words[0, again[1]])


# -- layer 0 -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_layer_0_is_the_sum_of_its_parts(family):
    found = layers.input_sum(tiny_encoder(family), TEXTS)
    assert found.value < 1e-5
    assert all(apart > 1e-4 for name, apart in found.without.items() if name != "segment")


# -- rolling back --------------------------------------------------------------------------------


@pytest.fixture
def pair():
    """(original, tuned): all weights of the second are moved a little."""
    original, tuned = tiny_encoder("bert"), tiny_encoder("bert")
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in tuned.base.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=draw))
    return original, tuned


def hidden(encoder):
    with evaluating(encoder):
        return encoder.encode(make_batch(encoder, TEXTS))


def test_everything_back_is_the_original_and_nothing_back_the_tuned(pair):
    original, tuned = pair
    before = hidden(tuned)
    every = range(1, original.n_layers + 1)
    assert torch.equal(hidden(layers.roll_back(tuned, original, every, embeddings=True)),
                       hidden(original))  # fmt: skip
    assert torch.equal(hidden(layers.roll_back(tuned, original, ())), before)
    half = hidden(layers.roll_back(tuned, original, [1]))
    assert not torch.equal(half, before) and not torch.equal(half, hidden(original))
    assert torch.equal(hidden(tuned), before)
    with pytest.raises(LayerIndexError):
        layers.roll_back(tuned, original, [0])
    with pytest.raises(LayerIndexError):
        layers.roll_back(tuned, original, [original.n_layers + 1])


def test_layers_that_did_not_move_cost_nothing(pair):
    original, _ = pair
    tuned = layers.roll_back(original, original, ())
    top = tuned.family.blocks(tuned.base)[-1]
    with torch.no_grad():
        for weight in top.parameters():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(2)))
    head = torch.nn.Linear(original.d_model, 2)
    with torch.no_grad():
        head.weight.normal_(generator=torch.Generator().manual_seed(3))
    made = TunedEncoder(tuned, head, (), 0)
    texts = [*TEXTS, "The cats sleep.", "Old dogs bark at the cats.", "She sat.", "Paris."]
    with evaluating(tuned):
        labels = made.predict(tuned, make_batch(tuned, texts)).argmax(-1).tolist()
    found = layers.roll_back_curve(made, original, texts, labels)
    depth = original.n_layers
    assert found.lowest[:depth].all()  # the lower layers are the original's anyway
    assert np.array_equal(found.lowest[depth], found.highest[1])
    assert found.embeddings.all()
    assert found.curve("highest")[0].value == 1
    loss = layers.upper_minus_lower_loss([found])
    assert loss.value == pytest.approx(1 - found.highest[found.half].mean())
    with pytest.raises(KeyError, match="sideways"):
        found.curve("sideways")
    with pytest.raises(ValueError, match="labels"):
        layers.roll_back_curve(made, original, texts, [0])
    with pytest.raises(ValueError, match="changed no layer"):
        layers.roll_back_curve(TunedEncoder(original, head, (), 0), original, texts, labels)
    with pytest.raises(ValueError, match="no tasks"):
        layers.upper_minus_lower_loss([])


# -- the output head on every layer --------------------------------------------------------------


def test_the_lens_on_the_last_layer_is_the_model():
    encoder = tiny_encoder("bert")
    sentence = "The cat [MASK] on the mat."
    found = layers.lens_guesses(encoder, sentence, k=4)
    usual = fill_mask(encoder, [sentence], k=4)[0]
    assert len(found) == encoder.n_layers + 1
    assert list(found[-1]) == list(usual.tokens)
    assert list(found[0]) != list(found[-1])
    with pytest.raises(ValueError, match="2 masks"):
        layers.lens_guesses(encoder, "[MASK] cat [MASK].")
    with pytest.raises(MissingHeadError):
        layers.lens_guesses(replace(encoder, trained_heads=frozenset()), sentence)


# -- sentences -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def banks():
    sizes = (("train", 150), ("test", 60))
    return [list(stimuli.treebank(n, 3, part, max_words=9)) for part, n in sizes]


def test_sentence_tasks(banks):
    tasks = {task.name: task for task in layers.sentence_tasks(*banks)}
    assert len(tasks) == 9
    plain = {s.text: s for bank in banks for s in bank}
    for task in tasks.values():
        assert len(task.sentences) == len(task.labels) == len(task.is_test)
        part = dict(zip([s.text for s in task.sentences], task.is_test, strict=True))
        if task.name not in ("swapped words", "odd word"):
            assert all(part[text] == (plain[text] in banks[1]) for text in part)
    swapped = [s for s, label in zip(tasks["swapped words"].sentences,
                                     tasks["swapped words"].labels, strict=True) if label]
    originals = {tuple(sorted(w.lower() for w in s.words)) for s in plain.values()}
    assert swapped
    for sentence in swapped:
        assert sentence.text not in plain
        assert tuple(sorted(w.lower() for w in sentence.words)) in originals
    odd = tasks["odd word"]
    changed = [s for s, label in zip(odd.sentences, odd.labels, strict=True) if label]
    for sentence in changed:
        nearest = max(
            (s for s in plain.values() if len(s) == len(sentence)),
            key=lambda s: sum(a == b for a, b in zip(s.words, sentence.words, strict=True)),
        )
        differ = [a for a, b in zip(nearest.words, sentence.words, strict=True) if a != b]
        assert 1 <= len(differ) <= 2  # the word, and an article before it
    with pytest.raises(ValueError, match="training sentences"):
        layers.sentence_tasks(banks[0][:5], banks[1])
    with pytest.raises(ValueError, match="gold"):
        layers.sentence_tasks([replace(banks[0][0], gold=None)], banks[1])


def test_sentences_are_encoded_once_and_probed(banks):
    encoder = tiny_encoder("bert")
    bank = [*banks[0], *banks[1]]
    vectors = syntax.treebank_vectors(encoder, bank)
    tasks = layers.sentence_tasks(*banks)
    known = layers.mean_vectors(encoder, tasks, bank, vectors)
    assert known[bank[3].text] == pytest.approx(vectors.means()[:, 3])
    other = layers.mean_vectors(encoder, [t for t in tasks if t.name == "tense"])
    assert other[bank[3].text] == pytest.approx(known[bank[3].text], abs=1e-5)
    task = next(t for t in tasks if t.name == "sentence length")
    curve = layers.probe_sentences(known, task, model="m")
    assert curve.n_layers == encoder.n_layers + 1 and curve.n == sum(task.is_test)


# -- edges ---------------------------------------------------------------------------------------


def edge_task(where: int, *, depth: int = 3, n: int = 400, pairs: bool = False, name="planted"):
    """A label that stands in one layer, at the first word of a span of two."""
    draw = np.random.default_rng(where)
    labels = draw.integers(0, 3, n)
    features = draw.normal(size=(depth + 1, 2 * n, 6)).astype(np.float32)
    for k in range(3):
        features[where, ::2, k] += 6 * (labels == k)
    spans = tuple((2 * i, 2 * i + 2) for i in range(n))
    if pairs:
        spans = tuple(((2 * i, 2 * i + 1), (2 * i + 1, 2 * i + 2)) for i in range(n))
    groups = tuple(i // 2 for i in range(n))
    split = probes.group_split(groups, test=0.3)
    return edges.EdgeTask(name, features, spans, tuple(labels.tolist()), groups, split)


def test_limiting_a_task_keeps_labels_with_their_spans():
    task = edge_task(1, n=200)
    small = task.limited(20, 0)
    assert [len(part) for part in (small.split.train, small.split.dev)] == [20, 10]
    assert len(small.split.test) == len(task.split.test)
    label = dict(zip(task.spans, task.labels, strict=True))
    assert [label[span] for span in small.spans] == list(small.labels)
    tested = {task.spans[i] for i in task.split.test}
    assert {small.spans[i] for i in small.split.test} == tested


def test_vectors_of_some_sentences():
    encoder = tiny_encoder("bert")
    bank = list(stimuli.treebank(8, seed=1, max_words=8))
    vectors = syntax.treebank_vectors(encoder, bank)
    part = layers.vectors_of(vectors, [5, 2])
    assert np.array_equal(part.of(0), vectors.of(5)) and np.array_equal(part.of(1), vectors.of(2))
    assert np.array_equal(part.first[:, 1], vectors.first[:, 2])
    with pytest.raises(IndexError, match="outside"):
        layers.vectors_of(vectors, [8])


@pytest.mark.parametrize("pairs", [False, True])
def test_all_three_readings_find_a_label_of_one_layer(pairs):
    found = layers.read_three_ways(edge_task(2, pairs=pairs), seeds=(0, 1), epochs=15, model="m")
    assert found.best_layer.value == 2
    assert found.expected.value == pytest.approx(2, abs=0.15)
    assert found.expected.interval[0] <= found.expected.value <= found.expected.interval[1]
    assert found.centre.value == pytest.approx(2, abs=0.4)
    assert found.distance.value < 0.15
    assert found.divergence > 0.5
    with pytest.raises(ValueError, match="seed"):
        layers.read_three_ways(edge_task(2), seeds=(), model="m")


def test_a_label_of_layer_0_has_no_expected_layer_and_order_is_kept():
    readings = {
        str(k): layers.read_three_ways(edge_task(k, depth=4, n=200), seeds=(0,), model="m")
        for k in range(5)
    }
    assert readings["0"].expected is None  # nothing is left to gain above layer 0
    assert readings["0"].gain.interval[0] <= 0 < readings["3"].gain.interval[0]
    upper = {name: found for name, found in readings.items() if name != "0"}
    published = {"1": 1.5, "2": 2.0, "3": 3.5, "4": 9.0}
    assert layers.order_correlation(upper, published).value == pytest.approx(1)
    backwards = {name: -level for name, level in published.items()}
    assert layers.order_correlation(upper, backwards).value == pytest.approx(-1)
    assert layers.order_correlation(upper, upper).value == pytest.approx(1)
    assert layers.order_correlation(upper, {"1": 1.0, "2": 2.0}) is None
    gap = layers.divergence_gap(upper, ["1", "2"])
    assert gap.value == pytest.approx(
        np.mean([upper[k].divergence for k in "12"]) - np.mean([upper[k].divergence for k in "34"])
    )
    with pytest.raises(ValueError, match="besides"):
        layers.divergence_gap(upper, list(upper))


def test_corrections_count_what_upper_layers_put_right():
    task = edge_task(3)
    found = layers.corrections(task, layers.read_three_ways(task, seeds=(0,), model="m"))
    assert found.low == 1
    assert found.net.value == pytest.approx(found.upper.mean() - found.lower.mean())
    assert found.net.interval[0] > 0.3


# -- the suite -----------------------------------------------------------------------------------


def test_the_suite_ranks_layers_and_spares_the_task():
    curves = {str(k): planted(2, seed=k) for k in range(4)}
    suite = layers.Suite(curves, "m")
    assert suite.best.value == 0.5
    assert suite.ranks[2] == 1
    gap = suite.chosen_minus_last()
    last = np.mean([curve.values[2] - curve.values[-1] for curve in curves.values()])
    assert gap.value == pytest.approx(last)
    assert gap.interval[0] > 0.2
    with pytest.raises(ValueError, match="two tasks"):
        layers.Suite({"one": planted(2)}, "m").chosen_minus_last()
    with pytest.raises(KeyError):
        suite.only(["nine"])


def test_a_task_does_not_choose_its_own_layer():
    # Task "odd" is best at layer 3 alone; the others choose layer 1, where it is at chance.
    curves = {str(k): planted(1, seed=k) for k in range(3)} | {"odd": planted(3, seed=9)}
    gap = layers.Suite(curves, "m").chosen_minus_last()
    own = [curves[str(k)].values for k in range(3)] + [curves["odd"].values]
    assert gap.value == pytest.approx(np.mean([v[1] - v[-1] for v in own]))


def test_mean_ranks_share_ties():
    assert layers.mean_ranks([np.array([0.2, 0.9, 0.2])]).tolist() == [2.5, 1.0, 2.5]


# -- tasks on real encoders ----------------------------------------------------------------------


def test_the_number_of_a_hidden_verb_cannot_be_read_from_layer_0(embedded):
    found = layers.number_at_mask(embedded, 8)
    assert found.curve.values[0] == pytest.approx(0.5, abs=0.35)
    assert found.curve.n == 12 == sum(curve.n for curve in found.by_attractors.values())


def test_mask_vectors_are_those_of_the_mask():
    encoder = tiny_encoder("bert")
    frames = ["The cat [MASK].", "The old cats near the dogs [MASK] on the mat."]
    found = layers.mask_vectors(encoder, frames)
    assert found.shape == (encoder.n_layers + 1, 2, encoder.d_model)
    alone = layers.mask_vectors(encoder, frames[:1])
    assert found[:, :1] == pytest.approx(alone, abs=1e-5)


def test_word_labels_reviews_and_relations_give_curves(banks):
    encoder = tiny_encoder("bert")
    bank = [*banks[0], *banks[1]]
    split = probes.Split(np.arange(120), np.arange(120, 150), np.arange(150, 210))
    curves = layers.probe_word_labels(syntax.treebank_vectors(encoder, bank), bank, split)
    curves["reviews"] = layers.review_sentiment(encoder, 40)
    curves["relations"] = layers.commonsense_relations(encoder)
    assert len(curves) == 6
    for curve in curves.values():
        assert curve.n_layers == encoder.n_layers + 1
        assert ((curve.values >= 0) & (curve.values <= 1)).all()
    assert curves["parts of speech"].n == 60


def test_exchanged_tails_stay_in_relation_and_fold():
    found = triples()
    tails, relations = [t.tail for t in found], [t.relation for t in found]
    made = tasks._exchanged(tails, relations, 0)
    fold = curves.folds_of(tails)
    places = list(zip(relations, fold.tolist(), strict=True))
    for place in set(places):
        rows = [i for i, p in enumerate(places) if p == place]
        assert sorted(made[i] for i in rows) == sorted(tails[i] for i in rows)
    assert np.mean([a != b for a, b in zip(made, tails, strict=True)]) > 0.8


def test_edge_tasks_keep_sentences_apart(banks):
    encoder = tiny_encoder("bert")
    bank = [*banks[0], *banks[1]]
    split = probes.Split(np.arange(120), np.arange(120, 150), np.arange(150, 210))
    vectors = syntax.treebank_vectors(encoder, bank)
    tasks = layers.edge_tasks(encoder, bank, vectors, split, n=40, most=100)
    assert max(len(task.split.train) for task in tasks) == 100
    assert [task.name for task in tasks] == list(layers.PUBLISHED)
    for task in tasks:
        parts = [{task.groups[i] for i in part}
                 for part in (task.split.train, task.split.dev, task.split.test)]  # fmt: skip
        assert not (parts[0] & parts[2] or parts[1] & parts[2] or parts[0] & parts[1])


@pytest.mark.parametrize("family", FAMILIES)
def test_every_second_layer_is_kept(family):
    whole = tiny_encoder(family, n_layers=4)
    half = layers.every_second_layer(whole)
    assert (half.n_layers, whole.n_layers) == (2, 4)
    kept = [part.query.weight for part in half.layers]
    assert all(torch.equal(w, whole.layers[k].query.weight)
               for w, k in zip(kept, (1, 3), strict=True))  # fmt: skip
    vectors = layers.mask_vectors(half, ["The cat [MASK]."])
    assert len(vectors) == 3
    with pytest.raises(ValueError, match="second layer"):
        layers.every_second_layer(tiny_encoder("bert", n_layers=1))


def test_half_a_model_learns_to_stand_in_for_the_whole():
    whole = tiny_encoder("bert", n_layers=4)
    texts = [s.text for s in stimuli.treebank(120, 5, max_words=8)]
    before = hidden(whole)
    half, losses = layers.half_as_deep(whole, texts, batch_size=8, lr=3e-3)
    assert np.mean(losses[-3:]) < 0.8 * np.mean(losses[:3])
    assert torch.equal(hidden(whole), before)
    assert torch.equal(half.embeddings.token.weight, whole.embeddings.token.weight)
    _, again = layers.half_as_deep(whole, texts, batch_size=8, lr=3e-3)
    assert losses == pytest.approx(again, abs=1e-5)
    with pytest.raises(ValueError, match="nothing"):
        layers.half_as_deep(whole, [])
