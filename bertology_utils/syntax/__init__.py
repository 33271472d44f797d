"""Syntax: what the chapter on syntax needs and no room of methods has.

Trees and labels read from a treebank's vectors, predictions in spoilt sentences, the tensor-product
reading of [CLS], and small fine-tunings: which of two rules is picked up, whether parsing first
helps, what derails a classifier, and how agreement grows from nothing.
"""

from .agreement import (
    ACROSS,
    NEAR,
    NegationResult,
    agreement,
    by_attractors,
    compare_forms,
    negation,
    polarity,
    pool,
)
from .attention_trees import above_chain, example_sentence, head_tree, probe_above_chain
from .auxiliaries import (
    AuxiliarySentence,
    auxiliary_items,
    auxiliary_scores,
    auxiliary_sentence,
)
from .choose import BestLayer, LayerScores, difference, share_gap
from .disagreement import RelationRecall, relation_recalls, strange_edges
from .generalise import (
    QUESTIONS,
    Generalisation,
    RuleItem,
    first_and_main,
    generalisation,
    rule_items,
)
from .labels import WORD_LABELS, probe_words, sentence_properties, word_labels
from .parsing_stage import (
    ParsedEncoder,
    StageComparison,
    compare_stage,
    parsing_stage,
)
from .properties import PropertyScores, property_scores
from .reliance import Reliance, reliance, steepest_directions
from .roles import SCHEMES, RoleFit, role_fits
from .saturation import LearningCurve, learning_curve, tiny_encoder
from .spoilt import (
    SPOILERS,
    HiddenWord,
    Survival,
    cut,
    hidden_words,
    predictions,
    shuffled,
    survival,
    without,
)
from .structure import (
    GAPS,
    BracketScores,
    StructuralScores,
    bracket_scores,
    brackets,
    gold_brackets,
    structural_scores,
)
from .triggers import (
    Trigger,
    TriggerEffect,
    find_trigger,
    neutral_words,
    trigger_effect,
)
from .tuning import FrozenStates, TunedClassifier, fine_tune, frozen_states
from .vectors import TreebankVectors, treebank_vectors

__all__ = [
    "ACROSS",
    "GAPS",
    "NEAR",
    "QUESTIONS",
    "SCHEMES",
    "SPOILERS",
    "WORD_LABELS",
    "AuxiliarySentence",
    "BestLayer",
    "BracketScores",
    "FrozenStates",
    "Generalisation",
    "HiddenWord",
    "LayerScores",
    "LearningCurve",
    "NegationResult",
    "ParsedEncoder",
    "PropertyScores",
    "RelationRecall",
    "Reliance",
    "RoleFit",
    "RuleItem",
    "StageComparison",
    "StructuralScores",
    "Survival",
    "TreebankVectors",
    "Trigger",
    "TriggerEffect",
    "TunedClassifier",
    "above_chain",
    "agreement",
    "auxiliary_items",
    "auxiliary_scores",
    "auxiliary_sentence",
    "bracket_scores",
    "brackets",
    "by_attractors",
    "compare_forms",
    "compare_stage",
    "cut",
    "difference",
    "example_sentence",
    "find_trigger",
    "fine_tune",
    "first_and_main",
    "frozen_states",
    "generalisation",
    "gold_brackets",
    "head_tree",
    "hidden_words",
    "learning_curve",
    "negation",
    "neutral_words",
    "parsing_stage",
    "polarity",
    "pool",
    "predictions",
    "probe_above_chain",
    "probe_words",
    "property_scores",
    "relation_recalls",
    "reliance",
    "role_fits",
    "rule_items",
    "sentence_properties",
    "share_gap",
    "shuffled",
    "steepest_directions",
    "strange_edges",
    "structural_scores",
    "survival",
    "tiny_encoder",
    "treebank_vectors",
    "trigger_effect",
    "without",
    "word_labels",
]
