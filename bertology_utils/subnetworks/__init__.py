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
from .likeness import AddedLayers, added_layers, likeness_in_layers, within_layers
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
from .twins import Twin, agreement, language, likeness, over_seeds, train_tiny

__all__ = [
    "AddedLayers",
    "HeadEffects",
    "Slopes",
    "Trial",
    "Twin",
    "added_layers",
    "agreement",
    "classified",
    "jaccard",
    "language",
    "likeness",
    "likeness_in_layers",
    "log_ratio",
    "magnitude_masks",
    "masked",
    "masked_words",
    "mean_over_texts",
    "order_of",
    "over_seeds",
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
    "train_tiny",
    "with_only_each",
    "within_layers",
    "without_each",
    "without_set",
]
