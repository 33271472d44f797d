"""Making an encoder smaller: distil, prune, quantise, factorise, share, replace, leave out.

>>> from bertology_utils import compression
>>> model = compression.compact(encoder, n_classes=2)
>>> compression.file_bytes(compression.int8(model))

Every model is a plain module that :func:`save` writes to one safetensors file and :func:`load`
reads back with equal outputs.
"""

from .curvature import hessian_traces, rounding_cost, share_bits
from .data import (
    IGNORED,
    UNKNOWN,
    Labelled,
    Score,
    labelled,
    labelled_words,
    predictions,
    score,
)
from .distilling import (
    Copying,
    Lessons,
    copied_layers,
    distil,
    lessons,
    score_loss,
    soft_target_loss,
)
from .elimination import Eliminating, falling_shares
from .errors import CompressionError
from .masked_words import MaskedLosses, loss_rise, masked_losses, with_token_rank
from .measuring import (
    Growth,
    Times,
    accuracy,
    attention_growth,
    difference,
    mean_score,
    retained,
    side_by_side,
)
from .model import Compact, Layer, Trace, compact, linear_maps
from .quantise import (
    Int8Linear,
    PackedEmbedding,
    PackedLinear,
    PackedMatrix,
    gobo,
    int8,
    packed,
    rounded,
    train_rounded,
)
from .replacing import rising_rate, theseus, with_layers
from .sparse import (
    apply_masks,
    cubic_share,
    magnitudes,
    masked,
    prune_while_training,
    random_like,
    reweighted_pruning,
    rewound,
    sparsity,
    top_masks,
    train_masked,
)
from .storage import file_bytes, load, reloaded, save
from .structure import (
    best_share,
    importance,
    keep_heads,
    keep_layers,
    keep_units,
    random_scores,
)
from .students import (
    D_HEAD,
    Recurrent,
    fresh_layers,
    narrow_student,
    recurrent_student,
    student_of,
    tie_layers,
)
from .tables import (
    FactorisedEmbedding,
    TrimmedEmbedding,
    factorise_tokens,
    low_rank,
    trim_vocabulary,
)
from .tasks import Task, review_task, tagging_task
from .training import Recipe, label_loss, train, trained

__all__ = [
    "D_HEAD", "Compact", "CompressionError", "Copying", "Eliminating", "FactorisedEmbedding",
    "Growth",
    "IGNORED", "Int8Linear", "Labelled", "Layer", "Lessons", "MaskedLosses", "PackedEmbedding",
    "PackedLinear", "PackedMatrix", "Recipe", "Recurrent", "Score", "Task", "Times", "Trace",
    "TrimmedEmbedding",
    "UNKNOWN", "accuracy", "apply_masks", "attention_growth", "best_share", "compact",
    "copied_layers", "cubic_share", "difference", "distil", "factorise_tokens",
    "falling_shares", "file_bytes", "fresh_layers", "gobo", "hessian_traces", "importance", "int8",
    "keep_heads", "keep_layers", "keep_units", "label_loss", "labelled", "labelled_words",
    "lessons", "linear_maps", "load", "loss_rise", "low_rank", "magnitudes", "masked",
    "masked_losses", "mean_score", "narrow_student", "packed", "predictions",
    "prune_while_training", "random_like", "random_scores", "recurrent_student", "reloaded",
    "retained", "review_task", "reweighted_pruning", "rewound", "rising_rate", "rounded",
    "rounding_cost", "save", "score", "score_loss", "share_bits", "side_by_side",
    "soft_target_loss",
    "sparsity", "student_of", "tagging_task", "theseus", "tie_layers", "top_masks", "train",
    "train_masked", "train_rounded", "trained", "trim_vocabulary", "with_layers",
    "with_token_rank",
]  # fmt: skip
