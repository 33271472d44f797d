"""The limits of probing: what a probe's success and its silence do not show."""

from .capacity import LINEAR, CapacityCurve, capacity_curve
from .codes import Codes, compare_codes
from .constant import Tuned, fine_tune, probe_first_piece, subject_numbers, texts_of
from .estimates import magnitude, paired
from .extraction import MAX, MST, Extractions, extractions, max_scores
from .leaning import (
    HeadReliance,
    Removal,
    head_importance,
    head_reliance,
    removal,
    text_losses,
    top_words,
)
from .planted import Planted, Unused, exclusive_or, unused_property
from .polarity import WAYS, FourWays, four_ways
from .theories import (
    STEPS,
    LabelledSpans,
    Pipeline,
    Theories,
    compare_theories,
    labelled_spans,
    pipeline,
    word_theories,
)

__all__ = [
    "LINEAR",
    "MAX",
    "MST",
    "STEPS",
    "WAYS",
    "CapacityCurve",
    "Codes",
    "Extractions",
    "FourWays",
    "HeadReliance",
    "LabelledSpans",
    "Pipeline",
    "Planted",
    "Removal",
    "Theories",
    "Tuned",
    "Unused",
    "capacity_curve",
    "compare_codes",
    "compare_theories",
    "exclusive_or",
    "extractions",
    "fine_tune",
    "four_ways",
    "head_importance",
    "head_reliance",
    "labelled_spans",
    "magnitude",
    "max_scores",
    "paired",
    "pipeline",
    "probe_first_piece",
    "removal",
    "subject_numbers",
    "text_losses",
    "texts_of",
    "top_words",
    "unused_property",
    "word_theories",
]
