"""The order in which a build starts its chapters."""

import json
from itertools import permutations

import pytest

from tools.schedule import ends_after, estimated_costs, last_seconds, starting_order


def test_jobs_start_as_soon_as_another_has_ended():
    costs = {"a": 5.0, "b": 3.0, "c": 4.0}
    assert ends_after("abc", costs, 1) == 12
    assert ends_after("abc", costs, 2) == 7
    assert ends_after("acb", costs, 2) == 7
    assert ends_after("bca", costs, 2) == 8
    assert ends_after("abc", costs, 8) == 5
    assert ends_after("", costs, 2) == 0


@pytest.mark.parametrize(
    "lengths",
    [(128, 165, 164, 117, 88), (120, 150, 155, 100, 76), (1, 1, 1, 1, 4), (3, 3, 2, 2, 2), (7,)],
)
def test_few_jobs_end_as_early_as_in_any_order(lengths):
    costs = dict(enumerate(map(float, lengths)))
    order = starting_order(costs, 2)
    assert sorted(order) == sorted(costs)
    assert ends_after(order, costs, 2) == min(
        ends_after(other, costs, 2) for other in permutations(costs)
    )


def test_many_jobs_are_never_later_than_longest_first():
    costs = {k: 1.0 + k * k % 17 for k in range(25)}
    for jobs in (1, 2, 3, 40):
        order = starting_order(costs, jobs)
        longest_first = sorted(costs, key=lambda job: -costs[job])
        assert set(order) == set(costs)
        assert ends_after(order, costs, jobs) <= ends_after(longest_first, costs, jobs)
        least = max(sum(costs.values()) / jobs, max(costs.values()))
        assert ends_after(order, costs, jobs) >= least


def test_costs_are_those_of_earlier_runs_or_go_with_the_code():
    sizes = {"one": 100, "two": 300, "new": 200}
    assert estimated_costs(sizes, {}) == sizes
    assert estimated_costs(sizes, {"one": 10.0, "two": 50.0, "gone": 9.0}) == {
        "one": 10.0, "two": 50.0, "new": 30.0,
    }  # fmt: skip


def test_the_latest_run_counts_and_damaged_files_do_not(tmp_path):
    def summary(name, runs):
        path = tmp_path / name
        path.write_text(runs if isinstance(runs, str) else json.dumps(runs))
        return path

    old = summary("a", {"one": {"seconds": 5.0, "finished": "2026-01-01T00:00:00+00:00"},
                        "two": {"seconds": 7.0, "finished": "2026-01-01T00:00:00+00:00"}})
    new = summary("b", {"one": {"seconds": 3.0, "finished": "2026-02-01T00:00:00+00:00"}})
    bad = [summary("c", "{"), summary("d", "[]"), summary("e", {"one": {"seconds": None}}),
           summary("f", {"one": 1}), tmp_path / "missing",
           summary("g", '{"one": {"seconds": NaN, "finished": "2027"}}')]
    for files in ([old, new], [new, old], [*bad, old, new], [old, *bad, new]):
        assert last_seconds(files) == {"one": 3.0, "two": 7.0}
    assert last_seconds([]) == {} and last_seconds(bad) == {}
