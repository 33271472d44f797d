"""Probes with one hidden layer, for all layers of the model at once."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .data import standardise
from .fit import Training, same_start, shuffled, train_together


@dataclass(frozen=True, eq=False)
class MLPProbes:
    """S trained probes; ``features`` below are raw, standardisation is inside.

    Attributes:
        parameters: ``in_weight`` [S, D, F], ``in_bias`` [S, F], ``out_weight`` [S, F, K],
            ``out_bias`` [S, K].
        mean, scale: [S, 1, D] of the training part.
        training: epochs and development losses.
    """

    parameters: dict[str, Tensor]
    mean: Tensor
    scale: Tensor
    training: Training

    def log_probs(self, features: Tensor) -> Tensor:
        """[S, N, D] -> natural log-probabilities [S, N, K]"""
        return _forward(self.parameters, (features - self.mean) / self.scale).log_softmax(-1)


def fit_mlp(
    train: Tensor,
    labels: Tensor,
    n_classes: int,
    *,
    dev: tuple[Tensor, Tensor] | None = None,
    hidden: int = 64,
    epochs: int = 30,
    patience: int = 3,
    lr: float = 3e-3,
    weight_decay: float = 1e-2,
    batch_size: int = 256,
    seed: int = 0,
) -> MLPProbes:
    """Train ReLU networks with one hidden layer by AdamW.

    Every layer starts from the same weights and sees the same batches, so that its result does not
    depend on which other layers are trained with it.

    Args:
        train: [S, N, D]; labels: [N].
        dev: features [S, M, D] and labels [M] for early stopping; without, all epochs are run.
        hidden: width of the hidden layer.
        epochs, patience, lr, weight_decay, batch_size: as usual.
        seed: of weights and batches.
    """
    rows, mean, scale = standardise(train)
    layers, n, width = rows.shape
    counts = torch.bincount(labels, minlength=n_classes).cpu() + 0.5
    frequency = counts / counts.sum()
    parameters = {
        "in_weight": same_start((width, hidden), layers, 1 / math.sqrt(width), seed),
        "in_bias": torch.zeros(layers, hidden),
        "out_weight": torch.zeros(layers, hidden, n_classes),
        # Class frequencies: where nothing can be learnt, that is the probe to stop at.
        "out_bias": frequency.log().expand(layers, -1).clone(),
    }
    parameters = {name: value.to(rows.device) for name, value in parameters.items()}
    generator = torch.Generator().manual_seed(seed)
    loss = torch.nn.functional.cross_entropy

    def losses(inputs: Tensor, gold: Tensor) -> Tensor:
        logits = _forward(parameters, inputs).transpose(1, 2)  # [S, K, b]
        return loss(logits, gold.expand(layers, -1), reduction="none").mean(1)

    held = None if dev is None else ((dev[0] - mean) / scale, dev[1])
    training = train_together(
        parameters,
        lambda: shuffled(n, batch_size, generator),
        lambda batch: losses(rows.index_select(1, batch.to(rows.device)), labels[batch]),
        None if held is None else lambda: losses(*held),
        epochs=epochs,
        patience=patience,
        lr=lr,
        weight_decay=weight_decay,
    )
    return MLPProbes(parameters, mean, scale, training)


def _forward(parameters: dict[str, Tensor], rows: Tensor) -> Tensor:
    inner = torch.baddbmm(parameters["in_bias"][:, None], rows, parameters["in_weight"]).relu()
    return torch.baddbmm(parameters["out_bias"][:, None], inner, parameters["out_weight"])
