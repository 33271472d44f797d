"""Layers: what each knows, how one curve is read three ways, and which layers a task needs.

Curves over layers are :class:`bertology_utils.geometry.LayerScores`, item by item, so that a peak
or a slope carries an interval. CKA, similarity to the input and the logit lens over texts live in
:mod:`bertology_utils.geometry`.
"""

from .curves import (
    cross_probe,
    curve_of,
    mean_peak,
    over_tasks,
    peak,
    peak_depth,
    scores_of,
    share_at_last,
    thirds,
    upper_minus_lower,
)
from .edges import (
    PUBLISHED,
    PUBLISHED_DIVERGENCE,
    SYNTACTIC,
    Corrections,
    EdgeTask,
    Readings,
    corrections,
    divergence_gap,
    edge_tasks,
    order_correlation,
    read_three_ways,
)
from .input import InputSum, input_sum
from .lens import lens_guesses
from .position import position_fit, vectors_of, word_table
from .rollback import RollBack, roll_back, roll_back_curve, upper_minus_lower_loss
from .sentences import (
    SentenceTask,
    mean_vectors,
    order_of_sentences,
    probe_sentences,
    sentence_tasks,
)
from .small import every_second_layer, half_as_deep
from .suite import Suite, mean_ranks
from .tasks import (
    NumberAtMask,
    commonsense_relations,
    mask_vectors,
    number_at_mask,
    probe_word_labels,
    review_sentiment,
)

__all__ = [
    "PUBLISHED",
    "PUBLISHED_DIVERGENCE",
    "SYNTACTIC",
    "Corrections",
    "EdgeTask",
    "InputSum",
    "NumberAtMask",
    "Readings",
    "RollBack",
    "SentenceTask",
    "Suite",
    "commonsense_relations",
    "corrections",
    "cross_probe",
    "curve_of",
    "divergence_gap",
    "edge_tasks",
    "every_second_layer",
    "half_as_deep",
    "input_sum",
    "lens_guesses",
    "mask_vectors",
    "mean_peak",
    "mean_ranks",
    "mean_vectors",
    "number_at_mask",
    "order_correlation",
    "order_of_sentences",
    "over_tasks",
    "peak",
    "peak_depth",
    "position_fit",
    "probe_sentences",
    "probe_word_labels",
    "read_three_ways",
    "review_sentiment",
    "roll_back",
    "roll_back_curve",
    "scores_of",
    "sentence_tasks",
    "share_at_last",
    "thirds",
    "upper_minus_lower",
    "upper_minus_lower_loss",
    "vectors_of",
    "word_table",
]
