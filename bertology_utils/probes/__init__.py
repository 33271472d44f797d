"""Probes: what can be read out of a layer, how easily, and what is lost without it."""

from .amnesic import (
    AmnesicResult,
    MaskedWord,
    amnesic_probe,
    masked_vectors,
    masked_words,
)
from .codelength import CodelengthResult, online_codelength, variational_codelength
from .control import SelectivityResult, control_labels, selectivity
from .data import Split, group_split, random_split, words_split
from .decoding import eisner, heads_from_edges, max_arborescence, spanning_edges
from .edge import (
    EdgeResult,
    centre_of_gravity,
    edge_probe,
    edge_probe_layers,
    expected_layer,
    row_spans,
)
from .erasure import Erasure, inlp, leace, random_erasure
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
from .structural import StructuralProbes, fit_structural
from .tree_metrics import branching_heads, chain, spanning_trees, uas, uuas
from .tree_probes import DepthResult, DistanceResult, depth_probe, distance_probe

__all__ = [
    "AmnesicResult",
    "ClassScore",
    "CodelengthResult",
    "DECODERS",
    "DecodingError",
    "DepthResult",
    "DistanceResult",
    "EdgeResult",
    "Erasure",
    "Impact",
    "ImpactTrees",
    "KINDS",
    "LinearProbes",
    "MLPProbes",
    "MaskedWord",
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
    "amnesic_probe",
    "branching_heads",
    "centre_of_gravity",
    "chain",
    "class_scores",
    "control_labels",
    "decode_impact",
    "depth_probe",
    "distance_probe",
    "edge_probe",
    "edge_probe_layers",
    "eisner",
    "expected_layer",
    "fit_linear",
    "fit_mlp",
    "fit_ridge",
    "fit_structural",
    "group_split",
    "heads_from_edges",
    "impact_matrices",
    "impact_trees",
    "inlp",
    "leace",
    "masked_vectors",
    "masked_words",
    "max_arborescence",
    "online_codelength",
    "probe_layers",
    "random_erasure",
    "random_split",
    "regress_layers",
    "row_spans",
    "selectivity",
    "share_interval",
    "spanning_edges",
    "spanning_trees",
    "uas",
    "uuas",
    "variational_codelength",
    "words_split",
]
