"""Our own sentences with gold labels, and readers for public formats.

Imports nothing else of this package and no deep-learning library.
"""

from bertology_utils.stimuli.grammar import (
    CONSTRUCTIONS,
    Grammar,
    GrammarConfig,
    GrammarError,
    treebank,
)
from bertology_utils.stimuli.lexicon import Lexicon, LexiconError, core_lexicon, lexicon
from bertology_utils.stimuli.trees import Gold, Sentence, Tree, Treebank, TreeError

__all__ = [
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
