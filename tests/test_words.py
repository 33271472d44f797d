"""Words, pieces, batches and pooling."""

import random
import unicodedata

import pytest
import torch
from tiny import bytelevel_tokenizer, tiny_encoder, wordpiece_tokenizer

from bertology_utils.encoder import evaluating
from bertology_utils.words import (
    AlignmentError,
    EmptyTextError,
    TextPair,
    TextTooLongError,
    TextTypeError,
    WordList,
    align,
    cut,
    in_order,
    make_batch,
    pool_batch,
    pool_words,
    split_words,
    token_batches,
)

TOKENIZERS = {"wordpiece": wordpiece_tokenizer(), "bytelevel": bytelevel_tokenizer()}


@pytest.fixture(params=TOKENIZERS)
def tokenizer(request):
    return TOKENIZERS[request.param]


def words_of(tokenizer, text):
    return [word.text for word in align(tokenizer, text).words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cat sat.", ["The", "cat", "sat", "."]),
        ("They aren't, isn’t it?", ["They", "aren't", ",", "isn’t", "it", "?"]),
        ("a well-known mother-in-law", ["a", "well-known", "mother-in-law"]),
        ("well--known - ok", ["well", "-", "-", "known", "-", "ok"]),
        ("the dogs' bark", ["the", "dogs", "'", "bark"]),
        ("3.14 or 1,000.", ["3.14", "or", "1,000", "."]),
        ("(good)", ["(", "good", ")"]),
        (" two\n  lines\t", ["two", "lines"]),
        ("caf\u00e9 na\u00efve", ["caf\u00e9", "na\u00efve"]),
        ("cafe\u0301 nai\u0308ve", ["cafe\u0301", "nai\u0308ve"]),
        ("I \U0001f44d\U0001f3fd it", ["I", "\U0001f44d\U0001f3fd", "it"]),
        (
            "\U0001f469\u200d\U0001f469\u200d\U0001f467!",
            ["\U0001f469\u200d\U0001f469\u200d\U0001f467", "!"],
        ),
        ("a\u200bb\u00a0c", ["a", "b", "c"]),
        ("", []),
        (" \n", []),
    ],
)
def test_split_words(text, words):
    assert [text[start:end] for start, end in split_words(text)] == words


def test_split_words_keeps_special_tokens_whole():
    text = "The [MASK] sat <s>."
    spans = split_words(text, ("<s>", "[MASK]"))
    assert [text[s:e] for s, e in spans] == ["The", "[MASK]", "sat", "<s>", "."]


def test_words_own_the_pieces_they_are_written_with(tokenizer):
    """Every piece of the text belongs to exactly the word whose characters it covers."""
    text = "They aren't well-known, caf\u00e9s near 3.14 na\u00efve dogs \U0001f44d\U0001f3fd!"
    row = align(tokenizer, text)
    assert [w.text for w in row.words][1:3] == ["aren't", "well-known"]
    owner = {p: i for i, w in enumerate(row.words) for p in range(*w.pieces)}
    assert sum(e - s for s, e in row.spans) == len(owner), "no piece has two owners here"
    specials = {i for i, special in enumerate(row.is_special) if special}
    # A byte-level piece that holds nothing but the space before a word belongs to no word.
    spaces = {i for i, piece in enumerate(row.pieces) if piece == "\u0120"}
    assert set(owner) == set(range(len(row.pieces))) - specials - spaces
    for i, word in enumerate(row.words):
        assert text[slice(*word.chars)] == word.text
        for piece in range(*word.pieces):
            start, end = row.encoding.offsets[piece]
            covered = text[start:end].strip()
            assert covered and covered in word.text, (i, word, row.pieces[piece])


def test_wordpiece_spans_by_hand():
    row = align(TOKENIZERS["wordpiece"], "They aren't well-known.")
    assert row.pieces == ["[CLS]", "they", "aren", "'", "t", "well", "-", "known", ".", "[SEP]"]
    assert row.spans == ((1, 2), (2, 5), (5, 8), (8, 9))
    assert [w.chars for w in row.words] == [(0, 4), (5, 11), (12, 22), (22, 23)]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_accents_in_both_unicode_forms(tokenizer, form):
    text = unicodedata.normalize(form, "a caf\u00e9, na\u00efve dogs")
    row = align(tokenizer, text)
    expected = [
        unicodedata.normalize(form, w) for w in ("a", "caf\u00e9", ",", "na\u00efve", "dogs")
    ]
    assert [w.text for w in row.words] == expected
    if tokenizer is TOKENIZERS["wordpiece"]:
        plain = align(tokenizer, "a cafe, naive dogs")
        assert row.pieces == plain.pieces and row.spans == plain.spans


def test_unknown_words_keep_their_place():
    row = align(TOKENIZERS["wordpiece"], "the \u0416\u0416 cat \U0001f600")
    assert [row.pieces[s:e] for s, e in row.spans] == [["the"], ["[UNK]"], ["cat"], ["[UNK]"]]


def test_mask_in_the_text_is_one_word(tokenizer):
    mask = tokenizer.mask_token
    row = align(tokenizer, f"the {mask} sat")
    assert [w.text for w in row.words] == ["the", mask, "sat"]
    (start, end) = row.spans[1]
    assert row.input_ids[start:end] == [tokenizer.mask_token_id]
    assert not row.is_special[start]


def test_deleted_characters_form_no_word():
    assert words_of(TOKENIZERS["wordpiece"], "the \ufffd cat \u0301") == ["the", "cat"]


def test_given_words(tokenizer):
    row = align(tokenizer, ["The", "cat's", "mat", "."])
    assert [w.text for w in row.words] == ["The", "cat's", "mat", "."]
    assert row.text == "The cat's mat ."
    same = align(tokenizer, WordList(("The", "cat", "'s", "mat", "."), "The cat's mat."))
    assert same.text == "The cat's mat."
    assert [w.text for w in same.words] == ["The", "cat", "'s", "mat", "."]
    assert same.input_ids == align(tokenizer, "The cat's mat.").input_ids


def test_a_piece_shared_by_two_given_words_counts_for_both():
    row = align(TOKENIZERS["wordpiece"], WordList(("mon", "ey", "bank"), "money bank"))
    assert row.spans == ((1, 2), (1, 2), (2, 3))


def test_given_words_that_do_not_fit(tokenizer):
    with pytest.raises(AlignmentError, match="word 1, 'dog', does not come next in 'the cat'"):
        align(tokenizer, WordList(("the", "dog"), "the cat"))
    with pytest.raises(AlignmentError, match="does not come next"):
        align(tokenizer, WordList(("the", "sat"), "the cat sat"))
    with pytest.raises(AlignmentError, match="words end before ' sat'"):
        align(tokenizer, WordList(("the", "cat"), "the cat sat"))
    with pytest.raises(AlignmentError, match="word 1 of 'the  cat' is empty: ''"):
        align(tokenizer, ["the", "", "cat"])
    with pytest.raises(EmptyTextError, match="empty list"):
        align(tokenizer, [])
    with pytest.raises(TextTypeError, match="word 1 of a list .str., got int: .7"):
        align(tokenizer, ["the", 7])


def test_given_word_without_pieces_is_an_error():
    row = align(TOKENIZERS["wordpiece"], ["the", "\u0301", "cat"])
    with pytest.raises(AlignmentError, match="finds nothing in '\u0301'"):
        _ = row.words


def test_pairs(tokenizer):
    row = align(tokenizer, TextPair("the cat sat", "it was good"))
    assert [w.segment for w in row.words] == [0, 0, 0, 1, 1, 1]
    assert [w.text for w in row.words] == "the cat sat it was good".split()
    plain = tokenizer("the cat sat", "it was good", return_token_type_ids=True)
    assert row.input_ids == plain["input_ids"]
    assert row.token_type_ids == plain["token_type_ids"]
    for word in row.words:
        text = (row.text, row.second)[word.segment]
        assert text[slice(*word.chars)] == word.text


@pytest.mark.parametrize("bad", [None, 3, b"bytes", {"text": 1}, 2.5])
def test_what_is_not_a_text(tokenizer, bad):
    with pytest.raises(TextTypeError, match="expected a text"):
        align(tokenizer, bad)


@pytest.mark.parametrize("empty", ["", "   ", "\n\t"])
def test_empty_texts(tokenizer, empty):
    for text in (empty, TextPair("the cat", empty)):
        with pytest.raises(EmptyTextError):
            align(tokenizer, text)
    with pytest.raises(EmptyTextError):
        make_batch(tokenizer, ["fine", empty])
    with pytest.raises(EmptyTextError, match="no texts"):
        make_batch(tokenizer, [])


def test_text_of_only_deleted_characters_is_empty():
    with pytest.raises(EmptyTextError, match="finds nothing in text 1"):
        make_batch(TOKENIZERS["wordpiece"], ["fine", "\ufffd\ufffd"])


def test_too_long_names_the_text_and_its_length(tiny_bert):
    fits = " ".join(["cat"] * 62)
    assert len(align(tiny_bert, fits).input_ids) == 64
    with pytest.raises(TextTooLongError, match="65 pieces, the model takes at most 64: 'cat") as e:
        align(tiny_bert, fits + " cat")
    assert (e.value.n_pieces, e.value.max_length) == (65, 64)
    assert e.value.text == fits + " cat"
    with pytest.raises(TextTooLongError):
        list(token_batches(tiny_bert, ["cat", fits + " cat"]))


def test_earlier_truncation_by_others_does_not_reach_us(tiny_bert):
    text = "the cat sat on the mat"
    tiny_bert.tokenizer([text, "a"], truncation=True, max_length=4, padding="max_length")
    assert len(align(tiny_bert, text).input_ids) == 8


def test_batch_equals_the_tokenizers_own(any_encoder, texts):
    batch = make_batch(any_encoder, texts)
    plain = any_encoder.tokenizer(
        texts, padding=True, return_tensors="pt", return_token_type_ids=True
    )
    assert torch.equal(batch.input_ids, plain["input_ids"])
    assert torch.equal(batch.attention_mask, plain["attention_mask"])
    assert torch.equal(batch.token_type_ids, plain["token_type_ids"])
    assert batch.index == (0, 1, 2, 3) and batch.texts == tuple(texts)
    assert batch.lengths.tolist() == plain["attention_mask"].sum(1).tolist()
    special = set(any_encoder.tokenizer.all_special_ids)
    is_text = [[int(i) not in special for i in row] for row in batch.input_ids]
    assert batch.is_text.tolist() == is_text


def test_one_text_is_a_batch_of_one(tiny_bert):
    assert make_batch(tiny_bert, "the cat").texts == ("the cat",)
    assert len(make_batch(tiny_bert, TextPair("the cat", "sat"))) == 1


def test_with_ids_checks_the_shape(tiny_bert):
    batch = make_batch(tiny_bert, "the cat")
    other = batch.with_ids(torch.zeros_like(batch.input_ids))
    assert other.input_ids.sum() == 0 and batch.input_ids.sum() > 0
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        batch.with_ids(torch.zeros(1, 2, dtype=torch.long))


def test_token_batches_lose_nothing_and_keep_the_budget(tiny_bert):
    rng = random.Random(0)
    texts = [" ".join(["cat"] * rng.randint(1, 40)) + f" {i}" for i in range(200)]
    batches = list(token_batches(tiny_bert, texts, max_tokens=128, window=64))
    assert sorted(i for b in batches for i in b.index) == list(range(200))
    assert all(b.input_ids.numel() <= 128 or len(b) == 1 for b in batches)
    assert len(batches) < 120
    for batch in batches:
        assert [texts[i] for i in batch.index] == list(batch.texts)
    assert in_order((b, b.texts) for b in batches) == texts
    padding = sum((b.attention_mask == 0).sum().item() for b in batches)
    assert padding < 0.15 * sum(b.input_ids.numel() for b in batches)


def test_token_batches_read_a_stream_lazily(tiny_bert):
    seen = []

    def stream():
        for i in range(1000):
            seen.append(i)
            yield "the cat sat"

    next(token_batches(tiny_bert, stream(), window=16))
    assert len(seen) == 16


def test_token_batches_refuse_nonsense(tiny_bert):
    with pytest.raises(TextTypeError, match="got one text: 'the cat'"):
        token_batches(tiny_bert, "the cat")
    with pytest.raises(ValueError, match="start at 1"):
        token_batches(tiny_bert, ["the cat"], max_tokens=0)
    assert list(token_batches(tiny_bert, [])) == []


def test_in_order_notices_gaps(tiny_bert):
    batches = list(token_batches(tiny_bert, ["a", "the cat", "a dog sat"], max_tokens=5))
    assert len(batches) > 1
    with pytest.raises(ValueError, match="no result for text 0"):
        in_order((b, b.texts) for b in batches if 0 not in b.index)
    with pytest.raises(ValueError, match="0 results for a batch of"):
        in_order((b, ()) for b in batches)


def test_batching_does_not_change_the_numbers(any_encoder, texts):
    with evaluating(any_encoder):
        batched = in_order(
            (batch, [h[:n] for h, n in zip(any_encoder.encode(batch), batch.lengths, strict=True)])
            for batch in token_batches(any_encoder, texts * 3, max_tokens=64)
        )
        for text, hidden in zip(texts * 3, batched, strict=True):
            alone = any_encoder.encode(make_batch(any_encoder, text))[0]
            assert torch.allclose(hidden, alone, atol=1e-5)


def test_pool_words_by_hand():
    hidden = torch.randn(2, 6, 3, requires_grad=True)
    spans = [(1, 2), (2, 5), (1, 5)]
    mean = pool_words(hidden, spans)
    expected = torch.stack([hidden[:, s:e].mean(1) for s, e in spans], dim=1)
    assert mean.shape == (2, 3, 3) and torch.allclose(mean, expected, atol=1e-6)
    assert torch.equal(pool_words(hidden, spans, "first"), hidden[:, [1, 2, 1]])
    assert torch.equal(pool_words(hidden, spans, "last"), hidden[:, [1, 4, 4]])
    assert pool_words(hidden, []).shape == (2, 0, 3)
    mean.sum().backward()
    assert hidden.grad[0, 0].abs().sum() == 0 and hidden.grad[0, 3].abs().sum() > 0


def test_pool_words_refuses_nonsense():
    hidden = torch.zeros(4, 3)
    with pytest.raises(ValueError, match="how is 'max', must be one of mean, first, last"):
        pool_words(hidden, [(0, 1)], "max")
    for span in [(2, 2), (3, 2), (-1, 2), (3, 5)]:
        with pytest.raises(AlignmentError, match="is empty or not within"):
            pool_words(hidden, [span])


@pytest.mark.parametrize("how", ["mean", "first", "last"])
def test_pool_batch_is_pool_words_of_every_row(how):
    encoder = tiny_encoder("roberta")
    batch = make_batch(encoder, ["They aren't well-known.", "Dogs bark"])
    hidden = torch.randn(3, *batch.input_ids.shape, 8)
    pooled = pool_batch(hidden, batch, how)
    rows = [pool_words(hidden[:, i], spans, how) for i, spans in enumerate(batch.spans)]
    assert pooled.shape == (3, sum(map(len, batch.words)), 8)
    assert torch.allclose(pooled, torch.cat(rows, dim=1), atol=1e-6)


def test_alignment_with_the_embedded_vocabulary(embedded):
    row = align(embedded, "Don't the caf\u00e9's well-known cooks run unbelievably fast?")
    pieces = {w.text: row.pieces[slice(*w.pieces)] for w in row.words}
    assert pieces["Don't"] == ["don", "'", "t"]
    assert pieces["caf\u00e9's"] == ["cafe", "'", "s"]
    assert pieces["well-known"] == ["well", "-", "known"]
    assert pieces["?"] == ["?"]
    assert "".join(pieces["unbelievably"]).replace("##", "") == "unbelievably"


@pytest.mark.parametrize("pass_cost", [None, 0, 5, 10_000])
def test_cuts_cover_everything_within_the_budget(pass_cost):
    lengths = sorted((3 + (i * 37) % 29 for i in range(200)), reverse=True) + [1]
    parts = cut([90, *lengths], 64, pass_cost)
    assert [i for part in parts for i in range(part.start, part.stop)] == list(range(202))
    assert parts[0] == slice(0, 1), "a text beyond the budget stands alone"
    sizes = [90, *lengths]
    assert all(sizes[p.start] * (p.stop - p.start) <= 64 for p in parts[1:])


def test_the_cheapest_cut_is_found():
    lengths = [9, 9, 8, 4, 4, 4, 3, 1]

    def cost(parts, each):
        return sum(lengths[p.start] * (p.stop - p.start) + each for p in parts)

    def all_cuts(start=0):
        if start == len(lengths):
            yield []
        for stop in range(start + 1, len(lengths) + 1):
            if stop - start == 1 or lengths[start] * (stop - start) <= 30:
                yield from ([slice(start, stop), *rest] for rest in all_cuts(stop))

    for each in (0, 3, 8, 100):
        best = min(cost(parts, each) for parts in all_cuts())
        assert cost(cut(lengths, 30, each), each) == best
    assert cut([], 30, 3) == []
