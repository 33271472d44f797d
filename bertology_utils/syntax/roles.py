"""Is [CLS] a sum of words bound to roles, and to which ones?

A tensor-product decomposition (McCoy et al. 2019, arXiv 1812.08718): a sentence becomes the sum
over its words of filler (x) role, and a linear map has to rebuild the model's vector from it.
Fillers are the model's own input vectors. A role is a vector of its own plus one that all roles
share, so that every scheme can also say what a bag of words says. Nothing is drawn or started
somewhere: the inner product of two such sums is the sum over pairs of words of
``<filler, filler'> * (1 + weight * [role = role'])``, and kernel ridge regression does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from ..probes import Split
from ..resampling import Estimate, percentile_interval, resampled_means
from ..stimuli import Sentence
from .vectors import TreebankVectors

Roles = Callable[[Sentence], list[tuple[Hashable, ...]]]


def bag_of_words(sentence: Sentence) -> list[tuple[Hashable, ...]]:
    """One role for all words."""
    return [()] * len(sentence)


def left_to_right(sentence: Sentence) -> list[tuple[Hashable, ...]]:
    """The place, counted from the beginning."""
    return [(i,) for i in range(len(sentence))]


def right_to_left(sentence: Sentence) -> list[tuple[Hashable, ...]]:
    """The place, counted from the end."""
    return [(len(sentence) - 1 - i,) for i in range(len(sentence))]


def bidirectional(sentence: Sentence) -> list[tuple[Hashable, ...]]:
    """Both places."""
    return [(i, len(sentence) - 1 - i) for i in range(len(sentence))]


def tree_positions(sentence: Sentence) -> list[tuple[Hashable, ...]]:
    """The way down the dependency tree: left or right of the head, step by step from the root."""
    paths: dict[int, tuple[str, ...]] = {sentence.root: ()}

    def path(word: int) -> tuple[str, ...]:
        if word not in paths:
            head = sentence.head_of(word)
            paths[word] = (*path(head), "L" if word < head else "R")
        return paths[word]

    return [path(i) for i in range(len(sentence))]


#: The five schemes that Jawahar et al. 2019 (P19-1356) compare.
SCHEMES: dict[str, Roles] = {
    "bag of words": bag_of_words,
    "left to right": left_to_right,
    "right to left": right_to_left,
    "bidirectional": bidirectional,
    "tree": tree_positions,
}


@dataclass(frozen=True, eq=False)
class RoleFit:
    """How well one scheme rebuilds the vectors of M test sentences.

    Attributes:
        scheme: its name; n_roles: roles that it uses.
        errors: [M] squared error of each test sentence, summed over dimensions.
        spread: [M] squared distance of each test vector from the training mean.
        model: name of the encoder; seed: of the bootstrap.
    """

    scheme: str
    n_roles: int
    errors: np.ndarray
    spread: np.ndarray
    model: str
    seed: int

    @property
    def explained(self) -> Estimate:
        """Share of the variance around the training mean that is explained; may be below 0."""
        value = 1 - float(self.errors.sum() / self.spread.sum())
        draws = 1 - resampled_means(self.errors, self.spread, seed=self.seed)
        return Estimate(
            value=value, unit="R squared", n=len(self.errors), model=self.model, seed=self.seed,
            interval=percentile_interval(draws, value),
        )  # fmt: skip

    def minus(self, other: RoleFit) -> Estimate:
        """Explained share of this scheme minus the other's, on the same sentences (paired)."""
        gain = other.errors - self.errors
        value = float(gain.sum() / self.spread.sum())
        draws = resampled_means(gain, self.spread, seed=self.seed)
        return Estimate(
            value=value, unit="share difference", n=len(gain), model=self.model, seed=self.seed,
            interval=percentile_interval(draws, value),
        )  # fmt: skip


def role_fits(
    vectors: TreebankVectors,
    sentences: Sequence[Sentence],
    split: Split,
    *,
    layer: int = -1,
    seed: int = 0,
) -> dict[str, RoleFit]:
    """Fit every scheme of :data:`SCHEMES` to the [CLS] vectors of a layer.

    Args:
        vectors: of the sentences; input vectors are the fillers, :attr:`first` the target.
        sentences: with dependency trees.
        split: over sentences; the development part chooses each scheme's ridge penalty.
        layer: whose [CLS] to rebuild; the last by default.
        seed: of the bootstrap.

    Raises:
        ValueError: no development part.
    """
    if not len(split.dev):
        raise ValueError("choosing a penalty takes a development part of the split")
    train = np.isin(vectors.sentence, split.train)
    inputs = vectors.words[0]
    fillers = inputs - inputs[train].mean(0)
    # A constant component, as large as the rest, lets a role count words whatever they are.
    size = np.sqrt((fillers[train] ** 2).sum(1).mean())
    fillers = np.concatenate([fillers, np.full((len(fillers), 1), size, fillers.dtype)], axis=1)
    target = vectors.first[layer].astype(np.float64)
    target = target - target[split.train].mean(0)
    bag = _products([()] * len(fillers), fillers, vectors.sentence, len(sentences))
    fits = {}
    for name, scheme in SCHEMES.items():
        roles = [role for sentence in sentences for role in scheme(sentence)]
        bound = _products(roles, fillers, vectors.sentence, len(sentences))
        errors, spread = _kernel_ridge(bag, bound, target, split)
        fits[name] = RoleFit(name, len(set(roles)), errors, spread, vectors.model, seed)
    return fits


#: penalties relative to the mean squared length of the training sentences' tensors
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
#: how much a role's own vector counts beside the one that all share
WEIGHTS = (0.03, 0.3, 3.0)


def _products(
    roles: Sequence[tuple[Hashable, ...]], fillers: np.ndarray, sentence: np.ndarray, n: int
) -> np.ndarray:
    """[n, n] inner products of sentences, summed over pairs of words with the same role."""
    members: dict[tuple[Hashable, ...], list[int]] = {}
    for word, role in enumerate(roles):
        members.setdefault(role, []).append(word)
    out = np.zeros((n, n))
    for words in members.values():
        # Words come sentence by sentence, so equal neighbours belong together.
        owners, first = np.unique(sentence[words], return_index=True)
        sums = np.add.reduceat(fillers[words], first, axis=0)
        out[np.ix_(owners, owners)] += sums @ sums.T
    return out


def _kernel_ridge(
    bag: np.ndarray, bound: np.ndarray, target: np.ndarray, split: Split
) -> tuple[np.ndarray, np.ndarray]:
    """(squared error, squared length) of each test sentence's target [M, D]."""
    train, dev, test = split.train, split.dev, split.test
    lowest, said = np.inf, np.zeros_like(target[test])
    for weight in WEIGHTS:
        kernel = bag + weight * bound
        mean = kernel[:, train].mean(1)
        centred = kernel - mean[:, None] - mean[None] + mean[train].mean()
        values, axes = np.linalg.eigh(centred[np.ix_(train, train)])
        inner, sides = axes.T @ target[train], centred[:, train] @ axes
        for penalty in PENALTIES:
            # The trace over n is the mean squared length, so the penalty scales with n of them.
            shrunk = inner / (np.maximum(values, 0) + penalty * values.sum())[:, None]
            error = ((sides[dev] @ shrunk - target[dev]) ** 2).sum()
            if error < lowest:
                lowest, said = error, sides[test] @ shrunk
    return ((said - target[test]) ** 2).sum(1), (target[test] ** 2).sum(1)
