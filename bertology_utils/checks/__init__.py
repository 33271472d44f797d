"""Instant checks of the exercises, one module per chapter.

A check judges how the reader's function behaves on inputs drawn afresh, and says what is missing
without saying what to write. ``judging`` has the tools to write one.
"""

from .judging import Feedback, Wrong, as_array, ask, check, expect

__all__ = ["Feedback", "Wrong", "as_array", "ask", "check", "expect"]
