"""What can go wrong between a result and the scoreboard."""

from __future__ import annotations


class UnknownClaimError(KeyError):
    """The claim id is not in ``claims.yml``."""

    def __str__(self) -> str:  # KeyError would print the repr of the message
        return str(self.args[0]) if self.args else ""


class ClaimsFileError(ValueError):
    """``claims.yml`` breaks its own rules; the message names the row."""


class WrongModeError(ValueError):
    """A result was offered for a claim that is only discussed."""


class MeasurementError(ValueError):
    """A result is not fit to be recorded: not finite, out of range, wrong unit."""


class MissingBaselineError(MeasurementError):
    """A baseline that the claim's rule compares with was not measured."""


class ResultFileError(ValueError):
    """A stored result cannot be read back; the message names the file."""
