"""Text -> pieces -> words: alignment, token-budget batches, pooling."""

from .align import Aligned, Text, TextPair, Word, WordList, align, align_all
from .batches import Batch, cut, in_order, make_batch, token_batches
from .errors import (
    AlignmentError,
    EmptyTextError,
    TextEncodingError,
    TextTooLongError,
    TextTypeError,
)
from .pool import pool_batch, pool_words
from .split import split_words

__all__ = [
    "Aligned",
    "AlignmentError",
    "Batch",
    "EmptyTextError",
    "Text",
    "TextEncodingError",
    "TextPair",
    "TextTooLongError",
    "TextTypeError",
    "Word",
    "WordList",
    "align",
    "align_all",
    "cut",
    "in_order",
    "make_batch",
    "pool_batch",
    "pool_words",
    "split_words",
    "token_batches",
]
