"""Summaries of runs against planted truth; parsing, gap filling, mixes of layers, paths."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

from bertology_utils import finetuning as ft
from bertology_utils.attention import HeadScores
from bertology_utils.run_store import RunStore
from bertology_utils.stimuli import treebank
from bertology_utils.words import make_batch
from tests.tiny import tiny_encoder

QUICK = ft.Recipe(epochs=2, batch_size=4, lr=2e-3)
PART = ft.Part(
    ("the good movie .", "the bad movie .", "a good old city", "a bad old city",
     "it was good", "it was bad", "good dogs sat", "bad dogs sat"),
    (1, 0) * 4,
)  # fmt: skip


@pytest.fixture(scope="module")
def encoder():
    return tiny_encoder("bert")


# Summaries


def test_over_runs_is_students_interval():
    found = ft.over_runs([0.1, 0.3, 0.2], "share difference", "m", baselines={"b": 0.0})
    half = 4.302653 * 0.1 / 3**0.5
    assert found.value == pytest.approx(0.2) and found.n == 3 and found.baselines == {"b": 0.0}
    assert found.interval == pytest.approx((0.2 - half, 0.2 + half), abs=1e-6)
    assert ft.over_runs([1.0, 0.9], "share", "m").interval[1] == 1.0
    with pytest.raises(ValueError, match="two or more"):
        ft.over_runs([0.1], "share", "m")


def test_gains_are_paired():
    draw = np.random.default_rng(0)
    # Runs differ by far more than the two methods do.
    theirs = [draw.uniform(size=400) < rate for rate in (0.5, 0.7, 0.9, 0.6)]
    ours = [row.copy() for row in theirs]
    for row in ours:
        row[np.flatnonzero(~row)[:20]] = True
    found = ft.paired_gain(ours, theirs, "m")
    assert found.value == pytest.approx(0.05)
    assert found.interval == pytest.approx((0.05, 0.05))
    texts = ft.paired_texts_gain(ours, theirs, "m")
    assert texts.value == pytest.approx(0.05) and texts.interval[0] > 0.03 and texts.n == 1600
    for gain in (ft.paired_gain, ft.paired_texts_gain):
        with pytest.raises(ValueError, match="cannot be paired"):
            gain(ours[:2], theirs, "m")


def test_intervals_over_runs_hold_the_truth_as_often_as_they_say():
    draw = np.random.default_rng(1)
    inside = 0
    for _ in range(300):
        low, high = ft.over_runs(draw.normal(0.1, 0.05, size=4), "share difference", "m").interval
        inside += low <= 0.1 <= high
    assert 0.91 < inside / 300 < 0.99


def test_spread_gap():
    draw = np.random.default_rng(2)
    wide, narrow = draw.normal(0.5, 0.1, size=60), draw.normal(0.5, 0.02, size=60)
    found = ft.spread_gap(wide, narrow, "m")
    assert found.value == pytest.approx(wide.std(ddof=1) - narrow.std(ddof=1))
    assert 0.04 < found.interval[0] < found.value < found.interval[1] < 0.12
    with pytest.raises(ValueError, match="three pairs"):
        ft.spread_gap([0.1, 0.2], [0.1, 0.2], "m")


def test_a_range_without_cause_vanishes_on_other_texts():
    draw = np.random.default_rng(3)
    equal = draw.uniform(size=(16, 200)) < 0.7
    found = ft.held_out_range(equal, "m")
    assert found.baselines["same_texts"] == np.ptp(equal.mean(1)) > 0.08
    assert abs(found.value) < 0.05 and found.interval[0] < 0 < found.interval[1]
    differ = draw.uniform(size=(16, 200)) < np.linspace(0.5, 0.9, 16)[:, None]
    found = ft.held_out_range(differ, "m")
    assert 0.2 < found.interval[0] <= found.value <= found.interval[1] < 0.6
    plain = ft.accuracy_range(differ, "m")
    assert plain.value == np.ptp(differ.mean(1)) and plain.n == 16
    same = ft.accuracy_range(np.stack([equal[0]] * 3), "m")
    assert same.value == 0 and same.interval == (0, 0)
    with pytest.raises(ValueError, match="two runs"):
        ft.accuracy_range(equal[:1], "m")
    with pytest.raises(ValueError, match="four texts"):
        ft.held_out_range(equal[:, :3], "m")


def test_parts_of_variance_add_up():
    draw = np.random.default_rng(4)
    row, column = draw.normal(size=5), draw.normal(size=4)
    parts = ft.variance_parts(row[:, None] + column)
    assert parts.both == pytest.approx(0) and parts.head == pytest.approx(row.var())
    assert parts.order == pytest.approx(column.var())
    grid = draw.normal(size=(5, 4))
    assert ft.variance_parts(grid).total == pytest.approx(grid.var())
    assert sum(ft.variance_parts(grid).shares().values()) == pytest.approx(1)
    assert ft.variance_parts(np.ones((2, 2))).shares() == {"head": 0, "order": 0, "both": 0}
    with pytest.raises(ValueError, match="grid"):
        ft.variance_parts(grid[0])


def test_expected_best_is_that_of_all_draws():
    scores = [0.3, 0.9, 0.5, 0.5]
    for tries in (1, 2, 3):
        every = [max(drawn) for drawn in product(scores, repeat=tries)]
        assert ft.expected_best(scores, tries) == pytest.approx(np.mean(every))
    with pytest.raises(ValueError):
        ft.expected_best([], 1)


def test_stopping_early():
    early, late, final = [0.5, 0.9, 0.8, 0.4], [0.99, 0.7, 0.8, 0.6], [0.95, 0.6, 0.7, 0.5]
    found = ft.stop_early(early, late, final, keep=2, done=0.25)
    assert found.kept == (1, 2) and found.best == 0.7 and found.best_of_all == 0.95
    assert found.steps_saved == pytest.approx(0.5 * 0.75)
    everyone = ft.stop_early(early, late, final, keep=4, done=0.25)
    assert everyone.best == everyone.best_of_all and everyone.steps_saved == 0
    with pytest.raises(ValueError, match="keep 5"):
        ft.stop_early(early, late, final, keep=5, done=0.25)


def test_the_gain_of_the_best_head_is_held_out_and_paired():
    draw = np.random.default_rng(5)
    before = draw.binomial(10, 0.3, size=(80, 2, 3)).astype(float)
    after = before.copy()
    after[:, 1, 2] = draw.binomial(10, 0.8, size=80)
    counts = np.full(80, 10)
    old, new = (HeadScores(name, "share", sums, counts, "m") for name, sums in
                (("before", before), ("after", after)))  # fmt: skip
    found = ft.best_head_gain(new, old)
    assert found.value == pytest.approx(new.best.value - old.best.value)
    assert 0.35 < found.interval[0] < found.value < found.interval[1] < 0.6
    assert ft.best_head_gain(old, old).interval == (0, 0)
    with pytest.raises(ValueError, match="not of the same texts"):
        ft.best_head_gain(new, HeadScores("x", "share", before[:5], counts[:5], "m"))


# Frozen features


def test_features_are_those_of_the_model(encoder):
    found = ft.features(encoder, PART)
    batch = make_batch(encoder, PART.texts)
    with torch.no_grad():
        last = encoder.encode(batch)
    mask = batch.attention_mask[..., None]
    mean = (last * mask).sum(1) / mask.sum(1)
    assert torch.allclose(found.values[-1], torch.cat([last[:, 0], mean], -1), atol=1e-5)
    assert found.n_layers == encoder.n_layers and found.labels.tolist() == list(PART.labels)
    assert found.joined((1, 3)).values.shape == (1, len(PART), 2 * found.values.shape[-1])
    assert torch.equal(found.only((2,)).values[0], found.values[2])


def planted(n, seed, layer=2, layers=4, size=6):
    """The label is in one layer only."""
    draw = torch.Generator().manual_seed(seed)
    values = torch.randn(layers, n, size, generator=draw)
    labels = (torch.rand(n, generator=draw) < 0.5).long()
    values[layer, :, 0] += 4 * labels
    return ft.Features(values, labels)


def test_a_mix_finds_the_layer_that_holds_the_label():
    train, test = planted(120, 0), planted(200, 1)
    found = ft.mix_probe(train, test)
    assert found.weights.argmax() == 2 and found.weights[2] > 0.6
    assert found.weights.sum() == pytest.approx(1) and found.right.mean() > 0.9
    one = ft.mix_probe(train.only((0,)), test.only((0,)))
    assert one.right.mean() < 0.65 and one.weights == 1
    with pytest.raises(ValueError, match="other|different"):
        ft.mix_probe(train, test.only((0, 1)))


def test_one_layer_is_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    train, test = planted(80, 2).only((2,)), planted(150, 3).only((2,))
    mean, spread = train.values[0].mean(0), train.values[0].std(0)
    model = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000)
    model.fit(((train.values[0] - mean) / spread).numpy(), train.labels.numpy())
    guess = model.predict(((test.values[0] - mean) / spread).numpy())
    ours = ft.mix_probe(train, test).right
    assert ((guess == test.labels.numpy()) == ours).mean() > 0.97


# Parsing


def test_governors_and_their_control():
    bank = treebank(20, seed=1)
    gold, dealt = ft.governors(bank), ft.shuffled_governors(bank, seed=1)
    for sentence, row, new in zip(bank, gold, dealt, strict=True):
        punct = [relation == "punct" for relation in sentence.deprels]
        assert [g == -1 for g in row] == punct == [g == -1 for g in new]
        assert all(g != word + 1 for word, g in enumerate(new))
        assert row.count(0) == 1
    same = np.mean([a == b for r, n in zip(gold, dealt, strict=True)
                    for a, b in zip(r, n, strict=True) if a >= 0])  # fmt: skip
    assert same < 0.5


def test_a_parser_learns_what_it_is_shown(encoder):
    """A tiny model learns by heart, and leaves the original alone."""
    bank = list(treebank(6, seed=3))
    before = encoder.layers[0].query.weight.clone()
    parser = ft.tune_parser(encoder, bank, ft.governors(bank), recipe=ft.Recipe(60, lr=5e-3))
    assert parser.losses[-1] < 0.3 < parser.losses[0] and parser.uas(bank) > 0.85
    assert torch.equal(before, encoder.layers[0].query.weight)
    assert not torch.equal(before, parser.encoder.layers[0].query.weight)
    with pytest.raises(ValueError, match="governors for"):
        ft.tune_parser(encoder, bank[:1], [[0]])


# Gaps


def test_pivots_are_shared_frequent_and_tell_the_label(encoder):
    source = ft.Part(
        ("the good movie sat", "the bad movie sat", "a good river", "a bad river",
         "the good old cat", "the bad old cat", "good paris", "bad bank"),
        (1, 0) * 4,
    )  # fmt: skip
    target = ["the good city", "the bad city", "a good table", "a bad table", "the old city"]
    found = ft.pivots(encoder, source, target, 2, min_count=2)
    assert set(found) == {"good", "bad"}
    assert ft.count_gaps(encoder, target, found) == 4
    others = ft.other_words(encoder, target, found, 4)
    assert not set(others) & set(found) and ft.count_gaps(encoder, target, others) >= 4
    with pytest.raises(ft.NoGapsError, match="share no word"):
        ft.pivots(encoder, source, ["money"], 2)


def test_gaps_are_learned_and_lower_layers_stay(encoder):
    texts = ["the good movie", "the bad city", "a good cat", "a bad table"] * 2
    method = ft.Method("top", 1)
    filled = ft.fill_gaps(encoder, texts, ("good", "bad"), method=method,
                          recipe=ft.Recipe(40, batch_size=8, lr=5e-3))  # fmt: skip
    batch = make_batch(encoder, ["the [MASK] movie"])
    ids = torch.tensor(encoder.tokenizer.convert_tokens_to_ids(["good", "bad"]))
    chance = {}
    for name, model in (("before", encoder), ("after", filled)):
        with torch.no_grad():
            logits = model.mlm_logits(model.encode(batch)[0, 2])
        chance[name] = float(logits.softmax(-1)[ids].sum())
    assert chance["after"] > 0.5 > 0.2 > chance["before"]
    for layer, (old, new) in enumerate(zip(encoder.layers, filled.layers, strict=True)):
        assert torch.equal(old.query.weight, new.query.weight) == (layer < 2)
    with pytest.raises(ft.NoGapsError, match="no text holds"):
        ft.fill_gaps(encoder, texts, ("river",))
    with pytest.raises(ValueError, match="upper layers"):
        ft.fill_gaps(encoder, texts, ("good",), method=ft.Method("all"))


# Landscape, attacks, environments


def test_a_path_begins_and_ends_at_its_models(encoder):
    run = ft.Run(ft.Method("top", 2), QUICK)
    first, second = (ft.fine_tune(encoder, PART, run), ft.fine_tune(
        encoder, PART, ft.Run(ft.Method("top", 2), QUICK, head_seed=1, order_seed=1)))
    given = ft.examples(encoder, PART, 1)
    found = ft.path(first, second, given, (0, 0.5, 1))
    for place, model in ((0, first), (2, second)):
        loss = nn.functional.cross_entropy(model.logits(given), given.labels)
        assert found.loss[place] == pytest.approx(float(loss), abs=1e-5)
        assert found.accuracy[place] == pytest.approx(model.right(given).mean())
    other = ft.fine_tune(encoder, PART, ft.Run(ft.Method("top", 1), QUICK))
    with pytest.raises(ValueError, match="layers are trained"):
        ft.path(first, other, given, (0, 1))


def test_a_plane_holds_its_three_models_and_is_true_to_distance(encoder):
    method = ft.Method("top", 2)
    first, second = (
        ft.fine_tune(encoder, PART, ft.Run(method, QUICK, head_seed=seed, order_seed=seed))
        for seed in (0, 1)
    )
    start = ft.Tuned(ft.prepare(encoder, method).encoder, ft.new_head(encoder, 2, 0), 1)
    given = ft.examples(encoder, PART, 1)
    place = ft.plane(start, first, second, given, (0, 1), (0,)).other
    found = ft.plane(start, first, second, given, (0, 1, place[0]), (0, place[1]))
    for row, column, model in ((0, 0, start), (0, 1, first), (1, 2, second)):
        loss = nn.functional.cross_entropy(model.logits(given), given.labels)
        assert found.loss[row, column] == pytest.approx(float(loss), abs=1e-4)
        assert found.accuracy[row, column] == pytest.approx(model.right(given).mean())

    def flat(tuned):
        parts = [*tuned.encoder.base.parameters(), *tuned.head.parameters()]
        return torch.cat([p.detach().flatten() for p in parts]).double()

    step = (flat(first) - flat(start)).norm()
    assert np.hypot(*place) == pytest.approx(float((flat(second) - flat(start)).norm() / step))
    gap = float((flat(second) - flat(first)).norm() / step)
    assert np.hypot(place[0] - 1, place[1]) == pytest.approx(gap)
    with pytest.raises(ValueError, match="one line"):
        ft.plane(start, first, first, given, (0,), (0,))
    with pytest.raises(ValueError, match="layers are trained"):
        ft.plane(start, first, ft.Tuned(encoder, start.head, 2), given, (0,), (0,))


def test_change_of_states(encoder):
    same = ft.state_change(encoder, encoder, PART.texts)
    assert len(same) == encoder.n_layers + 1
    assert all(abs(e.value) < 1e-6 for e in same)
    tuned = ft.fine_tune(encoder, PART, ft.Run(ft.Method("top", 1), ft.Recipe(5, lr=3e-3)))
    moved = [e.value for e in ft.state_change(encoder, tuned.encoder, PART.texts)]
    assert max(map(abs, moved[:3])) < 1e-6 < 1e-4 < moved[3]


def test_attacks_hurt_more_the_larger_they_are(encoder):
    tuned = ft.fine_tune(encoder, PART, ft.Run(recipe=ft.Recipe(20, lr=3e-3)))
    found = ft.attacked(tuned, PART, (0.0, 0.01, 2.0))
    assert (found[0.0] == ft.accuracy(tuned, PART)).all()
    assert found[0.0].mean() >= found[0.01].mean() >= found[2.0].mean() < found[0.0].mean()


def test_the_same_environment_gives_the_same_answers(encoder):
    task = ft.Task("t", ("n", "p"), PART, ft.Part(("good paris", "bad paris"), (1, 0)))
    run = ft.Run(ft.Method("top", 2), QUICK)
    threads = torch.get_num_threads()
    found = ft.environments(encoder, task, run, ft.examples(encoder, task.test, 1))
    assert len(found) == 6 and (found["as it was"] == found["once more"]).all()
    assert torch.get_num_threads() == threads
    with pytest.raises(ValueError, match="frozen embeddings"):
        ft.environments(encoder, task, ft.Run(), ft.examples(encoder, task.test, None))


def test_copies_share_what_is_not_trained(encoder):
    tuned = ft.fine_tune(encoder, PART, ft.Run(ft.Method("top", 1), QUICK))
    pairs = list(zip(encoder.base.named_parameters(), tuned.encoder.base.parameters(), strict=True))
    for (name, old), new in pairs:
        assert (old.data_ptr() == new.data_ptr()) == ("layer.2." not in name)
        assert old.requires_grad


# Experiments


TEST = ft.Part(("good paris", "bad paris", "a good doctor", "a bad doctor"), (1, 0, 1, 0))


def counted(monkeypatch):
    """Runs that are really trained from here on."""
    runs = []

    def fit(prepared, part, run, **options):
        runs.append(run)
        return ft.fit(prepared, part, run, **options)

    monkeypatch.setattr("bertology_utils.finetuning.experiments.fit", fit)
    return runs


@pytest.mark.parametrize("method", (ft.Method(), ft.Method("top", 2), ft.Method("low_rank", 2)))
def test_an_experiment_is_its_run_and_is_trained_once(encoder, method, monkeypatch):
    run = ft.Run(method, QUICK, head_seed=1, watch=(1, 2))
    asked = ft.Experiment(PART, TEST, run, watched=TEST)
    trained, tuner = counted(monkeypatch), ft.Tuner(encoder)
    found, again = tuner.outcome(asked), tuner.outcome(asked)
    assert trained == [run] and found.losses == again.losses
    layer = ft.prepare(encoder, method).layer
    alone = ft.fine_tune(encoder, PART, run, watched=ft.examples(encoder, TEST, layer))
    assert found.losses == alone.losses and found.n_trained == alone.n_trained
    assert (found.right == ft.accuracy(alone, TEST)).all()
    assert found.accuracy == found.right.mean()
    assert sorted(found.watched) == [1, 2] and (found.watched[2] == found.right).all()


def test_weights_are_shared_while_they_are_held(encoder, monkeypatch):
    asked = ft.Experiment(PART, TEST, ft.Run(ft.Method("top", 1), QUICK))
    trained, tuner = counted(monkeypatch), ft.Tuner(encoder)
    model = tuner.tuned(asked)
    assert tuner.tuned(asked) is model and len(trained) == 1
    assert (tuner.outcome(asked).right == ft.accuracy(model, TEST)).all() and len(trained) == 1
    losses = model.losses
    del model
    assert tuner.tuned(asked).losses == losses and len(trained) == 2


def test_outcomes_last_and_know_their_model(encoder, tmp_path, monkeypatch):
    trained = counted(monkeypatch)
    asked = [ft.Experiment(PART, TEST, ft.Run(ft.Method("top", 1), QUICK, head_seed=seed))
             for seed in (0, 1)]  # fmt: skip
    first = ft.Tuner(encoder, RunStore(tmp_path)).outcomes(asked)
    again = ft.Tuner(tiny_encoder("bert"), RunStore(tmp_path)).outcomes(asked)
    assert len(trained) == 2 and [a.losses for a in first] == [b.losses for b in again]
    assert first[0].losses != first[1].losses
    other = tiny_encoder("bert")
    with torch.no_grad():
        other.layers[0].query.weight[0, 0] += 1e-3
    assert ft.weights_digest(other) != ft.weights_digest(encoder)
    ft.Tuner(other, RunStore(tmp_path)).outcome(asked[0])
    assert len(trained) == 3


@pytest.mark.parametrize("method", (ft.Method("top", 1), ft.Method()))
def test_a_task_in_between_comes_first(encoder, method, monkeypatch):
    run = ft.Run(method, QUICK)
    before = ft.Experiment(TEST, PART, ft.Run(ft.Method("top", 1), QUICK, head_seed=5))
    asked = ft.Experiment(PART, TEST, run, after=before)
    trained, tuner = counted(monkeypatch), ft.Tuner(encoder)
    between = ft.fine_tune(encoder, TEST, before.run)
    alone = ft.fine_tune(between.encoder, PART, run)
    found = tuner.outcome(asked)
    assert trained == [before.run, run]
    assert found.losses == pytest.approx(alone.losses, abs=1e-6)
    assert (found.right == ft.accuracy(alone, TEST)).all()
    assert found.losses != tuner.outcome(ft.Experiment(PART, TEST, run)).losses
