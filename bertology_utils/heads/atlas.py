"""What an atlas of heads shows of each: an edge that it finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..attention import attention_maps
from ..encoder import Encoder
from ..stimuli import Sentence
from .functions import HeadFunction
from .pairs import words_of


@dataclass(frozen=True)
class FoundEdge:
    """An edge of a tree that a head finds: ``source`` attends most to ``target``."""

    text: str
    source: str
    target: str
    weight: float


def found_edges(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    functions: Sequence[Sequence[HeadFunction]],
) -> tuple[tuple[FoundEdge | None, ...], ...]:
    """For every head the first edge of its best relation that it finds; [L][H].

    The first one, not the prettiest. None where it finds none in these sentences.

    Raises:
        ValueError: functions of another number of layers or heads.
    """
    shape = (encoder.n_layers, encoder.n_heads)
    if (len(functions), *{len(row) for row in functions}) != shape:
        raise ValueError(f"functions do not fit {shape[0]} layers of {shape[1]} heads")
    found: list[list[FoundEdge | None]] = [[None] * shape[1] for _ in range(shape[0])]
    first = np.full(shape, len(sentences))
    for maps in attention_maps(encoder, [words_of(s) for s in sentences]):
        sentence, words = sentences[maps.index], maps.words.copy()
        places = np.arange(words.shape[-1])
        words[..., places, places] = -1.0
        winner = words.argmax(-1)
        edges: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for head, dependent, relation in sentence.edges():
            edges.setdefault((relation, "dependent"), []).append((dependent, head))
            edges.setdefault((relation, "head"), []).append((head, dependent))
        # Texts come sorted by length, so an earlier sentence may still turn up.
        for k, h in zip(*np.nonzero(first > maps.index), strict=True):
            asked = functions[k][h]
            for source, target in edges.get((asked.relation, asked.direction), ()):
                if winner[k, h, source] == target:
                    first[k, h] = maps.index
                    found[k][h] = FoundEdge(
                        sentence.text, sentence.words[source], sentence.words[target],
                        float(words[k, h, source, target]),
                    )  # fmt: skip
                    break
    return tuple(tuple(row) for row in found)
