"""The rule that says where the words of a plain text are."""

from collections.abc import Sequence
from functools import lru_cache

import regex

from .errors import AlignmentError, EmptyTextError, TextTypeError, checked_text, excerpt

# Letters keep their marks (an "e" and a combining accent are one letter in either Unicode form),
# and the invisible joiners that some scripts write inside words.
_START = r"[\p{L}\p{N}_]"
_MORE = r"[\p{L}\p{M}\p{N}_\u00ad\u200c\u200d]*"
# Inside a word: apostrophes (don't), hyphens (well-known), and points between digits (3.14).
_JOINT = r"(?:['’\-\u2010\u2011]|(?<=\p{N})[.,](?=\p{N}))"
_WORD = rf"{_START}{_MORE}(?:{_JOINT}{_START}{_MORE})*"
# Any other visible character stands alone; \X keeps an emoji and its modifiers in one piece.
_SYMBOL = r"(?![\s\p{Z}\p{Cc}\p{Cf}])\X"


@lru_cache(maxsize=32)
def _pattern(special: tuple[str, ...]) -> regex.Pattern:
    # Longest first, so that no special token hides another that starts with it.
    tokens = [regex.escape(token) for token in sorted(special, key=len, reverse=True)]
    return regex.compile("|".join([*tokens, _WORD, _SYMBOL]))


def split_words(text: str, special: Sequence[str] = ()) -> list[tuple[int, int]]:
    """Character spans of the words of a plain text.

    Contractions, hyphenated words and decimal numbers are one word each; every other mark or
    symbol is a word of its own, an emoji with its modifiers included; white space, control and
    format characters belong to none. Scripts written without spaces are not segmented.

    Args:
        text: any string.
        special: tokens such as ``[MASK]`` that count as one word where they are written out.

    Raises:
        TextTypeError, TextEncodingError: not a string of whole characters.
    """
    checked_text(text)
    return [match.span() for match in _pattern(tuple(special)).finditer(text)]


def join_words(words: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """A text of the given words, one space between them, and their character spans.

    Raises:
        EmptyTextError: no words.
        TextTypeError: ``words`` is no list or tuple, or a word is not a string.
        TextEncodingError: a word holds half of a surrogate pair.
        AlignmentError: a word is empty or only white space.
    """
    if not isinstance(words, (list, tuple)):
        raise TextTypeError(
            f"expected a list of words, got {type(words).__name__}: {excerpt(repr(words))}"
        )
    if not words:
        raise EmptyTextError("an empty list of words")
    for i, word in enumerate(words):
        checked_text(word, f"word {i} of a list")
    spans, position = [], 0
    for i, word in enumerate(words):
        if not word.strip():
            raise AlignmentError(
                f"word {i} of {excerpt(' '.join(words))} is empty: {excerpt(word)}"
            )
        spans.append((position, position + len(word)))
        position += len(word) + 1
    return " ".join(words), spans


def locate_words(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Character spans of the given words in their own text, in order.

    Raises:
        TextTypeError, TextEncodingError, EmptyTextError: as :func:`join_words`.
        AlignmentError: the text is not these words with nothing but white space between them.
    """
    checked_text(text)
    join_words(words)
    spans, position = [], 0
    for i, word in enumerate(words):
        found = text.find(word, position)
        if found < 0 or text[position:found].strip():
            raise AlignmentError(
                f"word {i}, {excerpt(word)}, does not come next in {excerpt(text)}"
            )
        position = found + len(word)
        spans.append((found, position))
    if text[position:].strip():
        raise AlignmentError(f"words end before {excerpt(text[position:])} in {excerpt(text)}")
    return spans
