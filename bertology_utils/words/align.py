"""Texts and their pieces: which pieces of the tokenizer make up which word."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from tokenizers import Encoding
from transformers import PreTrainedTokenizerBase

from ..encoder import Encoder
from .errors import (
    AlignmentError,
    EmptyTextError,
    TextTooLongError,
    TextTypeError,
    checked_text,
    excerpt,
)
from .split import join_words, locate_words, split_words


@dataclass(frozen=True)
class TextPair:
    """Two texts for one input: ``[CLS] first [SEP] second [SEP]``, as next-sentence heads read."""

    first: str
    second: str


@dataclass(frozen=True)
class WordList:
    """A text whose words are already known, as in a treebank.

    Attributes:
        words: the words in order.
        text: the text they were cut from; by default the words with single spaces between.
    """

    words: tuple[str, ...]
    text: str | None = None


#: one input: a text, a pair of texts, or a text cut into words (a list of str, or a WordList)
Text = str | TextPair | WordList | Sequence[str]


@dataclass(frozen=True)
class Word:
    """One word of a text.

    Attributes:
        text: the word as written.
        chars: first character and one past the last, in its own text.
        pieces: first piece and one past the last, special tokens counted: ``hidden[s:e]``.
        segment: 0, or 1 for a word of the second text of a pair.
    """

    text: str
    chars: tuple[int, int]
    pieces: tuple[int, int]
    segment: int = 0


@dataclass(frozen=True, eq=False)
class Aligned:
    """One tokenised text. Words are looked up on first use, since many measures need none.

    Attributes:
        text: what was tokenised; of a pair, the first text.
        second: the second text of a pair, else None.
        given: character spans of the words where they were given, else None.
        encoding: the tokenizer's own record.
        special: tokens that count as one word where the text spells them out.
    """

    text: str
    second: str | None
    given: tuple[tuple[int, int], ...] | None
    encoding: Encoding
    special: tuple[str, ...]

    @property
    def input_ids(self) -> list[int]:
        """Vocabulary numbers of the pieces, special tokens included."""
        return self.encoding.ids

    @property
    def token_type_ids(self) -> list[int]:
        """Segment of every piece."""
        return self.encoding.type_ids

    @property
    def pieces(self) -> list[str]:
        """The pieces as the vocabulary spells them, special tokens included."""
        return self.encoding.tokens

    @property
    def is_special(self) -> list[bool]:
        """True for the pieces that the tokenizer added itself, such as [CLS] and [SEP]."""
        return [bool(flag) for flag in self.encoding.special_tokens_mask]

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words in order; of a pair, those of the first text come first.

        A piece that spans two given words counts for both. In a plain text, characters that the
        tokenizer deletes (control characters, lone accents) form no word.

        Raises:
            AlignmentError: a given word has no pieces.
        """
        found = list(self._words_of(0, self.text))
        if self.second is not None:
            found += self._words_of(1, self.second)
        return tuple(found)

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Piece span of every word."""
        return tuple(word.pieces for word in self.words)

    def _words_of(self, segment: int, text: str) -> Iterable[Word]:
        spans = self.given if self.given is not None else split_words(text, self.special)
        pieces = self._piece_chars(segment, text)
        start = 0
        for chars in spans:
            # Pieces and words both run left to right, so earlier pieces never matter again.
            while start < len(pieces) and pieces[start][2] <= chars[0]:
                start += 1
            stop = start
            while stop < len(pieces) and pieces[stop][1] < chars[1]:
                stop += 1
            if stop > start:
                first, last = pieces[start][0], pieces[stop - 1][0]
                yield Word(text[chars[0] : chars[1]], tuple(chars), (first, last + 1), segment)
            elif self.given is not None:
                word = text[chars[0] : chars[1]]
                raise AlignmentError(
                    f"the tokenizer finds nothing in {excerpt(word)} of {excerpt(text)}"
                )

    def _piece_chars(self, segment: int, text: str) -> list[tuple[int, int, int]]:
        """(piece, first character, one past the last), without leading white space."""
        rows = []
        numbered = zip(self.encoding.sequence_ids, self.encoding.offsets, strict=True)
        for piece, (sequence, (start, end)) in enumerate(numbered):
            if sequence != segment:
                continue
            # Byte-level tokenizers may count the space before a word as part of its first piece.
            while start < end and text[start].isspace():
                start += 1
            if start < end:
                rows.append((piece, start, end))
        return rows


def tokenizer_of(
    source: Encoder | PreTrainedTokenizerBase,
) -> tuple[PreTrainedTokenizerBase, int]:
    """The tokenizer and the longest input, in pieces, of an encoder or a tokenizer."""
    if isinstance(source, Encoder):
        return source.tokenizer, source.max_length
    return source, source.model_max_length


def align_all(source: Encoder | PreTrainedTokenizerBase, texts: Sequence[Text]) -> list[Aligned]:
    """Tokenise several texts at once, in the given order, each checked.

    Raises:
        TextTypeError, TextEncodingError, EmptyTextError, TextTooLongError, AlignmentError: naming
            the text.
    """
    tokenizer, max_length = tokenizer_of(source)
    special = tuple(tokenizer.all_special_tokens)
    plain = [_read(text) for text in texts]
    core = tokenizer.backend_tokenizer
    # Earlier calls leave their settings behind; length is checked below, and padding comes later.
    core.no_truncation()
    core.no_padding()
    encodings = core.encode_batch(
        [text if second is None else (text, second) for text, second, _ in plain]
    )
    rows = []
    for i, (text, second, given) in enumerate(plain):
        encoding = encodings[i]
        if len(encoding.ids) > max_length:
            whole = text if second is None else f"{text} {second}"
            raise TextTooLongError(whole, len(encoding.ids), max_length)
        found = set(encoding.sequence_ids)
        if not found >= ({0} if second is None else {0, 1}):
            raise EmptyTextError(f"the tokenizer finds nothing in text {i}: {excerpt(text)}")
        rows.append(Aligned(text, second, given, encoding, special))
    return rows


def align(source: Encoder | PreTrainedTokenizerBase, text: Text) -> Aligned:
    """Tokenise one text and align its words with its pieces.

    Args:
        source: an encoder or a fast tokenizer.
        text: a string; a list of words; a :class:`WordList`; or a :class:`TextPair`.

    Raises:
        TextTypeError: not one of these.
        TextEncodingError: it holds half of a surrogate pair.
        EmptyTextError: the tokenizer finds nothing in it.
        TextTooLongError: more pieces than the model has positions.
        AlignmentError: given words do not fit the text, or (on use) have no pieces.
    """
    return align_all(source, [text])[0]


def _read(text: Text) -> tuple[str, str | None, tuple[tuple[int, int], ...] | None]:
    """(text, second text or None, spans of given words or None)."""
    if isinstance(text, str):
        return _checked(text), None, None
    if isinstance(text, TextPair):
        return _checked(text.first), _checked(text.second), None
    if isinstance(text, WordList):
        if text.text is None:
            joined, spans = join_words(text.words)
        else:
            joined, spans = text.text, locate_words(text.text, text.words)
        return joined, None, tuple(spans)
    if isinstance(text, (list, tuple)):
        joined, spans = join_words(text)
        return joined, None, tuple(spans)
    raise TextTypeError(
        f"expected a text (str), a list of words, a WordList or a TextPair, "
        f"got {type(text).__name__}: {excerpt(repr(text))}"
    )


def _checked(text: str) -> str:
    if not checked_text(text).strip():
        raise EmptyTextError(f"an empty text: {excerpt(text)}")
    return text
