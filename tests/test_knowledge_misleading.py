"""Negation, primes, names and steps, asked of models whose habits are planted."""

import numpy as np
import pytest
from planted import planted_encoder
from scipy.stats import spearmanr
from test_knowledge_facts import CAPITALS, FACTS, WORDS, fact, knowing
from tiny import tiny_encoder

from bertology_utils import knowledge as k
from bertology_utils import stimuli as s
from bertology_utils.cloze import MaskCountError, TargetError
from bertology_utils.knowledge.misleading import NEUTRAL, rank_correlation
from bertology_utils.knowledge.steps import least_squares_slope

NEUTRAL_WORDS = " ".join(NEUTRAL)

# -- negation ----------------------------------------------------------------------------------


def test_a_model_deaf_to_not_keeps_every_answer():
    encoder = knowing(CAPITALS)
    found = k.negation(encoder, k.ask(encoder, FACTS))
    assert found.overlap.value == 1.0
    assert found.correlation.value == pytest.approx(1.0)
    assert found.affirmative.value == 1.0 and found.negated.value == 0.0
    assert found.affirmative.baselines == {"chance": 0.5}
    assert found.plain.first == tuple(CAPITALS.values())


def test_a_model_that_hears_not_turns_its_answers_round():
    # "not" speaks against every capital as much as a country speaks for its own, and then some.
    rules = {country: {city: 2.0} for country, city in CAPITALS.items()}
    rules["not"] = {"seven": 9.0}
    encoder = planted_encoder(WORDS, rules)
    found = k.negation(encoder, k.ask(encoder, FACTS))
    assert found.overlap.value == 0.0
    # Among the capitals, though, the order is as before: that is what the correlation shows.
    assert found.correlation.value == pytest.approx(1.0) and found.negated.value == 0.0


def test_rank_correlation_equals_scipy():
    rng = np.random.default_rng(0)
    for n in (2, 3, 10, 50):
        a, b = rng.normal(size=(2, n))
        assert rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic)
    with pytest.raises(k.KnowledgeError, match="1 scores with 1"):
        rank_correlation(np.ones(1), np.ones(1))


def test_public_facts_without_negations_are_refused():
    bare = s.Fact("france", "capital", "paris", ("paris",), "1-1", ("[X] is [Y].",), ())
    encoder = knowing([])
    with pytest.raises(k.KnowledgeError, match="'france'"):
        k.negation(encoder, k.ask(encoder, [bare]))
    with pytest.raises(k.UnmatchedError, match="not template 1 of 'capital'"):
        k.negation(encoder, k.ask(encoder, FACTS), template=1)


# -- primes ------------------------------------------------------------------------------------


def test_a_model_that_copies_the_prime_falls_for_all_of_them():
    rules = {country: {city: 2.0} for country, city in CAPITALS.items()}
    for city in CAPITALS.values():
        rules[city] = {city: 5.0}
    encoder = planted_encoder([*WORDS, NEUTRAL_WORDS, "?"], rules)
    found = k.mispriming(encoder, k.ask(encoder, FACTS))
    assert found.precision["none"].value == found.precision["neutral"].value == 1.0
    assert found.precision["misleading"].value == 0.0
    assert found.drop.value == 1.0 and found.neutral_drop.value == 0.0
    assert found.copied.value == 1.0 and found.copied.baselines == {"no_prime": 0.0}
    assert found.drop.unit == "share difference" and found.drop.n == len(FACTS)
    for own, prime in zip(FACTS, found.primes, strict=True):
        assert prime in CAPITALS.values() and prime not in own.objects


def test_a_model_that_ignores_the_prime_loses_nothing():
    encoder = planted_encoder([*WORDS, NEUTRAL_WORDS, "?"],
                              {c: {y: 2.0} for c, y in CAPITALS.items()})  # fmt: skip
    found = k.mispriming(encoder, k.ask(encoder, FACTS))
    assert found.drop.value == found.copied.value == 0.0
    assert found.drop.interval == (0.0, 0.0)


def test_neutral_primes_answer_no_question():
    answers = {o.lower() for r in s.RELATIONS for f in s.facts(r) for o in f.objects}
    assert not answers & {word.lower() for word in NEUTRAL}


def test_primes_are_written_in_front():
    assert k.primed("rome", "The capital is [MASK].") == "Rome? The capital is [MASK]."
    with pytest.raises(k.KnowledgeError, match="empty"):
        k.primed("  ", "The capital is [MASK].")
    encoder = knowing([])
    with pytest.raises(s.FactError, match="no wrong answer"):
        k.mispriming(encoder, k.ask(encoder, [FACTS[0]]))


# -- names -------------------------------------------------------------------------------------

NAMES = s.stereotyped_names(48)
NAME_WORDS = [w for item in NAMES for w in (item.name, item.origin, item.country)]
FRAMES = [text for item in NAMES[:1] for text in (item.nationality, item.citizen, item.born)]


@pytest.mark.parametrize("question", ["nationality", "citizen", "born"])
def test_a_model_that_judges_by_names(question):
    side = "origin" if question == "nationality" else "country"
    rules = {}
    for item in NAMES:
        first = item.name.split()[0].lower()
        rules[first] = {getattr(item, side): 3.0}
    encoder = planted_encoder([*NAME_WORDS, *FRAMES], rules)
    found = k.name_stereotypes(encoder, NAMES, question=question)
    assert found.result.value == 1.0 and found.n == 48
    assert found.result.baselines == {"chance": 1 / 12, "one_answer": 1 / 12}
    assert np.array_equal(found.table, np.eye(12))
    assert found.mass.sum(axis=1) == pytest.approx(np.ones(12))
    assert np.diag(found.mass) == pytest.approx(np.full(12, np.e**3 / (np.e**3 + 11)), abs=0.01)


def test_a_model_with_one_favourite_origin_scores_at_chance():
    encoder = planted_encoder([*NAME_WORDS, *FRAMES], {"": {"greek": 3.0}})
    found = k.name_stereotypes(encoder, NAMES)
    assert found.result.value == pytest.approx(1 / 12)
    assert found.table[:, found.origins.index("Greek")].tolist() == [1.0] * 12


def test_name_questions_are_checked():
    encoder = planted_encoder([*NAME_WORDS, *FRAMES], {})
    with pytest.raises(k.KnowledgeError, match="'religion'"):
        k.name_stereotypes(encoder, NAMES, question="religion")
    with pytest.raises(k.KnowledgeError, match="1 origins"):
        k.name_stereotypes(encoder, NAMES[:1])
    with pytest.raises(TargetError):
        k.name_stereotypes(tiny_encoder("bert"), NAMES)


def test_changed_predictions_counts_what_changes():
    encoder = planted_encoder(
        ["Mary said that she was tired and John he"], {"mary": {"she": 2.0}, "john": {"he": 2.0}}
    )
    texts = ["Mary said that [MASK] was tired"] * 3
    changed = ["John said that [MASK] was tired", "Mary and Mary said that [MASK] was tired",
               "John said that [MASK] was tired"]  # fmt: skip
    found = k.changed_predictions(encoder, texts, changed)
    assert found.result.value == pytest.approx(2 / 3) and found.result.n == 3
    assert found.before == ("she",) * 3 and found.after == ("he", "she", "he")
    among = k.changed_predictions(encoder, texts, changed, candidates=["tired", "was"])
    assert among.result.value == 0.0
    with pytest.raises(k.KnowledgeError, match="nothing was exchanged"):
        k.changed_predictions(encoder, texts[:1], texts[:1])
    with pytest.raises(k.UnmatchedError, match="1 changed texts for 3"):
        k.changed_predictions(encoder, texts, changed[:1])
    with pytest.raises(k.KnowledgeError, match="no texts"):
        k.changed_predictions(encoder, [], [])
    with pytest.raises(MaskCountError):
        k.changed_predictions(encoder, ["Mary said"], ["John said"])


# -- steps -------------------------------------------------------------------------------------


def test_slope_equals_numpy():
    rng = np.random.default_rng(1)
    x, y = np.array([1.0, 2.0, 4.0]), rng.normal(size=(3, 5))
    assert least_squares_slope(x, y) == pytest.approx(np.polyfit(x, y, 1)[0])
    assert least_squares_slope(x, 3 - 0.5 * x) == pytest.approx(-0.5)
    with pytest.raises(k.KnowledgeError, match="two different x"):
        least_squares_slope(np.ones(3), y)


def chain(country, hops, *, answer=None):
    answer = answer or CAPITALS[country]
    start = fact(f"poet of {country}", country, relation="born_in")
    last = fact(country, answer, relation="language")
    named = country if hops == 1 else f"the land of poet {country}"
    text = f"The language of {named} {'there ' * hops}is [MASK]."
    return s.Chain(text, answer, hops, (start, last)[-hops:])


def test_steps_recover_a_planted_fall():
    # The model knows every answer, but each "there" speaks for another one: two of them win.
    words = [*WORDS, "the language land of poet there"]
    rules = {country: {city: 1.5} for country, city in CAPITALS.items()} | {"there": {"rome": 1.0}}
    encoder = planted_encoder(words, rules)
    questions = {n: [chain(c, n) for c in CAPITALS if c != "italy"] for n in (1, 2)}
    found = k.ask_steps(encoder, questions, among={"language": tuple(CAPITALS.values())})
    assert [found.by_steps[n].value for n in (1, 2)] == [1.0, 0.0]
    assert found.slope.value == -1.0 and found.slope.interval == (-1.0, -1.0)
    assert found.slope.n == 7 and found.questions == {1: 7, 2: 7}
    assert found.table.tolist() == [[1.0, 0.0]] * 7
    assert found.by_steps[1].baselines == {"majority": pytest.approx(1 / 7)}
    uneven = {1: questions[1], 2: questions[2][1:]}
    with pytest.raises(k.KnowledgeError, match="of 2 steps ends in language of 'france'"):
        k.ask_steps(encoder, uneven, among={"language": tuple(CAPITALS.values())})


def test_step_questions_end_in_the_same_facts(embedded):
    questions = k.step_questions(embedded, most=2)
    ends = [
        {(c.steps[-1].subject.lower().removeprefix("the "), c.steps[-1].relation) for c in group}
        for group in questions.values()
    ]
    assert list(questions) == [1, 2, 3, 4]
    assert ends[0] == ends[1] == ends[2] == ends[3] and len(ends[0]) >= 15
    for number, group in questions.items():
        assert all(c.hops == number == len(c.steps) for c in group)
        assert len(group) <= 2 * len(ends[0])
    assert {relation for _, relation in ends[0]} <= {"language", "currency", "continent"}
    with pytest.raises(k.KnowledgeError, match="two numbers of steps"):
        k.step_questions(embedded, (2, 2))
    with pytest.raises(k.KnowledgeError, match="two numbers of steps"):
        k.ask_steps(embedded, {1: questions[1]})
