"""BERTology, live: the small, tested package that every number of the book comes from.

Importing it loads nothing: the names below are fetched from their rooms on first use, so that
``bertology_utils.stimuli`` alone needs neither torch nor transformers.
"""

from importlib import import_module

__version__ = "0.1.0"

_ROOM_OF = {
    "Encoder": "encoder",
    "load_encoder": "encoder",
    "random_encoder": "encoder",
    "Batch": "words",
    "align": "words",
    "token_batches": "words",
    "Cache": "activations",
    "run_with_cache": "activations",
    "ablate_heads": "interventions",
    "prune_heads": "interventions",
}

__all__ = [*sorted(_ROOM_OF), "__version__"]


def __getattr__(name: str):
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'bertology_utils' has no attribute {name!r}")
    return getattr(import_module(f"bertology_utils.{_ROOM_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOM_OF})
