"""Sentences that follow one another: what gives that away, and what a model knows of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..activations import collect
from ..encoder import Encoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli import Passage, passages
from ..words import TextPair
from .ridge import grouped_guesses

FOLDS = 6
#: of the difference of two bags
DIRECTIONS = 16


@dataclass(frozen=True)
class PassagePair:
    """Two sentences, how far the second stands behind the first, and the first one's passage.

    ``distance`` is 1 for the next sentence, -1 for the previous one, 2 or 3 for a later one of the
    same passage, 0 for a sentence of another passage.
    """

    first: str
    second: str
    distance: int
    passage: int


def passage_pairs(distances: Sequence[int], *, found: Sequence[Passage] | None = None,
                  seed: int = 0) -> list[PassagePair]:  # fmt: skip
    """Pairs of every distance asked for; strangers are second sentences moved to other passages.

    Raises:
        ValueError: no distances, or one that no passage has.
    """
    texts = list(passages() if found is None else found)
    if not distances or any(d not in (-1, 0, 1, 2, 3) for d in distances):
        raise ValueError(f"distances {list(distances)}: known are -1, 0, 1, 2 and 3")
    rng = np.random.default_rng(seed)
    out = []
    for number, passage in enumerate(texts):
        sentences = passage.sentences
        for i in range(len(sentences)):
            for distance in distances:
                if distance == 0 and i + 1 < len(sentences):
                    other = texts[(number + 1 + rng.integers(len(texts) - 1)) % len(texts)]
                    out.append(PassagePair(sentences[i], other.sentences[i + 1], 0, number))
                elif distance and 0 <= i + distance < len(sentences):
                    out.append(PassagePair(sentences[i], sentences[i + distance], distance, number))
    return out


def bag_features(encoder: Encoder, pairs: Sequence[PassagePair]) -> np.ndarray:
    """[N, 2 + DIRECTIONS] of two bags of input vectors, all that can be seen without word order.

    The cosine of the two means (frequent words of the passages count less), the share of words
    they have in common, and the first principal directions of their difference.
    """
    table = encoder.embeddings.token.weight.detach().cpu().numpy()
    texts = sorted({t for pair in pairs for t in (pair.first, pair.second)})
    ids = {t: encoder.tokenizer(t, add_special_tokens=False)["input_ids"] for t in texts}
    seen = Counter(i for own in ids.values() for i in set(own))
    rarity = {i: np.log(len(texts) / n) for i, n in seen.items()}
    centre = table.mean(0)
    bags = {t: np.average(table[own] - centre, axis=0, weights=[rarity[i] + 1e-6 for i in own])
            for t, own in ids.items()}  # fmt: skip
    a = np.array([bags[pair.first] for pair in pairs])
    b = np.array([bags[pair.second] for pair in pairs])
    cosine = (a * b).sum(1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
    shared = [sum(rarity[i] for i in set(ids[p.first]) & set(ids[p.second])) for p in pairs]
    whole = np.array(list(bags.values()))
    directions = np.linalg.svd(whole - whole.mean(0), full_matrices=False)[2][:DIRECTIONS]
    return np.column_stack([cosine, shared, (a - b) @ directions.T])


@dataclass(frozen=True)
class BagOfWords:
    """Two tasks for the same classifier.

    Attributes:
        difference: accuracy at "next or stranger" minus at "in order or swapped".
        next, order: the two accuracies, with intervals over passages.
    """

    difference: Estimate
    next: Estimate
    order: Estimate


def bag_of_words(encoder: Encoder, *, seed: int = 0) -> BagOfWords:
    """Can NSP, and can sentence order, be told without reading (Lan et al. 2020)?

    Cross-validated over passages: no passage of a test pair is trained on.
    """
    right, groups = {}, {}
    for name, distances in (("next", (1, 0)), ("order", (1, -1))):
        pairs = passage_pairs(distances, seed=seed)
        labels = [pair.distance == 1 for pair in pairs]
        groups[name] = [pair.passage for pair in pairs]
        guesses = grouped_guesses(bag_features(encoder, pairs), labels, groups[name], folds=FOLDS)
        right[name] = (guesses == np.array(labels)).astype(float)
    own = {name: _shares(right[name], groups[name], encoder.name, seed, {"chance": 0.5})
           for name in right}  # fmt: skip
    passages_of = [np.array([right[name][np.array(groups[name]) == p].mean()
                             for p in sorted(set(groups[name]))]) for name in right]  # fmt: skip
    gap = passages_of[0] - passages_of[1]
    value = float(gap.mean())
    difference = Estimate(
        value=value, unit="share difference", n=len(gap), model=encoder.name, seed=seed,
        interval=percentile_interval(resampled_means(gap, np.ones(len(gap)), seed=seed), value),
    )  # fmt: skip
    return BagOfWords(difference, own["next"], own["order"])


@dataclass(frozen=True)
class SentenceRelations:
    """What a frozen model's vectors of a pair of sentences tell.

    Attributes:
        direction: accuracy at next, previous, stranger (Wang et al. 2020); baseline ``chance``.
        distance: accuracy at neighbour, same passage but further, stranger (Sun et al. 2020);
            baseline ``majority``.
    """

    direction: Estimate
    distance: Estimate


def sentence_relations(
    encoder: Encoder, *, n_passages: int = 36, layer: int | None = None, seed: int = 0
) -> SentenceRelations:
    """Two tasks of pre-training as ridge probes, cross-validated over passages.

    Features are [CLS] and the mean of all other pieces of the pair.

    Args:
        n_passages: how many passages to use.
        layer: 0 is the embedding output; the last one by default.
    """
    pairs = passage_pairs((1, -1, 2, 3, 0), found=passages()[:n_passages], seed=seed)
    distances = np.array([pair.distance for pair in pairs])
    groups = np.array([pair.passage for pair in pairs])
    at = encoder.n_layers if layer is None else encoder.check_layer(layer)
    texts = [TextPair(pair.first, pair.second) for pair in pairs]
    data = collect(encoder, texts, reduce="piece")
    states, place = data.arrays["hidden_states"][at], data.position
    sums = np.zeros((len(pairs), states.shape[1]))
    np.add.at(sums, data.text_index[place > 0], states[place > 0])
    counts = np.bincount(data.text_index[place > 0])
    vectors = np.concatenate([states[place == 0], sums / counts[:, None]], axis=1)

    def probe(used: np.ndarray, labels: np.ndarray, name: str) -> Estimate:
        own, gold = groups[used], labels[used]
        right = (grouped_guesses(vectors[used], gold, own, folds=FOLDS) == gold).astype(float)
        base = 1 / 3 if name == "chance" else float(np.unique(gold, return_counts=True)[1].max())
        base = base if name == "chance" else base / len(gold)
        return _shares(right, own.tolist(), encoder.name, seed, {name: base})

    return SentenceRelations(
        probe(distances <= 1, distances, "chance"),
        probe(distances >= 0, np.minimum(distances, 2), "majority"),
    )


def _shares(right: np.ndarray, groups: Sequence[int], model: str, seed: int, baselines) -> Estimate:
    codes = np.unique(np.asarray(groups), return_inverse=True)[1]
    sums, counts = np.bincount(codes, weights=right), np.bincount(codes)
    value = float(right.mean())
    return Estimate(
        value=value, unit="share", n=len(right), model=model, seed=seed, baselines=baselines,
        interval=percentile_interval(resampled_means(sums, counts, seed=seed), value),
    )  # fmt: skip
