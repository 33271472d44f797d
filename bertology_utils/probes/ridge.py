"""Ridge probes in closed form: one decomposition a layer serves every penalty and every target."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from .data import Split, as_features, standardise, take
from .errors import NonFiniteError, UnequalLengthError

#: penalties relative to the mean squared singular value, that is to N for standardised features
PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)


@dataclass(frozen=True, eq=False)
class RidgeProbes:
    """S ridge regressions of the same T targets; ``features`` are raw.

    Attributes:
        weight: [S, D, T]; bias: [S, 1, T], both for raw features.
        alpha: penalty of each layer, as scikit-learn's ``Ridge`` counts it.
    """

    weight: Tensor
    bias: Tensor
    alpha: tuple[float, ...]

    def predict(self, features: Tensor) -> Tensor:
        """[S, N, D] -> [S, N, T]"""
        return torch.baddbmm(self.bias, features, self.weight)


def fit_ridge(
    train: Tensor,
    targets: Tensor,
    *,
    dev: tuple[Tensor, Tensor] | None = None,
    alpha: float | None = None,
) -> RidgeProbes:
    """Minimise ||targets - X w||^2 + alpha ||w||^2 over standardised features, per layer.

    Args:
        train: [S, N, D]; targets: [N, T].
        dev: features [S, M, D] and targets [M, T]; chooses among :data:`PENALTIES` * N by the
            squared error, if ``alpha`` is None.
        alpha: one penalty for all layers.

    Raises:
        ValueError: neither ``alpha`` nor a development part; a penalty that is not above 0.
    """
    if alpha is None and dev is None:
        raise ValueError("choosing a penalty takes a development part: give one, or alpha")
    if alpha is not None and not alpha > 0:
        raise ValueError(f"alpha must be above 0, got {alpha}")
    rows, mean, scale = standardise(train)
    middle = targets.mean(0)
    values, vectors = torch.linalg.eigh((rows.transpose(1, 2) @ rows).double())
    cross = rows.transpose(1, 2) @ (targets - middle)
    inner = vectors.transpose(1, 2) @ cross.double()

    def weights(penalty: float) -> Tensor:
        solved = inner / (values.clamp_min(0) + penalty)[:, :, None]
        return (vectors @ solved).to(train.dtype)

    tried = [alpha] if alpha is not None else [p * rows.shape[1] for p in PENALTIES]
    chosen = [tried[0]] * len(rows)
    weight = weights(tried[0])
    if len(tried) > 1:
        held = (dev[0] - mean) / scale
        lowest = torch.full((len(rows),), torch.inf, device=rows.device)
        for penalty in tried:
            candidate = weights(penalty)
            error = (held @ candidate + middle - dev[1]).square().mean((1, 2))
            for layer in torch.nonzero(error < lowest)[:, 0].tolist():
                weight[layer], chosen[layer] = candidate[layer], penalty
            lowest = torch.minimum(error, lowest)
    raw = weight / scale.transpose(1, 2)
    return RidgeProbes(raw, middle - mean @ raw, tuple(chosen))


@dataclass(frozen=True)
class RegressionResult:
    """A ridge probe of one layer for one number per example.

    Attributes:
        layer: number of the layer.
        r2: share of the test part's variance explained; 0 for its own mean, below 0 if worse.
        spearman: rank correlation with the truth; 0 where the prediction is constant.
        rmse: root mean squared error, in units of the target.
        rmse_mean: the same for always predicting the training mean.
        n_train, n_test: examples.
        seed: seed of the split, None if it had none.
        interval: 95 % bootstrap interval of r2 over test examples.
        model: name of the probed model.
    """

    layer: int
    r2: float
    spearman: float
    rmse: float
    rmse_mean: float
    n_train: int
    n_test: int
    seed: int | None
    interval: tuple[float, float]
    model: str

    unit = "R squared"

    @property
    def value(self) -> float:
        """r2"""
        return self.r2

    @property
    def baselines(self) -> dict[str, float]:
        """r2 of the training mean, which the test part can only fall short of."""
        return {"training mean": 1 - (self.rmse_mean / self.rmse) ** 2 * (1 - self.r2)}

    @property
    def n(self) -> int:
        """Test examples."""
        return self.n_test


def regress_layers(
    features: np.ndarray | Tensor,
    targets: Sequence[float],
    split: Split,
    *,
    alpha: float | None = None,
    model: str = "features",
) -> list[RegressionResult]:
    """Predict a number from every layer by ridge regression.

    Args:
        features: [S, N, D].
        targets: [N] numbers.
        split: over the N examples.
        alpha: penalty; by default the development part chooses.
        model: name for the results.

    Raises:
        UnequalLengthError: not one target for each example.
        NonFiniteError: a feature or target that is not finite.
        ValueError: targets of the test part that are all equal; as :func:`fit_ridge`.
    """
    data = as_features(features)
    y = np.asarray(targets, dtype=np.float64)
    if y.shape != (data.shape[1],):
        raise UnequalLengthError(f"targets of shape {y.shape} for {data.shape[1]} examples")
    split.check(len(y))
    used = np.concatenate([split.train, split.dev, split.test])
    if not np.isfinite(y[used]).all():
        bad = used[~np.isfinite(y[used])][0]
        raise NonFiniteError(f"the target of example {bad} is {y[bad]}")
    gold = y[split.test]
    if np.ptp(gold) == 0:
        raise ValueError(f"all targets of the test part are {gold[0]}")
    column = torch.as_tensor(y, dtype=data.dtype, device=data.device)[:, None]
    dev = (take(data, split.dev), column[split.dev]) if len(split.dev) else None
    fitted = fit_ridge(
        take(data, split.train), column[split.train], dev=dev if alpha is None else None,
        alpha=alpha,
    )  # fmt: skip
    predicted = fitted.predict(take(data, split.test))[:, :, 0].double().cpu().numpy()
    mean = float(y[split.train].mean())
    rng = np.random.default_rng(0 if split.seed is None else split.seed)
    draws = rng.integers(0, len(gold), (1000, len(gold)))
    spread = np.maximum(gold[draws].var(1), 1e-12)
    results = []
    for layer, guess in enumerate(predicted):
        wrong = (gold - guess) ** 2
        r2 = 1 - wrong.mean() / gold.var()
        low, high = np.percentile(1 - wrong[draws].mean(1) / spread, [2.5, 97.5])
        rank = spearmanr(guess, gold).statistic if np.ptp(guess) > 0 else 0.0
        results.append(
            RegressionResult(
                layer,
                float(r2),
                float(rank),
                float(np.sqrt(wrong.mean())),
                float(np.sqrt(((gold - mean) ** 2).mean())),
                len(split.train),
                len(gold),
                split.seed,
                (float(min(low, r2)), float(max(high, r2))),
                model,
            )
        )
    return results
