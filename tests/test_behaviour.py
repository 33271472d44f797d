"""Behavioural tests, attacks, copies, questions and reliance, on tiny models and planted ones."""

import numpy as np
import pytest
import torch

from bertology_utils import behaviour as bh
from bertology_utils import stimuli
from bertology_utils.behaviour.attack import apply
from bertology_utils.behaviour.suite import _typo

REVIEWS = ["the good cat .", "the bad cat .", "a good dog .", "a bad dog .", "good money .",
           "bad money .", "the good movie .", "the bad movie ."]  # fmt: skip
LABELS = [1, 0, 1, 0, 1, 0, 1, 0]


@pytest.fixture(scope="module")
def judge(tiny_bert):
    return bh.learn(tiny_bert, REVIEWS, LABELS, epochs=40, batch_size=4, lr=3e-3)


def test_learning_fits_and_leaves_the_encoder_alone(tiny_bert, judge):
    before = {name: p.clone() for name, p in tiny_bert.model.named_parameters()}
    assert bh.right(judge, REVIEWS, LABELS).all()
    again = bh.learn(tiny_bert, REVIEWS, LABELS, epochs=1)
    assert all(torch.equal(before[name], p) for name, p in tiny_bert.model.named_parameters())
    twin = bh.learn(tiny_bert, REVIEWS, LABELS, epochs=1)
    assert np.array_equal(bh.probabilities(again, REVIEWS), bh.probabilities(twin, REVIEWS))
    assert not again.encoder.model.training


def test_frozen_layers_stay_as_they_are(tiny_bert):
    tuned = bh.learn(tiny_bert, REVIEWS, LABELS, epochs=1, frozen=1)
    pairs = zip(tiny_bert.layers, tuned.encoder.layers, strict=True)
    same = [torch.equal(a.query.weight, b.query.weight) for a, b in pairs]
    assert same[0] and not any(same[1:])


def test_targets_may_be_probabilities(tiny_bert):
    soft = np.array([[0.9, 0.1], [0.2, 0.8]] * 4)
    tuned = bh.learn(tiny_bert, REVIEWS, soft, epochs=60, batch_size=8, lr=3e-3)
    said = bh.probabilities(tuned, REVIEWS)
    assert said.shape == (8, 2) and np.allclose(said.sum(1), 1, atol=1e-5)


@pytest.mark.parametrize("targets", [[1] * 8, [0, 1]])
def test_targets_that_teach_nothing_are_refused(tiny_bert, targets):
    with pytest.raises(ValueError, match="targets|class"):
        bh.learn(tiny_bert, REVIEWS, targets)


def test_learned_means_surely_above_chance():
    assert bh.learned([1] * 15 + [0] * 5) and not bh.learned([1] * 11 + [0] * 9)
    assert not bh.learned([1] * 15 + [0] * 5, chance=0.7)


def test_shares_and_ratios_carry_intervals():
    found = bh.share([1, 1, 0, 1], "m", groups=[0, 0, 1, 1])
    assert found.value == 0.75 and found.interval[0] < 0.75 <= found.interval[1]
    assert bh.share([1, 0] * 10, "m", groups=np.repeat(range(10), 2)).interval == (0.5, 0.5)
    assert bh.ratio(np.array([1, 0, 1]), np.array([1, 1, 1]), "m").value == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="sum to 0"):
        bh.ratio(np.ones(3), np.zeros(3), "m")


# --- tests of behaviour -----------------------------------------------------------------------


def test_fill_multiplies_slots():
    found = bh.fill("The {a} was {b}.", a=["x", "y"], b=["p", "q", "r"])
    assert len(set(found)) == 6 and found[0] == "The x was p."
    for wrong in ({"a": []}, {"a": "xy"}, {"a": ["x"], "c": ["y"]}):
        with pytest.raises(ValueError, match="slot"):
            bh.fill("The {a}.", **wrong)
    with pytest.raises(KeyError):
        bh.fill("The {a} was {b}.", a=["x"])


def test_each_type_fails_where_it_should(judge):
    tests = [
        bh.mft("right", {1: ["the good cat ."], 0: ["the bad cat ."]}),
        bh.mft("wrong", {0: ["the good cat ."], 1: ["the bad cat ."]}),
        bh.inv("kept", [("the good cat .", "the good movie .")]),
        bh.inv("turned", [("the good cat .", "the bad cat .")]),
        bh.directional("up", {1: [("the bad cat .", "the good cat .")]}),
        bh.directional("down", {1: [("the good cat .", "the bad cat .")]}),
    ]
    found = bh.run_tests(judge, tests)
    rates = {name: result.rate.value for name, result in found.items()}
    assert rates == {"right": 0, "wrong": 1, "kept": 0, "turned": 1, "up": 0, "down": 1}
    assert found["turned"].failures == [("the good cat .", "the bad cat .")]
    whole = bh.failure_rate(list(found.values()))
    assert whole.value == 0.5 and whole.n == 8


@pytest.mark.parametrize(
    "made",
    [
        lambda: bh.BehaviouralTest("x", "ABC", (("a",),), (1,)),
        lambda: bh.BehaviouralTest("x", "MFT", (("a", "b"),), (1,)),
        lambda: bh.BehaviouralTest("x", "INV", (("a",),)),
        lambda: bh.BehaviouralTest("x", "MFT", (("a",),), (1, 0)),
        lambda: bh.mft("x", {}),
    ],
)
def test_malformed_tests_are_refused(made):
    with pytest.raises(ValueError):
        made()


def test_two_tests_of_one_name_are_refused(judge):
    test = bh.mft("same", {1: ["the good cat ."]})
    with pytest.raises(ValueError, match="different names"):
        bh.run_tests(judge, [test, test])


def test_the_suite_is_balanced_and_its_words_are_known():
    held = {*stimuli.sentiment.__globals__["POSITIVE"][14:],
            *stimuli.sentiment.__globals__["NEGATIVE"][14:]}  # fmt: skip
    for test in bh.sentiment_suite(24):
        assert len(set(test.cases)) == 24, test.name
        if test.labels:
            assert sum(test.labels) == 12, test.name
        words = {w.strip(".,!?").lower() for case in test.cases for t in case for w in t.split()}
        assert not words & held or test.name == "typos", (test.name, words & held)
        assert not any(" a " + v in t for case in test.cases for t in case for v in "aeiou")
    with pytest.raises(ValueError, match="even"):
        bh.sentiment_suite(7)


def test_a_typo_swaps_two_letters_and_spares_the_adjective():
    text = "The service of this hotel was terrible."
    for seed in range(10):
        changed = _typo(text, seed)
        assert changed != text and sorted(changed) == sorted(text)
        assert changed.endswith("terrible.")


# --- attack and theft -------------------------------------------------------------------------


def test_substitutions_keep_capitals_and_articles():
    found = bh.substitutions("A good film.")
    assert {text[found[0][0] : found[0][1]] for text in ["A good film."]} == {"good"}
    assert apply("It was a good film.", [(9, 13, "excellent")]) == "It was an excellent film."
    assert apply("An awful meal.", [(3, 8, "lousy")]) == "A lousy meal."
    assert all(word not in others for word, others in bh.SYNONYMS.items())


def test_an_attack_finds_the_word_that_decides(judge):
    texts = ["the good movie .", "the bad movie ."]
    found = bh.attack(judge, texts, [1, 0], draws=3)
    assert found.before == 1 and found.after <= found.at_random
    assert found.lost.value == pytest.approx(found.before - found.after)
    assert set(found.lost.baselines) == {"random_swap"}
    with pytest.raises(ValueError, match="synonym"):
        bh.attack(judge, ["cats sleep ."], [1])


def test_a_copy_learns_from_answers_alone(tiny_bert, judge):
    queries = [f"{a} {b} {c}" for a in ("good", "bad", "the") for b in ("good", "bad", "cat")
               for c in ("movie", "money", "dog")]  # fmt: skip
    theft = bh.steal(judge, tiny_bert, queries, REVIEWS, epochs=30)
    assert theft.agreement.value >= theft.agreement.baselines["majority"]
    assert theft.answers.sum() == pytest.approx(1)
    assert len(set(bh.nonsense(20))) == 20 and bh.nonsense(3) == bh.nonsense(3)


# --- arguments, reading, rules ----------------------------------------------------------------


def test_topics_do_not_mix_and_a_blind_judge_is_right_once_in_a_pair(tiny_bert):
    train, test = bh.by_topic(stimuli.arguments(200, cue_share=1.0))
    assert not set(bh.topics(train)) & set(bh.topics(test))
    tuned = bh.learn_arguments(tiny_bert, train[:8], epochs=1)
    items = stimuli.mirrored(test[:6])
    right = bh.right_warrant(tuned, items)
    assert right.shape == (12,) and right.dtype == bool
    pair = bh.warrant_pair(items[0], 1)
    assert items[0].reason in pair.first and pair.second == items[0].warrants[1]


def test_questions_have_their_answer_in_the_passage():
    items = bh.questions(80, seed=3, sentences=3)
    assert items == bh.questions(80, seed=3, sentences=3)
    for item in items:
        assert item.words.count(item.answer) == 1
        assert item.answer not in item.question.replace("?", "").split()
        assert 0 <= item.rivals <= 2
    mixed = bh.shuffled(items)
    assert all(sorted(a.words) == sorted(b.words) for a, b in zip(items, mixed, strict=True))
    assert any(a.words != b.words for a, b in zip(items, mixed, strict=True))
    assert bh.unasked(items)[0].pair == " ".join(items[0].words)
    names = [{w for q in bh.questions(60, split=part) for w in (q.words[0],)} for part in
             ("train", "test")]  # fmt: skip
    assert not names[0] & names[1]


def test_a_reader_learns_to_point(tiny_bert):
    items = [
        bh.Question(("cats", "sleep", "money", "."), "in france", "money", 0),
        bh.Question(("dogs", "bark", "river", "."), "in france", "river", 0),
        bh.Question(("money", "sat", "cats", "."), "of paris", "money", 0),
        bh.Question(("river", "sat", "dogs", "."), "of paris", "river", 0),
    ]
    reader = bh.learn_to_point(tiny_bert, items, epochs=60, batch_size=4, lr=3e-3)
    assert reader.right(items).all()


@pytest.mark.parametrize("name", ["comparative", "quantifier", "conditional", "boolean"])
def test_rule_items_are_balanced(name):
    items = bh.rule_items(name, 12, split="test")
    assert len(items.texts) == 12 and sum(items.labels) == 6
    with pytest.raises(ValueError, match="even"):
        bh.rule_items(name, 5)


# --- reliance and comparisons -----------------------------------------------------------------


def test_word_reliance_finds_the_word_that_decides(judge):
    texts = ["the good cat .", "the bad cat .", "a good dog .", "a bad dog ."]
    found = bh.word_reliance(judge, texts)
    assert found.words[0] == ("the", "good", "cat", ".")
    for drops in found.drops:
        assert drops.argmax() == 1
    best = [np.array([0, 1, 0, 0.0])] * 4
    assert found.advantage(best).value > 0
    whole = bh.probabilities(judge, [texts[0], "the cat ."])
    said = whole[0].argmax()
    assert found.drops[0][1] == pytest.approx(whole[0, said] - whole[1, said], abs=1e-5)
    with pytest.raises(ValueError, match="fewer than two"):
        bh.word_reliance(judge, ["cats"])


def test_integrated_gradients_add_up_to_what_the_words_change(judge):
    """Completeness: the ratings of all pieces sum to the difference to the masked text."""
    texts = ["the good cat .", "the bad cat ."]
    found = bh.word_reliance(judge, texts, steps=200)
    whole = bh.probabilities(judge, texts)
    masked = bh.probabilities(judge, ["[MASK] [MASK] [MASK] [MASK]"])[0]
    for probability, ratings in zip(whole, found.ratings, strict=True):
        said = probability.argmax()
        change = probability[said] - masked[said]
        assert ratings.sum() == pytest.approx(change, abs=0.02)
        assert len(ratings) == 4


def test_rank_correlation_of_runs():
    found = bh.rank_correlation_of_runs([1, 2, 3, 4], [2, 4, 6, 9], "m")
    assert found.value == pytest.approx(1)
    with pytest.raises(ValueError, match="differ"):
        bh.rank_correlation_of_runs([1, 2, 3], [1, 1, 1], "m")


def test_age_items_come_in_both_orders():
    items = bh.age_items(20, 10, 90, seed=1)
    assert sum(item.right == "older" for item in items) == 10
    for item in items:
        assert (item.right == "older") == (item.first > item.second)
        assert f"{item.first} years" in item.frame
    with pytest.raises(ValueError, match="balanced"):
        bh.age_items(5, 10, 90)


def test_difference_combines_intervals(embedded):
    one, other = (bh.share([1] * k + [0] * (20 - k), "m") for k in (15, 5))
    gap = bh.difference(one, other)
    assert gap.value == pytest.approx(0.5) and gap.interval[0] < 0.5 < gap.interval[1]
    ages = bh.compare_ages(embedded, bh.age_items(12, 20, 60))
    assert 0 <= ages.value <= 1 and ages.baselines == {"chance": 0.5}
    looks = bh.two_looks(embedded, stimuli.minimal_pairs("role_reversal", 12, seed=1))
    assert looks.gap.value == pytest.approx(looks.sensitivity.value - looks.accuracy.value)
