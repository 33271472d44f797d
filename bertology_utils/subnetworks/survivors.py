"""Which heads are left: their overlap between seeds, and what they do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from ..resampling import Estimate, percentile_interval, resampled_means
from .effects import Head, order_of


def top_half(importance: np.ndarray) -> set[Head]:
    """The more important half of the heads, of [L, H]."""
    order = order_of(importance)
    return set(order[len(order) // 2 :])


def jaccard(one: Iterable[Head], other: Iterable[Head]) -> float:
    """Shared heads over all heads of either set.

    Raises:
        ValueError: two empty sets.
    """
    a, b = set(one), set(other)
    if not a | b:
        raise ValueError("two empty sets have no overlap")
    return len(a & b) / len(a | b)


def overlap_of_seeds(
    slopes: Sequence[np.ndarray], model: str, *, kept: float = 0.5, seed: int = 0,
    resamples: int = 500,
) -> Estimate:  # fmt: skip
    """Mean Jaccard overlap of the surviving heads of every two runs.

    Args:
        slopes: [N, L, H] of every run, on the same texts; see ``slopes``.
        kept: share of heads that survive.
        seed: of the bootstrap over texts.

    Baselines: ``chance``, for sets of this size drawn at random; ``same_run``, the overlap of two
    halves of the texts in one run.

    Raises:
        ValueError: fewer than two runs.
    """
    if len(slopes) < 2:
        raise ValueError(f"an overlap takes at least two runs, got {len(slopes)}")
    total = slopes[0][0].size
    k = max(1, round(kept * total))

    def survivors(flat: np.ndarray) -> np.ndarray:
        """[..., heads] -> boolean, the k largest."""
        order = np.argsort(flat, axis=-1, kind="stable")[..., -k:]
        out = np.zeros(flat.shape, bool)
        np.put_along_axis(out, order, True, axis=-1)
        return out

    def overlap(sets: list[np.ndarray]) -> np.ndarray:
        pairs = [(a & b).sum(-1) / (a | b).sum(-1) for a, b in combinations(sets, 2)]
        return np.mean(pairs, axis=0)

    flat = [s.reshape(len(s), -1) for s in slopes]
    value = float(overlap([survivors(s.mean(0)) for s in flat]))
    draws = overlap([
        survivors(resampled_means(s, np.ones(len(s)), seed=seed, resamples=resamples))
        for s in flat
    ])  # fmt: skip
    halves = [overlap([survivors(s[::2].mean(0)), survivors(s[1::2].mean(0))]) for s in flat]
    rng = np.random.default_rng(seed)
    chance = overlap([survivors(rng.random((2000, total))) for _ in range(2)]).mean()
    return Estimate(
        value=value, unit="share", n=total, model=model, seed=seed,
        baselines={"chance": float(chance), "same_run": float(np.mean(halves))},
        interval=percentile_interval(draws, value),
    )  # fmt: skip


def survival_gap(
    survivors: Iterable[Head], special: Iterable[Head], shape: tuple[int, int], model: str, *,
    seed: int = 0,
) -> Estimate:  # fmt: skip
    """Share of some heads that survive minus share of the others, bootstrap over heads.

    Raises:
        ValueError: none of the heads is special, or all are.
    """
    left, own = set(survivors), set(special)
    every = [(k, h) for k in range(shape[0]) for h in range(shape[1])]
    lives = np.array([head in left for head in every], float)
    mine = np.array([head in own for head in every])
    if not mine.any() or mine.all():
        raise ValueError(f"{int(mine.sum())} of {len(every)} heads are of the kind: no comparison")

    def gap(rows: np.ndarray) -> float:
        return lives[rows][mine[rows]].mean() - lives[rows][~mine[rows]].mean()

    value = float(gap(np.arange(len(every))))
    draw = np.random.default_rng(seed)
    draws = []
    while len(draws) < 1000:
        rows = draw.integers(0, len(every), len(every))
        if 0 < mine[rows].sum() < len(rows):
            draws.append(gap(rows))
    return Estimate(
        value=value, unit="share difference", n=len(every), model=model, seed=seed,
        interval=percentile_interval(np.array(draws), value),
    )  # fmt: skip


def range_of_pairs(
    kept: dict[tuple[str, str], np.ndarray], model: str, *, seed: int = 0
) -> Estimate:
    """Largest minus smallest accuracy kept, over pairs of tasks.

    Args:
        kept: (task, task of the mask) -> [N] right under the mask minus right in full, or any
            number a text.

    Baselines: ``alike_pairs``, what the range would stay below in 19 of 20 cases, with so many
    texts, if all pairs were alike: a range is never negative, so it has to be compared with this
    and not with 0.

    Raises:
        ValueError: fewer than two pairs.
    """
    if len(kept) < 2:
        raise ValueError(f"a range takes at least two pairs, got {len(kept)}")
    values = list(kept.values())
    means = np.array([v.mean() for v in values])
    draws = np.stack(
        [resampled_means(v, np.ones(len(v)), seed=seed + i) for i, v in enumerate(values)], axis=1
    )
    centred = draws - means + means.mean()
    value = float(np.ptp(means))
    return Estimate(
        value=value, unit="share difference", n=len(kept), model=model, seed=seed,
        baselines={"alike_pairs": float(np.percentile(np.ptp(centred, axis=1), 95))},
        interval=percentile_interval(np.ptp(draws, axis=1), value),
    )  # fmt: skip
