"""Whatever text comes in: a result, or an error that names what is wrong with it."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hostile import ANY_TEXT, NASTY, files_below, fuzz, no_texts, texts, tried
from hypothesis import given
from hypothesis import strategies as st
from tiny import tiny_encoder

from bertology_utils.activations import collect, open_collected, run_with_cache
from bertology_utils.activations.collect import CollectedError
from bertology_utils.cloze import (
    MaskCountError,
    TargetError,
    UnequalPairError,
    compare_at_mask,
    compare_sentences,
    fill_mask,
    pll,
    preference,
    surprisal,
    target_log_probs,
    target_ranks,
)
from bertology_utils.encoder import BertologyError
from bertology_utils.words import (
    AlignmentError,
    EmptyTextError,
    TextEncodingError,
    TextPair,
    TextTooLongError,
    TextTypeError,
    WordList,
    align,
    make_batch,
    split_words,
    token_batches,
)

ENCODERS = {family: tiny_encoder(family) for family in ("bert", "roberta")}
BAD_TEXT = (TextTypeError, TextEncodingError, EmptyTextError, TextTooLongError, AlignmentError)
LONE = "half \ud83d of a pair"

encoders = st.sampled_from(sorted(ENCODERS)).map(ENCODERS.__getitem__)
inputs = st.one_of(
    texts,
    no_texts,
    st.lists(texts | no_texts, max_size=4),
    st.lists(texts, max_size=4).map(tuple),
    st.builds(TextPair, texts | no_texts, texts),
    st.builds(WordList, st.lists(texts, max_size=4).map(tuple) | no_texts, texts | no_texts),
)


@fuzz
@given(encoders, inputs)
def test_words_of_anything(encoder, text):
    row, error = tried(lambda: align(encoder, text), *BAD_TEXT)
    if error is not None:
        return
    words, _ = tried(lambda: row.words, AlignmentError)
    for word in words or ():
        own = row.second if word.segment else row.text
        assert own[slice(*word.chars)] == word.text
        assert 0 < word.pieces[0] < word.pieces[1] < len(row.pieces)


@fuzz
@given(encoders, st.lists(inputs, max_size=4), st.integers(-1, 300), st.integers(-1, 5))
def test_batches_of_anything(encoder, given_texts, max_tokens, window):
    def run():
        return list(token_batches(encoder, given_texts, max_tokens=max_tokens, window=window))

    batches, error = tried(run, *BAD_TEXT, ValueError)
    if error is None:
        assert sorted(i for b in batches for i in b.index) == list(range(len(given_texts)))
    else:
        assert isinstance(error, BertologyError) or min(max_tokens, window) < 1


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("family", ENCODERS)
def test_scores_of_nasty_texts(family, text):
    encoder = ENCODERS[family]
    scores, _ = tried(lambda: pll(encoder, [text]), *BAD_TEXT)
    for score in scores or ():
        assert all(math.isfinite(value) and value <= 0 for value in score.log_probs)
    tried(lambda: surprisal(encoder, [text]), *BAD_TEXT)
    tried(lambda: fill_mask(encoder, text, k=2), *BAD_TEXT, MaskCountError)
    tried(lambda: make_batch(encoder, text), *BAD_TEXT)
    tried(lambda: run_with_cache(encoder, [text]), *BAD_TEXT)
    frame = f"the {encoder.tokenizer.mask_token} cat"
    tried(lambda: target_log_probs(encoder, [frame], [[text]]), *BAD_TEXT, TargetError)
    pair = [SimpleNamespace(good=text, bad="the dog barks")]
    tried(lambda: compare_sentences(encoder, pair), *BAD_TEXT)


@fuzz
@given(encoders, st.lists(texts | no_texts, max_size=3), st.lists(inputs, max_size=3))
def test_masked_questions_of_anything(encoder, frames, targets):
    frames = [f.replace("[MASK]", encoder.tokenizer.mask_token) if isinstance(f, str) else f
              for f in frames]  # fmt: skip
    asked = (*BAD_TEXT, MaskCountError, TargetError, UnequalPairError)
    found, _ = tried(lambda: target_log_probs(encoder, frames, targets), *asked)
    assert found is None or len(found) == len(frames)
    ranks, _ = tried(lambda: target_ranks(encoder, frames, targets), *asked)
    assert ranks is None or len(ranks) == len(frames)
    swapped = list(reversed(targets))
    tried(lambda: compare_at_mask(encoder, frames, targets, swapped), *asked)


@pytest.mark.parametrize("nothing", [None, 3, float("nan"), object()])
def test_what_is_no_list_of_texts_is_said_at_once(nothing):
    encoder = ENCODERS["bert"]
    for call in (token_batches, pll, fill_mask, surprisal, collect, make_batch):
        with pytest.raises(TextTypeError, match=type(nothing).__name__):
            call(encoder, nothing)
    with pytest.raises(TextTypeError, match="list of words"):
        target_log_probs(encoder, ["the [MASK] cat"], ["old"])
    with pytest.raises(TextTypeError, match="list of words, got str"):
        align(encoder, WordList("cat"))


@pytest.mark.parametrize("family", ENCODERS)
def test_half_a_surrogate_pair_is_named_with_its_place(family):
    encoder = ENCODERS[family]
    for text in (LONE, ["the", LONE], TextPair("the cat", LONE), WordList(("a",), LONE)):
        with pytest.raises(TextEncodingError, match="at character 5: 'half .ud83d of a pair'"):
            align(encoder, text)
    with pytest.raises(TextEncodingError, match="target word"):
        target_ranks(encoder, [f"the {encoder.tokenizer.mask_token} cat"], [LONE])
    with pytest.raises(TextEncodingError):
        split_words(LONE)


@fuzz
@given(ANY_TEXT)
def test_words_of_a_text_stand_in_order(text):
    spans, _ = tried(lambda: split_words(text), TextEncodingError)
    places = [place for span in spans or () for place in span]
    assert places == sorted(places)
    assert all(text[start:end].strip() for start, end in spans or ())


def test_scores_that_are_no_numbers_are_named():
    with pytest.raises(ValueError, match="pair 1 is nan"):
        preference([0.5, float("nan")], "m")


@fuzz
@given(st.lists(texts | no_texts, min_size=1, max_size=3), st.sampled_from(["a", "x/y/z"]))
def test_a_collection_is_complete_or_absent(tmp_path_factory, given_texts, name):
    folder = tmp_path_factory.mktemp("collected")
    out = folder / name
    call = lambda: collect(ENCODERS["bert"], given_texts, out=out)  # noqa: E731
    found, error = tried(call, *BAD_TEXT)
    if error is None:
        assert len(open_collected(out)) == len(found)
        np.testing.assert_array_equal(found.arrays["hidden_states"].shape[1], len(found))
    else:
        assert files_below(folder) == {}


@fuzz
@given(st.sampled_from(["about.json", "hidden_states.npy", "text_index.npy", "position.npy"]),
       st.binary(max_size=60) | st.integers(0, 200))  # fmt: skip
def test_a_damaged_collection_is_refused(tmp_path_factory, name, damage):
    folder = tmp_path_factory.mktemp("damaged") / "x"
    collect(ENCODERS["bert"], ["the cat sat", "dogs"], out=folder)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:damage] if isinstance(damage, int) else damage)
    found, error = tried(lambda: open_collected(folder), CollectedError)
    assert error is not None or (folder / name).read_bytes() == content
