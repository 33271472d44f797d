"""Probing tasks on words, hidden verbs, pairs of words and reviews; each gives one curve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..activations import collect, stream
from ..cloze import spell_mask
from ..encoder import Encoder
from ..geometry import LayerScores
from ..probes import Split, group_split, probe_layers
from ..stimuli import Sentence, minimal_pairs, sentiment
from ..stimuli.commonsense import triples
from ..syntax import TreebankVectors, word_labels
from ..words import WordList
from .curves import cross_probe, folds_of, scores_of


def probe_word_labels(
    vectors: TreebankVectors, sentences: Sequence[Sentence], split: Split, *, seed: int = 0
) -> dict[str, LayerScores]:
    """Parts of speech, phrases, dependency relations and kinds of nouns, word by word."""
    labels = {
        "parts of speech": word_labels(sentences, "upos"),
        "phrase of a word": word_labels(sentences, "parent"),
        "relation to the head": word_labels(sentences, "deprel"),
        "kind of noun": [kind or None for s in sentences for kind in s.gold.kinds],
    }
    found = {}
    for name, column in labels.items():
        owners = [np.isin(vectors.sentence, part) for part in (split.train, split.dev, split.test)]
        has = np.array([label is not None for label in column])
        rows = Split(*(np.flatnonzero(owner & has) for owner in owners), seed)
        results = probe_layers(
            vectors.words, column, rows, kind="ridge", seed=seed, model=vectors.model
        )
        found[name] = scores_of(results, vectors.sentence[rows.test].tolist(), seed)
    return found


@dataclass(frozen=True, eq=False)
class NumberAtMask:
    """Is a hidden verb singular or plural? One probe a layer, read at the mask.

    Attributes:
        curve: over all test sentences.
        by_attractors: number of nouns of the other number before the verb -> curve.
    """

    curve: LayerScores
    by_attractors: dict[int, LayerScores]


#: nouns between subject and verb, always this many, whatever their number
INTERVENING = 2


def number_at_mask(encoder: Encoder, n: int = 100, *, seed: int = 0) -> NumberAtMask:
    """Probe the vector of a masked verb for the number of its subject (Jawahar et al. 2019, 5).

    Two nouns stand between subject and verb; zero, one or two of them have the other number.
    Training and test sentences share no content word.

    Args:
        n: training sentences for each number of attractors; half as many for testing.
        seed: of sentences and bootstrap.
    """
    frames, labels, counts, test = [], [], [], []
    for split, size in (("train", n), ("test", max(2, n // 2))):
        for count in range(INTERVENING + 1):
            pairs = minimal_pairs(
                "agreement_attractors", size, seed, split=split, attractors=count,
                intervening=INTERVENING,
            )  # fmt: skip
            frames += [pair.frame for pair in pairs]
            labels += ["singular" if k % 2 == 0 else "plural" for k in range(size)]
            counts += [count] * size
            test += [split == "test"] * size
    held = np.array(test)
    rest = group_split(range(int((~held).sum())), dev=0.2, test=0.1, seed=seed)
    train = np.concatenate([rest.train, rest.test])
    split = Split(np.sort(train), rest.dev, np.flatnonzero(held), seed)
    found = probe_layers(
        mask_vectors(encoder, frames), labels, split, kind="ridge", seed=seed, model=encoder.name
    )
    curve = scores_of(found, split.test.tolist(), seed)
    tested = np.array(counts)[held]
    parts = {
        count: LayerScores(
            curve.name, curve.unit, curve.sums[tested == count], curve.counts[tested == count],
            curve.model, seed, curve.controls,
        )
        for count in range(INTERVENING + 1)
    }  # fmt: skip
    return NumberAtMask(curve, parts)


def mask_vectors(encoder: Encoder, frames: Sequence[str]) -> np.ndarray:
    """[S, N, D] hidden states at the one mask of every frame."""
    texts = [spell_mask(encoder, frame) for frame in frames]
    rows: list[np.ndarray | None] = [None] * len(texts)
    for cache in stream(encoder, texts, ["hidden_states"]):
        where = (cache.batch.input_ids == encoder.tokenizer.mask_token_id).int().argmax(1)
        states = cache["hidden_states"].float().cpu().numpy()
        for place, index in enumerate(cache.batch.index):
            rows[index] = states[:, place, where[place]]
    return np.stack([row for row in rows if row is not None], axis=1)


def commonsense_relations(
    encoder: Encoder, *, corrupted: bool = False, seed: int = 0
) -> LayerScores:
    """Which everyday relation holds between two words named side by side, "a knife, cut"?

    In cross-validation over second words, so that none of them is on both sides. With
    ``corrupted``, pairs of one relation and one fold exchange their second words: the same words
    are learnt from and tested, and only what belongs together is torn apart. What is then still
    read off is what kinds of words a relation takes.
    """
    found = triples(seed)
    own = [t.tail for t in found]
    tails = _exchanged(own, [t.relation for t in found], seed) if corrupted else own
    firsts = [t.head.split() for t in found]
    seconds = [tail.split() for tail in tails]
    texts = [
        WordList((*a, ",", *b, "."), f"{' '.join(a)}, {' '.join(b)}.")
        for a, b in zip(firsts, seconds, strict=True)
    ]
    rows: list[np.ndarray | None] = [None] * len(texts)
    for cache in stream(encoder, texts, ["hidden_states"]):
        states = cache["hidden_states"].float().cpu().numpy()
        for place, (index, spans) in enumerate(
            zip(cache.batch.index, cache.batch.spans, strict=True)
        ):
            n, m = len(firsts[index]), len(seconds[index])
            ends = (spans[0][0], spans[n - 1][1]), (spans[n + 1][0], spans[n + m][1])
            means = [states[:, place, a:b].mean(1) for a, b in ends]
            rows[index] = np.concatenate(means, axis=1)
    features = np.stack([row for row in rows if row is not None], axis=1)
    return cross_probe(
        features, [t.relation for t in found], own, sides=2, seed=seed, model=encoder.name
    )


def _exchanged(tails: Sequence[str], relations: Sequence[str], seed: int) -> list[str]:
    """Tails handed on inside each relation and fold of :func:`cross_probe`."""
    fold, made = folds_of(tails, seed=seed), list(tails)
    places: dict[tuple[str, int], list[int]] = {}
    for i, relation in enumerate(relations):
        places.setdefault((relation, int(fold[i])), []).append(i)
    for rows in places.values():
        rows.sort(key=lambda i: tails[i])
        # Equal tails stand together; a shift by the longest run of them changes every one, unless
        # one tail has more than half of the rows.
        shift = max(Counter(tails[i] for i in rows).values())
        for k, i in enumerate(rows):
            made[i] = tails[rows[(k + shift) % len(rows)]]
    return made


def review_sentiment(encoder: Encoder, n: int = 160, *, seed: int = 0) -> LayerScores:
    """Is a short review positive? Mean vectors; training and test share no adjective."""
    parts = [sentiment(size, seed, split=split) for split, size in (("train", n), ("test", n // 2))]
    texts = [review.text for part in parts for review in part]
    labels = [review.label for part in parts for review in part]
    rest = np.random.default_rng(seed).permutation(n)
    split = Split(np.sort(rest[n // 5 :]), np.sort(rest[: n // 5]), np.arange(n, len(texts)), seed)
    states = collect(encoder, texts, reduce="text_mean").arrays["hidden_states"]
    found = probe_layers(states, labels, split, kind="ridge", seed=seed, model=encoder.name)
    return scores_of(found, split.test.tolist(), seed)
