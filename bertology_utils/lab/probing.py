"""What can be read out of a lab model: three small probes, all on sentences it has not met."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch

from ..probes import Split, probe_layers
from . import model as net
from .language import held_out_sentences, plain
from .runs import LabRun

#: sentences to fit a probe, to choose its penalty, and to score it
TRAIN, DEV = 350, 50


@lru_cache(maxsize=1)
def probe_items() -> dict[str, tuple[np.ndarray, np.ndarray, tuple[str, ...]]]:
    """Task -> (row, place counting [CLS], label) of every word asked about.

    ``relation``: how a word depends on its governor. ``number``: of the subject, read at a verb
    that does not show it. ``tense``: of the sentence, read at its subject.
    """
    found: dict[str, list] = {"relation": [], "number": [], "tense": []}
    for row, sentence in enumerate(held_out_sentences()):
        for word, relation in enumerate(sentence.deprels):
            if sentence.upos[word] != "PUNCT":
                found["relation"].append((row, word + 1, relation))
        gold = sentence.gold
        for agreement in gold.agreements[:1]:
            if sentence.words[agreement.verb].lower() in ("will", "had", "did", "can"):
                found["number"].append((row, agreement.verb + 1, agreement.number))
            elif sentence.words[agreement.verb].lower().endswith("ed"):
                found["number"].append((row, agreement.verb + 1, agreement.number))
        found["tense"].append((row, gold.subject + 1, gold.tense))
    return {
        task: (np.array([i[0] for i in items]), np.array([i[1] for i in items]),
               tuple(i[2] for i in items))
        for task, items in found.items()
    }  # fmt: skip


def vectors(weights: net.Weights, order: str, heads: int) -> np.ndarray:
    """Last vectors [M, B, T, D] of the held-out sentences."""
    ids = torch.from_numpy(plain(held_out_sentences()).ids)
    members = len(weights["words"])
    with torch.no_grad():
        x = net.forward(weights, ids.expand(members, -1, -1), order=order, heads=heads)
    return x.view(members, *ids.shape, -1).numpy()


def probe_accuracy(runs: Sequence[LabRun], *, when: str = "final") -> dict[str, list[float]]:
    """Accuracy of a ridge probe on the last layer, for every task and run, and their mean.

    Args:
        runs: of any objective; their words must be the grammar's.
        when: ``"final"`` weights or those after a tenth of the steps, ``"early"``.

    Raises:
        ValueError: another moment, or runs over other words.
    """
    if when not in ("final", "early"):
        raise ValueError(f"when is {when!r}, must be 'final' or 'early'")
    if any(run.config.corpus == "facts" for run in runs):
        raise ValueError("probes ask about the grammar's words")
    found: dict[str, list[float]] = {task: [] for task in (*probe_items(), "mean")}
    for run in runs:
        weights = run.weights if when == "final" else run.early
        order = run.config.order
        if when == "early" and run.config.stack_after:
            order = order[: len(order) // 2]
        x = vectors(weights, order, run.config.heads)
        for task, (rows, places, labels) in probe_items().items():
            chosen, held = rows < TRAIN, rows >= TRAIN + DEV
            parts = [np.flatnonzero(part) for part in (chosen, ~chosen & ~held, held)]
            result = probe_layers(x[:, rows, places], labels, Split(*parts), kind="ridge")[0]
            found[task].append(result.accuracy)
        found["mean"].append(float(np.mean([found[task][-1] for task in probe_items()])))
    return found
