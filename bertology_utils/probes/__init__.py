"""Probes: what can be read out of a layer, how easily, and what is lost without it."""

from .codelength import CodelengthResult, online_codelength, variational_codelength
from .control import SelectivityResult, control_labels, selectivity
from .data import Split, group_split, random_split, words_split
from .decoding import eisner, heads_from_edges, max_arborescence, spanning_edges
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
from .perturbed import (
    DECODERS,
    Impact,
    ImpactTrees,
    decode_impact,
    impact_matrices,
    impact_trees,
)
from .results import ClassScore, ProbeResult, class_scores, share_interval
from .ridge import RegressionResult, RidgeProbes, fit_ridge, regress_layers
from .structural import (
    DepthResult,
    DistanceResult,
    StructuralProbes,
    depth_probe,
    distance_probe,
    fit_structural,
)
from .tree_metrics import branching_heads, chain, spanning_trees, uas, uuas

__all__ = [
    "ClassScore",
    "CodelengthResult",
    "DECODERS",
    "DecodingError",
    "DepthResult",
    "DistanceResult",
    "Impact",
    "ImpactTrees",
    "KINDS",
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
    "StructuralProbes",
    "TooFewExamplesError",
    "UnequalLengthError",
    "branching_heads",
    "chain",
    "class_scores",
    "control_labels",
    "decode_impact",
    "depth_probe",
    "distance_probe",
    "eisner",
    "fit_linear",
    "fit_mlp",
    "fit_ridge",
    "fit_structural",
    "group_split",
    "heads_from_edges",
    "impact_matrices",
    "impact_trees",
    "max_arborescence",
    "online_codelength",
    "probe_layers",
    "random_split",
    "regress_layers",
    "selectivity",
    "share_interval",
    "spanning_edges",
    "spanning_trees",
    "uas",
    "uuas",
    "variational_codelength",
    "words_split",
]
