"""Facts asked of models whose knowledge is planted: precision, wording, cardinality, filters."""

import math

import numpy as np
import pytest
import torch
from planted import planted_encoder
from tiny import tiny_encoder

from bertology_utils import knowledge as k
from bertology_utils import stimuli as s
from bertology_utils.cloze import MaskCountError, TargetError, fill_mask, target_log_probs

CAPITALS = {
    "france": "paris", "italy": "rome", "spain": "madrid", "egypt": "cairo", "peru": "lima",
    "japan": "tokyo", "norway": "oslo", "cuba": "havana",
}  # fmt: skip
TEMPLATES = ("The capital of [X] is [Y].", "[X] has its capital at [Y].", "We flew to [Y], in [X].")
NEGATED = ("The capital of [X] is not [Y].", "[X] has not its capital at [Y].", "Not [Y], in [X].")


def fact(subject, *objects, relation="capital", cardinality="1-1", templates=TEMPLATES):
    return s.Fact(subject, relation, objects[0], objects, cardinality, templates, NEGATED)


FACTS = [fact(country, city) for country, city in CAPITALS.items()]
WORDS = [*TEMPLATES, *NEGATED, *CAPITALS, *CAPITALS.values(), "berlin x y seven maybe table"]


def knowing(countries, **also):
    rules = {country: {CAPITALS[country]: 5.0} for country in countries}
    return planted_encoder(WORDS, rules | also)


# -- asking ------------------------------------------------------------------------------------


def test_precision_is_the_share_of_planted_facts():
    for known in range(len(CAPITALS) + 1):
        encoder = knowing(list(CAPITALS)[:known])
        answers = k.ask(encoder, FACTS)
        found = k.precision_at_k(answers)
        assert answers.hits().tolist() == [1.0] * known + [0.0] * (len(CAPITALS) - known)
        assert found.value == pytest.approx(known / len(CAPITALS))
        assert found.interval[0] <= found.value <= found.interval[1]
        assert found.n == len(CAPITALS) and found.model == "planted"
        assert found.baselines == {"majority": pytest.approx(1 / len(CAPITALS))}


def test_ranks_and_scores_equal_a_plain_implementation(any_encoder):
    if not any_encoder.has_mlm:
        pytest.skip("no MLM head")
    facts = [
        fact("the cat", "paris", "france", relation="a"),
        fact("dogs", "money", relation="a"),
        fact("the old doctor", "river", relation="b"),
    ]
    mask = any_encoder.tokenizer.mask_token
    answers = k.ask(any_encoder, facts)
    for i, own in enumerate(facts):
        text = own.queries[0].replace("[MASK]", mask)
        inputs = any_encoder.tokenizer(text, return_tensors="pt")
        place = (inputs["input_ids"][0] == any_encoder.tokenizer.mask_token_id).nonzero()[0, 0]
        with torch.no_grad():
            logits = any_encoder.model(**inputs)
            logits = getattr(logits, "prediction_logits", getattr(logits, "logits", None))
        row = logits[0, place]
        order = row.argsort(descending=True).tolist()
        number = {w: any_encoder.tokenizer(f" {w}", add_special_tokens=False)["input_ids"][0]
                  for w in answers.candidates[own.relation]}  # fmt: skip
        assert answers.ranks[i] == tuple(order.index(number[o]) + 1 for o in own.objects)
        assert answers.first[i] == any_encoder.tokenizer.convert_ids_to_tokens(order[0])
        wanted = row.log_softmax(0)[[number[w] for w in answers.candidates[own.relation]]]
        assert answers.scores[i] == pytest.approx(wanted.numpy(), abs=1e-4)
    assert answers.candidates == {"a": ("france", "money", "paris"), "b": ("river",)}


def test_scores_agree_with_cloze(tiny_bert):
    facts = [fact("the cat", "paris"), fact("dogs", "money"), fact("a bank", "river")]
    answers = k.ask(tiny_bert, facts)
    words = answers.candidates["capital"]
    wanted = target_log_probs(tiny_bert, answers.queries, [words] * 3)
    assert np.allclose(np.stack(answers.scores), np.array(wanted), atol=1e-5)
    assert answers.first == tuple(f.tokens[0] for f in fill_mask(tiny_bert, answers.queries, k=1))


def test_a_random_model_finds_answers_as_often_as_chance():
    words = sorted(set("cat cats dog dogs mat key cabinet table bank money river city".split()))
    facts = [fact(f"the {a} near the {b}", c, relation="r")
             for a in words for b in words for c in words]  # fmt: skip
    found = []
    for seed in range(3):
        chosen = np.random.default_rng(seed).permutation(len(facts))[:400]
        encoder = tiny_encoder("bert", n_layers=1, seed=seed)
        found.append(k.ask(encoder, [facts[i] for i in chosen]).right().mean())
    # One of twelve candidates is right, whatever the model prefers.
    assert np.mean(found) == pytest.approx(1 / 12, abs=0.03)


def test_hits_discount_the_other_right_answers():
    # Three right answers in front: each is first once the others are taken away.
    assert k.hits_at([(1, 2, 3)], 1) == [1.0]
    assert k.hits_at([(2, 3, 4)], 1) == [0.0]
    assert k.hits_at([(2, 3, 4)], 2) == [1.0]
    assert k.hits_at([(4, 1)], 1) == [0.5]
    assert k.hits_at([(4, 1)], 3) == [1.0]
    assert k.hits_at([(3,), (7,), (1,)], 3).tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="k starts at 1"):
        k.hits_at([(1,)], 0)
    with pytest.raises(ValueError, match="fact 1"):
        k.hits_at([(1,), ()], 1)


def test_majority_guesses_in_the_order_of_frequency():
    facts = [fact(x, y, relation="lang") for x, y in
             zip("abcdef", ["fr", "fr", "fr", "es", "es", "de"], strict=True)]  # fmt: skip
    ranks = k.majority_ranks(facts)
    assert ranks == [(1,), (1,), (1,), (2,), (2,), (3,)]
    assert [float(k.hits_at(ranks, i).mean()) for i in (1, 2, 3)] == [3 / 6, 5 / 6, 1.0]
    # Ties go by the alphabet, and relations are counted apart.
    other = [fact("g", "b", relation="r"), fact("h", "a", relation="r")]
    assert k.majority_ranks(other + facts)[:2] == [(2,), (1,)]
    assert s.majority(facts) == ("fr", 0.5)


def test_means_over_relations_do_not_weigh_by_size():
    values = [1.0] * 90 + [0.0] * 10
    groups = ["a"] * 90 + ["b"] * 10
    found = k.macro_mean(values, groups, model="m")
    assert found.value == 0.5 and found.n == 100 and found.interval == (0.5, 0.5)
    spread = k.macro_mean([0.0, 1.0] * 50, ["a"] * 100, model="m")
    # The standard error of a share of one half among a hundred is 0.05.
    assert spread.interval == pytest.approx((0.4, 0.6), abs=0.02)
    with pytest.raises(k.UnmatchedError, match="2 groups for 1 values"):
        k.macro_mean([1.0], ["a", "b"], model="m")
    with pytest.raises(k.KnowledgeError, match="no values"):
        k.macro_mean([], [], model="m")


def test_bad_questions_are_refused():
    encoder = knowing(["france"])
    with pytest.raises(k.KnowledgeError, match="no facts"):
        k.ask(encoder, [])
    with pytest.raises(k.UnmatchedError, match="1 questions for 8 facts"):
        k.ask(encoder, FACTS, ["The capital is [MASK]."])
    with pytest.raises(MaskCountError, match="found 2"):
        k.ask(encoder, FACTS[:1], ["[MASK] is [MASK]."])
    with pytest.raises(TargetError, match="'atlantis'"):
        k.ask(encoder, [fact("france", "atlantis")])
    with pytest.raises(k.KnowledgeError, match="no candidates for the relation 'capital'"):
        k.ask(encoder, FACTS, among={"language": ("paris",)})
    with pytest.raises(k.KnowledgeError, match="one piece"):
        k.askable(encoder, [fact("france", "atlantis")])
    with pytest.raises(s.FactError, match="'capitol'"):
        k.known_facts(encoder, ["capitol"])
    with pytest.raises(k.KnowledgeError, match="per_relation"):
        k.known_facts(encoder, ["capital"], per_relation=0)


def test_only_one_piece_answers_are_kept():
    encoder = knowing(["france"])
    kept = k.askable(encoder, [fact("france", "atlantis", "paris"), fact("italy", "atlantis")])
    assert [(f.subject, f.object, f.objects) for f in kept] == [("france", "paris", ("paris",))]
    few = k.known_facts(encoder, ["capital", "painter"], per_relation=3)
    assert len(few) == 3 and {f.relation for f in few} == {"capital"}
    assert k.known_facts(encoder, ["capital"], per_relation=3) == few
    found = {f.object.lower() for f in k.known_facts(encoder, ["capital"])}
    assert found == {*CAPITALS.values(), "berlin"}


def test_a_lama_file_can_be_asked(tmp_path):
    path = tmp_path / "P36.jsonl"
    rows = [f'{{"sub_label": "{x}", "obj_label": "{y}", "template": "[X] is ruled from [Y] ."}}'
            for x, y in CAPITALS.items()]  # fmt: skip
    path.write_text("\n".join(rows))
    facts = k.askable(knowing(["france"]), s.load("lama", path))
    found = k.precision_at_k(k.ask(knowing(["france", "peru"]), facts))
    assert found.value == pytest.approx(2 / 8) and list(found.by_relation) == ["P36"]


# -- wording -----------------------------------------------------------------------------------


def test_the_template_that_works_is_found_on_other_facts():
    # "at", which only the second template has, lets the model find what it otherwise misses.
    rules = {country: {city: 2.0} for country, city in CAPITALS.items()}
    rules["capital"] = {"berlin": 3.0}
    rules["at"] = {"berlin": -3.0}
    encoder = planted_encoder(WORDS, rules)
    found = k.wording(k.ask_phrasings(encoder, FACTS))
    assert found.first.value == 0.0
    assert found.chosen_on_others.value == found.gain.value == found.oracle.value == 1.0
    assert found.worst.value == 0.0 and found.best.value == 1.0
    assert found.gain.unit == "share difference" and found.gain.n == len(FACTS)
    shares = [e.value for e in found.templates["capital"].values()]
    assert shares == [0.0, 1.0, 1.0]
    # Among the candidates "berlin" is no answer: every template gives the same one.
    assert found.consistency.value == 1.0 == found.ensemble.value == found.first_choice.value


def test_consistency_counts_pairs_of_templates():
    # "flew" makes the third template say "rome" whatever the country: one pair in three agrees.
    rules = {country: {city: 2.0} for country, city in CAPITALS.items()}
    rules["flew"] = {"rome": 9.0}
    asked = k.ask_phrasings(planted_encoder(WORDS, rules), FACTS)
    found = dict(zip(CAPITALS, asked[0].consistency(), strict=True))
    assert found["italy"] == 1.0
    assert found["peru"] == pytest.approx(1 / 3)
    one = [fact("france", "paris", templates=TEMPLATES[:1]), fact("peru", "lima",
           templates=TEMPLATES[:1])]  # fmt: skip
    with pytest.raises(k.KnowledgeError, match="one template"):
        k.wording(k.ask_phrasings(knowing([]), one))
    with pytest.raises(k.KnowledgeError, match="two facts"):
        k.wording(k.ask_phrasings(knowing([]), FACTS[:1]))
    with pytest.raises(k.KnowledgeError, match="other templates"):
        k.ask_phrasings(knowing([]), [FACTS[0], one[1]])
    with pytest.raises(k.KnowledgeError, match="no relation"):
        k.wording([])


def test_choosing_on_the_same_facts_would_flatter_and_is_not_done():
    from bertology_utils.knowledge.phrasings import best_on_others

    rng = np.random.default_rng(0)
    gains, flattered = [], []
    for seed in range(200):
        hits = (rng.random((10, 40)) < 0.2).astype(float)  # templates that are all alike
        gains.append(best_on_others(hits, seed=seed).mean() - hits[0].mean())
        flattered.append(hits.mean(axis=1).max() - hits[0].mean())
    assert abs(np.mean(gains)) < 0.02 < 0.05 < np.mean(flattered)


# -- cardinality and names ---------------------------------------------------------------------


def test_the_gap_between_one_answer_and_many():
    many = [fact(c, "paris", "rome", relation="border", cardinality="N-M") for c in CAPITALS]
    encoder = knowing(CAPITALS)
    found = k.cardinality_gap(k.ask(encoder, FACTS + many))
    by = found.by_cardinality
    # Of the neighbours "paris" and "rome", only France and Italy find theirs, one of two each.
    assert by["1-1"].value == 1.0 and by["N-M"].value == pytest.approx(1 / 8)
    assert found.difference.value == pytest.approx(7 / 8)
    assert by["1-1"].baselines == {"majority": pytest.approx(1 / 8)}
    # Both neighbours are right everywhere, so guessing finds each once the other is taken away.
    assert by["N-M"].baselines == {"majority": 1.0}
    assert found.difference.unit == "share difference" and found.difference.n == 16
    with pytest.raises(k.KnowledgeError, match="N-M"):
        k.cardinality_gap(k.ask(encoder, FACTS))


def test_the_name_filter_removes_what_the_name_gives_away():
    told = [fact("cairo river", "cairo", relation="place"), fact("oslo bay", "oslo",
            relation="place"), fact("france", "paris", relation="place")]  # fmt: skip
    gone = [fact("lima city", "lima", relation="all gone")]
    rules = {word: {word: 5.0} for word in ("cairo", "oslo", "lima")}
    words = [*WORDS, "river bay city"]
    encoder = planted_encoder(words, rules)
    found = k.name_filter(k.ask(encoder, told + gone + FACTS))
    assert found.hinted == {"place": pytest.approx(2 / 3), "all gone": 1.0, "capital": 0.0}
    assert found.all_facts.by_relation["place"].value == pytest.approx(2 / 3)
    assert found.kept.by_relation["place"].value == 0.0
    assert set(found.all_facts.by_relation) == set(found.kept.by_relation) == {"place", "capital"}
    with pytest.raises(k.KnowledgeError, match="every fact"):
        k.name_filter(k.ask(encoder, gone))
    answers = k.ask(encoder, FACTS)
    with pytest.raises(k.UnmatchedError, match="1 flags for 8"):
        answers.only([True])
    with pytest.raises(k.KnowledgeError, match="no fact is left"):
        answers.only([False] * 8)


def test_ensembles_average_log_probabilities():
    asked = k.ask_phrasings(knowing(["france", "peru"]), FACTS)[0]
    by_hand = np.mean([np.stack(a.scores) for a in asked.answers], axis=0).argmax(axis=1)
    words = asked.answers[0].candidates["capital"]
    wanted = [float(words[i] == f.object) for i, f in zip(by_hand, FACTS, strict=True)]
    assert asked.ensemble_hits().tolist() == wanted
    assert math.isclose(sum(np.exp(asked.answers[0].scores[0])), 1, abs_tol=0.5)


def test_the_embedded_model_knows_more_than_its_random_twin(embedded):
    from bertology_utils.encoder import random_encoder

    facts = k.known_facts(embedded, ["language", "capital_country"], per_relation=25)
    found = k.precision_at_k(k.ask(embedded, facts), 10)
    control = k.precision_at_k(k.ask(random_encoder(embedded), facts), 10)
    assert found.interval[0] > control.interval[1]
