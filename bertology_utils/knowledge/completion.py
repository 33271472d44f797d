"""True commonsense triples against corrupted ones: by the sentence, or by supervised completion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..cloze import Query, preference, read_queries, spell_mask, target_id
from ..encoder import Encoder
from ..resampling import Estimate
from ..stimuli.commonsense import Triple
from ..words import align_all
from .answers import one_piece
from .errors import KnowledgeError


@dataclass(frozen=True, eq=False)
class Completion:
    """How often a method prefers the true tail of a triple to a corrupted one.

    Attributes:
        accuracy: share of triples whose true tail scores higher; chance is one half.
        margins: [N] score of the true minus that of the corrupted tail.
        by_relation: relation -> accuracy.
    """

    accuracy: Estimate
    margins: np.ndarray
    by_relation: dict[str, Estimate]


def usable_triples(encoder: Encoder, found: Sequence[Triple]) -> list[Triple]:
    """The triples whose true and corrupted tails are one piece each.

    Raises:
        KnowledgeError: no triple is left.
    """
    kept = [t for t in found if one_piece(encoder, t.tail) and one_piece(encoder, t.corrupted)]
    if not kept:
        raise KnowledgeError("no triple has tails that are one piece of this vocabulary")
    return kept


def pmi_scores(encoder: Encoder, found: Sequence[Triple]) -> np.ndarray:
    """[N, 2] pointwise mutual information of head and tail, true tail and corrupted one, in nats.

    log p(tail | sentence with the head) - log p(tail | sentence with the head masked), after
    Davison et al. (2019): the second term takes away how common the tail is. Only the tail is
    predicted, since heads may have several pieces.

    Raises:
        KnowledgeError: no triples.
        TargetError: a tail that is not one piece.
    """
    if not found:
        raise KnowledgeError("no triples to score")
    texts, places = [], []
    for triple in found:
        texts += [triple.query, triple.headless]
        places += [0, -1 if triple.tail_comes_last else 0]
    rows = align_all(encoder, [spell_mask(encoder, text) for text in texts])
    mask = encoder.tokenizer.mask_token_id
    queries = []
    for number, (row, place) in enumerate(zip(rows, places, strict=True)):
        masks = [i for i, piece in enumerate(row.input_ids) if piece == mask]
        queries.append(Query(row, (), masks[place], number))
    ids = torch.tensor(
        [[target_id(encoder, t.tail), target_id(encoder, t.corrupted)] for t in found]
    )

    def read(logits: Tensor, batch: Sequence[Query]) -> list[list[float]]:
        chosen = ids[[query.number // 2 for query in batch]].to(logits.device)
        return (logits.gather(1, chosen) - logits.logsumexp(dim=1, keepdim=True)).tolist()

    scores = np.array(list(read_queries(encoder, queries, read)))
    return scores[0::2] - scores[1::2]


def completion(found: Sequence[Triple], scores: np.ndarray, model: str) -> Completion:
    """Judge scores [N, 2] of true and corrupted tails.

    Raises:
        KnowledgeError: scores of another shape.
    """
    if np.shape(scores) != (len(found), 2) or not len(found):
        raise KnowledgeError(f"scores of shape {np.shape(scores)} for {len(found)} triples")
    margins = np.asarray(scores)[:, 0] - np.asarray(scores)[:, 1]
    names = [triple.relation for triple in found]
    by_relation = {
        relation: _share(margins[[name == relation for name in names]], model)
        for relation in dict.fromkeys(names)
    }
    return Completion(_share(margins, model), margins, by_relation)


def supervised_scores(
    encoder: Encoder,
    found: Sequence[Triple],
    *,
    folds: int = 5,
    rank: int = 32,
    steps: int = 120,
    seed: int = 0,
) -> np.ndarray:
    """[N, 2] scores of supervised completion, each triple by a model that never saw its head.

    The score is a sum of products of low-rank projections of head, relation and tail, trained by
    logistic loss. Words enter as the mean of their rows in the encoder's input embedding table: the
    method has a vocabulary but reads no sentence.

    The wrong tails to learn from are drawn anew at every step from the relation's training tails.
    (The given corrupted tails would not do: over all parts, each tail is true as often as it is
    corrupted, so whatever is more often true in training is less often true in the test.)

    Args:
        folds: parts the heads are cut into.
        rank: width of the projections.
        steps: optimiser steps, over all training triples each.
        seed: of the parts and the weights.

    Raises:
        KnowledgeError: fewer heads than folds, or fewer than two folds.
    """
    heads = sorted({triple.head for triple in found})
    if folds < 2 or len(heads) < folds:
        raise KnowledgeError(f"{len(heads)} heads cannot fill {folds} parts of at least two")
    order = np.random.default_rng(seed).permutation(len(heads)) % folds
    part = np.array([order[heads.index(triple.head)] for triple in found])
    relations = {name: i for i, name in enumerate(dict.fromkeys(t.relation for t in found))}
    table = encoder.embeddings.token.weight.detach().float().cpu()

    def vectors(texts: Sequence[str]) -> Tensor:
        encoded = [encoder.tokenizer.encode(f" {text}", add_special_tokens=False) for text in texts]
        return torch.stack([table[ids].mean(0) for ids in encoded])

    head, tail, wrong = (
        vectors([getattr(t, name) for t in found]) for name in ("head", "tail", "corrupted")
    )
    relation = torch.tensor([relations[t.relation] for t in found])
    out = np.empty((len(found), 2))
    for number in range(folds):
        test = part == number
        known = [t for t, held in zip(found, test, strict=True) if not held]
        rows = torch.as_tensor(~test)
        model = _fitted(
            known, head[rows], relation[rows], tail[rows], len(relations), rank, steps, seed
        )
        rows = torch.as_tensor(test)
        with torch.no_grad():
            pair = [model(head[rows], relation[rows], t[rows]) for t in (tail, wrong)]
        out[test] = torch.stack(pair, 1).numpy()
    return out


class _Factorised(nn.Module):
    """head [N, D], relation [N], tail [N, D] -> scores [N]"""

    def __init__(self, mean: Tensor, scale: Tensor, relations: int, rank: int):
        super().__init__()
        width = len(mean)
        self.mean, self.scale = mean, scale
        self.head, self.tail = nn.Linear(width, rank), nn.Linear(width, rank)
        self.with_head, self.with_tail = (nn.Embedding(relations, rank) for _ in range(2))

    def forward(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        h = self.head((head - self.mean) / self.scale)
        t = self.tail((tail - self.mean) / self.scale)
        return (h * t + h * self.with_head(relation) + t * self.with_tail(relation)).sum(-1)


def _fitted(
    known: Sequence[Triple],
    head: Tensor,
    relation: Tensor,
    tail: Tensor,
    relations: int,
    rank: int,
    steps: int,
    seed: int,
) -> nn.Module:
    both = torch.cat([head, tail])
    rng = np.random.default_rng(seed)
    # The global random state is left as it was.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = _Factorised(both.mean(0), both.std(0) + 1e-6, relations, rank)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
    loss = nn.functional.binary_cross_entropy_with_logits
    with torch.enable_grad():
        for _ in range(steps):
            wrong, usable = _wrong_tails(known, rng)
            optimiser.zero_grad()
            true = model(head, relation, tail)
            false = model(head[usable], relation[usable], tail[wrong])
            (loss(true, torch.ones_like(true)) + loss(false, torch.zeros_like(false))).backward()
            optimiser.step()
    return model.eval()


def _wrong_tails(known: Sequence[Triple], rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Rows whose tails stand in for those of other rows, and the rows they stand in.

    Tails are exchanged inside each relation; a row that would get a tail of its own head sits out.
    """
    groups: dict[str, list[int]] = {}
    own: dict[tuple[str, str], set[str]] = {}
    for i, triple in enumerate(known):
        groups.setdefault(triple.relation, []).append(i)
        own.setdefault((triple.head, triple.relation), set()).add(triple.tail)
    wrong, usable = [], []
    for rows in groups.values():
        for i, j in zip(rows, rng.permutation(rows), strict=True):
            if known[j].tail not in own[known[i].head, known[i].relation]:
                usable.append(i)
                wrong.append(int(j))
    return torch.tensor(wrong, dtype=torch.long), torch.tensor(usable, dtype=torch.long)


def _share(margins: np.ndarray, model: str) -> Estimate:
    found = preference(margins.tolist(), model)
    return Estimate(
        value=found.accuracy, unit="share", n=found.n, model=model,
        baselines={"chance": found.chance}, interval=found.interval,
    )  # fmt: skip
