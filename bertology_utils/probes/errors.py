"""Errors of probes; each names the item at fault."""

from ..encoder import BertologyError


class ProbeError(BertologyError):
    """Data from which no probe can be trained or scored."""


class OneClassError(ProbeError):
    """Training labels of a single class: there is nothing to tell apart."""


class TooFewExamplesError(ProbeError):
    """Fewer training examples than classes, or an empty part of a split."""


class NonFiniteError(ProbeError):
    """Features or scores that hold NaN or infinity."""


class UnequalLengthError(ProbeError):
    """Lists that must have one entry for each example, and do not."""


class DecodingError(ProbeError):
    """Scores from which no tree can be read."""
