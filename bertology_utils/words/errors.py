"""Errors of texts and their words; each names the text at fault."""

from collections.abc import Iterable

from ..encoder import BertologyError


class TextTypeError(BertologyError, TypeError):
    """Something that is neither a text, a list of words nor a pair of texts."""


class TextEncodingError(BertologyError):
    """A text with half of a surrogate pair, which no encoding of Unicode can write."""


class EmptyTextError(BertologyError):
    """A text in which the tokenizer finds nothing."""


class TextTooLongError(BertologyError):
    """A text of more pieces than the model has positions.

    Attributes:
        text: the whole text.
        n_pieces: its pieces, special tokens included.
        max_length: the most the model takes.
    """

    def __init__(self, text: str, n_pieces: int, max_length: int):
        self.text, self.n_pieces, self.max_length = text, n_pieces, max_length
        super().__init__(
            f"text has {n_pieces} pieces, the model takes at most {max_length}: {excerpt(text)}"
        )


class AlignmentError(BertologyError):
    """Words that cannot be found in their text, or that have no pieces."""


def checked_text(value: object, what: str = "a text") -> str:
    """``value`` if it is a string of whole characters.

    Raises:
        TextTypeError: not a string.
        TextEncodingError: it holds half of a surrogate pair.
    """
    if not isinstance(value, str):
        raise TextTypeError(
            f"expected {what} (str), got {type(value).__name__}: {excerpt(repr(value))}"
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise TextEncodingError(
            f"{what} has half of a surrogate pair at character {error.start}: {excerpt(value)}"
        ) from None
    return value


def checked_texts(texts: object) -> None:
    """Nothing, when ``texts`` is an iterable that may hold texts.

    Raises:
        TextTypeError: it is one text, or nothing that can be gone through.
    """
    if isinstance(texts, str):
        raise TextTypeError(f"expected a sequence of texts, got one text: {excerpt(texts)}")
    if not isinstance(texts, Iterable):
        raise TextTypeError(
            f"expected a sequence of texts, got {type(texts).__name__}: {excerpt(repr(texts))}"
        )


def excerpt(text: str, length: int = 60) -> str:
    """The start of a text, quoted, for an error message."""
    return repr(text if len(text) <= length else text[: length - 3] + "...")
