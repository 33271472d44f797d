"""Errors of the ground floor. Every one is a ``ValueError`` that names the offending item."""


class BertologyError(ValueError):
    """Base class of the errors that this package raises on bad input."""


class UnknownModelError(BertologyError):
    """No such model: neither embedded, nor a local folder, nor reachable by its hub id."""


class UnsupportedModelError(BertologyError):
    """The model exists, but is not an encoder of a family that the package can open up."""


class DeviceUnavailableError(BertologyError):
    """The device asked for does not exist on this machine."""


class MissingHeadError(BertologyError):
    """The checkpoint holds no trained weights for the output head asked for."""


class LayerIndexError(BertologyError, IndexError):
    """A layer number outside the model."""


class HeadIndexError(BertologyError, IndexError):
    """A head number outside its layer."""
