"""Intervals, correlations and scores of classes against numbers worked out by hand."""

import math

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from bertology_utils import resampling
from bertology_utils.cloze import UnequalPairError, preference, wilson_interval
from bertology_utils.probes.errors import UnequalLengthError
from bertology_utils.probes.results import ProbeResult, class_scores, ratio_interval, share_interval
from bertology_utils.resampling import (
    Estimate,
    mean_over_runs,
    percentile_interval,
    rank_correlation,
    resampled_means,
    student_reach,
)

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

# --- the bootstrap ------------------------------------------------------------------------------


def test_alike_items_have_no_spread():
    draws = resampled_means(np.full(7, 3.0), np.full(7, 2.0), seed=0)
    assert draws.shape == (resampling.RESAMPLES,) == (1000,)
    np.testing.assert_allclose(draws, 1.5)


def test_spread_of_a_mean_is_its_standard_error():
    values = np.array([0.0, 1.0, 2.0, 5.0, 12.0, 4.0, 4.0, 4.0])
    draws = resampled_means(values, np.ones(8), seed=1, resamples=20_000)
    assert draws.mean() == pytest.approx(4.0, abs=0.05)
    assert draws.std() == pytest.approx(values.std() / math.sqrt(8), rel=0.03)


def test_ratio_of_sums_and_not_mean_of_ratios():
    # Ten items in one text, one item in the other: 1 of 10 and 1 of 1.
    draws = resampled_means(np.array([1.0, 1.0]), np.array([10.0, 1.0]), seed=0, resamples=400)
    assert set(np.round(draws, 6)) == {round(v, 6) for v in (2 / 20, 2 / 11, 2 / 2)}
    assert np.mean(np.isclose(draws, 2 / 11)) == pytest.approx(0.5, abs=0.1)


def test_totals_may_have_any_shape():
    sums = np.arange(12.0).reshape(2, 2, 3)
    draws = resampled_means(sums, np.array([1.0, 1.0]), seed=0, resamples=50)
    assert draws.shape == (50, 2, 3)
    # Each replicate is item 0, item 1 or their mean, the same one in every place.
    np.testing.assert_allclose(draws - draws[:, :1, :1], np.broadcast_to(sums[0], (50, 2, 3)))
    assert set(draws[:, 0, 0]) == {0.0, 3.0, 6.0}
    own = resampled_means(sums, np.stack([np.ones((2, 3)), np.full((2, 3), 3.0)]), seed=0)
    assert own.shape == (1000, 2, 3)
    assert {round(v, 6) for v in own[:, 0, 1]} == {1.0, round(7 / 3, 6), 2.0}


def test_a_replicate_without_counts_is_no_number():
    draws = resampled_means(np.array([0.0, 1.0]), np.array([0.0, 2.0]), seed=0, resamples=200)
    known = draws[~np.isnan(draws)]
    assert 20 < np.isnan(draws).sum() < 80
    np.testing.assert_allclose(known, 0.5)


def test_replicates_do_not_depend_on_how_many_are_held_at_once(monkeypatch):
    values = np.random.default_rng(0).normal(size=5)
    whole = resampled_means(values, np.ones(5), seed=3, resamples=101)
    for room in (1, 25, 500):
        monkeypatch.setattr(resampling, "_CHUNK", room)
        parts = resampled_means(values, np.ones(5), seed=3, resamples=101)
        np.testing.assert_allclose(parts, whole)
    assert not np.allclose(resampled_means(values, np.ones(5), seed=4, resamples=101), whole)
    with pytest.raises(ValueError, match="no items"):
        resampled_means(np.zeros(0), np.zeros(0), seed=0)


def test_memory_of_a_long_resampling_stays_flat(monkeypatch):
    sizes = []
    real = np.random.default_rng

    class Counting:
        def __init__(self, seed):
            self.inner = real(seed)

        def multinomial(self, n, odds, size):
            sizes.append(size * n)
            return self.inner.multinomial(n, odds, size=size)

    monkeypatch.setattr(np.random, "default_rng", Counting)
    monkeypatch.setattr(resampling, "_CHUNK", 50)
    resampled_means(np.ones(10), np.ones(10), seed=0, resamples=12)
    assert sizes == [50, 50, 20]
    sizes.clear()
    monkeypatch.setattr(resampling, "_CHUNK", 5)  # less than one replicate
    resampled_means(np.ones(10), np.ones(10), seed=0, resamples=2)
    assert sizes == [10, 10]


def test_percentiles_of_known_replicates():
    draws = np.append(np.arange(1001.0), np.nan)
    assert percentile_interval(draws, 500) == (25.0, 975.0)
    assert percentile_interval(draws, 3) == (3.0, 975.0)
    assert percentile_interval(draws, 980) == (25.0, 980.0)


def test_student_s_interval_of_five_runs():
    # t(0.975; 4) = 2.776445, standard deviation sqrt(2.5)
    reach = 2.7764451051977987 * math.sqrt(2.5) / math.sqrt(5)
    assert student_reach(np.arange(1.0, 6)) == pytest.approx(reach)
    found = mean_over_runs([1, 2, 3, 4, 5], unit="nats", model="m", baselines={"b": 1.0}, seed=7)
    assert found == Estimate(
        value=3.0, unit="nats", n=5, model="m", baselines={"b": 1.0}, seed=7,
        interval=(pytest.approx(3 - reach), pytest.approx(3 + reach)),
    )  # fmt: skip
    two = mean_over_runs([0.0, 1.0], unit="nats", model="m")
    assert two.interval[1] == pytest.approx(0.5 + 12.706204736 * math.sqrt(0.5) / math.sqrt(2))
    assert (two.n, two.seed, two.baselines) == (2, 0, {})
    with pytest.raises(ValueError, match="got 1"):
        mean_over_runs([1.0], unit="nats", model="m")


@pytest.mark.parametrize(
    ("unit", "ends"), [("share", (0, 1)), ("share difference", (-1, 1)), ("correlation", (-1, 1))]
)
def test_an_interval_ends_where_its_unit_ends(unit, ends):
    assert mean_over_runs([0.0, 1.0], unit=unit, model="m").interval == ends


def test_estimates_keep_what_they_were_given():
    given = {"chance": 0.5}
    one = Estimate(value=0.7, unit="share", n=3, model="m", baselines=given)
    given["chance"] = 0.9
    other = Estimate(value=0.1, unit="share", n=9, model="other")
    assert one.with_baselines(other=other, plain=2).baselines == {
        "chance": 0.5, "other": 0.1, "plain": 2.0,
    }  # fmt: skip
    assert one.baselines == {"chance": 0.5} and (one.seed, one.interval) == (None, None)


def test_rank_correlation_is_spearman_s_along_the_last_dimension():
    draw = np.random.default_rng(0)
    a, b = draw.integers(0, 4, (3, 9)), draw.integers(0, 4, (3, 9))
    expected = [spearmanr(x, y).statistic for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(rank_correlation(a, b), expected)
    assert rank_correlation(np.arange(4), 10 - np.arange(4)) == pytest.approx(-1)
    # ranks 1 2.5 2.5 4 against 1 3 2 4: 4.5 over the square root of 4.5 times 5
    assert rank_correlation(np.array([1, 2, 2, 3]), np.array([1, 3, 2, 4])) == pytest.approx(
        4.5 / math.sqrt(4.5 * 5)
    )
    # Of two numbers the deviations are the smallest there are.
    assert rank_correlation(np.array([3, 1]), np.array([5, 4])) == pytest.approx(1)
    for pair in ((np.ones(4), np.arange(4)), (np.arange(4), np.ones(4))):
        assert np.isnan(rank_correlation(*pair))


# --- shares -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "n"), [(3, 10), (1, 1), (0, 1), (50.5, 200), (0, 10), (10, 10)])
@pytest.mark.parametrize("z", [1.0, 1.96, 3.0])
def test_ends_of_wilson_s_interval_are_where_the_score_test_is_just_passed(hits, n, z):
    low, high = wilson_interval(hits, n, z)
    for end in (low, high):
        assert (hits / n - end) ** 2 == pytest.approx(z * z * end * (1 - end) / n, abs=1e-12)
    assert 0 <= low <= hits / n + 1e-12 and hits / n - 1e-12 <= high <= 1 and low < high


def test_wilson_s_interval_of_3_in_10_and_what_it_refuses():
    assert wilson_interval(3, 10) == pytest.approx((0.10779, 0.60323), abs=1e-4)
    for n in range(1, 300):  # rounding leads nowhere outside
        assert wilson_interval(n, n)[1] <= 1 and wilson_interval(0, n)[0] >= 0
    for hits, n in ((-0.1, 1), (1.1, 1), (0, 0), (0, -1)):
        with pytest.raises(ValueError, match=f"got {hits} of {n}"):
            wilson_interval(hits, n)


def test_preference_counts_wins_and_half_of_the_ties():
    found = preference([2.0, 0.0, -1.0, 0.5], "m")
    assert found.accuracy == found.value == 2.5 / 4
    assert found.interval == wilson_interval(2.5, 4)
    assert (found.margins, found.n, found.model) == ((2.0, 0.0, -1.0, 0.5), 4, "m")
    assert (found.chance, found.baselines, found.seed) == (0.5, {"chance": 0.5}, None)
    with pytest.raises(UnequalPairError, match="no pairs"):
        preference([], "m")
    with pytest.raises(ValueError, match="pair 1 is inf"):
        preference([0.0, math.inf, math.nan], "m")


def test_scores_of_classes_by_hand():
    #            gold: three of class 0, two of class 1, one of class 2, none of class 3
    gold = np.array([0, 0, 0, 1, 1, 2])
    said = np.array([0, 0, 1, 1, 3, 0])
    found = class_scores(said, gold, ["a", "b", "c", "d"])
    assert list(found) == ["a", "b", "c"]
    a, b, c = found.values()
    assert (a.precision, a.recall, a.n) == (pytest.approx(2 / 3), pytest.approx(2 / 3), 3)
    assert (b.precision, b.recall, b.f1, b.n) == (0.5, 0.5, 0.5, 2)
    assert (c.precision, c.recall, c.f1, c.n) == (0.0, 0.0, 0.0, 1)
    assert a.f1 == pytest.approx(2 / 3)
    uneven = class_scores(np.array([0, 1, 1, 1]), np.array([0, 0, 0, 1]), ["a", "b"])["a"]
    assert (uneven.precision, uneven.recall, uneven.f1) == (1.0, pytest.approx(1 / 3), 0.5)
    with pytest.raises(TypeError):
        found["a"] = b


def test_interval_of_a_share_over_items_and_over_groups():
    hits = np.array([True] * 3 + [False] * 7)
    assert share_interval(hits) == pytest.approx((0.10779, 0.60323), abs=1e-4)
    assert share_interval(hits.tolist()) == share_interval(hits)
    # One group cannot vary; two groups give one of three values.
    assert share_interval(hits, ["s"] * 10) == (0.3, 0.3)
    assert share_interval(hits, [0] * 3 + ["x"] * 7) == (0.0, 1.0)
    draw = np.random.default_rng(0)
    many, groups = draw.random(300) < 0.4, draw.integers(0, 60, 300).tolist()
    assert share_interval(many, groups, seed=1) != share_interval(many, groups, seed=2)
    assert share_interval(many, groups) == share_interval(many, groups, seed=0)
    with pytest.raises(UnequalLengthError, match="3 groups for 10 items"):
        share_interval(hits, [1, 2, 3])


def test_interval_of_a_ratio_is_that_of_the_percentiles():
    draw = np.random.default_rng(5)
    totals = np.full(400, 2.0)
    hits = draw.integers(0, 3, 400).astype(float)
    low, high = ratio_interval(hits, totals, seed=1, resamples=5000)
    # Normal theory: 1.96 standard errors on either side.
    reach = 1.96 * (hits / 2).std() / 20
    value = hits.sum() / totals.sum()
    assert (low, high) == pytest.approx((value - reach, value + reach), abs=0.004)
    assert ratio_interval(hits, totals) == ratio_interval(hits, totals, 0, 1000)
    assert ratio_interval(hits, totals, 1, 150) != ratio_interval(hits, totals, 1, 200)


def test_a_hundred_draws_of_rows_are_held_at_once(monkeypatch):
    sizes = []
    real = np.random.default_rng

    class Counting:
        def __init__(self, seed):
            self.inner = real(seed)

        def integers(self, low, high, size):
            sizes.append(size)
            return self.inner.integers(low, high, size)

    monkeypatch.setattr(np.random, "default_rng", Counting)
    ratio_interval(np.ones(7), np.ones(7), resamples=250)
    assert sizes == [(100, 7), (100, 7), (50, 7)]


def test_interval_of_a_ratio_by_its_own_draws():
    hits, totals = np.array([1.0, 0, 2, 5, 3]), np.array([2.0, 3, 4, 5, 6])
    drawn = np.random.default_rng(6).integers(0, 5, (150, 5))
    ratios = sorted(hits[rows].sum() / totals[rows].sum() for rows in drawn)
    # Of 150 sorted numbers the percentiles lie at places 3.725 and 145.275.
    low = ratios[3] + 0.725 * (ratios[4] - ratios[3])
    high = ratios[145] + 0.275 * (ratios[146] - ratios[145])
    assert ratio_interval(hits, totals, 6, 150) == pytest.approx((low, high))


def test_interval_of_a_ratio_holds_the_ratio_and_survives_empty_rows():
    hits, totals = np.array([1.0, 0.0]), np.array([1.0, 0.0])
    assert ratio_interval(hits, totals) == (1.0, 1.0)
    # Percentiles of one draw lie on one side of the value, as often as not.
    for seed in range(6):
        low, high = ratio_interval(np.array([1.0, 0.0, 1.0]), np.ones(3), seed, resamples=1)
        assert low <= 2 / 3 <= high and low < high or low == high == 2 / 3


def test_a_probe_s_result_shows_its_baseline():
    scores = class_scores(np.array([0, 1]), np.array([0, 1]), ["a", "b"])
    result = ProbeResult(
        2, "linear", 0.75, 0.7, 0.5, scores, 10, 4, 3, (0.3, 0.9), "m", np.array([1, 1, 1, 0])
    )
    assert (result.value, result.n, result.baselines) == (0.75, 4, {"majority class": 0.5})
    assert result.unit == "share"
    assert rankdata([3, 1, 2]).tolist() == [3, 1, 2]
