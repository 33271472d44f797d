"""Codes, control tasks and erasure on data whose answers follow from their definitions."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from bertology_utils.probes import (
    ProbeError,
    Split,
    UnequalLengthError,
    codelength,
    control_labels,
    inlp,
    leace,
    online_codelength,
    random_erasure,
    random_split,
    selectivity,
    variational_codelength,
)
from bertology_utils.probes.erasure import _extended

# --- the online code ----------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [[0, 1], [0, 0, 0], [0, 1, 1, 2, 1, 0], [2, 2, 2, 2, 1]])
def test_frequencies_are_learnt_as_krichevsky_and_trofimov_say(labels):
    classes = 3
    seen, probability = [Fraction(1, 2)] * classes, Fraction(1)
    for label in labels:
        probability *= seen[label] / sum(seen)
        seen[label] += 1
    bits = codelength._frequency_bits(np.array(labels), classes)
    assert bits == pytest.approx(-math.log2(probability))


def test_order_of_sending_keeps_sentences_whole():
    plain = codelength._order(50, None, 1)
    assert sorted(plain.tolist()) == list(range(50)) and plain.tolist() != list(range(50))
    assert plain.tolist() != codelength._order(50, None, 2).tolist()
    groups = ["a", "b", "a", "c", "b", "c", "a"]
    orders = {tuple(codelength._order(7, groups, seed).tolist()) for seed in range(20)}
    blocks = {"a": (0, 2, 6), "b": (1, 4), "c": (3, 5)}
    for order in orders:
        named = [groups[i] for i in order]
        names = list(dict.fromkeys(named))
        assert order == tuple(i for name in names for i in blocks[name])
    assert len(orders) > 3
    with pytest.raises(UnequalLengthError, match="2 groups for 7 examples"):
        codelength._order(7, groups[:2], 0)


def fixed_block(value):
    """A probe that gives every label the same probability."""

    def block(rows, codes, start, end, classes, kind, seed, options):
        return torch.full((len(rows), end - start), math.log(value))

    return block


def test_blocks_cost_what_their_probe_says(monkeypatch):
    monkeypatch.setattr(codelength, "_block", fixed_block(0.7))
    features = np.zeros((2, 100, 3))
    labels = [i % 4 for i in range(100)]
    found = online_codelength(features, labels, portions=(0.1, 0.2, 0.6, 1.0), seed=3, model="m")
    assert [r.layer for r in found] == [0, 1]
    # A tenth leaves ten examples, fewer than twenty: that end is passed over.
    one = found[0]
    expected = [(0, 20 * 2.0)]
    for start, end in ((20, 60), (60, 100)):
        probability = (start * 0.7 + 1 / 4) / (start + 1)
        expected.append((start, (end - start) * -math.log2(probability)))
    assert [start for start, _ in one.parts] == [0, 20, 60]
    assert [bits for _, bits in one.parts] == pytest.approx([bits for _, bits in expected])
    assert one.bits == pytest.approx(sum(bits for _, bits in expected))
    assert one.uniform_bits == 200
    assert one.compression == one.value == pytest.approx(200 / one.bits)
    assert (one.code, one.kind, one.n, one.n_classes, one.seed) == ("online", "linear", 100, 4, 3)
    assert one.model == "m" and one.unit == "ratio"
    assert one.baselines == {
        "uniform code": 1.0, "label frequencies": pytest.approx(200 / one.frequency_bits),
    }  # fmt: skip
    assert one.interval[0] < one.compression < one.interval[1]
    grouped = online_codelength(features, labels, groups=[0] * 50 + [1] * 50, seed=3)[0]
    assert grouped.interval[1] - grouped.interval[0] > 0
    # All labels in one group: nothing to resample.
    single = online_codelength(features, labels, groups=["s"] * 100)[0]
    assert single.interval == (pytest.approx(single.compression),) * 2


def test_many_classes_need_two_examples_each_before_the_first_probe(monkeypatch):
    monkeypatch.setattr(codelength, "_block", fixed_block(0.5))
    labels = [i % 15 for i in range(100)]
    found = online_codelength(np.zeros((1, 100, 2)), labels, portions=(0.2, 0.3, 0.5, 1))[0]
    assert [start for start, _ in found.parts] == [0, 30, 50]
    few = online_codelength(np.zeros((1, 12, 2)), [0, 1] * 6)[0]
    assert few.parts == ((0, 12.0),) and few.bits == 12


def block_data():
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 3, (60,), generator=generator)
    rows = torch.randn(2, 60, 4, generator=generator)
    rows[1, :, 0] += 4 * codes
    return rows, codes


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_probabilities_of_a_block_add_up_to_one(kind):
    """Labels of a block have no part in its probe, so that the code is one."""
    rows, codes = block_data()
    total = torch.zeros(2, 20)
    for label in range(3):
        sent = codes.clone()
        sent[40:] = label
        total += codelength._block(rows, sent, 40, 60, 3, kind, 0, {}).exp()
    torch.testing.assert_close(total, torch.ones(2, 20), atol=1e-4, rtol=0)
    own = codelength._block(rows, codes, 40, 60, 3, kind, 0, {}).mean(1)
    assert own[1] > own[0] and (kind == "mlp" or own[1] > math.log(0.6))


def test_a_probe_that_holds_no_promise_gives_way_to_the_frequencies():
    rows, _ = block_data()
    codes = torch.tensor([0, 0, 1] * 20)
    said = codelength._block(torch.zeros(2, 60, 4), codes, 40, 60, 3, "linear", 0, {})
    counts = torch.bincount(codes[:20], minlength=3) + 0.5
    torch.testing.assert_close(
        said[0].exp(), (counts / counts.sum())[codes[40:]], atol=0.01, rtol=0
    )
    with pytest.raises(ValueError, match="'tree', must be 'linear' or 'mlp'"):
        codelength._block(rows, codes, 40, 60, 3, "tree", 0, {})


# --- the variational code -----------------------------------------------------------------------


def test_variational_code_pays_for_labels_and_weights():
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 400)
    features = generator.normal(size=(2, 400, 3))
    features[1, :, 0] += 6 * labels
    options = {"epochs": 40, "lr": 0.1}
    noise, loud = variational_codelength(features, labels, **options, seed=1, model="m")
    for layer, found in enumerate((noise, loud)):
        (one, label_bits), (other, weight_bits) = found.parts
        assert (one, other) == ("labels", "weights")
        assert found.bits == pytest.approx(label_bits + weight_bits)
        assert (found.layer, found.code, found.kind) == (layer, "variational", "linear")
        assert (found.n, found.n_classes, found.seed, found.model) == (400, 2, 1, "m")
        assert found.uniform_bits == 400 and found.interval is None
        # Two widths are sent, at half a log2 N bits each; the rest of the price is never negative.
        assert weight_bits >= math.log2(400) - 1e-3
    assert noise.bits == pytest.approx(400, rel=0.1)
    assert loud.bits < 250 and loud.parts[1][1] > noise.parts[1][1]
    assert noise.frequency_bits == pytest.approx(codelength._frequency_bits(labels, 2))
    other = variational_codelength(features, labels, **options, seed=2)[0]
    assert other.bits != noise.bits


# --- control tasks ------------------------------------------------------------------------------


def test_control_labels_are_one_a_type_at_the_odds_of_the_labels():
    types = [f"w{i % 400}" for i in range(2000)]
    labels = ["rare" if i % 10 == 0 else "common" for i in range(2000)]
    found = control_labels(types, labels)
    assert len(found) == 2000 and set(found) == {"rare", "common"}
    by_type = {}
    for word, label in zip(types, found, strict=True):
        assert by_type.setdefault(word, label) == label
    assert list(by_type.values()).count("rare") / 400 == pytest.approx(0.1, abs=0.05)
    assert found == control_labels(types, labels, seed=0) != control_labels(types, labels, seed=1)
    assert control_labels(["a", "b"], ["x", "x"]) == ["x", "x"]
    with pytest.raises(UnequalLengthError, match="1 word types, but 2 labels"):
        control_labels(["a"], ["x", "y"])
    with pytest.raises(ProbeError, match="several word types, found 1"):
        control_labels(["a", "a"], ["x", "y"])


def test_selectivity_is_the_difference_of_two_probes():
    draw = np.random.default_rng(0)
    codes = draw.integers(0, 12, 240)
    labels = codes % 2
    features = draw.normal(size=(2, 240, 12))
    features[1] += 6 * np.eye(12)[codes]
    split = random_split(240, seed=1)
    options = {"seed": 3, "model": "m"}
    noise, known = selectivity(features, labels, codes.tolist(), split, **options)
    for found in (noise, known):
        assert found.value == found.selectivity == found.task.accuracy - found.control.accuracy
        assert found.interval[0] <= found.value <= found.interval[1]
        assert (found.n, found.seed, found.model, found.unit) == (
            len(split.test), 3, "m", "share difference",
        )  # fmt: skip
        assert found.baselines == {"majority classes": found.task.majority - found.control.majority}
    assert (noise.layer, known.layer) == (0, 1)
    # Vectors that name the type know any labelling of types: accurate, and not selective.
    assert known.task.accuracy > 0.85 and known.control.accuracy > 0.85
    assert known.interval[1] - known.interval[0] < noise.interval[1] - noise.interval[0]
    single = selectivity(features, labels, codes.tolist(), split, groups=[0] * 240)[0]
    assert single.interval == (pytest.approx(single.value),) * 2
    unseen = ["a"] * 200 + ["b"] * 40
    apart = Split(list(range(160)), list(range(160, 200)), list(range(200, 240)))
    with pytest.raises(ProbeError, match="no word type of the test part"):
        selectivity(features, labels, unseen, apart)


# --- erasure ------------------------------------------------------------------------------------


def planted(n=600, seed=0):
    """Two classes apart along one axis of five, and along nothing else."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 2, n)
    vectors = draw.normal(size=(n, 5)) + 3.0
    vectors[:, 1] += 6 * labels
    return vectors.astype(np.float32), labels, random_split(n, seed=seed)


def test_one_direction_is_found_and_taken_out():
    vectors, labels, split = planted()
    found = inlp(vectors, labels, split, margin=0.3)
    assert (found.method, found.rank) == ("inlp", 1)
    assert len(found.accuracies) == 2
    assert found.accuracies[0] > 0.99 and found.accuracies[1] <= found.majority + 0.3
    assert found.remaining < 0.85
    # What is removed is the axis that was planted, around the mean of the training part.
    removed = torch.eye(5) - found.projection
    assert float(removed[1, 1]) > 0.95 and float(removed.trace()) == pytest.approx(1, abs=1e-5)
    centre = vectors[split.train].mean(0)
    np.testing.assert_allclose(found.centre, centre, atol=1e-4)
    moved = found.apply(torch.from_numpy(vectors))
    gap = moved[labels == 1].mean(0) - moved[labels == 0].mean(0)
    assert float(gap.abs().max()) < 0.8
    doubled = found.apply(torch.from_numpy(vectors).double())
    assert doubled.dtype == torch.float64
    torch.testing.assert_close(doubled.float(), moved)


def test_rounds_and_margin_bound_the_removal():
    draw = np.random.default_rng(1)
    labels = draw.integers(0, 2, 400)
    vectors = (draw.normal(size=(400, 6)) + 1.5 * labels[:, None]).astype(np.float32)
    vectors[:, :3] *= 3  # several directions that tell the classes apart
    split = random_split(400, seed=1)
    once = inlp(vectors, labels, split, rounds=1)
    assert once.rank == 1 and len(once.accuracies) == 2
    assert inlp(vectors, labels, split, margin=1.0).rank == 0
    with pytest.raises(ValueError, match="rounds must be 1 or more, got 0"):
        inlp(vectors, labels, split, rounds=0)
    with pytest.raises(ProbeError, match=r"shape \(1, 400, 6\)"):
        inlp(vectors[None], labels, split)
    without = inlp(vectors, labels, Split(split.train, [], split.test), rounds=2)
    assert without.remaining is None and without.majority is not None


def test_the_closed_form_leaves_no_covariance():
    vectors, labels, split = planted(seed=2)
    found = leace(vectors, labels, split)
    assert (found.method, found.rank, found.accuracies) == ("leace", 1, ())
    rows = found.apply(torch.from_numpy(vectors))[split.train].double().numpy()
    gold = labels[split.train] - labels[split.train].mean()
    np.testing.assert_allclose((rows - rows.mean(0)).T @ gold / len(rows), 0, atol=1e-4)
    np.testing.assert_allclose(found.centre, vectors[split.train].mean(0), atol=1e-4)
    # The smallest change: directions that do not covary with the class stay as they are.
    before, after = vectors[split.train], rows
    away = before[:, 1] - after[:, 1]
    assert np.abs(away).max() > 2
    assert np.abs(before[:, [0, 2, 3, 4]] - after[:, [0, 2, 3, 4]]).max() < 1.0
    assert found.remaining < 0.65


def test_random_directions_are_orthogonal_and_as_many():
    found = random_erasure(6, 4, seed=1)
    torch.testing.assert_close(found.projection @ found.projection, found.projection)
    assert float(found.projection.trace()) == pytest.approx(2, abs=1e-5)
    assert (found.rank, found.method, found.remaining, found.majority) == (4, "random", None, None)
    assert found.centre.tolist() == [0] * 6
    assert not torch.allclose(found.projection, random_erasure(6, 4, seed=2).projection)
    torch.testing.assert_close(found.projection, random_erasure(6, 4, seed=1).projection)
    centre = torch.arange(6.0, dtype=torch.float64)
    moved = random_erasure(6, 6, centre=centre)
    assert moved.projection.dtype == torch.float64
    rows = moved.apply(torch.randn(3, 6).double())
    torch.testing.assert_close(rows, centre.repeat(3, 1), atol=1e-4, rtol=0)
    assert random_erasure(6, 1).rank == 1
    for rank in (0, 7):
        with pytest.raises(ValueError, match=f"rank must lie in 1..6, got {rank}"):
            random_erasure(6, rank)


def test_a_basis_grows_by_what_tells_classes_apart():
    basis = _extended(torch.zeros(4, 0), torch.tensor([[1.0, 1], [2, 0], [0, 0], [5, 5]]))
    # Weights that all classes share tell nothing: only the second axis is left.
    assert basis.shape == (4, 1)
    torch.testing.assert_close(basis[:, 0].abs(), torch.tensor([0.0, 1, 0, 0]))
    weight = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    grown = _extended(basis, weight)
    assert grown.shape == (4, 3)
    torch.testing.assert_close(grown.T @ grown, torch.eye(3), atol=1e-5, rtol=0)
    differences = weight - weight.mean(1, keepdim=True)
    left = differences - grown @ (grown.T @ differences)
    torch.testing.assert_close(left, torch.zeros(4, 3), atol=1e-5, rtol=0)
    full = _extended(grown, torch.randn(4, 3, generator=torch.Generator().manual_seed(1)))
    assert full.shape == (4, 4)
