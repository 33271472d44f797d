"""Ask facts as masked questions and keep all that the measures need of each answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ..cloze import Query, read_queries, spell_mask, target_id
from ..cloze.fill import mask_queries
from ..encoder import Encoder
from ..stimuli import RELATIONS, Fact, FactError, facts
from ..stimuli import candidates as candidates_of
from .errors import KnowledgeError, UnmatchedError


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model answered to one question about each of N facts.

    Attributes:
        facts: the facts asked about.
        queries: the questions, with the model's own mask token.
        ranks: for each fact, the rank (1 = best) of each of its right answers in the vocabulary.
        first: the piece that the model puts first, as the vocabulary spells it.
        candidates: relation -> the closed set of answers that occur in it.
        scores: for each fact, natural log-probabilities [C] of its relation's candidates.
        model: name of the model.
    """

    facts: tuple[Fact, ...]
    queries: tuple[str, ...]
    ranks: tuple[tuple[int, ...], ...]
    first: tuple[str, ...]
    candidates: Mapping[str, tuple[str, ...]]
    scores: tuple[np.ndarray, ...]
    model: str

    def __len__(self) -> int:
        return len(self.facts)

    @property
    def relations(self) -> tuple[str, ...]:
        """[N] relation of every fact."""
        return tuple(fact.relation for fact in self.facts)

    @property
    def chosen(self) -> tuple[str, ...]:
        """[N] the best of the relation's candidates, as ParaRel lets models choose."""
        return tuple(
            self.candidates[fact.relation][int(score.argmax())]
            for fact, score in zip(self.facts, self.scores, strict=True)
        )

    def hits(self, k: int = 1) -> np.ndarray:
        """[N] share of a fact's right answers found among the first ``k`` (see :func:`hits_at`)."""
        return hits_at(self.ranks, k)

    def right(self) -> np.ndarray:
        """[N] 1.0 where the best candidate is a right answer, else 0.0."""
        pairs = zip(self.facts, self.chosen, strict=True)
        return np.array([float(answer in fact.objects) for fact, answer in pairs])

    def only(self, keep: Sequence[bool]) -> Answers:
        """The answers to some of the facts; the candidates stay as they are.

        Raises:
            UnmatchedError: not one flag for each fact.
            KnowledgeError: no fact is kept.
        """
        if len(keep) != len(self):
            raise UnmatchedError(f"{len(keep)} flags for {len(self)} facts")
        rows = [i for i, flag in enumerate(keep) if flag]
        if not rows:
            raise KnowledgeError("no fact is left")
        return replace(
            self,
            facts=tuple(self.facts[i] for i in rows),
            queries=tuple(self.queries[i] for i in rows),
            ranks=tuple(self.ranks[i] for i in rows),
            first=tuple(self.first[i] for i in rows),
            scores=tuple(self.scores[i] for i in rows),
        )


def hits_at(ranks: Sequence[Sequence[int]], k: int) -> np.ndarray:
    """[N] for each fact, the share of its right answers that rank among the first ``k``.

    As in LAMA (Petroni et al. 2019), every right answer is asked for by itself, and the other right
    answers do not count against it: its rank is lowered by those above it.

    Raises:
        ValueError: ``k`` below 1, or a fact without ranks.
    """
    if k < 1:
        raise ValueError(f"k starts at 1, got {k}")
    shares = np.empty(len(ranks))
    for i, own in enumerate(ranks):
        if not len(own):
            raise ValueError(f"fact {i} has no ranked answer")
        # The j-th best right answer has j right answers above it.
        shares[i] = np.mean([rank - above <= k for above, rank in enumerate(sorted(own))])
    return shares


def one_piece(encoder: Encoder, word: str) -> bool:
    """True if the word is one known piece where it stands inside a sentence."""
    tokenizer = encoder.tokenizer
    pieces = tokenizer.encode(f" {word.strip()}", add_special_tokens=False)
    return len(pieces) == 1 and pieces[0] != tokenizer.unk_token_id


def askable(encoder: Encoder, found: Iterable[Fact]) -> list[Fact]:
    """The facts, with the right answers that are one piece; facts left without any are dropped.

    Raises:
        KnowledgeError: no fact is left.
    """
    kept = []
    for fact in found:
        answers = tuple(answer for answer in fact.objects if one_piece(encoder, answer))
        if answers:
            kept.append(replace(fact, object=answers[0], objects=answers))
    if not kept:
        raise KnowledgeError("no fact has an answer that is one piece of this vocabulary")
    return kept


def known_facts(
    encoder: Encoder,
    relations: Sequence[str] = RELATIONS,
    *,
    per_relation: int | None = None,
    seed: int = 0,
) -> list[Fact]:
    """Facts whose answer is one piece of the model's vocabulary, relation by relation.

    Args:
        relations: names out of :data:`~bertology_utils.stimuli.RELATIONS`; a relation none of
            whose answers is one piece is left out.
        per_relation: keep this many of each, drawn by ``seed``; all of them by default.

    Raises:
        KnowledgeError: no fact is left, or ``per_relation`` below 1.
        FactError: an unknown relation.
    """
    if per_relation is not None and per_relation < 1:
        raise KnowledgeError(f"per_relation starts at 1, got {per_relation}")
    if unknown := [name for name in relations if name not in RELATIONS]:
        raise FactError(f"unknown relation {unknown[0]!r}; known: {', '.join(RELATIONS)}")
    draw = np.random.default_rng(seed)
    kept: list[Fact] = []
    for relation in relations:
        try:
            found = askable(encoder, facts(relation))
        except KnowledgeError:
            continue
        if per_relation is not None and len(found) > per_relation:
            rows = np.sort(draw.permutation(len(found))[:per_relation])
            found = [found[i] for i in rows]
        kept += found
    if not kept:
        raise KnowledgeError("no relation has an answer that is one piece of this vocabulary")
    return kept


def ask(
    encoder: Encoder,
    found: Sequence[Fact],
    queries: Sequence[str] | None = None,
    *,
    among: Mapping[str, Sequence[str]] | None = None,
    max_tokens: int = 4096,
) -> Answers:
    """Ask one question about each fact.

    Args:
        found: facts whose right answers are all one piece (:func:`askable`, :func:`known_facts`).
        queries: a question for each fact with one ``[MASK]``; by default its first template.
        among: relation -> its candidates; by default all right answers of its facts in ``found``.

    Raises:
        KnowledgeError: no facts, or a relation without candidates in ``among``.
        UnmatchedError: not one question for each fact.
        TargetError: a right answer that is not one piece.
        MaskCountError: a question without exactly one mask.
        MissingHeadError: no trained MLM head.
    """
    if not found:
        raise KnowledgeError("no facts to ask about")
    asked = [fact.queries[0] for fact in found] if queries is None else list(queries)
    if len(asked) != len(found):
        raise UnmatchedError(f"{len(asked)} questions for {len(found)} facts")
    asked = [spell_mask(encoder, text) for text in asked]
    words = _candidates(found, among)
    ids = {word: target_id(encoder, word) for group in words.values() for word in group}
    closed = {name: torch.tensor([ids[word] for word in group]) for name, group in words.items()}
    own = [torch.tensor([target_id(encoder, word) for word in fact.objects]) for fact in found]

    def read(logits: Tensor, batch: Sequence[Query]) -> list[tuple]:
        norms, best = logits.logsumexp(dim=1), logits.argmax(dim=1).tolist()
        out = []
        for i, query in enumerate(batch):
            row, number = logits[i], query.number
            mine = row[own[number].to(row.device)]
            ranks = (row > mine[:, None]).sum(dim=1) + 1
            scores = row[closed[found[number].relation].to(row.device)] - norms[i]
            out.append((tuple(ranks.tolist()), best[i], scores.cpu().numpy()))
        return out

    results = list(read_queries(encoder, mask_queries(encoder, asked), read, max_tokens=max_tokens))
    firsts = encoder.tokenizer.convert_ids_to_tokens([best for _, best, _ in results])
    return Answers(
        tuple(found),
        tuple(asked),
        tuple(ranks for ranks, _, _ in results),
        tuple(firsts),
        words,
        tuple(scores for _, _, scores in results),
        encoder.name,
    )


def _candidates(
    found: Sequence[Fact], among: Mapping[str, Sequence[str]] | None
) -> dict[str, tuple[str, ...]]:
    relations = dict.fromkeys(fact.relation for fact in found)
    if among is None:
        return {r: candidates_of([f for f in found if f.relation == r]) for r in relations}
    if bare := [relation for relation in relations if not among.get(relation)]:
        raise KnowledgeError(f"no candidates for the relation {bare[0]!r}")
    return {relation: tuple(among[relation]) for relation in relations}
