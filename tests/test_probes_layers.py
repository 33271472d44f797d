"""Linear, ridge and MLP probes against scikit-learn, planted truth and bad input."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support
from sklearn.preprocessing import StandardScaler

from bertology_utils.probes import (
    KINDS,
    NonFiniteError,
    OneClassError,
    ProbeError,
    Split,
    TooFewExamplesError,
    UnequalLengthError,
    class_scores,
    control_labels,
    fit_linear,
    fit_mlp,
    fit_ridge,
    group_split,
    probe_layers,
    random_split,
    regress_layers,
    selectivity,
    share_interval,
    words_split,
)


def planted(n=900, width=20, classes=4, seed=0, noise=1.0):
    """Layer 0 is noise, layer 1 holds the class along one direction per class, correlated."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    mixing = rng.normal(size=(width, width))
    signal = rng.normal(size=(classes, width)) * 1.5
    layer1 = (signal[y] + noise * rng.normal(size=(n, width))) @ mixing + 3.0
    features = np.stack([rng.normal(size=(n, width)), layer1]).astype(np.float32)
    return features, y


def test_linear_agrees_with_scikit_learn():
    features, y = planted(noise=3.0)
    x = torch.from_numpy(features)
    for l2 in (1e-1, 1e-2, 1e-3):
        ours = fit_linear(x, torch.from_numpy(y), 4, l2=l2, tolerance=1e-5)
        for layer in (0, 1):
            rows = StandardScaler().fit_transform(features[layer].astype(np.float64))
            theirs = LogisticRegression(C=1 / (l2 * len(y)), tol=1e-9, max_iter=5000).fit(rows, y)
            np.testing.assert_allclose(
                ours.log_probs(x)[layer].exp().numpy(), theirs.predict_proba(rows), atol=1e-3
            )


def test_a_layer_does_not_depend_on_its_companions():
    features, y = planted(noise=3.0)
    both, alone = torch.from_numpy(features), torch.from_numpy(features[1:])
    labels = torch.from_numpy(y)
    dev = (both[:, :200], labels[:200])
    dev_alone = (alone[:, :200], labels[:200])
    for fit, options in ((fit_linear, {}), (fit_mlp, {"epochs": 4, "hidden": 8})):
        together = fit(both[:, 200:], labels[200:], 4, dev=dev, **options).log_probs(both)[1]
        by_itself = fit(alone[:, 200:], labels[200:], 4, dev=dev_alone, **options).log_probs(alone)
        torch.testing.assert_close(together, by_itself[0], atol=1e-3, rtol=1e-3)


def test_ridge_agrees_with_scikit_learn():
    features, y = planted(noise=3.0)
    targets = np.stack([y, features[1, :, 3]], axis=1).astype(np.float32)
    ours = fit_ridge(torch.from_numpy(features), torch.from_numpy(targets), alpha=7.0)
    rows = StandardScaler().fit_transform(features[1].astype(np.float64))
    theirs = Ridge(alpha=7.0).fit(rows, targets).predict(rows)
    np.testing.assert_allclose(
        ours.predict(torch.from_numpy(features))[1].numpy(), theirs, atol=1e-3
    )


def test_metrics_agree_with_scikit_learn():
    rng = np.random.default_rng(1)
    gold, said = rng.integers(0, 4, 300), rng.integers(0, 5, 300)
    scores = class_scores(said, gold, list("abcde"))
    p, r, f, n = precision_recall_fscore_support(gold, said, labels=range(4), zero_division=0)
    assert list(scores) == list("abcd")
    for i, score in enumerate(scores.values()):
        assert (score.precision, score.recall, score.f1, score.n) == pytest.approx(
            (p[i], r[i], f[i], n[i])
        )


@pytest.mark.parametrize("kind", KINDS)
def test_planted_classes_are_found_and_noise_stays_at_the_baseline(kind):
    features, y = planted(n=1500, noise=1.7)
    split = random_split(len(y), seed=3)
    noise, signal = probe_layers(features, [f"c{k}" for k in y], split, kind=kind, model="planted")
    assert signal.accuracy > 0.9 > 0.4 > noise.accuracy
    assert noise.interval[0] < 0.35
    assert signal.interval[0] < signal.accuracy < signal.interval[1]
    assert (signal.n, signal.model, signal.seed) == (len(split.test), "planted", 0)
    assert signal.baselines["majority class"] == pytest.approx(signal.majority)
    assert signal.accuracy == pytest.approx(signal.correct.mean())
    assert set(signal.per_class) == {"c0", "c1", "c2", "c3"}
    assert signal.macro_f1 == pytest.approx(np.mean([s.f1 for s in signal.per_class.values()]))


def test_probe_accuracy_equals_scikit_learn_at_the_chosen_penalty():
    features, y = planted(n=1500, noise=4.0)
    split = random_split(len(y), seed=0)
    found = probe_layers(features, y, split)[1]
    rows = StandardScaler().fit(features[1][split.train])
    best = max(
        accuracy_score(
            y[split.test],
            LogisticRegression(C=c, max_iter=1000)
            .fit(rows.transform(features[1][split.train]), y[split.train])
            .predict(rows.transform(features[1][split.test])),
        )
        for c in (1e-3, 1e-2, 1e-1, 1, 10)
    )
    assert abs(found.accuracy - best) < 0.02


def test_an_xor_is_beyond_the_linear_probe_only():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1, 3000, 6)).astype(np.float32)
    y = (x[0, :, 0] > 0) ^ (x[0, :, 1] > 0)
    split = random_split(3000)
    linear = probe_layers(x, y, split, kind="linear")[0]
    mlp = probe_layers(x, y, split, kind="mlp", epochs=30, lr=1e-2)[0]
    assert linear.accuracy < 0.6
    assert mlp.accuracy > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_probes_repeat_exactly(kind):
    features, y = planted(n=400)
    split = random_split(400, seed=1)
    assert probe_layers(features, y, split, kind=kind, seed=5) == probe_layers(
        features, y, split, kind=kind, seed=5
    )


def test_features_with_outlying_and_constant_columns():
    features, y = planted(n=800)
    features[1, :, 0] = 50.0
    features[1, :, 1] = features[1, :, 1] * 1e3 + 1e4
    found = probe_layers(features, y, random_split(800))[1]
    assert found.accuracy > 0.85


def test_regression_recovers_a_number_and_calls_noise_noise():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 800, 10)).astype(np.float32)
    y = 3 * x[1, :, 2] - x[1, :, 5] + 0.1 * rng.normal(size=800) + 7
    noise, signal = regress_layers(x, y, random_split(800), model="planted")
    assert signal.r2 > 0.98 and signal.spearman > 0.98
    assert abs(noise.r2) < 0.1 and abs(noise.spearman) < 0.25
    assert signal.interval[0] < signal.r2 < signal.interval[1]
    assert signal.rmse < 0.2 < 2 < signal.rmse_mean
    assert -0.1 < signal.baselines["training mean"] <= 0


def test_bad_data_is_named():
    features, y = planted(n=60)
    split = random_split(60)
    with pytest.raises(OneClassError, match="'same'"):
        probe_layers(features, ["same"] * 60, split)
    with pytest.raises(TooFewExamplesError, match="training examples for 60 classes"):
        probe_layers(features, range(60), split)
    with pytest.raises(UnequalLengthError, match="59 labels for 60"):
        probe_layers(features, y[:-1], split)
    with pytest.raises(UnequalLengthError, match="row 60"):
        probe_layers(features, y, Split([0, 1], [2], [60]))
    with pytest.raises(ProbeError, match="example 0 has the label None"):
        probe_layers(features, [None, *y[1:]], Split(range(30), range(30, 40), range(40, 60)))
    broken = features.copy()
    broken[1, 7, 3] = np.nan
    with pytest.raises(NonFiniteError, match="layer 1, example 7"):
        probe_layers(broken, y, split)
    with pytest.raises(ProbeError, match="shape"):
        probe_layers(features[0], y, split)
    with pytest.raises(ValueError, match="'svm'"):
        probe_layers(features, y, split, kind="svm")
    with pytest.raises(TypeError):
        probe_layers(features, y, split, kind="ridge", hidden=3)
    with pytest.raises(ValueError, match="development part"):
        probe_layers(features, y, random_split(60, dev=0))
    with pytest.raises(NonFiniteError, match="target"):
        regress_layers(features, [np.nan] * 60, split)
    with pytest.raises(TooFewExamplesError, match="test part"):
        Split([0, 1], [2], [])
    with pytest.raises(ProbeError, match="row 1 is in the split more than once"):
        Split([0, 1], [1], [2])


def test_group_splits_keep_groups_whole():
    groups = [f"s{i // 3}" for i in range(90)]
    split = group_split(groups, seed=4)
    sides = [{groups[i] for i in part} for part in (split.train, split.dev, split.test)]
    assert not sides[0] & sides[1] and not sides[1] & sides[2] and not sides[0] & sides[2]
    assert sorted(np.concatenate([split.train, split.dev, split.test])) == list(range(90))
    assert len(split.test) == 18 and len(split.dev) == 9
    with pytest.raises(TooFewExamplesError, match="2 groups"):
        group_split(["a", "b", "a"])


def test_a_split_of_sentences_becomes_a_split_of_words():
    split = words_split(Split([0, 2], [], [1], seed=9), [2, 3, 1])
    assert split.train.tolist() == [0, 1, 5]
    assert split.test.tolist() == [2, 3, 4]
    assert split.seed == 9


def test_groups_widen_the_interval():
    hits = np.repeat([1, 0, 1, 1, 0, 1, 0, 1, 1, 1], 20)
    plain = share_interval(hits)
    grouped = share_interval(hits, np.repeat(range(10), 20).tolist())
    assert grouped[1] - grouped[0] > 2 * (plain[1] - plain[0])
    assert grouped[0] < hits.mean() < grouped[1]


def test_control_labels_belong_to_types_and_follow_the_distribution():
    words = [f"w{i}" for i in range(5000)] * 2
    labels = (["N"] * 6 + ["V"] * 3 + ["X"]) * 1000
    control = control_labels(words, labels, seed=1)
    assert control[:5000] == control[5000:]
    assert control.count("N") / 10000 == pytest.approx(0.6, abs=0.03)
    assert control != control_labels(words, labels, seed=2)
    with pytest.raises(UnequalLengthError):
        control_labels(words, labels[:-1])
    with pytest.raises(ProbeError, match="several word types"):
        control_labels(["a", "a"], ["N", "V"])


def test_selectivity_tells_type_vectors_from_class_vectors():
    """Layer 0 names the word type outright, layer 1 only its class."""
    rng = np.random.default_rng(0)
    types = rng.integers(0, 60, 3000)
    gold = types % 3
    one_hot = np.eye(60)[types]
    of_class = np.eye(60)[gold]
    features = np.stack([one_hot, of_class]) + 0.03 * rng.normal(size=(2, 3000, 60))
    by_type, by_class = selectivity(features, gold, types.tolist(), random_split(3000))
    assert by_type.task.accuracy > 0.95 and by_class.task.accuracy > 0.95
    assert abs(by_type.selectivity) < 0.05
    assert by_class.selectivity > 0.4
    assert by_class.interval[0] < by_class.selectivity < by_class.interval[1]
    held_out = group_split(types.tolist())
    with pytest.raises(ProbeError, match="no word type"):
        selectivity(features, gold, types.tolist(), held_out)


def test_f1_of_the_result_equals_scikit_learn():
    features, y = planted(n=700, noise=4.0)
    split = random_split(700)
    found = probe_layers(features, y, split, kind="ridge", alpha=1.0)[1]
    rows = StandardScaler().fit(features[1][split.train])
    onehot = np.eye(4)[y]
    ridge = Ridge(alpha=1.0).fit(rows.transform(features[1][split.train]), onehot[split.train])
    said = ridge.predict(rows.transform(features[1][split.test])).argmax(1)
    assert found.macro_f1 == pytest.approx(f1_score(y[split.test], said, average="macro"))
