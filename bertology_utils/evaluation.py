"""One table for any model: how well does it model language, before any question of *how*?

Every row stands beside the same architecture with random weights. Cloze rows use this package's
own stimuli; held-out prediction needs text, and BLiMP its files (Warstadt et al. 2020,
arXiv 1912.00582).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import stimuli
from .cloze import (
    compare_at_mask,
    compare_sentences,
    judge_pairs,
    target_ranks,
    wilson_interval,
)
from .encoder import BertologyError, Encoder, evaluating
from .training import text as corpus
from .training.pretrain import evaluate, held_out_batches
from .words import TextPair, in_order, token_batches

#: name of the row, phenomenon, number of attractors where the phenomenon takes one
PAIR_TASKS = (
    ("agreement, simple", "agreement_simple", None),
    ("agreement, 1 attractor (PP)", "agreement_pp", None),
    ("agreement, 1 attractor", "agreement_attractors", 1),
    ("agreement, 2 attractors", "agreement_attractors", 2),
    ("agreement, 3 attractors", "agreement_attractors", 3),
    ("agreement, subject relative", "agreement_subject_rc", None),
    ("agreement, object relative", "agreement_object_rc", None),
    ("NPI presence", "npi_presence", None),
    ("NPI licensor", "npi_licensor", None),
    ("NPI scope", "npi_scope", None),
    ("role reversal", "role_reversal", None),
)
#: relations of facts in the table, a few of many
RELATIONS = ("capital", "capital_country", "language", "currency", "continent", "demonym")


@dataclass(frozen=True)
class Score:
    """One row: a share (or another unit) with its 95 % Wilson interval and chance level.

    ``interval`` and ``chance`` are None where they do not apply, as for a perplexity.
    """

    task: str
    value: float
    n: int
    interval: tuple[float, float] | None = None
    chance: float | None = None
    unit: str = "accuracy"


def _share(task: str, right: float, n: int, chance: float | None = None, unit="accuracy") -> Score:
    return Score(task, right / n, n, wilson_interval(right, n), chance, unit)


def pair_scores(encoder: Encoder, *, n: int = 200, seed: int = 0) -> list[Score]:
    """Our minimal pairs: agreement by distance and distractor, polarity items, roles."""
    scores = []
    for task, phenomenon, attractors in PAIR_TASKS:
        options = {} if attractors is None else {"attractors": attractors}
        found = judge_pairs(encoder, stimuli.minimal_pairs(phenomenon, n, seed, **options))
        scores.append(Score(task, found.accuracy, found.n, found.interval, found.chance))
    return scores


def fact_scores(encoder: Encoder, *, relations: Sequence[str] = RELATIONS) -> list[Score]:
    """P@1 and P@10 over the whole vocabulary, by relation (Petroni et al. 2019).

    A fact with several right answers counts its best one. Facts without an answer of one piece
    are left out; ``n`` says how many stay.
    """
    scores = []
    for relation in relations:
        known = _known_facts(encoder, relation)
        asked = [(i, answer) for i, fact in enumerate(known) for answer in fact.objects]
        ranks = target_ranks(
            encoder, [known[i].queries[0] for i, _ in asked], [answer for _, answer in asked]
        )
        best = [
            min(rank for (i, _), rank in zip(asked, ranks, strict=True) if i == number)
            for number in range(len(known))
        ]
        for k in (1, 10):
            hits = sum(rank <= k for rank in best)
            scores.append(_share(f"facts: {relation}", hits, len(best), None, f"P@{k}"))
    return scores


def negation_scores(encoder: Encoder) -> list[Score]:
    """Is the right word preferred, without "not" and with it (Kassner and Schuetze 2020)?

    Right and wrong answer of a fact compete at the mask; in the negated sentence the wrong
    answer makes it true.
    """
    frames, right, wrong = [], [], []
    for relation in RELATIONS:
        for fact, prime in stimuli.misprimes(_known_facts(encoder, relation)):
            frames.append((fact.queries[0], fact.negated_queries[0]))
            right.append(fact.object)
            wrong.append(prime)
    plain = compare_at_mask(encoder, [frame for frame, _ in frames], right, wrong)
    negated = compare_at_mask(encoder, [frame for _, frame in frames], wrong, right)
    return [
        Score(f"true completion, {name}", found.accuracy, found.n, found.interval, found.chance)
        for name, found in (("affirmative", plain), ("negated", negated))
    ]


def _known_facts(encoder: Encoder, relation: str) -> list[stimuli.Fact]:
    # Inside a sentence, byte-level vocabularies spell a word with the space before it.
    return stimuli.facts(relation, lambda word: encoder.tokenizer.tokenize(f" {word}"))


def passage_scores(encoder: Encoder, *, max_length: int = 128) -> list[Score]:
    """Masked-word accuracy, perplexity and next-sentence accuracy on our own short passages."""
    texts = [passage.text for passage in stimuli.passages()]
    spec = corpus.SourceSpec(ordered=False)
    source = corpus.tokenise("our passages", spec, texts, encoder.tokenizer)
    scores = _prediction_scores(encoder, [source], rows=len(texts), max_length=max_length)
    if encoder.has_nsp:
        pairs = stimuli.segment_pairs()
        inputs = [TextPair(pair.first, pair.second) for pair in pairs]
        with evaluating(encoder):
            follows = in_order(
                (batch, (encoder.nsp_logits(encoder.encode(batch)).argmax(-1) == 0).tolist())
                for batch in token_batches(encoder, inputs)
            )
        right = sum(said == pair.follows for said, pair in zip(follows, pairs, strict=True))
        scores.append(_share("next sentence: our passages", right, len(pairs), 0.5))
    return scores


def blimp_scores(encoder: Encoder, folder: str | Path, *, n: int = 100) -> list[Score]:
    """Whole-sentence PLL over the first ``n`` pairs of every BLiMP paradigm in a folder.

    The last row is the mean over paradigms; its interval treats them as equally sized.
    """
    files = sorted(Path(folder).glob("*.jsonl"))
    if not files:
        raise BertologyError(f"no BLiMP .jsonl file in {str(folder)!r}")
    scores = []
    for path in files:
        pairs = stimuli.load("blimp", path)[:n]
        found = compare_sentences(encoder, pairs)
        scores.append(
            Score(f"BLiMP {path.stem}", found.accuracy, found.n, found.interval, found.chance)
        )
    mean = sum(score.value for score in scores) / len(scores)
    total = sum(score.n for score in scores)
    scores.append(Score("BLiMP mean", mean, total, wilson_interval(mean * total, total), 0.5))
    return scores


def text_scores(
    encoder: Encoder,
    folder: str | Path,
    *,
    specs: dict[str, corpus.SourceSpec] | None = None,
    held_out_only: bool = True,
    rows: int = 128,
    max_length: int = 128,
) -> list[Score]:
    """Masked-word accuracy, perplexity and next-sentence accuracy on a folder of text.

    15 % of the pieces, all of them [MASK]. With ``held_out_only`` only the blocks of lines that
    pretraining on this folder keeps away are used.
    """
    train, held = corpus.load_corpus(folder, encoder.tokenizer, specs=specs)
    sources = held if held_out_only else train
    if not sources:
        raise BertologyError(f"{str(folder)!r} is too short to hold anything out")
    return _prediction_scores(encoder, sources, rows=rows, max_length=max_length)


def _prediction_scores(
    encoder: Encoder, sources: Sequence[corpus.Source], *, rows: int, max_length: int
) -> list[Score]:
    longest = min(max_length, encoder.max_length)
    fixed = held_out_batches(sources, encoder.tokenizer, longest, rows)

    def score(batch):
        hidden = encoder.encode(batch)
        gathered = hidden.flatten(0, 1)[batch.positions.to(hidden.device)]
        nsp = encoder.nsp_logits(hidden) if encoder.has_nsp else None
        return encoder.mlm_logits(gathered), nsp

    with evaluating(encoder):
        found = evaluate(score, fixed, encoder.device)
    counted = {name: sum(len(b.targets) for b in group) for name, group in fixed.items()}
    scores = [
        _share(f"masked words: {name}", value * counted[name], counted[name])
        for name, value in found.by_source.items()
    ]
    name = sources[0].name if len(sources) == 1 else "all text"
    if len(sources) > 1:
        scores.append(_share(f"masked words: {name}", found.mlm_accuracy * found.n, found.n))
    perplexity = math.exp(found.mlm_loss)
    scores.append(Score(f"masked words: {name}", perplexity, found.n, unit="perplexity"))
    if found.nsp_n:
        right = found.nsp_accuracy * found.nsp_n
        scores.append(_share(f"next sentence: {name}", right, found.nsp_n, 0.5))
    return scores


def evaluate_model(
    encoder: Encoder,
    *,
    text: str | Path | None = None,
    specs: dict[str, corpus.SourceSpec] | None = None,
    held_out_only: bool = True,
    blimp: str | Path | None = None,
    n: int = 200,
    seed: int = 0,
) -> list[Score]:
    """All rows for one model, see the functions above for each.

    Raises:
        MissingHeadError: no trained MLM head.
        CorpusError, BertologyError: text or BLiMP files that cannot be used.
    """
    scores = [
        *passage_scores(encoder),
        *pair_scores(encoder, n=n, seed=seed),
        *negation_scores(encoder),
        *fact_scores(encoder),
    ]
    if text is not None:
        scores += text_scores(encoder, text, specs=specs, held_out_only=held_out_only)
    if blimp is not None:
        scores += blimp_scores(encoder, blimp, n=min(n, 100))
    return scores


def comparison_table(columns: dict[str, Iterable[Score]]) -> str:
    """A Markdown table with a row a task and a column a model, intervals in brackets."""
    rows: dict[tuple[str, str], dict[str, Score]] = {}
    for model, scores in columns.items():
        for score in scores:
            rows.setdefault((score.task, score.unit), {})[model] = score
    lines = [
        f"| task | unit | n | chance | {' | '.join(columns)} |",
        "|---|---|---|---|" + "---|" * len(columns),
    ]
    for (task, unit), by_model in rows.items():
        any_score = next(iter(by_model.values()))
        chance = "–" if any_score.chance is None else f"{any_score.chance:.2f}"
        cells = [_cell(by_model[m]) if m in by_model else "–" for m in columns]
        lines.append(f"| {task} | {unit} | {any_score.n} | {chance} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(score: Score) -> str:
    if score.interval is None:
        return f"{score.value:.1f}"
    return f"{score.value:.3f} [{score.interval[0]:.3f}, {score.interval[1]:.3f}]"
