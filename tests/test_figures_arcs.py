"""Arcs over a sentence."""

import pytest

from bertology_utils import figures

WORDS = ["The", "keys", "to", "it", "rust"]


def test_edges_are_drawn_once_and_told_apart():
    chart = figures.arcs(WORDS, [(1, 0), (4, 1), (3, 2), (1, 3)], [(0, 1), (1, 2), (3, 2)],
                         names=("gold", "head"))  # fmt: skip
    axes = chart.axes[0]
    assert len(axes.lines) == 7
    assert {line.get_linestyle() for line in axes.lines} == {"-", "--"}
    above = [line for line in axes.lines if line.get_ydata().max() > 0]
    assert len(above) == 4
    assert chart.columns == ("word", "word ", "gold", "head")
    assert ("The", "keys", "yes", "yes") in chart.rows and ("keys", "to", "", "yes") in chart.rows
    shown = figures.show(chart, alt="Two trees over five words.")
    assert "svg" in shown.html


def test_one_tree_needs_no_legend():
    chart = figures.arcs(WORDS, [(0, 1)])
    assert len(chart.axes[0].lines) == 1 and not chart.legends


def test_edges_outside_the_sentence_are_refused():
    with pytest.raises(IndexError, match=r"edge \(1, 7\)"):
        figures.arcs(WORDS, [(1, 7)])
    with pytest.raises(IndexError, match=r"edge \(2, 2\)"):
        figures.arcs(WORDS, [(0, 1)], [(2, 2)])
    with pytest.raises(ValueError, match="nothing to draw"):
        figures.arcs(WORDS, [])
