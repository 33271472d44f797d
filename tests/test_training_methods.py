"""The methods of the chapter on training: planted truths and plain implementations."""

import numpy as np
import pytest
import torch
from tiny import TEXTS, tiny_encoder

from bertology_utils.stimuli import Passage, passages
from bertology_utils.training import fixed_heads, hidden, little, neighbours, outside, ridge


@pytest.fixture(scope="module")
def encoder():
    return tiny_encoder("bert")


# -- ridge ---------------------------------------------------------------------------------------


def test_ridge_finds_what_is_there_and_nothing_else():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    features = rng.normal(size=(300, 40))
    features[:, :3] += 3 * np.eye(3)[labels]
    told = ridge.ridge_guesses(features[:200], labels[:200], features[200:], penalty=0.1)
    assert (told == labels[200:]).mean() > 0.9
    noise = rng.normal(size=(300, 40))
    told = ridge.ridge_guesses(noise[:200], labels[:200], noise[200:])
    assert (told == labels[200:]).mean() < 0.5


def test_both_forms_of_ridge_agree():
    rng = np.random.default_rng(1)
    wide, labels = rng.normal(size=(30, 29)), list("ab") * 15
    tall = np.concatenate([wide, 1e-12 * rng.normal(size=(30, 2))], axis=1)
    test = rng.normal(size=(20, 29))
    padded = np.concatenate([test, np.zeros((20, 2))], axis=1)
    assert (ridge.ridge_guesses(wide, labels, test)
            == ridge.ridge_guesses(tall, labels, padded)).all()  # fmt: skip


def test_folds_keep_groups_apart():
    """A feature that only names the group cannot help on groups that were not trained on."""
    groups = np.repeat(np.arange(30), 4)
    labels = np.random.default_rng(2).integers(0, 2, 30)[groups]
    features = np.eye(30)[groups]
    told = ridge.grouped_guesses(features, labels, groups, folds=5)
    assert (told == labels).mean() < 0.75
    with pytest.raises(ValueError, match="folds"):
        ridge.grouped_guesses(features[:8], labels[:8], groups[:8], folds=5)


# -- wired heads ---------------------------------------------------------------------------------


def test_a_wired_head_looks_at_its_neighbour_and_never_at_padding():
    pattern = torch.full((2, 3, 5, 5), 0.2)
    pattern[1, :, :, 3:] = 0  # the second text has three pieces
    fixed = fixed_heads.fixed_pattern(pattern, {0: 1, 2: -1})
    assert torch.equal(fixed[:, 1], pattern[:, 1])
    assert fixed[0, 0].argmax(-1).tolist() == [1, 2, 3, 4, 4]
    assert fixed[1, 0, :3].argmax(-1).tolist() == [1, 2, 2]
    assert fixed[0, 2].argmax(-1).tolist() == [0, 0, 1, 2, 3]
    assert torch.equal(fixed[:, 0].sum(-1), torch.ones(2, 5))


def test_wiring_changes_the_loss_and_is_undone(encoder):
    texts = list(TEXTS)
    before = fixed_heads.losses_with(encoder, texts, {})
    during = fixed_heads.losses_with(encoder, texts, {(0, 0): 1, (1, 2): -1})
    after = fixed_heads.losses_with(encoder, texts, {})
    assert np.abs(during - before).max() > 1e-4
    np.testing.assert_array_equal(before, after)
    found = fixed_heads.wired_heads(encoder, texts, draws=1)
    assert len(found.heads) == 2 and set(found.heads.values()) <= {-1, 1}
    assert found.difference.value == pytest.approx(found.diagonal - found.others, abs=1e-6)
    with pytest.raises(ValueError, match="share"):
        fixed_heads.wired_heads(encoder, texts, share=0.9)


# -- gaps ----------------------------------------------------------------------------------------


def test_siblings_are_pieces_of_one_word(encoder):
    texts = ["The keys barked quickly.", "Xylophones zigzagged near the river."]
    found = hidden.hidden_siblings(encoder, texts)
    assert found.difference.n > 5
    assert found.difference.value == pytest.approx(found.visible - found.hidden)
    with pytest.raises(hidden.TrainingDataError, match="several pieces"):
        hidden.hidden_siblings(encoder, ["the cat sat on the mat"])


def test_spans_grow_around_one_place(encoder):
    texts = ["the old doctor said that the cats and dogs sleep near the river bank"] * 3
    found = hidden.span_lengths(encoder, texts, longest=4)
    assert found.lengths == (1, 2, 3, 4) and len(found.by_length) == 4
    means = [e.value for e in found.by_length]
    assert found.slope.value == pytest.approx(np.polyfit(found.lengths, means, 1)[0])
    with pytest.raises(hidden.TrainingDataError):
        hidden.span_lengths(encoder, ["dogs bark"])


def test_shuffled_sentences_have_the_same_words(encoder):
    found = hidden.shuffled_choice(encoder, ["the cat sat on the mat.", "the dog barks near it."])
    assert sorted(found.scores.pieces) == sorted(found.shuffled.pieces)
    assert found.scores.pieces != found.shuffled.pieces
    assert found.preferred.baselines == {"chance": 0.5} and found.preferred.n == 2


def test_no_capital_letter_gives_the_order_away():
    found = hidden.shuffled_choice(tiny_encoder("roberta"), ["The cat sat.", "Old dogs bark."])
    for scores in (found.scores, found.shuffled):
        assert not set("".join(scores.pieces)) & set("TO")


# -- neighbours ----------------------------------------------------------------------------------


def test_pairs_have_the_distance_they_say():
    for pair in neighbours.passage_pairs((1, -1, 2, 3, 0)):
        own = passages()[pair.passage].sentences
        if pair.distance:
            assert own.index(pair.second) - own.index(pair.first) == pair.distance
        else:
            assert pair.first in own and pair.second not in own
    with pytest.raises(ValueError, match="distances"):
        neighbours.passage_pairs((5,))


def test_a_bag_sees_topics_and_no_order(encoder, monkeypatch):
    """Passages about one thing each: strangers are told by their words, swapped pairs are not."""
    things = "cat dog bank river movie city doctor key table mat".split()
    rng = np.random.default_rng(3)
    made = tuple(
        Passage(word, tuple(f"the {word} {' '.join(rng.permutation([word] * 2 + ['old']))}"
                            for _ in range(4)))
        for word in things * 2
    )  # fmt: skip
    monkeypatch.setattr(neighbours, "passages", lambda: made)
    found = neighbours.bag_of_words(encoder)
    assert found.next.value > 0.75
    assert abs(found.order.value - 0.5) < 0.2
    assert found.difference.value > 0.1


def test_sentence_relations_have_their_baselines(encoder, monkeypatch):
    made = tuple(Passage(str(i), ("the cat sat", "the dog barks", "it is old", "dogs sleep"))
                 for i in range(8))  # fmt: skip
    monkeypatch.setattr(neighbours, "passages", lambda: made)
    found = neighbours.sentence_relations(encoder, n_passages=8)
    assert found.direction.baselines == {"chance": pytest.approx(1 / 3)}
    assert found.distance.baselines == {"majority": pytest.approx(1 / 3)}
    assert found.direction.n == 8 * 9


# -- little data ---------------------------------------------------------------------------------


def test_well_scaled_problems_converge_sooner():
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 40)
    even = rng.normal(size=(40, 20)) + 2 * (labels[:, None] - 0.5)
    shifted = even + 30.0
    assert little.steps_to_converge(even, labels) < little.steps_to_converge(shifted, labels)
    with pytest.raises(ValueError, match="goal"):
        little.steps_to_converge(even, labels, goal=1.5)


def test_steps_are_those_of_plain_descent():
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, 12)
    vectors = rng.normal(size=(12, 30))
    x = np.concatenate([vectors, np.ones((12, 1))], axis=1)
    rate, weights, steps = 4 / np.linalg.eigvalsh(x.T @ x)[-1], np.zeros(31), 0
    while True:
        weights += rate * x.T @ (labels - 1 / (1 + np.exp(-x @ weights)))
        steps += 1
        scores = x @ weights
        if np.mean(np.logaddexp(0, np.where(labels == 1, -scores, scores))) < 0.1 * np.log(2):
            break
    assert little.steps_to_converge(vectors, labels) == steps


# -- from outside --------------------------------------------------------------------------------


def test_the_retriever_prefers_rare_words():
    library = ["the capital of peru is lima", "the capital of chad is ndjamena", "the the the peru"]
    finder = outside.Retriever(library)
    assert finder.best("What is the capital of Chad?") == library[1]
    assert finder.best("capital of peru") == library[0]
    with pytest.raises(ValueError, match="search"):
        outside.Retriever([])


def test_the_picker_learns_a_planted_direction():
    rng = np.random.default_rng(6)
    answers = rng.integers(0, 4, 120)
    products = rng.normal(size=(120, 4, 16)).astype(np.float32)
    products[np.arange(120), answers, 5] += 4
    told = outside._fit_picker(products[:80], answers[:80], products[80:])
    assert (told == answers[80:]).mean() > 0.9


# -- on the embedded model -----------------------------------------------------------------------


def test_names_and_rare_words_on_the_embedded_model():
    from bertology_utils.encoder import load_encoder
    from bertology_utils.training import names

    model = load_encoder("bertology-mini-uncased")
    rare = names.rare_words(model, n_contexts=2)
    assert set(rare.by_contexts) == {1, 2}
    assert rare.difference.value == pytest.approx(rare.contexts - rare.pieces)
    mapped = names.mapped_names(model, "continent", ["language", "currency"])
    sizes = [len(model.tokenizer(f" {n.lower()}", add_special_tokens=False)["input_ids"])
             for n in mapped.names]  # fmt: skip
    assert min(sizes) > 1 and mapped.n_fit >= 10
    assert mapped.difference.value == pytest.approx(mapped.mapped - mapped.pieces)
    made = little.augmentation(model, draws=2, copies=2)
    assert all(new != old for _, old, new in made.examples)
    assert set(made.accuracy) == {"without", "with", "repeated"}
