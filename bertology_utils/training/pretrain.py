"""Masked-LM and next-sentence pretraining of a BERT, resumable to the same loss.

Command line::

    python -m bertology_utils.training.pretrain --text FOLDER --out RUN [--init PATH] ...

One optimiser step = one batch of at most ``batch_tokens`` padded pieces per process. Batches
and masks are functions of (seed, batch number), dropout is off, so a run that is killed and
started again walks the very same path. Devlin et al. 2019 (arXiv 1810.04805) define the
objectives; the schedule is warm-up, constant, linear decay to zero.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from torch.nn import functional as F
from tqdm.auto import tqdm
from transformers import AutoTokenizer, BertConfig, BertForPreTraining

from ..encoder import evaluating
from ..writing import NotWrittenError, locked, remove_leftovers, told, write_whole
from . import checkpoints, text
from .hub_text import download_text, looks_like_hub
from .masking import ALWAYS_MASK, MaskingScheme, apply_masking


@dataclass(frozen=True)
class PretrainConfig:
    """What fixes a run. Lengths in pieces, rates in shares, learning rate per step.

    ``favoured`` lists pieces (separated by spaces) that are masked ``favoured_weight`` times as
    readily as others, at the same rate over all: present-tense verbs, say, are rare in novels.
    """

    steps: int = 1000
    batch_tokens: int = 3072
    max_length: int = 128
    learning_rate: float = 4e-4
    warmup_steps: int = 100
    decay_steps: int = 300
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    nsp_weight: float = 0.5
    mask_rate: float = 0.2
    mask_share: float = 0.8
    random_share: float = 0.1
    favoured: str = ""
    favoured_weight: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.favoured_weight <= 0:
            raise ValueError(f"favoured_weight must be positive, got {self.favoured_weight}")
        if self.steps < 1 or self.warmup_steps < 0 or self.decay_steps < 0:
            raise ValueError("steps must be positive, warm-up and decay not negative")
        if self.warmup_steps + self.decay_steps > self.steps:
            raise ValueError(
                f"warm-up ({self.warmup_steps}) and decay ({self.decay_steps}) "
                f"exceed the run ({self.steps} steps)"
            )
        if self.batch_tokens < self.max_length:
            raise ValueError("batch_tokens must hold at least one full sequence")

    @property
    def masking(self) -> MaskingScheme:
        return MaskingScheme(self.mask_rate, self.mask_share, self.random_share)

    def piece_weights(self, tokenizer) -> np.ndarray | None:
        """How readily each piece is masked, [vocabulary]; None when no piece is favoured.

        Raises ValueError when a favoured piece is not in the vocabulary.
        """
        if not self.favoured.split():
            return None
        vocabulary = tokenizer.get_vocab()
        unknown = [piece for piece in self.favoured.split() if piece not in vocabulary]
        if unknown:
            raise ValueError(f"favoured pieces that are not in the vocabulary: {unknown[:5]}")
        weights = np.ones(len(tokenizer))
        weights[[vocabulary[piece] for piece in self.favoured.split()]] = self.favoured_weight
        return weights

    def learning_rate_at(self, step: int) -> float:
        """Learning rate of the update that makes ``step`` (1-based) complete."""
        if step <= self.warmup_steps:
            return self.learning_rate * step / self.warmup_steps
        remaining = self.steps - step + 1
        if remaining <= self.decay_steps:
            return self.learning_rate * remaining / (self.decay_steps + 1)
        return self.learning_rate


@dataclass(frozen=True)
class MaskedBatch:
    """Tensors of one step: inputs [B, T], predicted positions [n] (flat), targets [n], NSP [B]."""

    input_ids: torch.Tensor
    token_type_ids: torch.Tensor
    attention_mask: torch.Tensor
    positions: torch.Tensor
    targets: torch.Tensor
    nsp_labels: torch.Tensor

    @property
    def n_tokens(self) -> int:
        return int(self.attention_mask.sum())

    def to(self, device: torch.device) -> MaskedBatch:
        return MaskedBatch(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})


def masked_batch(
    batch: text.PairBatch,
    scheme: MaskingScheme,
    tokenizer,
    rng: np.random.Generator,
    weights: np.ndarray | None = None,
) -> MaskedBatch:
    """Mask a batch; [CLS], [SEP] and padding are never chosen."""
    specials = [tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id]
    masked, chosen = apply_masking(
        batch.input_ids,
        ~np.isin(batch.input_ids, specials),
        scheme,
        mask_id=tokenizer.mask_token_id,
        vocab_size=len(tokenizer),
        rng=rng,
        weights=weights,
    )
    return MaskedBatch(
        torch.from_numpy(masked),
        torch.from_numpy(batch.token_type_ids),
        torch.from_numpy(batch.attention_mask),
        torch.from_numpy(np.flatnonzero(chosen)),
        torch.from_numpy(batch.input_ids[chosen]),
        torch.from_numpy(batch.nsp_labels),
    )


class PretrainingHeads(torch.nn.Module):
    """BertForPreTraining with the MLM head applied at predicted positions only.

    Returns MLM logits [n, vocabulary] and NSP logits [B, 2]. One module, so that a
    distributed wrapper sees a single forward call.
    """

    def __init__(self, model: BertForPreTraining) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: MaskedBatch) -> tuple[torch.Tensor, torch.Tensor]:
        out = self.model.bert(
            input_ids=batch.input_ids,
            token_type_ids=batch.token_type_ids,
            attention_mask=batch.attention_mask,
        )
        gathered = out.last_hidden_state.flatten(0, 1)[batch.positions]
        heads = self.model.cls
        return heads.predictions(gathered), heads.seq_relationship(out.pooler_output)


def losses(
    mlm_logits: torch.Tensor, nsp_logits: torch.Tensor, batch: MaskedBatch
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean MLM cross-entropy and mean NSP cross-entropy (0 when no row has a label)."""
    mlm = F.cross_entropy(mlm_logits.float(), batch.targets)
    labelled = batch.nsp_labels >= 0
    if not labelled.any():
        return mlm, nsp_logits.sum() * 0.0
    return mlm, F.cross_entropy(nsp_logits[labelled].float(), batch.nsp_labels[labelled])


def initial_model(init: str | Path | None, config: BertConfig | None, seed: int):
    """A BertForPreTraining from a local encoder or pretraining checkpoint, or from scratch.

    Missing heads are initialised under ``seed``. Dropout is off: runs here see each text at
    most a few times, and a deterministic forward pass is what makes resuming exact.
    """
    torch.manual_seed(seed)
    off = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    if init is not None:
        return BertForPreTraining.from_pretrained(
            init, dtype=torch.float32, attn_implementation="sdpa", use_safetensors=True, **off
        )
    if config is None:
        raise ValueError("give either init or config")
    config = BertConfig(**{**config.to_dict(), **off}, attn_implementation="sdpa")
    return BertForPreTraining(config)


@torch.no_grad()
def closed_form_head(
    model: BertForPreTraining,
    batches: Sequence[MaskedBatch],
    counts: np.ndarray,
    ridge: float = 1e-2,
) -> float:
    """Set the MLM head by ridge regression instead of chance; returns the loss it reaches.

    ``counts`` [vocabulary] is how often each piece occurs in the text. The last quarter of the
    batches is kept from the regression and yields the loss.

    The transform is the linear map from masked-position states to the centred embeddings of
    the hidden words; its GELU is shifted into the linear range by a constant bias that the
    following LayerNorm subtracts again; the decoder bias is the log unigram frequency.
    The LayerNorm gain is the best of a small grid.
    """
    if len(batches) < 4:
        raise ValueError(f"the regression needs at least 4 batches, got {len(batches)}")
    states, targets = [], []
    for batch in batches:
        out = model.bert(batch.input_ids, batch.attention_mask, batch.token_type_ids)
        states.append(out.last_hidden_state.flatten(0, 1)[batch.positions])
        targets.append(batch.targets)
    fit = len(batches) - len(batches) // 4
    hidden, words = torch.cat(states[:fit]), torch.cat(targets[:fit])
    unseen, answers = torch.cat(states[fit:]), torch.cat(targets[fit:])
    table = model.bert.embeddings.word_embeddings.weight
    wanted = table[words] - table.mean(0)
    centre = hidden.mean(0)
    x = hidden - centre
    gram = x.T @ x + ridge * x.pow(2).sum() / x.shape[1] * torch.eye(x.shape[1])
    weight = torch.linalg.solve(gram, x.T @ wanted).T
    scale = 1.0 / (x @ weight.T).std()
    head = model.cls.predictions
    frequency = torch.from_numpy(counts).float() + 1.0
    head.transform.dense.weight.copy_(weight * scale)
    head.transform.dense.bias.copy_(4.0 - (weight * scale) @ centre)
    head.transform.LayerNorm.bias.zero_()
    head.bias.copy_((frequency / frequency.sum()).log())
    best = (math.inf, 1.0)
    for gain in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0):
        head.transform.LayerNorm.weight.fill_(gain)
        loss = float(F.cross_entropy(head(unseen), answers))
        best = min(best, (loss, gain))
    head.transform.LayerNorm.weight.fill_(best[1])
    return best[0]


@dataclass(frozen=True)
class HeldOut:
    """Held-out results: MLM accuracy and loss (nats) at [MASK]ed positions, NSP accuracy.

    ``by_source`` maps source names to MLM accuracy; ``n`` counts pieces predicted and ``nsp_n``
    pairs judged.
    """

    mlm_accuracy: float
    mlm_loss: float
    nsp_accuracy: float
    n: int
    nsp_n: int
    by_source: dict[str, float]


def held_out_batches(
    sources: Sequence[text.Source], tokenizer, max_length: int, per_source: int, seed: int = 1234
) -> dict[str, list[MaskedBatch]]:
    """Fixed evaluation batches by source: 15 % of positions, all of them [MASK]."""
    fixed: dict[str, list[MaskedBatch]] = {}
    for index, source in enumerate(sources):
        alone = [source]
        plain = text.epoch_examples(alone, max_length - 3, seed, 0)
        rows = np.random.default_rng([seed, index]).permutation(len(plain))[:per_source]
        rows = rows[np.argsort(-plain.length[rows], kind="stable")]
        fixed[source.name] = []
        for number, i in enumerate(range(0, len(rows), 16)):
            rng = np.random.default_rng([seed, index, number])
            batch = text.build_batch(alone, plain, rows[i : i + 16], tokenizer, rng)
            fixed[source.name].append(masked_batch(batch, ALWAYS_MASK, tokenizer, rng))
    return fixed


Scorer = Callable[[MaskedBatch], tuple[torch.Tensor, torch.Tensor | None]]


@torch.no_grad()
def evaluate(score: Scorer, fixed: dict[str, list[MaskedBatch]], device) -> HeldOut:
    """Score a model on :func:`held_out_batches`.

    ``score`` maps a batch to MLM logits [n, vocabulary] and NSP logits [B, 2] (None where the
    model has no such head), in evaluation mode. NSP accuracy is NaN without labelled rows.
    """
    right = loss = n = nsp_right = nsp_n = 0.0
    by_source: dict[str, float] = {}
    for name, batches in fixed.items():
        hits = count = 0.0
        for batch in (b.to(device) for b in batches):
            mlm, nsp = score(batch)
            hits += float((mlm.argmax(-1) == batch.targets).sum())
            loss += float(F.cross_entropy(mlm.float(), batch.targets, reduction="sum"))
            count += len(batch.targets)
            labelled = batch.nsp_labels >= 0
            if nsp is not None:
                nsp_right += float((nsp.argmax(-1) == batch.nsp_labels)[labelled].sum())
                nsp_n += float(labelled.sum())
        by_source[name] = hits / count
        right += hits
        n += count
    nsp_accuracy = nsp_right / nsp_n if nsp_n else math.nan
    return HeldOut(right / n, loss / n, nsp_accuracy, int(n), int(nsp_n), by_source)


def parameter_groups(model: torch.nn.Module, weight_decay: float) -> list[dict]:
    """Weight decay on matrices only, not on biases, LayerNorms or embeddings."""
    decayed = [p for n, p in model.named_parameters() if p.ndim > 1 and "embeddings" not in n]
    chosen = {id(p) for p in decayed}
    rest = [p for p in model.parameters() if id(p) not in chosen]
    return [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": rest, "weight_decay": 0.0},
    ]


def pretrain(
    model: BertForPreTraining,
    tokenizer,
    train: Sequence[text.Source],
    held: Sequence[text.Source],
    out: str | Path,
    config: PretrainConfig,
    *,
    save_every: int = 200,
    evaluate_every: int = 200,
    log_every: int = 20,
    held_out_rows: int = 64,
    mixed_precision: str | None = None,
    cpu: bool = False,
    progress: bool = True,
) -> HeldOut | None:
    """Train until ``config.steps`` are complete, continuing from the newest checkpoint in ``out``.

    Writes ``log.jsonl`` (loss, learning rate, pieces per second, held-out results) and
    ``step-N`` checkpoints, each complete or absent. Returns the last held-out result, or None
    when there is no held-out text.

    Raises
    ------
    ValueError
        When ``out`` holds a run with other settings than ``config``, or another process trains
        there. ``steps`` and ``decay_steps`` may change while the decay has not begun.
    NotWrittenError
        When the disk is full or ``out`` takes nothing; checkpoints that are there stay.
    """
    accelerator = Accelerator(
        mixed_precision=mixed_precision or ("bf16" if _has_bf16(cpu) else "no"), cpu=cpu
    )
    main = accelerator.is_main_process
    out = Path(out)
    busy = checkpoints.CheckpointError(f"another training run is using {out}")
    with locked(out / ".lock", busy) if main else nullcontext():
        if main:
            remove_leftovers(out)
        return _train(
            accelerator, model, tokenizer, train, held, out, config, save_every, evaluate_every,
            log_every, held_out_rows, progress,
        )  # fmt: skip


def _train(
    accelerator: Accelerator, model: BertForPreTraining, tokenizer, train: Sequence[text.Source],
    held: Sequence[text.Source], out: Path, config: PretrainConfig, save_every: int,
    evaluate_every: int, log_every: int, held_out_rows: int, progress: bool,
) -> HeldOut | None:  # fmt: skip
    device, main = accelerator.device, accelerator.is_main_process
    heads = PretrainingHeads(model)
    optimizer = torch.optim.AdamW(
        parameter_groups(heads, config.weight_decay),
        lr=config.learning_rate,
        betas=(0.9, 0.98),
        eps=1e-6,
        fused=True,
    )
    weights = config.piece_weights(tokenizer)
    done = checkpoints.resume(out, model, optimizer, asdict(config))
    heads, optimizer = accelerator.prepare(heads, optimizer)
    fixed = held_out_batches(held, tokenizer, config.max_length, held_out_rows)
    log = _Log(out / "log.jsonl") if main else None
    stream = text.iterate_batches(
        train,
        size=config.max_length - 3,
        max_tokens=config.batch_tokens,
        seed=config.seed,
        first=done * accelerator.num_processes + accelerator.process_index,
        step=accelerator.num_processes,
    )
    bar = tqdm(total=config.steps, initial=done, disable=not (progress and main), unit="step")
    window = {"mlm": 0.0, "nsp": 0.0, "tokens": 0, "time": time.perf_counter(), "n": 0}
    result: HeldOut | None = None
    heads.train()
    try:
        for step in range(done + 1, config.steps + 1):
            number, examples, rows = next(stream)
            rng = np.random.default_rng([config.seed, 11, number])
            plain = text.build_batch(train, examples, rows, tokenizer, rng)
            batch = masked_batch(plain, config.masking, tokenizer, rng, weights).to(device)
            for group in optimizer.param_groups:
                group["lr"] = config.learning_rate_at(step)
            mlm, nsp = losses(*heads(batch), batch)
            accelerator.backward(mlm + config.nsp_weight * nsp)
            accelerator.clip_grad_norm_(heads.parameters(), config.clip_norm)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            window["mlm"] += float(mlm.detach())
            window["nsp"] += float(nsp.detach())
            window["tokens"] += batch.n_tokens * accelerator.num_processes
            window["n"] += 1
            bar.update()
            if not math.isfinite(window["mlm"]):
                raise FloatingPointError(f"loss is not finite at step {step}")
            last = step == config.steps
            if main and (step % log_every == 0 or last):
                seconds = time.perf_counter() - window["time"]
                entry = {
                    "step": step,
                    "mlm_loss": round(window["mlm"] / window["n"], 5),
                    "nsp_loss": round(window["nsp"] / window["n"], 5),
                    "lr": config.learning_rate_at(step),
                    "pieces": window["tokens"],
                    "pieces_per_second": round(window["tokens"] / seconds, 1),
                }
                log.write(entry)
                bar.set_postfix(mlm=entry["mlm_loss"], tps=entry["pieces_per_second"])
            if step % log_every == 0:
                window = {"mlm": 0.0, "nsp": 0.0, "tokens": 0, "n": 0}
                window["time"] = time.perf_counter()
            if fixed and (step % evaluate_every == 0 or last):
                with evaluating(heads):
                    result = evaluate(heads, fixed, device)
                if main:
                    log.write({"step": step, "held_out": asdict(result)})
                window["time"] = time.perf_counter()
            if main and (step % save_every == 0 or last):
                checkpoints.save(out, step, model, optimizer, asdict(config))
    finally:
        bar.close()
        if log is not None:
            log.close()
    return result


def _has_bf16(cpu: bool) -> bool:
    return not cpu and torch.cuda.is_available() and torch.cuda.is_bf16_supported()


class _Log:
    """A file of JSON lines that goes on after the last whole one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with told(path):
            self.file = path.open("ab+")
            self.file.seek(0)
            # Half a line, which a run that was killed may leave, would spoil the next one too.
            whole = self.file.read().rfind(b"\n") + 1
            self.file.truncate(whole)

    def write(self, entry: dict) -> None:
        with told(self.path):
            self.file.write(json.dumps(entry).encode() + b"\n")
            self.file.flush()

    def close(self) -> None:
        with suppress(OSError):  # what could not be written has been told
            self.file.close()


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the module; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="python -m bertology_utils.training.pretrain", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "--text",
        required=True,
        help="folder of .txt or .txt.xz files, or a data set of the Hugging Face hub",
    )
    parser.add_argument("--hub-config", default="", help="configuration of the hub's data set")
    parser.add_argument("--hub-column", default="text", help="its column of text")
    parser.add_argument("--out", required=True, help="run folder; an existing run is resumed")
    parser.add_argument("--init", help="local encoder or checkpoint folder to start from")
    parser.add_argument("--tokenizer", help="tokenizer folder (default: that of --init)")
    parser.add_argument("--sources", help="JSON of weights and order by file name")
    parser.add_argument("--exclude", nargs="*", default=[], help="files of sentences to drop")
    parser.add_argument("--cache", help="folder for tokenised text (default: OUT/text)")
    parser.add_argument(
        "--closed-form-head",
        type=int,
        default=0,
        metavar="BATCHES",
        help="set the first MLM head by regression on so many batches",
    )
    parser.add_argument("--held-out-rows", type=int, default=64, help="rows per held-out source")
    parser.add_argument("--save-every", type=int, default=200)
    parser.add_argument("--evaluate-every", type=int, default=200)
    parser.add_argument("--cpu", action="store_true", help="do not use CUDA")
    for field in fields(PretrainConfig):
        parser.add_argument(
            "--" + field.name.replace("_", "-"), type=type(field.default), default=field.default
        )
    args = parser.parse_args(argv)
    config = PretrainConfig(**{f.name: getattr(args, f.name) for f in fields(PretrainConfig)})
    if args.init is None:
        parser.error("--init is required: a folder with an encoder to start from")
    tokenizer = AutoTokenizer.from_pretrained(args.tokenizer or args.init)
    excluded = frozenset(
        text.normalise(line) for path in args.exclude for line in text.read_lines(Path(path))
    )
    folder = args.text
    if looks_like_hub(folder):
        folder = download_text(
            folder, Path(args.out) / "hub", config=args.hub_config, column=args.hub_column
        )
    train, held = text.load_corpus(
        folder,
        tokenizer,
        specs=text.load_specs(args.sources),
        exclude=excluded,
        cache=args.cache or Path(args.out) / "text",
    )
    out = Path(args.out)
    model = initial_model(args.init, None, config.seed)
    if args.closed_form_head and not checkpoints.list_steps(out):
        examples = text.epoch_examples(train, config.max_length - 3, config.seed + 1, 0)
        plan = text.plan_batches(examples, config.batch_tokens, config.seed + 1, 0)
        rng = np.random.default_rng([config.seed, 13])
        batches = [
            masked_batch(
                text.build_batch(train, examples, rows, tokenizer, rng),
                config.masking,
                tokenizer,
                rng,
            )
            for rows in plan[: args.closed_form_head]
        ]
        loss = closed_form_head(model, batches, text.piece_counts(train, len(tokenizer)))
        tqdm.write(f"closed-form head: loss {loss:.3f}")
    write_whole(
        out / "sources.json",
        json.dumps({"train": text.describe(train), "held_out": text.describe(held)}, indent=1),
    )
    pretrain(
        model,
        tokenizer,
        train,
        held,
        out,
        config,
        save_every=args.save_every,
        evaluate_every=args.evaluate_every,
        held_out_rows=args.held_out_rows,
        cpu=args.cpu,
    )


if __name__ == "__main__":
    try:
        main()
    except (ValueError, NotWrittenError) as error:
        sys.exit(f"error: {error}")
