"""Do vectors of numbers know how large they are? Decoding, adding, finding the largest.

After Wallace et al. (2019, arXiv 1909.07940), with a probe on the written characters beside every
probe on the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from ..activations import collect
from ..encoder import Encoder
from ..probes import RegressionResult, Split, fit_ridge, random_split, regress_layers
from ..probes.data import standardise, take
from ..resampling import RESAMPLES, Estimate, percentile_interval
from ..stimuli import AdditionExample, MaximumExample, NumberExample
from ..words import WordList
from .errors import KnowledgeError, UnmatchedError


@dataclass(frozen=True, eq=False)
class NumberProbe:
    """A number read from every layer, and from the characters it is written with.

    Attributes:
        result: R squared of the best layer, with the baseline ``characters``. Choosing the layer on
            the test part favours the model.
        layers: one result a layer; 0 is the embedding output.
        characters: the same probe on :func:`character_features`.
    """

    result: Estimate
    layers: tuple[RegressionResult, ...]
    characters: RegressionResult


@dataclass(frozen=True, eq=False)
class Extrapolation:
    """Errors of a probe inside and beyond the range that it was trained on.

    Attributes:
        result: log of (error beyond / error inside), root mean squared, at the layer that is best
            inside.
        layer: that layer.
        inside, beyond: root mean squared errors at that layer.
        values, predicted: true and predicted numbers of both test parts at that layer.
        trained: which of them lie inside the trained range.
    """

    result: Estimate
    layer: int
    inside: float
    beyond: float
    values: np.ndarray
    predicted: np.ndarray
    trained: np.ndarray


def number_vectors(encoder: Encoder, examples: Sequence[NumberExample]) -> np.ndarray:
    """[L + 1, N, D] vectors of the number in every example, mean over its pieces.

    Raises:
        KnowledgeError: no examples.
    """
    if not examples:
        raise KnowledgeError("no numbers")
    texts, places = [], []
    for example in examples:
        before, after = example.text[: example.start].split(), example.text[example.end :].split()
        texts.append(WordList((*before, example.surface, *after), example.text))
        places.append(len(before))
    collected = collect(encoder, texts)
    rows = [collected.rows_of(i).start + place for i, place in enumerate(places)]
    return collected.arrays["hidden_states"][:, rows]


def character_features(surfaces: Sequence[str]) -> np.ndarray:
    """[N, F] one-hot characters at their places from the left and from the right.

    Raises:
        KnowledgeError: nothing, or an empty number.
    """
    if not surfaces or not all(surfaces):
        raise KnowledgeError("every number needs at least one character")
    width = max(map(len, surfaces))
    alphabet = {c: i for i, c in enumerate(sorted(set("".join(surfaces))))}
    out = np.zeros((len(surfaces), 2, width, len(alphabet)), dtype=np.float32)
    for row, surface in enumerate(surfaces):
        for place, character in enumerate(surface):
            out[row, 0, place, alphabet[character]] = 1
            out[row, 1, len(surface) - 1 - place, alphabet[character]] = 1
    return out.reshape(len(surfaces), -1)


def decode_numbers(
    vectors: np.ndarray, examples: Sequence[NumberExample], *, seed: int = 0, model: str = "vectors"
) -> NumberProbe:
    """Read the value of numbers that a ridge probe was not trained on.

    Raises:
        UnmatchedError: not one vector for each example.
    """
    check_numbers(vectors, examples)
    split = random_split(len(examples), seed=seed)
    values = [example.value for example in examples]
    characters = character_features([example.surface for example in examples])
    return _probe(vectors, characters, values, split, model)


def add_numbers(
    vectors: np.ndarray,
    examples: Sequence[NumberExample],
    sums: Sequence[AdditionExample],
    *,
    seed: int = 0,
    model: str = "vectors",
) -> NumberProbe:
    """Read the sum of two numbers from their two vectors side by side.

    The probe is tested on sums of numbers that occur in no training sum; mixed sums are left out.

    Raises:
        UnmatchedError: not one vector for each example.
        KnowledgeError: a sum of a number without example.
    """
    check_numbers(vectors, examples)
    place = {int(example.value): i for i, example in enumerate(examples)}
    for pair in sums:
        for number in (pair.left, pair.right):
            if number not in place:
                raise KnowledgeError(f"{number} in {pair.text!r} has no vector")
    left, right = ([place[getattr(s, side)] for s in sums] for side in ("left", "right"))
    features = np.concatenate([vectors[:, left], vectors[:, right]], axis=2)
    characters = character_features([example.surface for example in examples])
    characters = np.concatenate([characters[left], characters[right]], axis=1)
    split = _pure(random_split(len(examples), dev=0.2, test=0.3, seed=seed), [left, right])
    return _probe(features, characters, [s.total for s in sums], split, model)


def extrapolate(
    vectors: np.ndarray,
    examples: Sequence[NumberExample],
    limit: float,
    *,
    seed: int = 0,
    model: str = "vectors",
) -> Extrapolation:
    """Train below ``limit``, test on other numbers below it and on all numbers from it upwards.

    Raises:
        UnmatchedError: not one vector for each example.
        KnowledgeError: no numbers on one side of the limit.
    """
    check_numbers(vectors, examples)
    values = np.array([example.value for example in examples])
    low, high = np.flatnonzero(values < limit), np.flatnonzero(values >= limit)
    if len(low) < 10 or not len(high):
        raise KnowledgeError(f"{len(low)} numbers below {limit:g} and {len(high)} from it upwards")
    part = random_split(len(low), seed=seed)
    data = torch.as_tensor(np.asarray(vectors), dtype=torch.float32)
    column = torch.as_tensor(values, dtype=torch.float32)[:, None]
    fitted = fit_ridge(
        take(data, low[part.train]), column[low[part.train]],
        dev=(take(data, low[part.dev]), column[low[part.dev]]),
    )  # fmt: skip
    test = np.concatenate([low[part.test], high])
    predicted = fitted.predict(take(data, test))[:, :, 0].double().numpy()
    wrong, inside = (predicted - values[test]) ** 2, values[test] < limit
    layer = int(wrong[:, inside].mean(1).argmin())
    errors = [np.sqrt(wrong[layer, side].mean()) for side in (inside, ~inside)]
    rng = np.random.default_rng(seed)
    draws = [
        wrong[layer, side][rng.integers(0, side.sum(), (RESAMPLES, side.sum()))].mean(1)
        for side in (inside, ~inside)
    ]
    value = float(np.log(errors[1] / errors[0]))
    result = Estimate(
        value=value, unit="log ratio", n=len(test), model=model, seed=seed,
        interval=percentile_interval(np.log(draws[1] / draws[0]) / 2, value),
    )  # fmt: skip
    return Extrapolation(
        result, layer, float(errors[0]), float(errors[1]), values[test], predicted[layer], inside
    )


def find_largest(
    vectors: np.ndarray,
    examples: Sequence[NumberExample],
    lists: Sequence[MaximumExample],
    *,
    layer: int,
    steps: int = 300,
    seed: int = 0,
    model: str = "vectors",
) -> Estimate:
    """Share of lists whose largest number a linear score finds, for numbers and lists held out.

    Baselines: ``chance``, and ``characters``: the same scorer on :func:`character_features`.

    Raises:
        UnmatchedError: not one vector for each example, or lists of different lengths.
        KnowledgeError: a list with a number without example, or too few lists to hold any out.
    """
    check_numbers(vectors, examples)
    place = {example.value: i for i, example in enumerate(examples)}
    if len({len(item.values) for item in lists}) != 1:
        raise UnmatchedError("the lists have different lengths")
    if odd := [v for item in lists for v in item.values if v not in place]:
        raise KnowledgeError(f"{odd[0]:g} has no vector")
    rows = np.array([[place[v] for v in item.values] for item in lists])
    gold = torch.tensor([item.largest for item in lists])
    parts = random_split(len(examples), dev=0, test=0.4, seed=seed)
    split = _pure(parts, list(rows.T))
    characters = character_features([example.surface for example in examples])
    shares = {}
    for name, table in (("model", vectors[layer]), ("characters", characters)):
        features = torch.as_tensor(np.asarray(table), dtype=torch.float32)[None]
        scaled, _, _ = standardise(features)
        right = _score_lists(scaled[0], rows, gold, split, steps)
        shares[name] = right
    n = len(split.test)
    value = float(shares["model"].mean())
    drawn = np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))
    return Estimate(
        value=value, unit="share", n=n, model=model, seed=seed,
        interval=percentile_interval(shares["model"][drawn].mean(1), value),
        baselines={
            "chance": 1 / rows.shape[1],
            "characters": float(shares["characters"].mean()),
        },
    )  # fmt: skip


def check_numbers(vectors: np.ndarray, examples: Sequence[NumberExample]) -> None:
    """Refuse vectors that are not [S, N, D] for N examples.

    Raises:
        UnmatchedError: stating both sizes.
    """
    if np.ndim(vectors) != 3 or np.shape(vectors)[1] != len(examples):
        raise UnmatchedError(
            f"vectors of shape {np.shape(vectors)} for {len(examples)} numbers; "
            "expected [layers, numbers, width]"
        )


def _probe(
    vectors: np.ndarray, characters: np.ndarray, targets: Sequence[float], split: Split, model: str
) -> NumberProbe:
    layers = regress_layers(vectors, targets, split, model=model)
    (written,) = regress_layers(characters[None], targets, split, model="characters")
    best = max(layers, key=lambda result: result.r2)
    result = Estimate(
        value=best.r2, unit="R squared", n=best.n_test, model=model, seed=split.seed,
        interval=best.interval, baselines={"characters": written.r2},
    )  # fmt: skip
    return NumberProbe(result, tuple(layers), written)


def _pure(parts: Split, columns: Sequence[Sequence[int]]) -> Split:
    """The split of rows all of whose numbers lie in the same part."""

    def rows(part: np.ndarray) -> np.ndarray:
        inside = np.all([np.isin(column, part) for column in columns], axis=0)
        return np.flatnonzero(inside)

    train, dev, test = rows(parts.train), rows(parts.dev), rows(parts.test)
    if not len(train) or not len(test):
        raise KnowledgeError("too few sums or lists to hold any numbers out")
    return Split(train, dev, test, parts.seed)


def _score_lists(
    features: torch.Tensor, rows: np.ndarray, gold: torch.Tensor, split: Split, steps: int
) -> np.ndarray:
    """[n_test] hits of a linear score trained by softmax over each list."""
    weight = torch.zeros(features.shape[1], requires_grad=True)
    optimiser = torch.optim.AdamW([weight], lr=1e-2, weight_decay=1e-1)
    train = torch.as_tensor(split.train)
    places = torch.as_tensor(rows)
    with torch.enable_grad():
        for _ in range(steps):
            optimiser.zero_grad()
            cross_entropy((features @ weight)[places[train]], gold[train]).backward()
            optimiser.step()
    test = torch.as_tensor(split.test)
    said = (features @ weight.detach())[places[test]].argmax(1)
    return (said == gold[test]).double().numpy()
