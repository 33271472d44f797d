"""The ledger: what the Primer claims, what a run measured, and an honest verdict.

>>> from bertology_utils import ledger
>>> ledger.load_claims()["SYN-13"].measure.unit
'share'

``record(claim_id, result)`` is the only way to the scoreboard: it checks the result, lets the rule
declared in ``claims.yml`` judge it, and stores it. ``table(chapter, model)`` shows a chapter's
rows.
"""

from .claims import Claim, Evidence, Figure, Ledger, Measure, Paper, Table1Row, load_claims
from .compare import Comparison, compare
from .errors import (
    ClaimsFileError,
    MeasurementError,
    MissingBaselineError,
    ResultFileError,
    UnknownClaimError,
    WrongModeError,
)
from .measurement import UNITS, BrokenModel, Measured, Measurement, NotTestable
from .scoreboard import STATUSES, Scoreboard, scoreboard
from .store import (
    RESULTS_VARIABLE,
    Record,
    adopt,
    default_model,
    folder_name,
    missing,
    models,
    record,
    record_text,
    result,
    results,
    results_root,
    verdict,
)
from .tables import ClaimTable, Row, glue_values, rows, status_style, table
from .verdicts import DOES_NOT, NOT_TESTABLE, PARTLY, REPLICATES, VERDICTS, Rule, Verdict

__all__ = [
    "DOES_NOT",
    "NOT_TESTABLE",
    "PARTLY",
    "REPLICATES",
    "RESULTS_VARIABLE",
    "UNITS",
    "STATUSES",
    "Scoreboard",
    "VERDICTS",
    "BrokenModel",
    "Claim",
    "ClaimTable",
    "ClaimsFileError",
    "Comparison",
    "Evidence",
    "Figure",
    "Ledger",
    "Measure",
    "Measured",
    "Measurement",
    "MeasurementError",
    "MissingBaselineError",
    "NotTestable",
    "Paper",
    "Record",
    "ResultFileError",
    "Row",
    "Rule",
    "Table1Row",
    "UnknownClaimError",
    "Verdict",
    "WrongModeError",
    "adopt",
    "compare",
    "default_model",
    "folder_name",
    "glue_values",
    "load_claims",
    "missing",
    "models",
    "record",
    "record_text",
    "result",
    "results",
    "results_root",
    "rows",
    "scoreboard",
    "status_style",
    "table",
    "verdict",
]
