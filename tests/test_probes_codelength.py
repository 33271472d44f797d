"""Codes of planted labels: random ones cost the uniform code, readable ones less."""

import math

import numpy as np
import pytest
import torch

from bertology_utils.probes import (
    OneClassError,
    TooFewExamplesError,
    UnequalLengthError,
    online_codelength,
    variational_codelength,
)


def planted(n=3000, width=12, classes=4, seed=0):
    """Layer 0 is noise, layer 1 holds the class loudly, layer 2 faintly."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    centres = rng.normal(size=(classes, width))
    noise = rng.normal(size=(3, n, width))
    return np.stack([noise[0], 4 * centres[y] + noise[1], 0.5 * centres[y] + noise[2]]), y


@pytest.mark.parametrize("code", [online_codelength, variational_codelength])
def test_random_labels_cost_the_uniform_code(code):
    features, y = planted()
    random = np.random.default_rng(7).integers(0, 4, len(y))
    for found in code(features, random):
        assert found.bits == pytest.approx(found.uniform_bits, rel=0.02)
        assert found.uniform_bits == pytest.approx(2 * len(y))


@pytest.mark.parametrize("code", [online_codelength, variational_codelength])
def test_the_easier_a_label_the_shorter_its_code(code):
    features, y = planted()
    noise, loud, faint = code(features, y, model="planted")
    assert noise.compression == pytest.approx(1.0, rel=0.02)
    assert loud.compression > 4 * faint.compression
    assert faint.compression > 1.1
    assert loud.bits == pytest.approx(sum(bits for _, bits in loud.parts))
    assert (loud.n, loud.n_classes, loud.model, loud.layer) == (len(y), 4, "planted", 1)


def test_mlp_codes_what_no_linear_probe_can():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 3000, 4))
    y = (x[0, :, 0] > 0) ^ (x[0, :, 1] > 0)
    linear = online_codelength(x, y)[0]
    mlp = online_codelength(x, y, kind="mlp", hidden=32, lr=1e-2)[0]
    assert linear.compression == pytest.approx(1.0, rel=0.02)
    assert mlp.compression > 1.5


def test_online_code_is_the_sum_of_its_blocks():
    features, y = planted(n=1000)
    found = online_codelength(features, y, portions=(0.1, 0.5, 1.0))[1]
    assert [start for start, _ in found.parts] == [0, 100, 500]
    assert found.parts[0][1] == pytest.approx(100 * 2)
    assert found.parts[2][1] / 500 < found.parts[1][1] / 400 < 2
    assert found.interval[0] < found.compression < found.interval[1]
    assert found.baselines["uniform code"] == 1.0
    # A code learns four even frequencies for a handful of bits.
    assert 0 < found.frequency_bits - found.uniform_bits < 3 * math.log2(1000)


def test_a_class_first_seen_late_still_has_a_finite_code():
    features, y = planted(n=400)
    y = y.astype(object)
    y[:3] = "rare"
    for found in online_codelength(features, [str(label) for label in y], seed=2):
        assert math.isfinite(found.bits)


def test_frequencies_alone_compress_skewed_labels():
    features, _ = planted(n=2000)
    skewed = np.random.default_rng(0).random(2000) < 0.1
    found = online_codelength(features, skewed)[0]
    entropy = 2000 * -(0.1 * math.log2(0.1) + 0.9 * math.log2(0.9))
    assert found.frequency_bits == pytest.approx(entropy, rel=0.1)
    assert found.bits == pytest.approx(found.frequency_bits, rel=0.1)


@pytest.mark.parametrize("code", [online_codelength, variational_codelength])
def test_codes_repeat_exactly_and_follow_the_seed(code):
    features, y = planted(n=600)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        first = code(features, y, seed=3)
        torch.manual_seed(2)
        assert code(features, y, seed=3) == first
    assert [r.bits for r in code(features, y, seed=4)] != [r.bits for r in first]


def test_sentences_are_sent_whole():
    features, y = planted(n=600)
    groups = [i // 10 for i in range(600)]
    found = online_codelength(features, y, groups=groups)[1]
    assert found.compression > 2
    with pytest.raises(UnequalLengthError, match="599 groups"):
        online_codelength(features, y, groups=groups[1:])


def test_bad_data_is_named():
    features, y = planted(n=60)
    for code in (online_codelength, variational_codelength):
        with pytest.raises(OneClassError):
            code(features, [1] * 60)
        with pytest.raises(TooFewExamplesError):
            code(features, range(60))
        with pytest.raises(UnequalLengthError):
            code(features, y[1:])
    for portions in ((), (0.5,), (0.5, 0.2, 1.0), (0.0, 1.0), (0.5, 0.5, 1)):
        with pytest.raises(ValueError, match="portions"):
            online_codelength(features, y, portions=portions)
    with pytest.raises(ValueError, match="'ridge'"):
        online_codelength(features, y, kind="ridge")
