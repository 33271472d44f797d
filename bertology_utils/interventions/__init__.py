"""Change what an encoder computes, measure, and find it as it was before."""

from .edits import Edit, NoEffectError, PatternEdit, editing, is_edited
from .heads import ablate_heads, mean_heads, scale_heads
from .patching import ablate_layers, assert_changes, erase, patch, zero_embeddings
from .pruning import prune_heads, prune_layers
from .sweep import HeadSweep, sweep_heads

__all__ = [
    "Edit",
    "HeadSweep",
    "NoEffectError",
    "PatternEdit",
    "ablate_heads",
    "ablate_layers",
    "assert_changes",
    "editing",
    "erase",
    "is_edited",
    "mean_heads",
    "patch",
    "prune_heads",
    "prune_layers",
    "scale_heads",
    "sweep_heads",
    "zero_embeddings",
]
