"""Codes of labels against plain implementations, and erasure in badly scaled vectors."""

import math

import numpy as np
import pytest
import torch
from torch.distributions import Categorical, Normal, kl_divergence

from bertology_utils.probes import (
    ProbeError,
    Split,
    codelength,
    control_labels,
    inlp,
    leace,
    online_codelength,
    probe_layers,
    random_erasure,
    random_split,
    selectivity,
    variational_codelength,
)
from bertology_utils.probes.erasure import _extended

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

# --- the online code ----------------------------------------------------------------------------


def spied(monkeypatch):
    """Keep what every block's probe is given; probabilities are a half throughout."""
    given = []

    def block(rows, codes, start, end, classes, kind, seed, options):
        given.append((rows, codes, start, end, classes, kind, seed, options))
        return torch.full((len(rows), end - start), math.log(0.5))

    monkeypatch.setattr(codelength, "_block", block)
    return given


def test_vectors_labels_and_groups_are_sent_in_one_order(monkeypatch):
    given = spied(monkeypatch)
    n = 90
    labels = [i % 3 for i in range(n)]
    features = np.arange(n, dtype=np.float32).reshape(1, n, 1)
    groups = [i // 4 for i in range(n)]
    settings = {"portions": (0.5, 1.0), "kind": "mlp", "seed": 5, "hidden": 7}
    for owner in (None, groups):
        given.clear()
        (found,) = online_codelength(features, labels, groups=owner, **settings)
        order = codelength._order(n, owner, 5).tolist()
        ((rows, codes, *rest),) = given
        assert rows[0, :, 0].tolist() == order
        assert codes.tolist() == [labels[i] for i in order]
        assert rest == [45, 90, 3, "mlp", 5, {"hidden": 7}]
        # Of the first block every label costs log2 3 bits, in double precision.
        assert found.parts[0] == (0, pytest.approx(45 * math.log2(3), rel=1e-12))
        mixed = (45 * 0.5 + 1 / 3) / 46
        assert found.parts[1] == (45, pytest.approx(-45 * math.log2(mixed)))
        assert (found.kind, found.n_classes) == ("mlp", 3)


def test_sentences_are_resampled_whole(monkeypatch):
    spied(monkeypatch)
    labels = [i % 2 for i in range(80)]
    features = np.zeros((1, 80, 1))
    by_hand = {}
    for groups in (None, [i // 8 for i in range(80)]):
        (found,) = online_codelength(features, labels, portions=(0.5, 1), groups=groups, seed=2)
        order = codelength._order(80, groups, 2)
        bits = np.r_[np.ones(40), np.full(40, -math.log2((40 * 0.5 + 0.5) / 41))]
        owner = np.arange(80) if groups is None else np.array(groups)[order]
        _, first = np.unique(owner, return_index=True)
        number = {owner[i]: k for k, i in enumerate(np.sort(first))}
        code = np.array([number[o] for o in owner])
        by_hand[groups is None] = codelength.ratio_interval(
            np.bincount(code).astype(float), np.bincount(code, weights=bits), 2
        )
        assert found.interval == pytest.approx(by_hand[groups is None])


def test_the_interval_is_of_the_examples_in_the_order_of_sending(monkeypatch):
    def block(rows, codes, start, end, *settings):
        return torch.linspace(0.1, 0.9, end - start).log()[None].repeat(len(rows), 1)

    monkeypatch.setattr(codelength, "_block", block)
    labels = [i % 2 for i in range(80)]
    bits = np.r_[np.ones(40), -np.log2((40 * np.linspace(0.1, 0.9, 40) + 0.5) / 41)]
    for seed in (0, 2):
        (found,) = online_codelength(np.zeros((1, 80, 1)), labels, portions=(0.5, 1), seed=seed)
        expected = codelength.ratio_interval(np.ones(80), bits, seed)
        assert found.interval == pytest.approx(expected, rel=1e-6)


def test_what_is_taken_for_granted(monkeypatch):
    given = spied(monkeypatch)
    labels = [0, 1] * 1500
    features = np.zeros((1, 3000, 1))
    (found,) = online_codelength(features, labels)
    assert (found.seed, found.model, found.kind) == (0, "features", "linear")
    assert (found.code, found.layer, found.n) == ("online", 0, 3000)
    # ends at 3, 6, 12 are passed over: fewer than twenty
    ends = [24, 48, 96, 188, 375, 750, 1500, 3000]
    assert [start for start, _ in found.parts] == [0, *ends[:-1]]
    assert [(start, end) for _, _, start, end, *_ in given] == list(
        zip(ends[:-1], ends[1:], strict=True)
    )
    assert {tuple(options) for *_, options in given} == {()}


@pytest.mark.parametrize(
    "portions", [(), (0.5, 0.9), (0.5,), (0.6, 0.5, 1.0), (0.5, 0.5, 1.0), (0.0, 1.0), (-0.5, 1)]
)
def test_portions_grow_from_above_0_to_1(portions):
    with pytest.raises(ValueError, match="portions must grow from above 0 to 1, got"):
        online_codelength(np.zeros((1, 60, 1)), [0, 1] * 30, portions=portions)


def test_one_portion_is_the_uniform_code():
    (found,) = online_codelength(np.zeros((1, 60, 1)), [0, 1] * 30, portions=(1,))
    assert found.parts == ((0, 60.0),) and found.compression == 1


@pytest.mark.parametrize("code", [online_codelength, variational_codelength])
def test_every_label_is_read(code):
    settings = {"portions": (1,)} if code is online_codelength else {"epochs": 0}
    for place in (28, 29):  # the last but one, and the last
        labels = [0, 1] * 15
        labels[place] = 2
        found = code(np.zeros((1, 30, 1)), labels, **settings)[0]
        assert found.n_classes == 3 and found.uniform_bits == pytest.approx(30 * math.log2(3))
        with pytest.raises(ProbeError, match=f"example {place} has the label None"):
            code(np.zeros((1, 30, 1)), [None if v == 2 else v for v in labels], **settings)


def some_data(n=120, classes=3):
    generator = torch.Generator().manual_seed(3)
    codes = torch.randint(0, classes, (n,), generator=generator)
    rows = torch.randn(2, n, 4, generator=generator)
    rows[1, :, 0] += 2 * codes
    return rows, codes


@pytest.mark.parametrize("kind", ["linear", "mlp"])
def test_a_block_does_not_see_what_comes_after_it(kind):
    rows, codes = some_data()
    found = codelength._block(rows, codes, 60, 90, 3, kind, 0, {})
    assert found.shape == (2, 30)
    cut = codelength._block(rows[:, :90], codes[:90], 60, 90, 3, kind, 0, {})
    torch.testing.assert_close(found, cut, atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", ["linear", "mlp"])
@pytest.mark.parametrize(("start", "held"), [(60, 30), (90, 45), (200, 150), (400, 340)])
def test_a_probe_is_mixed_with_the_frequencies_by_the_labels_held_out(
    monkeypatch, start, held, kind
):
    """Half of the first labels, up to fifty, then fifteen in a hundred are held out."""
    rows, codes = some_data(500)
    # The first layer says a little about each label: about as much as makes the odds even.
    rows[0, :, :3] = 8 / (start - held) * torch.nn.functional.one_hot(codes, 3)
    asked = []

    class Fitted:
        def log_probs(self, features):
            odds = features[:, :, :3].float()
            return odds.log_softmax(-1)

    def fit(train, labels, classes, *, dev, **options):
        asked.append((train.shape[1], len(labels), classes, options))
        assert torch.equal(dev[0], rows[:, held:start]) and torch.equal(dev[1], codes[held:start])
        return Fitted()

    monkeypatch.setattr(codelength, f"fit_{kind}", fit)
    end = start + 20
    found = codelength._block(rows, codes, start, end, 3, kind, 8, {"l2": 0.5})
    options = {"l2": 0.5} if kind == "linear" else {"l2": 0.5, "seed": 8}
    assert asked == [(held, held, 3, options)]
    counts = np.bincount(codes[:held], minlength=3) + 0.5
    plain = counts / counts.sum()
    for layer in range(2):
        said = rows[layer, :, :3].double().softmax(-1).numpy()
        label = codes.numpy()
        gain = sum(math.log(said[i, label[i]] / plain[label[i]]) for i in range(held, start))
        weight = 1 / (1 + 16 * math.exp(-gain))
        expected = [
            weight * said[i, label[i]] + (1 - weight) * plain[label[i]] for i in range(start, end)
        ]
        np.testing.assert_allclose(found[layer].exp().numpy(), expected, rtol=2e-3)


# --- the variational code -----------------------------------------------------------------------

#: columns of mean 0 and deviation 1, so that nothing is standardised
SQUARE = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]], dtype=np.float32)


def test_before_any_training_only_noise_is_sent():
    labels = [0, 1, 1, 1]
    (found,) = variational_codelength(SQUARE[None], labels, epochs=0, seed=4)
    # Means are 0 and all deviations e^-3, so that every logit has the variance 3 e^-6; the best
    # prior is the posterior itself, and the two widths cost half a log2 4 each.
    assert found.parts[1] == ("weights", pytest.approx(2.0, abs=1e-5))
    generator = torch.Generator().manual_seed(4)
    nats = 0.0
    for _ in range(4):
        logits = math.sqrt(3) * math.exp(-3) * torch.randn(4, 2, generator=generator).double()
        nats += float(-logits.log_softmax(1)[range(4), labels].sum()) / 4
    assert found.parts[0] == ("labels", pytest.approx(nats / math.log(2), abs=1e-5))
    assert found.bits == pytest.approx(2 + nats / math.log(2), abs=1e-5)
    assert found.uniform_bits == 4
    assert found.frequency_bits == pytest.approx(codelength._frequency_bits(np.array(labels), 2))


def plain_variational(rows, labels, classes, epochs, lr, size, seed):
    """One layer, with the divergence of two Gaussians in full: (bits of labels, of weights)."""
    rows, labels = torch.as_tensor(rows), torch.as_tensor(labels)
    n, width = rows.shape
    mean = [torch.zeros(width, classes), torch.zeros(1, classes)]
    log_spread = [torch.full_like(m, -3.0) for m in mean]
    leaves = [p.requires_grad_() for p in (*mean, *log_spread)]
    adam = torch.optim.Adam(leaves, lr=lr)
    steps = torch.optim.lr_scheduler.LinearLR(adam, 1.0, 0.1, total_iters=max(1, epochs - 1))
    noise = torch.Generator().manual_seed(seed)

    def cost_of_weights():
        total = 0.0
        for m, s in zip(mean, log_spread, strict=True):
            prior = (m**2 + (2 * s).exp()).mean().sqrt()
            total = total + kl_divergence(Normal(m, s.exp()), Normal(0.0, prior)).sum()
        return total

    def cost_of_labels(batch, generator):
        x = rows[batch]
        middle = x @ mean[0] + mean[1]
        spread = ((x**2) @ (2 * log_spread[0]).exp() + (2 * log_spread[1]).exp()).sqrt()
        logits = middle + spread * torch.randn(middle.shape, generator=generator)
        return -Categorical(logits=logits).log_prob(labels[batch])

    for _ in range(epochs):
        for batch in torch.randperm(n, generator=noise).split(size):
            adam.zero_grad()
            (cost_of_labels(batch, noise).mean() + cost_of_weights() / n).backward()
            adam.step()
        steps.step()
    with torch.no_grad():
        fixed = torch.Generator().manual_seed(seed)
        draws = [float(cost_of_labels(torch.arange(n), fixed).sum()) for _ in range(4)]
        nats = float(cost_of_weights()) + math.log(n)
    return sum(draws) / 4 / math.log(2), nats / math.log(2)


def square_data():
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 3, 96)
    one = np.tile(SQUARE, (24, 1))
    labels[one[:, 0] > 0] = 0  # half of the labels follow from the first column
    two = np.ascontiguousarray(one[:, ::-1])
    return np.stack([one, two, one[np.argsort(draw.random(96))]]), labels


def test_variational_code_is_that_of_a_plain_implementation():
    features, labels = square_data()
    settings = {"epochs": 5, "lr": 0.1, "batch_size": 40, "seed": 3}
    found = variational_codelength(features, labels, **settings)
    for layer, result in enumerate(found):
        expected = plain_variational(features[layer], labels, 3, 5, 0.1, 40, 3)
        bits = [bits for _, bits in result.parts]
        assert bits == pytest.approx(expected, rel=5e-3)
    assert found[2].bits > found[0].bits


def test_no_layer_s_code_depends_on_its_companions_nor_on_chance():
    features, labels = square_data()
    settings = {"epochs": 3, "lr": 0.1, "seed": 1}
    together = variational_codelength(features, labels, **settings)
    torch.manual_seed(7)
    for layer, result in enumerate(together):
        (alone,) = variational_codelength(features[layer : layer + 1], labels, **settings)
        assert alone.bits == pytest.approx(result.bits, rel=1e-3)
    again = variational_codelength(features, labels, **settings)
    assert [r.parts for r in again] == [r.parts for r in together]


def test_variational_code_of_a_long_set_and_its_defaults():
    labels = [0, 1, 1, 0] * 1200
    features = np.tile(SQUARE, (1200, 1))[None]
    (found,) = variational_codelength(features, labels, epochs=0, seed=2)
    generator, nats = torch.Generator().manual_seed(2), 0.0
    for _ in range(4):  # read 4096 at a time
        for size in (4096, 704):
            draw = torch.randn(size, 2, generator=generator).double()
            part = labels[:size] if size == 4096 else labels[4096:]
            logits = math.sqrt(3) * math.exp(-3) * draw
            nats += float(-logits.log_softmax(1)[range(size), part].sum()) / 4
    assert found.parts[0][1] == pytest.approx(nats / math.log(2), rel=1e-6)
    assert found.parts[1][1] == pytest.approx(math.log2(4800), abs=1e-4)
    some = features[:, :600], labels[:600]
    (plain,) = variational_codelength(*some)
    (named,) = variational_codelength(
        *some, epochs=20, lr=0.02, batch_size=512, seed=0, model="features"
    )
    assert plain == named and plain.parts == named.parts


# --- control tasks ------------------------------------------------------------------------------


def test_selectivity_takes_seed_and_kind_for_granted():
    draw = np.random.default_rng(2)
    types = draw.integers(0, 6, 90).tolist()
    features = draw.normal(size=(1, 90, 3))
    labels = [t % 2 for t in types]
    split = random_split(90, seed=1)
    (found,) = selectivity(features, labels, types, split)
    named = {"kind": "linear", "seed": 0, "groups": None, "model": "features"}
    (other,) = selectivity(features, labels, types, split, **named)
    assert found == other and found.control == other.control
    assert (found.seed, found.model, found.task.kind) == (0, "features", "linear")
    # The control is a probe of the control labels, otherwise the same.
    given = {"kind": "mlp", "seed": 5, "model": "m", "groups": [i // 3 for i in range(90)]}
    (deep,) = selectivity(features, labels, types, split, hidden=4, **given)
    drawn = control_labels(types, labels, seed=5)
    (control,) = probe_layers(features, drawn, split, hidden=4, **given)
    assert deep.control == control and deep.control.kind == "mlp" and deep.control.model == "m"
    # The interval is that of the paired differences.
    ahead = found.task.correct.astype(float) - found.control.correct
    assert found.interval == codelength.ratio_interval(ahead, np.ones(len(ahead)), 0)


def test_any_example_s_label_may_be_drawn():
    types = list(range(40))
    for place in (0, 39):
        labels = ["rare" if i == place else "common" for i in types]
        assert any("rare" in control_labels(types, labels, seed=seed) for seed in range(12))


# --- erasure ------------------------------------------------------------------------------------


def test_directions_are_dropped_by_their_share_of_the_largest():
    weight = torch.tensor([[1.0, -1, 0], [1e-5, 1e-5, -2e-5], [0, 0, 0]])
    for scale in (1e3, 1, 1e-3):
        assert _extended(torch.zeros(3, 0), scale * weight).shape == (3, 1)
        even = scale * torch.tensor([[1.0, -1, 0], [1, 1, -2], [0, 0, 0]])
        assert _extended(torch.zeros(3, 0), even).shape == (3, 2)


def test_a_basis_stays_orthonormal_where_little_is_new():
    """What is new is a millionth of the weights: one projection leaves rounding in its place."""
    first = torch.tensor([0.3, 0.5, -0.2, 0.7])
    first = first / first.norm()
    other = torch.tensor([0.5, -0.3, 0.7, 0.2])
    other = other / other.norm()
    side = 1e4 * first + 1e-2 * other
    grown = _extended(first[:, None], torch.stack([side, -side], dim=1))
    torch.testing.assert_close(grown.T @ grown, torch.eye(2), atol=1e-5, rtol=0)


def two_clouds():
    """Two classes far apart along the second of three axes."""
    draw = np.random.default_rng(4)
    labels = draw.integers(0, 2, 300)
    vectors = draw.normal(size=(300, 3)).astype(np.float32)
    vectors[:, 1] += 8 * labels
    return vectors, labels, list(range(150)), list(range(150, 200)), list(range(200, 300))


def test_what_is_left_is_what_a_fresh_probe_gets_right():
    vectors, labels, train, dev, test = two_clouds()
    kept = inlp(vectors, labels, Split(train, dev, test), margin=1.0)  # nothing is removed
    assert kept.rank == 0 and kept.remaining > 0.98
    gone = inlp(vectors, labels, Split(train, dev, test), margin=0.5)
    assert gone.rank == 1 and 0.3 < gone.remaining < 0.9
    often = int(np.mean(labels[train]) > 0.5)
    for found in (kept, gone):
        assert found.majority == pytest.approx(np.mean(labels[test] == often))


def test_the_closed_form_of_two_classes_by_hand():
    """With two classes d apart, what goes is d (d' S^-1 x) / (d' S^-1 d)."""
    vectors, labels, train, dev, test = two_clouds()
    vectors = vectors @ np.array([[1, 0.5, 0], [0, 1, 0.3], [0.2, 0, 2]], np.float32) + 5
    found = leace(vectors, labels, Split(train, dev, test))
    rows, gold = vectors[train].astype(float), labels[train]
    spread = np.cov(rows.T, ddof=0)
    apart = rows[gold == 1].mean(0) - rows[gold == 0].mean(0)
    weight = np.linalg.solve(spread, apart)
    expected = np.eye(3) - np.outer(apart, weight) / (apart @ weight)
    np.testing.assert_allclose(found.projection.numpy(), expected, atol=1e-4)
    np.testing.assert_allclose(found.centre.numpy(), rows.mean(0), rtol=1e-5)
    assert found.projection.dtype == torch.float32 and found.rank == 1


def test_random_directions_are_those_of_seed_0():
    assert torch.equal(random_erasure(6, 2).projection, random_erasure(6, 2, seed=0).projection)


def test_probes_of_a_removal_heed_the_development_part():
    vectors, labels, train, dev, test = two_clouds()
    without = inlp(vectors, labels, Split(train, [], test), margin=0.5)
    assert without.rank == 1 and len(without.accuracies) == 2
    # Where every label of the development part is wrong, no weights are the best weights.
    wrong = labels.copy()
    wrong[dev] = 1 - wrong[dev]
    found = inlp(vectors, wrong, Split(train, dev, test), margin=0.5)
    assert found.rank == 0 and len(found.accuracies) == 1


def test_vectors_that_do_not_vary_lose_nothing():
    split = Split(list(range(12)), [12, 13, 14, 15], [16, 17, 18, 19])
    found = inlp(np.ones((20, 3), np.float32), [0, 1] * 10, split, margin=-1.0)
    assert found.rank == 0 and len(found.accuracies) == 1
    torch.testing.assert_close(found.projection, torch.eye(3))
