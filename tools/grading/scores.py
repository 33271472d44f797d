"""A folder of submissions in, a table of scores out: nothing lost, whatever happens in between."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bertology_utils.writing import whole_file

from .assignment import SETUP_TAG, Assignment
from .judge import Verdict, given_names, judge
from .sandbox import ROOT, Limits, isolation_layers

UNREADABLE = "unreadable"
_LARGEST = 32 * 2**20


class ScoresError(ValueError):
    """The folder or the table of scores cannot be used; nothing has been changed."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        file: the submission, seen from the folder.
        student: name of its subfolder, else of the file.
        verdict: status, points and reasons.
        digest: of the submission and the assignment together.
        isolation: layers that stood around it.
    """

    file: str
    student: str
    verdict: Verdict
    digest: str
    isolation: str


def grade_folder(
    folder: Path,
    assignment: Assignment,
    table: Path,
    limits: Limits | None = None,
    *,
    layers: tuple[str, ...] | None = None,
    report: Callable[[Row, int, int], None] = lambda row, number, of: None,
) -> list[dict[str, str]]:
    """Grade every notebook under ``folder`` and write ``table`` (CSV) after each of them.

    Rows of an existing table are kept where submission and assignment are still the same.

    Args:
        folder: submissions, ``*.ipynb``, subfolders included.
        assignment: tests and points.
        table: where the scores go; replaced as a whole each time, so never half-written.
        limits: of each submission.
        layers: layers of isolation; by default all that work here.
        report: called after every submission that was graded now.

    Returns:
        the rows of the table.

    Raises:
        ScoresError: no submissions, or ``table`` is a table of something else.
    """
    limits = limits or Limits()
    layers = isolation_layers() if layers is None else layers
    files = submissions(folder)
    columns = columns_of(assignment)
    done = _read_table(table, columns)
    rows: dict[str, dict[str, str]] = {}
    todo: list[tuple[str, Path, str]] = []
    for file in files:
        # A name of other bytes than UTF-8 must not keep the others from their points.
        name = _cell(file.relative_to(folder).as_posix())
        digest = _digest(file, assignment)
        if done.get(name, {}).get("digest") == digest:
            rows[name] = done[name]
        else:
            todo.append((name, file, digest))
    given = given_names(assignment) if todo else {}
    hidden = [folder, ROOT / "assignments", ROOT / "_build" / "assignments"]
    if not todo:
        _write_table(table, columns, rows)
    for number, (name, file, digest) in enumerate(todo, 1):
        try:
            cells = code_cells(file)
        except ScoresError as error:
            verdict = Verdict(UNREADABLE, {}, (str(error),))
        else:
            verdict = judge(cells, assignment, given, limits, hidden=hidden, layers=layers)
        row = Row(name, _student(name), verdict, digest, "+".join(layers))
        rows[name] = as_record(row, assignment)
        _write_table(table, columns, rows)
        report(row, number, len(todo))
    return [rows[name] for name in sorted(rows)]


def submissions(folder: Path) -> list[Path]:
    """The notebooks under ``folder``, in order; links and checkpoints are left out.

    Raises:
        ScoresError: no such folder, or none in it.
    """
    if not folder.is_dir():
        raise ScoresError(f"there is no folder {folder}")
    found = [
        path
        for path in sorted(folder.rglob("*.ipynb"))
        if path.is_file() and not path.is_symlink() and ".ipynb_checkpoints" not in path.parts
    ]
    if not found:
        raise ScoresError(f"no notebooks (*.ipynb) in {folder}")
    return found


def code_cells(path: Path) -> list[str]:
    """Sources of the code cells of a notebook that somebody else wrote, without the set-up cell.

    Raises:
        ScoresError: not a notebook, or an unreasonably large one.
    """
    if path.stat().st_size > _LARGEST:
        raise ScoresError(f"larger than {_LARGEST // 2**20} MiB")
    try:
        notebook = json.loads(path.read_bytes())
        cells = notebook["cells"]
        return [
            "".join(cell["source"])
            for cell in cells
            if cell["cell_type"] == "code"
            and SETUP_TAG not in cell.get("metadata", {}).get("tags", ())
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ScoresError(f"not a notebook ({type(error).__name__})") from None


def columns_of(assignment: Assignment) -> list[str]:
    """The table's columns; written questions are left empty for whoever reads them."""
    questions = [f"{q.name} ({q.points:g})" for q in assignment.questions]
    written = [f"{name} written ({points:g})" for name, points in assignment.written.items()]
    head = ["file", "student", "status", "total", "possible"]
    return [*head, *questions, *written, "reasons", "isolation", "digest"]


def as_record(row: Row, assignment: Assignment) -> dict[str, str]:
    """The row as text, safe to be opened in a spreadsheet."""
    verdict = row.verdict
    record = {
        "file": row.file,
        "student": _cell(row.student),
        "status": verdict.status,
        "total": f"{verdict.total:g}",
        "possible": f"{assignment.points:g}",
        "reasons": _cell(" | ".join(verdict.reasons)),
        "isolation": row.isolation,
        "digest": row.digest,
    }
    for question in assignment.questions:
        earned = verdict.points.get(question.name, 0.0)
        record[f"{question.name} ({question.points:g})"] = f"{earned:g}"
    return {column: record.get(column, "") for column in columns_of(assignment)}


def _cell(text: str) -> str:
    # A spreadsheet takes text that begins like this for a formula; control marks go as well.
    text = re.sub(r"[\x00-\x1f\x7f]+", " ", text)
    text = text.encode("utf-8", "backslashreplace").decode()  # halves of surrogate pairs
    return "'" + text if text[:1] in ("=", "+", "-", "@") else text


def _student(name: str) -> str:
    return name.split("/")[-2] if "/" in name else name.removesuffix(".ipynb")


def _digest(file: Path, assignment: Assignment) -> str:
    found = hashlib.sha256(assignment.digest.encode())
    with file.open("rb") as handle:
        for chunk in iter(lambda: handle.read(1 << 20), b""):
            found.update(chunk)
    return found.hexdigest()[:16]


def _read_table(table: Path, columns: list[str]) -> dict[str, dict[str, str]]:
    if not table.exists():
        return {}
    with table.open(newline="", encoding="utf-8") as handle:
        reader = csv.DictReader(handle)
        rows = list(_whole_rows(reader))
        if reader.fieldnames != columns:
            raise ScoresError(
                f"{table} is no table of scores of this assignment; move it away or name another"
            )
    return {row["file"]: row for row in rows}


def _whole_rows(reader: csv.DictReader) -> Iterator[dict[str, str]]:
    for row in reader:
        if None not in row and None not in row.values():
            yield row


def _write_table(table: Path, columns: list[str], rows: dict[str, dict[str, str]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows[name] for name in sorted(rows))
    with whole_file(table) as scratch:
        scratch.chmod(0o600)  # grades are nobody else's business
        scratch.write_text(text.getvalue(), encoding="utf-8", newline="")
