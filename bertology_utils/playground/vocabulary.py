"""What a browser must know to cut text into the same pieces as the Python tokenizer."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Iterator

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from ..encoder import Encoder, UnsupportedModelError

#: the variable that the page's scripts share
NAMESPACE = "bertologyPlayground"
_LEFT, _RIGHT = "\ua000", "\ua001"
_STRIDE = 16


def vocabulary_script(encoder: Encoder) -> str:
    """Return a script that hands the page the pieces, the special ones, and character classes.

    A script and not JSON, since a page opened as a file may load scripts but no data.

    Raises:
        UnsupportedModelError: the tokenizer is not BERT's WordPiece.
    """
    core = encoder.tokenizer.backend_tokenizer
    if not isinstance(core.model, WordPiece) or not isinstance(core.normalizer, BertNormalizer):
        raise UnsupportedModelError(f"the tokenizer of {encoder.name!r} is no BERT WordPiece")
    settings = core.normalizer
    if not (settings.lowercase and settings.clean_text and settings.handle_chinese_chars):
        raise UnsupportedModelError(f"the tokenizer of {encoder.name!r} keeps case or characters")
    if not isinstance(core.pre_tokenizer, BertPreTokenizer):
        raise UnsupportedModelError(f"the tokenizer of {encoder.name!r} finds words in another way")
    pieces = encoder.tokenizer.convert_ids_to_tokens(range(len(encoder.tokenizer)))
    special = {token: encoder.tokenizer.convert_tokens_to_ids(token)
               for token in encoder.tokenizer.all_special_tokens}
    content = {
        "pieces": pieces,
        "special": special,
        "longest": core.model.max_input_chars_per_word,
        "maxLength": encoder.max_length,
        "classes": {name: steps(points) for name, points in character_classes(core).items()},
    }
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return f"(self.{NAMESPACE}??={{}}).vocabulary={text};\n"


def character_classes(core: Tokenizer) -> dict[str, list[int]]:
    """Ask the tokenizer about every character: which vanish, separate, or stand alone.

    Returns:
        name of the class -> code points in it, ascending. ``removed`` vanish, ``blank`` separate
        words, ``ideograph`` get blanks around them before anything else is looked at, ``alone``
        are words of their own.
    """
    points = [
        p for p in range(sys.maxunicode + 1) if not 0xD800 <= p <= 0xDFFF
        and (_is_asked_about(p) or p % _STRIDE == 0)
    ]  # fmt: skip
    # The neighbours, letters that nothing else turns into, show what became of a character.
    marked = core.normalizer.normalize_str("".join(f"{_LEFT}{chr(p)}{_RIGHT}" for p in points))
    found: dict[str, list[int]] = {name: [] for name in ("removed", "blank", "ideograph", "alone")}
    for point, became in zip(points, _between(marked, points), strict=True):
        if became == "":
            found["removed"].append(point)
        elif became == " ":
            found["blank"].append(point)
        elif became.startswith(" ") and became.endswith(" "):
            found["ideograph"].append(point)
    gone = {*found["removed"], *found["blank"]}
    # What the tokenizer's older Unicode counts as punctuation, Python's counts as one of these.
    left = [p for p in points if p not in gone and unicodedata.category(chr(p))[0] in "PSM"]
    words = core.pre_tokenizer.pre_tokenize_str(" ".join(f"x{chr(p)}x" for p in left))
    # Each group takes four characters, so a word that begins at the second is the character.
    alone = {start // 4 for _, (start, end) in words if start % 4 == 1 and end - start == 1}
    found["alone"] = [left[i] for i in sorted(alone)]
    return {name: list(_unfold(members)) for name, members in found.items()}


def _is_asked_about(point: int) -> bool:
    """Characters with an answer of their own: scripts, tags, the ends of planes.

    Beyond lies what is for private use or not assigned, whole rows of 16 that fare alike.
    """
    return point < 0x32400 or 0xE0000 <= point < 0xE1000 or point & 0xFFFF >= 0xFFF0


def _unfold(points: list[int]) -> Iterator[int]:
    """Let the first point of a row stand for the others of it that were not asked about."""
    for point in points:
        yield from range(point, point + (1 if _is_asked_about(point) else _STRIDE))


def _between(text: str, points: list[int]) -> Iterator[str]:
    """What stands between each pair of neighbours, in order."""
    at = 0
    for point in points:
        begin = at + 1
        end = text.index(_RIGHT, begin + (chr(point) == _RIGHT))
        yield text[begin:end]
        at = end + 1


def steps(points: Iterable[int]) -> list[int]:
    """Where runs of neighbouring numbers begin and end, each as the distance from the last.

    >>> steps([3, 4, 5, 9])
    [3, 3, 3, 1]
    """
    edges: list[int] = []
    for point in points:
        if edges and edges[-1] == point:
            edges[-1] = point + 1
        else:
            edges += [point, point + 1]
    return [edge - before for edge, before in zip(edges, [0, *edges], strict=False)]
