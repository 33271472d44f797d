"""The embedded model for a browser: int8 weights, one ONNX graph, and the page that plays with it.

:func:`export` writes the files, :class:`SmallModel` runs them as a page does, :func:`compare`
says how often they give PyTorch's answers, :func:`panel` is what a reader sees.
"""

from .agreement import Agreement, Case, best_pieces, compare, mask_cases, small_best_pieces
from .calibration import calibration_texts, input_moments
from .exporting import LARGEST_MODEL, Exported, ModelTooLargeError, SmallModel, export
from .graph import build_graph
from .panel import MOST_PIECES, Example, example, panel
from .rounding import Rounded, round_matrix
from .vocabulary import vocabulary_script

__all__ = [
    "LARGEST_MODEL",
    "MOST_PIECES",
    "Agreement",
    "Case",
    "Example",
    "Exported",
    "ModelTooLargeError",
    "Rounded",
    "SmallModel",
    "best_pieces",
    "build_graph",
    "calibration_texts",
    "compare",
    "example",
    "export",
    "input_moments",
    "mask_cases",
    "panel",
    "round_matrix",
    "small_best_pieces",
    "vocabulary_script",
]
