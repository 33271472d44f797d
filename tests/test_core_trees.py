"""Tree scores, structural losses and masking on cases small enough to work out by hand."""

import numpy as np
import pytest
import torch
from sentences import sentence

from bertology_utils.probes import (
    ProbeError,
    Split,
    TooFewExamplesError,
    UnequalLengthError,
    fit_structural,
    structural,
)
from bertology_utils.probes import tree_metrics as metrics
from bertology_utils.training.masking import (
    ALWAYS_MASK,
    BERT_80_10_10,
    MaskingScheme,
    apply_masking,
)

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

#: w0 <- w1 -> w2, and w1 -> the full stop w3
SHORT = sentence([2, 0, 2, 2], ["NOUN", "VERB", "NOUN", "PUNCT"])
#: a chain w0 -> w1 -> w2
CHAIN = sentence([0, 1, 2])

# --- tree scores --------------------------------------------------------------------------------


def test_edges_count_once_whatever_their_direction():
    hits, totals = metrics.edge_hits(
        [np.array([[1, 0], [0, 1], [3, 1]]), np.array([[2, 0], [2, 1]])], [SHORT, CHAIN]
    )
    assert hits.tolist() == [1, 1] and totals.tolist() == [2, 2]
    assert metrics.uuas([np.array([[1, 0]]), np.array([[2, 0]])], [SHORT, CHAIN]) == 1 / 4
    with pytest.raises(UnequalLengthError, match="1 sets of edges for 2 sentences"):
        metrics.edge_hits([np.empty((0, 2))], [SHORT, CHAIN])
    # A sentence of one word has no edge to find, and costs nothing.
    assert metrics.uuas([np.array([[0, 1], [1, 2]]), np.empty((0, 2))], [CHAIN, sentence([0])]) == 1


def test_spanning_trees_leave_short_sentences_empty():
    far = np.array([[0, 1, 5, 0], [1, 0, 1, 0], [5, 1, 0, 0], [0, 0, 0, 0]], dtype=float)
    one = sentence([0, 1], ["NOUN", "PUNCT"])
    trees = metrics.spanning_trees([np.zeros((2, 2)), far, far[:3, :3]], [one, SHORT, CHAIN])
    assert [tree.shape for tree in trees] == [(0, 2), (2, 2), (2, 2)]
    assert all(np.issubdtype(tree.dtype, np.integer) for tree in trees)
    assert {tuple(sorted(edge)) for edge in trees[1].tolist()} == {(0, 1), (1, 2)}
    two, three = metrics.spanning_trees([far[:2, :2], far[:3, :3]], [sentence([0, 1]), CHAIN])
    assert two.tolist() == [[0, 1]] and len(three) == 2
    # Positions are those of the whole sentence, punctuation counted.
    middle = sentence([3, 3, 0], ["NOUN", "PUNCT", "VERB"])
    (tree,) = metrics.spanning_trees([np.ones((3, 3))], [middle])
    assert sorted(tree[0].tolist()) == [0, 2]


def test_heads_are_counted_without_root_and_punctuation():
    hits, totals = metrics.head_hits([(2, 0, 1, 2), (2, 3, 0)], [SHORT, CHAIN])
    assert hits.tolist() == [1, 0] and totals.tolist() == [2, 2]
    assert metrics.uas([(2, 0, 1, 2), (0, 1, 2)], [SHORT, CHAIN]) == 3 / 4
    with pytest.raises(UnequalLengthError, match="heads for 1 of 2 sentences"):
        metrics.head_hits([(0, 1, 2)], [CHAIN, SHORT])
    with pytest.raises(UnequalLengthError, match="2 heads for the 3 words"):
        metrics.head_hits([(0, 1)], [CHAIN])
    with pytest.raises(ProbeError, match="no word with a head"):
        metrics.uas([(0,)], [sentence([0])])


def test_the_root_is_the_shallowest_content_word():
    depths = [np.array([1.0, 0.5, 2, 0]), np.array([0.3, 0.2, 0.9]), np.array([0.0])]
    lone = sentence([0], ["PUNCT"])
    found = metrics.root_hits(depths, [SHORT, CHAIN, lone])
    assert found.tolist() == [True, False, False]
    assert metrics.root_hits([np.array([9.0])], [sentence([0])]).tolist() == [True]
    assert found.dtype == metrics.root_hits([], []).dtype == bool
    with pytest.raises(ValueError, match="longer than"):
        metrics.root_hits(depths[:1], [SHORT, CHAIN])


def test_chains_by_hand():
    assert metrics.chain(SHORT).tolist() == [[0, 1], [1, 2]]
    assert metrics.chain(sentence([0, 1, 2, 3])).tolist() == [[0, 1], [1, 2], [2, 3]]
    assert metrics.branching_heads(SHORT, "right") == (0, 1, 2, 1)
    assert metrics.branching_heads(SHORT, "left") == (2, 3, 0, 3)
    assert metrics.branching_heads(sentence([0, 1], ["PUNCT", "PUNCT"]), "right") == (0, 1)
    with pytest.raises(ValueError, match="'down'"):
        metrics.branching_heads(SHORT, "down")


def test_correlations_by_length():
    up, down = np.arange(5.0), -np.arange(5.0)
    flat = np.ones(5)
    found = metrics.spearman_by_length([up, down, up, flat, up[:3]], [up, up, up, up, up[:3]])
    # Two rise, one falls, and one that does not vary is left out.
    assert found == {3: pytest.approx(1), 5: pytest.approx(1 / 3)}
    assert list(found) == [3, 5]
    assert metrics.spearman_by_length([flat], [up]) == {}
    pair = metrics.spearman_by_length([up[:2], down[:2], up[:2]], [up[:2]] * 3)
    assert pair == {2: pytest.approx(1 / 3)}
    assert metrics.mean_spearman({3: 1.0, 5: 0.5, 50: 0.25, 51: 1.0}) == 0.375
    assert metrics.mean_spearman({4: 1.0, 51: 1.0}) is None
    table = np.abs(up[:, None] - up)
    broken = table.copy()
    broken[0] = 1.0
    # Row by row: the constant row drops out, the others agree.
    assert metrics.spearman_by_length([broken], [table]) == {5: pytest.approx(1)}
    assert metrics.spearman_by_length([table, -table], [table, table]) == {5: pytest.approx(0)}


# --- structural probes --------------------------------------------------------------------------


def two_sentences():
    """Words of CHAIN and SHORT on a line: the squared distance of neighbours is 1 in CHAIN."""
    words = torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 2], [2, 2], [2, 0], [3, 3]])
    return torch.stack([words, 2 * words])


def test_batches_hold_words_weights_and_gold():
    for kind in ("distance", "depth"):
        batch = structural._batch([CHAIN, SHORT], 10, kind, "cpu")
        assert batch.words == slice(10, 17)
        assert batch.rows.tolist() == [[0, 1, 2, 0], [3, 4, 5, 6]]
        sums = batch.weight.flatten(1).sum(1)
        torch.testing.assert_close(sums, torch.ones(2))
        assert batch.gold.dtype == batch.weight.dtype == torch.float32
    depth = batch
    assert depth.gold.tolist() == [[0, 1, 2, 0], [1, 0, 1, 1]]
    torch.testing.assert_close(depth.weight[0], torch.tensor([1 / 3, 1 / 3, 1 / 3, 0]))
    distance = structural._batch([CHAIN, SHORT], 0, "distance", "cpu")
    assert distance.gold[0].tolist() == [[0, 1, 2, 0], [1, 0, 1, 0], [2, 1, 0, 0], [0] * 4]
    assert distance.weight[0, 3].tolist() == [0] * 4
    torch.testing.assert_close(distance.weight[0, :3, :3], torch.full((3, 3), 1 / 9))


def test_sorted_words_follow_the_sentences():
    features = two_sentences()
    starts = structural.word_starts(features, [CHAIN, SHORT])
    assert starts.tolist() == [0, 3, 7] and starts.dtype == np.int64
    data = structural._Sorted(features, [CHAIN, SHORT], starts, [1, 0], "distance", 1)
    torch.testing.assert_close(data.words, features)  # the shorter one first
    assert [b.words for b in data.batches] == [slice(0, 3), slice(3, 7)]
    turned = [SHORT, CHAIN]  # the shorter one first, wherever it stands
    data = structural._Sorted(features, turned, [0, 4, 7], [0, 1], "distance", 1)
    torch.testing.assert_close(data.words, features[:, [4, 5, 6, 0, 1, 2, 3]])
    one = structural._Sorted(features, [CHAIN, SHORT], starts, [1], "depth", 5)
    torch.testing.assert_close(one.words, features[:, 3:])
    with pytest.raises(UnequalLengthError, match="2 sentences of 7 words, but features of 6"):
        structural.word_starts(features[:, 1:], [CHAIN, SHORT])


def test_a_single_word_has_a_depth_but_no_distance():
    pair = structural._Sorted(torch.zeros(1, 2, 2), [sentence([0, 1])], [0, 2], [0], "distance", 4)
    assert pair.batches[0].gold.tolist() == [[[0, 1], [1, 0]]]
    features, alone = torch.zeros(1, 1, 2), [sentence([0])]
    assert len(structural._Sorted(features, alone, [0, 1], [0], "depth", 4).batches) == 1
    with pytest.raises(TooFewExamplesError, match="no sentence of two or more words"):
        structural._Sorted(features, alone, [0, 1], [0], "distance", 4)


def test_losses_by_hand():
    features = two_sentences()[:1]
    data = structural._Sorted(features, [CHAIN], np.array([0, 3]), [0], "distance", 1)
    identity = torch.eye(2)[None]
    # Squared distances of CHAIN: 1, 1 and 2, as in its tree; doubled vectors: 4, 4 and 8.
    assert structural._distance_loss(data, data.batches[0], identity).tolist() == [0]
    assert structural._distance_loss(data, data.batches[0], 2 * identity)[0] == pytest.approx(
        2 * (3 + 3 + 6) / 9
    )
    data = structural._Sorted(features, [CHAIN], np.array([0, 3]), [0], "depth", 1)
    assert structural._depth_loss(data, data.batches[0], identity).tolist() == [0]
    assert structural._depth_loss(data, data.batches[0], 2 * identity)[0] == pytest.approx(
        (0 + 3 + 6) / 3
    )


def test_squared_distances_by_hand():
    vectors = torch.tensor([[0.0, 0], [3, 4], [0, 4]])
    expected = [[0, 25, 16], [25, 0, 9], [16, 9, 0]]
    assert structural._squared_distances(vectors).tolist() == expected


@pytest.mark.parametrize("kind", ["distance", "depth"])
def test_predictions_of_a_given_map(kind):
    features = two_sentences()
    maps, mean = torch.eye(2).repeat(2, 1, 1), torch.ones(2, 1, 2)
    probes = structural.StructuralProbes(kind, maps, mean, None)
    said = probes.predict(features, [3, 4])
    assert [len(layer) for layer in said] == [2, 2]
    centred = features[1, 3:] - 1
    expected = centred.square().sum(1) if kind == "depth" else torch.cdist(centred, centred) ** 2
    np.testing.assert_allclose(said[1][1], expected.numpy(), atol=1e-4)
    with pytest.raises(UnequalLengthError, match="1 sentences of 3 words, features of 7"):
        probes.predict(features, [3])


def test_training_lowers_the_loss_and_stops_by_the_development_part():
    bank = [CHAIN, SHORT, sentence([2, 0, 2, 3, 4]), sentence([0, 1, 1, 3])] * 3
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(2, sum(len(s) for s in bank), 6, generator=generator)
    split = Split(list(range(6)), [6, 7, 8], [9, 10, 11])
    found = fit_structural(features, bank, split, rank=3, epochs=30, patience=30, lr=0.05)
    assert found.maps.shape == (2, 6, 3) and found.mean.shape == (2, 1, 6)
    lengths = [len(s) for s in bank]
    training = features[:, : sum(lengths[:6])]
    torch.testing.assert_close(found.mean, training.mean(1, keepdim=True), atol=1e-5, rtol=0)

    def loss(probes):
        said = probes.predict(features, lengths)[0]
        gold = [np.array(s.distances()) for s in bank]
        return np.mean([np.abs(said[i] - gold[i]).mean() for i in range(6)])

    untrained = fit_structural(features, bank, split, rank=3, epochs=1, lr=1e-9)
    assert loss(found) < 0.75 * loss(untrained)
    again = fit_structural(features, bank, split, rank=3, epochs=30, patience=30, lr=0.05)
    torch.testing.assert_close(again.maps, found.maps)
    other = fit_structural(features, bank, split, rank=3, epochs=30, patience=30, lr=0.05, seed=1)
    assert not torch.allclose(other.maps, found.maps)
    for rank in (0, 7):
        with pytest.raises(ValueError, match=f"rank must lie in 1..6, got {rank}"):
            fit_structural(features, bank, split, rank=rank)
    assert fit_structural(features, bank, split, rank=6, epochs=1).maps.shape == (2, 6, 6)
    assert fit_structural(features, bank, split, rank=1, epochs=1).maps.shape == (2, 6, 1)
    with pytest.raises(ValueError, match="'distance' or 'depth'"):
        fit_structural(features, bank, split, "height", rank=2)


def test_training_stops_once_the_development_loss_does_not_fall():
    bank = [CHAIN, SHORT] * 3
    features = torch.randn(2, 21, 3, generator=torch.Generator().manual_seed(2))
    split = Split([0, 1, 2], [3, 4], [5])
    still = {"rank": 2, "lr": 0.0}  # nothing is learnt, so nothing gets better
    assert fit_structural(features, bank, split, **still).training.epochs == 5
    assert fit_structural(features, bank, split, patience=2, **still).training.epochs == 2
    assert fit_structural(features, bank, split, patience=99, **still).training.epochs == 20
    assert fit_structural(features, bank, split, **still).training.best_epoch == (0, 0)


@pytest.mark.parametrize("kind", ["distance", "depth"])
def test_training_starts_where_vectors_of_deviation_1_are_one_apart(kind):
    bank = [CHAIN, SHORT] * 3
    features = torch.randn(2, 21, 3, generator=torch.Generator().manual_seed(2))
    split = Split([0, 1, 2], [3, 4], [5])
    found = fit_structural(features, bank, split, kind, rank=2, epochs=1, lr=0.0, seed=4)
    assert found.kind == kind
    deviation = features[:, :10].std(1, correction=0)[:, :, None]
    generator = torch.Generator().manual_seed(4)
    start = (2 * torch.rand(3, 2, generator=generator) - 1) * (3 / (3 * 2)) ** 0.5
    torch.testing.assert_close(found.maps, start / deviation)


def test_what_training_takes_for_granted():
    bank = [CHAIN, SHORT] * 21
    n = 7 * 21
    features = torch.randn(1, n, 64, generator=torch.Generator().manual_seed(3))
    split = Split(list(range(38)), [38, 39], [40, 41])
    plain = fit_structural(features, bank, split)
    settings = {"rank": 64, "epochs": 20, "patience": 5, "lr": 4e-4, "batch_size": 32, "seed": 0}
    named = fit_structural(features, bank, split, "distance", **settings)
    assert plain.maps.shape == (1, 64, 64) and plain.kind == "distance"
    assert torch.equal(plain.maps, named.maps)


@pytest.mark.parametrize("kind", ["distance", "depth"])
def test_development_loss_is_the_mean_over_sentences(kind):
    bank = [CHAIN, SHORT, sentence([2, 0, 2, 3, 4]), sentence([0, 1, 1, 3]), CHAIN, SHORT]
    generator = torch.Generator().manual_seed(1)
    features = torch.randn(2, sum(len(s) for s in bank), 4, generator=generator) + 1
    split = Split([0, 1], [2, 3, 4], [5])
    found = fit_structural(features, bank, split, kind, rank=2, epochs=1, batch_size=2)
    gold = [np.array(s.distances() if kind == "distance" else s.depths()) for s in bank]
    for layer, said in enumerate(found.predict(features, [len(s) for s in bank])):
        losses = [np.abs(said[i] - gold[i]).mean() for i in (2, 3, 4)]
        assert found.training.dev_loss[layer] == pytest.approx(np.mean(losses), rel=1e-4)


# --- masking ------------------------------------------------------------------------------------


def masked(scheme, n=4000, seed=0, weights=None, ids=None):
    ids = np.full((4, n // 4), 7) if ids is None else ids
    maskable = np.ones(ids.shape, bool)
    maskable[0] = False
    return ids, *apply_masking(
        ids, maskable, scheme, mask_id=3, vocab_size=1000, rng=np.random.default_rng(seed),
        weights=weights,
    )  # fmt: skip


def test_fifteen_in_a_hundred_of_which_eighty_ten_and_ten():
    ids, new, chosen = masked(BERT_80_10_10)
    assert chosen.sum() == round(0.15 * 3000) and not chosen[0].any()
    assert new.shape == chosen.shape == ids.shape and (ids == 7).all()
    assert (new[~chosen] == 7).all()
    fate = new[chosen]
    assert (fate == 3).mean() == pytest.approx(0.8, abs=0.05)
    assert (fate == 7).mean() == pytest.approx(0.1, abs=0.04)
    others = fate[(fate != 3) & (fate != 7)]
    assert len(others) == pytest.approx(45, abs=15)
    assert 0 <= others.min() and others.max() < 1000 and len(set(others)) > len(others) / 2
    _, always, chosen = masked(ALWAYS_MASK)
    assert (always[chosen] == 3).all()
    _, never, chosen = masked(MaskingScheme(0.5, mask=0.0, random=0.0))
    assert (never == 7).all() and chosen.sum() == 1500
    _, swapped, chosen = masked(MaskingScheme(0.5, mask=0.0, random=1.0))
    assert (swapped[chosen] == 7).mean() < 0.01 and (swapped[chosen] == 3).mean() < 0.01


def test_random_pieces_come_from_the_whole_vocabulary():
    ids = np.full((2, 200), 7)
    new, chosen = apply_masking(
        ids, ids == 7, MaskingScheme(0.9, 0.0, 1.0), mask_id=5, vocab_size=3,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert set(new[chosen].tolist()) == {0, 1, 2}


class Given:
    """Draws that are known beforehand."""

    def __init__(self, fate):
        self.fate = np.array(fate)

    def choice(self, candidates, size, replace, p):
        assert size == len(self.fate) and not replace
        return candidates[:size]

    def random(self, n):
        return self.fate[:n]

    def integers(self, low, high, size):
        assert (low, high) == (0, 50)
        return np.full(size, 40)


def test_fates_by_the_shares():
    ids = np.full((1, 8), 7)
    new, chosen = apply_masking(
        ids, ids == 7, MaskingScheme(0.75, mask=0.5, random=0.25), mask_id=3, vocab_size=50,
        rng=Given([0.0, 0.4999, 0.5, 0.7499, 0.75, 0.9999]),
    )  # fmt: skip
    assert new.tolist() == [[3, 3, 40, 40, 7, 7, 7, 7]]
    assert chosen.tolist() == [[True] * 6 + [False] * 2]


def test_one_position_at_least_and_only_where_allowed():
    ids = np.arange(10).reshape(2, 5)
    maskable = np.zeros((2, 5), bool)
    maskable[1, 2] = True
    new, chosen = apply_masking(
        ids, maskable, ALWAYS_MASK, mask_id=99, vocab_size=5, rng=np.random.default_rng(0)
    )
    assert chosen.sum() == 1 and chosen[1, 2] and new[1, 2] == 99 and ids[1, 2] == 7
    with pytest.raises(ValueError, match="no position"):
        apply_masking(
            ids, maskable & False, ALWAYS_MASK, mask_id=9, vocab_size=5,
            rng=np.random.default_rng(0),
        )  # fmt: skip


def test_weights_say_how_readily_a_piece_is_chosen():
    ids = np.tile([1, 2], (4, 500))
    weights = np.array([0.0, 1.0, 9.0])
    _, _, chosen = masked(ALWAYS_MASK, ids=ids, weights=weights)
    assert chosen.sum() == 450
    assert chosen[ids == 2].sum() == pytest.approx(8 * chosen[ids == 1].sum(), rel=0.3)


@pytest.mark.parametrize(
    "shares", [{"rate": 0.0}, {"rate": 1.0}, {"mask": -0.1}, {"random": -0.1}, {"mask": 0.95}]
)
def test_shares_that_are_none(shares):
    with pytest.raises(ValueError, match="must"):
        MaskingScheme(**shares)
    assert MaskingScheme(0.999, 0.0, 0.0).rate == 0.999
    assert MaskingScheme(0.5, 0.5, 0.5).mask == 0.5
