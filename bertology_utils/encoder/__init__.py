"""Ground floor: a BERT-like model and its tokenizer, from one name."""

from ..defaults import DEFAULT_MODEL
from .errors import (
    BertologyError,
    DeviceUnavailableError,
    HeadIndexError,
    LayerIndexError,
    MissingHeadError,
    UnknownModelError,
    UnsupportedModelError,
)
from .families import EmbeddingParts, LayerParts, additive_mask
from .loading import load_encoder, new_encoder, random_encoder, save_encoder
from .model import Encoder, TokenBatch, evaluating
from .packing import Packing
from .precision import in_bfloat16
from .shrink import kept_heads, shrink_heads
from .trunk import Trunk, first_states, is_plain, pass_cost, pick, pieces_at_once

__all__ = [
    "DEFAULT_MODEL",
    "BertologyError",
    "DeviceUnavailableError",
    "EmbeddingParts",
    "Encoder",
    "HeadIndexError",
    "LayerIndexError",
    "LayerParts",
    "MissingHeadError",
    "Packing",
    "TokenBatch",
    "Trunk",
    "UnknownModelError",
    "UnsupportedModelError",
    "additive_mask",
    "evaluating",
    "first_states",
    "in_bfloat16",
    "is_plain",
    "kept_heads",
    "load_encoder",
    "new_encoder",
    "pass_cost",
    "pick",
    "pieces_at_once",
    "random_encoder",
    "save_encoder",
    "shrink_heads",
]
