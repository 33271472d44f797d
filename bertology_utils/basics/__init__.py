"""First steps: words as vectors, and what pre-training buys."""

from .nouns import noun_number
from .transfer import FineTuned, Recipe, Transfer, bag_of_words, fine_tune, pretrained_or_random
from .vectors import UnknownWordError, WordTable, one_hot, shuffled, token_table

__all__ = [
    "FineTuned",
    "Recipe",
    "Transfer",
    "UnknownWordError",
    "WordTable",
    "bag_of_words",
    "fine_tune",
    "noun_number",
    "one_hot",
    "pretrained_or_random",
    "shuffled",
    "token_table",
]
