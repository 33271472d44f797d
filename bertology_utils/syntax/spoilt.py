"""What is left of a prediction when the rest of the sentence is spoilt?

Ettinger 2020 (doi:10.1162/tacl_a_00298) truncates contexts; Sinha et al. 2021 (arXiv 2101.00010)
shuffle words. Here one word of each sentence is hidden and the others are shuffled, cut off, or
robbed of the subject or object; the model's guess is compared with its guess in the intact
sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ..cloze.fill import mask_queries
from ..cloze.queries import Query, read_queries
from ..encoder import Encoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli import PerturbError, Sentence, drop_argument, shuffle_words, truncate
from ..stimuli.trees import join_words

TOP = 5


@dataclass(frozen=True)
class HiddenWord:
    """A sentence with one word to hide.

    Attributes:
        sentence: the sentence.
        target: 0-based place of the hidden word.
    """

    sentence: Sentence
    target: int

    @property
    def words(self) -> tuple[str, ...]:
        return self.sentence.words

    @property
    def tag(self) -> str:
        """Part of speech of the hidden word."""
        return self.sentence.upos[self.target]


#: Spoils a sentence: (words, place of the target) or None where it does not apply.
Spoiler = Callable[[HiddenWord], tuple[Sequence[str], int] | None]


def hidden_words(sentences: Sequence[Sentence], seed: int = 0) -> list[HiddenWord]:
    """One word of every sentence, drawn among those that are not punctuation."""
    rng = np.random.default_rng(seed)
    items = []
    for sentence in sentences:
        places = [i for i, tag in enumerate(sentence.upos) if tag != "PUNCT"]
        items.append(HiddenWord(sentence, int(rng.choice(places))))
    return items


def shuffled(share: float, seed: int = 0) -> Spoiler:
    """Move a share of the other words; the hidden word keeps its place.

    Raises:
        PerturbError: on use, for a share outside 0..1.
    """

    def spoil(item: HiddenWord) -> tuple[Sequence[str], int]:
        return shuffle_words(item.words, share, seed, keep=(item.target,)), item.target

    return spoil


def cut(n: int) -> Spoiler:
    """Keep only the hidden word and at most ``n`` words before it."""
    return lambda item: truncate(item.words, item.target, n)


def without(role: str) -> Spoiler:
    """Leave out the main clause's "subject" or "object", unless the hidden word is in it."""

    def spoil(item: HiddenWord) -> tuple[Sequence[str], int] | None:
        marked = list(item.words)
        marked[item.target] = _MARK
        try:
            left = drop_argument(replace(item.sentence, words=tuple(marked)), role)
        except PerturbError:
            return None
        return (left, left.index(_MARK)) if _MARK in left else None

    return spoil


#: What the chapter and its widget offer.
SPOILERS: dict[str, Spoiler] = {
    "a quarter of the words shuffled": shuffled(0.25),
    "half of the words shuffled": shuffled(0.5),
    "all other words shuffled": shuffled(1.0),
    "only the two words before": cut(2),
    "without the subject": without("subject"),
    "without the object": without("object"),
}
_MARK = "\N{OBJECT REPLACEMENT CHARACTER}"


@dataclass(frozen=True, eq=False)
class Survival:
    """Does the first guess survive? N hidden words of sentences to which a spoiler applies.

    Attributes:
        same: [N] True where the first guess is the same piece as in the intact sentence.
        overlap: [N] share of the first five guesses that stay among the first five.
        divergence: [N] Kullback-Leibler divergence of the spoilt from the intact prediction, nats.
        unrelated: [N] True where the intact guess equals the guess in another intact sentence with
            a hidden word of the same part of speech.
        model: name of the encoder.
        seed: of the bootstrap.
    """

    same: np.ndarray
    overlap: np.ndarray
    divergence: np.ndarray
    unrelated: np.ndarray
    model: str
    seed: int

    def _estimate(self, items: np.ndarray, unit: str) -> Estimate:
        value = float(items.mean())
        draws = resampled_means(items, np.ones(len(items)), seed=self.seed)
        return Estimate(
            value=value, unit=unit, n=len(items), model=self.model, seed=self.seed,
            interval=percentile_interval(draws, value),
        )  # fmt: skip

    @property
    def first_guess(self) -> Estimate:
        """Share of first guesses that survive, beside the share that unrelated sentences share."""
        found = self._estimate(self.same.astype(float), "share")
        return found.with_baselines(other_sentence=float(self.unrelated.mean()))

    @property
    def top_five(self) -> Estimate:
        """Mean share of the first five guesses that survive."""
        return self._estimate(self.overlap, "share")

    @property
    def kl(self) -> Estimate:
        """Mean divergence in nats."""
        return self._estimate(self.divergence, "nats")


def survival(
    encoder: Encoder,
    items: Sequence[HiddenWord],
    spoilers: dict[str, Spoiler] | None = None,
    *,
    seed: int = 0,
) -> dict[str, Survival]:
    """Guess every hidden word in the intact and in each spoilt sentence.

    Args:
        encoder: with a trained MLM head.
        items: sentences with one word to hide.
        spoilers: name -> spoiler; :data:`SPOILERS` by default.
        seed: of the choice of unrelated sentences and of the bootstrap.

    Raises:
        ValueError: no items, or a spoiler that applies to none of them.
        MissingHeadError: no trained MLM head.
    """
    if not items:
        raise ValueError("no hidden words to guess")
    intact = predictions(encoder, [(item.words, item.target) for item in items])
    first = intact.argmax(1)
    partner = _partners([item.tag for item in items], seed)
    unrelated = (first == first[partner]).numpy()
    found = {}
    for name, spoil in (SPOILERS if spoilers is None else spoilers).items():
        spoilt = [spoil(item) for item in items]
        rows = [i for i, made in enumerate(spoilt) if made is not None]
        if not rows:
            raise ValueError(f"{name!r} applies to none of the {len(items)} sentences")
        after = predictions(encoder, [spoilt[i] for i in rows])
        before = intact[rows]
        top = [set(row) for row in before.topk(TOP).indices.tolist()]
        kept = [len(a & set(b)) / TOP for a, b in
                zip(top, after.topk(TOP).indices.tolist(), strict=True)]  # fmt: skip
        found[name] = Survival(
            (after.argmax(1) == before.argmax(1)).numpy(),
            np.array(kept),
            (before.exp() * (before - after)).sum(1).numpy(),
            unrelated[rows],
            encoder.name,
            seed,
        )
    return found


def predictions(encoder: Encoder, masked: Sequence[tuple[Sequence[str], int]]) -> Tensor:
    """Log-probabilities [N, V] at the hidden place of each (words, place).

    Raises:
        MissingHeadError: no trained MLM head.
        IndexError: a place outside its words.
    """
    mask = encoder.tokenizer.mask_token
    texts = []
    for words, place in masked:
        shown = list(words)
        shown[place] = mask
        texts.append(join_words(shown))
    queries = mask_queries(encoder, texts)

    def rows(logits: Tensor, _batch: Sequence[Query]) -> Sequence[Tensor]:
        return list(logits.log_softmax(1).cpu())

    return torch.stack(list(read_queries(encoder, queries, rows)))


def _partners(tags: Sequence[str], seed: int) -> np.ndarray:
    """For every item another one with the same tag where there is one, else any other."""
    rng = np.random.default_rng(seed)
    out = np.empty(len(tags), dtype=np.int64)
    for i, tag in enumerate(tags):
        others = [j for j, other in enumerate(tags) if j != i and other == tag]
        others = others or [j for j in range(len(tags)) if j != i] or [i]
        out[i] = rng.choice(others)
    return out
