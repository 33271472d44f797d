"""Senses, sentiment, entailment, arguments, fragments, meaning and number tasks."""

from collections import Counter

import pytest

from bertology_utils import stimuli as s

# -- senses ---------------------------------------------------------------------------------------


def test_senses_are_many_and_balanced():
    assert len(s.SENSE_WORDS) >= 20
    for word in s.SENSE_WORDS:
        examples = s.sense_examples(word)
        counts = Counter(e.sense for e in examples)
        assert len(counts) >= 2 and len(set(counts.values())) == 1
        assert min(counts.values()) >= 30
        assert len({e.text for e in examples}) == len(examples)
        for e in examples:
            assert e.words[e.target].lower() == word
            assert [w.lower() for w in e.words].count(word) == 1
            assert "{" not in e.text and "|" not in e.text
        for sense in counts:
            assert len({e.frame for e in examples if e.sense == sense}) >= 8


def test_sense_frames_split():
    for word in ("bank", "cell", "key"):
        train = {(e.sense, e.frame) for e in s.sense_examples(word, frames="train")}
        test = {(e.sense, e.frame) for e in s.sense_examples(word, frames="test")}
        assert not train & test and train and test
    assert s.sense_examples("bat", 10, 3) == s.sense_examples("bat", 10, 3)
    assert s.sense_examples("bat", 10, 3) != s.sense_examples("bat", 10, 4)
    with pytest.raises(s.SenseError, match="'zebra'"):
        s.sense_examples("zebra")
    with pytest.raises(s.SenseError, match="not 500"):
        s.sense_examples("bank", 500)
    with pytest.raises(s.SenseError, match="frames"):
        s.sense_examples("bank", frames="dev")


# -- sentiment ------------------------------------------------------------------------------------


def test_sentiment():
    made = s.sentiment(600, 1, kinds=("plain", "negated", "contrast"))
    assert len({m.text for m in made}) == 600
    assert Counter(m.label for m in made) == {"positive": 300, "negative": 300}
    assert {m.feature("kind") for m in made} == {"plain", "negated", "contrast"}
    from bertology_utils.stimuli.sentiment import NEGATIVE, POSITIVE

    def words(text):
        return {w.strip(".,!") for w in text.lower().split()}

    for m in made:
        good, bad = words(m.text) & set(POSITIVE), words(m.text) & set(NEGATIVE)
        if m.feature("kind") == "plain":
            assert bool(good) == (m.label == "positive") and bool(bad) != bool(good)
        elif m.feature("kind") == "negated":
            assert bool(bad) == (m.label == "positive")
        else:
            assert good and bad
    train, test = s.sentiment(400, 0, split="train"), s.sentiment(300, 0, split="test")
    adjectives = set(POSITIVE) | set(NEGATIVE)
    used = [set().union(*(words(m.text) & adjectives for m in part)) for part in (train, test)]
    assert not used[0] & used[1]
    assert all(m.feature("domain") == "hotel" for m in s.sentiment(20, domain="hotel"))


def test_planted_token():
    made = s.sentiment(400, 2)
    for rate in (0.5, 0.8, 1.0):
        planted = s.plant_token(made, "honestly", rate, "positive", 1)
        with_token = [p for p in planted if p.feature("planted") == "yes"]
        share = sum(p.label == "positive" for p in with_token) / len(with_token)
        assert share == pytest.approx(rate, abs=0.01)
        assert all(p.text.startswith("honestly ") for p in with_token)
        assert [p.label for p in planted] == [m.label for m in made]
    with pytest.raises(s.SentimentError, match="rate"):
        s.plant_token(made, "x", 0.2, "positive")
    with pytest.raises(s.SentimentError, match="'mixed'"):
        s.plant_token(made, "x", 0.7, "mixed")
    with pytest.raises(s.SentimentError, match="'garage'"):
        s.sentiment(3, domain="garage")
    with pytest.raises(s.SentimentError, match="ironic"):
        s.sentiment(3, kinds=("ironic",))


# -- entailment -----------------------------------------------------------------------------------


def bag(text):
    return {w.strip(".,").lower() for w in text.split()}


def test_shortcut_is_planted():
    made = s.entailment(400, 1)
    assert Counter(m.label for m in made) == {"entailment": 200, "non-entailment": 200}
    for m in made:
        full = bag(m.hypothesis) <= bag(m.premise)
        assert full == (m.label == "entailment"), m
    mixed = s.entailment(400, 1, counterexamples=0.1)
    breaking = [m for m in mixed if m.label == "non-entailment"
                and bag(m.hypothesis) <= bag(m.premise)]  # fmt: skip
    assert len(breaking) == 20


@pytest.mark.parametrize("heuristic", s.HEURISTICS)
def test_shortcut_tests_overlap_fully(heuristic):
    made = s.shortcut_test(heuristic, 200, 3)
    assert Counter(m.label for m in made) == {"entailment": 100, "non-entailment": 100}
    for m in made:
        assert bag(m.hypothesis) <= bag(m.premise), m
        if heuristic != "lexical_overlap":
            inside = m.hypothesis[:-1].lower() in m.premise.lower()
            assert inside or m.label == "entailment", m
    kinds = {
        label: {m.kind for m in made if m.label == label}
        for label in ("entailment", "non-entailment")
    }
    assert all(len(found) >= 3 for found in kinds.values())


def test_entailment_bad_input():
    with pytest.raises(s.InferenceError, match="counterexamples"):
        s.entailment(4, counterexamples=2)
    with pytest.raises(s.InferenceError, match="'luck'"):
        s.shortcut_test("luck", 4)
    with pytest.raises(s.InferenceError, match="at least 1"):
        s.entailment(0)


# -- arguments ------------------------------------------------------------------------------------


def test_arguments_and_their_mirror():
    made = s.arguments(200, 1, cue_share=0.8)
    assert sum(a.cue for a in made) == 160
    labels = Counter(a.label for a in made)
    assert min(labels.values()) > 70
    for a in made:
        right, wrong = a.warrants[a.label], a.warrants[1 - a.label]
        assert ("not" in right.split()) == a.cue and ("not" in wrong.split()) != a.cue
        assert [w for w in right.split() if w != "not"] == [w for w in wrong.split() if w != "not"]
    both = s.mirrored(made)
    assert sum(a.cue for a in both) == len(made) == len(both) / 2
    assert all(x.reason == y.reason and x.warrants == y.warrants and x.claim != y.claim
               for x, y in zip(both[::2], both[1::2], strict=True))  # fmt: skip
    with pytest.raises(s.InferenceError, match="cue_share"):
        s.arguments(5, cue_share=-1)
    with pytest.raises(s.InferenceError, match="cannot make"):
        s.arguments(100_000)


# -- fragments ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", s.FRAGMENTS)
def test_fragments(name):
    made = s.fragment(name, 90, 2)
    assert Counter(m.label for m in made) == {
        "entailment": 30, "contradiction": 30, "neutral": 30
    }  # fmt: skip
    assert len({(m.premise, m.hypothesis) for m in made}) == 90
    with pytest.raises(s.InferenceError, match="'modal'"):
        s.fragment("modal", 3)
    with pytest.raises(s.InferenceError, match="steps"):
        s.fragment(name, 3, steps=9)


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_comparatives_follow_from_their_premises(steps):
    for m in s.fragment("comparative", 60, 1, steps=steps):
        facts = [p.split() for p in m.premise.rstrip(".").split(". ")]
        assert len(facts) == steps
        above = {(f[0], f[-1]) for f in facts}
        grew = True
        while grew:
            more = {(a, d) for a, b in above for c, d in above if b == c} - above
            above |= more
            grew = bool(more)
        first, *_, last = m.hypothesis.rstrip(".").split()
        if m.label == "entailment":
            assert (first, last) in above
        elif m.label == "contradiction":
            assert (last, first) in above
        else:
            assert (first, last) not in above and (last, first) not in above


@pytest.mark.parametrize("steps", [1, 3])
def test_conditionals_follow_from_their_premises(steps):
    for m in s.fragment("conditional", 60, 1, steps=steps):
        rules, known = [], set()
        for part in m.premise.rstrip(".").split(". "):
            if part.startswith("If "):
                rules.append(tuple(part[3:].split(", then ")))
            else:
                known.add(part)
        for _ in rules:
            known |= {then for if_, then in rules if if_ in known}
        said = m.hypothesis.rstrip(".")
        denied = said.replace("has not", "has") if "has not" in said else None
        follows = said in known
        refuted = denied is not None and denied in known
        expected = "entailment" if follows else "contradiction" if refuted else "neutral"
        assert m.label == expected, m


# -- meaning --------------------------------------------------------------------------------------


def test_categories():
    made = s.category_completions()
    assert len(made) > 80
    for item in made:
        assert item.category != item.other
        assert item.negative == item.affirmative.replace(" is ", " is not ")
        vowels = {word[0] in "aeiou" for word in (item.category, item.other)}
        assert len(vowels) == 1, "the article before the mask must not give the answer away"
    assert len(s.category_completions(10, 2)) == 10
    with pytest.raises(s.MeaningError, match="not 9999"):
        s.category_completions(9999)


def test_fillers_and_roles():
    fillers = s.role_fillers()
    assert len(fillers) >= 40
    assert all(f.frame.count(s.MASK) == 1 for f in fillers)
    assert all(len({f.right, f.related, f.unrelated}) == 3 for f in fillers)
    roles = s.role_examples(s.treebank(300, 1))
    counts = Counter(r.role for r in roles)
    assert {"agent", "patient", "experiencer", "stimulus", "theme", "recipient"} <= set(counts)


def test_sizes_and_properties():
    made = s.size_comparisons(200, 1)
    assert Counter(c.right for c in made) == {"smaller": 100, "bigger": 100}
    for c in made:
        before, after = c.frame.split(s.MASK)
        smaller_first = c.small in before.split()
        assert smaller_first == (c.right == "smaller") and c.gap >= 2
        assert (c.large if smaller_first else c.small) in after.rstrip(".").split()
    table = s.properties()
    assert {p.kind for p in table} == {"perceptual", "abstract", "taxonomic", "affordance"}
    truth = {(p.noun, p.property): p.holds for p in table}
    assert truth["knife", "cut"] and not truth["pillow", "cut"] and truth["house", "enter"]
    steps = s.affordance_inferences()
    assert len(steps) >= 20
    assert all(set(x.right.lower().split()) == set(x.wrong.lower().split())
               or bag(x.right) == bag(x.wrong) for x in steps)  # fmt: skip


def test_entities():
    made = s.entities(300, 1)
    assert len({e.text for e in made}) == 300
    kinds = Counter(kind for e in made for _, _, kind in e.spans)
    assert set(kinds) == {"PERSON", "PLACE", "ORG", "DATE"} and min(kinds.values()) > 50
    for e in made:
        for start, end, kind in e.spans:
            assert 0 <= start < end < len(e.words)
            assert kind == "DATE" or e.words[end - 1][0].isupper()

    def names(split):
        return {" ".join(e.words[a:b]).lower() for e in s.entities(300, 0, split)
                for a, b, kind in e.spans if kind in ("PLACE", "ORG")}  # fmt: skip

    assert not names("train") & names("test")
    with pytest.raises(s.MeaningError, match="'dev'"):
        s.entities(3, split="dev")


def test_names_and_pronouns():
    made = s.stereotyped_names(120)
    assert len({m.name for m in made}) == 120
    assert len(set(Counter(m.origin for m in made).values())) == 1
    for m in made:
        for frame in (m.nationality, m.citizen, m.born):
            assert frame.count(s.MASK) == 1 and m.name in frame
            assert f"a {s.MASK}" not in frame and f"an {s.MASK}" not in frame
    items = s.occupation_pronouns()
    assert {i.stereotype for i in items} == {"m", "f", "neutral"}
    assert all(i.frame.count(s.MASK) == 1 for i in items)
    with pytest.raises(s.MeaningError, match="balanced"):
        s.stereotyped_names(10_000)


def test_coreference_is_certain():
    made = s.coreference(400, 2)
    assert Counter(c.distance for c in made) == {"near": 200, "far": 200}
    from bertology_utils.stimuli._meaning_tables import MEN, WOMEN

    men = {m.split()[-1] for m in MEN}
    women = {w.split()[-1] for w in WOMEN}
    for c in made:
        group, rest = (men, women) if c.words[c.pronoun] == "he" else (women, men)
        assert c.words[c.antecedent] in group and c.words[c.other] in rest
        assert (c.antecedent > c.other) == (c.distance == "near")


# -- numbers --------------------------------------------------------------------------------------


def test_numbers():
    assert s.spell(0) == "zero" and s.spell(21) == "twenty one"
    assert s.spell(100) == "one hundred" and s.spell(1015) == "one thousand fifteen"
    assert s.spell(999_999) == ("nine hundred ninety nine thousand nine hundred ninety nine")
    assert len({s.spell(n) for n in range(3000)}) == 3000
    for form in ("digits", "words", "decimal"):
        made = s.number_examples(5, 25, form=form)
        assert all(m.surface == s.write(m.value, form) for m in made)
        assert all(m.text[m.start : m.end] == m.surface for m in made)
    assert len(s.number_examples(0, 10, form="decimal")) == 100
    sums = s.addition(500, 0, 100, 1)
    assert len({(a.left, a.right) for a in sums}) == 500
    assert all(a.total == a.left + a.right and f"{a.left} plus {a.right}" == a.text for a in sums)
    assert len(s.addition(100, 0, 10)) == 100
    for m in s.maximum(50, 0, 1000, 1, form="words"):
        assert max(m.values) == m.values[m.largest] and len(set(m.values)) == 5
        assert m.surfaces[m.largest] == s.spell(int(max(m.values)))


def test_numbers_bad_input():
    with pytest.raises(s.NumberError, match="-1"):
        s.spell(-1)
    with pytest.raises(s.NumberError, match="'roman'"):
        s.write(3, "roman")
    with pytest.raises(s.NumberError, match="empty range"):
        s.number_examples(5, 5)
    with pytest.raises(s.NumberError, match="exactly one"):
        s.number_examples(0, 5, carrier="no place")
    with pytest.raises(s.NumberError, match="pairs"):
        s.addition(101, 0, 10)
    with pytest.raises(s.NumberError, match="different numbers"):
        s.maximum(3, 0, 3)
