"""One call from features and labels to a result for every layer."""

from collections.abc import Hashable, Sequence

import numpy as np
import torch
from torch import Tensor

from .data import Split, Task, as_features, as_task, take
from .errors import UnequalLengthError
from .linear import fit_linear
from .mlp import fit_mlp
from .results import ProbeResult, class_scores, share_interval
from .ridge import fit_ridge

KINDS = ("linear", "ridge", "mlp")


def probe_layers(
    features: np.ndarray | Tensor,
    labels: Sequence[Hashable],
    split: Split,
    *,
    kind: str = "linear",
    seed: int = 0,
    groups: Sequence[Hashable] | None = None,
    model: str = "features",
    **options,
) -> list[ProbeResult]:
    """Train one probe a layer on the training part and score it on the test part.

    The development part chooses penalties and stops training early. Classes are not weighted.

    Args:
        features: [S, N, D], such as ``collect(...).arrays["hidden_states"]``: entry 0 is the
            embedding output.
        labels: [N] anything that can be compared and hashed.
        split: over the N examples; see :func:`group_split` for words of sentences.
        kind: ``"linear"`` (softmax with an L2 penalty), ``"ridge"`` (least squares on one-hot
            labels) or ``"mlp"`` (one hidden layer).
        seed: of the MLP's weights and batches, and of the bootstrap.
        groups: [N] sentence of every example; the intervals then resample sentences.
        model: name of the probed model, for the results.
        options: of the kind: ``l2`` (linear), ``alpha`` (ridge), ``hidden``, ``epochs``, ``lr``...
            (mlp).

    Raises:
        ValueError: unknown kind, or no development part where one is needed.
        TypeError: an option that the kind does not have.
        OneClassError, TooFewExamplesError, UnequalLengthError, NonFiniteError: bad data.
    """
    data = as_features(features)
    task = as_task(labels, split, data.shape[1])
    if groups is not None and len(groups) != data.shape[1]:
        raise UnequalLengthError(f"{len(groups)} groups for {data.shape[1]} examples")
    predicted = predict(data, task, kind, seed, options)
    gold = task.of("test").cpu().numpy()
    held = None if groups is None else [groups[i] for i in split.test]
    results = []
    for layer, guess in enumerate(predicted.cpu().numpy()):
        scores = class_scores(guess, gold, task.classes)
        correct = guess == gold
        results.append(
            ProbeResult(
                layer,
                kind,
                float(correct.mean()),
                float(np.mean([score.f1 for score in scores.values()])),
                task.majority,
                scores,
                len(split.train),
                len(split.test),
                seed,
                share_interval(correct, held, seed),
                model,
                correct,
            )
        )
    return results


def predict(data: Tensor, task: Task, kind: str, seed: int, options: dict) -> Tensor:
    """Train and return the predicted classes [S, n_test]."""
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}, must be one of {', '.join(KINDS)}")
    split, classes = task.split, len(task.classes)
    train, test = take(data, split.train), take(data, split.test)
    dev = (take(data, split.dev), task.of("dev")) if len(split.dev) else None
    if kind == "linear":
        fitted = fit_linear(train, task.of("train"), classes, dev=dev, **options)
        return fitted.logits(test).argmax(-1)
    if kind == "mlp":
        fitted = fit_mlp(train, task.of("train"), classes, dev=dev, seed=seed, **options)
        return fitted.log_probs(test).argmax(-1)
    onehot = torch.nn.functional.one_hot(task.codes, classes).to(data)
    held = (dev[0], onehot[split.dev]) if dev is not None else None
    ridge = fit_ridge(train, onehot[split.train], dev=held, **options)
    return ridge.predict(test).argmax(-1)
