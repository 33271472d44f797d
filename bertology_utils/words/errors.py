"""Errors of texts and their words; each names the text at fault."""

from ..encoder import BertologyError


class TextTypeError(BertologyError, TypeError):
    """Something that is neither a text, a list of words nor a pair of texts."""


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


def excerpt(text: str, length: int = 60) -> str:
    """The start of a text, quoted, for an error message."""
    return repr(text if len(text) <= length else text[: length - 3] + "...")
