"""Errors of masked questions; each names the text or target at fault."""

from ..encoder import BertologyError


class MaskCountError(BertologyError):
    """A text with no mask, or with several, where exactly one is needed."""


class TargetError(BertologyError):
    """A target word that is not exactly one piece of the vocabulary."""


class UnequalPairError(BertologyError):
    """Lists that must have one entry for each text, and do not; or a pair that is no pair."""
