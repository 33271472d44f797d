"""Passages and segment pairs: whole, balanced, and free of give-aways."""

from collections import Counter

import pytest

from bertology_utils.stimuli.passages import PassageError, passages, segment_pairs


def test_every_passage_has_a_topic_of_its_own_and_four_different_sentences():
    found = passages()
    assert len(found) >= 50
    assert len({passage.topic for passage in found}) == len(found)
    sentences = [sentence for passage in found for sentence in passage.sentences]
    assert all(len(passage.sentences) == 4 for passage in found)
    assert len(set(sentences)) == len(sentences)
    assert all(s[0].isupper() and s[-1] in ".?!" and s == s.strip() for s in sentences)
    assert all(s.isascii() for s in sentences)


def test_half_of_the_pairs_follow_and_every_segment_occurs_once_in_each_half():
    pairs = segment_pairs()
    assert len(pairs) >= 200
    own = [pair for pair in pairs if pair.follows]
    foreign = [pair for pair in pairs if not pair.follows]
    assert len(own) == len(foreign)
    for side in ("first", "second"):
        counts = [Counter(getattr(pair, side) for pair in half) for half in (own, foreign)]
        assert counts[0] == counts[1]
        assert set(counts[0].values()) == {1}


def test_followers_stand_next_to_each_other_and_strangers_come_from_elsewhere():
    home = {s: n for n, passage in enumerate(passages()) for s in passage.sentences}
    for pair in segment_pairs(seed=3):
        assert home[pair.first] == pair.passage
        assert (home[pair.second] == pair.passage) is pair.follows
        if pair.follows:
            sentences = passages()[pair.passage].sentences
            assert sentences.index(pair.second) == sentences.index(pair.first) + 1


def test_pairs_depend_on_the_seed_and_on_nothing_else():
    assert segment_pairs(20, seed=1) == segment_pairs(20, seed=1)
    assert segment_pairs(20, seed=1) != segment_pairs(20, seed=2)
    assert len(segment_pairs(20)) == 20


@pytest.mark.parametrize("n", [0, 2, 7, 100_000])
def test_impossible_numbers_of_pairs_are_refused(n):
    with pytest.raises(PassageError, match=str(n)):
        segment_pairs(n)
