"""Answers from outside the weights: a retrieved sentence in front, and spans picked from a text."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..activations import collect
from ..encoder import Encoder
from ..knowledge import Answers, ask, known_facts, macro_mean
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli import Fact
from ..words import align_all

K1, B = 1.2, 0.75


class Retriever:
    """BM25 over sentences (Robertson and Zaragoza 2009), k1 = 1.2, b = 0.75."""

    def __init__(self, sentences: Sequence[str]) -> None:
        if not sentences:
            raise ValueError("nothing to search in")
        self.sentences = list(sentences)
        self.bags = [Counter(_terms(sentence)) for sentence in self.sentences]
        self.sizes = [sum(bag.values()) for bag in self.bags]
        self.mean = sum(self.sizes) / len(self.sizes)
        seen = Counter(term for bag in self.bags for term in bag)
        n = len(self.bags)
        self.idf = {t: math.log(1 + (n - k + 0.5) / (k + 0.5)) for t, k in seen.items()}

    def best(self, query: str) -> str:
        """The sentence that fits best; the first of several that fit equally."""
        terms = _terms(query)
        scores = [
            sum(self.idf[t] * bag[t] * (K1 + 1) / (bag[t] + K1 * (1 - B + B * size / self.mean))
                for t in terms if t in bag)
            for bag, size in zip(self.bags, self.sizes, strict=True)
        ]  # fmt: skip
        return self.sentences[int(np.argmax(scores))]


def _terms(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


@dataclass(frozen=True, eq=False)
class Retrieved:
    """Facts asked with and without a retrieved sentence in front.

    Attributes:
        difference: P@1 with minus without, mean over relations, facts resampled.
        without, with_text: the answers; texts: the retrieved sentence of every fact.
        found: share of the sentences that hold a right answer.
    """

    difference: Estimate
    without: Answers
    with_text: Answers
    texts: tuple[str, ...]
    found: float


def retrieved_answers(
    encoder: Encoder, relations: Sequence[str], *, per_relation: int = 40, seed: int = 0
) -> Retrieved:
    """Prepend the sentence that BM25 finds (a frozen cousin of Guu et al. 2020).

    The library holds every fact once, in another wording than the question.

    Raises:
        KnowledgeError, FactError: as for :func:`~bertology_utils.knowledge.known_facts`.
    """
    facts = known_facts(encoder, relations, per_relation=per_relation, seed=seed)
    library = Retriever([fact.statement(1) for fact in known_facts(encoder, relations)])
    texts = tuple(library.best(fact.queries[0].replace("[MASK]", "")) for fact in facts)
    plain = ask(encoder, facts)
    helped = ask(encoder, facts, [f"{t} {f.queries[0]}" for t, f in zip(texts, facts, strict=True)])
    gap = helped.hits(1) - plain.hits(1)
    holds = [any(o.lower() in t.lower() for o in f.objects)
             for t, f in zip(texts, facts, strict=True)]  # fmt: skip
    return Retrieved(
        macro_mean(gap, plain.relations, seed=seed, model=encoder.name, unit="share difference"),
        plain, helped, texts, float(np.mean(holds)),
    )  # fmt: skip


def picked_spans(
    encoder: Encoder, relations: Sequence[str], *, passages: int = 60, seed: int = 0
) -> Estimate:
    """Accuracy at picking, from a passage, the answer that fills a gap (after Glass et al. 2020).

    A passage states four facts of one relation; the question hides the answer of one of them in
    other words. A weight for every dimension of (gap times candidate) is learned on other
    passages, which may draw on the same facts; the encoder stays frozen. Its baseline is the
    most frequent place.

    Raises:
        KnowledgeError, FactError: as for :func:`~bertology_utils.knowledge.known_facts`.
    """
    rng = np.random.default_rng(seed)
    facts = known_facts(encoder, relations)
    by_relation = {r: [f for f in facts if f.relation == r] for r in dict.fromkeys(
        f.relation for f in facts)}  # fmt: skip
    names = [r for r, own in by_relation.items() if len({f.object for f in own}) >= 8]
    texts, answers, objects = [], [], []
    for number in range(passages):
        chosen: list[Fact] = []
        for i in rng.permutation(len(by_relation[names[number % len(names)]])):
            fact = by_relation[names[number % len(names)]][i]
            if all(fact.object != other.object for other in chosen):
                chosen.append(fact)
            if len(chosen) == 4:
                break
        for place in range(4):
            mask = encoder.tokenizer.mask_token
            question = chosen[place].queries[1].replace("[MASK]", mask)
            texts.append(f"{question} " + " ".join(f.statement(0) for f in chosen))
            answers.append(place)
            objects.append([f.object.lower() for f in chosen])
    data = collect(encoder, texts, reduce="piece").arrays["hidden_states"][-1]
    starts = np.cumsum([0] + [len(row.input_ids) for row in align_all(encoder, texts)])
    products = np.zeros((len(texts), 4, data.shape[1]), dtype=np.float32)
    for i, row in enumerate(align_all(encoder, texts)):
        gap = row.input_ids.index(encoder.tokenizer.mask_token_id)
        states = data[starts[i] : starts[i + 1]]
        for k, word in enumerate(objects[i]):
            # The last mention: the statement, not the question's other words.
            piece = [w.pieces[0] for w in row.words if w.text.lower() == word][-1]
            products[i, k] = states[gap] * states[piece]
    owner = np.arange(len(texts)) // 4
    test = owner >= round(0.6 * passages)
    right = _fit_picker(products[~test], np.array(answers)[~test], products[test]) == np.array(
        answers)[test]  # fmt: skip
    sums, counts = np.bincount(owner[test], weights=right), np.bincount(owner[test])
    value = float(right.mean())
    draws = resampled_means(sums[counts > 0], counts[counts > 0], seed=seed)
    return Estimate(
        value=value, unit="share", n=int(test.sum()), model=encoder.name, seed=seed,
        baselines={"majority": 0.25}, interval=percentile_interval(draws, value),
    )  # fmt: skip


def _fit_picker(train: np.ndarray, answers: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Softmax over candidates of a weighted sum; the weights are all that is learned."""
    spread = train.reshape(-1, train.shape[-1]).std(0) + 1e-6
    x, gold = torch.from_numpy(train / spread), torch.from_numpy(answers)
    weights = torch.zeros(x.shape[-1], requires_grad=True)
    optimiser = torch.optim.AdamW([weights], lr=0.02, weight_decay=0.1)
    for _ in range(150):
        loss = torch.nn.functional.cross_entropy(x @ weights, gold)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        return (torch.from_numpy(test / spread) @ weights).argmax(1).numpy()
