"""First steps: word tables with planted geometry, fine-tuning that learns and leaves no trace."""

import copy

import numpy as np
import pytest
import torch
from tiny import tiny_encoder

from bertology_utils import basics
from bertology_utils.encoder import random_encoder
from bertology_utils.stimuli.sentiment import LabelledText, sentiment
from bertology_utils.words import make_batch


def planted() -> basics.WordTable:
    vectors = np.array([[1.0, 0], [2, 0.1], [0, 3], [-1, 0], [0.1, 1]])
    return basics.WordTable(("a", "b", "c", "d", "e"), vectors, "planted")


def test_one_hot_words_are_all_equally_unlike():
    table = basics.one_hot(["cat", "dog", "bank"])
    assert np.array_equal(table.cosines(["cat", "dog", "bank"]), np.eye(3))
    for wrong in ([], ["cat", "cat"]):
        with pytest.raises(ValueError, match="once"):
            basics.one_hot(wrong)


def test_neighbours_go_by_direction_and_leave_the_word_out():
    table = planted()
    assert [word for word, _ in table.neighbours("a", 4)] == ["b", "e", "c", "d"]
    assert table.neighbours("c", 1) == [("e", pytest.approx(0.995, abs=1e-3))]
    assert table.neighbours("a", 4)[-1][1] == pytest.approx(-1)
    # Asking twice gives the same: the first call must not have left its mark.
    assert table.neighbours("a", 4) == table.neighbours("a", 4)


def test_words_without_a_row_are_named():
    table = planted()
    for call in (table.of, table.cosines):
        with pytest.raises(basics.UnknownWordError, match="'xyz'"):
            call(["a", "xyz"])
    with pytest.raises(basics.UnknownWordError, match="'xyz'"):
        table.neighbours("xyz")
    with pytest.raises(ValueError, match="k must lie in 1..4"):
        table.neighbours("a", 5)
    assert "a" in table and "xyz" not in table


@pytest.mark.parametrize("family", ["bert", "roberta", "electra"])
def test_the_token_table_holds_the_rows_of_whole_words(family):
    encoder = tiny_encoder(family)
    table = basics.token_table(encoder)
    number = encoder.tokenizer.encode(" the", add_special_tokens=False)
    assert len(number) == 1
    row = encoder.embeddings.token.weight[number[0]].detach().numpy()
    assert np.array_equal(table.of(["the"])[0], row)
    assert all(word.isalpha() and len(word) > 1 for word in table.words)
    assert not {"##s", "s", "[CLS]", "ing"} & set(table.words) or family == "roberta"


def test_shuffling_keeps_the_vectors_and_loses_the_words():
    table = planted()
    mixed = basics.shuffled(table, 1)
    assert not np.array_equal(mixed.vectors, table.vectors)
    assert sorted(map(tuple, mixed.vectors)) == sorted(map(tuple, table.vectors))
    assert mixed.words == table.words


def labelled(n: int, good: str, bad: str) -> list[LabelledText]:
    places = ("mat", "table", "cabinet", "city", "capital")
    return [
        LabelledText(f"the {adjective} cat sat on the {places[i % 5]}", label)
        for i in range(n)
        for adjective, label in ((good, "positive"), (bad, "negative"))
    ]


def test_fine_tuning_learns_what_is_in_the_training_texts_and_leaves_the_encoder_alone(tiny_bert):
    before = {k: v.clone() for k, v in tiny_bert.model.state_dict().items()}
    data = labelled(10, "good", "bad")
    recipe = basics.Recipe(epochs=6, batch_size=8, learning_rate=3e-3)
    run = basics.fine_tune(tiny_bert, data, data, recipe=recipe)
    assert run.accuracy == 1.0
    assert np.mean(run.losses[-3:]) < 0.3 < run.losses[0]
    assert len(run.losses) == 6 * 3
    assert all(torch.equal(v, before[k]) for k, v in tiny_bert.model.state_dict().items())
    again = basics.fine_tune(tiny_bert, data, data, recipe=recipe)
    assert again.losses == run.losses


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra"])
def test_losses_are_those_of_plain_training_of_all_weights(family):
    """Only the rows in use are trained; that must not change anything."""
    encoder, data = tiny_encoder(family), labelled(4, "good", "bad")
    recipe = basics.Recipe(epochs=3, batch_size=8, learning_rate=1e-2, weight_decay=0.0)
    found = basics.fine_tune(encoder, data, data, recipe=recipe).losses
    model, draw = copy.deepcopy(encoder.base).eval(), torch.Generator().manual_seed(0)
    weight = torch.nn.Parameter(0.02 * torch.randn((2, encoder.d_model), generator=draw))
    bias = torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.AdamW([*model.parameters(), weight, bias], lr=1.0, weight_decay=0.0)
    for rate, loss in zip((1e-2, 1e-2 * 2 / 3, 1e-2 / 3), found, strict=True):
        order = torch.randperm(len(data), generator=draw).tolist()
        batch = make_batch(encoder, [data[i].text for i in order])
        hidden = model(**encoder.inputs(batch)).last_hidden_state[:, 0]
        gold = torch.tensor([int(data[i].label == "positive") for i in order])
        plain = torch.nn.functional.cross_entropy(hidden @ weight.T + bias, gold)
        assert plain.item() == pytest.approx(loss, abs=2e-4)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        plain.backward()
        optimizer.step()


def test_nothing_is_learned_when_the_labels_are_noise(tiny_bert):
    data = labelled(8, "good", "bad")
    noise = [LabelledText(text.text, "ab"[i // 2 % 2]) for i, text in enumerate(data)]
    test = [LabelledText(text.text, "ab"[(i // 2 + 1) % 2]) for i, text in enumerate(data)]
    run = basics.fine_tune(tiny_bert, noise, test, recipe=basics.Recipe(epochs=2))
    assert run.accuracy <= 0.75


def test_both_starting_points_are_compared_run_by_run(tiny_bert):
    data = labelled(4, "good", "bad")
    found = basics.pretrained_or_random(
        tiny_bert, [data, data[::-1]], data, recipe=basics.Recipe(epochs=1)
    )
    assert found.difference.value == pytest.approx(found.pretrained.value - found.random.value)
    assert found.difference.n == 2 and found.n_test == len(data)
    assert found.pretrained.baselines["majority"] == 0.5
    assert found.pretrained.baselines["bag_of_words"] == 1.0
    low, high = found.pretrained.interval
    assert 0 <= low <= found.pretrained.value <= high <= 1
    assert found.losses["random"].shape == (2, 1)
    with pytest.raises(ValueError, match="two training sets"):
        basics.pretrained_or_random(tiny_bert, [data], data)


def test_two_equal_starts_do_not_differ(tiny_bert):
    """If the pre-trained weights are random ones, the difference must be that of chance."""
    data, other = labelled(6, "good", "bad"), labelled(6, "old", "near")
    start = random_encoder(tiny_bert, 0)
    runs = [basics.fine_tune(model, data, other[:4], seed=3) for model in (start, start)]
    assert np.array_equal(runs[0].right, runs[1].right)


@pytest.mark.parametrize(
    "train, test, message",
    [
        ([], [LabelledText("x", "a")], "texts"),
        ([LabelledText("cat", "a")], [LabelledText("dog", "a")], "all training texts"),
        (
            [LabelledText("cat", "a"), LabelledText("dog", "b")],
            [LabelledText("dog", "c")],
            "'c' does not occur",
        ),
    ],
)
def test_unusable_data_are_refused(tiny_bert, train, test, message):
    with pytest.raises(ValueError, match=message):
        basics.fine_tune(tiny_bert, train, test)


def test_recipes_must_make_sense():
    with pytest.raises(ValueError, match="positive"):
        basics.Recipe(epochs=0)


def test_spotting_known_words_fails_on_new_ones():
    train = sentiment(150, seed=0, split="train")
    assert basics.bag_of_words(train, sentiment(60, seed=9, split="train")) > 0.8
    assert 0.3 < basics.bag_of_words(train, sentiment(60, seed=9, split="test")) < 0.7


def test_the_real_model_brings_more_than_random_weights_do(embedded):
    train, test = sentiment(48, seed=0, split="train"), sentiment(24, seed=99, split="test")
    learned, blank = (
        basics.fine_tune(model, train, test) for model in (embedded, random_encoder(embedded))
    )
    assert learned.accuracy > blank.accuracy + 0.1
