"""Which heads have a linguistic function, how protocols differ, and how pictures mislead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..attention import ALL, DIRECTIONS, HeadScores, RelationScores
from ..resampling import Estimate, percentile_interval, resampled_means

#: A head has a function if it beats the best fixed offset by this much at some relation.
MARGIN = 0.1
#: Relations with fewer edges are not asked about.
MIN_EDGES = 20


@dataclass(frozen=True)
class HeadFunction:
    """The relation at which a head is farthest above the best fixed offset.

    Attributes:
        relation, direction: which one; see ``relation_scores``.
        accuracy, offset: share of edges that the head, and the best fixed offset, find.
    """

    relation: str
    direction: str
    accuracy: float
    offset: float

    @property
    def gain(self) -> float:
        return self.accuracy - self.offset

    @property
    def named(self) -> bool:
        """Whether the gain is at least :data:`MARGIN`."""
        return self.gain >= MARGIN


def head_functions(
    scores: RelationScores, *, min_edges: int = MIN_EDGES
) -> tuple[tuple[HeadFunction, ...], ...]:
    """The best relation of every head, [L][H], over all sentences.

    The best of many relations is picked on the data that scores it, so a single gain is
    optimistic; the random model tells by how much.

    Raises:
        ValueError: no relation has ``min_edges`` edges.
    """
    rows = []
    for r, relation in enumerate(scores.relations):
        edges = scores.counts[:, r].sum()
        if relation in (ALL, "punct") or edges < min_edges:
            continue
        for d, direction in enumerate(DIRECTIONS[:2]):
            accuracy = scores.hits[:, r, d].sum(0, dtype=float) / edges
            offset = float(scores.offset_hits[:, r, d].sum(0).max() / edges)
            rows.append((relation, direction, accuracy, offset))
    if not rows:
        raise ValueError(f"no relation with {min_edges} edges")
    gains = np.stack([accuracy - offset for _, _, accuracy, offset in rows])
    best = gains.argmax(0)

    def function(layer: int, head: int) -> HeadFunction:
        relation, direction, accuracy, offset = rows[best[layer, head]]
        return HeadFunction(relation, direction, float(accuracy[layer, head]), offset)

    n_layers, n_heads = best.shape
    return tuple(tuple(function(k, h) for h in range(n_heads)) for k in range(n_layers))


@dataclass(frozen=True, kw_only=True)
class ProtocolChange(Estimate):
    """Mean size of the change of a relation's gain between two protocols.

    Attributes:
        one_way, either: relation -> gain of the best head over the best fixed offset if the
            guess goes one way (the better of two; Clark et al. 2019), and if either of the two
            words may find the other (Htut et al. 2019).
    """

    one_way: dict[str, float]
    either: dict[str, float]


def protocol_change(scores: RelationScores, relations: Sequence[str]) -> ProtocolChange:
    """Compare the two protocols on the same attention.

    Heads, offsets and directions are chosen anew in every bootstrap replicate.

    Raises:
        KeyError: a relation that is not in the treebank.
        ValueError: no relations.
    """
    if not relations:
        raise ValueError("no relations to compare")

    def gains(relation: str, directions: Sequence[str]) -> tuple[float, np.ndarray]:
        values, draws = [], []
        for direction in directions:
            found = scores.scores(relation, direction)
            offsets, counts = found.controls["fixed_offset"], found.counts
            flat = found.sums.reshape(len(counts), -1)
            values.append(flat.sum(0, dtype=float).max() - offsets.sum(0, dtype=float).max())
            # One seed, hence the same sentences in both sets of replicates.
            best = resampled_means(flat, counts, seed=scores.seed).max(-1)
            draws.append(best - resampled_means(offsets, counts, seed=scores.seed).max(-1))
        return max(values) / counts.sum(), np.max(draws, axis=0)

    one_way = {name: gains(name, DIRECTIONS[:2]) for name in relations}
    either = {name: gains(name, DIRECTIONS[2:]) for name in relations}
    changes = [(abs(one_way[k][0] - either[k][0]), np.abs(one_way[k][1] - either[k][1]))
               for k in relations]  # fmt: skip
    value = float(np.mean([change for change, _ in changes]))
    draws = np.nanmean([draw for _, draw in changes], axis=0)
    return ProtocolChange(
        value=value,
        unit="share difference",
        n=int(sum(scores.scores(name).counts.sum() for name in relations)),
        model=scores.model,
        seed=scores.seed,
        interval=percentile_interval(draws, value),
        one_way={name: float(gain) for name, (gain, _) in one_way.items()},
        either={name: float(gain) for name, (gain, _) in either.items()},
    )


@dataclass(frozen=True, kw_only=True)
class CherryPick(Estimate):
    """How much better a head looks on its best sentence than on all, mean over heads.

    Attributes:
        layer, head: one head drawn at random, to be shown.
        order: the sentences in the order in which they are looked at.
        accuracy: that head's score on every sentence; NaN where there is nothing to score.
        overall: that head's score on all sentences.
    """

    layer: int
    head: int
    order: tuple[int, ...]
    accuracy: tuple[float, ...]
    overall: float

    def best_of(self, looked_at: int) -> int:
        """The sentence on which the head looks best among the first ones looked at.

        Raises:
            ValueError: ``looked_at`` is below 1.
        """
        if looked_at < 1:
            raise ValueError(f"at least one sentence has to be looked at, not {looked_at}")
        return max(self.order[:looked_at], key=lambda i: self.accuracy[i])


def cherry_pick(
    scores: HeadScores, *, looked_at: int = 50, min_items: int = 1, seed: int = 0
) -> CherryPick:
    """Show every head on the best of ``looked_at`` sentences, and compare with all sentences.

    Sentences with fewer than ``min_items`` items are not shown, since a perfect score on one or
    two impresses nobody. The interval resamples heads.

    Raises:
        ValueError: fewer than two sentences hold so many items.
    """
    usable = np.flatnonzero(scores.counts >= max(1, min_items))
    if len(usable) < 2:
        raise ValueError(f"picking needs two sentences of {min_items} items, not {len(usable)}")
    draw = np.random.default_rng(seed)
    order = draw.permutation(usable)
    rates = scores.sums[order[:looked_at]] / scores.counts[order[:looked_at], None, None]
    gains = (rates.max(0) - scores.scores).ravel()
    layer, head = (int(draw.integers(size)) for size in scores.scores.shape)
    value = float(gains.mean())
    draws = resampled_means(gains, np.ones(len(gains)), seed=seed)
    return CherryPick(
        value=value,
        unit="share difference",
        n=len(gains),
        model=scores.model,
        seed=seed,
        interval=percentile_interval(draws, value),
        layer=layer,
        head=head,
        order=tuple(map(int, order)),
        accuracy=tuple(map(float, scores.per_text(layer, head))),
        overall=float(scores.scores[layer, head]),
    )
