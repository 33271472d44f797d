"""What attention maps show: patterns, targets, relations, trees, norms, attributions."""

from .maps import KINDS, TextMaps, attention_maps, piece_kinds, segments, word_attention
from .patterns import (
    FEATURES,
    PATTERNS,
    HeadPatterns,
    classify_heads,
    map_features,
    rule,
)
from .scores import BestHead, HeadScores, NothingToScoreError, correlation_over_heads
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
