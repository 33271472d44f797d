"""Compare two builds number by number: ``python -m tools.compare_builds FIRST SECOND``.

Compared is what chapters with equal code recorded in the ledger and glued into their sentences,
at full precision, and which figures and tables are the same to the byte. Numbers that are times
(rows of the ledger marked ``timed``, and what is glued under their names) never repeat; they are
shown apart and fail nothing. Exits with 0 when every other number agrees within the tolerance and
no verdict differs.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from bertology_utils.ledger import load_claims
from tools.execution import stores_by_use

#: Largest relative difference between two runs of the same code on one machine.
TOLERANCE = 1e-6
#: Below this size, differences are relative to this size: residues of rounding are no results.
SMALL = 1e-3
#: Glued names that hold a time without bearing the name of a timed row.
TIMED_NAMES = frozenset({"cmp-int8-faster"})

_GLUED = "application/papermill.record/text/plain"


@dataclass(frozen=True)
class Difference:
    """A number that two builds give differently. ``place`` is a ledger row or a glued name."""

    chapter: str
    place: str
    first: float
    second: float

    @property
    def relative(self) -> float:
        """``|first - second|`` over the larger of the two sizes and :data:`SMALL`."""
        gap = abs(self.first - self.second)
        return gap / max(abs(self.first), abs(self.second), SMALL)

    def __str__(self) -> str:
        return (
            f"{self.chapter} {self.place}: {self.first!r} and {self.second!r} ({self.relative:.1e})"
        )


@dataclass
class Comparison:
    """What two builds have in common, and where they part.

    Attributes:
        chapters: those compared, with the same code in both.
        left_out: those whose code differs, or that only one build has.
        numbers: how many numbers were compared, times left out.
        differences: the numbers that are not equal to the last bit.
        timed: numbers that are times, equal or not.
        verdicts: claim -> the two words, where they differ, timed rows left out.
        timed_verdicts: the same of timed rows.
        one_sided: places that only one of two equal chapters has, or that are not both numbers.
        outputs: figures and tables compared.
        outputs_changed: chapter -> its code cells with an output that is not the same to the byte.
    """

    chapters: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    numbers: int = 0
    differences: list[Difference] = field(default_factory=list)
    timed: list[Difference] = field(default_factory=list)
    verdicts: dict[str, tuple[str, str]] = field(default_factory=dict)
    timed_verdicts: dict[str, tuple[str, str]] = field(default_factory=dict)
    one_sided: list[str] = field(default_factory=list)
    outputs: int = 0
    outputs_changed: dict[str, list[int]] = field(default_factory=dict)

    @property
    def largest(self) -> float:
        """The largest relative difference of a number that is no time; 0 where all are equal."""
        return max((found.relative for found in self.differences), default=0.0)

    def agrees(self, tolerance: float = TOLERANCE) -> bool:
        """Whether the builds say the same: something was compared, and nothing parts too far."""
        same = not self.verdicts and not self.one_sided and self.largest <= tolerance
        return bool(self.chapters) and self.numbers > 0 and same

    def report(self, tolerance: float = TOLERANCE) -> str:
        """The comparison in words, the largest differences first."""
        lines = [f"{len(self.chapters)} chapter(s) with the same code: {', '.join(self.chapters)}"]
        if self.left_out:
            lines.append(f"Not compared, the code differs: {', '.join(self.left_out)}")
        equal = self.numbers - len(self.differences)
        lines.append(f"{self.numbers} numbers: {equal} equal to the last bit.")
        if self.differences:
            beyond = sum(found.relative > tolerance for found in self.differences)
            lines.append(
                f"Largest relative difference {self.largest:.2e}; {beyond} above {tolerance:g}."
            )
            worst = sorted(self.differences, key=lambda found: -found.relative)
            lines += [f"  {found}" for found in worst[:20]]
        for claim, (first, second) in self.verdicts.items():
            lines.append(f"Verdict of {claim}: {first!r} and {second!r}")
        lines += [f"Only in one build: {place}" for place in self.one_sided]
        if self.timed:
            furthest = max(found.relative for found in self.timed)
            lines.append(f"{len(self.timed)} times of this machine apart, up to {furthest:.1%}.")
        for claim, (first, second) in self.timed_verdicts.items():
            lines.append(f"Verdict of {claim}, which is a time: {first!r} and {second!r}")
        changed = sum(map(len, self.outputs_changed.values()))
        lines.append(
            f"{self.outputs} figures and tables: {self.outputs - changed} the same to the byte."
        )
        for chapter, cells in self.outputs_changed.items():
            lines.append(f"  {chapter}: not in code cell(s) {', '.join(map(str, cells))}")
        lines.append("The builds agree." if self.agrees(tolerance) else "The builds DO NOT agree.")
        return "\n".join(lines)


def find_store(folder: Path) -> Path:
    """The folder of finished runs that ``folder`` names: a store, or the one a book used last.

    Raises:
        FileNotFoundError: nothing was built there.
    """
    if (folder / "executions.json").is_file():
        return folder
    parent = folder / "_build" / "executed"
    stores = [path for path in (stores_by_use(parent) if parent.is_dir() else [])
              if (path / "executions.json").is_file()]  # fmt: skip
    if not stores:
        raise FileNotFoundError(f"{folder} holds no finished build")
    return stores[-1]


def compare(first: Path, second: Path) -> Comparison:
    """Compare two stores. Pages that report on other chapters, such as this one, are left out.

    Raises:
        FileNotFoundError: a folder holds no build.
        ValueError: a file of a build cannot be read; the message names it.
    """
    stores = find_store(first), find_store(second)
    found = Comparison()
    runs = [{path.stem: path for path in store.glob("*.ipynb")} for store in stores]
    for name in sorted(runs[0].keys() | runs[1].keys()):
        docname = name.replace("--", "/")
        if name not in runs[0] or name not in runs[1]:
            found.left_out.append(docname)
            continue
        notebooks = [_read(side[name]) for side in runs]
        if any(book.metadata.get("bertology", {}).get("runs_after") for book in notebooks):
            continue
        cells = [[c for c in book.cells if c.cell_type == "code"] for book in notebooks]
        if [cell.source for cell in cells[0]] != [cell.source for cell in cells[1]]:
            found.left_out.append(docname)
            continue
        found.chapters.append(docname)
        _compare_records(found, docname, [store / "results" / name for store in stores])
        _compare_numbers(found, docname, *(dict(_glued(side)) for side in cells))
        _compare_outputs(found, docname, *cells)
    return found


def _read(path: Path) -> nbformat.NotebookNode:
    try:
        return nbformat.read(path, as_version=4)
    except (ValueError, KeyError, AttributeError, nbformat.ValidationError) as error:
        raise ValueError(f"{path.name} is no finished run: {str(error)[:200]}") from error


def _compare_records(found: Comparison, docname: str, folders: list[Path]) -> None:
    sides: list[dict[str, dict]] = []
    for folder in folders:
        records = {}
        for path in sorted(folder.glob("*/*.json")):
            try:
                record = json.loads(path.read_text(encoding="utf-8"))
                record["outcome"], record["verdict"]["word"]  # noqa: B018 - has it what is read?
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path.name} is no record: {str(error)[:200]}") from error
            records[path.stem] = record
        sides.append(records)
    numbers = [
        {f"{claim} {place}": value for claim, record in side.items()
         for place, value in _numbers(record["outcome"])}
        for side in sides
    ]  # fmt: skip
    _compare_numbers(found, docname, *numbers)
    for claim in sorted(sides[0].keys() & sides[1].keys()):
        words = tuple(side[claim]["verdict"]["word"] for side in sides)
        if words[0] != words[1]:
            kept = found.timed_verdicts if _is_time(claim) else found.verdicts
            kept[claim] = words


def _numbers(part: object, place: str = "") -> Iterator[tuple[str, float | str | None]]:
    if isinstance(part, Mapping):
        for key, value in part.items():
            yield from _numbers(value, f"{place}.{key}".lstrip("."))
    elif isinstance(part, list):
        for index, value in enumerate(part):
            yield from _numbers(value, f"{place}[{index}]")
    else:
        yield place, part


def _glued(cells: list[nbformat.NotebookNode]) -> Iterator[tuple[str, object]]:
    for cell in cells:
        for output in cell.outputs:
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            if name is not None and _GLUED in output["data"]:
                yield name, _value(output["data"][_GLUED])


def _value(text: str) -> object:
    """A glued value from its ``repr``; text that is no literal (``nan``, an object) as it is."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _compare_numbers(
    found: Comparison, docname: str, first: Mapping[str, object], second: Mapping[str, object]
) -> None:
    for place in [*first, *(place for place in second if place not in first)]:
        timed = _is_time(place)
        if place not in first or place not in second:
            found.one_sided.append(f"{docname} {place}")
            continue
        one, other = first[place], second[place]
        if not (_is_number(one) and _is_number(other)):
            if one != other and not timed:
                found.one_sided.append(f"{docname} {place}: {str(one)[:60]} / {str(other)[:60]}")
            continue
        gap = Difference(docname, place, float(one), float(other))
        if timed:
            found.timed.append(gap)
            continue
        found.numbers += 1
        if gap.first != gap.second:
            found.differences.append(gap)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _is_time(place: str) -> bool:
    """Whether a number belongs to a row of the ledger that measures time."""
    timed = [claim.id for claim in load_claims().values() if claim.measure and claim.measure.timed]
    name = place.partition(" ")[0].upper()
    return place in TIMED_NAMES or any(name == row or name.startswith(f"{row}-") for row in timed)


def _compare_outputs(
    found: Comparison,
    docname: str,
    first: list[nbformat.NotebookNode],
    second: list[nbformat.NotebookNode],
) -> None:
    for number, cells in enumerate(zip(first, second, strict=True), start=1):
        shown = [Counter(_shown(cell)) for cell in cells]
        found.outputs += shown[0].total()
        if shown[0] != shown[1]:
            found.outputs_changed.setdefault(docname, []).append(number)


def _shown(cell: nbformat.NotebookNode) -> Iterator[str]:
    """Figures and tables of a cell, as text; the plain text beside them may hold addresses."""
    for output in cell.outputs:
        data = output.get("data", {})
        for kind in ("image/png", "image/svg+xml", "text/html"):
            if kind in data:
                yield f"{kind} {data[kind]}"
                break


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("first", type=Path, help="a book that was built, or a folder of its runs")
    parser.add_argument("second", type=Path)
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    given = parser.parse_args(arguments)
    try:
        found = compare(given.first, given.second)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(found.report(given.tolerance))
    return 0 if found.agrees(given.tolerance) else 1


if __name__ == "__main__":
    sys.exit(main())
