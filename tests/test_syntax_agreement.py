"""Agreement, polarity and negation on models whose knowledge is written down."""

import numpy as np
import pytest
from planted import planted_encoder

from bertology_utils import stimuli, syntax
from bertology_utils.cloze import MaskCountError, preference
from bertology_utils.stimuli import PairError, minimal_pairs


def nouns(split="all"):
    words = stimuli.lexicon(split)
    return [(n.singular, n.plural) for n in words.nouns if n.plural and " " not in n.plural]


@pytest.fixture(scope="module")
def counting():
    """A model that sums the numbers of all nouns: it knows agreement, and no syntax."""
    rules = {}
    for singular, plural in nouns():
        rules[singular] = {"is": 1.0, "was": 1.0, "has": 1.0}
        rules[plural] = {"are": 1.0, "were": 1.0, "have": 1.0}
    texts = [" ".join(form for pair in nouns() for form in pair), "is are was were has have"]
    texts += [t for name in (*syntax.NEAR.values(), *syntax.ACROSS.values())
              for p in minimal_pairs(name, 80) for t in (p.good, p.bad)]  # fmt: skip
    texts += [t for k in range(4) for p in
              minimal_pairs("agreement_attractors", 80, attractors=k, intervening=3)
              for t in (p.good, p.bad)]  # fmt: skip
    return planted_encoder(texts, rules)


def only(preferences):
    return {name: p.accuracy for name, p in preferences.items()}


def test_a_model_that_counts_nouns_is_right_until_they_disagree(counting):
    found = syntax.agreement(counting, {"simple": "agreement_simple"}, 40)
    # Objects come after the verb and count as well, so even "simple" is not perfect.
    assert found["simple"].accuracy > 0.6 and found["simple"].n == 40
    by = [p.accuracy for p in syntax.by_attractors(counting, 40)]
    assert by[0] > 0.8 and by[3] < 0.3 and by[0] > by[2] > by[3] - 0.05
    with pytest.raises(PairError):
        syntax.agreement(counting, {"none": "no_such_phenomenon"}, 2)


def test_pooling_keeps_every_pair():
    whole = syntax.pool([preference([1.0, -1.0], "m"), preference([2.0], "m")])
    assert whole.margins == (1.0, -1.0, 2.0) and whole.accuracy == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="one model"):
        syntax.pool([preference([1.0], "m"), preference([2.0], "other")])
    with pytest.raises(ValueError, match="one model"):
        syntax.pool([])


def test_polarity_of_a_model_that_sees_no_and_not_where_it_stands():
    texts = [t for name in ("npi_presence", "npi_licensor", "npi_scope")
             for p in minimal_pairs(name, 30) for t in (p.good, p.bad)]  # fmt: skip
    blind = planted_encoder(texts, {"no": {"ever": 2.0}, "few": {"ever": 2.0}})
    found = syntax.polarity(blind, 30)
    assert found["licensor"].accuracy == 1.0
    # "no" is in both sentences, only elsewhere: a bag of words cannot tell (and ties count half).
    assert found["scope"].accuracy == pytest.approx(0.5)
    assert all(p.n == 30 for p in found.values())


def test_negation_of_a_model_that_never_sees_not():
    items = stimuli.category_completions()
    rules = {i.instance: {i.category: 3.0} for i in items}
    texts = [t.replace("[MASK]", i.category) for i in items for t in (i.affirmative, i.negative)]
    texts += [i.other for i in items]
    deaf = planted_encoder(texts, rules)
    found = syntax.negation(deaf)
    assert len(found.items) == len(items) == found.negated.n
    assert found.affirmative.accuracy > 0.99 and found.negated.accuracy < 0.01
    assert found.mean("overlap").value == pytest.approx(1)
    assert found.mean("rank_correlation").value == pytest.approx(1)
    assert all(a == b for a, b in found.guesses)
    # A model that turns round at "not" wins both.
    words = sorted({i.category for i in items} | {i.other for i in items})
    hearing = planted_encoder(texts, rules | {"not": dict.fromkeys(words, 0.0)})
    np.testing.assert_allclose(syntax.negation(hearing).overlap, found.overlap)
    with pytest.raises(KeyError, match="'colour'"):
        found.mean("colour")


def test_forms_are_ranked_at_the_mask(counting):
    found = syntax.compare_forms(counting, "The keys [MASK] old.", ["is", "are", "zzxq"])
    assert list(found)[0] == "are" and list(found)[1] == "is"
    assert 0 < found["is"] < found["are"] < 1
    with pytest.raises(MaskCountError):
        syntax.compare_forms(counting, "The keys are old.", ["is"])
