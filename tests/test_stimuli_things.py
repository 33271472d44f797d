"""Things, triples, gaps and scenes: complete, consistent, and answerable by the embedded model."""

from collections import Counter

import pytest

from bertology_utils.stimuli import commonsense, everyday, things


def test_every_feature_names_known_things_once():
    found = things.things()
    assert len(found) == len({t.noun for t in found}) >= 120
    names = {f.name for f in things.FEATURES}
    assert len(names) == len(things.FEATURES)
    for feature in things.FEATURES:
        share = sum(t.has(feature) for t in found)
        assert 4 <= share <= len(found) / 2, feature.name
        assert feature.kind in things.KINDS and " it" in f" {feature.statement}"
    for row in things._TABLE:
        listed = row[3].split()
        assert set(listed) <= set(things.NOUNS) and len(listed) == len(set(listed)), row[0]
    assert [len(things.features(kind)) >= 7 for kind in things.KINDS] == [True] * 4
    assert things.Thing("apple", frozenset()).phrase == "an apple"
    with pytest.raises(ValueError, match="'sounds'"):
        things.features("sounds")


def test_some_labels_we_are_sure_of():
    by_noun = {t.noun: t.features for t in things.things()}
    assert {"animal", "furry", "feed"} <= by_noun["cat"] and "eat" not in by_noun["cat"]
    assert {"tool", "sharp", "cut", "metal", "dangerous"} <= by_noun["knife"]
    assert {"building", "enter", "heavy"} <= by_noun["house"] and "hold" not in by_noun["house"]


def test_triples_are_true_once_and_corrupted_by_what_is_wrong():
    found = commonsense.triples()
    assert len({(t.head, t.relation, t.tail) for t in found}) == len(found) >= 300
    true = {(t.head, t.relation, t.tail) for t in found}
    for seed in range(5):
        made = commonsense.triples(seed)
        assert not [t for t in made if (t.head, t.relation, t.corrupted) in true]
        # Each tail is handed out as often as it is true.
        assert Counter((t.relation, t.tail) for t in made) == Counter(
            (t.relation, t.corrupted) for t in made
        )
    assert commonsense.triples(1) == commonsense.triples(1) != found
    for t in found:
        assert t.query.count("[MASK]") == 1 and t.headless.count("[MASK]") == 2
        assert t.query[0].isupper() or t.query.startswith("[MASK]")


def test_gaps_and_scenes_have_one_mask_each():
    gaps, scenes = everyday.everyday_gaps(), everyday.scenes()
    assert len(gaps) >= 60 and len(scenes) >= 40
    assert len({g.text for g in gaps}) == len(gaps) and len({s.text for s in scenes}) == len(scenes)
    for text in [t for g in gaps for t in (g.text, g.bare)] + [s.text for s in scenes]:
        assert text.count("[MASK]") == 1 and "|" not in text and "_" not in text
    for gap in gaps:
        words = set(gap.text.lower().replace(".", " ").split())
        assert not words & set(gap.accepted), gap.text
        assert gap.bare != gap.text and all(a == a.lower() for a in gap.accepted)
    for scene in scenes:
        words = scene.text.lower().replace(".", " ").replace(",", " ").split()
        assert scene.expected not in words and scene.expected != scene.related


def test_the_embedded_vocabulary_has_the_words(embedded):
    def whole(word):
        return len(embedded.tokenizer.tokenize(word)) == 1

    assert all(whole(t.tail) and whole(t.corrupted) for t in commonsense.triples())
    assert all(whole(s.expected) and whole(s.related) for s in everyday.scenes())
    assert all(whole(a) for g in everyday.everyday_gaps() for a in g.accepted)
