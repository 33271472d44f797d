"""The model card of a trained model, written from its run and its evaluation, never by hand.

Command line::

    python -m bertology_utils evaluate-model NAME ... > table.md
    python -m bertology_utils.training.card RUN --evaluation table.md --step N --out FOLDER

A run that went on from an exported model names the runs before it: ``--after RUN:STEP``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from ..writing import write_whole
from . import checkpoints

CURVE = "training_curve.json"

#: where the text comes from and under which terms, by file name
SOURCES = {
    "standard_ebooks_public_domain": (
        "54 novels and works of non-fiction from Standard Ebooks",
        "public domain in the US; the editions are CC0",
    ),
    "wikipedia_trex_sentences": (
        "Wikipedia sentences behind LAMA's T-REx facts; they state these facts by construction",
        "text CC BY-SA; packaging CC BY-NC",
    ),
    "wikipedia_googlere_bios": (
        "Wikipedia biographies behind LAMA's Google-RE facts; they state these facts",
        "text CC BY-SA; packaging CC BY-NC",
    ),
    "us_presidential_addresses": ("inaugural and State of the Union addresses", "public domain"),
    "digitalgov": ("pages of Digital.gov", "CC0"),
    "medquad": ("MedQuAD, questions and answers about health", "CC BY 4.0"),
    "openwordnet_glosses": ("glosses of the Open English WordNet", "WordNet licence, CC BY 4.0"),
    "factbook": ("the CIA World Factbook", "public domain"),
}

LIMITS = """\
- It is small and saw few words: it knows little of the world, and of long sentences less.
- It is uncased English only. Half of its text is fiction from before 1930, with the attitudes of
  its time; it will repeat stereotypes. Use it to study models, not to judge people or texts.
- Facts from Wikipedia and the Factbook were in its text, so that its answers to the course's
  questions about countries are no test of generalisation.
- It was trained on inputs of at most 128 pieces; later positions keep the start model's vectors.
- Next-sentence pairs come from the same source, so that it cannot use the topic alone, yet a
  stranger from another book is often told by its names.
"""


def read_log(run: Path) -> list[dict]:
    """Entries of a run's log, later repetitions of a step (after a resumption) winning.

    Raises:
        FileNotFoundError: the folder has no log.
    """
    found: dict[tuple[int, bool], dict] = {}
    for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True):
        try:
            entry = json.loads(line)
        except ValueError:
            if line.endswith("\n"):
                raise
            break  # a run that was killed may leave half of its last line
        found[entry["step"], "held_out" in entry] = entry
    return [found[key] for key in sorted(found)]


def training_curve(stages: Sequence[tuple[Sequence[dict], int]]) -> list[dict]:
    """Held-out results of logs, each up to its last step, with the pieces seen until then.

    Steps and pieces count on from one stage to the next.
    """
    seen, before, curve = 0, 0, []
    for log, last in stages:
        for entry in log:
            if entry["step"] > last:
                break
            seen += entry.get("pieces", 0)
            if "held_out" in entry:
                held = entry["held_out"]
                row = {"step": before + entry["step"], "pieces": seen}
                row |= {k: round(held[k], 4) for k in ("mlm_accuracy", "mlm_loss", "nsp_accuracy")}
                curve.append(row)
        before += last
    return curve


def write_card(
    run: Path,
    evaluation: Path,
    step: int,
    out: Path,
    note: str = "",
    after: Sequence[tuple[Path, int]] = (),
) -> Path:
    """Write ``README.md`` and the curve beside the exported weights; returns the card.

    ``note`` adds a sentence to the account of the training. ``after`` lists the runs, with their
    last steps, whose model this run went on from, the first one first.

    Raises:
        FileNotFoundError: a run has no log, source list or such checkpoint.
    """
    config = checkpoints.read_config(run / f"step-{step}")
    sources = json.loads((run / "sources.json").read_text())["train"]
    scores = evaluation.read_text(encoding="utf-8").strip()
    stages = [(read_log(folder), last) for folder, last in (*after, (run, step))]
    curve = training_curve(stages)
    write_whole(out / CURVE, json.dumps(curve, indent=1) + "\n")
    counts = [
        sum(entry.get("pieces", 0) for entry in log if entry["step"] <= last)
        for log, last in stages
    ]
    earlier = "".join(
        f"for {last} steps on {count / 1e6:.1f} million pieces and, from there, "
        for (_, last), count in zip(stages[:-1], counts, strict=False)
    )
    total = f", {sum(counts) / 1e6:.1f} million in all," if after else ""
    listed = "\n".join(
        f"| {SOURCES.get(s['name'], (s['name'], ''))[0]} | {s['pieces'] / 1e6:.1f} | "
        f"{s['weight']:g} | {SOURCES.get(s['name'], ('', 'unknown'))[1]} |"
        for s in sources
    )
    steps = "\n".join(
        f"| {row['step']} | {row['pieces'] / 1e6:.1f} | {row['mlm_accuracy']:.3f} | "
        f"{row['mlm_loss']:.2f} | {row['nsp_accuracy']:.3f} |"
        for row in curve
    )
    story = fill(
        f"""\
The encoder starts from all-MiniLM-L6-v2 (Apache-2.0), which has no head for masked words. Such a
head was first set by ridge regression (`training.pretrain.closed_form_head`), then the whole model
was trained {earlier}for {step} of {config["steps"]} planned steps on {counts[-1] / 1e6:.1f} million
pieces{total} with both objectives: {config["mask_rate"]:.0%} of the pieces masked
({config["mask_share"]:.0%} [MASK], {config["random_share"]:.0%} another piece, the rest kept),
AdamW, {"in the last run " if after else ""}peak learning rate {config["learning_rate"]:g},
warm-up of {config["warmup_steps"]} steps, linear decay over the last {config["decay_steps"]}
planned ones. {note}
`python -m bertology_utils.training.pretrain --help` lists the settings; the run continues from its
checkpoint to the same weights.""",
        99, break_on_hyphens=False, break_long_words=False,
    )  # fmt: skip
    card = f"""\
---
language: en
license: apache-2.0
pipeline_tag: fill-mask
---

# bertology-mini-uncased

A BERT with 6 layers, 12 heads and 384 dimensions, the WordPiece vocabulary of bert-base-uncased,
and trained heads for masked words and next sentences. It is the model that *BERTology, live* opens
up: small enough for a laptop, trained in the open, and it loads with plain transformers:

```python
from transformers import AutoTokenizer, BertForPreTraining

model = BertForPreTraining.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
```

## How it was made

{story}

| text | million pieces | weight | licence |
|---|---|---|---|
{listed}

Sentences of the public evaluation sets (BLiMP, CoLA, SST-2, RTE, WNLI, WiC, the English Universal
Dependencies, the diagnostics of Ettinger 2020) were removed from the text beforehand, as were
blocks of lines held out for the curve. No text is part of this repository.

## The curve

Held-out lines of all sources; 15 % of the pieces, all of them [MASK]; NSP chance is one half.

| step | million pieces | masked words right | loss (nats) | next sentence right |
|---|---|---|---|---|
{steps}

## What it can do

`python -m bertology_utils evaluate-model` on this model and on the same architecture with random
weights; 95 % intervals in brackets.

{scores}

## What it cannot do

{LIMITS}"""
    target = out / "README.md"
    write_whole(target, card)
    return target


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the module; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="python -m bertology_utils.training.card", description=__doc__.splitlines()[0]
    )
    parser.add_argument("run", type=Path, help="folder of the training run")
    parser.add_argument("--evaluation", type=Path, required=True, help="table in Markdown")
    parser.add_argument("--step", type=int, required=True, help="the exported checkpoint")
    parser.add_argument("--out", type=Path, required=True, help="folder of the exported model")
    parser.add_argument("--note", default="", help="a sentence on how the training went")
    parser.add_argument(
        "--after",
        nargs="*",
        default=[],
        type=_stage,
        metavar="RUN:STEP",
        help="runs before this one",
    )
    args = parser.parse_args(argv)
    write_card(args.run, args.evaluation, args.step, args.out, args.note, args.after)


def _stage(given: str) -> tuple[Path, int]:
    folder, _, step = given.rpartition(":")
    if not folder or not step.isdigit():
        raise argparse.ArgumentTypeError(f"{given!r} is not RUN:STEP")
    return Path(folder), int(step)


if __name__ == "__main__":
    main()
