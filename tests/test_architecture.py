"""The architecture room: identities against the library, and measures against planted truth."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny import TEXTS, tiny_encoder

from bertology_utils import architecture
from bertology_utils.activations import run_with_cache
from bertology_utils.encoder import (
    HeadIndexError,
    MissingHeadError,
    UnsupportedModelError,
    random_encoder,
)
from bertology_utils.interventions import prune_heads
from bertology_utils.stimuli.passages import SegmentPair
from bertology_utils.stimuli.senses import sense_examples
from bertology_utils.words import TextPair, make_batch

#: short enough for 64 positions; every second one follows
PAIRS = [
    SegmentPair(f"the {first} sat on the {place}", f"{second} sleep near it", follows, number)
    for number, (first, place) in enumerate([("cat", "mat"), ("dog", "table"), ("key", "bank")] * 4)
    for second, follows in (("dogs", True), ("good doctors in the capital", False))
]

# -- by hand -------------------------------------------------------------------------------------


def test_every_step_of_every_layer_equals_the_library_alone_and_padded(any_encoder):
    for texts in (TEXTS[0], list(TEXTS)):
        check = architecture.check_by_hand(any_encoder, texts)
        assert set(check.steps) == {"input", *architecture.STEPS}
        assert max(check.steps.values()) < 1e-5
        assert check.result.value < 1e-5
        assert check.result.n == any_encoder.n_layers * any_encoder.n_heads
        assert min(check.scales.values()) > 0.01


def test_hand_and_library_agree_on_the_real_model(embedded):
    check = architecture.check_by_hand(embedded, list(TEXTS))
    assert check.result.value < 1e-5
    for step, apart in check.steps.items():
        assert apart < 1e-5 * max(1.0, check.scales[step]), step


def test_a_wrong_weight_is_noticed(tiny_bert):
    """The check must be able to fail: it reads weights, the library runs modules."""
    broken = tiny_encoder("bert")
    broken.layers[1].key.register_forward_hook(lambda module, args, output: output + 0.1)
    check = architecture.check_by_hand(broken, list(TEXTS))
    assert check.steps["k"] > 0.05
    # A constant added to all keys cancels in the softmax, so the pattern does not notice.
    assert check.steps["pattern"] < 1e-5
    broken.layers[2].query.register_forward_hook(lambda module, args, output: output * 2)
    check = architecture.check_by_hand(broken, list(TEXTS))
    assert check.result.value > 0.01
    assert max(check.heads[0]) < 1e-5 < max(check.heads[2])


def test_one_head_is_its_slice_of_the_layer(any_encoder):
    cache = run_with_cache(any_encoder, TEXTS[1], ["hidden_states", "q", "k", "v", "pattern", "z"])
    layer, head = any_encoder.n_layers - 1, 1
    made = architecture.head_by_hand(any_encoder, cache["hidden_states"][layer, 0], layer, head)
    for name in ("q", "k", "v", "pattern", "z"):
        assert torch.allclose(getattr(made, name), cache[name][layer, 0, head], atol=1e-5), name
    assert torch.allclose(made.pattern.sum(-1), torch.ones(len(made.pattern)), atol=1e-6)
    with pytest.raises(HeadIndexError, match="99"):
        architecture.head_by_hand(any_encoder, cache["hidden_states"][layer, 0], layer, 99)


def test_layers_with_heads_cut_out_can_be_computed_by_hand():
    pruned = prune_heads(tiny_encoder("bert"), {0: [1, 2]})
    check = architecture.check_by_hand(pruned, list(TEXTS))
    assert [len(row) for row in check.heads] == [2, 4, 4]
    assert check.result.n == 10 and check.result.value < 1e-5


def test_the_input_of_a_pair_has_two_segments(tiny_bert):
    batch = make_batch(tiny_bert, [TextPair("the cat sat", "dogs bark")])
    parts = architecture.input_parts(tiny_bert, batch)
    assert list(parts) == ["token", "position", "segment"]
    segments = parts["segment"][0].unique(dim=0)
    assert len(segments) == 2
    first = run_with_cache(tiny_bert, batch, ["hidden_states"])["hidden_states"][0]
    assert torch.allclose(architecture.input_by_hand(tiny_bert, batch), first, atol=1e-6)
    assert "segment" not in architecture.input_parts(
        tiny_encoder("distilbert"), make_batch(tiny_encoder("distilbert"), "the cat")
    )


def test_layer_norm_is_the_library_s():
    norm = torch.nn.LayerNorm(16)
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2)
        norm.bias.uniform_(-1, 1)
    x = torch.randn(3, 5, 16) * 10 + 4
    assert torch.allclose(architecture.layer_norm(x, norm), norm(x), atol=1e-5)


# -- masked prediction ---------------------------------------------------------------------------


def test_the_same_questions_whatever_the_model_the_batches_and_the_way_they_are_shown(tiny_bert):
    texts = list(TEXTS) * 3
    scores = [
        architecture.score_masked(tiny_bert, texts),
        architecture.score_masked(tiny_bert, texts, shown="random"),
        architecture.score_masked(random_encoder(tiny_bert, 5), texts, max_tokens=20),
    ]
    architecture.positions_in_common(scores)
    again = architecture.score_masked(tiny_bert, texts, max_tokens=20)
    assert np.allclose(scores[0].log_prob, again.log_prob, atol=1e-5)
    assert not np.allclose(scores[0].log_prob, scores[1].log_prob, atol=1e-3)
    other = architecture.score_masked(tiny_bert, texts, seed=1)
    with pytest.raises(ValueError, match="not asked the same"):
        architecture.positions_in_common([scores[0], other])


def test_scores_are_those_of_a_plain_forward_pass(tiny_bert):
    (text,) = TEXTS[:1]
    scores = architecture.score_masked(tiny_bert, [text], rate=0.3, seed=4)
    batch = make_batch(tiny_bert, text)
    own = [i for i, special in enumerate(batch.rows[0].is_special) if not special]
    draw = np.random.default_rng([4, 0])
    places = np.array(own)[np.sort(draw.choice(len(own), round(0.3 * len(own)), replace=False))]
    ids = batch.input_ids.clone()
    ids[0, places] = tiny_bert.tokenizer.mask_token_id
    with torch.no_grad():
        logits = tiny_bert.model(
            input_ids=ids, attention_mask=batch.attention_mask
        ).prediction_logits[0, places]
    expected = logits.log_softmax(-1)[range(len(places)), batch.input_ids[0, places]]
    assert scores.target.tolist() == batch.input_ids[0, places].tolist()
    assert np.allclose(scores.log_prob, expected, atol=1e-5)
    assert scores.loss == pytest.approx(-float(expected.mean()), abs=1e-5)


def test_a_model_that_copies_its_input_is_right_only_where_it_sees_the_answer(tiny_bert):
    """Planted truth: an MLM head that reads the token back, and nothing else."""
    copier = copy.deepcopy(tiny_bert)
    model = copier.model
    # One dimension a token would need a wider model; random directions do.
    draw = torch.Generator().manual_seed(0)
    table = torch.randn(len(copier.tokenizer), 32, generator=draw)
    table = torch.nn.functional.normalize(table, dim=1)
    model.cls.predictions.forward = lambda hidden: hidden @ table.T
    model.bert.forward = lambda input_ids, **_: type("Out", (), {
        "last_hidden_state": table[input_ids]
    })  # fmt: skip
    texts = list(TEXTS) * 5
    same = architecture.score_masked(copier, texts, shown="same").accuracy
    hidden = architecture.score_masked(copier, texts, shown="mask").accuracy
    assert same.value == 1.0 and same.interval == (1.0, 1.0)
    assert hidden.value == 0.0
    assert 0 < same.baselines["majority"] < 1


def test_special_tokens_are_never_asked_and_every_text_is(tiny_bert):
    scores = architecture.score_masked(tiny_bert, list(TEXTS), rate=0.01)
    assert scores.text.tolist() == [0, 1, 2, 3]
    special = set(tiny_bert.tokenizer.all_special_ids)
    assert not special & set(scores.target.tolist())


@pytest.mark.parametrize(
    "options, message",
    [({"shown": "upside down"}, "upside down"), ({"rate": 0}, "rate"), ({"rate": 1.0}, "rate")],
)
def test_unusable_questions_are_refused(tiny_bert, options, message):
    with pytest.raises(ValueError, match=message):
        architecture.score_masked(tiny_bert, list(TEXTS), **options)
    with pytest.raises(ValueError, match="no texts"):
        architecture.score_masked(tiny_bert, [])
    with pytest.raises(ValueError, match="one text"):
        architecture.score_masked(tiny_bert, "the cat")


def test_a_model_without_the_head_is_refused():
    electra = tiny_encoder("electra")
    with pytest.raises(MissingHeadError, match="mlm"):
        architecture.value_of_parts(electra, random_encoder(electra), list(TEXTS))
    with pytest.raises(MissingHeadError, match="nsp"):
        architecture.next_sentence(electra, electra, PAIRS)


def test_means_carry_an_interval_over_texts():
    scores = architecture.MaskedScores(
        text=np.repeat(np.arange(50), 4),
        target=np.zeros(200, dtype=int),
        log_prob=np.full(200, math.log(0.5)),
        right=np.repeat(np.arange(50) % 2 == 0, 4),
        majority=3,
        model="planted",
        seed=0,
    )
    found = scores.accuracy
    assert found.value == 0.5 and found.n == 200
    assert found.baselines == {"majority": 0.0}
    # Four answers of a text are one draw: the interval is that of 50 coins, not of 200.
    half = 1.96 * math.sqrt(0.25 / 50)
    assert found.interval[1] - found.interval[0] == pytest.approx(2 * half, rel=0.2)
    assert scores.loss == pytest.approx(math.log(2))


# -- parts of the input --------------------------------------------------------------------------


def test_a_part_that_the_model_does_not_need_is_worth_nothing(tiny_bert):
    lame = copy.deepcopy(tiny_bert)
    with torch.no_grad():
        lame.embeddings.segment.weight.zero_()
        lame.embeddings.token.weight.mul_(3)
    texts = [TextPair("the cat sat on the mat", "dogs bark"), *TEXTS]
    found = architecture.value_of_parts(lame, random_encoder(lame, 1), texts)
    assert list(found.parts) == ["token", "position", "segment"]
    assert found.parts["segment"].value == 0
    assert found.parts["token"].value != 0
    assert set(found.parts["token"].baselines) == {"random_model"}
    assert found.smallest.value == min(part.value for part in found.parts.values())
    assert found.whole.model == lame.name


def test_families_without_segments_are_measured_without_them():
    encoder = tiny_encoder("distilbert")
    found = architecture.value_of_parts(encoder, random_encoder(encoder), list(TEXTS))
    assert list(found.parts) == ["token", "position"] == list(
        architecture.available_parts(encoder)
    )


# -- pieces --------------------------------------------------------------------------------------


def test_pieces_of_words_inside_a_sentence(tiny_bert):
    assert architecture.pieces_of(tiny_bert, ["cats", "sleepest"]) == [["cats"], ["sleep", "##est"]]
    roberta = tiny_encoder("roberta")
    assert architecture.pieces_of(roberta, ["the"]) == [["Ġthe"]]
    with pytest.raises(ValueError, match="word 1 is empty"):
        architecture.pieces_of(tiny_bert, ["cat", " "])


def test_rare_words_that_are_cut_give_a_negative_correlation(tiny_bert):
    counts = {"the": 1000, "cat": 900, "dog": 800, "sleeping": 5, "barkest": 4, "xyzzy": 1}
    found = architecture.frequency_correlation(tiny_bert, counts)
    assert found.value < -0.8 and found.n == 6
    assert found.interval[0] <= found.value <= found.interval[1]
    with pytest.raises(ValueError, match="three words"):
        architecture.frequency_correlation(tiny_bert, {"the": 3, "cat": 2, "dog": 1})


def test_bands_of_frequency_are_powers_of_ten_in_a_million(tiny_bert):
    counts = {"the": 50_000, "of": 20_000, "cat": 50, "xyz": 50}
    found = architecture.pieces_by_frequency(tiny_bert, counts, 1_000_000)
    assert list(found) == ["10 to 100", "10,000 to 100,000"]
    assert found["10 to 100"].value == 2.0 and found["10,000 to 100,000"].n == 2
    small = architecture.pieces_by_frequency(tiny_bert, {"cat": 1}, 5_000_000)
    assert list(small) == ["0.1 to 1"]


def test_numbers_of_single_digits_cost_a_piece_a_digit(tiny_bert):
    found = architecture.pieces_of_numbers(tiny_bert, longest=4, n=30)
    assert {digits: part.value for digits, part in found.items()} == {1: 1, 2: 2, 3: 3, 4: 4}


# -- next sentence -------------------------------------------------------------------------------


def test_next_sentence_accuracy_of_a_planted_judge(tiny_bert, monkeypatch):
    judge = copy.deepcopy(tiny_bert)
    head = judge.model.cls.seq_relationship
    always = torch.tensor([[1.0, 0.0]])
    monkeypatch.setattr(head, "forward", lambda pooled: always.expand(len(pooled), 2))
    found = architecture.next_sentence(judge, tiny_bert, PAIRS)
    assert found.value == 0.5 and found.n == len(PAIRS)
    assert found.interval == (0.5, 0.5)  # every passage has one of each kind
    assert found.baselines["chance"] == 0.5 == found.baselines["word_overlap"]
    assert set(found.baselines) == {"chance", "random_model", "word_overlap"}
    monkeypatch.setattr(head, "forward", lambda pooled: -always.expand(len(pooled), 2))
    follower = [pair for pair in PAIRS if pair.follows]
    assert architecture.next_sentence(judge, tiny_bert, follower).value == 0.0
    with pytest.raises(ValueError, match="no pairs"):
        architecture.next_sentence(judge, tiny_bert, [])


def test_judgements_come_back_in_the_order_of_the_pairs(tiny_bert):
    pairs = [replace(pair, second="cats " * (i % 5 + 1)) for i, pair in enumerate(PAIRS)]
    together = architecture.judged_to_follow(tiny_bert, pairs)
    alone = [bool(architecture.judged_to_follow(tiny_bert, [pair])[0]) for pair in pairs]
    assert together.tolist() == alone


def test_word_overlap_looks_at_content_words_only():
    assert architecture.shares_a_word(SegmentPair("The old Bridge fell.", "A bridge!", True, 0))
    assert not architecture.shares_a_word(SegmentPair("The cat and I.", "The dog and I.", True, 0))


# -- senses --------------------------------------------------------------------------------------


def test_planted_senses_are_told_apart_and_identical_vectors_are_not():
    draw = np.random.default_rng(0)
    labels, frames = np.repeat([0, 1], 20), np.tile(np.repeat(np.arange(5), 4), 2)
    centres = draw.normal(size=(2, 8))
    apart = centres[labels] + 0.05 * draw.normal(size=(40, 8))
    similar = architecture.sense_similarities(apart, labels, frames)
    assert similar.shape == (40, 2)
    assert architecture.nearer_to_own(similar, labels).mean() == 1.0
    swapped = architecture.sense_similarities(apart, 1 - labels, frames)
    assert np.allclose(similar, swapped[:, ::-1])
    same = architecture.sense_similarities(np.ones((40, 8)), labels, frames)
    assert architecture.nearer_to_own(same, labels).mean() == 0.5


def test_a_vector_is_not_compared_with_sentences_of_its_own_frame():
    """Each frame has a direction of its own: only a leak could tell the senses apart."""
    frames = np.tile(np.repeat(np.arange(4), 3), 2)
    labels = np.repeat([0, 1], 12)
    vectors = np.eye(8)[labels * 4 + frames]
    similar = architecture.sense_similarities(vectors, labels, frames)
    assert np.allclose(similar, 0)
    with pytest.raises(ValueError, match="outside frame"):
        architecture.sense_similarities(vectors, labels, np.zeros(24, dtype=int))


def test_senses_of_the_real_model_come_with_their_baselines(embedded):
    examples = sense_examples("bank", 20)
    found = architecture.senses_apart(embedded, random_encoder(embedded), examples)
    assert found.word == "bank" and set(found.senses) == {"river", "money"}
    assert len(found.layers) == embedded.n_layers + 1
    assert found.result.n == 40
    assert found.result.baselines["chance"] == 0.5
    assert found.result.baselines["embedding_layer"] == found.layers[0].value
    assert found.result.value == found.layers[-1].value


def test_the_tagged_word_is_the_one_that_is_read(embedded):
    examples = sense_examples("bank", 3)
    vectors = architecture.occurrence_vectors(embedded, examples)
    for i, example in enumerate(examples):
        cache = run_with_cache(embedded, example.text, ["hidden_states"])
        (word,) = [w for w in cache.batch.rows[0].words if w.text.lower() == "bank"]
        start, end = word.pieces
        alone = cache["hidden_states"][:, 0, start:end].mean(dim=1)
        assert np.allclose(vectors[:, i], alone, atol=1e-5)


def test_mixed_words_are_refused(tiny_bert):
    mixed = [*sense_examples("bank", 2), *sense_examples("bat", 2)]
    with pytest.raises(ValueError, match="one word"):
        architecture.senses_apart(tiny_bert, tiny_bert, mixed)


# -- sizes ---------------------------------------------------------------------------------------


def test_counts_equal_those_of_the_allocated_model(any_encoder):
    for given in (any_encoder, any_encoder.config):
        sizes = architecture.count_parameters(given)
        if given is any_encoder:
            assert sizes.total == sum(p.numel() for p in any_encoder.base.parameters())
        assert sizes.n_layers == any_encoder.n_layers
        assert sizes.d_model == any_encoder.d_model
        assert sizes.parts["attention"] == any_encoder.n_layers * 4 * (32 * 32 + 32)
        assert sizes.parts["feed-forward"] == any_encoder.n_layers * (2 * 32 * 64 + 32 + 64)


def test_published_sizes_agree_with_the_paper_to_within_two_percent():
    """Devlin et al. 2019: base 110M, large 340M."""
    base, large = (architecture.count_parameters(c) for c in architecture.PUBLISHED.values())
    assert base.total == pytest.approx(110e6, rel=0.02)
    assert large.total == pytest.approx(340e6, rel=0.02)


def test_other_architectures_are_refused():
    from transformers import GPT2Config

    with pytest.raises(UnsupportedModelError, match="gpt2"):
        architecture.count_parameters(GPT2Config())
