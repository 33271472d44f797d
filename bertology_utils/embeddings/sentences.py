"""What a single word's vector says about its sentence.

Miaschi and Dell'Orletta 2020 (sentences from single words); Rogers et al. 2020, section 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..activations import Collected, collect
from ..encoder import Encoder
from ..geometry import LayerScores, TooFewError, layer_rows, unit_rows
from ..stimuli.sentiment import NEGATIVE, POSITIVE, LabelledText
from ..words import Text, align_all
from .choosing import HeldOut


def sentence_identity(
    collected: Collected, queries: np.ndarray | None = None, *, seed: int = 0
) -> LayerScores:
    """Share of words whose sentence is found among all N by the word's vector alone.

    Every sentence is the mean of its words' vectors, after centring; the word that asks is left
    out of its own. The answer is the sentence of the highest cosine. Items are sentences; the
    control ``chance`` is 1 / N.

    Args:
        collected: rows of words.
        queries: [N rows] True for the words that ask; all by default. Words of sentences with no
            other word never ask.
        seed: of the bootstrap.

    Raises:
        TooFewError: fewer than two sentences, or no word that can ask.
    """
    texts, owner, sizes = np.unique(collected.text_index, return_inverse=True, return_counts=True)
    asks = np.ones(len(collected), bool) if queries is None else np.asarray(queries, bool)
    asks = asks & (sizes[owner] > 1)
    if len(texts) < 2 or not asks.any():
        raise TooFewError("needs two sentences, and words with others beside them")
    rows, mine = np.flatnonzero(asks), owner[asks]
    counts = np.bincount(mine, minlength=len(texts)).astype(float)
    sums = []
    for layer in range(len(collected.arrays["hidden_states"])):
        vectors = layer_rows(collected, layer, slice(None)).astype(float)
        vectors -= vectors.mean(0)
        totals = np.zeros((len(texts), vectors.shape[1]))
        np.add.at(totals, owner, vectors)
        asking = unit_rows(vectors[rows])
        cosines = asking @ unit_rows(totals).T
        own = unit_rows(totals[mine] - vectors[rows])  # the word that asks is no part of it
        cosines[np.arange(len(rows)), mine] = (asking * own).sum(-1)
        found = cosines.argmax(1) == mine
        sums.append(np.bincount(mine, weights=found, minlength=len(texts)))
    chance = {"chance": np.full(len(sums), 1 / len(texts))}
    return LayerScores(
        "sentence named from one word", "share", np.stack(sums, 1), counts, collected.model, seed,
        chance,
    )  # fmt: skip


def neutral_vectors(
    encoder: Encoder, reviews: Sequence[LabelledText], *, seed: int = 0
) -> tuple[np.ndarray, tuple[str, ...]]:
    """One word of each review that says nothing of its sentiment.

    Any word of letters that is no adjective of judgment, drawn at random for every review.

    Returns:
        ([S, N, D] vectors in every layer, the N words).

    Raises:
        TooFewError: a review without such a word, or no reviews.
    """
    if not len(reviews):
        raise TooFewError("no reviews")
    texts: list[Text] = [review.text for review in reviews]
    collected = collect(encoder, texts)
    draw = np.random.default_rng(seed)
    loaded = {*POSITIVE, *NEGATIVE}
    rows, words = [], []
    for number, row in enumerate(align_all(encoder, texts)):
        spelt = [word.text.lower() for word in row.words]
        usable = [i for i, word in enumerate(spelt) if word.isalpha() and word not in loaded]
        if not usable:
            raise TooFewError(f"no neutral word in {texts[number]!r}")
        chosen = int(draw.choice(usable))
        rows.append(collected.rows_of(number).start + chosen)
        words.append(spelt[chosen])
    return np.array(collected.arrays["hidden_states"][:, rows]), tuple(words)


def probe_by_layer(
    train: np.ndarray,
    train_labels: Sequence,
    test: np.ndarray,
    test_labels: Sequence,
    *,
    model: str,
    folds: int = 5,
    seed: int = 0,
) -> tuple[LayerScores, HeldOut]:
    """A logistic probe on every layer, fitted on one set of vectors and judged on another.

    Args:
        train, test: [S, N, D] and [S, M, D].
        train_labels, test_labels: [N] and [M].
        model: the encoder's name.
        folds: of the cross-validation in the training set that chooses the layer.
        seed: of folds and bootstrap.

    Returns:
        The accuracy of every layer on the test set, with the control ``majority``; and that of
        the layer above the embeddings that was chosen in training, beside ``embedding_layer``.

    Raises:
        ValueError: numbers of vectors and labels differ.
        TooFewError: a class with fewer texts than folds, or only one class.
    """
    known, asked = np.asarray(train_labels), np.asarray(test_labels)
    if train.shape[1] != len(known) or test.shape[1] != len(asked):
        raise ValueError(
            f"{train.shape[1]} and {test.shape[1]} vectors for {len(known)} and {len(asked)} labels"
        )
    names, counts = np.unique(known, return_counts=True)
    if len(names) < 2 or counts.min() < folds:
        raise TooFewError(f"needs two classes of {folds} texts or more, got {counts.tolist()}")
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed)
    right, expected = [], []
    for before, after in zip(train, test, strict=True):
        probe = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
        expected.append(cross_val_score(probe, before, known, cv=splits).mean())
        right.append(probe.fit(before, known).predict(after) == asked)
    usual = names[counts.argmax()]
    scores = LayerScores(
        "label read from vectors", "share", np.stack(right, 1).astype(float), np.ones(len(asked)),
        model, seed, {"majority": np.full(len(right), (asked == usual).mean())},
    )  # fmt: skip
    layer = 1 + int(np.argmax(expected[1:]))
    at = scores.at(layer)
    found = HeldOut(
        value=at.value, unit=at.unit, n=at.n, model=model, seed=seed, interval=at.interval,
        baselines={**at.baselines, "embedding_layer": float(scores.values[0])},
        layers=(layer, layer),
    )  # fmt: skip
    return scores, found
