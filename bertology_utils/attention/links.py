"""Which of several words does a head point at? Coreference, agreement, and any pair of words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..encoder import Encoder
from ..stimuli import Sentence
from ..words import WordList
from .maps import MAX_TOKENS, attention_maps
from .scores import HeadScores, NothingToScoreError


@dataclass(frozen=True, eq=False)
class LinkItem:
    """A question to a head: from ``source``, which of the candidate words gets most attention?

    Word positions are 0-based. Coreference asks it of a pronoun and the mentions before it,
    agreement of a verb and the nouns of its sentence.

    Attributes:
        text: the text cut into words.
        source: the word whose attention is read.
        target: the right answer, one of ``candidates``.
        candidates: two or more words.
    """

    text: WordList
    source: int
    target: int
    candidates: tuple[int, ...]


def link_scores(
    encoder: Encoder,
    items: Iterable[LinkItem],
    *,
    name: str = "link accuracy",
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> HeadScores:
    """How often each head gives the right candidate the most attention.

    Controls: ``nearest_mention``, the candidate closest to the source (the earlier of two equally
    close ones), ``first_mention``, the leftmost candidate, and ``chance``, a blind choice.

    Raises:
        ValueError: an item whose target is no candidate, or with fewer than two candidates.
        NothingToScoreError: no items.
    """
    listed = _checked(items)
    sums = np.zeros((len(listed), encoder.n_layers, encoder.n_heads))
    nearest, first, chance = (np.zeros((len(listed), 1)) for _ in range(3))
    for maps in attention_maps(encoder, [i.text for i in listed], max_tokens=max_tokens):
        item = listed[maps.index]
        places = np.array(item.candidates)
        guess = places[maps.words[..., item.source, places].argmax(-1)]
        sums[maps.index] = guess == item.target
        nearest[maps.index] = min(places, key=lambda c: abs(c - item.source)) == item.target
        first[maps.index] = places.min() == item.target
        chance[maps.index] = 1 / len(places)
    controls = {"nearest_mention": nearest, "first_mention": first, "chance": chance}
    return HeadScores(name, "share", sums, np.ones(len(listed)), encoder.name, seed, controls)


def link_confusion(
    encoder: Encoder, items: Iterable[LinkItem], *, seed: int = 0, max_tokens: int = MAX_TOKENS
) -> HeadScores:
    """Confusion in nats: -log of the target's part of the attention to all candidates.

    Lin et al. 2019 (arXiv 1906.01698) measure agreement cues so: 0 is certain, and the control
    ``uniform`` is what even attention to the candidates gives. Raises as :func:`link_scores`.
    """
    listed = _checked(items)
    sums = np.zeros((len(listed), encoder.n_layers, encoder.n_heads))
    even = np.zeros((len(listed), 1))
    for maps in attention_maps(encoder, [i.text for i in listed], max_tokens=max_tokens):
        item = listed[maps.index]
        weights = maps.words[..., item.source, list(item.candidates)].astype(float)
        # Attention that underflows to 0 would make the mean infinite.
        weights = np.maximum(weights, 1e-12)
        right = weights[..., item.candidates.index(item.target)]
        sums[maps.index] = np.log(weights.sum(-1)) - np.log(right)
        even[maps.index] = np.log(len(item.candidates))
    return HeadScores(
        "confusion", "nats", sums, np.ones(len(listed)), encoder.name, seed, {"uniform": even}
    )


def coreference_items(sentences: Iterable[Sentence]) -> list[LinkItem]:
    """Pronouns with a gold antecedent, and as candidates the nouns, names and pronouns before them.

    Sentences whose pronoun has fewer than two candidates, or an antecedent that is none of them
    (a later word), ask nothing and are left out.
    """
    items = []
    for sentence in sentences:
        for mention, antecedent in sentence.gold.coreference if sentence.gold else ():
            before = tuple(
                i for i in range(mention) if sentence.upos[i] in ("NOUN", "PROPN", "PRON")
            )
            if len(before) > 1 and antecedent in before:
                text = WordList(sentence.words, sentence.text)
                items.append(LinkItem(text, mention, antecedent, before))
    return items


def agreement_items(sentences: Iterable[Sentence]) -> list[LinkItem]:
    """Finite verbs, their subject, and as candidates all nouns, names and pronouns of the sentence.

    Only sentences with at least two candidates ask something.
    """
    items = []
    for sentence in sentences:
        for pair in sentence.gold.agreements if sentence.gold else ():
            nouns = tuple(
                i for i in range(len(sentence)) if sentence.upos[i] in ("NOUN", "PROPN", "PRON")
            )
            if len(nouns) > 1 and pair.subject in nouns:
                text = WordList(sentence.words, sentence.text)
                items.append(LinkItem(text, pair.verb, pair.subject, nouns))
    return items


def pair_attention(
    encoder: Encoder,
    texts: Iterable[WordList],
    pairs: Iterable[Iterable[tuple[int, int]]],
    *,
    name: str = "attention between pairs",
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> HeadScores:
    """Mean attention from the first to the second word of given pairs.

    Frame elements, related words or a negation and its scope can be asked about in this way. The
    control ``matched_distance`` is the mean, over heads chosen like the best head, of attention
    between other words of the same text at the same offset, so that plain nearness earns nothing.

    Args:
        encoder: any encoder.
        texts: one text per entry of ``pairs``.
        pairs: (from, to) 0-based word positions for every text.
        name: of the result.
        seed, max_tokens: as everywhere.

    Raises:
        ValueError: different numbers of texts and pairs, or a pair outside its text.
        NothingToScoreError: no pair at all, or none with another pair at its distance.
    """
    listed, wanted = list(texts), [list(group) for group in pairs]
    if len(listed) != len(wanted):
        raise ValueError(f"{len(listed)} texts, but pairs for {len(wanted)}")
    shape = (len(listed), encoder.n_layers, encoder.n_heads)
    sums, matched, counts = np.zeros(shape), np.zeros(shape), np.zeros(len(listed))
    for maps in attention_maps(encoder, listed, max_tokens=max_tokens):
        chosen = set(wanted[maps.index])
        size = maps.words.shape[-1]
        for source, target in wanted[maps.index]:
            if not (0 <= source < size and 0 <= target < size):
                raise ValueError(f"pair ({source}, {target}) is outside text {maps.index}")
            diagonal = [
                (i, i + target - source)
                for i in range(max(0, source - target), min(size, size + source - target))
                if (i, i + target - source) not in chosen
            ]
            if not diagonal:
                continue  # nothing at this distance to compare with
            rows, columns = np.array(diagonal).T
            sums[maps.index] += maps.words[..., source, target]
            matched[maps.index] += maps.words[..., rows, columns].mean(-1)
            counts[maps.index] += 1
    controls = {"matched_distance": matched.reshape(len(listed), -1)}
    return HeadScores(name, "share", sums, counts, encoder.name, seed, controls)


def _checked(items: Iterable[LinkItem]) -> list[LinkItem]:
    listed = list(items)
    if not listed:
        raise NothingToScoreError("no items to score heads on")
    for i, item in enumerate(listed):
        if item.target not in item.candidates or len(set(item.candidates)) < 2:
            raise ValueError(
                f"item {i}: target {item.target} must be one of at least two candidates, "
                f"got {item.candidates}"
            )
    return listed
