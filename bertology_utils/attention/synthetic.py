"""Attention maps whose pattern is known because we made it, and a classifier trained on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..cloze import wilson_interval
from .patterns import FEATURES, PATTERNS, map_features, rule

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

SIZES = (8, 40)
#: Up to this share of every map is noise.
MAX_NOISE = 0.6


@dataclass(frozen=True, eq=False)
class LabelledMap:
    """A made-up map.

    Attributes:
        pattern: [T, T], rows sum to 1.
        segment: [T] 0, or 1 in the second of two texts.
        label: one of :data:`~bertology_utils.attention.patterns.PATTERNS`.
    """

    pattern: np.ndarray
    segment: np.ndarray
    label: str


def synthetic_maps(n: int, seed: int = 0) -> list[LabelledMap]:
    """``n`` maps, the five patterns in turn, with noise, of 8 to 40 pieces, one text or two.

    Raises:
        ValueError: ``n`` below 1.
    """
    if n < 1:
        raise ValueError(f"n starts at 1, got {n}")
    draw = np.random.default_rng(seed)
    return [_make(draw, PATTERNS[i % len(PATTERNS)]) for i in range(n)]


def _make(draw: np.random.Generator, label: str) -> LabelledMap:
    t = int(draw.integers(SIZES[0], SIZES[1] + 1))
    segment = np.zeros(t, int)
    if label == "block" or draw.random() < 0.5:
        segment[int(draw.integers(t // 4 + 1, t - t // 4)) :] = 1
    if label == "diagonal":
        clean = _diagonal(draw, t)
    elif label == "vertical":
        clean = _vertical(draw, t)
    elif label == "vertical+diagonal":
        part = draw.uniform(0.35, 0.65)
        clean = part * _diagonal(draw, t) + (1 - part) * _vertical(draw, t)
    elif label == "block":
        same = segment[:, None] == segment[None, :]
        clean = _normalised(same * draw.uniform(0.5, 1.5, (t, t)))
    else:
        clean = _content(draw, segment)
    noise = draw.uniform(0, MAX_NOISE)
    return LabelledMap((1 - noise) * clean + noise * _softmax(draw, t, 1.0), segment, label)


def _diagonal(draw: np.random.Generator, t: int) -> np.ndarray:
    """One main offset out of three, sometimes shared with another; the edges look at themselves."""
    weights = draw.dirichlet([0.5, 0.5, 0.5])
    found = np.zeros((t, t))
    for offset, weight in zip((-1, 0, 1), weights, strict=True):
        columns = np.clip(np.arange(t) + offset, 0, t - 1)
        np.add.at(found, (np.arange(t), columns), weight)
    return found


def _vertical(draw: np.random.Generator, t: int) -> np.ndarray:
    """One to three columns; first and last piece, the separators, are likelier than others."""
    n_columns = int(draw.integers(1, 4))
    odds = np.ones(t)
    odds[[0, -1]] = t / 3
    columns = draw.choice(t, n_columns, replace=False, p=odds / odds.sum())
    found = np.zeros((t, t))
    found[:, columns] = draw.dirichlet(np.ones(n_columns)) * draw.uniform(0.7, 1.3, (t, n_columns))
    return _normalised(found)


def _content(draw: np.random.Generator, segment: np.ndarray) -> np.ndarray:
    """Attention that follows the content: sharp or broad, sometimes kept within the own text."""
    t = len(segment)
    found = _softmax(draw, t, draw.uniform(0.3, 3.5))
    if segment.any() and draw.random() < 0.3:
        # Sharp attention inside the own text is no block: a block is even.
        same = segment[:, None] == segment[None, :]
        found = _normalised(_softmax(draw, t, draw.uniform(2.0, 3.5)) * (same + 1e-6))
    return found


def _softmax(draw: np.random.Generator, t: int, sharpness: float) -> np.ndarray:
    return _normalised(np.exp(sharpness * draw.standard_normal((t, t))))


def _normalised(weights: np.ndarray) -> np.ndarray:
    return weights / weights.sum(-1, keepdims=True)


@dataclass(frozen=True, eq=False)
class PatternClassifier:
    """A quadratic logistic regression over map features, and how well it does on unseen maps.

    Attributes:
        value: accuracy on ``n`` held-out synthetic maps.
        interval: its 95 % Wilson interval.
        baselines: ``majority`` (five equal classes) and ``rule``, the hand-written rule.
        f1: pattern -> F1 on the held-out maps.
    """

    value: float
    interval: tuple[float, float]
    n: int
    seed: int
    baselines: Mapping[str, float]
    f1: Mapping[str, float]
    fitted: Pipeline = field(repr=False)
    model: str = "synthetic maps"
    unit: str = "share"

    def predict(self, features: np.ndarray) -> np.ndarray:
        """[..., F] -> [...] indices into the patterns.

        Raises:
            ValueError: another number of features.
        """
        if features.shape[-1] != len(FEATURES):
            raise ValueError(f"{features.shape[-1]} features, not {len(FEATURES)}")
        flat = self.fitted.predict(features.reshape(-1, len(FEATURES)))
        return flat.reshape(features.shape[:-1])

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """[..., F] -> [..., 5] probability of each pattern."""
        flat = self.fitted.predict_proba(features.reshape(-1, len(FEATURES)))
        return flat.reshape(*features.shape[:-1], len(PATTERNS))


def train_pattern_classifier(
    n_train: int = 2000, n_test: int = 1000, seed: int = 0
) -> PatternClassifier:
    """Train on synthetic maps and measure on others.

    Raises:
        ValueError: too few maps to hold every pattern.
    """
    if min(n_train, n_test) < len(PATTERNS):
        raise ValueError(f"{n_train} and {n_test} maps cannot hold all {len(PATTERNS)} patterns")
    # Imported here: it takes a second, and most chapters that look at attention train none.
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import f1_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    x, y = _features(n_train, 2 * seed)
    held_x, held_y = _features(n_test, 2 * seed + 1)
    fitted = make_pipeline(
        StandardScaler(), PolynomialFeatures(2, include_bias=False),
        StandardScaler(), LogisticRegression(max_iter=2000),
    ).fit(x, y)  # fmt: skip
    guess = fitted.predict(held_x)
    right = int((guess == held_y).sum())
    scores = f1_score(held_y, guess, average=None, labels=range(len(PATTERNS)))
    return PatternClassifier(
        value=right / n_test,
        interval=wilson_interval(right, n_test),
        n=n_test,
        seed=seed,
        baselines={
            "majority": float(np.bincount(held_y).max() / n_test),
            "rule": float((rule(held_x) == held_y).mean()),
        },
        f1=dict(zip(PATTERNS, map(float, scores), strict=True)),
        fitted=fitted,
    )


def _features(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    maps = synthetic_maps(n, seed)
    x = np.stack([map_features(m.pattern, m.segment) for m in maps])
    return x, np.array([PATTERNS.index(m.label) for m in maps])
