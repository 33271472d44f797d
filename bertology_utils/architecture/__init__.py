"""BERT from the inside, part by part: the methods behind the chapter on the architecture."""

from .by_hand import (
    STEPS,
    HandCheck,
    HeadByHand,
    check_by_hand,
    head_by_hand,
    input_by_hand,
    input_parts,
    layer_by_hand,
    layer_norm,
)
from .inputs import PartValues, available_parts, value_of_parts
from .masked import SHOWN, MaskedScores, positions_in_common, score_masked
from .next_sentence import judged_to_follow, next_sentence, shares_a_word
from .pieces import frequency_correlation, pieces_by_frequency, pieces_of, pieces_of_numbers
from .senses import (
    SenseResult,
    nearer_to_own,
    occurrence_vectors,
    sense_similarities,
    senses_apart,
)
from .sizes import PUBLISHED, Sizes, count_parameters

__all__ = [
    "PUBLISHED",
    "SHOWN",
    "STEPS",
    "HandCheck",
    "HeadByHand",
    "MaskedScores",
    "PartValues",
    "SenseResult",
    "Sizes",
    "available_parts",
    "check_by_hand",
    "count_parameters",
    "frequency_correlation",
    "head_by_hand",
    "input_by_hand",
    "input_parts",
    "judged_to_follow",
    "layer_by_hand",
    "layer_norm",
    "nearer_to_own",
    "next_sentence",
    "occurrence_vectors",
    "pieces_by_frequency",
    "pieces_of",
    "pieces_of_numbers",
    "positions_in_common",
    "score_masked",
    "sense_similarities",
    "senses_apart",
    "shares_a_word",
    "value_of_parts",
]
