"""What a fine-tuned model does where its training data offered a shortcut, and how to ask."""

from .arguing import by_topic, learn_arguments, right_warrant, topics, warrant_pair
from .attack import SYNONYMS, Attack, attack, substitutions
from .checklist import (
    BehaviouralTest,
    TestResult,
    directional,
    failure_rate,
    fill,
    inv,
    mft,
    run_tests,
)
from .comparing import (
    AgeItem,
    TwoLooks,
    age_items,
    compare_ages,
    difference,
    two_looks,
)
from .learning import Pointer, learn, learn_to_point, learned, probabilities, ratio, right, share
from .reading import Question, questions, shuffled, unasked
from .reliance import (
    WordReliance,
    amnesic_divergence,
    planted_effect,
    rank_correlation_of_runs,
    word_reliance,
)
from .rules import RuleItems, rule_items
from .stealing import Theft, nonsense, steal
from .suite import ADJECTIVES, sentiment_suite

__all__ = [
    "ADJECTIVES",
    "SYNONYMS",
    "AgeItem",
    "Attack",
    "BehaviouralTest",
    "Pointer",
    "Question",
    "RuleItems",
    "TestResult",
    "Theft",
    "TwoLooks",
    "WordReliance",
    "age_items",
    "amnesic_divergence",
    "attack",
    "by_topic",
    "compare_ages",
    "difference",
    "directional",
    "failure_rate",
    "fill",
    "inv",
    "learn",
    "learn_arguments",
    "learned",
    "learn_to_point",
    "mft",
    "nonsense",
    "planted_effect",
    "probabilities",
    "questions",
    "ratio",
    "rank_correlation_of_runs",
    "right",
    "right_warrant",
    "rule_items",
    "run_tests",
    "sentiment_suite",
    "share",
    "shuffled",
    "steal",
    "substitutions",
    "topics",
    "two_looks",
    "unasked",
    "warrant_pair",
    "word_reliance",
]
