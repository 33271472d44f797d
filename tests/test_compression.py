"""Smaller models: equal where they should be equal, really smaller where they should be small."""

import copy

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tiny import FAMILIES, TEXTS, tiny_encoder
from torch import nn

from bertology_utils import compression as c
from bertology_utils.encoder import evaluating
from bertology_utils.interventions import prune_heads
from bertology_utils.words import make_batch

LABELS = [0, 1, 0, 1]


@pytest.fixture(scope="module")
def encoder():
    return tiny_encoder("bert", n_layers=4)


@pytest.fixture(scope="module")
def data(encoder):
    return c.labelled(encoder, TEXTS, LABELS)


@pytest.fixture()
def model(encoder):
    return c.compact(encoder, 2)


def logits(model, data):
    with evaluating(model):
        return model(data.ids, data.mask)


def same(one, other, data, **tolerance):
    return torch.allclose(logits(one, data), logits(other, data), **tolerance)


@pytest.mark.parametrize("family", FAMILIES)
def test_it_computes_what_the_encoder_computes(family):
    encoder = tiny_encoder(family)
    batch = make_batch(encoder, TEXTS)
    made = c.compact(encoder, 2)
    with evaluating(encoder), evaluating(made):
        theirs = encoder.encode(batch)
        ours = made.encode(batch.input_ids, batch.attention_mask)
        seen = made.trace(batch.input_ids, batch.attention_mask)
    real = batch.attention_mask.bool()
    assert torch.allclose(ours[real], theirs[real], atol=1e-5)
    assert torch.allclose(seen.hidden[-1][real], theirs[real], atol=1e-5)
    assert torch.allclose(seen.patterns[0].sum(-1), torch.ones(()), atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cheap_answer_is_the_full_one_and_trains_alike(family):
    encoder = tiny_encoder(family)
    data = c.labelled(encoder, TEXTS, LABELS)
    made = c.compact(encoder, 2)
    for n_layers in (1, encoder.n_layers):
        model = c.compact(encoder, 2, layers=range(n_layers))
        with evaluating(model):
            cheap = model.answer(data.ids, data.mask)
        assert torch.allclose(cheap, logits(model, data), atol=1e-5)
    slopes = []
    for way in (made.answer, made):
        made.zero_grad()
        torch.nn.functional.cross_entropy(way(data.ids, data.mask), data.labels).backward()
        slopes.append({n: p.grad.clone() for n, p in made.blocks.named_parameters()})
    assert all(torch.allclose(slopes[0][n], slopes[1][n], atol=1e-6) for n in slopes[0])
    tagger = c.compact(encoder, 3, reads="all")
    with evaluating(tagger):
        assert tagger.answer(data.ids, data.mask).shape == (*data.ids.shape, 3)


def test_copies_share_their_table_of_token_vectors_and_nothing_else(encoder, data):
    first = c.compact(encoder, 2)
    second = c.trained(first, data, c.Recipe(steps=3, batch_size=2))
    table = encoder.embeddings.token.weight.data_ptr()
    assert first.token.weight.data_ptr() == second.token.weight.data_ptr() == table
    assert first.token.weight is not second.token.weight
    own = {p.data_ptr() for p in second.parameters()} - {table}
    assert not own & {p.data_ptr() for p in first.parameters()}
    before = first.token.weight.clone()
    cut = c.masked(second, c.top_masks(c.magnitudes(second, tables=True), 0.5))
    assert (cut.token.weight == 0).any() and torch.equal(first.token.weight, before)
    assert torch.equal(encoder.embeddings.token.weight, before)


def test_a_pruned_encoder_can_be_copied(encoder, data):
    less = prune_heads(encoder, {1: [0, 2]})
    by_us = c.keep_heads(c.compact(encoder, 2), {1: [1, 3]})
    assert same(c.compact(less, 2), by_us, data, atol=1e-6)


def test_the_original_is_left_alone(encoder, data):
    before = copy.deepcopy(encoder.model.state_dict())
    made = c.compact(encoder, 2)
    c.train(made, data, c.Recipe(steps=3, batch_size=2))
    assert all(torch.equal(before[k], v) for k, v in encoder.model.state_dict().items())


def some_models(encoder, data):
    full = c.compact(encoder, 2)
    scores = c.importance(full, data, "units")
    keep = range(5, 60)
    masks = c.top_masks(c.magnitudes(full), 0.3)
    return {
        "full": full,
        "half depth": c.student_of(encoder, 2, 2),
        "heads cut": c.keep_heads(full, {0: [1], 2: [0, 3]}),
        "units cut": c.keep_units(full, c.best_share(scores, 0.5)),
        "layers cut": c.keep_layers(full, [0, 2]),
        "tied": c.tie_layers(full),
        "sparse": c.masked(full, masks),
        "factorised": c.factorise_tokens(full, 8),
        "trimmed": c.trim_vocabulary(full, {*keep, *encoder.tokenizer.all_special_ids},
                                     encoder.tokenizer.unk_token_id),
        "int8": c.int8(full),
        "3 bits": c.packed(full, 3),
        "mixed bits": c.packed(full, {0: 2, 1: 4, 2: 2, 3: 8}, token_bits=4),
        "centres": c.gobo(full),
        "narrow": c.narrow_student(encoder, 2, width=12, n_layers=2, keep=keep),
        "recurrent": c.recurrent_student(encoder, 2, width=8, size=6, keep=keep),
        "fewer vectors": c.Eliminating(full, [0.8, 0.6, 0.6, 0.4]),
        "every piece": c.compact(encoder, 3, reads="all"),
    }  # fmt: skip


def test_all_models_come_back_equal_from_their_files(encoder, data, tmp_path):
    for name, made in some_models(encoder, data).items():
        path = c.save(made, tmp_path / f"{name}.safetensors")
        again = c.load(path)
        assert torch.equal(logits(again, data), logits(made, data)), name
        assert not again.training
        with pytest.raises(FileExistsError):
            c.save(made, path)
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def test_files_are_as_small_as_they_should_be(encoder, data):
    sizes = {name: c.file_bytes(made) for name, made in some_models(encoder, data).items()}
    for name in set(sizes) - {"full", "fewer vectors", "every piece"}:
        assert sizes[name] < sizes["full"], name
    assert sizes["3 bits"] < sizes["int8"]


def test_a_bit_per_weight_pays():
    made = nn.Linear(256, 256)
    full = c.file_bytes(made)
    with torch.no_grad():
        made.weight[:, 64:] = 0
    assert c.file_bytes(made) < 0.3 * full
    assert torch.equal(c.reloaded(made).weight, made.weight)


def test_files_that_are_not_ours_are_refused(tmp_path, encoder):
    (tmp_path / "text").write_text("no tensors")
    with pytest.raises(c.CompressionError, match="cannot be read"):
        c.load(tmp_path / "text")
    save_file({"a": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(c.CompressionError, match="no plan"):
        c.load(tmp_path / "other.safetensors")
    with pytest.raises(c.CompressionError, match="cannot be written"):
        c.save(nn.Conv1d(1, 1, 1), tmp_path / "conv")


def test_whole_matrices_get_smaller(model, data):
    less = c.keep_units(c.keep_heads(model, {0: [2]}), {0: range(10), 1: [3]})
    assert [layer.n_heads for layer in less.layers] == [1, 4, 4, 4]
    assert [layer.n_units for layer in less.layers] == [10, 1, 64, 64]
    assert less.blocks[0].query.weight.shape == (8, 32)
    assert less.n_parameters < model.n_parameters
    with pytest.raises(c.CompressionError, match="cannot keep"):
        c.keep_heads(model, {0: []})
    with pytest.raises(c.CompressionError, match="cannot keep"):
        c.keep_units(model, {0: [64]})
    with pytest.raises(c.CompressionError, match="block 9"):
        c.keep_heads(model, {9: [0]})


def test_units_cut_are_units_zeroed(model, data):
    less = c.keep_units(model, {2: range(20)})
    zeroed = copy.deepcopy(model)
    with torch.no_grad():
        zeroed.blocks[2].ffn_out.weight[:, 20:] = 0
    assert same(less, zeroed, data, atol=1e-6)


def test_importance_finds_what_matters(model, data):
    with torch.no_grad():
        model.blocks[1].ffn_out.weight[:, :32] = 0
        model.blocks[1].output.weight[:, :8] = 0
    units, heads = (c.importance(model, data, part) for part in ("units", "heads"))
    assert (units[1][:32] == 0).all() and (units[1][32:] > 0).all()
    assert heads[1][0] == 0 and (heads[1][1:] > 0).all()
    assert set(c.best_share(units, 0.5)[1]) <= set(range(32, 64))
    with pytest.raises(c.CompressionError, match="part"):
        c.importance(model, data, "layers")


def test_masks_keep_the_largest(model):
    sizes = c.magnitudes(model)
    masks = c.top_masks(sizes, 0.25)
    kept = torch.cat([sizes[name][mask] for name, mask in masks.items()])
    gone = torch.cat([sizes[name][~mask] for name, mask in masks.items()])
    assert kept.min() > gone.max()
    assert c.sparsity(c.masked(model, masks)) == pytest.approx(0.75, abs=1e-3)
    assert all(mask.all() for mask in c.top_masks(sizes, 1.0).values())
    with pytest.raises(c.CompressionError, match="share"):
        c.top_masks(sizes, 0.0)


@pytest.mark.parametrize("criterion", ["magnitude", "movement"])
def test_pruning_while_training_ends_at_its_share(model, data, criterion):
    recipe = c.Recipe(steps=8, batch_size=2, lr=1e-3)
    less = c.prune_while_training(model, data, recipe, criterion=criterion, share=0.1)
    assert c.sparsity(less) == pytest.approx(0.9, abs=0.01)
    assert isinstance(less.blocks[0].query, nn.Linear)
    assert c.sparsity(model) < 0.01


def test_movement_keeps_what_moves_away_from_zero(encoder, data):
    """A weight that the loss pulls away from zero scores high, one pushed to zero scores low."""
    model = c.compact(encoder, 2)
    grown, shrunk = (0, 0), (0, 1)

    def loss(now, batch, _numbers):
        weight = now.blocks[0].query.linear.weight
        pull = 100 * (weight[shrunk] * weight[shrunk].sign().detach()
                      - weight[grown] * weight[grown].sign().detach())  # fmt: skip
        return pull + 0.0 * now(batch.ids, batch.mask).sum()

    less = c.prune_while_training(
        model, data, c.Recipe(steps=4, batch_size=4, lr=1e-4), criterion="movement",
        share=0.01, loss=loss,
    )  # fmt: skip
    weight = less.blocks[0].query.weight
    assert weight[grown] != 0 and weight[shrunk] == 0


def test_cubic_schedule():
    assert c.cubic_share(0.0, 0.1) == 1.0
    assert c.cubic_share(0.7, 0.1) == pytest.approx(0.1)
    assert c.cubic_share(1.0, 0.1) == pytest.approx(0.1)
    falling = [c.cubic_share(x, 0.1) for x in np.linspace(0, 1, 20)]
    assert falling == sorted(falling, reverse=True)


def test_reweighted_and_rewound(model, data):
    recipe = c.Recipe(steps=6, batch_size=2)
    less = c.reweighted_pruning(model, data, recipe, share=0.3)
    assert c.sparsity(less) == pytest.approx(0.7, abs=0.01)
    finished = c.trained(model, data, recipe)
    won, masks = c.rewound(model, finished, [0.7, 0.5], data, recipe)
    assert c.sparsity(won) == pytest.approx(0.5, abs=0.01)
    for name, mask in masks.items():
        assert (won.get_submodule(name).weight[~mask] == 0).all()
    with pytest.raises(c.CompressionError, match="fall"):
        c.rewound(model, finished, [0.5, 0.7], data, recipe)


def test_eight_bits_are_near(model, data):
    full, less = logits(model, data), logits(c.int8(model), data)
    assert not torch.equal(full, less)
    assert (full - less).abs().max() < 0.1 * full.abs().max()
    assert c.int8(model).blocks[0].query.codes.dtype == torch.int8


def test_int8_product_is_the_product_of_the_rounded():
    linear = nn.Linear(16, 8)
    made = c.Int8Linear.of(linear)
    x = torch.randint(-127, 128, (5, 16)).float()
    x[:, 0] = 127.0  # so that rounding the input changes nothing
    exact = x @ (made.codes * made.scale[:, None]).T + linear.bias
    assert torch.allclose(made(x), exact, atol=1e-3)


@pytest.mark.parametrize("bits", [2, 3, 5, 8])
def test_packing_loses_nothing_beyond_rounding(bits):
    weight = torch.randn(10, 128, generator=torch.Generator().manual_seed(0))
    matrix = c.PackedMatrix.even(weight, bits)
    assert torch.equal(matrix.dense(), c.rounded(weight, bits))
    assert len(matrix.packed) == 10 * 128 * bits // 8
    step = (weight.amax(1) - weight.amin(1)) / (2**bits - 1)
    assert ((matrix.dense() - weight).abs().amax(1) <= 0.6 * step + 0.01).all()


def test_centres_and_outliers():
    weight = torch.randn(50, 40, generator=torch.Generator().manual_seed(0))
    weight[3, 4], weight[7, 0] = 30.0, -25.0
    matrix = c.PackedMatrix.clustered(weight, 3, share=0.002)
    dense = matrix.dense()
    assert dense[3, 4] == 30.0 and dense[7, 0] == -25.0
    assert len(matrix.table) == 8 and len(dense.unique()) <= 8 + len(matrix.what)
    even = c.PackedMatrix.even(weight, 3).dense()
    assert (dense - weight).pow(2).mean() < (even - weight).pow(2).mean()


def test_equal_token_tables_are_packed_once_and_others_anew(model, data):
    first, second = c.int8(model), c.packed(model, 4)
    assert second.token is not first.token
    assert second.token.matrix.packed.data_ptr() == first.token.matrix.packed.data_ptr()
    assert c.packed(model, 4, token_bits=4).token.matrix.bits == 4
    assert c.gobo(model, 4).token.matrix.centres
    before = logits(second, data)
    other = copy.deepcopy(model)
    other.token = nn.Embedding.from_pretrained(model.token.weight.detach() + 1)
    changed = c.packed(other, 4)
    assert changed.token.matrix.packed.data_ptr() != first.token.matrix.packed.data_ptr()
    assert torch.equal(changed.token.matrix.dense(),
                       c.PackedMatrix.even(other.token.weight, 8).dense())  # fmt: skip
    assert torch.equal(logits(second, data), before)


def test_training_with_rounding_helps(encoder, data):
    model = c.trained(c.compact(encoder, 2), data, c.Recipe(steps=40, batch_size=4, lr=3e-3))
    felt = c.train_rounded(model, data, c.Recipe(steps=40, batch_size=4, lr=3e-3), 2)

    def loss(made):
        with torch.no_grad():
            return float(c.label_loss(c.packed(made, 2), data, torch.arange(4)))

    assert loss(felt) < loss(model)
    assert isinstance(felt.blocks[0].query, nn.Linear)


def test_bits_go_where_the_curvature_is(model, data):
    traces = c.hessian_traces(model, data, probes=2, batch_size=4)
    assert traces.shape == (4,)
    assert (c.rounding_cost(model, np.ones(4), 2) > c.rounding_cost(model, np.ones(4), 4)).all()
    assert c.share_bits([1, 9, 3, 2], 3.0) == {0: 2, 1: 4, 2: 4, 3: 2}
    assert c.share_bits([1, 9, 3, 2], 2.5) == {0: 2, 1: 4, 2: 2, 3: 2}
    with pytest.raises(c.CompressionError, match="budget"):
        c.share_bits([1, 2], 1.5)


def test_trace_of_a_known_curvature(encoder, data, monkeypatch):
    """With the loss sum(k w^2), the mean second derivative is 2 k exactly."""
    from bertology_utils.compression import curvature

    model = c.compact(encoder, 2)

    def loss(now, _batch, _numbers):
        parts = [(i + 1) * p.pow(2).sum() for i, b in enumerate(now.blocks)
                 for p in b.parameters() if p.ndim == 2]  # fmt: skip
        return torch.stack(parts).sum()

    monkeypatch.setattr(curvature, "label_loss", loss)
    assert np.allclose(c.hessian_traces(model, data, probes=1), [2, 4, 6, 8], rtol=1e-4)


def test_low_rank_is_the_best(model):
    weight = model.token.weight.detach()
    left, right = c.low_rank(weight, 8)
    u, s, v = torch.linalg.svd(weight, full_matrices=False)
    assert torch.allclose(left @ right, u[:, :8] * s[:8] @ v[:8], atol=1e-4)
    assert torch.allclose(right @ right.T, torch.eye(8), atol=1e-5)
    with pytest.raises(c.CompressionError, match="rank"):
        c.low_rank(weight, 33)


def test_full_rank_and_kept_pieces_change_nothing(encoder, model, data):
    assert same(c.factorise_tokens(model, 32), model, data, atol=1e-4)
    kept = {*data.ids.flatten().tolist(), encoder.tokenizer.unk_token_id}
    assert same(c.trim_vocabulary(model, kept, encoder.tokenizer.unk_token_id), model, data)
    with pytest.raises(c.CompressionError, match="stands for"):
        c.trim_vocabulary(model, [7, 8], encoder.tokenizer.unk_token_id)


def test_tied_layers_are_one(model, data):
    tied = c.tie_layers(model)
    assert len(tied.blocks) == 1 and tied.n_layers == 4
    c.train(tied, data, c.Recipe(steps=2, batch_size=2))
    assert len({id(layer) for layer in tied.layers}) == 1
    with pytest.raises(c.CompressionError, match="different sizes"):
        c.tie_layers(c.keep_heads(model, {0: [0]}))


@pytest.mark.parametrize("copying", [
    c.Copying(), c.Copying(hidden=1.0, embeddings=1.0), c.Copying(attention=1.0),
    c.Copying(last_attention=1.0, value_relations=1.0),
])  # fmt: skip
def test_a_student_learns_from_its_teacher(encoder, model, data, copying):
    taught = c.lessons(model, data.unlabelled())
    student = c.student_of(encoder, 2, 2, seed=5)
    recipe = c.Recipe(steps=60, batch_size=4, lr=2e-3)
    losses = c.distil(student, taught, recipe, copying)
    assert losses[-1] < 0.7 * losses[0]


def test_the_teacher_is_its_own_best_student(model, data):
    """Nothing is left to learn: every part of the loss is zero."""
    from bertology_utils.compression.distilling import inside_loss

    taught = c.lessons(model, data)
    everything = c.Copying(hidden=1, embeddings=1, attention=1, last_attention=1, value_relations=1)
    with torch.no_grad():
        seen = model.trace(data.ids, data.mask)
        loss = inside_loss(seen, taught, torch.arange(4), data.mask, everything, None)
        soft = c.soft_target_loss(seen.logits, taught.logits, 2.0)
    assert float(loss) == pytest.approx(0, abs=1e-4)
    assert float(soft) == pytest.approx(0, abs=1e-6)


def test_narrow_and_recurrent_students_learn(encoder, model, data):
    taught = c.lessons(model, data)
    recipe = c.Recipe(steps=80, batch_size=4, lr=5e-3)
    keep = set(data.ids.flatten().tolist())
    narrow = c.narrow_student(encoder, 2, width=12, n_layers=2, keep=keep)
    for student, copying in (
        (narrow, c.Copying(hidden=1.0)),
        (c.recurrent_student(encoder, 2, width=8, size=6, keep=keep), c.Copying()),
    ):
        losses = c.distil(student, taught, recipe, copying)
        assert losses[-1] < 0.7 * losses[0]
    with pytest.raises(c.CompressionError, match="no layers"):
        c.distil(c.recurrent_student(encoder, 2, width=8, size=6, keep=keep), taught, recipe,
                 c.Copying(hidden=1.0))  # fmt: skip
    with pytest.raises(c.CompressionError, match="multiples"):
        c.narrow_student(encoder, 2, width=13, n_layers=2, keep=keep)


def test_copied_layers_end_at_the_top():
    assert c.copied_layers(3, 6) == [2, 4, 6]
    assert c.copied_layers(2, 6) == [3, 6]
    assert c.copied_layers(1, 5) == [5]


def test_theseus_replaces_everything(model, data):
    planks = c.with_layers(model, [0, 2])
    recipe = c.Recipe(steps=6, batch_size=2)
    new = c.theseus(model, planks, data, recipe)
    assert new.n_layers == 2 and torch.equal(new.head.weight, model.head.weight)
    assert not torch.equal(new.blocks[0].query.weight, planks[0].query.weight)
    at_once = c.theseus(model, planks, data, recipe, rate=lambda done: 1.0)
    assert not same(new, at_once, data)
    assert c.rising_rate(0) == pytest.approx(0.3) and c.rising_rate(0.7) == 1.0
    with pytest.raises(c.CompressionError, match="modules"):
        c.theseus(model, [], data, recipe)


def test_fewer_vectors(model, data):
    assert same(c.Eliminating(model, [1.0] * 4), model, data, atol=1e-5)
    less = c.Eliminating(model, [0.6] * 4)
    alone = torch.cat([logits(less, data.rows([i])) for i in range(len(data))])
    assert torch.allclose(alone, logits(less, data), atol=1e-5)
    assert not same(less, c.Eliminating(model, [0.6] * 4, "random"), data)
    assert c.falling_shares(4, 0.5) == (0.875, 0.75, 0.625, 0.5)
    for wrong in ([1.0], [0.5, 0.6, 0.5, 0.5], [1, 1, 1, 0]):
        with pytest.raises(c.CompressionError, match="shares"):
            c.Eliminating(model, wrong)


def test_the_most_attended_stay(model, data):
    """The vectors that stay are those that a direct computation finds."""
    seen = model.trace(data.ids, data.mask)
    rows = data.mask[:, None, :, None]
    worth = (seen.patterns[0] * rows).sum((1, 2))
    length = int(data.mask[0].sum())
    keep = int(np.ceil(0.5 * length))
    best = [0, *(1 + worth[0, 1:length].argsort(descending=True)[: keep - 1]).tolist()]
    ids, one = data.ids[:1, :length], data.mask[:1, :length]
    middle = model.blocks[0].attend(model.embed(ids), torch.zeros(()))[0][:, sorted(best)]
    hidden = model.blocks[0].feed(middle)
    for layer in model.layers[1:]:
        hidden = layer(hidden, torch.zeros(()))
    less = c.Eliminating(model, [0.5] * 4)
    less.keep = (0.5, 1.0, 1.0, 1.0)
    assert torch.allclose(model.classify(hidden), less(ids, one), atol=1e-5)


def test_same_seed_same_model(encoder, data):
    one, two = (c.trained(c.compact(encoder, 2), data, c.Recipe(steps=4, batch_size=2))
                for _ in range(2))  # fmt: skip
    assert same(one, two, data)


def test_scores_are_compared_on_the_same_texts(model, data):
    found = c.score("a", model, data)
    assert found.value == pytest.approx(float((c.predictions(model, data) == data.labels).float()
                                              .mean()))  # fmt: skip
    assert c.difference(found, found, "m").interval == (0, 0)
    other = c.score("b", model, data.rows([0, 1]))
    with pytest.raises(c.CompressionError, match="same texts"):
        c.difference(found, other, "m")
    good = c.Score("good", np.ones(50), np.ones(50))
    half = c.Score("half", np.arange(50) % 2.0, np.ones(50))
    kept = c.retained(half, good, "m")
    assert kept.value == 0.5 and 0.3 < kept.interval[0] < 0.5 < kept.interval[1] < 0.7
    assert c.accuracy(half, "m", full=good).baselines == {"full": 1.0}
    with pytest.raises(c.CompressionError, match="without a label"):
        c.score("c", model, data.unlabelled())


def test_an_eighth_of_a_model_is_faster():
    encoder = tiny_encoder("bert", n_layers=8)
    full = c.compact(encoder, 2)
    data = c.labelled(encoder, [" ".join(TEXTS)[:150]] * 32, [0] * 32)
    # An eighth: six times faster where nothing disturbs, so that noise cannot turn the order.
    times = c.side_by_side({"full": full, "fewer": c.keep_layers(full, [0])}, data, rounds=5)
    found = times.speedup("fewer", "full", "m")
    assert found.value > 1.5 and found.interval[0] > 1
    with pytest.raises(c.CompressionError, match="not timed"):
        times.median("other")


def test_attention_grows(model):
    growth = c.attention_growth(model.blocks[0], [64, 128, 256, 512], rounds=3)
    found = growth.exponent("m")
    assert found.interval[0] <= found.value <= found.interval[1]
    with pytest.raises(c.CompressionError, match="two lengths"):
        c.attention_growth(model.blocks[0], [64])


def test_only_asked_pieces_are_taught():
    encoder = tiny_encoder("bert")
    sentences = c.labelled_words(encoder, ["Dogs bark.", "Cats sleep."], [[1, 2, 0], [1, 2, 0]])
    teacher = c.compact(encoder, 3, reads="all", seed=3)
    taught = c.lessons(teacher, sentences.unlabelled())
    assert ((taught.data.labels == c.UNKNOWN) == (sentences.labels >= 0)).all()
    one, two = (c.compact(encoder, 3, layers=[0], reads="all") for _ in range(2))
    other = c.Lessons(taught.data, taught.logits.clone(), taught.hidden, taught.patterns,
                      taught.last_values)  # fmt: skip
    other.logits[sentences.labels < 0] += torch.tensor([9.0, 0.0, -9.0])
    recipe = c.Recipe(steps=3, batch_size=2)
    assert c.distil(one, taught, recipe) == c.distil(two, other, recipe)


def test_batches_go_through_everything_once(data):
    order = torch.cat(list(data.batches(3, torch.Generator().manual_seed(0))))
    assert sorted(order.tolist()) == [0, 1, 2, 3]
    both = data.joined(data.rows([2]).unlabelled())
    assert len(both) == 5 and both.labels[-1] == c.UNKNOWN
    with pytest.raises(c.CompressionError, match="labels"):
        c.labelled_words(tiny_encoder("bert"), ["Dogs bark."], [[1]])


@pytest.mark.parametrize("bits", range(1, 9))
def test_codes_without_gaps(bits):
    from bertology_utils.compression.quantise import pack, unpack

    for count in (1, 7, 8, 100, 1001):
        codes = np.random.default_rng(count).integers(0, 2**bits, size=count)
        bytes_ = pack(codes, bits)
        assert len(bytes_) == -(-count * bits // 8)
        assert np.array_equal(unpack(bytes_, bits, count), codes)
