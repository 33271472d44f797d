"""Cutting a model down to learn what its parts are for: effects, subnetworks, survivors, twins."""

from .effects import (
    HeadEffects,
    Slopes,
    log_ratio,
    mean_over_texts,
    order_of,
    prunable_share,
    pruning_curve,
    random_sets,
    rating_agreement,
    slopes,
    with_only_each,
    without_each,
    without_set,
)
from .masks import (
    magnitude_masks,
    masked,
    random_masks,
    share_cut,
    split_by_importance,
    structure_masks,
)
from .survivors import jaccard, overlap_of_seeds, range_of_pairs, survival_gap, top_half
from .trials import Trial, classified, masked_words

__all__ = [
    "HeadEffects",
    "Slopes",
    "Trial",
    "classified",
    "jaccard",
    "log_ratio",
    "magnitude_masks",
    "masked",
    "masked_words",
    "mean_over_texts",
    "order_of",
    "overlap_of_seeds",
    "prunable_share",
    "pruning_curve",
    "random_masks",
    "random_sets",
    "range_of_pairs",
    "rating_agreement",
    "share_cut",
    "slopes",
    "split_by_importance",
    "structure_masks",
    "survival_gap",
    "top_half",
    "with_only_each",
    "without_each",
    "without_set",
]
