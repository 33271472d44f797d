"""Small fine-tunings: what is trained, what stays, and planted rules that must be found."""

import numpy as np
import pytest
import torch

from bertology_utils import stimuli, syntax
from bertology_utils.encoder import LayerIndexError
from bertology_utils.syntax.generalise import QUESTIONS, is_negated, is_past, is_plural
from bertology_utils.syntax.parsing_stage import HeadScorer
from bertology_utils.syntax.saturation import tiny_language, word_tokenizer
from bertology_utils.syntax.triggers import _Prepended
from bertology_utils.syntax.tuning import tuned_copy

GOOD = ["the dogs near the cat sleep", "a dog sleeps", "old dogs bark", "the dog barks",
        "dogs sleep near the mat", "a dog sat on the mat"]  # fmt: skip
BAD = [text.replace("dog", "cat") for text in GOOD]
WORDS = sorted({w for text in GOOD + BAD for w in text.split()} | {"cats", "dogs", "river", "bank"})


@pytest.fixture(scope="module")
def encoder():
    return syntax.tiny_encoder(WORDS, layers=3, width=32)


@pytest.fixture(scope="module")
def states(encoder):
    return syntax.frozen_states(encoder, GOOD + BAD, 1)


LABELS = [1] * len(GOOD) + [0] * len(BAD)


@pytest.fixture(scope="module")
def tuned(encoder, states):
    return syntax.fine_tune(encoder, states, LABELS, epochs=40, batch_size=4, lr=3e-3)


def test_states_are_those_of_each_text_alone(encoder, states):
    for number, text in enumerate(GOOD + BAD):
        alone = syntax.frozen_states(encoder, [text], 1)
        n = int(states.mask[number].sum())
        assert alone.hidden.shape[1] == n
        torch.testing.assert_close(states.hidden[number, :n], alone.hidden[0], atol=1e-5, rtol=1e-4)
    few = states.rows([1, 2])
    assert len(few) == 2 and few.hidden.shape[1] == int(states.mask[[1, 2]].sum(1).max())
    with pytest.raises(ValueError, match="no texts"):
        syntax.frozen_states(encoder, [], 1)
    with pytest.raises(LayerIndexError):
        syntax.frozen_states(encoder, GOOD, 7)


def test_only_the_upper_layers_of_a_copy_are_trained(encoder, states, tuned):
    before = {name: p.clone() for name, p in encoder.model.named_parameters()}
    after = dict(tuned.encoder.model.named_parameters())
    moved = {name for name, p in before.items() if not torch.equal(p, after[name])}
    assert moved and all(".layer.1." in name or ".layer.2." in name for name in moved)
    assert all(p.requires_grad for p in encoder.model.parameters())
    assert not encoder.model.training and not tuned.encoder.model.training
    made = tuned_copy(encoder, 3)
    assert not any(p.requires_grad for p in made.model.parameters())


def test_a_planted_rule_is_learned_and_repeated_by_its_seed(encoder, states, tuned):
    assert tuned.predict(states).tolist() == LABELS
    options = {"epochs": 2, "batch_size": 4}
    torch.manual_seed(5)
    stream = torch.rand(1)
    torch.manual_seed(5)
    one = syntax.fine_tune(encoder, states, LABELS, seed=3, **options)
    assert torch.equal(torch.rand(1), stream), "the global random stream was touched"
    two = syntax.fine_tune(encoder, states, LABELS, seed=3, **options)
    other = syntax.fine_tune(encoder, states, LABELS, seed=4, **options)
    assert torch.equal(one.head.weight, two.head.weight)
    assert not torch.equal(one.head.weight, other.head.weight)


def test_labels_that_do_not_fit_are_refused(encoder, states):
    for labels, message in (
        ([1, 0], "2 labels for 12"), ([1] * 12, "all labels are 1"), ([2] * 12, "from 2 to 2"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            syntax.fine_tune(encoder, states, labels)
    with pytest.raises(ValueError, match="must be positive"):
        syntax.fine_tune(encoder, states, LABELS, epochs=0)


# -- two rules -----------------------------------------------------------------------------------


def test_rules_agree_in_training_and_differ_in_the_test():
    for question in QUESTIONS.values():
        same = syntax.rule_items(question, 10, ambiguous=True, split="train")
        apart = syntax.rule_items(question, 10, ambiguous=False, split="test")
        assert all(i.structural == i.linear for i in same)
        assert all(i.structural != i.linear for i in apart)
        for items in (same, apart):
            assert sum(i.structural for i in items) == 5 and len({i.sentence.text for i in items})
        for item in apart:
            first, main = syntax.first_and_main(item.sentence)
            assert first < main and question(item.sentence, main) == item.structural
    with pytest.raises(ValueError, match="at least 2"):
        syntax.rule_items(is_past, 1, ambiguous=True, split="train")


def test_questions_read_the_verb():
    tree = stimuli.treebank(200, seed=1, depth=1)
    plain = [s for s in tree if syntax.first_and_main(s)]
    for sentence in plain[:40]:
        first, main = syntax.first_and_main(sentence)
        assert is_past(sentence, main) in (sentence.gold.tense == "past", None)
        assert is_plural(sentence, main) == (sentence.gold.subject_number == "plur")
        assert is_negated(sentence, first) == (sentence.words[first + 1] == "not")


def test_every_run_counts_once():
    tree = stimuli.treebank(600, seed=0, depth=1)
    words = {w for split in ("train", "test") for s in stimuli.treebank(900, 0, split, depth=1)
             for w in s.words} | {w for s in tree for w in s.words}  # fmt: skip
    encoder = syntax.tiny_encoder(sorted(words), layers=2, width=32)
    found = syntax.generalisation(encoder, seeds=(0, 1), n_train=40, n_test=12, epochs=1)
    assert found.structural.shape == (3, 2, 12) and found.learned.shape == (3, 2)
    overall = found.share()
    assert overall.value == pytest.approx(found.structural.mean())
    assert overall.baselines == {"chance": 0.5} and overall.n == 6
    assert overall.interval[0] <= overall.value <= overall.interval[1]
    assert found.runs["negation"] == found.structural[2].mean(-1).tolist()
    assert found.share("negation").value == pytest.approx(np.mean(found.runs["negation"]))
    with pytest.raises(KeyError, match="no task 'colour'"):
        found.share("colour")


# -- triggers ------------------------------------------------------------------------------------


def test_a_trigger_finds_the_word_that_flips_the_answer(tuned):
    """Trained to tell dogs from cats, the model must fall for the other animal's name."""
    found = syntax.find_trigger(
        tuned, GOOD, 1, ["cat", "cats", "river", "bank", "mat"], width=2, tries=5
    )
    assert found.loss > found.start_loss and set(found.words) & {"cat", "cats"}
    effect = syntax.trigger_effect(
        tuned, GOOD, [1] * len(GOOD), {1: found}, ["river", "bank"], controls=2
    )
    assert effect.clean.all()
    assert effect.lost.value == pytest.approx(1 - effect.triggered.mean())
    assert effect.lost.value > 0.3 > effect.lost.baselines["random_trigger"]
    with pytest.raises(KeyError):
        syntax.trigger_effect(tuned, BAD, [0] * len(BAD), {1: found}, ["river"])
    with pytest.raises(ValueError, match="candidates"):
        syntax.find_trigger(tuned, GOOD, 1, [])


def test_gradients_are_taken_at_the_trigger_and_the_loss_is_that_of_the_text(tuned):
    from bertology_utils.words import make_batch

    problem = _Prepended(tuned, GOOD[:2], 1, 1)
    cat = torch.tensor(tuned.encoder.tokenizer.convert_tokens_to_ids(["river"]))
    loss, slope = problem.loss(cat, gradient=True)
    with torch.no_grad():
        batch = make_batch(tuned.encoder, [f"river {text}" for text in GOOD[:2]])
        logits = tuned.head(tuned.encoder.encode(batch)[:, 0])
        plain = torch.nn.functional.cross_entropy(logits, torch.tensor([1, 1])).item()
    assert loss == pytest.approx(plain, abs=1e-5)
    assert slope.shape == (1, 32) and slope.abs().max() > 0
    # A small step along the gradient changes the loss by about the product of the two.
    weight = tuned.encoder.embeddings.token.weight
    with torch.no_grad():
        step = 1e-3 * slope[0] / slope[0].norm()
        weight[cat[0]] += step
        moved, _ = problem.loss(cat)
        weight[cat[0]] -= step
    assert moved - loss == pytest.approx(float(step @ slope[0]), rel=0.2)


def test_neutral_words_are_words_outside_the_task(encoder, embedded):
    assert "river" in syntax.neutral_words(encoder, GOOD + BAD)
    assert not {"dog", "the"} & set(syntax.neutral_words(encoder, GOOD))
    found = syntax.neutral_words(embedded, ["the film was good"], limit=50)
    assert len(found) == 50 and not {"film", "good"} & set(found)
    assert all(word.isalpha() and word.islower() for word in found)
    with pytest.raises(ValueError, match="no whole word"):
        syntax.neutral_words(encoder, [" ".join(WORDS)])


# -- parsing stage -------------------------------------------------------------------------------


def test_the_parsing_stage_learns_heads_and_helps_nobody_by_accident():
    trees = list(stimuli.treebank(60, seed=2, split="train", max_words=7))
    encoder = syntax.tiny_encoder(sorted({w for s in trees for w in s.words}), layers=2, width=64)
    before = {k: v.clone() for k, v in encoder.model.state_dict().items()}
    little = syntax.parsing_stage(encoder, trees[:50], trees[50:], layer=0, epochs=1)
    much = syntax.parsing_stage(encoder, trees, trees[50:], layer=0, epochs=40, batch_size=8)
    assert much.uas > max(0.6, little.uas) and much.n_words == sum(
        t != "PUNCT" for s in trees[50:] for t in s.upos
    )
    assert all(torch.equal(v, encoder.model.state_dict()[k]) for k, v in before.items())
    with pytest.raises(ValueError, match="to learn from"):
        syntax.parsing_stage(encoder, [], trees)


def test_scores_of_heads_have_one_row_a_piece():
    scorer = HeadScorer(8, width=4)
    scores = scorer(torch.randn(2, 5, 8))
    assert scores.shape == (2, 5, 5)
    assert (scores[0] - scores[0].T).abs().max() > 0  # head and dependent are different roles


def test_stages_are_compared_seed_by_seed(encoder, states):
    same = syntax.ParsedEncoder(encoder, 0.5, 10)
    found = syntax.compare_stage(
        encoder, same, (states, LABELS), (states, LABELS), seeds=(0, 1), epochs=2
    )
    # The "parsed" encoder is the plain one: not even noise may differ.
    assert found.gain.value == 0 and found.gain.interval == (0.0, 0.0) and found.gain.n == 2
    assert found.n_test == 12 and found.uas == 0.5
    alone = syntax.compare_stage(
        encoder, same, (states, LABELS), (states, LABELS), seeds=(0,), epochs=1
    )
    assert alone.gain.interval is None
    with pytest.raises(ValueError, match="at least one seed"):
        syntax.compare_stage(encoder, same, (states, LABELS), (states, LABELS), seeds=())


# -- from nothing --------------------------------------------------------------------------------


def test_the_tiny_language_is_balanced_and_true():
    pairs = tiny_language(300, seed=1)
    assert len({p.sentence for p in pairs}) == 300
    plural = [p.good in ("are", "were") for p in pairs]
    assert 0.4 < np.mean(plural) < 0.6 and 0.15 < np.mean([p.attractor for p in pairs]) < 0.35
    for pair in pairs[:50]:
        assert {pair.good, pair.bad} in ({"is", "are"}, {"was", "were"})
        assert pair.frame.count("[MASK]") == 1
    assert not {p.sentence for p in tiny_language(50, 2, exclude=[p.sentence for p in pairs])} & {
        p.sentence for p in pairs
    }


def test_the_tiny_language_ends(monkeypatch):
    monkeypatch.setattr("bertology_utils.syntax.saturation.N_NOUNS", 2)
    monkeypatch.setattr("bertology_utils.syntax.saturation.N_ADJECTIVES", 1)
    with pytest.raises(ValueError, match="different sentences of the tiny language, not 999"):
        tiny_language(999)


def test_the_word_tokenizer_knows_whole_words():
    tokenizer = word_tokenizer(["The", "keys", "are", "."])
    ids = tokenizer("the keys are old.")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == [
        "[CLS]", "the", "keys", "are", "[UNK]", ".", "[SEP]",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="takes words"):
        word_tokenizer([])


def test_a_learning_curve_repeats_itself_and_its_halves_are_what_they_say():
    options = {"sentences": 200, "pairs": 40, "steps": 20, "moments": 4, "width": 32, "layers": 1}
    one = syntax.learning_curve(seeds=(0, 1), **options)
    two = syntax.learning_curve(seeds=(0, 1), **options)
    np.testing.assert_array_equal(one.simple, two.simple)
    assert one.steps == (0, 5, 10, 15, 20) and one.accuracy.shape == (2, 5)
    assert one.loss[0, 0] > one.loss[0, -1]
    first = (one.accuracy[:, 2] - one.accuracy[:, 0]).mean()
    second = (one.accuracy[:, 4] - one.accuracy[:, 2]).mean()
    assert one.halves.value == pytest.approx(second - first) and one.halves.n == 2
    assert one.by_step("simple")[0].value == pytest.approx(one.simple[:, 0].mean())
    with pytest.raises(KeyError, match="'both'"):
        one.by_step("both")
    with pytest.raises(ValueError, match="do not divide"):
        syntax.learning_curve(steps=7, moments=3)
    with pytest.raises(ValueError, match="at least one seed"):
        syntax.learning_curve(seeds=())
