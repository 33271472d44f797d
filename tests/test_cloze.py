"""Masked scores against an independent, one-copy-at-a-time implementation."""

import math
from dataclasses import dataclass

import pytest
import torch

from bertology_utils.cloze import (
    MaskCountError,
    TargetError,
    UnequalPairError,
    compare_at_mask,
    compare_contexts,
    compare_sentences,
    fill_mask,
    pll,
    preference,
    read_queries,
    surprisal,
    target_log_probs,
    target_ranks,
    wilson_interval,
)
from bertology_utils.encoder import MissingHeadError, load_encoder, save_encoder
from bertology_utils.words import EmptyTextError, TextTooLongError, TextTypeError

TEXTS = [
    "The cat sat on the mat.",
    "The keys to the cabinet are on the table.",
    "Dogs bark.",
    "The cat sat on the mat.",
]


def naive_log_probs(encoder, ids, hidden, read):
    """One text, one forward pass through the whole library model, no batching."""
    ids = torch.tensor([ids])
    for position in hidden:
        ids[0, position] = encoder.tokenizer.mask_token_id
    with torch.no_grad():
        out = encoder.model(input_ids=ids)
    logits = out.prediction_logits if "prediction_logits" in out else out.logits
    return logits[0, read].log_softmax(-1)


@pytest.fixture(scope="module")
def mlm(request):
    from tiny import tiny_encoder

    return [tiny_encoder(f) for f in ("bert", "roberta", "distilbert", "electra-generator")]


def test_pll_equals_the_naive_sum(mlm):
    for encoder in mlm:
        for score in pll(encoder, TEXTS, max_tokens=64):
            ids = encoder.tokenizer(score.text)["input_ids"]
            expected = [
                float(naive_log_probs(encoder, ids, [i], i)[ids[i]]) for i in range(1, len(ids) - 1)
            ]
            assert score.log_probs == pytest.approx(expected, abs=1e-5)
            assert score.total == pytest.approx(sum(expected), abs=1e-4)
            assert score.perplexity == pytest.approx(math.exp(-sum(expected) / len(expected)))


def test_within_word_scheme_hides_the_rest_of_the_word(tiny_bert):
    text = "The catsed sleep"
    score = pll(tiny_bert, [text], scheme="within_word_l2r")[0]
    ids = tiny_bert.tokenizer(text)["input_ids"]
    word, start, stop = score.words[1]
    assert word == "catsed" and stop - start == 2
    first, second = start + 1, start + 2
    expected = [
        float(naive_log_probs(tiny_bert, ids, [first, second], first)[ids[first]]),
        float(naive_log_probs(tiny_bert, ids, [second], second)[ids[second]]),
    ]
    assert score.log_probs[start:stop] == pytest.approx(expected, abs=1e-5)
    assert pll(tiny_bert, [text])[0].log_probs[start] != pytest.approx(expected[0], abs=1e-6)


def test_surprisal_adds_up_to_the_pll(tiny_bert):
    for bits, score in zip(
        surprisal(tiny_bert, TEXTS),
        pll(tiny_bert, TEXTS, scheme="within_word_l2r"),
        strict=True,
    ):
        assert sum(bits.bits) * math.log(2) == pytest.approx(-score.total, abs=1e-5)
        assert len(bits.words) == len(bits.bits)


@pytest.mark.parametrize("budget", [1, 17, 4096])
def test_budget_and_company_do_not_change_scores(tiny_bert, budget):
    alone = [pll(tiny_bert, [text])[0].total for text in TEXTS]
    together = [score.total for score in pll(tiny_bert, TEXTS, max_tokens=budget)]
    assert together == pytest.approx(alone, abs=1e-5)


def test_repeated_texts_are_computed_once(tiny_bert):
    seen = 0

    def count(module, inputs, kwargs):
        nonlocal seen
        seen += kwargs["input_ids"].shape[0]

    handle = tiny_bert.base.register_forward_pre_hook(count, with_kwargs=True)
    try:
        scores = pll(tiny_bert, [TEXTS[0]] * 50)
    finally:
        handle.remove()
    assert seen == len(scores[0].pieces)
    assert len({score.total for score in scores}) == 1


def test_the_head_sees_only_the_read_positions(tiny_bert):
    shapes = []
    handle = tiny_bert.model.cls.predictions.register_forward_pre_hook(
        lambda module, inputs: shapes.append(tuple(inputs[0].shape))
    )
    try:
        pll(tiny_bert, [TEXTS[0]])
    finally:
        handle.remove()
    assert shapes and all(len(shape) == 2 for shape in shapes)


def test_fill_mask_is_the_top_of_the_naive_distribution(tiny_bert):
    texts = ["The [MASK] sat on the mat.", "Dogs [MASK]."]
    for filling in fill_mask(tiny_bert, texts, k=7):
        ids = tiny_bert.tokenizer(filling.text)["input_ids"]
        place = ids.index(tiny_bert.tokenizer.mask_token_id)
        values, pieces = naive_log_probs(tiny_bert, ids, [], place).topk(7)
        assert filling.log_probs == pytest.approx(values.tolist(), abs=1e-5)
        assert list(filling.tokens) == tiny_bert.tokenizer.convert_ids_to_tokens(pieces.tolist())


def test_targets_and_ranks_agree_with_the_fillings(tiny_bert):
    text = "The [MASK] sat on the mat."
    best = fill_mask(tiny_bert, [text], k=140)[0]
    whole = [i for i, t in enumerate(best.tokens) if t.isalpha() and len(t) > 1][:5]
    words = [best.tokens[i] for i in whole]
    scores = target_log_probs(tiny_bert, [text], [words])[0]
    assert scores == pytest.approx([best.log_probs[i] for i in whole], abs=1e-6)
    assert target_ranks(tiny_bert, [text] * 5, words) == [i + 1 for i in whole]
    assert target_ranks(tiny_bert, [text] * 5, words, candidates=words) == [1, 2, 3, 4, 5]


@dataclass(frozen=True)
class Pair:
    good: str
    bad: str


def test_comparisons_follow_from_the_scores(tiny_bert):
    result = compare_at_mask(
        tiny_bert, ["The keys [MASK] old.", "The key [MASK] old."], ["are", "is"], ["is", "are"]
    )
    logs = target_log_probs(
        tiny_bert, ["The keys [MASK] old.", "The key [MASK] old."], [["are", "is"], ["is", "are"]]
    )
    assert result.margins == pytest.approx([a - b for a, b in logs])
    assert result.accuracy == sum(m > 0 for m in result.margins) / 2
    pairs = [Pair("The cats sleep.", "The cat sleep."), Pair("The dog barks.", "The dogs barks.")]
    whole = compare_sentences(tiny_bert, pairs)
    flat = [s.total for s in pll(tiny_bert, [t for p in pairs for t in (p.good, p.bad)])]
    assert whole.margins == pytest.approx([flat[0] - flat[1], flat[2] - flat[3]], abs=1e-6)


def test_one_word_in_two_contexts(tiny_bert):
    frames = ["The cats [MASK].", "The mat [MASK].", "A dog [MASK]."]
    found = compare_contexts(tiny_bert, frames[:2], frames[1:], ["sleep", "barks"])
    logs = [s for (s,) in target_log_probs(tiny_bert, frames, [["sleep"]] * 3)]
    last = [s for (s,) in target_log_probs(tiny_bert, frames, [["barks"]] * 3)]
    assert found.margins == pytest.approx([logs[0] - logs[1], last[1] - last[2]], abs=1e-5)
    assert found.value == found.accuracy and found.baselines == {"chance": 0.5}
    for good, bad in ((frames[:1], frames[:1]), (frames[:2], frames[:1])):
        with pytest.raises(UnequalPairError):
            compare_contexts(tiny_bert, good, bad, ["sleep"])


def test_wilson_interval_against_published_values():
    low, high = wilson_interval(81, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)
    assert wilson_interval(0, 10)[0] == 0.0 and wilson_interval(10, 10)[1] == 1.0


def test_ties_count_one_half():
    assert preference([0.0, 1.0], "m").accuracy == 0.75


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda e: fill_mask(e, ["no mask here"]), MaskCountError),
        (lambda e: fill_mask(e, ["[MASK] and [MASK]"]), MaskCountError),
        (lambda e: fill_mask(e, [""]), EmptyTextError),
        (lambda e: fill_mask(e, ["[MASK]"], k=0), ValueError),
        (lambda e: pll(e, "one string"), TextTypeError),
        (lambda e: pll(e, [" ".join(["cat"] * 600)]), TextTooLongError),
        (lambda e: pll(e, ["cat"], scheme="backwards"), ValueError),
        (lambda e: target_log_probs(e, ["a [MASK]"], [["xylophones"]]), TargetError),
        (lambda e: target_log_probs(e, ["a [MASK]"], [["☃"]]), TargetError),
        (lambda e: target_log_probs(e, ["a [MASK]"], [[""]]), TargetError),
        (lambda e: target_log_probs(e, ["a [MASK]"], [["cat"], ["dog"]]), UnequalPairError),
        (lambda e: target_log_probs(e, ["a [MASK]"], [[]]), UnequalPairError),
        (lambda e: target_ranks(e, ["a [MASK]"], ["cat"], candidates=["dog"]), TargetError),
        (lambda e: compare_at_mask(e, ["a [MASK]"], ["cat"], ["cat"]), UnequalPairError),
        (lambda e: compare_at_mask(e, ["a [MASK]"], ["cat", "dog"], ["cats"]), UnequalPairError),
        (lambda e: compare_sentences(e, []), UnequalPairError),
        (lambda e: compare_sentences(e, [Pair("a cat", "a cat")]), UnequalPairError),
        (lambda e: list(read_queries(e, [], lambda *_: [], max_tokens=0)), ValueError),
        (lambda e: preference([float("nan")], "m"), ValueError),
        (lambda e: wilson_interval(3, 2), ValueError),
    ],
)
def test_bad_input_has_a_specific_error(tiny_bert, call, error):
    with pytest.raises(error):
        call(tiny_bert)


def test_a_model_without_an_mlm_head_is_refused(tiny_bert, tmp_path):
    from dataclasses import replace

    folder = save_encoder(replace(tiny_bert, trained_heads=frozenset({"nsp"})), tmp_path / "m")
    with pytest.raises(MissingHeadError):
        fill_mask(load_encoder(folder, device="cpu"), ["a [MASK]"])
