"""The pretraining lab: settings, gaps, the model against Hugging Face's, curves, caching, kills."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from bertology_utils import lab
from bertology_utils.lab import ConfigError, Grid, LabConfig, RunFileError
from bertology_utils.lab import model as net
from bertology_utils.lab.documents import fact_corpus, sentence_pairs
from bertology_utils.lab.gaps import make_gaps
from bertology_utils.lab.language import MASK, UNK, plain
from bertology_utils.lab.looks import Looks
from bertology_utils.lab.train import train

TINY = LabConfig(steps=6, batch=8, width=16, sentences=200)


@pytest.fixture(scope="module")
def tiny_runs():
    return train(TINY.seeds(2))


# -- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"objective": "gpt"}, "objective"),
        ({"width": 30, "heads": 4}, "heads"),
        ({"mask_rate": 1.0}, "mask_rate"),
        ({"sentence_task": "next"}, "pairs"),
        ({"blocks": "aff", "layers": 2}, "blocks"),
        ({"stack_after": 3, "layers": 3}, "stacking"),
        ({"sentences": 10**6}, "pool"),
        ({"unit": "whole"}, "facts"),
        ({"colour": 1}, "colour"),
    ],
)
def test_bad_settings_name_what_is_wrong(changes, word):
    with pytest.raises(ConfigError, match=word):
        TINY.but(**changes)


def test_digests_tell_settings_apart():
    seen = {config.digest for config in lab.plan().values()}
    assert len(seen) == len(lab.plan())
    assert TINY.digest == LabConfig(steps=6, batch=8, width=16, sentences=200).digest
    assert TINY.but(seed=1).digest != TINY.digest


# -- the language --------------------------------------------------------------------------------


def test_nothing_that_is_asked_is_trained_on():
    known = {sentence.text.lower() for sentence in lab.training_sentences()}
    assert not known & {sentence.text.lower() for sentence in lab.held_out_sentences()}
    for kind in ("simple", "attractor"):
        pairs = lab.agreement_pairs(kind)
        assert len(pairs) == 100
        joined = {" ".join(p.words[:-1]) + p.words[-1] for p in pairs}
        assert not known & joined
        assert all(p.good != p.bad for p in pairs)
        plural = sum(p.good in ("are", "were", "have") for p in pairs)
        assert plural == 50
    with pytest.raises(KeyError, match="other"):
        lab.agreement_pairs("other")


def test_pairs_follow_are_swapped_or_strangers():
    text = sentence_pairs("three-way", 60, True)
    assert sorted(set(text.labels)) == [0, 1, 2]
    assert np.bincount(text.labels).tolist() == [20, 20, 20]
    ones = (text.segments == 1).sum(1)
    assert (ones > 2).all() and (text.ids[text.segments == 1] != 0).all()


def test_fact_questions_are_new_wordings_of_known_facts():
    text, questions = fact_corpus()
    known = {tuple(row) for row in text.ids.tolist()}
    assert not known & {tuple(row) for row in questions.text.ids.tolist()}
    assert (questions.gaps.sum(1) == 2).all()
    # Person and place of every question are together in some training sentence.
    for ids, gaps in zip(questions.text.ids, questions.gaps, strict=True):
        first, place = ids[1], set(ids[gaps].tolist())
        assert any(first in row and place <= set(row.tolist()) for row in text.ids)


# -- gaps ----------------------------------------------------------------------------------------


def gaps(config, step=0, rows=None, text=None):
    rows = np.arange(60) if rows is None else rows
    text = plain(lab.training_sentences()[:60]) if text is None else text
    weights = np.arange(1, len(lab.vocabulary()) + 1)
    return text.ids[rows], *make_gaps(
        text, rows, config, step, vocabulary=len(lab.vocabulary()), weights=weights
    )


def test_the_share_and_the_eighty_ten_ten():
    shares = []
    for step in range(30):
        gold, shown, chosen = gaps(TINY, step)
        assert not chosen[gold <= MASK].any()
        assert (shown == gold)[~chosen].all()
        assert chosen.sum() == round(0.3 * (gold > MASK).sum())
        shares.append([(shown == MASK)[chosen].mean(), (shown == gold)[chosen].mean()])
    masked, kept = np.mean(shares, axis=0)
    assert masked == pytest.approx(0.8, abs=0.02) and kept == pytest.approx(0.1, abs=0.02)


def test_fixed_gaps_stay_and_new_ones_do_not():
    for dynamic in (False, True):
        own = TINY.but(dynamic=dynamic)
        first, second = gaps(own, 0)[2], gaps(own, 1)[2]
        assert np.array_equal(first, second) is not dynamic
        alone = gaps(own, 5, rows=np.arange(10))[2]
        assert np.array_equal(first[:10], alone) is not dynamic


def test_units_are_hidden_as_one():
    text, questions = fact_corpus()
    config = LabConfig(corpus="facts", unit="whole")
    chosen = make_gaps(text, np.arange(len(text)), config, 0, vocabulary=len(questions.words))[1]
    for row, whole in zip(chosen, text.wholes, strict=True):
        for unit in set(whole.tolist()):
            assert len(set(row[whole == unit].tolist())) == 1
    lone = gaps(TINY)[2]
    spans = gaps(TINY.but(unit="span"))[2]

    def together(chosen):
        return (chosen[:, 1:] & chosen[:, :-1]).sum() / chosen.sum()

    assert together(spans) > together(lone) + 0.1


def test_other_symbols_and_weights():
    gold, shown, chosen = gaps(TINY.but(gap="[UNK]"))
    assert (shown[chosen] == UNK).any() and not (shown == MASK).any()
    usual = np.mean([gaps(TINY, s)[0][gaps(TINY, s)[2]].mean() for s in range(8)])
    weighted = TINY.but(subsample=True)
    rare = np.mean([gaps(weighted, s)[0][gaps(weighted, s)[2]].mean() for s in range(8)])
    assert rare < usual  # the made-up weights grow with the word's number


# -- the model -----------------------------------------------------------------------------------


def test_it_is_an_ordinary_bert(tiny_runs):
    run = tiny_runs[1]
    encoder = run.encoder()
    ids = torch.from_numpy(plain(lab.held_out_sentences()[:20]).ids)
    with torch.no_grad():
        x = net.forward(run.weights, ids[None], order="afaf", heads=run.config.heads)
        ours = net.word_logits(run.weights, x)[0].view(*ids.shape, -1)
        mask = (ids != 0).long()
        hidden = encoder.base(input_ids=ids, attention_mask=mask).last_hidden_state
        theirs = encoder.mlm_logits(hidden)
    torch.testing.assert_close(ours[mask.bool()], theirs[mask.bool()], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("order", ("afaf", "aaff", "affa"))
def test_vectors_at_some_places_are_those_of_all_places(order):
    weights = net.initial_weights([0, 1], order=order, width=16, vocabulary=20, length=9, classes=2)
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(1, 20, (2, 5, 9), generator=draw)
    ids[:, :, 7:] = 0
    whole = net.forward(weights, ids, order=order, heads=2)
    for at in (torch.randint(0, 45, (2, 13), generator=draw), net.first_pieces(ids)):
        some = net.forward(weights, ids, order=order, heads=2, at=at)
        torch.testing.assert_close(some, net.take(whole, at))
    assert torch.equal(net.take(whole, net.first_pieces(ids)), whole.view(2, 5, 9, 16)[:, :, 0])


def test_stacking_starts_from_two_copies():
    weights = net.initial_weights([0], order="af", width=8, vocabulary=20, length=9, classes=2)
    deep = net.stacked(weights, "af")
    for name in ("0.in", "1.out", "0.gain"):
        upper = f"{int(name[0]) + 2}{name[1:]}"
        assert torch.equal(deep[name], deep[upper])
        assert deep[name] is not deep[upper]


def test_members_do_not_touch_each_other(tiny_runs):
    """The curve of a run is that of the run alone."""
    alone = train([TINY.but(seed=1)])[0]
    np.testing.assert_allclose(alone.losses, tiny_runs[1].losses, rtol=1e-4)
    for name, value in alone.weights.items():
        torch.testing.assert_close(value, tiny_runs[1].weights[name], atol=2e-3, rtol=1e-2)


def test_same_seed_same_curve(tiny_runs):
    again = train(TINY.seeds(2))
    for first, second in zip(tiny_runs, again, strict=True):
        assert first.losses == second.losses and first.curves == second.curves
    assert tiny_runs[0].losses != tiny_runs[1].losses


def test_it_learns():
    run = train([LabConfig(steps=40, width=16)])[0]
    assert run.curves["loss"][-1] < run.curves["loss"][0] - 1.0


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": "rtd"},
        {"corpus": "pairs", "sentence_task": "order"},
        {"corpus": "facts", "unit": "whole"},
        {"layers": 4, "stack_after": 3},
        {"layers": 2, "blocks": "aaff"},
        {"heads": 4, "disagreement": 0.5},
    ],
    ids=str,
)
def test_every_kind_of_run_trains(changes):
    run = train([TINY.but(**changes)])[0]
    assert np.isfinite(run.losses).all() and len(run.losses) == TINY.steps
    assert all(np.isfinite(values).all() for values in run.curves.values())
    assert len(run.moments) == len(next(iter(run.curves.values())))


def test_runs_of_different_shapes_cannot_be_mixed():
    with pytest.raises(ConfigError, match="family"):
        train([TINY, TINY.but(width=32)])


def test_agreement_is_scored_as_it_should_be(tiny_runs):
    """A model that always says "are" before all else wins just the plural "are" pairs."""
    weights = {name: value.clone() for name, value in tiny_runs[0].weights.items()}
    weights["words"].zero_()
    bias = weights["decoder.bias"].zero_()
    for word in ("are", "were", "have"):
        bias[0, 0, lab.vocabulary()[word]] = 1.0
    found = Looks([TINY])._agreement(weights, TINY.order)
    assert found == {"agreement:simple": [0.5], "agreement:attractor": [0.5]}


# -- keeping runs --------------------------------------------------------------------------------


def test_a_run_comes_back_as_it_was(tmp_path, tiny_runs):
    lab.write_run(tiny_runs[0], tmp_path)
    back = lab.read_run(TINY, tmp_path)
    assert back.losses == tiny_runs[0].losses and back.curves == tiny_runs[0].curves
    for name, value in tiny_runs[0].weights.items():
        assert torch.equal(value, back.weights[name])
    assert lab.read_run(TINY.but(seed=5), tmp_path) is None
    assert not list(tmp_path.glob(".*"))


def test_damage_is_named(tmp_path, tiny_runs):
    target = lab.write_run(tiny_runs[0], tmp_path)
    target.write_text(target.read_text()[:-30], encoding="utf-8")
    with pytest.raises(RunFileError, match=target.name):
        lab.read_run(TINY, tmp_path)
    lab.write_run(tiny_runs[1], tmp_path)
    (tmp_path / f"{TINY.but(seed=1).digest}.json").rename(target)
    with pytest.raises(RunFileError):
        lab.read_run(TINY, tmp_path)


def test_finished_runs_are_not_repeated(tmp_path, monkeypatch):
    trained = []
    import bertology_utils.lab.grid as module

    def counting(configs):
        trained.extend(configs)
        return train(configs)

    monkeypatch.setattr(module, "train", counting)
    first = Grid(tmp_path).run(TINY.seeds(2))
    again = Grid(tmp_path).run([*TINY.seeds(3), TINY])
    assert [config.seed for config in trained] == [0, 1, 2]
    assert again[0].losses == first[0].losses == again[3].losses


def test_a_study_trains_what_is_asked_for(tmp_path):
    runs = lab.Study(Grid(tmp_path), {"one": TINY, "wide": TINY.but(width=32)}, seeds=2)
    assert list(runs) == ["one", "wide"] and not list(tmp_path.glob("*.json"))
    assert [run.config.seed for run in runs["one"]] == [0, 1]
    assert len(list(tmp_path.glob("*.json"))) == 2
    with pytest.raises(KeyError, match="deep"):
        runs["deep"]


# Ends itself by force once the run with the seed that is its second argument is kept.
COMMAND = """
import os, signal, sys
from bertology_utils.lab import Grid, LabConfig
import bertology_utils.lab.grid as module
module.SIDE_BY_SIDE = 1
base = LabConfig(steps=12, batch=16, width=16, sentences=200)
def done(run):
    print(run.config.seed, flush=True)
    if run.config.seed == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
Grid(sys.argv[1]).run(base.seeds(6), done=done)
print("all", flush=True)
"""


def test_a_killed_grid_goes_on_where_it_was(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-c", COMMAND, str(tmp_path)]
    killed = subprocess.run(
        [*command, "1"], capture_output=True, text=True, env=environment, cwd=root
    )
    assert killed.returncode == -signal.SIGKILL and killed.stdout.split() == ["0", "1"]
    finished = {path.stem: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    assert len(finished) == 2
    time.sleep(0.02)
    again = subprocess.run(
        [*command, "-1"], capture_output=True, text=True, env=environment, cwd=root, check=True
    )
    lines = again.stdout.split()
    assert lines == ["2", "3", "4", "5", "all"]
    for digest, when in finished.items():
        assert (tmp_path / f"{digest}.json").stat().st_mtime_ns == when


# -- after training ------------------------------------------------------------------------------


def test_comparisons_are_paired_by_seed(tiny_runs):
    estimate = lab.paired([3.0, 2.0, 4.0], [2.0, 1.0, 3.0], unit="nats")
    assert estimate.value == 1.0 and estimate.interval == (1.0, 1.0)
    with pytest.raises(ValueError, match="seeds"):
        lab.gain(tiny_runs, tiny_runs[::-1])
    with pytest.raises(KeyError, match="no curve"):
        tiny_runs[0].final("colour")


def test_probes_and_tuning(tiny_runs):
    found = lab.probe_accuracy(tiny_runs)
    assert set(found) == {"relation", "number", "tense", "mean"}
    assert all(0 < value <= 1 for values in found.values() for value in values)
    weights = lab.pretrained_weights(tiny_runs)
    before = {name: value.clone() for name, value in weights.items()}
    tuned = lab.tune(weights, TINY, 64)
    assert all(torch.equal(before[name], weights[name]) for name in weights)
    assert (tuned.accuracy > 0.6).all()
    assert (lab.sharpness(tuned) > 0).all()
    masks = lab.half_masks(weights, "largest")
    pruned = lab.tune(weights, TINY, 16, masks=masks)
    for name, mask in masks.items():
        assert mask.mean() == pytest.approx(0.5, abs=0.01)
        assert (pruned.weights[name][mask == 0] == 0).all()
    with pytest.raises(ValueError, match="which"):
        lab.half_masks(weights, "middle")


def test_the_line_between_start_and_end(tiny_runs):
    weights = lab.pretrained_weights(tiny_runs)
    tuned = lab.tune(weights, TINY, 32)
    ends = lab.interpolated(tuned, weights, [0.0, 1.0])
    assert (ends[1] < ends[0]).all()
