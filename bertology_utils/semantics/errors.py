"""Errors of measurements of meaning; each names the item at fault."""

from ..encoder import BertologyError


class SemanticsError(BertologyError):
    """Nothing to measure, too little of it, or items that do not belong together."""
