"""The files that a browser needs to run the model, and the same model run from here."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnxruntime

from ..encoder import Encoder
from ..writing import write_whole
from .calibration import calibration_texts, input_moments
from .graph import build_graph
from .vocabulary import vocabulary_script

MODEL_FILE = "model.onnx"
VOCABULARY_FILE = "vocabulary.js"
#: JSON, under a name that nobody takes for a measurement among the results
RECORD_FILE = "exported.txt"
#: most that a model may weigh, in bytes: what a reader waits for
LARGEST_MODEL = 25_000_000


class ModelTooLargeError(ValueError):
    """The exported model is larger than a page may ask a reader to load."""


@dataclass(frozen=True)
class Exported:
    """A model as files for the browser.

    Attributes:
        model: name of the model.
        n_parameters: its weights, tied ones counted once.
        n_bytes: size of the ONNX file.
        sha256: digest of the ONNX file.
        n_layers, n_heads: of the model.
    """

    model: str
    n_parameters: int
    n_bytes: int
    sha256: str
    n_layers: int
    n_heads: int


def export(encoder: Encoder, folder: str | os.PathLike) -> Exported:
    """Write model, vocabulary and a record of both into ``folder``.

    The record is written last, so a folder that has one is complete.

    Raises:
        UnsupportedModelError: the model or its tokenizer is not BERT's.
        ModelTooLargeError: the file would weigh more than :data:`LARGEST_MODEL`.
        NotWrittenError: a full disk, or a folder that takes nothing.
    """
    moments = input_moments(encoder, calibration_texts())
    content = build_graph(encoder, moments).SerializeToString(deterministic=True)
    if len(content) > LARGEST_MODEL:
        raise ModelTooLargeError(
            f"{encoder.name!r} weighs {len(content):,} bytes as int8, more than {LARGEST_MODEL:,}"
        )
    place = Path(folder)
    (place / RECORD_FILE).unlink(missing_ok=True)
    write_whole(place / MODEL_FILE, content)
    write_whole(place / VOCABULARY_FILE, vocabulary_script(encoder))
    made = Exported(
        model=encoder.name,
        n_parameters=encoder.n_parameters,
        n_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        n_layers=encoder.n_layers,
        n_heads=encoder.n_heads,
    )
    write_whole(place / RECORD_FILE, json.dumps(asdict(made), indent=1) + "\n")
    return made


@dataclass(frozen=True)
class Answers:
    """What one run gives: ``logits`` [M, V], ``attentions`` [L, H, T, T], ``cosines`` [K, V]."""

    logits: np.ndarray
    attentions: np.ndarray
    cosines: np.ndarray


class SmallModel:
    """The exported model, run by onnxruntime on one thread, as a page runs it."""

    def __init__(self, folder: str | os.PathLike) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # Unfold the rounded weights once, instead of at every run.
        options.add_session_config_entry("session.disable_quant_qdq", "1")
        self._session = onnxruntime.InferenceSession(
            str(Path(folder) / MODEL_FILE), options, providers=["CPUExecutionProvider"]
        )

    def run(
        self,
        input_ids: Sequence[int],
        places: Sequence[tuple[int, int]] = (),
        alike: Sequence[int] = (),
    ) -> Answers:
        """Run one text; see :mod:`~bertology_utils.playground.graph` for the shapes."""
        found = self._session.run(
            ["logits", "attentions", "cosines"],
            {
                "input_ids": np.array(input_ids, np.int64),
                "places": np.array(places, np.int64).reshape(-1, 2),
                "alike": np.array(alike, np.int64),
            },
        )
        return Answers(*found)
