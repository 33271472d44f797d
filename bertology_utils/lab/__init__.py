"""The pretraining lab: tiny BERTs trained from scratch, in seconds, on a language we know.

>>> from bertology_utils.lab import Grid, LabConfig, gain
>>> grid = Grid(folder)
>>> deep = grid.run(LabConfig(layers=4).seeds(3))
>>> shallow = grid.run(LabConfig(layers=2).seeds(3))
>>> gain(shallow, deep).value     # nats of held-out masked-word loss that depth saves

A run is fixed by its :class:`LabConfig`; equal settings give equal curves.
"""

from .compare import curve, finals, gain, over_seeds, paired
from .config import ConfigError, LabConfig
from .depth import similarity_to_input
from .grid import Grid, Study, families
from .language import agreement_pairs, held_out_sentences, training_sentences, vocabulary
from .plan import plan
from .probing import probe_accuracy
from .runs import LabRun, RunFileError, read_run, write_run
from .train import train
from .tuning import (
    Tuned,
    fresh_weights,
    half_masks,
    interpolated,
    pretrained_weights,
    seed_differences,
    sharpness,
    tune,
)
from .unknown import at_rare_words, beside_unknown

__all__ = [
    "ConfigError",
    "Grid",
    "LabConfig",
    "LabRun",
    "RunFileError",
    "Study",
    "Tuned",
    "agreement_pairs",
    "at_rare_words",
    "beside_unknown",
    "curve",
    "families",
    "finals",
    "fresh_weights",
    "gain",
    "half_masks",
    "held_out_sentences",
    "interpolated",
    "over_seeds",
    "paired",
    "plan",
    "pretrained_weights",
    "probe_accuracy",
    "read_run",
    "seed_differences",
    "sharpness",
    "similarity_to_input",
    "train",
    "training_sentences",
    "tune",
    "vocabulary",
    "write_run",
]
