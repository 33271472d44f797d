"""Pretraining: text to batches, masking shares, exact resume, the closed-form head."""

import json
import lzma
import os
import signal
import subprocess
import sys
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch
from tiny import wordpiece_tokenizer
from transformers import AutoTokenizer, BertConfig, BertForPreTraining

from bertology_utils.training import checkpoints, text
from bertology_utils.training.card import CURVE, read_log, write_card
from bertology_utils.training.checkpoints import CheckpointError
from bertology_utils.training.export import TOKENIZER_FILES, export_model, undo_favour
from bertology_utils.training.hub_text import download_text, looks_like_hub
from bertology_utils.training.masking import BERT_80_10_10, MaskingScheme, apply_masking
from bertology_utils.training.pretrain import (
    PretrainConfig,
    PretrainingHeads,
    closed_form_head,
    initial_model,
    losses,
    masked_batch,
    pretrain,
)

WORDS = [
    "the cat sat on the mat",
    "dogs bark",
    "a doctor said that the old cats sleep",
    "paris is the capital of france",
    "the river is near the bank",
    "she said it was good",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("text")
    rng = np.random.default_rng(0)

    def lines(n):
        return "\n".join(
            " ".join(f"{WORDS[i]}." for i in rng.integers(0, len(WORDS), size=4)) for _ in range(n)
        )

    (place / "story.txt").write_text(lines(600), encoding="utf-8")
    with lzma.open(place / "facts.txt.xz", "wt", encoding="utf-8") as handle:
        handle.write(lines(400))
    return place


@pytest.fixture(scope="module")
def tokenizer():
    return wordpiece_tokenizer()


@pytest.fixture(scope="module")
def corpus(folder, tokenizer):
    specs = {"facts": text.SourceSpec(weight=0.5, ordered=False)}
    return text.load_corpus(folder, tokenizer, specs=specs)


def tiny_model(tokenizer, seed=0):
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    return initial_model(None, config, seed)


CONFIG = PretrainConfig(
    steps=12, batch_tokens=256, max_length=48, warmup_steps=2, decay_steps=4, learning_rate=2e-3
)


def run(corpus, tokenizer, out, config=CONFIG, **options):
    model = tiny_model(tokenizer)
    train, held = corpus
    pretrain(
        model,
        tokenizer,
        train,
        held,
        out,
        config,
        cpu=True,
        progress=False,
        held_out_rows=8,
        **options,
    )
    return model


def entries(out):
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


# --- text --------------------------------------------------------------------------------


def test_held_out_lines_are_whole_blocks_and_never_trained_on():
    lines = [f"line {i}" for i in range(20_000)]  # 50 lines a block
    train, held = text.hold_out(lines)
    assert not set(train) & set(held) and sorted(train + held) == sorted(lines)
    assert 0.005 < len(held) / len(lines) < 0.02
    numbers = [int(x.split()[1]) for x in held]
    assert sum(b - a == 1 for a, b in zip(numbers, numbers[1:], strict=False)) > len(held) * 0.9


def test_excluded_sentences_drop_their_line(tmp_path, tokenizer):
    (tmp_path / "a.txt").write_text("the cat sat on the mat. dogs bark.\ndogs bark.\n" * 10)
    banned = frozenset({text.normalise("The cat sat on the mat!")})
    train, _ = text.load_corpus(tmp_path, tokenizer, exclude=banned)
    pieces = tokenizer.convert_ids_to_tokens(train[0].ids.tolist())
    assert "mat" not in pieces and "bark" in pieces


def test_windows_open_with_a_sentence_and_cover_the_text(corpus):
    source = corpus[0][1]
    starts, lengths = text.window_examples(source, 45)
    assert set(starts) <= set(source.sentences) and set(lengths) == {45}
    covered = np.zeros(len(source.ids), dtype=bool)
    for start in starts:
        covered[start : start + 45] = True
    assert covered[: starts[-1]].all()


def test_weights_set_the_share_and_epochs_complete_each_other(corpus):
    train, _ = corpus
    facts = [s.name for s in train].index("facts")
    n = len(text.window_examples(train[facts], 45)[0])
    picked = [text.epoch_examples(train, 45, 0, e) for e in (0, 1)]
    halves = [set(p.start[p.source == facts].tolist()) for p in picked]
    assert all(abs(len(h) - n / 2) <= 1 for h in halves)
    assert len(halves[0] | halves[1]) == n


def test_batches_stay_in_budget_and_use_every_example(corpus):
    examples = text.epoch_examples(corpus[0], 45, 3, 0)
    plan = text.plan_batches(examples, 256, 3, 0)
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(examples)))
    for rows in plan:
        longest = examples.length[rows].max() + 3
        assert len(rows) == 1 or longest * len(rows) <= 256


def test_nsp_labels_are_true_to_the_text(corpus, tokenizer):
    train, _ = corpus
    source = train[[s.name for s in train].index("story")]
    examples = text.epoch_examples([source], 45, 0, 0)
    batch = text.build_batch(
        [source], examples, np.arange(min(64, len(examples))), tokenizer, np.random.default_rng(0)
    )
    row = source.ids.tolist()
    text_of = " ".join(map(str, row))
    for ids, types, mask, label in zip(
        batch.input_ids, batch.token_type_ids, batch.attention_mask, batch.nsp_labels, strict=True
    ):
        n = int(mask.sum())
        first = int((types[:n] == 0).sum())
        joined = list(ids[1 : first - 1]) + list(ids[first : n - 1])
        contiguous = " ".join(map(str, joined)) in text_of
        if label == 0:
            assert contiguous
    assert {0, 1} <= set(batch.nsp_labels.tolist())


def test_sequence_of_batches_can_be_entered_anywhere(corpus):
    options = {"size": 45, "max_tokens": 256, "seed": 0}
    stream = text.iterate_batches(corpus[0], first=0, **options)
    whole = [next(stream) for _ in range(300)]
    late = next(text.iterate_batches(corpus[0], first=250, **options))
    assert late[0] == 250 and late[2].tolist() == whole[250][2].tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: None, "does not exist"),
        (lambda p: p.mkdir(), "no .txt"),
        (lambda p: (p.mkdir(), (p / "x.txt").write_bytes(b"\xff\xfe\x00")), "UTF-8"),
        (lambda p: (p.mkdir(), (p / "x.txt.xz").write_bytes(b"not xz")), "damaged after line 0"),
        (lambda p: (p.mkdir(), (p / "x.txt").write_text("\n\n")), "no text left"),
    ],
)
def test_unusable_folders_are_named(tmp_path, tokenizer, make, message):
    place = tmp_path / "corpus"
    make(place)
    with pytest.raises(text.CorpusError, match=message):
        text.load_corpus(place, tokenizer)


def test_a_data_set_becomes_a_folder_of_lines(tmp_path, monkeypatch):
    """``datasets`` reads a local folder as it reads the hub, so the real library is used."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    source = tmp_path / "stories"
    source.mkdir()
    rows = [{"text": " A cat sat. \n\nIt slept.\n", "n": 1}, {"text": "", "n": 2}]
    (source / "train.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    folder = download_text(str(source), tmp_path / "out")
    assert [p.name for p in folder.iterdir()] == ["stories-train.txt"]
    assert (folder / "stories-train.txt").read_text() == "A cat sat.\nIt slept.\n"
    (source / "train.jsonl").unlink()
    assert download_text(str(source), tmp_path / "out") == folder, "the file is used again"


@pytest.mark.parametrize(
    "rows, column, message",
    [
        ([{"text": "a"}], "body", "no column 'body'; it has text"),
        ([{"text": " "}], "text", "holds no text"),
        (None, "text", "cannot be read"),
    ],
)
def test_an_unusable_data_set_leaves_nothing_behind(tmp_path, monkeypatch, rows, column, message):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    source = tmp_path / "stories"
    source.mkdir()
    if rows is not None:
        (source / "train.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    with pytest.raises(text.CorpusError, match=message):
        download_text(str(source), tmp_path / "out", column=column)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    "name, hub",
    [("owner/corpus", True), ("corpus", True), ("./corpus", False), ("a/b/c", False)],
)
def test_hub_names_are_told_from_folders(name, hub):
    assert looks_like_hub(name) is hub
    assert not looks_like_hub(str(Path(__file__).parent))


def test_cached_text_equals_fresh_text(folder, tokenizer, tmp_path):
    fresh = text.load_corpus(folder, tokenizer, cache=tmp_path)
    again = text.load_corpus(folder, tokenizer, cache=tmp_path)
    for a, b in zip(fresh[0] + fresh[1], again[0] + again[1], strict=True):
        assert a.name == b.name
        for key in ("ids", "lines", "sentences"):
            assert np.array_equal(getattr(a, key), getattr(b, key))


# --- masking -----------------------------------------------------------------------------


def test_masking_shares():
    ids = np.full((200, 200), 7)
    maskable = np.ones_like(ids, dtype=bool)
    maskable[:, 0] = False
    masked, chosen = apply_masking(
        ids, maskable, BERT_80_10_10, mask_id=3, vocab_size=1000, rng=np.random.default_rng(0)
    )
    n = chosen.sum()
    assert n == round(0.15 * maskable.sum()) and not chosen[:, 0].any()
    assert (masked[~chosen] == 7).all()
    assert (masked[chosen] == 3).mean() == pytest.approx(0.8, abs=0.02)
    assert (masked[chosen] == 7).mean() == pytest.approx(0.1, abs=0.02)


def test_favoured_pieces_are_masked_as_much_more_often(tokenizer):
    config = PretrainConfig(**{**CONFIG.__dict__, "favoured": "is are", "favoured_weight": 3.0})
    weights = config.piece_weights(tokenizer)
    verb, noun = tokenizer.convert_tokens_to_ids(["are", "dog"])
    ids = np.array([verb] * 10 + [noun] * 90)[None].repeat(400, 0)
    _, chosen = apply_masking(
        ids,
        np.ones_like(ids, dtype=bool),
        MaskingScheme(rate=0.05),
        mask_id=tokenizer.mask_token_id,
        vocab_size=len(tokenizer),
        rng=np.random.default_rng(0),
        weights=weights,
    )
    assert chosen.sum() == 2000
    assert chosen[ids == verb].mean() / chosen[ids == noun].mean() == pytest.approx(3, rel=0.1)


def test_favoured_pieces_outside_the_vocabulary_are_named(tokenizer):
    assert CONFIG.piece_weights(tokenizer) is None
    with pytest.raises(ValueError, match="not in the vocabulary.*notapiece"):
        PretrainConfig(favoured="is notapiece").piece_weights(tokenizer)
    with pytest.raises(ValueError, match="favoured_weight"):
        PretrainConfig(favoured="is", favoured_weight=0.0)


@pytest.mark.parametrize("given", [(0.0, 0.8, 0.1), (0.2, 0.9, 0.2), (0.2, -0.1, 0.1)])
def test_impossible_schemes_raise(given):
    with pytest.raises(ValueError):
        MaskingScheme(*given)


def test_nothing_to_mask_raises():
    with pytest.raises(ValueError, match="no position"):
        apply_masking(
            np.ones((1, 2), int),
            np.zeros((1, 2), bool),
            BERT_80_10_10,
            mask_id=0,
            vocab_size=5,
            rng=np.random.default_rng(0),
        )


# --- model and loop ----------------------------------------------------------------------


def test_gathered_loss_equals_the_library_loss(corpus, tokenizer):
    model = tiny_model(tokenizer).eval()
    train, _ = corpus
    examples = text.epoch_examples(train, 45, 0, 0)
    rng = np.random.default_rng(0)
    story = np.flatnonzero(examples.source == [s.name for s in train].index("story"))[:8]
    plain = text.build_batch(train, examples, story, tokenizer, rng)
    batch = masked_batch(plain, BERT_80_10_10, tokenizer, rng)
    mlm, nsp = losses(*PretrainingHeads(model)(batch), batch)
    labels = torch.full(batch.input_ids.shape, -100).flatten()
    labels[batch.positions] = batch.targets
    out = model(
        input_ids=batch.input_ids,
        attention_mask=batch.attention_mask,
        token_type_ids=batch.token_type_ids,
        labels=labels.view_as(batch.input_ids),
        next_sentence_label=batch.nsp_labels,
    )
    assert out.loss.item() == pytest.approx((mlm + nsp).item(), abs=1e-5)


def test_training_learns(corpus, tokenizer, tmp_path):
    config = PretrainConfig(
        steps=120,
        batch_tokens=512,
        max_length=48,
        warmup_steps=10,
        decay_steps=20,
        learning_rate=3e-3,
    )
    run(corpus, tokenizer, tmp_path, config, evaluate_every=40, save_every=1000)
    results = [e["held_out"] for e in entries(tmp_path) if "held_out" in e]
    counts = text.piece_counts(corpus[0], len(tokenizer))
    majority = counts.max() / counts.sum()
    assert results[-1]["mlm_loss"] < results[0]["mlm_loss"] - 0.1
    assert results[-1]["mlm_accuracy"] > majority + 0.05


def test_resuming_repeats_the_undisturbed_run(corpus, tokenizer, tmp_path):
    whole = run(corpus, tokenizer, tmp_path / "whole", log_every=1, save_every=100)
    first = PretrainConfig(**{**CONFIG.__dict__, "steps": 6, "decay_steps": 0})
    run(corpus, tokenizer, tmp_path / "parts", first, log_every=1, save_every=3)
    parts = run(corpus, tokenizer, tmp_path / "parts", log_every=1, save_every=100)
    for (name, a), (_, b) in zip(whole.named_parameters(), parts.named_parameters(), strict=True):
        assert torch.equal(a, b), name
    steps = {e["step"]: e["mlm_loss"] for e in entries(tmp_path / "whole") if "mlm_loss" in e}
    again = {e["step"]: e["mlm_loss"] for e in entries(tmp_path / "parts") if "mlm_loss" in e}
    assert steps == again and len(steps) == 12


# The command, which ends itself by force when the checkpoint of its tenth step is due.
DYING = """
import os, signal, sys
from bertology_utils.training import checkpoints, pretrain
save = checkpoints.save
def save_or_die(out, step, *rest):
    if step == 10:
        os.kill(os.getpid(), signal.SIGKILL)
    return save(out, step, *rest)
checkpoints.save = save_or_die
pretrain.main()
"""


def test_a_killed_run_continues_to_the_same_weights(folder, tokenizer, tmp_path):
    start = tmp_path / "start"
    BertForPreTraining(tiny_model(tokenizer).config).save_pretrained(start)
    tokenizer.save_pretrained(start)

    def command(out, *program):
        return [
            sys.executable,
            *program,
            "--text",
            str(folder),
            "--out",
            str(out),
            "--init",
            str(start),
            "--steps",
            "40",
            "--warmup-steps",
            "4",
            "--decay-steps",
            "8",
            "--batch-tokens",
            "256",
            "--max-length",
            "48",
            "--save-every",
            "5",
            "--evaluate-every",
            "100",
            "--held-out-rows",
            "8",
            "--cpu",
            "--closed-form-head",
            "8",
        ]

    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    module = ("-m", "bertology_utils.training.pretrain")
    subprocess.run(command(tmp_path / "whole", *module), check=True, env=env, capture_output=True)
    victim = subprocess.run(
        command(tmp_path / "killed", "-c", DYING), env=env, capture_output=True, text=True
    )
    assert victim.returncode == -signal.SIGKILL, victim.stderr
    assert checkpoints.list_steps(tmp_path / "killed") == [5]
    subprocess.run(command(tmp_path / "killed", *module), check=True, env=env, capture_output=True)
    a, b = tiny_model(tokenizer), tiny_model(tokenizer, seed=1)
    checkpoints.load_weights(tmp_path / "whole" / "step-40", a)
    checkpoints.load_weights(tmp_path / "killed" / "step-40", b)
    for (name, x), (_, y) in zip(a.named_parameters(), b.named_parameters(), strict=True):
        assert torch.equal(x, y), name


def test_a_run_with_other_settings_is_refused(corpus, tokenizer, tmp_path):
    run(corpus, tokenizer, tmp_path)
    other = PretrainConfig(**{**CONFIG.__dict__, "learning_rate": 1e-4})
    with pytest.raises(CheckpointError, match="learning_rate"):
        run(corpus, tokenizer, tmp_path, other)


def test_checkpoints_hold_no_pickle(corpus, tokenizer, tmp_path):
    run(corpus, tokenizer, tmp_path, save_every=4)
    assert checkpoints.list_steps(tmp_path) == [8, 12]
    files = {p.name for p in (tmp_path / "step-12").iterdir()}
    assert files == {"model.safetensors", "optimizer.safetensors", "state.json"}


def visible_batches(sources, tokenizer, rows):
    """Batches whose predicted pieces stay visible: the answer is in the state to be read."""
    scheme, rng = MaskingScheme(0.2, 0.0, 0.0), np.random.default_rng(0)
    examples = text.epoch_examples(sources, 45, 0, 0)
    plan = text.plan_batches(examples, 512, 0, 0)[:rows]
    return [
        masked_batch(text.build_batch(sources, examples, r, tokenizer, rng), scheme, tokenizer, rng)
        for r in plan
    ]


def test_closed_form_head_reads_a_visible_piece(corpus, tokenizer):
    train, _ = corpus
    counts = text.piece_counts(train, len(tokenizer))
    share = counts / counts.sum()
    unigram = -float((share[share > 0] * np.log(share[share > 0])).sum())
    loss = closed_form_head(tiny_model(tokenizer), visible_batches(train, tokenizer, 40), counts)
    assert loss < 0.5 * unigram


def test_closed_form_head_needs_data(corpus, tokenizer):
    counts = text.piece_counts(corpus[0], len(tokenizer))
    with pytest.raises(ValueError, match="4 batches"):
        closed_form_head(tiny_model(tokenizer), visible_batches(corpus[0], tokenizer, 3), counts)


def test_schedule_warms_up_holds_and_decays():
    rates = [CONFIG.learning_rate_at(s) for s in range(1, CONFIG.steps + 1)]
    assert rates[0] == CONFIG.learning_rate / 2 and rates[1] == CONFIG.learning_rate
    assert rates[7] == CONFIG.learning_rate and rates[-1] == CONFIG.learning_rate / 5
    assert all(b <= a for a, b in zip(rates[1:], rates[2:], strict=False))


@pytest.mark.parametrize(
    "wrong", [{"steps": 0}, {"steps": 5, "warmup_steps": 4, "decay_steps": 4}, {"batch_tokens": 8}]
)
def test_impossible_plans_raise(wrong):
    with pytest.raises(ValueError):
        PretrainConfig(**{**CONFIG.__dict__, **wrong})


# --- export ------------------------------------------------------------------------------


def test_exported_folder_loads_with_plain_transformers(tokenizer, tmp_path):
    model = tiny_model(tokenizer).eval()
    out = export_model(model, tokenizer, tmp_path / "model")
    (out / "README.md").write_text("card")
    export_model(model, tokenizer, out)
    assert (out / "README.md").read_text() == "card"
    names = {p.name for p in out.iterdir()}
    assert names == {"README.md", "config.json", "model.safetensors", *TOKENIZER_FILES}
    back = BertForPreTraining.from_pretrained(out, dtype=torch.float32).eval()
    assert back.config.hidden_dropout_prob == 0.1 and model.config.hidden_dropout_prob == 0.0
    fast = AutoTokenizer.from_pretrained(out)
    inputs = fast("the cat sat on the [MASK] .", return_tensors="pt")
    assert inputs["input_ids"].tolist() == [tokenizer("the cat sat on the [MASK] .")["input_ids"]]
    with torch.no_grad():
        a, b = model(**inputs), back(**inputs)
    assert torch.allclose(a.prediction_logits, b.prediction_logits, atol=5e-3)
    assert torch.allclose(a.seq_relationship_logits, b.seq_relationship_logits, atol=5e-3)
    assert next(model.parameters()).dtype == torch.float32


def test_the_head_start_of_favoured_pieces_is_taken_back(tokenizer):
    model = tiny_model(tokenizer).eval()
    inputs = tokenizer("the cat sat on the [MASK] .", return_tensors="pt")
    with torch.no_grad():
        before = model(**inputs).prediction_logits[0, 6].softmax(-1)
        undo_favour(model, tokenizer, CONFIG)
        assert torch.equal(model(**inputs).prediction_logits[0, 6].softmax(-1), before)
        undo_favour(model, tokenizer, PretrainConfig(favoured="is are", favoured_weight=3.0))
        after = model(**inputs).prediction_logits[0, 6].softmax(-1)
    vocabulary = tokenizer.get_vocab()
    odds = after / before / (after[vocabulary["the"]] / before[vocabulary["the"]])
    for piece in ("is", "are", "cat", "the"):
        expected = 1 / 3 if piece in ("is", "are") else 1.0
        assert float(odds[vocabulary[piece]]) == pytest.approx(expected, rel=1e-3)


def test_weights_that_do_not_fit_are_not_exported(tokenizer, tmp_path):
    model = tiny_model(tokenizer)
    with torch.no_grad():
        model.bert.pooler.dense.weight[0, 0] = float("nan")
    with pytest.raises(ValueError, match="pooler"):
        export_model(model, tokenizer, tmp_path / "model")
    assert not (tmp_path / "model").exists()


# --- card --------------------------------------------------------------------------------


def test_the_card_says_what_the_run_logged(corpus, tokenizer, tmp_path):
    run_folder, out = tmp_path / "run", tmp_path / "model"
    model = run(corpus, tokenizer, run_folder, evaluate_every=6, save_every=6)
    (run_folder / "sources.json").write_text(
        json.dumps({"train": text.describe(corpus[0]), "held_out": []})
    )
    export_model(model, tokenizer, out)
    (tmp_path / "table.md").write_text("| task | m |\n|---|---|\n| x | 0.5 |\n")
    card = write_card(run_folder, tmp_path / "table.md", 12, out).read_text()
    curve = json.loads((out / CURVE).read_text())
    held = [e for e in entries(run_folder) if "held_out" in e]
    assert [row["step"] for row in curve] == [6, 12]
    assert curve[-1]["mlm_loss"] == pytest.approx(held[-1]["held_out"]["mlm_loss"], abs=1e-4)
    assert curve[-1]["pieces"] == sum(e.get("pieces", 0) for e in entries(run_folder))
    assert "| x | 0.5 |" in card and "12 of 12 planned steps" in card
    assert f"| {curve[-1]['mlm_accuracy']:.3f} |" in card

    after = [(run_folder, 6)]
    card = write_card(run_folder, tmp_path / "table.md", 12, out, after=after).read_text()
    joined = json.loads((out / CURVE).read_text())
    assert [row["step"] for row in joined] == [6, 12, 18]
    assert joined[-1]["pieces"] == curve[0]["pieces"] + curve[-1]["pieces"]
    assert "for 6 steps on" in card and "million in all" in card


def test_a_repeated_step_counts_once(tmp_path):
    lines = [{"step": 1, "pieces": 5}, {"step": 2, "pieces": 7}, {"step": 2, "pieces": 9}]
    (tmp_path / "log.jsonl").write_text("\n".join(json.dumps(x) for x in lines))
    assert [entry["pieces"] for entry in read_log(tmp_path)] == [5, 9]
