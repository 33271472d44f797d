"""Errors of questions about facts; each names the item at fault."""

from ..encoder import BertologyError


class KnowledgeError(BertologyError):
    """Nothing to ask about, too little of it, or an unknown option."""


class UnmatchedError(BertologyError):
    """Lists that must belong together item by item, and do not."""
