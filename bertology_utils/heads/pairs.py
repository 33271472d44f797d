"""Pairs of words and pieces that heads may link: roles, related words, pieces of one word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ..attention import (
    HeadScores,
    LinkItem,
    NothingToScoreError,
    attention_maps,
    attention_received,
    pair_attention,
)
from ..encoder import Encoder
from ..resampling import Estimate, percentile_interval, rank_correlation
from ..stimuli import CoreferenceItem, Sentence
from ..stimuli.commonsense import Triple
from ..words import Text, WordList

Pairs = list[list[tuple[int, int]]]


def words_of(sentence: Sentence) -> WordList:
    """A sentence of a treebank as a text whose words are known."""
    return WordList(sentence.words, sentence.text)


def role_pairs(sentences: Iterable[Sentence]) -> Pairs:
    """Predicates and their core arguments, both ways, for every sentence with gold roles."""
    found = []
    for sentence in sentences:
        roles = sentence.gold.roles if sentence.gold else ()
        pairs = [(role.predicate, role.argument) for role in roles]
        found.append(list(dict.fromkeys([*pairs, *((b, a) for a, b in pairs)])))
    return found


def scope_pairs(sentences: Iterable[Sentence]) -> Pairs:
    """Words in the scope of a negation and its cue (from, to), for every sentence."""
    return [
        [(word, negation.cue) for negation in s.gold.negations for word in negation.scope]
        if s.gold else []
        for s in sentences
    ]  # fmt: skip


def antecedent_items(items: Iterable[CoreferenceItem]) -> list[LinkItem]:
    """Pronouns with their antecedent and one other mention before them."""
    return [
        LinkItem(
            WordList(item.words, item.text), item.pronoun, item.antecedent,
            (item.antecedent, item.other),
        )
        for item in items
    ]  # fmt: skip


def related_words(
    encoder: Encoder, triples: Sequence[Triple], *, seed: int = 0
) -> HeadScores:
    """Attention, both ways, between two related words of a sentence that says so.

    Control ``shuffled``: the same sentences with the second word taken from another triple, so
    that only the relation is missing; the best head there is chosen like the best head here.

    Raises:
        NothingToScoreError: no triples.
    """
    scores = []
    for name, tails in (
        ("related words", [triple.tail for triple in triples]),
        ("shuffled words", [triple.corrupted for triple in triples]),
    ):
        said = [_said(triple, tail) for triple, tail in zip(triples, tails, strict=True)]
        texts, pairs = [text for text, _ in said], [list(both) for _, both in said]
        scores.append(pair_attention(encoder, texts, pairs, name=name, seed=seed))
    related, shuffled = scores
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = np.nan_to_num(shuffled.sums / shuffled.counts[:, None, None])
    control = (rates * related.counts[:, None, None]).reshape(len(triples), -1)
    return replace(related, controls={**related.controls, "shuffled": control})


def _said(triple: Triple, tail: str) -> tuple[WordList, tuple[tuple[int, int], ...]]:
    words: list[str] = []
    ends = {}
    for token in triple.template.removesuffix(".").split():
        part = {"[X]": triple.head, "[Y]": tail}.get(token, token).split()
        words += part
        if token in ("[X]", "[Y]"):
            ends[token] = len(words) - 1  # the last word of a phrase is its head
    words.append(".")
    first, second = ends["[X]"], ends["[Y]"]
    text = " ".join(words[:-1]) + "."
    return WordList(tuple(words), text), ((first, second), (second, first))


def first_piece_attention(
    encoder: Encoder, texts: Sequence[Text], *, seed: int = 0
) -> HeadScores:
    """Attention from every later piece of a word to the word's first piece.

    Control ``matched_distance``: attention between pieces of other words at the same distance in
    the same text; the head is chosen like the best head.

    Raises:
        NothingToScoreError: no word of several pieces.
    """
    shape = (len(texts), encoder.n_layers, encoder.n_heads)
    sums, matched, counts = np.zeros(shape), np.zeros(shape), np.zeros(len(texts))
    for maps in attention_maps(encoder, texts):
        owner = np.full(len(maps), -1)
        for word, (start, end) in enumerate(maps.row.spans):
            owner[start:end] = word
        for start, end in maps.row.spans:
            for piece in range(start + 1, end):
                gap = piece - start
                rows = np.arange(gap, len(maps))
                apart = (owner[rows] >= 0) & (owner[rows - gap] >= 0)
                rows = rows[apart & (owner[rows] != owner[rows - gap])]
                if not len(rows):
                    continue
                sums[maps.index] += maps.pattern[..., piece, start]
                matched[maps.index] += maps.pattern[..., rows, rows - gap].mean(-1)
                counts[maps.index] += 1
    controls = {"matched_distance": matched.reshape(len(texts), -1)}
    return HeadScores(
        "attention to a word's first piece", "share", sums, counts, encoder.name, seed, controls
    )


def frequency_and_attention(
    encoder: Encoder, texts: Sequence[Text], *, min_count: int = 3, seed: int = 0
) -> tuple[Estimate, dict[str, tuple[float, int]]]:
    """Spearman's correlation of a piece's frequency in the texts with the attention it receives.

    Special tokens, whose attention is to be explained, are left out, and so are pieces that
    occur fewer than ``min_count`` times. The interval resamples pieces.

    Returns:
        the correlation, and piece -> (attention received, 1 being an even share; occurrences).

    Raises:
        NothingToScoreError: fewer than three pieces are frequent enough.
    """
    special = set(encoder.tokenizer.all_special_tokens)
    received = attention_received(encoder, texts)
    kept = [v for piece, v in received.items() if piece not in special and v[1] >= min_count]
    if len(kept) < 3:
        raise NothingToScoreError(f"only {len(kept)} pieces occur {min_count} times or more")
    weight, count = np.array(kept, float).T
    value = float(rank_correlation(count, weight))
    draw = np.random.default_rng(seed)
    rows = draw.integers(len(kept), size=(1000, len(kept)))
    estimate = Estimate(
        value=value,
        unit="correlation",
        n=len(kept),
        model=encoder.name,
        seed=seed,
        interval=percentile_interval(rank_correlation(count[rows], weight[rows]), value),
    )
    return estimate, received
