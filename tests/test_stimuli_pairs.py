"""Minimal pairs: one difference, the right one; balance; versions; perturbations."""

import pytest

from bertology_utils import stimuli
from bertology_utils.stimuli import (
    AGREEMENT,
    PHENOMENA,
    PairError,
    PerturbError,
    lexicon,
    minimal_pairs,
    treebank,
)


@pytest.fixture(scope="module")
def pairs():
    return {name: minimal_pairs(name, 60, seed=4) for name in PHENOMENA}


def test_pairs_differ_in_one_place(pairs):
    for name, made in pairs.items():
        assert len({(p.good, p.bad) for p in made}) == 60
        for p in made:
            assert len(p.good_words) == len(p.bad_words), p
            places = [
                i
                for i, (a, b) in enumerate(zip(p.good_words, p.bad_words, strict=True))
                if a.lower() != b.lower()
            ]
            if p.contrast == "target":
                assert places == [p.good_target] == [p.bad_target], (p.good, p.bad)
                assert p.frame == p.bad_frame and p.frame.count("[MASK]") == 1
            else:
                assert name in ("npi_scope", "role_reversal")
                assert len(places) == 2
                a, b = places
                assert p.good_words[a].lower() == p.bad_words[b].lower()
                assert p.good_words[b].lower() == p.bad_words[a].lower()
                assert p.good_word == p.bad_word
                with pytest.raises(PairError, match="contrasts contexts"):
                    _ = p.frame


def test_agreement_targets_agree_and_distractors_do_not(pairs):
    plural = {"are", "were", "have", "do"}
    singular = {"is", "was", "has", "does"}
    bases = {v.base for v in lexicon().verbs}
    thirds = {v.third for v in lexicon().verbs}
    past = {v.past for v in lexicon().verbs}
    for name in AGREEMENT:
        for k, p in enumerate(pairs[name]):
            assert p.bad_word.lower() not in past, "a past tense would be right"
            number = p.feature("number")
            assert number == ("sing" if k % 2 == 0 else "plur")
            good, bad = p.good_word.lower(), p.bad_word.lower()
            if number == "sing":
                assert good in singular | thirds and bad in plural | bases, p
            else:
                assert good in plural | bases and bad in singular | thirds, p
            feats = p.sentence.feats
            own = "Number=Sing" if number == "sing" else "Number=Plur"
            other = "Number=Plur" if number == "sing" else "Number=Sing"
            assert own in feats[p.subject], p
            if p.attractors:
                assert sum(other in feats[i] for i in p.distractors) >= p.attractors, p


@pytest.mark.parametrize("attractors", [0, 1, 2, 3])
def test_attractors_at_constant_length(attractors):
    made = minimal_pairs("agreement_attractors", 30, 1, attractors=attractors, intervening=3)
    for p in made:
        between = [i for i in p.distractors if p.subject < i < p.good_target]
        assert len(between) == 3
        assert p.sentence.gold.attractors == attractors == p.attractors


def test_singular_and_plural_answers_are_balanced(pairs):
    for name in ("determiner_noun", "noun_determiner", "reflexive_simple", "npi_licensor"):
        numbers = [p.feature("number") for p in pairs[name]]
        assert numbers.count("sing") == 30
    genders = [p.feature("gender") for p in pairs["anaphor_gender"]]
    assert genders.count("m") == 30


def test_good_words_are_single_pieces_shaped(pairs):
    vocabulary = set(lexicon().vocabulary()) | {"also", "already", "really", "just", "now"}
    for name, made in pairs.items():
        if name == "role_reversal":
            continue
        for p in made:
            assert p.good_word.lower() in vocabulary, p.good_word
            assert p.bad_word.lower() in vocabulary, p.bad_word


def test_versions():
    natural = minimal_pairs("agreement_pp", 20, 2)
    shuffled = minimal_pairs("agreement_pp", 20, 2, version="shuffled")
    for p, q in zip(natural, shuffled, strict=True):
        assert sorted(w.lower() for w in p.good_words) == sorted(w.lower() for w in q.good_words)
        assert q.good_word == p.good_word and q.good_target == p.good_target
        assert q.good_words[q.subject].lower() == p.good_words[p.subject].lower()
        assert q.good_words != p.good_words
    nonsense = minimal_pairs("agreement_object_rc", 20, 2, version="nonsense")
    for p, q in zip(minimal_pairs("agreement_object_rc", 20, 2), nonsense, strict=True):
        assert q.sentence.upos == p.sentence.upos and q.sentence.heads == p.sentence.heads
        content = [i for i, u in enumerate(q.sentence.upos) if u in ("NOUN", "VERB", "ADJ")]
        assert all(q.sentence.lemmas[i] != p.sentence.lemmas[i] for i in content
                   if p.sentence.lemmas[i] != "be")  # fmt: skip
    with pytest.raises(PairError, match="nonsense"):
        minimal_pairs("role_reversal", 2, version="nonsense")


def test_splits_use_their_own_words():
    test_words = lexicon("test").content_forms()
    train_words = lexicon("train").content_forms()
    for name in ("agreement_pp", "agreement_object_rc", "reflexive_simple", "npi_presence"):
        for p in minimal_pairs(name, 30, 0, split="test"):
            words = {w.lower() for w in p.good_words}
            assert words & test_words and not words & train_words, p.good


def test_bad_requests_are_refused():
    with pytest.raises(PairError, match="'island'"):
        minimal_pairs("island", 3)
    with pytest.raises(PairError, match="'loud'"):
        minimal_pairs("npi_scope", 3, version="loud")
    with pytest.raises(PairError, match="intervening"):
        minimal_pairs("agreement_attractors", 3, attractors=4)
    with pytest.raises(PairError, match="at least 1"):
        minimal_pairs("agreement_pp", 0)
    with pytest.raises(PairError, match="only"):
        minimal_pairs("anaphor_gender", 100_000, split="test")


def test_shuffle_share():
    words = tuple("the old king gave the young queen a golden ring yesterday .".split())
    for share, low in ((0.0, 0), (0.2, 2), (0.5, 4), (1.0, 8)):
        moved = stimuli.shuffle_words(words, share, 3)
        assert sorted(moved) == sorted(words) and moved[-1] == "."
        changed = sum(a != b for a, b in zip(words, moved, strict=True))
        assert changed >= low if share else changed == 0
    assert stimuli.shuffle_words(words, 1.0, 3, keep=(2,))[2] == "king"
    assert stimuli.shuffle_words(words, 1.0, 3) == stimuli.shuffle_words(words, 1.0, 3)
    with pytest.raises(PerturbError, match="share"):
        stimuli.shuffle_words(words, 1.2)


def test_nonsense_keeps_structure():
    for s in treebank(100, 8):
        odd = stimuli.nonsense(s, 1)
        assert odd.heads == s.heads and odd.upos == s.upos and odd.feats == s.feats
        for i, upos in enumerate(s.upos):
            if upos == "NOUN":
                assert odd.lemmas[i] != s.lemmas[i]
            elif upos in ("AUX", "ADP", "PRON", "CCONJ", "SCONJ", "PART", "PUNCT"):
                assert odd.words[i] == s.words[i]
            elif upos == "DET" and s.lemmas[i] != "a":
                assert odd.words[i] == s.words[i]


def test_truncate_and_drop():
    words, target = stimuli.truncate("the key to the doors is old".split(), 5, 2)
    assert words == ("the", "doors", "is") and target == 2
    with pytest.raises(PerturbError, match="outside"):
        stimuli.truncate(("a",), 3, 1)
    s = next(s for s in treebank(50, 3) if s.gold.object is not None)
    without = stimuli.drop_argument(s, "object")
    assert s.words[s.gold.object] not in without and len(without) < len(s)
    plain = next(s for s in treebank(50, 3) if s.gold.object is None)
    with pytest.raises(PerturbError, match="no object"):
        stimuli.drop_argument(plain, "object")
    with pytest.raises(PerturbError, match="'verb'"):
        stimuli.drop_argument(s, "verb")
