"""The table of language-model quality: planted preferences, honest chance, refusals."""

import json

import pytest

from bertology_utils import evaluation, stimuli
from bertology_utils.__main__ import main
from bertology_utils.cloze import preference
from bertology_utils.encoder import BertologyError, random_encoder
from bertology_utils.evaluation import (
    Score,
    blimp_scores,
    comparison_table,
    evaluate_model,
    fact_scores,
    judge_pairs,
    negation_scores,
    passage_scores,
    text_scores,
)


@pytest.fixture(scope="module")
def chance(embedded):
    return random_encoder(embedded)


def value(scores, task, unit="accuracy"):
    found = [s for s in scores if s.task == task and s.unit == unit]
    assert len(found) == 1
    return found[0]


def test_pairs_are_judged_by_the_target_at_its_mask(embedded):
    pairs = stimuli.minimal_pairs("agreement_simple", 6, 3)
    found = judge_pairs(embedded, pairs)
    for pair, margin in zip(pairs, found.margins, strict=True):
        tokenizer = embedded.tokenizer
        inputs = tokenizer(pair.frame, return_tensors="pt")
        place = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        logits = embedded.model(**inputs).prediction_logits[0, place].log_softmax(-1)
        good, bad = tokenizer.convert_tokens_to_ids([pair.good_word, pair.bad_word])
        assert margin == pytest.approx(float((logits[good] - logits[bad]).detach()), abs=1e-4)


def test_context_contrasts_compare_one_word_in_two_frames(embedded):
    pairs = stimuli.minimal_pairs("role_reversal", 4, 3)
    swapped = judge_pairs(embedded, pairs).margins
    alone = [judge_pairs(embedded, [pair]).margins[0] for pair in pairs]
    assert swapped == pytest.approx(alone, abs=1e-4)


def test_the_embedded_model_knows_more_than_random_weights(embedded, chance):
    trained, random = passage_scores(embedded), passage_scores(chance)
    words = "masked words: our passages"
    assert value(trained, words).interval[0] > value(random, words).interval[1]
    assert value(trained, words, "perplexity").value < value(random, words, "perplexity").value
    facts, guesses = (fact_scores(e, relations=["language"]) for e in (embedded, chance))
    task = "facts: language"
    assert value(facts, task, "P@10").interval[0] > value(guesses, task, "P@10").interval[1]
    assert value(facts, task, "P@1").value <= value(facts, task, "P@10").value


def test_negation_turns_right_into_wrong(embedded, monkeypatch):
    seen = []

    def spy(encoder, frames, good, bad):
        seen.append((frames, good, bad))
        return preference([1.0] * len(frames), encoder.name)

    monkeypatch.setattr(evaluation, "compare_at_mask", spy)
    negation_scores(embedded)
    (plain, right, wrong), (negated, first, second) = seen
    assert first == wrong and second == right
    assert all(" not " in f" {frame} " for frame in negated)
    assert len(plain) == len(negated)


def test_text_uses_only_the_held_out_blocks(embedded, tmp_path):
    lines = [" ".join(p.sentences) for p in stimuli.passages()]
    (tmp_path / "a.txt").write_text("\n".join(lines * 4), encoding="utf-8")
    held = text_scores(embedded, tmp_path, rows=8)
    everything = text_scores(embedded, tmp_path, held_out_only=False, rows=64)
    assert value(held, "masked words: a").n < value(everything, "masked words: a").n
    (tmp_path / "a.txt").write_text("One line only, of some words.")
    with pytest.raises(BertologyError, match="too short"):
        text_scores(embedded, tmp_path)


def test_blimp_rows_and_their_mean(embedded, tmp_path):
    for name, pairs in {
        "one": [("The cats sleep.", "The cats sleeps."), ("The cat sleeps.", "The cat sleep.")],
        "two": [("They were old.", "They was old.")],
    }.items():
        rows = [json.dumps({"sentence_good": g, "sentence_bad": b, "UID": name}) for g, b in pairs]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    one, two, mean = blimp_scores(embedded, tmp_path)
    assert (one.n, two.n, mean.n) == (2, 1, 3)
    assert mean.value == pytest.approx((one.value + two.value) / 2)
    with pytest.raises(BertologyError, match="no BLiMP"):
        blimp_scores(embedded, tmp_path / "nothing")


def test_the_table_lines_up_models():
    a = [Score("x", 0.5, 10, (0.2, 0.8), 0.5), Score("y", 12.0, 3, unit="perplexity")]
    lines = comparison_table({"m": a, "other": a[:1]}).splitlines()
    assert lines[0] == "| task | unit | n | chance | m | other |"
    assert lines[2] == "| x | accuracy | 10 | 0.50 | 0.500 [0.200, 0.800] | 0.500 [0.200, 0.800] |"
    assert lines[3].endswith("| 12.0 | – |")


def test_all_groups_come_from_one_call(embedded):
    tasks = {score.task for score in evaluate_model(embedded, n=4)}
    assert {task for task, _, _ in evaluation.PAIR_TASKS} <= tasks
    assert {f"facts: {relation}" for relation in evaluation.RELATIONS} <= tasks
    assert {"masked words: our passages", "next sentence: our passages"} <= tasks
    assert {"true completion, affirmative", "true completion, negated"} <= tasks


def test_the_command_line_refuses_unknown_models_in_one_line(capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["evaluate-model", "no-such-model-anywhere"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: ") and message.count("\n") == 1
