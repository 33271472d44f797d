"""Experiments on attention heads beyond single measures: functions, freedom, tuning, survival."""

from .atlas import FoundEdge, found_edges
from .depth import DepthProbe, cls_depth_probe
from .freedom import MovedAttention, move_half
from .functions import (
    CherryPick,
    HeadFunction,
    ProtocolChange,
    cherry_pick,
    head_functions,
    protocol_change,
)
from .pairs import (
    antecedent_items,
    first_piece_attention,
    frequency_and_attention,
    related_words,
    role_pairs,
    scope_pairs,
    words_of,
)
from .summaries import (
    advantage,
    depth_gap,
    heads_above,
    patterns_side_by_side,
    share_of,
    side_by_side,
    total,
)
from .surviving import Survivors, head_importance, surviving_heads
from .tuning import (
    TunedEncoder,
    control_labels,
    scope_labels,
    tune_classifier,
    tune_tagger,
)

__all__ = [
    "CherryPick",
    "DepthProbe",
    "FoundEdge",
    "HeadFunction",
    "MovedAttention",
    "ProtocolChange",
    "Survivors",
    "TunedEncoder",
    "advantage",
    "antecedent_items",
    "cherry_pick",
    "cls_depth_probe",
    "control_labels",
    "depth_gap",
    "first_piece_attention",
    "found_edges",
    "frequency_and_attention",
    "head_functions",
    "head_importance",
    "heads_above",
    "move_half",
    "patterns_side_by_side",
    "protocol_change",
    "related_words",
    "role_pairs",
    "scope_labels",
    "scope_pairs",
    "share_of",
    "side_by_side",
    "surviving_heads",
    "total",
    "tune_classifier",
    "tune_tagger",
    "words_of",
]
