"""What attention maps show: patterns, targets, relations, trees, norms, attributions."""

from .attribution import (
    KnockOut,
    Loss,
    attention_gradients,
    knock_out,
    masked_loss,
    replaced_loss,
)
from .combine import HeadCombination, combine_heads
from .explanation import (
    Predict,
    attention_and_gradient,
    omission_and_gradient,
    permuted_attention,
)
from .flow import attention_flow, rollout, with_residual
from .links import (
    LinkItem,
    agreement_items,
    coreference_items,
    link_confusion,
    link_scores,
    pair_attention,
)
from .maps import KINDS, TextMaps, attention_maps, piece_kinds, segments, word_attention
from .norms import (
    norm_attention,
    norm_shares,
    recomputed_pattern,
    value_norms,
    value_vectors,
    weight_norm_correlation,
)
from .null_space import AlternativeAttention, alternative_attention, effective_attention
from .patterns import (
    FEATURES,
    PATTERNS,
    HeadPatterns,
    classify_heads,
    map_features,
    rule,
)
from .relations import ALL, CANDIDATES, DIRECTIONS, RelationScores, relation_scores
from .scores import BestHead, HeadScores, NothingToScoreError, correlation_over_heads
from .similarity import HeadDistances, head_distances, last_layers_change, pattern_change
from .synthetic import (
    LabelledMap,
    PatternClassifier,
    synthetic_maps,
    train_pattern_classifier,
)
from .targets import (
    OFFSETS,
    TARGETS,
    attention_entropy,
    attention_received,
    attention_to,
    most_attended,
)
from .trees import DECODERS, tree_scores

__all__ = [
    "ALL",
    "AlternativeAttention",
    "BestHead",
    "CANDIDATES",
    "DECODERS",
    "DIRECTIONS",
    "FEATURES",
    "HeadCombination",
    "HeadDistances",
    "HeadPatterns",
    "HeadScores",
    "KINDS",
    "KnockOut",
    "LabelledMap",
    "LinkItem",
    "Loss",
    "NothingToScoreError",
    "OFFSETS",
    "PATTERNS",
    "PatternClassifier",
    "Predict",
    "RelationScores",
    "TARGETS",
    "TextMaps",
    "agreement_items",
    "alternative_attention",
    "attention_and_gradient",
    "attention_entropy",
    "attention_flow",
    "attention_gradients",
    "attention_maps",
    "attention_received",
    "attention_to",
    "classify_heads",
    "combine_heads",
    "coreference_items",
    "correlation_over_heads",
    "effective_attention",
    "head_distances",
    "knock_out",
    "last_layers_change",
    "link_confusion",
    "link_scores",
    "map_features",
    "masked_loss",
    "most_attended",
    "norm_attention",
    "norm_shares",
    "omission_and_gradient",
    "pair_attention",
    "pattern_change",
    "permuted_attention",
    "piece_kinds",
    "recomputed_pattern",
    "relation_scores",
    "replaced_loss",
    "rollout",
    "rule",
    "segments",
    "synthetic_maps",
    "train_pattern_classifier",
    "tree_scores",
    "value_norms",
    "value_vectors",
    "weight_norm_correlation",
    "with_residual",
    "word_attention",
]
