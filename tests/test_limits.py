"""The experiments on the limits of probing, against planted truth."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from bertology_utils import limits, probes, stimuli
from bertology_utils.encoder import random_encoder
from bertology_utils.probes.erasure import Erasure, random_erasure
from bertology_utils.resampling import mean_over_runs


@pytest.fixture(scope="module")
def encoder(embedded):
    return embedded


@pytest.fixture(scope="module")
def bank():
    return list(stimuli.treebank(24, seed=3))


# -- estimates -----------------------------------------------------------------------------------


def test_paired_is_the_mean_difference_and_resamples_groups():
    first, second = np.array([1.0, 1, 0, 0]), np.array([0.0, 0, 0, 0])
    found = limits.paired(first, second, ["a", "a", "b", "b"], unit="share difference", model="m")
    assert found.value == 0.5
    # Two sentences that are all one or all zero: single words would never reach 0 and 1 like that.
    assert found.interval == (0.0, 1.0)
    with pytest.raises(ValueError, match="groups"):
        limits.paired(first, second, ["a"], unit="share difference", model="m")


def test_over_runs_is_students_interval():
    found = mean_over_runs([1.0, 2.0, 3.0], unit="layers", model="m")
    assert found.value == 2.0
    assert found.interval[1] == pytest.approx(2 + 4.302653 / math.sqrt(3), abs=1e-4)
    with pytest.raises(ValueError, match="two"):
        mean_over_runs([1.0], unit="layers", model="m")
    # A share ends at 0 and 1, a difference of shares at -1 and 1.
    assert mean_over_runs([0.5, 1.0], unit="share", model="m").interval == (0.0, 1.0)
    assert mean_over_runs([0.5, 1.0], unit="share difference", model="m").interval[0] == -1.0


def test_magnitude_turns_sign_and_interval():
    found = limits.magnitude(mean_over_runs([-1.0, -3.0, -2.5], unit="layers", model="m"))
    low, high = found.interval
    assert found.value > 0 and low < found.value < high


# -- planted vectors -----------------------------------------------------------------------------


def test_the_exclusive_or_is_closed_to_linear_probes_only():
    planted = limits.exclusive_or(1200, seed=1)
    assert np.array_equal(np.unique(planted.hidden), [0, 1])
    split = probes.random_split(1200)
    linear, mlp = (
        probes.probe_layers(planted.vectors[None], planted.hidden, split, kind=kind)[0]
        for kind in ("linear", "mlp")
    )
    assert linear.value < 0.62 < 0.95 < mlp.value
    assert probes.probe_layers(planted.vectors[None], planted.sign, split)[0].value > 0.95
    with pytest.raises(ValueError, match="noise"):
        limits.exclusive_or(10, noise=-1)


def test_what_is_read_need_not_be_used():
    found = limits.unused_property()
    assert min(found.readable, found.task) > 0.95
    assert found.unchanged > 0.95
    with pytest.raises(ValueError, match="ten"):
        limits.unused_property(3)


# -- capacity and codes --------------------------------------------------------------------------


def _words(n=900, types=40, seed=0):
    """Vectors that hold a label of two classes and, faintly, the word type."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, types, n)
    labels = kinds % 2
    table = 0.6 * rng.normal(size=(types, 8))
    vectors = table[kinds] + 0.1 * rng.normal(size=(n, 8))
    vectors[:, 0] += 3 * (2 * labels - 1)
    groups = np.repeat(np.arange(n // 9), 9).tolist()
    return vectors.astype(np.float32), labels.tolist(), [f"w{k}" for k in kinds], groups


def test_capacity_curve_finds_what_is_planted():
    vectors, labels, types, groups = _words()
    split = probes.group_split(groups)
    noise = np.random.default_rng(1).normal(size=vectors.shape).astype(np.float32)
    curve = limits.capacity_curve(
        {"planted": vectors, "noise": noise}, labels, types, split, widths=(1, 64),
        groups=groups, model="planted", epochs=80,
    )  # fmt: skip
    large = curve.probes[1]
    assert curve.accuracy(limits.LINEAR, "planted").value > 0.97
    assert abs(curve.accuracy(large, "noise").value - 0.5) < 0.15
    # The large probe learns the types by heart; a linear one has too few directions to.
    pair = (limits.LINEAR, large)
    heart = [curve.accuracy(p, "planted", control=True).value for p in pair]
    assert heart[1] > heart[0] + 0.1
    assert curve.selectivity(limits.LINEAR, "planted").value == pytest.approx(
        curve.accuracy(limits.LINEAR, "planted").value - heart[0]
    )
    gap = curve.selectivity_gap(*pair, "planted")
    assert gap.interval[0] > 0
    assert curve.cross_entropy(large, "noise").value > curve.cross_entropy(large, "planted").value
    assert curve.sizes[limits.LINEAR] == 2 * 9
    with pytest.raises(ValueError, match="grow"):
        limits.capacity_curve(
            {"x": vectors}, labels, types, split, widths=(4, 2), groups=groups, model="m"
        )


def test_control_labels_take_more_bits():
    vectors, labels, types, groups = _words()
    codes = limits.compare_codes(vectors[None], labels, types, groups=groups, runs=2, model="p")
    ratio = codes.ratio(0)
    assert ratio.value > 1.2 and ratio.interval[0] <= ratio.value <= ratio.interval[1]
    mean = [codes.bits_per_label(0, control=c).value for c in (False, True)]
    assert mean[0] < mean[1]
    with pytest.raises(ValueError, match="two runs"):
        limits.compare_codes(vectors[None], labels, types, groups=groups, runs=1, model="p")


# -- four ways -----------------------------------------------------------------------------------


def _ways(shares, n=400, seed=0):
    rng = np.random.default_rng(seed)
    right = {w: rng.uniform(size=n) < s for w, s in zip(limits.WAYS, shares, strict=True)}
    return limits.FourWays(right, (0, 0), 1, "planted", seed)


def test_the_largest_gap_is_not_flattered():
    assert _ways([0.9, 0.5, 0.6, 0.6]).largest_gap.value == pytest.approx(0.4, abs=0.08)
    equal = [_ways([0.5] * 4, n=40, seed=s).largest_gap.value for s in range(60)]
    assert abs(np.mean(equal)) < 0.05


def test_four_ways_judge_every_pair(encoder):
    pairs = stimuli.minimal_pairs("npi_scope", 8, seed=2, split="train")
    found = limits.four_ways(encoder, pairs[:4], pairs[4:])
    assert found.n == 4 and set(found.right) == set(limits.WAYS)
    assert all(rows.dtype == bool and len(rows) == 4 for rows in found.right.values())
    other = stimuli.minimal_pairs("npi_presence", 2, seed=2)
    with pytest.raises(ValueError, match="ever"):
        limits.four_ways(encoder, pairs[:2], other)


# -- trees, theories, pipeline -------------------------------------------------------------------


def test_max_ties_follow_the_strongest_attention(encoder, bank):
    from bertology_utils.attention import attention_maps
    from bertology_utils.words import WordList

    sentence = bank[0]
    scores = limits.max_scores(encoder, [sentence])
    (maps,) = attention_maps(encoder, [WordList(sentence.words, sentence.text)])
    kept = [i for i, rel in enumerate(sentence.deprels) if rel != "punct"]
    words = maps.words[1, 2]
    hits = 0
    for head, word, rel in sentence.edges():
        if rel != "punct":
            best = {
                i: max((j for j in kept if j != i), key=lambda j, i=i: words[i, j])
                for i in (head, word)
            }
            hits += best[head] == word or best[word] == head
    assert scores.sums[0, 1, 2] == hits


def test_one_model_twice_has_no_interaction(encoder, bank):
    found = limits.extractions(encoder, encoder, bank, names=("a", "b"))
    assert found.interaction.value == 0
    assert set(found.winners.values()) == {"a"}


@pytest.mark.parametrize("step", limits.STEPS)
def test_spans_lie_in_their_sentences(bank, step):
    found = limits.labelled_spans(bank, step)
    ends = np.cumsum([len(s) for s in bank])
    for span, owner in zip(found.spans, found.groups, strict=True):
        for start, end in span if isinstance(span[0], tuple) else (span,):
            assert ends[owner] - len(bank[owner]) <= start < end <= ends[owner]
    with pytest.raises(KeyError, match="unknown step"):
        limits.labelled_spans(bank, "syntax")


def test_word_theories_label_every_word(bank):
    found = limits.word_theories(bank)
    n = sum(len(s) for s in bank)
    assert {len(labels) for labels in found.values()} == {n}


def test_layers_that_hold_a_task_are_found():
    """One label set lives in layer 1, the other in layer 3."""
    rng = np.random.default_rng(0)
    n = 500
    early, late = rng.integers(0, 2, n), rng.integers(0, 2, n)
    layers = rng.normal(size=(4, n, 8)).astype(np.float32)
    layers[1, :, 0] += 6 * early
    layers[3, :, 1] += 6 * late
    groups = np.repeat(np.arange(n // 5), 5).tolist()
    found = limits.compare_theories(
        layers, {"early": early.tolist(), "late": late.tolist()}, groups, runs=2, model="p"
    )
    assert found.centre("early").value < found.centre("late").value
    assert found.distance.value > 0.2
    with pytest.raises(ValueError, match="two label sets"):
        limits.compare_theories(layers, {"one": early.tolist()}, groups, model="p")


def test_noise_leaves_the_order_of_the_pipeline_open():
    bank = list(stimuli.treebank(60, seed=4))
    n = sum(len(s) for s in bank)
    noise = np.random.default_rng(0).normal(size=(3, n, 6)).astype(np.float32)
    split = probes.group_split(range(len(bank)), test=0.4)
    found = limits.pipeline(noise, bank, split, epochs=2, resamples=100, model="noise")
    assert found.open_share.value == 1.0
    assert len(found.neighbours) == len(limits.STEPS) - 1


# -- what is leaned on ---------------------------------------------------------------------------


def test_head_reliance_measures_the_silenced_head(encoder, bank):
    texts = [s.text for s in bank]
    found = limits.head_reliance(encoder, texts[:8], texts[8:16], controls=2)
    assert found.head not in found.others and len(found.others) == 2
    assert not np.allclose(found.intact, found.without)
    gap = found.without.mean() - found.without_random.mean()
    assert found.excess.value == pytest.approx(gap, abs=1e-6)
    again = limits.text_losses(encoder, texts[8:16])
    assert np.allclose(again, found.intact, atol=1e-5)
    with pytest.raises(ValueError, match="no texts"):
        limits.head_importance(encoder, [])


def test_removal_of_what_the_head_reads_costs_most(encoder, bank):
    texts = limits.texts_of(bank)
    words = probes.masked_words(encoder, texts, per_text=2)
    vectors = probes.masked_vectors(encoder, texts, words)[-1]
    centre = torch.from_numpy(vectors.mean(0))
    _, _, axes = np.linalg.svd(vectors - vectors.mean(0), full_matrices=False)
    basis = torch.from_numpy(axes[:20].T.copy())
    projection = torch.eye(encoder.d_model) - basis @ basis.T
    erasure = Erasure(projection, centre, 20, "inlp", accuracies=(0.9, 0.5), majority=0.5)
    found = limits.removal(encoder, "main axes", erasure, vectors, words, controls=2)
    assert found.excess.value > 0 and found.readable == pytest.approx(0.8)
    target = torch.tensor([w.target for w in words])
    with torch.no_grad():
        logits = encoder.mlm_logits(torch.from_numpy(vectors))
    plain = torch.nn.functional.cross_entropy(logits, target, reduction="none").numpy()
    assert np.allclose(found.intact, plain, atol=1e-4)
    nothing = random_erasure(encoder.d_model, 1)
    nothing = replace(nothing, projection=torch.eye(encoder.d_model))
    with pytest.raises(ValueError, match="changed no prediction"):
        limits.removal(encoder, "nothing", nothing, vectors, words)
    with pytest.raises(ValueError, match="vectors for"):
        limits.removal(encoder, "x", erasure, vectors[:1], words)


def test_top_words_are_those_of_the_head(encoder):
    vector = np.random.default_rng(0).normal(size=encoder.d_model).astype(np.float32)
    found = limits.top_words(encoder, vector, k=3)
    with torch.no_grad():
        best = encoder.mlm_logits(torch.from_numpy(vector)[None])[0].argmax().item()
    assert next(iter(found)) == encoder.tokenizer.convert_ids_to_tokens(best)
    with pytest.raises(ValueError, match="shape"):
        limits.top_words(encoder, vector[:3])


# -- constant data -------------------------------------------------------------------------------


def test_fine_tuning_changes_the_copy_only(encoder, bank):
    random = random_encoder(encoder)
    texts, labels = limits.texts_of(bank), limits.subject_numbers(bank)
    before = {k: v.clone() for k, v in random.model.state_dict().items()}
    tuned = limits.fine_tune(random, texts, labels, texts, labels, epochs=1, batch_size=12)
    assert len(tuned.losses) == 2 and 0 <= tuned.accuracy <= 1
    assert all(torch.equal(v, before[k]) for k, v in random.model.state_dict().items())
    changed = tuned.encoder.model.state_dict()
    assert any(not torch.equal(v, before[k]) for k, v in changed.items())
    with pytest.raises(ValueError, match="all labels are the same"):
        limits.fine_tune(random, texts, [0] * len(texts), texts, labels)
