"""Edge probes: planted layers, pooling, cumulative gains."""

import numpy as np
import pytest
import torch

from bertology_utils.probes import (
    OneClassError,
    ProbeError,
    UnequalLengthError,
    centre_of_gravity,
    edge_probe,
    edge_probe_layers,
    expected_layer,
    random_split,
    row_spans,
)
from bertology_utils.probes.edge import _Side


def planted(n=2400, width=16, layers=5, at=3, seed=0):
    """Only layer ``at`` holds the class of a word; larger numbers in layer 0 must not matter."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    features = rng.normal(size=(layers, n, width))
    features[at] += 2.5 * rng.normal(size=(3, width))[y]
    features[0] *= 20
    return features.astype(np.float32), y


def test_the_mix_and_the_gains_point_at_the_planted_layer():
    features, y = planted()
    spans = [(i, i + 1) for i in range(len(y))]
    found = edge_probe(features, spans, y, random_split(len(y)), model="planted", epochs=25)
    assert int(np.argmax(found.mix)) == 3
    assert found.centre_of_gravity == pytest.approx(3, abs=0.7)
    assert found.expected_layer == pytest.approx(3, abs=0.3)
    assert found.expected_interval[0] <= found.expected_layer <= found.expected_interval[1]
    assert max(found.cumulative[:3]) < 0.45
    assert min(found.cumulative[3:]) > 0.9
    assert sum(found.mix) == pytest.approx(1)
    assert found.gains[2] > 0.4
    assert found.value == found.cumulative[-1]
    assert found.baselines["embedding layer"] == found.cumulative[0]


def test_layers_by_themselves_are_read_by_the_same_classifier():
    features, y = planted()
    spans, split = [(i, i + 1) for i in range(len(y))], random_split(len(y))
    found = edge_probe_layers(features, spans, y, split, epochs=15)
    accuracy = found.mean(1)
    assert found.shape == (5, len(split.test)) and accuracy.argmax() == 3
    assert accuracy[3] > 0.9 and max(np.delete(accuracy, 3)) < 0.45
    # Of a single layer there is nothing to mix: both ways are one probe.
    only = features[3:4]
    mixed = edge_probe(only, spans, y, split, epochs=5)
    assert np.array_equal(mixed.correct, edge_probe_layers(only, spans, y, split, epochs=5))


def test_pairs_need_both_spans():
    """The label says whether two words are of the same class."""
    features, y = planted(at=1, layers=2)
    rng = np.random.default_rng(1)
    pairs = rng.integers(0, len(y), (3000, 2))
    same = [y[a] == y[b] for a, b in pairs]
    spans = [((a, a + 1), (b, b + 1)) for a, b in pairs.tolist()]
    split = random_split(3000)
    both = edge_probe(features, spans, same, split, epochs=30)
    first = edge_probe(features, [span for span, _ in spans], same, split, epochs=10)
    assert both.value > 0.85
    assert first.value < first.majority + 0.06


def test_attention_finds_the_word_that_matters():
    """The class sits in the one marked word of a span of six; a mean drowns it."""
    rng = np.random.default_rng(0)
    n, width = 1500, 8
    y = rng.integers(0, 2, n)
    words = rng.normal(size=(n, 6, width))
    place = rng.integers(0, 6, n)
    words[np.arange(n), place, 0] = 12.0
    words[:, :, 1] = 4 * rng.choice([-1, 1], (n, 6))
    words[np.arange(n), place, 1] = 4 * (2 * y - 1)
    features = words.reshape(1, -1, width)
    spans = [(6 * i, 6 * i + 6) for i in range(n)]
    options = {"epochs": 30, "lr": 1e-2}
    mean = edge_probe(features, spans, y, random_split(n), **options)
    attention = edge_probe(features, spans, y, random_split(n), pooling="attention", **options)
    assert attention.value > mean.value + 0.1
    assert attention.value > 0.95


def test_mean_pooling_equals_the_plain_mean():
    data = torch.randn(3, 20, 4, generator=torch.Generator().manual_seed(0))
    spans = [(0, 1), (3, 7), (18, 20)]
    weights = torch.tensor([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    pooled = _Side(data, spans, "mean")(torch.arange(3), weights, torch.zeros(2, 4))
    for e, (start, end) in enumerate(spans):
        plain = torch.einsum("ms,sd->md", weights, data[:, start:end].mean(1))
        torch.testing.assert_close(pooled[:, e], plain)
    # Attention with no preference is the mean too.
    attention = _Side(data, spans, "attention")(torch.arange(3), weights, torch.zeros(2, 4))
    torch.testing.assert_close(attention, pooled)


def test_summaries_by_hand():
    assert centre_of_gravity([0, 0, 1]) == 2
    assert centre_of_gravity([1, 1, 2]) == pytest.approx(1.25)
    assert expected_layer([0.5, 0.7, 0.8]) == pytest.approx((0.2 + 2 * 0.1) / 0.3)
    assert expected_layer([0.5, 0.5]) is None
    with pytest.raises(ProbeError, match="weights"):
        centre_of_gravity([0, 0])
    with pytest.raises(ProbeError, match="weights"):
        centre_of_gravity([1, -1])


def test_spans_of_sentences_become_rows():
    assert row_spans([3, 2, 4], [(0, 1, 3), (2, 0, 1)]) == [(1, 3), (5, 6)]
    with pytest.raises(ProbeError, match=r"\(1, 1, 3\)"):
        row_spans([3, 2], [(1, 1, 3)])


def test_bad_input_is_named_and_results_repeat():
    features, y = planted(n=200)
    spans = [(i, i + 1) for i in range(200)]
    split = random_split(200)
    assert edge_probe(features, spans, y, split, epochs=2) == edge_probe(
        features, spans, y, split, epochs=2
    )
    with pytest.raises(ProbeError, match="example 5 is empty"):
        edge_probe(features, [*spans[:5], (7, 7), *spans[6:]], y, split)
    with pytest.raises(ProbeError, match="example 1 has another number"):
        edge_probe(features, [spans[0], (spans[0], spans[1]), *spans[2:]], y, split)
    with pytest.raises(ValueError, match="'max'"):
        edge_probe(features, spans, y, split, pooling="max")
    with pytest.raises(OneClassError):
        edge_probe(features, spans, [0] * 200, split)
    with pytest.raises(UnequalLengthError):
        edge_probe(features, spans, y[:-1], split)
    with pytest.raises(ProbeError, match="no spans"):
        edge_probe(features, [], [], split)
