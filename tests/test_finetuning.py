"""Fine-tuning against plain implementations and planted truth, on tiny random encoders."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from bertology_utils import finetuning as ft
from bertology_utils.encoder import LayerIndexError
from bertology_utils.words import TextPair, make_batch
from tests.tiny import tiny_encoder

FAMILIES = ("bert", "roberta", "distilbert", "electra")
GOOD = ["the movie was good .", "good city", "it was a good old bank", "the good doctor said good"]
BAD = ["the movie was bad .", "bad city", "it was a bad old bank", "the bad doctor said bad"]
PART = ft.Part(tuple(GOOD + BAD), (1,) * 4 + (0,) * 4)
QUICK = ft.Recipe(epochs=2, batch_size=4, lr=2e-3)


@pytest.fixture(scope="module")
def encoder():
    return tiny_encoder("bert")


def weights(encoder):
    return {name: p.detach().clone() for name, p in encoder.base.named_parameters()}


def draw(seed=0):
    return torch.Generator().manual_seed(seed)


def changed(before, after):
    return {name for name in before if not torch.equal(before[name], after[name])}


# Reading the first piece


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layer", (0, 1, 2, 3))
def test_first_state_is_the_first_of_all_states(family, layer):
    encoder = tiny_encoder(family)
    batch = make_batch(encoder, PART.texts)
    with torch.no_grad():
        hidden = ft.tuned.embed(encoder, batch)
        for block in encoder.family.blocks(encoder.base)[:layer]:
            hidden = block(hidden, ft.tuned.additive_mask(batch.attention_mask, hidden.dtype))
        ours = ft.first_state(encoder, hidden, batch.attention_mask, layer)
        assert torch.allclose(ours, encoder.encode(batch)[:, 0], atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_training_on_packed_texts_has_the_gradients_of_the_whole_model(family):
    encoder = tiny_encoder(family)
    batch = make_batch(encoder, PART.texts)
    assert not batch.attention_mask.all()
    blocks = encoder.family.blocks(encoder.base)
    weights = [p for block in blocks for p in block.parameters()]
    hidden = ft.embed(encoder, batch)
    ours = ft.first_state(encoder, hidden, batch.attention_mask, 0)
    theirs = encoder.encode(batch)[:, 0]
    slopes = [torch.autograd.grad(first.square().sum(), weights) for first in (ours, theirs)]
    for packed, whole in zip(*slopes, strict=True):
        assert torch.allclose(packed, whole, atol=1e-4 * max(1.0, float(whole.abs().max())))
    assert any(slope.abs().max() > 1e-3 for slope in slopes[0])


def test_encoded_states_are_those_of_the_model(encoder):
    given = ft.examples(encoder, PART, 2)
    tuned = ft.Tuned(encoder, ft.tuned.new_head(encoder, 2, 0), 2)
    with torch.no_grad():
        expected = tuned.head(encoder.encode(make_batch(encoder, PART.texts))[:, 0])
    assert torch.allclose(tuned.logits(given, size=3), expected, atol=1e-5)
    assert torch.allclose(tuned.predict(encoder, make_batch(encoder, PART.texts)),
                          expected.softmax(-1), atol=1e-5)  # fmt: skip
    with pytest.raises(ValueError, match="layer 2"):
        replace(tuned, layer=1).logits(given)


# The loop


def plain_training(encoder, recipe, head_seed, order_seed):
    """Nothing shared, nothing cached: AdamW over the whole model."""
    own = replace(encoder, model=copy.deepcopy(encoder.model).eval())
    head = ft.tuned.new_head(encoder, 2, head_seed)
    token = own.embeddings.token.weight
    rest = [p for p in own.base.parameters() if p is not token]
    optimizer = torch.optim.AdamW([
        {"params": [*rest, *head.parameters()], "weight_decay": 0.01},
        {"params": [token], "weight_decay": 0.0},
    ])  # fmt: skip
    order, step = draw(order_seed), 0
    total = recipe.steps(len(PART))
    for _ in range(recipe.epochs):
        for chosen in torch.randperm(len(PART), generator=order).split(recipe.batch_size):
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate(step, total)
            batch = make_batch(own, [PART.texts[i] for i in chosen])
            gold = torch.tensor([PART.labels[i] for i in chosen])
            optimizer.zero_grad()
            nn.functional.cross_entropy(head(own.encode(batch)[:, 0]), gold).backward()
            optimizer.step()
            step += 1
    return own, head


@pytest.mark.parametrize("family", FAMILIES)
def test_fine_tuning_everything_equals_plain_training(family):
    encoder = tiny_encoder(family)
    tuned = ft.fine_tune(encoder, PART, ft.Run(recipe=QUICK, head_seed=3, order_seed=4))
    own, head = plain_training(encoder, QUICK, 3, 4)
    pooler = {f"pooler.{end}" for end in ("dense.weight", "dense.bias")}
    ours = weights(tuned.encoder)
    for name, value in weights(own).items():
        # Biases of keys have no slope but rounding, which Adam blows up to full steps.
        if name not in pooler and "key.bias" not in name and "k_lin.bias" not in name:
            gap = (ours[name] - value).abs()
            assert gap.max() < 1e-3 and gap.mean() < 2e-5, name
    assert torch.allclose(tuned.head.weight, head.weight, atol=1e-4)


def test_rows_that_do_not_occur_stay_and_the_original_is_untouched(encoder):
    before = weights(encoder)
    tuned = ft.fine_tune(encoder, PART, ft.Run(recipe=QUICK))
    assert not changed(before, weights(encoder))
    used = make_batch(encoder, PART.texts).input_ids.unique()
    used = used[used != encoder.tokenizer.pad_token_id]  # nothing looks at padding
    table, old = tuned.encoder.embeddings.token.weight, encoder.embeddings.token.weight
    same = (table == old).all(1)
    assert not same[used].any()
    same[used] = True
    assert same.all()
    assert not tuned.encoder.embeddings.token._forward_hooks


def test_frozen_layers_change_nothing_but_the_time(encoder):
    """States computed once give the run that freezes the same layers without a cache."""
    run = ft.Run(ft.Method("top", 1), QUICK)
    cached = ft.fine_tune(encoder, PART, run)
    prepared = ft.prepare(encoder, run.method)
    given = replace(ft.examples(encoder, PART, None), layer=2)
    tuned = ft.Tuned(prepared.encoder, ft.tuned.new_head(encoder, 2, 0), 2)

    def loss(chosen):
        batch = make_batch(tuned.encoder, [PART.texts[i] for i in chosen])
        logits = tuned.head(tuned.encoder.encode(batch)[:, 0])
        return nn.functional.cross_entropy(logits, given.labels[chosen])

    losses = ft.train([*prepared.parameters, *tuned.head.parameters()], len(PART), loss, QUICK,
                      draw=draw())
    assert np.allclose(cached.losses, losses, atol=1e-4)


def test_the_same_run_twice_is_the_same_and_seeds_matter(encoder):
    run = ft.Run(recipe=QUICK)
    first, again = (ft.fine_tune(encoder, PART, run) for _ in range(2))
    assert first.losses == again.losses
    assert not changed(weights(first.encoder), weights(again.encoder))
    for other in (replace(run, head_seed=1), replace(run, order_seed=1)):
        assert ft.fine_tune(encoder, PART, other).losses != first.losses


def test_a_planted_word_is_learned(encoder):
    frames = ("the {} movie", "{} city", "it was {}", "a {} old river in paris", "the {} dogs sat")
    texts = tuple(frame.format(word) for frame in frames for word in ("good", "bad"))
    part = ft.Part(texts, (1, 0) * len(frames))
    tuned = ft.fine_tune(encoder, part, ft.Run(recipe=ft.Recipe(epochs=30, lr=2e-3)))
    unseen = ft.Part(("good mat", "the dogs sat near the good table", "bad mat",
                      "the dogs sat near the bad table"), (1, 1, 0, 0))  # fmt: skip
    assert ft.accuracy(tuned, unseen).all()
    assert np.mean(tuned.losses[-3:]) < 0.2 < tuned.losses[0]


def test_the_recipe():
    recipe = ft.Recipe(epochs=2, batch_size=4, lr=1.0, warm=0.5)
    assert recipe.steps(10) == 6
    rates = [recipe.rate(step, 6) for step in range(6)]
    assert rates[:3] == pytest.approx([1 / 3, 2 / 3, 1]) and rates[3:] == pytest.approx(
        [0.75, 0.5, 0.25]
    )
    for wrong in ({"epochs": 0}, {"lr": 0}, {"warm": 1}, {"optimizer": "sgd"}):
        with pytest.raises(ValueError):
            ft.Recipe(**wrong)


def test_without_bias_correction_the_first_steps_are_larger():
    """Against Adam written out, as BERT's own optimizer had it."""
    weight = nn.Parameter(torch.tensor([1.0, -2.0]))
    target, moments = torch.tensor([0.5, 3.0]), [torch.zeros(2), torch.zeros(2)]
    recipe = ft.Recipe(epochs=4, batch_size=1, lr=0.01, weight_decay=0, bias_correction=False)
    by_hand = weight.detach().clone()
    ft.train([weight], 1, lambda _: ((weight - target) ** 2).sum(), recipe, draw=draw())
    plain = replace(recipe, bias_correction=True)
    for step in range(4):
        slope = 2 * (by_hand - target)
        moments = [0.9 * moments[0] + 0.1 * slope, 0.999 * moments[1] + 0.001 * slope**2]
        by_hand -= plain.rate(step, 4) * moments[0] / (moments[1].sqrt() + 1e-8)
    assert torch.allclose(weight, by_hand, atol=1e-5)


def test_bad_input_is_named(encoder):
    with pytest.raises(ValueError, match="labels are 1"):
        ft.fine_tune(encoder, ft.Part(("good", "bad"), (1, 1)))
    with pytest.raises(ValueError, match="nothing to train on"):
        ft.train([nn.Parameter(torch.ones(1))], 0, lambda _: None, QUICK, draw=draw())
    with pytest.raises(ValueError, match="come together"):
        ft.fine_tune(encoder, PART, ft.Run(watch=(1,)))
    with pytest.raises(ValueError, match="not meant to be combined"):
        ft.fine_tune(encoder, PART, ft.Run(adversarial=0.1, smooth=0.1))
    with pytest.raises(ValueError, match="loss of step 0 is nan"):
        weight = nn.Parameter(torch.ones(1))
        ft.train([weight], 1, lambda _: (weight * float("nan")).sum(), QUICK, draw=draw())


# What is trained


@pytest.mark.parametrize(
    ("method", "moving"),
    [
        (ft.Method("top", 2), lambda name: "layer.1." in name or "layer.2." in name),
        (ft.Method("biases"), lambda name: "layer." in name and name.endswith("bias")),
        (ft.Method("none"), lambda name: False),
    ],
)
def test_only_what_a_method_names_moves(encoder, method, moving):
    before = weights(encoder)
    tuned = ft.fine_tune(encoder, PART, ft.Run(method, QUICK))
    moved = changed(before, weights(tuned.encoder))
    # Biases of keys shift all scores of a row alike, so their slope is rounding.
    expected = {name for name in before if moving(name)}
    assert {n for n in expected if "key.bias" not in n} <= moved <= expected
    assert tuned.n_trained == sum(before[name].numel() for name in expected)


def test_bottlenecks_begin_as_nothing_and_only_they_and_norms_move(encoder):
    texts = make_batch(encoder, PART.texts)
    prepared = ft.prepare(encoder, ft.Method("bottleneck", 4))
    with torch.no_grad():
        assert torch.allclose(prepared.encoder.encode(texts), encoder.encode(texts), atol=1e-6)
    before = weights(prepared.encoder)
    tuned = ft.fit(prepared, PART, ft.Run(ft.Method("bottleneck", 4), QUICK))
    moved = changed(before, weights(tuned.encoder))
    assert moved and all("adapter" in n or "LayerNorm" in n for n in moved)
    assert any("adapter.up" in n for n in moved) and any("LayerNorm" in n for n in moved)
    width = 4 * encoder.d_model * 2 + 4 + encoder.d_model
    assert tuned.n_trained == encoder.n_layers * (2 * width + 4 * encoder.d_model)
    assert not torch.equal(tuned.encoder.encode(texts), encoder.encode(texts))
    twin = copy.deepcopy(tuned.encoder.base)
    with torch.no_grad():
        for name, p in twin.named_parameters():
            if "adapter.up" in name:
                p.zero_()
    assert not torch.equal(twin(**encoder.inputs(texts)).last_hidden_state,
                           tuned.encoder.encode(texts))  # fmt: skip


def test_several_low_rank_adapters_share_one_model(encoder):
    texts = make_batch(encoder, PART.texts)
    shared = ft.with_low_rank(encoder, ("one", "two"), 2)
    own = shared["one"].encoder
    assert own is shared["two"].encoder
    run = ft.Run(ft.Method("low_rank", 2), ft.Recipe(epochs=3, batch_size=4, lr=5e-3))
    outputs = {}
    flipped = ft.Part(PART.texts, tuple(1 - label for label in PART.labels))
    for name, part in (("one", PART), ("two", flipped)):
        with ft.using(own, name):
            tuned = ft.fit(shared[name], part, run)
            outputs[name] = tuned.predict(own, texts).detach()
            heads = outputs.setdefault("heads", {})
            heads[name] = tuned
    for name in ("two", "one"):
        with ft.using(own, name):
            again = heads[name].predict(own, texts).detach()
        assert torch.equal(again, outputs[name])
    assert not torch.allclose(outputs["one"], outputs["two"])
    base = {k.replace(".base_layer", ""): v for k, v in weights(own).items() if "lora" not in k}
    assert base.keys() == weights(encoder).keys() and not changed(weights(encoder), base)
    with pytest.raises(KeyError, match="no adapter 'three'"), ft.using(own, "three"):
        pass
    with pytest.raises(ValueError, match="different names"):
        ft.with_low_rank(encoder, ("one", "one"), 2)


def test_methods_refuse_what_they_do_not_know(encoder):
    for wrong in (("half", 0), ("top", 0), ("all", 2)):
        with pytest.raises(ValueError):
            ft.Method(*wrong)
    with pytest.raises(LayerIndexError):
        ft.prepare(encoder, ft.Method("top", encoder.n_layers + 1))


# Layers drawn anew


def test_only_the_named_layers_are_drawn_anew_and_as_bert_begins(encoder):
    before = weights(encoder)
    prepared = ft.prepare(encoder, ft.Method())
    ft.draw_layers_anew(prepared, (1, 2), seed=3)
    now = weights(prepared.encoder)
    moved = changed(before, now)
    assert moved and all("layer.1." in name or "layer.2." in name for name in moved)
    assert all(torch.equal(before[name], value) for name, value in weights(encoder).items())
    for name in moved | {n for n in now if "layer.2." in n}:
        if name.endswith("bias"):
            assert not now[name].any(), name
        elif "LayerNorm" in name:
            assert (now[name] == 1).all(), name
        else:
            assert now[name].std() == pytest.approx(encoder.config.initializer_range, rel=0.2)
            assert name in moved
    again, other = (ft.prepare(encoder, ft.Method()) for _ in range(2))
    ft.draw_layers_anew(again, (1, 2), seed=3)
    ft.draw_layers_anew(other, (1, 2), seed=4)
    assert not changed(now, weights(again.encoder)) and changed(now, weights(other.encoder))


def test_a_run_with_fresh_layers_starts_from_them(encoder):
    run = ft.Run(ft.Method("top", 2), QUICK, head_seed=2)
    prepared = ft.prepare(encoder, run.method)
    ft.draw_layers_anew(prepared, (2,), seed=2)
    by_hand = ft.fit(prepared, PART, run)
    found = ft.fine_tune(encoder, PART, replace(run, fresh=(2,)))
    assert found.losses == by_hand.losses != ft.fine_tune(encoder, PART, run).losses
    with pytest.raises(ValueError, match="layer 0 is drawn anew"):
        ft.fine_tune(encoder, PART, replace(run, fresh=(0,)))
    with pytest.raises(LayerIndexError):
        ft.fine_tune(encoder, PART, replace(run, fresh=(3,)))
    with pytest.raises(ValueError, match="not all of it is trained"):
        ft.fine_tune(encoder, PART, ft.Run(ft.Method("biases"), QUICK, fresh=(2,)))


# Objectives


def test_adversarial_steps_raise_the_loss_more_than_noise(encoder):
    tuned = ft.fine_tune(encoder, PART, ft.Run(ft.Method("top", 2), QUICK))
    given = ft.examples(encoder, PART, 1)
    hidden, mask = tuned.inputs(given, range(len(PART)))
    plain = ft.plain(tuned, hidden, mask, given.labels)
    worst = ft.disturbed(tuned, hidden, mask, given.labels, 0.05)
    noisy = ft.noised(hidden, 0.05)
    ratio = (worst - hidden).flatten(1).norm(dim=1) / hidden.flatten(1).norm(dim=1)
    assert torch.allclose(ratio, torch.full_like(ratio, 0.05), atol=1e-5)
    assert torch.allclose((noisy - hidden).flatten(1).norm(dim=1) / hidden.flatten(1).norm(dim=1),
                          ratio, atol=1e-5)  # fmt: skip
    up = ft.plain(tuned, worst, mask, given.labels) - plain
    assert up > 0 and up > ft.plain(tuned, noisy, mask, given.labels) - plain
    assert torch.equal(ft.disturbed(tuned, hidden, mask, given.labels, 0), hidden)
    loss = ft.adversarial(0.05)(tuned, hidden, mask, given.labels)
    expected = (plain + ft.plain(tuned, worst, mask, given.labels)) / 2
    assert torch.allclose(loss, expected, atol=1e-5)


@pytest.mark.parametrize("method", (ft.Method("all"), ft.Method("top", 2)))
def test_adversarial_steps_have_the_gradients_of_both_halves(encoder, method):
    prepared = ft.prepare(encoder, method)
    given = ft.examples(prepared.encoder, PART, prepared.layer)
    tuned = ft.Tuned(prepared.encoder, ft.tuned.new_head(encoder, 2, 0), prepared.layer)
    parameters = [*prepared.parameters, *tuned.head.parameters()]
    hidden, mask = tuned.inputs(given, range(len(PART)))
    worst = ft.disturbed(tuned, hidden, mask, given.labels, 0.05)
    pushed = hidden + (worst - hidden).detach()
    halves = [ft.plain(tuned, x, mask, given.labels) / 2 for x in (hidden, pushed)]
    expected = torch.autograd.grad(sum(halves), parameters)
    hidden, mask = tuned.inputs(given, range(len(PART)))
    ft.adversarial(0.05)(tuned, hidden, mask, given.labels).backward()
    for weight, slope in zip(parameters, expected, strict=True):
        assert torch.allclose(weight.grad, slope, atol=1e-5)


@pytest.mark.parametrize("method", (ft.Method("all"), ft.Method("top", 2)))
@pytest.mark.parametrize("change", ({"adversarial": 0.05}, {"smooth": 0.05}, {"mixout": 0.5}))
def test_regularisers_change_the_course_of_training(encoder, method, change):
    run = ft.Run(method, QUICK)
    usual = ft.fine_tune(encoder, PART, run)
    other = ft.fine_tune(encoder, PART, replace(run, **change))
    assert other.losses != usual.losses and np.isfinite(other.losses).all()


def test_smooth_training_keeps_answers_nearer(encoder):
    """With a heavy proximal weight the model hardly leaves its start."""
    run = ft.Run(ft.Method("top", 2), ft.Recipe(epochs=4, batch_size=4, lr=2e-3))
    given = ft.examples(encoder, PART, 1)
    moves = {}
    for name, weight in (("free", 0.0), ("held", 100.0)):
        prepared = ft.prepare(encoder, run.method)
        head = ft.tuned.new_head(encoder, 2, 0)
        tuned = ft.Tuned(prepared.encoder, head, 1)
        start = tuned.logits(given)
        objective = ft.Smooth(weight=weight, proximal=weight)

        def loss(chosen, tuned=tuned, objective=objective):
            return objective(tuned, *tuned.inputs(given, chosen), given.labels[chosen])

        ft.train([*prepared.parameters, *head.parameters()], len(PART), loss, run.recipe,
                 draw=draw())
        moves[name] = float((tuned.logits(given) - start).abs().mean())
    assert moves["held"] < moves["free"] / 2


def test_mixout():
    weight = nn.Parameter(torch.ones(40, 50))
    bias = nn.Parameter(torch.ones(40))
    mixout = ft.Mixout([weight, bias], 0.5, seed=1)
    with torch.no_grad():
        weight.add_(1.0)  # now 2, it began at 1
    with mixout.step():
        inside = weight.detach().clone()
        (weight.sum() + bias.sum()).backward()
    values, counts = inside.unique(return_counts=True)
    assert values.tolist() == [1.0, 3.0] and abs(counts[0] / 2000 - 0.5) < 0.05
    assert (weight == 2).all() and (bias == 1).all()
    assert torch.equal(weight.grad, (inside == 3).float() * 2) and (bias.grad == 1).all()
    with pytest.raises(ValueError):
        ft.Mixout([weight], 1.0)


def test_mixout_of_nothing_changes_nothing():
    weight = nn.Parameter(torch.randn(4, 4))
    with ft.Mixout([weight], 0.0).step():
        before = weight.detach().clone()
        weight.square().sum().backward()
    assert torch.allclose(before, weight) and torch.allclose(weight.grad, 2 * weight)


# Tasks


@pytest.mark.parametrize("name", ft.TASKS)
def test_tasks_are_balanced_short_and_apart(name):
    task = ft.make_task(name, 40, 30, seed=2)
    assert sum(task.train.labels) == 20 and sum(task.test.labels) == 15 == task.majority * 30
    assert not set(task.train.texts) & set(task.test.texts)
    assert task.test == ft.make_task(name, 8, 30, seed=5).test
    assert task.train != ft.make_task(name, 40, 30, seed=3).train
    assert max(ft.tasks._n_words(t) for t in task.train.texts) <= ft.tasks.MAX_WORDS


def words_of(part):
    texts = [f"{t.first} {t.second}" if isinstance(t, TextPair) else t for t in part.texts]
    return {w.strip(".,!").lower() for text in texts for w in text.split()}


def test_no_key_word_is_in_both_parts():
    from bertology_utils.stimuli import lexicon
    from bertology_utils.stimuli.sentiment import NEGATIVE, POSITIVE

    for name in ("sentiment", "negated sentiment"):
        task = ft.make_task(name, 200, 100)
        shared = words_of(task.train) & words_of(task.test)
        assert not shared & {*POSITIVE, *NEGATIVE}
    nouns = {form for noun in lexicon("all").nouns for form in noun.forms}
    for name in ("inference", "acceptability"):
        task = ft.make_task(name, 100, 100)
        assert not words_of(task.train) & words_of(task.test) & nouns


def test_inference_cannot_be_solved_by_common_words():
    for part in (task := ft.make_task("inference", 60, 60)).train, task.test:
        for pair in part.texts:
            inside = {w.strip(".,").lower() for w in pair.first.split()}
            assert {w.strip(".,").lower() for w in pair.second.split()} <= inside


def test_tasks_refuse_bad_input():
    with pytest.raises(ft.TaskError, match="no task 'x'"):
        ft.make_task("x", 10)
    with pytest.raises(ft.TaskError, match="two or more"):
        ft.make_task("sentiment", 1)
    with pytest.raises(ft.TaskError, match="in both parts: 'a'"):
        ft.Task("t", ("n", "p"), ft.Part(("a", "b"), (0, 1)), ft.Part(("a",), (0,)))
    with pytest.raises(ft.TaskError, match="label 2"):
        ft.Task("t", ("n", "p"), ft.Part(("a", "b"), (0, 2)), ft.Part(("c",), (0,)))


def test_shuffled_labels_keep_the_texts():
    part = ft.shuffled_labels(PART, seed=1)
    assert part.texts == PART.texts and sum(part.labels) == 4 and part.labels != PART.labels
