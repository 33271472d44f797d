"""Fine-tuning: what is trained, on what, by which loss, and how much of the result is luck.

A run is a plain function of an encoder, labelled texts and a frozen :class:`Run`; the same
arguments give the same weights.
"""

from .domain import NoGapsError, count_gaps, fill_gaps, other_words, pivots
from .experiments import Experiment, Outcome, Tuner, weights_digest
from .features import Features, MixProbe, features, mix_probe
from .landscape import Path, Plane, path, plane, state_change
from .loop import Recipe, train
from .methods import (
    METHODS,
    Bottleneck,
    Method,
    Prepared,
    draw_layers_anew,
    prepare,
    using,
    with_low_rank,
)
from .objectives import Mixout, Smooth, adversarial, disturbed, noised, plain
from .parsing import Parser, governors, shuffled_governors, tune_parser
from .runs import Run, accuracy, attacked, environments, fine_tune, fit
from .summaries import (
    Stopped,
    VarianceParts,
    accuracy_range,
    best_head_gain,
    expected_best,
    held_out_range,
    over_runs,
    paired_gain,
    paired_texts_gain,
    spread_gap,
    stop_early,
    variance_parts,
)
from .tasks import ACCEPTABILITY, TASKS, Part, Task, TaskError, make_task, reviews, shuffled_labels
from .tuned import Examples, Tuned, embed, examples, first_state, new_head, occurring_rows

__all__ = [
    "ACCEPTABILITY",
    "METHODS",
    "TASKS",
    "Bottleneck",
    "Examples",
    "Experiment",
    "Features",
    "Method",
    "MixProbe",
    "Mixout",
    "NoGapsError",
    "Outcome",
    "Parser",
    "Part",
    "Path",
    "Plane",
    "Prepared",
    "Recipe",
    "Run",
    "Smooth",
    "Stopped",
    "Task",
    "TaskError",
    "Tuned",
    "Tuner",
    "VarianceParts",
    "accuracy",
    "accuracy_range",
    "adversarial",
    "attacked",
    "best_head_gain",
    "count_gaps",
    "disturbed",
    "draw_layers_anew",
    "embed",
    "environments",
    "examples",
    "expected_best",
    "features",
    "fill_gaps",
    "fine_tune",
    "first_state",
    "fit",
    "governors",
    "held_out_range",
    "make_task",
    "mix_probe",
    "new_head",
    "noised",
    "occurring_rows",
    "other_words",
    "over_runs",
    "paired_gain",
    "paired_texts_gain",
    "path",
    "pivots",
    "plain",
    "plane",
    "prepare",
    "reviews",
    "shuffled_governors",
    "shuffled_labels",
    "spread_gap",
    "state_change",
    "stop_early",
    "train",
    "tune_parser",
    "using",
    "variance_parts",
    "weights_digest",
    "with_low_rank",
]
