"""What can go wrong while a model is made smaller."""

from ..encoder import BertologyError


class CompressionError(BertologyError):
    """A model, a share or a file that a method of this room cannot use."""
