"""How much of the input is left in the last layer of a lab model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from . import model as net
from .language import MASK, held_out_sentences, plain
from .runs import LabRun


def similarity_to_input(runs: Sequence[LabRun]) -> list[list[float]]:
    """For every run, mean cosine of each layer's vectors with the embedding output of the same
    place, layers counted from 0 (the embedding output itself)."""
    ids = torch.from_numpy(plain(held_out_sentences()).ids)
    words = (ids > MASK).flatten()
    found = []
    for run in runs:
        states: list[torch.Tensor] = []
        with torch.no_grad():
            net.forward(run.weights, ids[None], order=run.config.order,
                        heads=run.config.heads, states=states)  # fmt: skip
        layers = [states[0], *states[2::2]]
        cosines = [
            torch.cosine_similarity(layer[0][words], states[0][0][words], dim=-1).mean()
            for layer in layers
        ]
        found.append(np.array(cosines, float).tolist())
    return found
