"""Probes: what can be read out of a layer, how easily, and what is lost without it."""

from .control import SelectivityResult, control_labels, selectivity
from .data import Split, group_split, random_split, words_split
from .errors import (
    DecodingError,
    NonFiniteError,
    OneClassError,
    ProbeError,
    TooFewExamplesError,
    UnequalLengthError,
)
from .layers import KINDS, probe_layers
from .linear import LinearProbes, fit_linear
from .mlp import MLPProbes, fit_mlp
from .results import ClassScore, ProbeResult, class_scores, share_interval
from .ridge import RegressionResult, RidgeProbes, fit_ridge, regress_layers

__all__ = [
    "KINDS",
    "ClassScore",
    "DecodingError",
    "LinearProbes",
    "MLPProbes",
    "NonFiniteError",
    "OneClassError",
    "ProbeError",
    "ProbeResult",
    "RegressionResult",
    "RidgeProbes",
    "SelectivityResult",
    "Split",
    "TooFewExamplesError",
    "UnequalLengthError",
    "class_scores",
    "control_labels",
    "fit_linear",
    "fit_mlp",
    "fit_ridge",
    "group_split",
    "probe_layers",
    "random_split",
    "regress_layers",
    "selectivity",
    "share_interval",
    "words_split",
]
