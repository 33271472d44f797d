"""Bars and groups of bars, lying down so that names stay readable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes

from .chart import (
    COLOURS,
    Chart,
    legend,
    new_chart,
    number_axis,
    series_colour,
    styled,
    title_and_labels,
)
from .marks import baseline_lines, paper_line, paper_point
from .points import Measured, Point, as_point


def bars(
    results: Mapping[str, float | Measured],
    *,
    baselines: Mapping[str, float] | None = None,
    paper: float | Mapping[str, float] | None = None,
    paper_name: str = "the paper",
    title: str | None = None,
    axis: str = "",
    number_format: str = ".2f",
) -> Chart:
    """Draw one horizontal bar per result, with its interval and its own baselines.

    Args:
        results: name -> number or result; drawn from top to bottom in this order.
        baselines: name -> value of baselines that hold for every bar, drawn as lines.
        paper: the paper's number: one for all bars (a line) or one per bar name (diamonds, whose
            numbers stand in parentheses behind the bars' own).
        paper_name: what the paper's number is, for the legend ("BERT-base, Tenney et al. 2019").
        title: the finding in a few words.
        axis: name and unit of the value axis.
        number_format: format spec of the values, ``".1%"`` for shares.

    Raises:
        ValueError: nothing to draw, or a number that is not finite.
        KeyError: ``paper`` names a bar that does not exist.
    """
    points = _points(results)
    with styled():
        chart, axes = new_chart(5.4, 1.15 + 0.42 * len(points), number_format)
        names = list(points)
        for row, name in enumerate(names):
            _bar(axes, row, 0.62, points[name], series_colour(0))
        shown = _baseline_marks(axes, list(points.values()), range(len(names)), 0.62)
        shown |= dict.fromkeys(baseline_lines(axes.axvline, baselines, number_format))
        papers = _paper(axes, paper, paper_name, names, number_format)
        _finish_bars(chart, axes, names, number_format)
        _write_values(
            axes,
            list(points.values()),
            range(len(names)),
            number_format,
            [papers.get(name) if isinstance(paper, Mapping) else None for name in names],
        )
        title_and_labels(axes, title, axis, "")
        legend(chart, axes)
    chart.columns = ("", "value", "95% interval", *shown, *([paper_name] if papers else []))
    chart.rows = [
        (
            name,
            points[name].value,
            _interval_text(points[name], number_format),
            *(points[name].baselines.get(key, (baselines or {}).get(key)) for key in shown),
            *([papers.get(name)] if papers else []),
        )
        for name in names
    ]
    return chart


def grouped_bars(
    results: Mapping[str, Mapping[str, float | Measured]],
    *,
    baselines: Mapping[str, float] | None = None,
    title: str | None = None,
    axis: str = "",
    number_format: str = ".2f",
) -> Chart:
    """Draw groups of horizontal bars: ``results[group][series]``, one colour per series.

    Args and errors are those of :func:`bars`; a group may lack a series.
    """
    groups = {name: _points(group) for name, group in results.items()}
    if not groups:
        raise ValueError("there is nothing to draw")
    series = list(dict.fromkeys(key for group in groups.values() for key in group))
    width = 0.8 / len(series)
    with styled():
        height = 1.15 + max(0.42, 0.26 * len(series)) * len(groups)
        chart, axes = new_chart(5.4, height, number_format)
        drawn: list[tuple[float, Point]] = []
        for index, key in enumerate(series):
            for row, group in enumerate(groups.values()):
                if key in group:
                    place = row + (index - (len(series) - 1) / 2) * width
                    _bar(axes, place, width * 0.86, group[key], series_colour(index))
                    drawn.append((place, group[key]))
            # A bar of no length carries the legend entry, whichever groups have the series.
            axes.barh([0], [0], color=series_colour(index), label=key)
        places, points = [place for place, _ in drawn], [point for _, point in drawn]
        _baseline_marks(axes, points, places, width * 0.86)
        baseline_lines(axes.axvline, baselines, number_format)
        _finish_bars(chart, axes, list(groups), number_format)
        _write_values(axes, points, places, number_format, [None] * len(points))
        title_and_labels(axes, title, axis, "")
        legend(chart, axes)
    chart.columns = ("", "series", "value", "95% interval")
    chart.rows = [
        (name, key, point.value, _interval_text(point, number_format))
        for name, group in groups.items()
        for key, point in group.items()
    ]
    return chart


def _points(results: Mapping[str, float | Measured]) -> dict[str, Point]:
    if not results:
        raise ValueError("there is nothing to draw")
    return {str(name): as_point(str(name), result) for name, result in results.items()}


def _bar(axes: Axes, place: float, width: float, point: Point, colour: str) -> None:
    axes.barh(place, point.value, height=width, color=colour, alpha=0.85)
    if point.interval:
        low, high = point.interval
        axes.errorbar(
            point.value,
            place,
            xerr=[[point.value - low], [high - point.value]],
            color=COLOURS["ink"],
            elinewidth=1.3,
            capsize=3,
            capthick=1.3,
        )


def _baseline_marks(
    axes: Axes, points: Sequence[Point], places: Sequence[float], width: float
) -> dict[str, None]:
    """Mark each bar's own baselines by short dashes across it; return the names drawn."""
    names = dict.fromkeys(name for point in points for name in point.baselines)
    for index, name in enumerate(names):
        marked = [
            (point.baselines[name], place)
            for point, place in zip(points, places, strict=True)
            if name in point.baselines
        ]
        for order, (value, place) in enumerate(marked):
            axes.plot(
                [value, value],
                [place - width * 0.62, place + width * 0.62],
                color=COLOURS["ink"],
                linewidth=1.8,
                linestyle=((0, (2.2, 1)), (0, (0.8, 0.8)), "-")[index % 3],
                label=name if order == 0 else None,
            )
    return names


def _paper(
    axes: Axes,
    paper: float | Mapping[str, float] | None,
    paper_name: str,
    names: Sequence[str],
    spec: str,
) -> dict[str, float]:
    """Mark the paper's number on the bars; return name of bar -> number."""
    if paper is None:
        return {}
    if not isinstance(paper, Mapping):
        return dict.fromkeys(names, paper_line(axes.axvline, paper_name, paper, spec))
    for name in paper:
        if name not in names:
            raise KeyError(f"the paper's number for {name!r} has no bar; bars: {', '.join(names)}")
    for order, (name, value) in enumerate(paper.items()):
        label = paper_name if order == 0 else "_again"
        paper_point(axes, name, value, names.index(name), label)
    return dict(paper)


def _finish_bars(chart: Chart, axes: Axes, names: Sequence[str], spec: str) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.45, -0.55)  # the first result on top
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")
    number_axis(axes.xaxis, spec)
    if axes.get_xlim()[0] < 0:
        axes.axvline(0, color=COLOURS["line"], linewidth=0.8)


def _write_values(
    axes: Axes,
    points: Sequence[Point],
    places: Sequence[float],
    spec: str,
    papers: Sequence[float | None],
) -> None:
    """Write each value beyond the end of its bar and interval, and make room for it."""
    low, high = axes.get_xlim()
    for point, place, paper in zip(points, places, papers, strict=True):
        right = point.value >= 0
        ends = [point.value, *(point.interval or ()), *point.baselines.values()]
        text, gap = format(point.value, spec), 5
        if paper is not None:
            ends.append(paper)
            # Beside the diamond the bar's number alone would be taken for the paper's.
            text, gap = f"{text} (\N{WHITE DIAMOND} {paper:{spec}})", 9  # the diamond is wide
        # Beyond whatever is drawn over the bar, so that a number never hides a mark.
        end = max(ends) if right else min(ends)
        axes.annotate(
            text,
            (end, place),
            xytext=(gap if right else -gap, 0),
            textcoords="offset points",
            va="center",
            ha="left" if right else "right",
            fontsize=9,
        )
    room = (0.14 if all(paper is None for paper in papers) else 0.4) * (high - low)
    axes.set_xlim(
        low - (room if any(p.value < 0 for p in points) else 0),
        high + (room if any(p.value >= 0 for p in points) else 0),
    )
    # The room for numbers is no part of the scale: no mark at 125 % of a share.
    axes.set_xticks([tick for tick in axes.get_xticks() if low <= tick <= high])


def _interval_text(point: Point, spec: str) -> str | None:
    if point.interval is None:
        return None
    low, high = point.interval
    return f"{low:{spec}} to {high:{spec}}"
