"""Grading: every submission in a process of its own, judged by tests it never sees.

The *judge* (this process) holds the tests, hidden ones included, and runs them itself. The
*worker* (one fresh process per submission) runs the submission's cells in a throw-away folder and
answers questions: which of your names are functions, and what does this function return for these
arguments? Only plain data crosses the line between them, so a submission can neither read the
tests nor write its own score.
"""

from .assignment import Assignment, Question, load_assignment
from .judge import Verdict, failure_of, given_names, judge
from .sandbox import Limits, isolation_layers
from .scores import Row, ScoresError, grade_folder

__all__ = [
    "Assignment",
    "Limits",
    "Question",
    "Row",
    "ScoresError",
    "Verdict",
    "failure_of",
    "given_names",
    "grade_folder",
    "isolation_layers",
    "judge",
    "load_assignment",
]
