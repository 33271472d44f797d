"""Tables, always escaped: light enough to travel in many states of an explorer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from numbers import Integral, Real

from .display import Display

#: Words are read from the left; numbers, the default, are compared at the right.
_WORDS = ' class="bx-words"'


def table(
    rows: Sequence[Sequence[object]],
    columns: Sequence[str],
    *,
    caption: str | None = None,
    number_format: str = ".3g",
) -> Display:
    """Return an HTML table with the first column as row headers; every cell is escaped.

    Args:
        rows: one sequence per row, as long as ``columns``; floats are written in
            ``number_format``, None leaves the cell empty.
        columns: the column names.
        caption: what the table shows.

    Raises:
        ValueError: a row is not as long as ``columns``.
    """

    def text(cell: object) -> str:
        if cell is None:
            return ""
        if isinstance(cell, Real) and not isinstance(cell, Integral):  # NumPy's floats, too
            return format(cell, number_format)
        return str(cell)

    body = []
    for index, row in enumerate(rows):
        if len(row) != len(columns):
            raise ValueError(
                f"row {index} of the table has {len(row)} cells for {len(columns)} columns"
            )
        first, *others = row
        cells = "".join(
            f"<td{_WORDS if isinstance(cell, str) else ''}>{escape(text(cell))}</td>"
            for cell in others
        )
        body.append(f"<tr>{_header('row', text(first))}{cells}</tr>")
    wordy = [any(isinstance(row[i], str) for row in rows) for i in range(len(columns))]
    head = "".join(
        _header("col", name, _WORDS if is_wordy else "")
        for name, is_wordy in zip(columns, wordy, strict=True)
    )
    html = (
        f'<table class="bx-table">{_caption(caption)}<thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table>"
    )
    return Display(html, _plain([columns, *([text(cell) for cell in row] for row in rows)]))


def bar_table(
    values: Mapping[str, float],
    columns: tuple[str, str],
    *,
    caption: str | None = None,
    full: float | None = None,
    number_format: str = ".1%",
) -> Display:
    """Return a table of names, numbers and bars: a chart light enough for many states.

    Args:
        values: name -> number, at least 0.
        columns: what the names and the numbers are.
        caption: what the table shows.
        full: the number whose bar is full; the largest one when not given.
        number_format: format spec of the numbers.

    Raises:
        ValueError: there is nothing to show, or a number is negative or not finite.
    """
    for name, value in values.items():
        if not math.isfinite(value) or value < 0:
            raise ValueError(f"{name!r} is {value}; bars need finite numbers from 0 up")
    if not values:
        raise ValueError("there is nothing to show")
    top = full if full is not None else max(values.values())
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(format(value, number_format))}</td>'
        f'<td class="bx-bar" aria-hidden="true"><span style="width:{_share(value, top):.0f}%">'
        "</span></td></tr>"
        for name, value in values.items()
    )
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    html = (
        f'<table class="bx-table">{_caption(caption)}<thead><tr>{head}'
        f'<td class="bx-bar" aria-hidden="true"></td></tr></thead><tbody>{rows}</tbody></table>'
    )
    return Display(html, _plain([(k, format(v, number_format)) for k, v in values.items()]))


def dot_table(
    values: Mapping[str, float],
    columns: tuple[str, str],
    *,
    intervals: Mapping[str, tuple[float, float]] | None = None,
    caption: str | None = None,
    write: Callable[[float], str] = "{:.3g}".format,
) -> Display:
    """Return a table of names and numbers with a dot for each on one common scale.

    Unlike bars, dots may be negative, and may have intervals. A thin line marks zero where the
    scale has it.

    Args:
        values: name -> number.
        columns: what the names and the numbers are.
        intervals: name -> (low, high) of the numbers that have one; written beside the number.
        caption: what the table shows.
        write: how numbers are written.

    Raises:
        ValueError: there is nothing to show, an interval belongs to no number, or a number is not
            finite.
    """
    intervals = dict(intervals or {})
    numbers = [*values.values(), *(end for ends in intervals.values() for end in ends)]
    if not values:
        raise ValueError("there is nothing to show")
    if strange := intervals.keys() - values.keys():
        raise ValueError(f"an interval of {sorted(strange)[0]!r}, which is no number of the table")
    if not all(math.isfinite(value) for value in numbers):
        raise ValueError("a dot table needs finite numbers")
    low, high = min(numbers), max(numbers)
    reach = (high - low) or 1.0

    def place(value: float) -> float:
        return 3 + 94 * (value - low) / reach if high > low else 50.0

    zero = f'<i class="bx-zero" style="left:{place(0.0):.1f}%"></i>' if low < 0 < high else ""
    body, plain = [], []
    for name, value in values.items():
        text, line = write(value), ""
        if name in intervals:
            start, end = intervals[name]
            text += f" [{write(start)}, {write(end)}]"
            line = (
                f'<i class="bx-reach" style="left:{place(start):.1f}%;'
                f'width:{place(end) - place(start):.1f}%"></i>'
            )
        plain.append((name, text))
        body.append(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td>'
            f'<td class="bx-dots" aria-hidden="true"><span>{zero}{line}'
            f'<b style="left:{place(value):.1f}%"></b></span></td></tr>'
        )
    head = "".join(_header("col", name) for name in columns)
    html = (
        f'<table class="bx-table">{_caption(caption)}<thead><tr>{head}'
        '<td class="bx-dots" aria-hidden="true"></td></tr>'
        f"</thead><tbody>{''.join(body)}</tbody></table>"
    )
    return Display(html, _plain([columns, *plain]))


def heat_table(
    values: Sequence[Sequence[float]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    corner: str = "",
    caption: str | None = None,
    full: float = 1.0,
    number_format: str = ".0%",
) -> Display:
    """Return a table whose cells are shaded by their numbers, for instance attention weights.

    Args:
        values: [R, C] numbers from 0 to ``full``; darker is more.
        rows, columns: R and C labels.
        corner: what rows and columns are, such as "from \\ to".
        caption: what the table shows.
        full: the number that is shaded in full.
        number_format: format spec of the numbers.

    Raises:
        ValueError: the labels do not fit, or a number is not finite.
    """
    matrix = [[float(value) for value in row] for row in values]
    if len(matrix) != len(rows) or any(len(row) != len(columns) for row in matrix):
        raise ValueError(f"the values do not fit {len(rows)} row and {len(columns)} column labels")
    if not all(math.isfinite(value) for row in matrix for value in row):
        raise ValueError("a heat table needs finite numbers")
    body = "".join(
        f'<tr><th scope="row">{escape(name)}</th>'
        + "".join(
            f'<td style="--v:{_share(value, full):.0f}">{escape(format(value, number_format))}</td>'
            for value in row
        )
        + "</tr>"
        for name, row in zip(rows, matrix, strict=True)
    )
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    html = (
        f'<table class="bx-table bx-heat">{_caption(caption)}'
        f"<thead><tr><td>{escape(corner)}</td>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
    plain = [
        (name, *(format(v, number_format) for v in row))
        for name, row in zip(rows, matrix, strict=True)
    ]
    return Display(html, _plain([(corner, *columns), *plain]))


def _header(scope: str, name: str, style: str = "") -> str:
    """A heading cell; one without a name is none, since a voice would announce it."""
    return f'<th scope="{scope}"{style}>{escape(name)}</th>' if name.strip() else "<td></td>"


def _plain(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join("\t".join(row) for row in rows)


def _share(value: float, full: float) -> float:
    return 100 * min(1.0, max(0.0, value / full)) if full > 0 else 0.0


def _caption(caption: str | None) -> str:
    return f"<caption>{escape(caption)}</caption>" if caption else ""
