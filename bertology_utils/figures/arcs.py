"""Trees over a sentence: arcs above the words, and another tree below to compare with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from .chart import (
    COLOURS,
    DASHES,
    Chart,
    legend,
    new_chart,
    series_colour,
    styled,
    title_and_labels,
)

#: Inches that a word takes at least, and a letter on top of that.
_WORD, _LETTER = 0.34, 0.082


def arcs(
    words: Sequence[str],
    above: Sequence[tuple[int, int]],
    below: Sequence[tuple[int, int]] = (),
    *,
    names: tuple[str, str] = ("above", "below"),
    title: str | None = None,
) -> Chart:
    """Draw edges between the words of a sentence as arcs, directions aside.

    Edges that are in both trees are drawn in one colour and full lines, the others in another
    colour and dashed.

    Args:
        words: the sentence.
        above: edges (word, word), 0-based, of the tree above the words.
        below: edges of the tree below them; may be empty.
        names: what the two trees are.
        title: the finding in a few words.

    Raises:
        ValueError: no words or no edges.
        IndexError: an edge that leaves the sentence.
    """
    if not words or not above:
        raise ValueError("there is nothing to draw: a tree takes words and edges")
    trees = [{(min(a, b), max(a, b)) for a, b in tree} for tree in (above, below)]
    for a, b in trees[0] | trees[1]:
        if not 0 <= a < b < len(words):
            raise IndexError(f"the edge ({a}, {b}) does not join two of the {len(words)} words")
    widths = [_WORD + _LETTER * len(word) for word in words]
    middles = np.cumsum(widths) - np.array(widths) / 2
    shared = trees[0] & trees[1]
    reach = [_height(middles, tree) for tree in trees]
    with styled():
        chart, axes = new_chart(max(3.2, sum(widths)), 0.9 + sum(reach), ".2f")
        axes.set_axis_off()
        for word, x in zip(words, middles, strict=True):
            axes.text(x, 0, word, ha="center", va="center", fontsize=10.5)
        drawn: set[str] = set()
        for tree, side in zip(trees, (1, -1), strict=True):
            for edge in sorted(tree):
                both = edge in shared or not below
                label = "in both trees" if both else "in one only"
                _arc(axes, middles, edge, side, 0 if both else 1, label if below else None, drawn)
        for name, side, height in zip(names, (1, -1), reach, strict=True):
            if trees[0 if side > 0 else 1]:
                axes.text(
                    0, side * (height + 0.3), name, color=COLOURS["soft"], fontsize=9,
                    va="center",
                )  # fmt: skip
        axes.set_xlim(-0.05, sum(widths))
        axes.set_ylim(-reach[1] - (0.45 if below else 0.2), reach[0] + 0.45)
        title_and_labels(axes, title, "", "")
        if below:
            legend(chart, axes)
    chart.columns = ("word", "word ", names[0], names[1] if below else "")
    chart.rows = [
        (words[a], words[b], *("yes" if (a, b) in tree else "" for tree in trees))
        for a, b in sorted(trees[0] | trees[1])
    ]
    return chart


def _height(middles: np.ndarray, tree: set[tuple[int, int]]) -> float:
    return max((_rise(middles, edge) for edge in tree), default=0.0)


def _rise(middles: np.ndarray, edge: tuple[int, int]) -> float:
    return 0.12 + 0.32 * float(middles[edge[1]] - middles[edge[0]]) ** 0.8


def _arc(
    axes: Axes, middles: np.ndarray, edge: tuple[int, int], side: int, series: int,
    label: str | None, drawn: set[str],
) -> None:  # fmt: skip
    start, end = middles[edge[0]], middles[edge[1]]
    # Ends keep clear of each other where several arcs meet at a word.
    gap = min(0.06, (end - start) / 6)
    angle = np.linspace(0, np.pi, 41)
    x = (start + end) / 2 - ((end - start) / 2 - gap) * np.cos(angle)
    y = side * (0.2 + _rise(middles, edge) * np.sin(angle))
    shown = label if label is not None and label not in drawn else None
    if shown is not None:
        drawn.add(shown)
    axes.plot(x, y, color=series_colour(series), linestyle=DASHES[series], label=shown)
