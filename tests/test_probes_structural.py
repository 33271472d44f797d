"""Structural probes on vectors that hold a tree, on noise, and against a plain training loop."""

import numpy as np
import pytest
import torch

from bertology_utils.probes import (
    NonFiniteError,
    Split,
    TooFewExamplesError,
    UnequalLengthError,
    depth_probe,
    distance_probe,
    fit_structural,
    random_split,
)
from bertology_utils.probes import structural as module
from bertology_utils.stimuli import treebank

WIDTH = 48


def embed(bank, seed=0):
    """Vectors whose squared distances are tree distances: each edge adds a direction of its own.

    Layer 0 is noise. In layer 1 a word is the sum of unit steps along its path from the root, one
    of the axes per word, under a random rotation and with 16 further dimensions of noise.
    """
    rng = np.random.default_rng(seed)
    axes = WIDTH - 16
    rotation = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
    rows = []
    for sentence in bank:
        vectors = np.zeros((len(sentence), WIDTH))
        own = rng.permutation(axes)
        for word in range(len(sentence)):
            node = word
            while (head := sentence.head_of(node)) is not None:
                vectors[word, own[node]] = 1.0
                node = head
        vectors[:, axes:] = rng.normal(size=(len(sentence), 16))
        rows.append(vectors @ rotation)
    layer = np.concatenate(rows)
    return np.stack([rng.normal(size=layer.shape), layer]).astype(np.float32)


@pytest.fixture(scope="module")
def bank():
    return treebank(500, seed=0, max_words=25)


@pytest.fixture(scope="module")
def features(bank):
    return embed(bank)


def test_planted_trees_come_back_and_noise_stays_at_the_chain(bank, features):
    split = random_split(len(bank))
    noise, tree = distance_probe(
        features, bank, split, rank=WIDTH, lr=3e-3, epochs=40, model="planted"
    )
    assert tree.uuas > 0.95
    assert tree.dspr > 0.9
    assert noise.uuas < tree.chain_uuas + 0.05
    # A word is nearest to itself even in noise, hence more than 0.
    assert 0 < noise.dspr < 0.35
    assert tree.interval[0] <= tree.uuas <= tree.interval[1]
    assert (tree.n, tree.rank, tree.model, tree.seed) == (len(split.test), WIDTH, "planted", 0)
    assert 0.2 < tree.baselines["right-branching"] < 0.8


def test_planted_depths_come_back(bank, features):
    noise, tree = depth_probe(
        features, bank, random_split(len(bank)), rank=WIDTH, lr=3e-3, epochs=40
    )
    assert tree.root_accuracy > 0.9
    assert tree.nspr > 0.85
    assert noise.root_accuracy < 0.4
    assert noise.nspr < 0.3
    assert tree.baselines["first word"] < 0.5


def test_a_low_rank_holds_less(bank, features):
    split = random_split(len(bank))
    options = {"lr": 3e-3, "epochs": 15}
    narrow = distance_probe(features[1:], bank, split, rank=2, **options)[0]
    wide = distance_probe(features[1:], bank, split, rank=32, **options)[0]
    assert narrow.uuas < wide.uuas - 0.1


def test_loss_equals_the_plain_formula(bank, features):
    """Sentence by sentence, pair by pair, without padding."""
    x = torch.from_numpy(features)
    part = [3, 7, 11, 30, 4]
    starts = np.concatenate([[0], np.cumsum([len(s) for s in bank])])
    maps = torch.randn(2, WIDTH, 5, generator=torch.Generator().manual_seed(0))
    for kind in ("distance", "depth"):
        data = module._Sorted(x, bank.sentences, starts, part, kind, 8)
        loss = module._distance_loss if kind == "distance" else module._depth_loss
        ours = loss(data, data.batches[0], maps)
        plain = torch.zeros(2)
        for i in part:
            words = x[:, starts[i] : starts[i + 1]] @ maps
            n = len(bank[i])
            gold = bank[i].distances() if kind == "distance" else bank[i].depths()
            for a in range(n):
                if kind == "depth":
                    plain += (words[:, a].square().sum(1) - gold[a]).abs() / n
                    continue
                for b in range(n):
                    distance = (words[:, a] - words[:, b]).square().sum(1)
                    plain += (distance - gold[a][b]).abs() / n**2
        torch.testing.assert_close(ours, plain / len(part), rtol=1e-4, atol=1e-4)


def test_predictions_are_those_of_the_map(bank, features):
    x = torch.from_numpy(features)
    for kind in ("distance", "depth"):
        probes = fit_structural(x, bank.sentences, random_split(len(bank)), kind, rank=4, epochs=1)
        said = probes.predict(x, [len(s) for s in bank])
        words = (x[1, : len(bank[0])] - probes.mean[1]) @ probes.maps[1]
        if kind == "depth":
            expected = words.square().sum(1)
        else:
            expected = torch.cdist(words, words).square()
        np.testing.assert_allclose(said[1][0], expected.numpy(), atol=1e-2, rtol=1e-3)


def test_structural_probes_repeat_and_do_not_depend_on_companions(bank, features):
    split = random_split(len(bank))
    options = {"rank": 8, "epochs": 3}
    both = distance_probe(features, bank, split, **options)
    assert both == distance_probe(features, bank, split, **options)
    alone = distance_probe(features[1:], bank, split, **options)[0]
    assert alone.uuas == pytest.approx(both[1].uuas, abs=0.01)


def test_bad_input_is_named(bank, features):
    split = random_split(len(bank))
    with pytest.raises(UnequalLengthError, match="words"):
        distance_probe(features[:, 1:], bank, split, rank=4)
    with pytest.raises(UnequalLengthError, match="row 500"):
        distance_probe(features, bank, Split([0], [], [500]), rank=4)
    with pytest.raises(ValueError, match="rank must lie in 1..48"):
        distance_probe(features, bank, split, rank=49)
    with pytest.raises(ValueError, match="'width'"):
        fit_structural(torch.from_numpy(features), bank.sentences, split, "width")
    broken = features.copy()
    broken[0, 0, 0] = np.nan
    with pytest.raises(NonFiniteError):
        depth_probe(broken, bank, split, rank=4)
    single = treebank(3, seed=1).sentences
    with pytest.raises(TooFewExamplesError, match="two or more words"):
        module._Sorted(
            torch.from_numpy(features), [s for s in single], np.arange(4), [], "distance", 4
        )
