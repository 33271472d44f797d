"""Vectors for words that the vocabulary cuts up: from their contexts, or from a graph of facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..cloze import Query, read_queries
from ..encoder import Encoder, evaluating
from ..knowledge import known_facts
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli import facts, treebank
from ..words import WordList, align_all
from .hidden import TrainingDataError
from .ridge import ridge_guesses

#: rare nouns by the kind that the grammar gives to frequent ones; most have several pieces
RARE = {
    "animal": "ocelot marmoset wombat gazelle ferret mongoose armadillo anteater meerkat lynx "
              "chinchilla alpaca ibex jackal hyena tapir dormouse stoat weasel gibbon",
    "person": "seamstress chandler cobbler milliner glassblower bookbinder beekeeper locksmith "
              "stonemason coppersmith typesetter gravedigger lamplighter basketmaker harpist "
              "cellist oboist juggler puppeteer soothsayer",
    "object": "corkscrew spatula thimble tweezers protractor trowel ladle colander stapler "
              "screwdriver hacksaw paperclip hairpin toothpick clothespin bottleneck doorknob "
              "flowerpot eggcup saltshaker",
    "food": "gnocchi marzipan croissant tiramisu ravioli hummus guacamole omelette meringue "
            "pretzel crumpet nougat couscous risotto baguette gazpacho strudel bagel falafel "
            "quiche",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class RareWords:
    """Kinds of rare words told from two vectors.

    Attributes:
        difference: accuracy with the vector made from contexts minus with the mean of the pieces.
        contexts, pieces: the two accuracies; majority: of one answer for all.
        words: the rare words of several pieces that were asked about.
        by_contexts: accuracy with 1, 2, 4, ... contexts.
    """

    difference: Estimate
    contexts: float
    pieces: float
    majority: float
    words: tuple[str, ...]
    by_contexts: dict[int, float]


def rare_words(encoder: Encoder, *, n_contexts: int = 8, seed: int = 0) -> RareWords:
    """A vector from contexts, in the space of input vectors (after Schick and Schuetze 2020).

    A context is a sentence of the grammar in which a noun of the same kind is hidden; the vector
    is the mean of the input vectors, weighed by what the model expects in the gap. A classifier of
    kinds is trained on input vectors of the grammar's frequent nouns.

    Raises:
        MissingHeadError: no trained MLM head.
        TrainingDataError: no rare word has several pieces in this vocabulary.
    """
    table = encoder.embeddings.token.weight.detach()
    bank = list(treebank(900, seed=34, max_words=12))
    places: dict[str, list[tuple[int, int]]] = {kind: [] for kind in RARE}
    known: dict[str, str] = {}
    for number, sentence in enumerate(bank):
        for word, kind in enumerate(sentence.gold.kinds):
            if kind in places and sentence.upos[word] == "NOUN":
                places[kind].append((number, word))
                if len(_ids(encoder, sentence.words[word])) == 1:
                    known[sentence.words[word].lower()] = kind
    frequent = np.array([table[_ids(encoder, word)[0]].cpu().numpy() for word in known])
    kinds = list(known.values())
    asked = [(word, kind) for kind, words in RARE.items() for word in words.split()
             if len(_ids(encoder, word)) > 1 and word not in known]  # fmt: skip
    if not asked:
        raise TrainingDataError("no rare word has several pieces in this vocabulary")
    rng = np.random.default_rng(seed)
    rows = align_all(encoder, [WordList(s.words, s.text) for s in bank])
    queries = []
    for number, (_, kind) in enumerate(asked):
        for i in rng.choice(len(places[kind]), n_contexts, replace=False):
            sentence, word = places[kind][i]
            start, stop = rows[sentence].spans[word]
            queries.append(Query(rows[sentence], tuple(range(start, stop)), start, number))
    expected = np.array(list(read_queries(
        encoder, queries, lambda logits, _: list((logits.softmax(-1) @ table).cpu().numpy())
    ))).reshape(len(asked), n_contexts, -1)  # fmt: skip
    pieces = np.array([table[_ids(encoder, word)].mean(0).cpu().numpy() for word, _ in asked])
    truth = np.array([kind for _, kind in asked])
    centre = table.mean(0).cpu().numpy()

    def right(x: np.ndarray) -> np.ndarray:
        unit = [v / np.linalg.norm(v, axis=1, keepdims=True)
                for v in (frequent - centre, x - centre)]  # fmt: skip
        return (ridge_guesses(unit[0], kinds, unit[1], penalty=0.1) == truth).astype(float)

    by_contexts, k = {}, 1
    while k <= n_contexts:
        by_contexts[k] = float(right(expected[:, :k].mean(1)).mean())
        k *= 2
    one, other = right(expected.mean(1)), right(pieces)
    return RareWords(
        _paired(one - other, encoder.name, seed), float(one.mean()), float(other.mean()),
        float(max((truth == kind).mean() for kind in RARE)), tuple(w for w, _ in asked),
        by_contexts,
    )  # fmt: skip


def _ids(encoder: Encoder, word: str) -> list[int]:
    return encoder.tokenizer(f" {word.lower()}", add_special_tokens=False)["input_ids"]


def _paired(gap: np.ndarray, model: str, seed: int) -> Estimate:
    value = float(gap.mean())
    return Estimate(
        value=value, unit="share difference", n=len(gap), model=model, seed=seed,
        interval=percentile_interval(resampled_means(gap, np.ones(len(gap)), seed=seed), value),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class MappedNames:
    """Facts about names of several pieces, asked in two ways.

    Attributes:
        difference: P@1 with the mapped vector in place of the name minus with its pieces.
        mapped, pieces: the two P@1; swapped: with the vector of another name (control).
        names: those asked about; n_fit: names of one piece that the map was fitted on.
    """

    difference: Estimate
    mapped: float
    pieces: float
    swapped: float
    names: tuple[str, ...]
    n_fit: int


def mapped_names(
    encoder: Encoder, relation: str, others: Sequence[str], *, rank: int = 24, seed: int = 0
) -> MappedNames:
    """Map vectors of a graph into the input space (E-BERT; Poerner et al. 2020).

    A subject's graph vector is the truncated decomposition of its row in a table of all its facts
    of the ``others`` relations; the one asked about is left out. A linear map from there to
    the input vectors is fitted on subjects whose name is one piece.

    Raises:
        MissingHeadError: no trained MLM head.
        TrainingDataError: fewer than ten names of one piece, or no name of several.
    """
    entries = [(f.subject, f"{r} {o}") for r in others for f in facts(r) for o in f.objects]
    subjects = sorted({subject for subject, _ in entries})
    columns = {c: i for i, c in enumerate(sorted({column for _, column in entries}))}
    counts = np.zeros((len(subjects), len(columns)))
    number = {subject: i for i, subject in enumerate(subjects)}
    for subject, column in entries:
        counts[number[subject], columns[column]] = 1.0
    counts /= np.sqrt(counts.sum(0, keepdims=True))
    left, sizes, _ = np.linalg.svd(counts, full_matrices=False)
    graph = left[:, :rank] * sizes[:rank]
    graph = np.concatenate([graph, np.ones((len(graph), 1))], axis=1)
    table = encoder.embeddings.token.weight.detach().cpu().numpy()
    single = [s for s in subjects if len(_ids(encoder, s)) == 1]
    asked = [f for f in known_facts(encoder, [relation])
             if f.subject in number and f.subject in f.queries[0]
             and len(_ids(encoder, f.subject)) > 1]  # fmt: skip
    if len(single) < 10 or not asked:
        raise TrainingDataError(f"{len(single)} names of one piece, {len(asked)} of several")
    x = graph[[number[s] for s in single]]
    y = table[[_ids(encoder, s)[0] for s in single]]
    weights = np.linalg.solve(x.T @ x + 0.1 * np.eye(x.shape[1]), x.T @ y)
    vectors = graph[[number[f.subject] for f in asked]] @ weights
    # The control: every name with the vector of the next one.
    given = {"pieces": None, "mapped": vectors, "swapped": np.roll(vectors, 1, axis=0)}
    hits = {name: _hits(encoder, asked, own) for name, own in given.items()}
    return MappedNames(
        _paired(hits["mapped"] - hits["pieces"], encoder.name, seed),
        *(float(hits[name].mean()) for name in ("mapped", "pieces", "swapped")),
        tuple(f.subject for f in asked), len(single),
    )  # fmt: skip


def _hits(encoder: Encoder, asked, vectors: np.ndarray | None) -> np.ndarray:
    """[N] 1 where the likeliest piece is a right answer; ``vectors`` [N, D] stand for the names."""
    tokenizer = encoder.tokenizer
    hits = []
    for i, fact in enumerate(asked):
        text = fact.queries[0].replace("[MASK]", tokenizer.mask_token)
        if vectors is not None:
            text = text.replace(fact.subject, tokenizer.unk_token, 1)
        inputs = tokenizer(text, return_tensors="pt").to(encoder.device)
        ids = inputs.pop("input_ids")
        with evaluating(encoder), torch.no_grad():
            embedded = encoder.embeddings.token(ids)
            if vectors is not None:
                place = int((ids[0] == tokenizer.unk_token_id).nonzero()[0])
                embedded[0, place] = torch.from_numpy(vectors[i]).to(embedded)
            hidden = encoder.base(inputs_embeds=embedded, **inputs).last_hidden_state
            gap = int((ids[0] == tokenizer.mask_token_id).nonzero()[0])
            best = int(encoder.mlm_logits(hidden[:, gap]).argmax())
        right = {_ids(encoder, answer)[0] for answer in fact.objects}
        hits.append(float(best in right))
    return np.array(hits)
