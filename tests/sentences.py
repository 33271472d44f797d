"""Sentences given by their heads alone, for tests of trees."""

from collections.abc import Sequence

from bertology_utils.stimuli import Sentence


def sentence(heads: Sequence[int], upos: Sequence[str] | None = None) -> Sentence:
    """A sentence of made-up words: heads from 1 on, 0 for the root; nouns if nothing is said."""
    n = len(heads)
    words = tuple(f"w{i}" for i in range(n))
    return Sentence(
        words,
        tuple(upos or ["NOUN"] * n),
        tuple(heads),
        ("dep",) * n,
        words,
        ("_",) * n,
        " ".join(words),
    )
