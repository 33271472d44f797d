"""What can keep claims from being reproduced."""


class ReproduceError(ValueError):
    """The request cannot be met as asked: no such claims, book, model or cluster."""


class WorkerError(RuntimeError):
    """A process that ran cells ended without an answer (often: out of memory)."""
