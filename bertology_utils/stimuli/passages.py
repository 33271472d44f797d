"""Short passages written for this book, and pairs of segments cut from them.

No model can have met them in training, and neighbouring sentences belong together: unseen text
for masked prediction, and material for next-sentence prediction.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from bertology_utils.stimuli._draw import Draw


class PassageError(ValueError):
    """More pairs than there are, or too few to exchange partners."""


@dataclass(frozen=True)
class Passage:
    """A topic in one or two words and four sentences that follow one another."""

    topic: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.sentences)


@dataclass(frozen=True)
class SegmentPair:
    """Two segments; ``follows`` says whether the second continues the first.

    ``passage`` numbers the passage of the first segment, so that pairs that share a segment can
    be resampled together.
    """

    first: str
    second: str
    follows: bool
    passage: int


@lru_cache(maxsize=1)
def passages() -> tuple[Passage, ...]:
    """All passages, in a fixed order."""
    source = files(__package__).joinpath("data", "passages.txt").read_text(encoding="utf-8")
    blocks = (block.splitlines() for block in source.strip().split("\n\n"))
    return tuple(Passage(topic.removeprefix("# "), tuple(lines)) for topic, *lines in blocks)


def segment_pairs(n: int | None = None, seed: int = 0) -> list[SegmentPair]:
    """Pairs of neighbouring sentences and as many pairs of strangers.

    Every second segment occurs twice, once behind its own first segment and once behind one of
    another passage, so that neither segment alone gives the answer away.

    Args:
        n: number of pairs, an even number; all by default. They alternate: follows, does not.
        seed: of the choice of strangers and of the order.

    Raises:
        PassageError: ``n`` is odd, below 4 or above what there is.
    """
    own = [
        (number, passage.sentences[i], passage.sentences[i + 1])
        for number, passage in enumerate(passages())
        for i in range(0, len(passage.sentences) - 1, 2)
    ]
    if n is None:
        n = 2 * len(own)
    if n % 2 or not 4 <= n <= 2 * len(own):
        raise PassageError(f"n must be even and from 4 to {2 * len(own)}, not {n}")
    kept = Draw("segments", seed).shuffled(own)[: n // 2]
    partner = _strangers([number for number, _, _ in kept])
    pairs = []
    for i, (number, first, second) in enumerate(kept):
        pairs.append(SegmentPair(first, second, True, number))
        pairs.append(SegmentPair(first, kept[partner[i]][2], False, number))
    return pairs


def _strangers(numbers: list[int]) -> list[int]:
    """For each place another one with another number; every place is given away once."""
    for shift in range(1, len(numbers)):
        rotated = [(i + shift) % len(numbers) for i in range(len(numbers))]
        if all(numbers[i] != numbers[j] for i, j in enumerate(rotated)):
            return rotated
    # Only when one passage fills most of a very small selection.
    raise PassageError("too few passages to find a stranger for every segment")
