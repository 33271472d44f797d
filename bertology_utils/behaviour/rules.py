"""Fragments of logic as a two-way question: does it follow or not (Richardson et al. 2020)?"""

from __future__ import annotations

from dataclasses import dataclass

from ..stimuli import fragment
from ..words import TextPair


@dataclass(frozen=True)
class RuleItems:
    """Pairs of a fragment and whether the second follows from the first.

    Attributes:
        texts: premise and hypothesis.
        labels: 1 where it follows, else 0; both equally often.
    """

    texts: tuple[TextPair, ...]
    labels: tuple[int, ...]


def rule_items(
    name: str, n: int, seed: int = 0, *, split: str = "all", steps: int = 2
) -> RuleItems:
    """``n`` balanced items of a fragment; what does not follow is a contradiction or left open.

    Raises:
        ValueError: an odd number, or as ``stimuli.fragment``.
    """
    if n < 2 or n % 2:
        raise ValueError(f"n must be even and at least 2, not {n}")
    pool = fragment(name, 3 * (n // 2), seed, steps=steps, split=split)
    follows = [p for p in pool if p.label == "entailment"]
    other = [p for p in pool if p.label != "entailment"][: n // 2]
    chosen = [(p, 1) for p in follows[: n // 2]] + [(p, 0) for p in other]
    return RuleItems(
        tuple(TextPair(p.premise, p.hypothesis) for p, _ in chosen),
        tuple(label for _, label in chosen),
    )
