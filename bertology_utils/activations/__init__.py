"""Everything a layer computes, by name: in memory for a batch, on disk for a corpus."""

from .cache import Cache, MissingLayerError, capture, run_with_cache, stream
from .collect import ROWS, Collected, CollectedError, collect, open_collected
from .patterns import Patterns
from .sites import (
    SITES,
    Site,
    UnknownSiteError,
    merge_heads,
    n_entries,
    place,
    site_of,
    split_heads,
)

__all__ = [
    "ROWS",
    "SITES",
    "Cache",
    "Collected",
    "CollectedError",
    "MissingLayerError",
    "Patterns",
    "Site",
    "UnknownSiteError",
    "capture",
    "collect",
    "merge_heads",
    "n_entries",
    "open_collected",
    "place",
    "run_with_cache",
    "site_of",
    "split_heads",
    "stream",
]
