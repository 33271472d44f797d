"""What a thing is, is like, and is good for: probes on its word, and from one to the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from ..activations import collect
from ..encoder import Encoder
from ..resampling import RESAMPLES, Estimate, percentile_interval
from ..stimuli.things import Feature, Thing
from ..words import WordList
from .errors import KnowledgeError, UnmatchedError

#: neutral sentences that a noun is read in; its vector is the mean over them
CARRIERS = ("This is {} .", "They saw {} .", "We talked about {} .")


@dataclass(frozen=True, eq=False)
class FeatureProbes:
    """Cross-validated yes-or-no probes for F features of N things, at every layer.

    Attributes:
        features: the features.
        gold: [N, F] what is true.
        predicted: [S, N, F] what the probe says of a thing it was not trained on; S = L + 1
            entries of the hidden states, 0 being the embedding output.
        model, seed: name of the model, seed of the folds.
    """

    features: tuple[Feature, ...]
    gold: np.ndarray
    predicted: np.ndarray
    model: str
    seed: int

    def f1(self) -> np.ndarray:
        """[S, F] F1 of "yes" for every feature; 0 where a probe never rightly says yes."""
        right = (self.predicted & self.gold).sum(1)
        return 2 * right / (self.predicted.sum(1) + self.gold.sum(0))

    def best_layer(self) -> int:
        """The layer with the highest mean F1 over all features."""
        return int(self.f1().mean(1).argmax())

    def by_kind(self, layer: int, *kinds: str) -> Estimate:
        """Mean F1 of the features of some kinds at a layer; the bootstrap is over features."""
        values = self.f1()[layer, self._of(kinds)]
        drawn = np.random.default_rng(self.seed).integers(0, len(values), (RESAMPLES, len(values)))
        value = float(values.mean())
        return Estimate(
            value=value, unit="share", n=len(values), model=self.model, seed=self.seed,
            interval=percentile_interval(values[drawn].mean(1), value),
            baselines={"always_yes": float(self._always_yes()[self._of(kinds)].mean())},
        )  # fmt: skip

    def gap(self, layer: int, first: Sequence[str], second: Sequence[str]) -> Estimate:
        """Mean F1 of the kinds ``first`` minus that of ``second``; features are resampled."""
        scores, rng = self.f1()[layer], np.random.default_rng(self.seed)
        parts = [scores[self._of(first)], scores[self._of(second)]]
        draws = [p[rng.integers(0, len(p), (RESAMPLES, len(p)))].mean(1) for p in parts]
        value = float(parts[0].mean() - parts[1].mean())
        return Estimate(
            value=value, unit="share difference", n=sum(map(len, parts)), model=self.model,
            seed=self.seed, interval=percentile_interval(draws[0] - draws[1], value),
        )  # fmt: skip

    def two_sided(self, layer: int, *kinds: str) -> Estimate:
        """Mean of the F1 of "yes" and of "no" over all decisions; things are resampled.

        The baseline ``majority`` says of every feature what is true of most things.
        """
        chosen = self._of(kinds)
        gold, said = self.gold[:, chosen], self.predicted[layer][:, chosen]
        usual = np.broadcast_to(gold.mean(0) > 0.5, gold.shape)
        return _two_sided(gold, said, usual, self.model, self.seed)

    def _of(self, kinds: Sequence[str]) -> np.ndarray:
        rows = np.array([i for i, f in enumerate(self.features) if f.kind in kinds], dtype=int)
        if not len(rows):
            raise KnowledgeError(f"no feature of kind {', '.join(kinds) or '(none named)'}")
        return rows

    def _always_yes(self) -> np.ndarray:
        """[F] F1 of saying yes to everything."""
        share = self.gold.mean(0)
        return 2 * share / (1 + share)


def thing_vectors(encoder: Encoder, found: Sequence[Thing]) -> np.ndarray:
    """[L + 1, N, D] vectors of the nouns, mean over their pieces and over :data:`CARRIERS`."""
    texts = [WordList(tuple(c.format(t.phrase).split())) for t in found for c in CARRIERS]
    collected = collect(encoder, texts)
    # The noun is the last word before the full stop.
    rows = [collected.rows_of(i).stop - 2 for i in range(len(texts))]
    states = collected.arrays["hidden_states"][:, rows]
    layers, _, width = states.shape
    return states.reshape(layers, len(found), len(CARRIERS), width).mean(2)


def probe_features(
    vectors: np.ndarray,
    found: Sequence[Thing],
    features: Sequence[Feature],
    *,
    folds: int = 5,
    seed: int = 0,
    model: str = "vectors",
) -> FeatureProbes:
    """Logistic regressions from vectors [S, N, D] of N things to their features.

    Every thing is judged by probes that were trained on the other folds. The penalty is that of
    scikit-learn's default (C = 1) on standardised columns, and is not tuned.

    Raises:
        UnmatchedError: not one vector for each thing.
        KnowledgeError: no features, or fewer things than folds.
    """
    data = torch.as_tensor(np.asarray(vectors), dtype=torch.float32)
    if data.ndim != 3 or data.shape[1] != len(found):
        raise UnmatchedError(f"vectors of shape {tuple(data.shape)} for {len(found)} things")
    if not features:
        raise KnowledgeError("no features to probe for")
    part = _parts(len(found), folds, seed)
    gold = np.array([[thing.has(feature) for feature in features] for thing in found])
    said = np.empty((data.shape[0], *gold.shape), dtype=bool)
    for number in range(folds):
        test = part == number
        targets = torch.as_tensor(gold[~test], dtype=torch.float32)
        score = fit_logistic(data[:, ~test], targets, torch.ones_like(targets))
        said[:, test] = (score(data[:, test]) > 0).numpy()
    return FeatureProbes(tuple(features), gold, said, model, seed)


@dataclass(frozen=True)
class Inference:
    """Can an affordance be told from a property, when the thing is not named?

    Each figure is the mean of the F1 of "yes" and of "no", with the baseline ``majority`` (what is
    true of most things). n counts things.

    Attributes:
        unseen: pairs of property and affordance that the probe never met, about unseen things.
        seen: pairs that it met in training, about unseen things.
        table: what counting says about the seen pairs, without any model: the most that the
            property alone tells about the affordance.
    """

    unseen: Estimate
    seen: Estimate
    table: Estimate


def pair_text(given: Feature, wanted: Feature) -> str:
    """A property and an affordance of something unnamed, as text."""
    return f"{given.statement.capitalize()}. {wanted.statement.capitalize()}."


def pair_vectors(
    encoder: Encoder, given: Sequence[Feature], wanted: Sequence[Feature]
) -> np.ndarray:
    """[L + 1, P, D] vectors of every property with every affordance, mean over the pieces.

    Pairs are in the order of ``given``, and for each of ``wanted``. The text names neither a thing
    nor anything else: "It is sharp. You can cut something with it."

    Raises:
        KnowledgeError: no property or no affordance.
    """
    if not given or not wanted:
        raise KnowledgeError("no property or no affordance to pair")
    texts = [pair_text(p, a) for p in given for a in wanted]
    return collect(encoder, texts, reduce="text_mean").arrays["hidden_states"]


def infer_features(
    vectors: np.ndarray,
    found: Sequence[Thing],
    given: Sequence[Feature],
    wanted: Sequence[Feature],
    *,
    folds: int = 5,
    seed: int = 0,
    model: str = "vectors",
) -> Inference:
    """From one property to one affordance (after Forbes et al. 2019, arXiv 1908.02899).

    The vector of a pair is asked whether the affordance is true of a thing that has the property.
    Test things never occur in training; for ``unseen``, neither do the pairs.

    Args:
        vectors: [P, D], one layer of :func:`pair_vectors`.

    Raises:
        UnmatchedError: not one vector for each pair.
        KnowledgeError: fewer things or pairs than folds.
    """
    n_pairs = len(given) * len(wanted)
    data = torch.as_tensor(np.asarray(vectors), dtype=torch.float32)[None]
    if data.ndim != 3 or data.shape[1] != n_pairs or not n_pairs:
        raise UnmatchedError(f"vectors of shape {np.shape(vectors)} for {n_pairs} pairs")
    has = np.array([[t.has(p) for p in given] for t in found])
    does = np.array([[t.has(a) for a in wanted] for t in found])
    # [N, P] which pairs ask about which thing, and what is true of it.
    asked = np.repeat(has, len(wanted), axis=1)
    true = np.tile(does, (1, len(given)))
    thing_part = _parts(len(found), folds, seed)
    pair_part = _parts(n_pairs, folds, seed + 1)
    usual = np.empty_like(true)
    said = {name: np.zeros_like(true) for name in ("unseen", "seen", "table")}
    met = {name: np.zeros_like(true) for name in ("unseen", "seen")}
    for number in range(folds):
        test = thing_part == number
        yes = (asked & true)[~test].sum(0)
        count = asked[~test].sum(0)
        # What most training things do, affordance by affordance.
        usual[test] = np.tile(does[~test].mean(0) > 0.5, len(given))
        for name, pool in (("seen", np.ones(n_pairs, bool)), ("unseen", pair_part != number)):
            ask = ~pool if name == "unseen" else pool
            use = pool & (count > 0)
            rate = torch.as_tensor(yes[use] / count[use], dtype=torch.float32)[:, None]
            weight = torch.as_tensor(count[use], dtype=torch.float32)[:, None]
            score = fit_logistic(data[:, use], rate, weight)(data)[0, :, 0].numpy() > 0
            said[name][np.ix_(test, ask)] = score[ask]
            met[name][np.ix_(test, ask)] = True
        said["table"][test] = np.divide(yes, count, out=np.zeros(n_pairs), where=count > 0) > 0.5
    met["table"] = met["seen"]
    results = {
        name: _two_sided(true, said[name], usual, model, seed, asked & met[name]) for name in said
    }
    return Inference(**results)


def fit_logistic(train: Tensor, targets: Tensor, weights: Tensor):
    """Logistic regressions for S layers and F targets: a map from [S, M, D] to logits [S, M, F].

    Minimises sum(weights * cross-entropy) + ||w||^2 / 2 for every layer and target on standardised
    columns, which is scikit-learn's ``LogisticRegression(C=1)``.

    Args:
        train: [S, N, D]; targets: [N, F] shares of "yes" in 0..1; weights: [N, F].
    """
    mean = train.mean(1, keepdim=True)
    scale = train.std(1, keepdim=True, correction=0)
    scale = torch.where(scale > 1e-6 * mean.abs() + 1e-12, scale, torch.ones_like(scale))
    rows = (train - mean) / scale
    shape = (train.shape[0], train.shape[2], targets.shape[1])
    with torch.enable_grad():
        weight = torch.zeros(shape, requires_grad=True)
        bias = torch.zeros(shape[0], 1, shape[2], requires_grad=True)
        optimiser = torch.optim.LBFGS(
            [weight, bias], max_iter=100, tolerance_grad=1e-2, tolerance_change=1e-10,
            history_size=20, line_search_fn="strong_wolfe",
        )  # fmt: skip
        wide = targets.expand(shape[0], -1, -1), weights.expand(shape[0], -1, -1)

        def closure() -> Tensor:
            optimiser.zero_grad()
            logits = torch.baddbmm(bias, rows, weight)
            loss = binary_cross_entropy_with_logits(logits, wide[0], wide[1], reduction="sum")
            loss = loss + weight.square().sum() / 2
            loss.backward()
            return loss

        optimiser.step(closure)
    final, start = weight.detach(), bias.detach()
    return lambda given: torch.baddbmm(start, (given - mean) / scale, final)


def _parts(n: int, folds: int, seed: int) -> np.ndarray:
    if folds < 2 or n < folds:
        raise KnowledgeError(f"{n} items cannot fill {folds} parts of at least two")
    return np.random.default_rng(seed).permutation(n) % folds


def _two_sided(
    gold: np.ndarray,
    said: np.ndarray,
    usual: np.ndarray,
    model: str,
    seed: int,
    counted: np.ndarray | None = None,
) -> Estimate:
    """Mean F1 of "yes" and "no" over decisions [N, F], resampling the N things."""
    use = np.ones_like(gold) if counted is None else counted
    value, draws = _mean_f1(gold, said, use, seed)
    baseline, _ = _mean_f1(gold, usual, use, seed)
    return Estimate(
        value=value, unit="share", n=int(use.any(1).sum()), model=model, seed=seed,
        interval=percentile_interval(draws, value), baselines={"majority": baseline},
    )  # fmt: skip


def _mean_f1(
    gold: np.ndarray, said: np.ndarray, use: np.ndarray, seed: int
) -> tuple[float, np.ndarray]:
    # [N, 3] hits of yes, hits of no, mistakes: all that both F1 need.
    counts = np.stack(
        [(gold & said & use).sum(1), (~gold & ~said & use).sum(1), ((gold != said) & use).sum(1)], 1
    ).astype(float)
    drawn = np.random.default_rng(seed).integers(0, len(counts), (RESAMPLES, len(counts)))

    def mean(sums: np.ndarray) -> np.ndarray:
        twice = 2 * sums[..., :2]
        below = twice + sums[..., 2:]
        return np.divide(twice, below, out=np.zeros_like(twice), where=below > 0).mean(-1)

    return float(mean(counts.sum(0))), mean(counts[drawn].sum(1))
