"""One number per layer, kept item by item, so that any summary of it carries an interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..encoder import LayerIndexError
from ..resampling import Estimate, percentile_interval, rank_correlation, resampled_means
from .rows import TooFewError


@dataclass(frozen=True, eq=False)
class LayerScores:
    """A measure of every layer over N items (words, pairs, texts). S layers; 0 is the input.

    For a chart or the ledger, ``value``, ``interval`` and ``baselines`` are those of the last
    layer; the methods below summarise the curve in other ways.

    Attributes:
        name: what is measured.
        unit: of the scores.
        sums: [N, S] total of each item.
        counts: [N] what each total is a sum over.
        model: the encoder's name.
        seed: of everything drawn, and of the bootstrap over items.
        controls: name -> [S] what each layer has to be compared with.
    """

    name: str
    unit: str
    sums: np.ndarray
    counts: np.ndarray
    model: str
    seed: int = 0
    controls: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.sums.ndim != 2 or len(self.sums) != len(self.counts):
            raise ValueError(f"totals {self.sums.shape} do not fit {len(self.counts)} counts")
        if not len(self.counts) or self.counts.sum() == 0:
            raise TooFewError(f"{self.name}: nothing to measure")

    @property
    def n(self) -> int:
        """Independent items."""
        return len(self.counts)

    @property
    def n_layers(self) -> int:
        """Entries of the curve, the embedding layer included."""
        return self.sums.shape[1]

    @cached_property
    def values(self) -> np.ndarray:
        """[S] the curve."""
        return self.sums.sum(0, dtype=float) / self.counts.sum()

    @cached_property
    def draws(self) -> np.ndarray:
        """[R, S] bootstrap replicates of the curve, over items."""
        return resampled_means(self.sums, self.counts, seed=self.seed)

    @property
    def value(self) -> float:
        return float(self.values[-1])

    @property
    def interval(self) -> tuple[float, float]:
        return self.at(self.n_layers - 1).interval

    @property
    def baselines(self) -> Mapping[str, float]:
        return self.at(self.n_layers - 1).baselines

    def at(self, layer: int) -> Estimate:
        """One layer.

        Raises:
            LayerIndexError: no such entry.
        """
        if not 0 <= layer < self.n_layers:
            raise LayerIndexError(f"layer {layer} is not in 0..{self.n_layers - 1}")
        found = self.summary(lambda curve: curve[..., layer])
        controls = {name: float(curve[layer]) for name, curve in self.controls.items()}
        return found.with_baselines(**controls)

    def by_layer(self) -> tuple[Estimate, ...]:
        """Every layer, the embedding layer first."""
        return tuple(self.at(layer) for layer in range(self.n_layers))

    def upper_half(self) -> Estimate:
        """Mean over the upper half of the layers, beside the embedding layer and the controls."""
        first = self.n_layers - max(1, (self.n_layers - 1) // 2)
        found = self.summary(lambda curve: curve[..., first:].mean(-1))
        controls = {name: float(curve[first:].mean()) for name, curve in self.controls.items()}
        return found.with_baselines(embedding_layer=float(self.values[0]), **controls)

    def best(self) -> tuple[int, Estimate]:
        """The layer with the highest score, and its score. Chosen on the same items: optimistic."""
        layer = int(np.argmax(self.values))
        return layer, self.at(layer).with_baselines(embedding_layer=float(self.values[0]))

    def depth_correlation(self) -> Estimate:
        """Spearman's rank correlation of the layers 1..L with the score.

        Raises:
            TooFewError: fewer than three layers above the embeddings.
        """
        if self.n_layers < 4:
            raise TooFewError(f"{self.n_layers - 1} layers are too few for a correlation")

        depth = np.arange(1, self.n_layers)

        def correlation(curve: np.ndarray) -> np.ndarray:
            # A flat curve neither rises nor falls.
            return np.nan_to_num(rank_correlation(curve[..., 1:], depth))

        return replace(self.summary(correlation), unit="correlation")

    def mean_depth_correlation(self) -> Estimate:
        """Mean over items of each item's own rank correlation of the layers 1..L with its score.

        The curve of the means has few points, and their order hardly moves when items are
        resampled: its correlation would come with an interval of no width. This one varies with
        the items, as it should. Items that are flat count 0; items without counts not at all.

        Raises:
            TooFewError: fewer than three layers above the embeddings.
        """
        if self.n_layers < 4:
            raise TooFewError(f"{self.n_layers - 1} layers are too few for a correlation")
        counted = np.asarray(self.counts) > 0
        curves = self.sums[counted] / np.asarray(self.counts, float)[counted][:, None]
        depth = np.broadcast_to(np.arange(1.0, self.n_layers), curves[:, 1:].shape)
        own = np.nan_to_num(rank_correlation(curves[:, 1:], depth))
        value = float(own.mean())
        draws = resampled_means(own, np.ones(len(own)), seed=self.seed)
        return Estimate(
            value=value, unit="correlation", n=len(own), model=self.model, seed=self.seed,
            interval=percentile_interval(draws, value),
        )  # fmt: skip

    def summary(self, function: Callable[[np.ndarray], np.ndarray]) -> Estimate:
        """Any number that can be read off the curve: ``function`` maps [..., S] to [...]."""
        value = float(function(self.values))
        return Estimate(
            value=value,
            unit=self.unit,
            n=self.n,
            model=self.model,
            seed=self.seed,
            interval=percentile_interval(np.asarray(function(self.draws)), value),
        )

    def minus(self, name: str) -> LayerScores:
        """The same measure less one of its controls, which is then a fixed number a layer.

        Raises:
            KeyError: no such control.
        """
        if name not in self.controls:
            raise KeyError(f"no control {name!r} of {self.name}; there are {list(self.controls)}")
        shift = self.counts[:, None] * self.controls[name][None, :]
        unit = f"{self.unit} difference" if self.unit in ("share", "cosine") else self.unit
        return LayerScores(
            f"{self.name} minus {name}", unit, self.sums - shift, self.counts, self.model, self.seed
        )

    def with_control(self, name: str, curve: np.ndarray | LayerScores) -> LayerScores:
        """The same measure beside another curve, such as that of a random model.

        Raises:
            ValueError: another number of layers.
        """
        values = np.asarray(curve.values if isinstance(curve, LayerScores) else curve, float)
        if values.shape != (self.n_layers,):
            raise ValueError(f"control {name!r} has shape {values.shape}, not ({self.n_layers},)")
        return replace(self, controls={**self.controls, name: values})
