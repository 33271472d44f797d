"""Cells that a model cannot run because it lacks an output head, and what hangs on them.

A model without a trained masked-word head can still be probed. A cell that asks it for words
raises; that is no mistake in the experiment, so the cell's claims are recorded as not testable and
the rest of the chapter goes on. Cells that need what such a cell would have made are treated alike.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

_MISSING_HEAD = "MissingHeadError"
_RECORDED = re.compile(r"[\"']([A-Z]+-\d{2})[\"']")
_UNDEFINED = re.compile(r"name '(\w+)' is not defined")


@dataclass
class Unasked:
    """Follows the cells of one chapter on one model, in order.

    Attributes:
        lost: name -> why it was never made.
    """

    lost: dict[str, str] = field(default_factory=dict)

    def reason(self, source: str, error: str, message: str) -> str | None:
        """Why a cell that raised could not be run on this model; None if the error is a mistake.

        Args:
            source: of the cell.
            error: name of the error's class.
            message: its text.
        """
        why = None
        if error == _MISSING_HEAD:
            why = (message.strip().splitlines() or ["an output head is missing"])[0]
        elif error == "NameError" and (found := _UNDEFINED.search(message)):
            why = self.lost.get(found.group(1))
        if why is not None:
            self.lost |= dict.fromkeys(_names_made(source), why)
        return why


def claims_named(source: str) -> list[str]:
    """Ids of claims in quotes, as a cell that records them has them."""
    return list(dict.fromkeys(_RECORDED.findall(source)))


def _names_made(source: str) -> set[str]:
    """Names that a cell would have defined at its top level, or anywhere inside."""
    made = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
    return made
