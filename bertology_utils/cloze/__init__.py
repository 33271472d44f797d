"""Masked questions: fillings, minimal pairs, pseudo-log-likelihood, surprisal."""

from .errors import MaskCountError, TargetError, UnequalPairError
from .fill import Filling, fill_mask, target_id, target_log_probs, target_ranks
from .minimal import compare_contexts, judge_pairs, spell_mask
from .pairs import (
    Preference,
    compare_at_mask,
    compare_sentences,
    preference,
    wilson_interval,
)
from .pll import PLL, Surprisal, pll, surprisal
from .queries import Query, log_prob_of, read_queries

__all__ = [
    "PLL",
    "Filling",
    "MaskCountError",
    "Preference",
    "Query",
    "Surprisal",
    "TargetError",
    "UnequalPairError",
    "compare_at_mask",
    "compare_contexts",
    "compare_sentences",
    "fill_mask",
    "judge_pairs",
    "log_prob_of",
    "pll",
    "preference",
    "read_queries",
    "spell_mask",
    "surprisal",
    "target_id",
    "target_log_probs",
    "target_ranks",
    "wilson_interval",
]
