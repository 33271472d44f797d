"""From many runs to a number with an interval: paired differences, spreads, parts of variance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..attention import HeadScores
from ..resampling import Estimate, mean_over_runs, percentile_interval, resampled_means

RESAMPLES = 1000


def over_runs(
    values: Sequence[float],
    unit: str,
    model: str,
    *,
    baselines: Mapping[str, float] | None = None,
    seed: int = 0,
) -> Estimate:
    """The mean of one number a run, with Student's interval over the runs.

    Raises:
        ValueError: fewer than two runs.
    """
    return mean_over_runs(values, unit=unit, model=model, baselines=baselines, seed=seed)


def paired_gain(
    ours: Sequence[np.ndarray],
    theirs: Sequence[np.ndarray],
    model: str,
    *,
    baselines: Mapping[str, float] | None = None,
) -> Estimate:
    """Mean accuracy of some runs minus that of others with the same data and seeds.

    Args:
        ours, theirs: per run, [N] True where a text was judged rightly.

    Raises:
        ValueError: other numbers of runs or texts, or fewer than two runs.
    """
    if [len(a) for a in ours] != [len(b) for b in theirs]:
        raise ValueError("runs cannot be paired: other numbers of runs or texts")
    gaps = [float(np.mean(a) - np.mean(b)) for a, b in zip(ours, theirs, strict=True)]
    return over_runs(gaps, "share difference", model, baselines=baselines)


def paired_texts_gain(
    ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray], model: str, *, seed: int = 0
) -> Estimate:
    """Mean accuracy of some models minus that of others, with an interval over texts.

    For comparisons in which every model was trained once: the interval leaves the luck of the
    training out.

    Args:
        ours, theirs: per task, [N] True where a text was judged rightly.

    Raises:
        ValueError: other numbers of tasks or texts.
    """
    if [len(a) for a in ours] != [len(b) for b in theirs] or not len(ours):
        raise ValueError("models cannot be paired: other numbers of tasks or texts")
    gaps = [np.asarray(a, float) - np.asarray(b, float)
            for a, b in zip(ours, theirs, strict=True)]  # fmt: skip
    value = float(np.mean([gap.mean() for gap in gaps]))
    draws = [resampled_means(gap, np.ones(len(gap)), seed=seed + i) for i, gap in enumerate(gaps)]
    return Estimate(
        value=value,
        unit="share difference",
        n=sum(map(len, gaps)),
        model=model,
        seed=seed,
        interval=percentile_interval(np.mean(draws, axis=0), value),
    )


def spread_gap(
    ours: Sequence[float], theirs: Sequence[float], model: str, *, seed: int = 0
) -> Estimate:
    """Standard deviation of some runs minus that of others with the same seeds.

    The interval resamples pairs of runs.

    Raises:
        ValueError: other numbers of runs, or fewer than three.
    """
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    if a.shape != b.shape or len(a) < 3:
        raise ValueError(f"need three pairs of runs or more, got {len(a)} and {len(b)}")
    draw = np.random.default_rng(seed).integers(len(a), size=(RESAMPLES, len(a)))
    value = float(a.std(ddof=1) - b.std(ddof=1))
    draws = a[draw].std(1, ddof=1) - b[draw].std(1, ddof=1)
    return Estimate(
        value=value,
        unit="share difference",
        n=len(a),
        model=model,
        seed=seed,
        interval=percentile_interval(draws, value),
    )


def best_head_gain(after: HeadScores, before: HeadScores) -> Estimate:
    """The best head after training minus the best head before, which may be another one.

    Both are chosen on one half of the texts and compared on the other; the interval resamples the
    texts of the second half, in pairs.

    Raises:
        ValueError: measures of other texts.
        NothingToScoreError: fewer than two texts hold an item.
    """
    if after.sums.shape[0] != before.sums.shape[0] or after.seed != before.seed:
        raise ValueError(f"{after.name} and {before.name} are not of the same texts")
    if not np.array_equal(after.counts, before.counts):
        raise ValueError(f"{after.name} and {before.name} count different items")
    new, old = after.best, before.best
    # The same halves as in HeadScores.best, which depend on texts and seed alone.
    order = np.random.default_rng(after.seed).permutation(np.flatnonzero(after.counts))
    test = order[len(order) // 2 :]
    gap = (after.sums[test, new.layer, new.head].astype(float)
           - before.sums[test, old.layer, old.head].astype(float))  # fmt: skip
    draws = resampled_means(gap, after.counts[test], seed=after.seed)
    value = new.value - old.value
    return Estimate(
        value=value,
        unit="share difference",
        n=len(test),
        model=after.model,
        seed=after.seed,
        interval=percentile_interval(draws, value),
    )


def accuracy_range(right: np.ndarray, model: str, *, seed: int = 0) -> Estimate:
    """Accuracy of the best run minus that of the worst, of runs judged on the same texts.

    The interval resamples texts.

    Args:
        right: [R, N] True where run r judged text n rightly.

    Raises:
        ValueError: fewer than two runs.
    """
    right = _runs(right)
    draw = np.random.default_rng(seed)
    counts = draw.multinomial(right.shape[1], np.full(right.shape[1], 1 / right.shape[1]),
                              size=RESAMPLES)  # fmt: skip
    draws = np.ptp(counts @ right.T / right.shape[1], axis=1)
    value = float(np.ptp(right.mean(1)))
    return Estimate(
        value=value,
        unit="share difference",
        n=len(right),
        model=model,
        seed=seed,
        interval=percentile_interval(draws, value),
    )


def held_out_range(right: np.ndarray, model: str, *, seed: int = 0, splits: int = 400) -> Estimate:
    """The best and the worst run of one half of the texts, compared on the other half.

    Picking extremes on the texts that judge them overstates their distance, even for runs that are
    equally good. Value: mean over random halves. Interval: texts are resampled, and a text drawn
    twice stays in one half. Baseline ``same_texts``: the plain range.

    Raises:
        ValueError: fewer than two runs or four texts.
    """
    right = _runs(right)
    n = right.shape[1]
    if n < 4:
        raise ValueError(f"two halves need four texts or more, got {n}")
    draw = np.random.default_rng(seed)

    def gap(times: np.ndarray) -> float:
        half = np.zeros(n, bool)
        half[draw.permutation(n)[: n // 2]] = True
        choose, test = right @ (times * half), right @ (times * ~half)
        worst, best = int(choose.argmin()), int(choose.argmax())
        return float((test[best] - test[worst]) / max(1, (times * ~half).sum()))

    value = float(np.mean([gap(np.ones(n)) for _ in range(splits)]))
    # The mean over several halves of a replicate: one half alone would add its own noise.
    draws = [np.mean([gap(times) for _ in range(8)])
             for times in draw.multinomial(n, np.full(n, 1 / n), size=RESAMPLES // 2)]  # fmt: skip
    return Estimate(
        value=value,
        unit="share difference",
        n=len(right),
        model=model,
        seed=seed,
        baselines={"same_texts": float(np.ptp(right.mean(1)))},
        interval=percentile_interval(np.array(draws), value),
    )


@dataclass(frozen=True)
class VarianceParts:
    """Variance of accuracy in a grid of heads by orders, by its source.

    Attributes:
        head, order: what the means of rows and of columns explain.
        both: the rest, which only the pair explains.
        total: of the three.
    """

    head: float
    order: float
    both: float

    @property
    def total(self) -> float:
        return self.head + self.order + self.both

    def shares(self) -> dict[str, float]:
        """Each part over the total; zero where nothing varies."""
        total = self.total or 1.0
        return {"head": self.head / total, "order": self.order / total, "both": self.both / total}


def variance_parts(grid: np.ndarray) -> VarianceParts:
    """Split the variance of a grid [heads, orders] into rows, columns and the rest.

    The three add up to the variance over all cells.

    Raises:
        ValueError: not a grid with two rows and two columns or more.
    """
    grid = np.asarray(grid, float)
    if grid.ndim != 2 or min(grid.shape) < 2:
        raise ValueError(f"a grid of heads and orders is needed, not {grid.shape}")
    rows, columns = grid.mean(1), grid.mean(0)
    rest = grid - rows[:, None] - columns[None] + grid.mean()
    return VarianceParts(float(rows.var()), float(columns.var()), float(rest.var()))


def expected_best(scores: Sequence[float], tries: int) -> float:
    """Mean of the best of ``tries`` scores drawn at random with replacement (Dodge et al. 2019).

    Raises:
        ValueError: no scores or no tries.
    """
    ordered = np.sort(np.asarray(scores, float))
    if not len(ordered) or tries < 1:
        raise ValueError(f"{len(ordered)} scores, {tries} tries")
    reached = (np.arange(len(ordered) + 1) / len(ordered)) ** tries
    return float(ordered @ np.diff(reached))


@dataclass(frozen=True)
class Stopped:
    """What stopping poor starts early brings.

    Attributes:
        kept: runs that went on to the end.
        best: final score of the best of them by the watched score.
        best_of_all: the same had all runs gone on.
        steps_saved: share of all training steps that were not made.
    """

    kept: tuple[int, ...]
    best: float
    best_of_all: float
    steps_saved: float


def stop_early(
    early: Sequence[float],
    late: Sequence[float],
    final: Sequence[float],
    *,
    keep: int,
    done: float,
) -> Stopped:
    """Let only the most promising runs go on, then hand out the best by held-out score.

    Args:
        early, late: [R] scores on watched texts, part of the way and at the end.
        final: [R] scores on test texts.
        keep: how many runs go on.
        done: share of the steps made at the early look.

    Raises:
        ValueError: other numbers of runs, or ``keep`` outside 1 .. R.
    """
    first, second, last = (np.asarray(x, float) for x in (early, late, final))
    if not first.shape == second.shape == last.shape or not 1 <= keep <= len(first):
        raise ValueError(f"keep {keep} of {len(first)}, {len(second)} and {len(last)} runs")
    kept = np.sort(np.argsort(-first, kind="stable")[:keep])
    return Stopped(
        tuple(int(i) for i in kept),
        float(last[kept[second[kept].argmax()]]),
        float(last[second.argmax()]),
        (1 - keep / len(first)) * (1 - done),
    )


def _runs(right: np.ndarray) -> np.ndarray:
    right = np.asarray(right, float)
    if right.ndim != 2 or len(right) < 2:
        raise ValueError(f"need two runs or more on the same texts, got {right.shape}")
    return right
