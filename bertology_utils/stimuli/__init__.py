"""Our own sentences with gold labels, and readers for public formats.

Imports nothing else of this package and no deep-learning library.
"""

from bertology_utils.stimuli.facts import (
    RELATIONS,
    Chain,
    Fact,
    FactError,
    candidates,
    chains,
    facts,
    majority,
    misprimes,
    replace_subject,
)
from bertology_utils.stimuli.grammar import (
    CONSTRUCTIONS,
    Grammar,
    GrammarConfig,
    GrammarError,
    treebank,
)
from bertology_utils.stimuli.lexicon import Lexicon, LexiconError, core_lexicon, lexicon
from bertology_utils.stimuli.pairs import (
    AGREEMENT,
    MASK,
    PHENOMENA,
    VERSIONS,
    MinimalPair,
    PairError,
    minimal_pairs,
)
from bertology_utils.stimuli.perturb import (
    PerturbError,
    drop_argument,
    nonsense,
    shuffle_words,
    truncate,
)
from bertology_utils.stimuli.trees import Gold, Sentence, Tree, Treebank, TreeError

__all__ = [
    "Chain",
    "Fact",
    "FactError",
    "RELATIONS",
    "candidates",
    "chains",
    "facts",
    "majority",
    "misprimes",
    "replace_subject",
    "AGREEMENT",
    "MASK",
    "MinimalPair",
    "PHENOMENA",
    "PairError",
    "PerturbError",
    "VERSIONS",
    "drop_argument",
    "minimal_pairs",
    "nonsense",
    "shuffle_words",
    "truncate",
    "CONSTRUCTIONS",
    "Gold",
    "Grammar",
    "GrammarConfig",
    "GrammarError",
    "Lexicon",
    "LexiconError",
    "Sentence",
    "Tree",
    "TreeError",
    "Treebank",
    "core_lexicon",
    "lexicon",
    "treebank",
]
