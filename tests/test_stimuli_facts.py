"""Facts: sources, templates, single-piece answers, negation, misprimes and multi-step questions."""

import pytest

from bertology_utils import stimuli
from bertology_utils.stimuli import MASK, RELATIONS, FactError, facts


def by_letters(text):
    """A toy tokenizer: words of at most seven letters are one piece."""
    return [w[i : i + 7] for w in text.split() for i in range(0, len(w), 7)]


def test_known_facts():
    def answer(relation, subject):
        return next(f.objects for f in facts(relation) if f.subject == subject)

    assert answer("capital", "France") == ("Paris",)
    assert answer("capital_country", "Cairo") == ("Egypt",)
    assert answer("language", "Brazil") == ("Portuguese",)
    assert answer("currency", "Japan") == ("yen",)
    assert answer("continent", "Kenya") == ("Africa",)
    assert answer("symbol", "iron") == ("Fe",)
    assert answer("symbol_element", "Au") == ("gold",)
    assert answer("author", "Hamlet") == ("Shakespeare",)
    assert answer("city_country", "Milan") == ("Italy",)
    assert {"France", "Poland"} <= set(answer("border", "Germany"))
    assert {"Mexico", "Spain"} <= set(answer("language_country", "Spanish"))


@pytest.mark.parametrize("relation", RELATIONS)
def test_templates(relation):
    found = facts(relation)
    assert len({f.subject for f in found}) == len(found)
    for f in found:
        assert len(f.templates) >= 4 and len(f.templates) == len(f.negated_templates)
        assert f.object in f.objects and f.cardinality in ("1-1", "N-1", "N-M")
        for query, negated in zip(f.queries, f.negated_queries, strict=True):
            assert query.count(MASK) == 1 == negated.count(MASK)
            assert query != negated
            assert "[X]" not in query + negated and "[Y]" not in query + negated
            assert query[0].isupper() or not query[0].isalpha()
        assert MASK not in f.statement() and f.object in f.statement()


def test_answers_are_single_pieces():
    for relation in ("capital", "border", "language"):
        kept = facts(relation, by_letters)
        assert 0 < len(kept) < len(facts(relation)) + 1
        for f in kept:
            assert all(len(by_letters(o)) == 1 for o in f.objects)
    with pytest.raises(FactError, match="single piece"):
        facts("capital", list)
    with pytest.raises(FactError, match="single piece"):
        facts("capital", lambda text: ["[UNK]"])
    with pytest.raises(FactError, match="'anthem'"):
        facts("anthem")


def test_sizes():
    sizes = {relation: len(facts(relation)) for relation in RELATIONS}
    assert sizes["capital"] > 130 and sizes["continent"] > 140 and sizes["symbol"] == 94
    assert sizes["language"] > 80 and sizes["currency"] > 130 and sizes["author"] > 60


def test_baselines_and_misprimes():
    found = facts("currency")
    answer, share = stimuli.majority(found)
    assert answer in stimuli.candidates(found)
    assert share == sum(answer in f.objects for f in found) / len(found)
    for fact, wrong in stimuli.misprimes(found, 3):
        assert wrong not in fact.objects
        primed = fact.misprimed(wrong)
        assert len(primed) == len(fact.queries)
        assert primed[0] == f"{wrong[0].upper()}{wrong[1:]}? {fact.queries[0]}"
    assert stimuli.misprimes(found, 3) == stimuli.misprimes(found, 3)
    assert stimuli.misprimes(found, 3) != stimuli.misprimes(found, 4)
    with pytest.raises(FactError, match="no facts"):
        stimuli.majority([])


def test_leaking_names():
    leaks = {f.subject: f.leaks for f in facts("capital")}
    assert leaks["Mexico"] and leaks["Tunisia"]
    assert {f.subject: f.leaks for f in facts("language")}["Norway"]
    assert not leaks["France"] and not leaks["Japan"]
    other = stimuli.replace_subject(facts("born_in")[0], "Anna Schmidt")
    assert all("Anna Schmidt" in q for q in other.queries)


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_chains(hops):
    made = stimuli.chains(hops, 60, seed=1)
    assert len({c.query for c in made}) == 60
    for chain in made:
        assert len(chain.steps) == hops == chain.hops
        assert chain.answer == chain.steps[-1].object
        assert chain.query.count(MASK) == 1
        for before, after in zip(chain.steps, chain.steps[1:], strict=False):
            end = after.subject.lower().removeprefix("the ")
            assert before.object.lower() in end, chain
    assert made == stimuli.chains(hops, 60, seed=1)


def test_chain_limits():
    with pytest.raises(FactError, match="hops"):
        stimuli.chains(7, 3)
    with pytest.raises(FactError, match="only"):
        stimuli.chains(3, 100_000)


def test_file_is_what_the_sources_say():
    from bertology_utils.stimuli import build_facts

    stored = {
        tuple(line.split("\t"))
        for line in build_facts.DATA.read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    }
    rebuilt = set(build_facts.rows())
    # Populations move between releases of the sources, so cities may come and go; little else may.
    different = {row for row in stored ^ rebuilt if row[0] != "city_country"}
    assert len(different) <= 0.02 * len(stored), sorted(different)[:20]
