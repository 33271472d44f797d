"""Classifiers on little data: normalised vectors, parts of speech as input, made sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from ..activations import collect
from ..cloze import Query, read_queries
from ..encoder import Encoder
from ..finetuning import Part, Recipe, Run, accuracy, fine_tune
from ..resampling import Estimate, mean_over_runs, percentile_interval, resampled_means
from ..stimuli import LabelledText, sentiment, treebank
from ..words import WordList, align_all
from .ridge import ridge_guesses

MOST_STEPS = 20_000


def steps_to_converge(vectors: np.ndarray, labels: np.ndarray, *, goal: float = 0.1) -> int:
    """Steps of gradient descent until the loss of a logistic classifier is ``goal`` times ln 2.

    Each problem gets the longest step that is sure to descend, 4 N over the largest eigenvalue of
    X'X, so that neither is favoured by a learning rate. At most :data:`MOST_STEPS`.

    Args:
        vectors: [N, D]; labels: [N] of 0 and 1.

    Raises:
        ValueError: a goal outside (0, 1).
    """
    if not 0 < goal < 1:
        raise ValueError(f"goal is {goal}, must lie between 0 and 1")
    x = np.concatenate([vectors, np.ones((len(vectors), 1))], axis=1).astype(np.float64)
    gram = x @ x.T  # all that descent from zero needs
    rate = 4 / np.linalg.eigvalsh(gram)[-1]
    scores = np.zeros(len(x))
    for step in range(1, MOST_STEPS + 1):
        chance = 1 / (1 + np.exp(-scores))
        scores += rate * gram @ (labels - chance)
        loss = np.logaddexp(0, np.where(labels == 1, -scores, scores)).mean()
        if loss < goal * np.log(2):
            return step
    return MOST_STEPS


@dataclass(frozen=True, eq=False)
class NormalisedCls:
    """Standardised against plain [CLS] vectors.

    Attributes:
        log_ratio: log of steps with minus without, over draws of training texts.
        means: [D] mean of every number of [CLS]; spreads: [D] their standard deviation.
        accuracy: "plain" and "standardised" -> accuracy of a ridge classifier on other texts.
    """

    log_ratio: Estimate
    means: np.ndarray
    spreads: np.ndarray
    accuracy: dict[str, float]


def normalised_cls(encoder: Encoder, *, draws: int = 10, n: int = 48, seed: int = 0):
    """Does standardising the [CLS] vector speed up what is trained on it (Zhou et al. 2019)?

    Reviews from two disjoint sets of adjectives; ``draws`` times ``n`` training texts.
    """
    train, test = (sentiment(160, seed=9, split=split) for split in ("train", "test"))
    vectors = {name: collect(encoder, [r.text for r in part], reduce="text_first")
               .arrays["hidden_states"][-1] for name, part in
               (("train", train), ("test", test))}  # fmt: skip
    gold = {name: np.array([r.label == "positive" for r in part], dtype=int) for name, part in
            (("train", train), ("test", test))}  # fmt: skip
    logs, right = [], {"plain": [], "standardised": []}
    for draw in range(draws):
        rows = np.random.default_rng([seed, draw]).permutation(len(train))[:n]
        own, labels = vectors["train"][rows], gold["train"][rows]
        centre, spread = own.mean(0), own.std(0) + 1e-6
        logs.append(np.log(steps_to_converge((own - centre) / spread, labels))
                    - np.log(steps_to_converge(own, labels)))  # fmt: skip
        for name, (a, b) in {"plain": (0, 1), "standardised": (centre, spread)}.items():
            right[name].append(_logistic_accuracy(
                (own - a) / b, labels, (vectors["test"] - a) / b, gold["test"]
            ))  # fmt: skip
    return NormalisedCls(
        mean_over_runs(logs, unit="log ratio", model=encoder.name, seed=seed),
        vectors["train"].mean(0), vectors["train"].std(0),
        {name: float(np.mean(found)) for name, found in right.items()},
    )  # fmt: skip


def _logistic_accuracy(train, labels, test, gold, *, steps: int = 200) -> float:
    """Accuracy after the same number of descent steps."""
    x = np.concatenate([train, np.ones((len(train), 1))], axis=1)
    rate = 4 / np.linalg.eigvalsh(x @ x.T)[-1]
    weights = np.zeros(x.shape[1])
    for _ in range(steps):
        weights += rate * x.T @ (labels - 1 / (1 + np.exp(-x @ weights)))
    said = np.concatenate([test, np.ones((len(test), 1))], axis=1) @ weights > 0
    return float((said == gold).mean())


@dataclass(frozen=True, eq=False)
class PartsOfSpeech:
    """Relations of words told from vectors with and without parts of speech.

    Attributes:
        difference: accuracy with minus without at the smallest size, over draws.
        sizes: training sentences; curves: "with" and "without" -> accuracy at each size.
    """

    difference: Estimate
    sizes: tuple[int, ...]
    curves: dict[str, tuple[float, ...]]


def parts_of_speech(
    encoder: Encoder, *, sizes: Sequence[int] = (8, 32, 128), draws: int = 8, seed: int = 0
) -> PartsOfSpeech:
    """Add one-hot parts of speech to frozen vectors of the middle layer (after Sundararaman et al.
    2019, who add them to the input) and tell each word's relation to its governor.

    Raises:
        ValueError: no sizes.
    """
    if not sizes:
        raise ValueError("no sizes")
    bank = list(treebank(max(sizes) * 2 + 120, seed=32, max_words=14))
    layer = (encoder.n_layers + 1) // 2
    data = collect(encoder, [WordList(s.words, s.text) for s in bank])
    vectors = data.arrays["hidden_states"][layer]
    labels = np.array([relation for s in bank for relation in s.deprels])
    tags = np.array([tag for s in bank for tag in s.upos])
    kinds = sorted(set(tags))
    onehot = (tags[:, None] == np.array(kinds)).astype(np.float32)
    # A tag's column weighs as much as all dimensions of a vector would, were they one.
    both = np.concatenate([vectors, onehot * np.sqrt(vectors.shape[1] / len(kinds))], axis=1)
    owner, first_test = data.text_index, len(bank) - 120
    test = owner >= first_test
    scores = {name: np.zeros((len(sizes), draws)) for name in ("with", "without")}
    for k, size in enumerate(sizes):
        for draw in range(draws):
            chosen = np.random.default_rng([seed, draw]).permutation(first_test)[:size]
            train = np.isin(owner, chosen)
            for name, x in (("with", both), ("without", vectors)):
                guess = ridge_guesses(x[train], labels[train], x[test], penalty=0.1)
                scores[name][k, draw] = (guess == labels[test]).mean()
    gap = scores["with"][0] - scores["without"][0]
    return PartsOfSpeech(
        mean_over_runs(gap, unit="share difference", model=encoder.name, seed=seed), tuple(sizes),
        {name: tuple(found.mean(1).tolist()) for name, found in scores.items()},
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Augmentation:
    """A classifier trained on little data, with and without made sentences.

    Attributes:
        difference: accuracy with minus without, over draws of training texts.
        accuracy: "without", "with", and "repeated" (the same texts as often, not changed).
        examples: (label, text, made text), a few.
    """

    difference: Estimate
    accuracy: dict[str, float]
    examples: tuple[tuple[str, str, str], ...]


def augmentation(
    encoder: Encoder, *, n: int = 8, copies: int = 4, draws: int = 10, seed: int = 0
) -> Augmentation:
    """Tell the masked model the label, hide a word, and let it write (Wu et al. 2019; Kumar et al.
    2020, who also train the model on labelled texts first; we do not).

    The label stands in front of the text. Words are drawn from the model's ten likeliest ones.
    Training and test reviews share no adjective.

    Raises:
        MissingHeadError: no trained MLM head.
    """
    train, test = (sentiment(120, seed=33, split=split) for split in ("train", "test"))
    made = _made(encoder, train, copies, seed)
    texts = [r.text for r in (*train, *test)] + [text for own in made for text in own]
    vectors = collect(encoder, texts, reduce="text_mean").arrays["hidden_states"][-1]
    gold = np.array([r.label for r in (*train, *test)])
    first, extra = len(train), len(train) + len(test)
    right: dict[str, list[float]] = {"without": [], "with": [], "repeated": []}
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        rows = np.concatenate([rng.permutation(np.flatnonzero(gold[:first] == label))[: n // 2]
                               for label in ("negative", "positive")])  # fmt: skip
        new = np.concatenate([extra + r * copies + np.arange(copies) for r in rows])
        for name, used, labels in (
            ("without", rows, gold[rows]),
            ("with", np.concatenate([rows, new]),
             np.concatenate([gold[rows], np.repeat(gold[rows], copies)])),
            ("repeated", np.tile(rows, copies + 1), np.tile(gold[rows], copies + 1)),
        ):  # fmt: skip
            guess = ridge_guesses(vectors[used], labels, vectors[first:extra])
            right[name].append(float((guess == gold[first:extra]).mean()))
    gap = np.subtract(right["with"], right["without"])
    return Augmentation(
        mean_over_runs(gap, unit="share difference", model=encoder.name, seed=seed),
        {name: float(np.mean(found)) for name, found in right.items()},
        tuple((r.label, r.text, own[0]) for r, own in zip(train[:4], made[:4], strict=True)),
    )  # fmt: skip


def _made(encoder: Encoder, reviews: Sequence[LabelledText], copies: int, seed: int):
    """[N][copies] new texts, each with one word of the old one drawn anew."""
    rng = np.random.default_rng(seed)
    rows = align_all(encoder, [f"{review.label} review: {review.text}" for review in reviews])
    queries = []
    for number, row in enumerate(rows):
        # Behind the label and "review:", words of one piece that are longer than a function word.
        free = [start for start, stop in row.spans[3:] if stop - start == 1
                and len(encoder.tokenizer.convert_ids_to_tokens(row.input_ids[start])) > 3]
        for place in rng.choice(free, copies, replace=len(free) < copies):
            queries.append(Query(row, (int(place),), int(place), number))
    draws = torch.Generator().manual_seed(seed)

    def read(logits, batch):
        top = logits.topk(10, dim=1)
        picked = torch.multinomial(top.values.softmax(1).cpu(), 1, generator=draws)
        return top.indices.cpu().gather(1, picked)[:, 0].tolist()

    new = list(read_queries(encoder, queries, read))
    out = [[] for _ in reviews]
    for query, piece in zip(queries, new, strict=True):
        ids = list(query.row.input_ids)
        ids[query.read] = piece
        text = encoder.tokenizer.decode(ids, skip_special_tokens=True)
        out[query.number].append(text.split(":", 1)[-1].strip())
    return out


@dataclass(frozen=True, eq=False)
class FourCells:
    """Pre-trained or random weights, frozen or fine-tuned.

    Attributes:
        difference: accuracy of random weights fine-tuned minus of pre-trained ones frozen with a
            trained head, over test texts and fine-tunings.
        accuracy: the four cells.
    """

    difference: Estimate
    accuracy: dict[str, Estimate]


def four_cells(
    encoder: Encoder,
    untrained: Encoder,
    train: tuple[Sequence[str], Sequence[int]],
    test: tuple[Sequence[str], Sequence[int]],
    *,
    runs: int = 1,
    epochs: int = 4,
    seed: int = 0,
) -> FourCells:
    """The comparison of Kovaleva et al. 2019, table 1, with a trained head on the frozen models.

    Args:
        encoder, untrained: weights of one shape.
        train, test: texts and labels counted from 0.
        runs: fine-tunings of each, with other new layers and orders.
        epochs: of each fine-tuning.

    Raises:
        ValueError: no runs, or all labels are the same.
    """
    if runs < 1:
        raise ValueError(f"runs is {runs}, must be at least 1")
    right = {}
    learned, asked = (Part(tuple(texts), tuple(labels)) for texts, labels in (train, test))
    recipe = Recipe(epochs=epochs)
    gold = np.asarray(test[1])
    for name, model in (("pre-trained", encoder), ("random", untrained)):
        vectors = [collect(model, list(texts), reduce="text_first").arrays["hidden_states"][-1]
                   for texts, _ in (train, test)]  # fmt: skip
        right[f"{name}, frozen"] = ridge_guesses(vectors[0], train[1], vectors[1]) == gold
        right[f"{name}, fine-tuned"] = np.mean([
            accuracy(fine_tune(model, learned, Run(
                recipe=recipe, head_seed=seed + run, order_seed=seed + run)), asked)
            for run in range(runs)
        ], axis=0)  # fmt: skip
    ones = np.ones(len(gold))

    def estimate(values: np.ndarray, unit: str) -> Estimate:
        value = float(np.mean(values))
        draws = resampled_means(np.asarray(values, float), ones, seed=seed)
        return Estimate(
            value=value, unit=unit, n=len(gold), model=encoder.name, seed=seed,
            interval=percentile_interval(draws, value),
        )  # fmt: skip

    gap = right["random, fine-tuned"] - right["pre-trained, frozen"].astype(float)
    return FourCells(
        estimate(gap, "share difference"),
        {name: estimate(values, "share") for name, values in right.items()},
    )
