"""Fine-tune the upper layers of a model, from the states of a frozen layer computed once.

Full fine-tuning belongs to its own chapter; what is asked here is which of two rules a model picks
up, whether a stage of parsing helps it, and what derails it. The lower layers stay as they are, so
that each run costs a fraction of a forward pass.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from ..activations import stream
from ..encoder import Encoder, evaluating
from ..finetuning import Recipe, train
from ..words import Text


@dataclass(frozen=True, eq=False)
class FrozenStates:
    """Hidden states of N texts at one layer.

    Attributes:
        hidden: [N, T, D], padded on the right.
        mask: [N, T] 1 at pieces, 0 at padding.
        layer: 0 .. L; layers above it are trained.
    """

    hidden: Tensor
    mask: Tensor
    layer: int

    def __len__(self) -> int:
        return len(self.hidden)

    def rows(self, index: Sequence[int] | np.ndarray | Tensor) -> FrozenStates:
        """The given texts, cut to the longest of them."""
        where = torch.as_tensor(index, dtype=torch.long, device=self.hidden.device)
        mask = self.mask[where]
        width = int(mask.sum(1).max())
        return FrozenStates(self.hidden[where, :width], mask[:, :width], self.layer)


def frozen_states(
    encoder: Encoder, texts: Sequence[Text], layer: int, *, max_tokens: int = 4096
) -> FrozenStates:
    """Encode texts up to a layer.

    Raises:
        ValueError: no texts.
        LayerIndexError: no such layer.
    """
    if not texts:
        raise ValueError("no texts to encode")
    encoder.check_layer(layer, last=encoder.n_layers)
    rows: list[Tensor | None] = [None] * len(texts)
    for cache in stream(encoder, texts, ["hidden_states"], max_tokens=max_tokens):
        lengths = cache.batch.attention_mask.sum(1).tolist()
        for place, text in enumerate(cache.batch.index):
            rows[text] = cache["hidden_states"][layer, place, : lengths[place]]
    hidden = nn.utils.rnn.pad_sequence([row for row in rows if row is not None], batch_first=True)
    sizes = torch.tensor([len(row) for row in rows if row is not None])
    mask = (torch.arange(hidden.shape[1]) < sizes[:, None]).long().to(hidden.device)
    return FrozenStates(hidden, mask, layer)


def tuned_copy(encoder: Encoder, layer: int) -> Encoder:
    """A copy whose layers from ``layer`` on can be trained; everything below is frozen.

    Raises:
        LayerIndexError: no such layer.
    """
    encoder.check_layer(layer, last=encoder.n_layers)
    made = replace(encoder, model=copy.deepcopy(encoder.model))
    for parameter in made.model.parameters():
        parameter.requires_grad_(False)
    for block in made.family.blocks(made.base)[layer:]:
        for parameter in block.parameters():
            parameter.requires_grad_(True)
    return made


@dataclass(frozen=True, eq=False)
class TunedClassifier:
    """A fine-tuned copy of an encoder with a linear layer over the first piece.

    Attributes:
        encoder: the copy; head: D -> classes; layer: the highest frozen hidden state.
    """

    encoder: Encoder
    head: nn.Linear
    layer: int

    def logits(self, states: FrozenStates) -> Tensor:
        """[N, classes] with the graph, in the model's present mode."""
        hidden = self.encoder.encode_from(states.hidden, states.mask, self.layer)
        return self.head(hidden[:, 0])

    def predict(self, states: FrozenStates) -> Tensor:
        """[N] classes."""
        with evaluating(self.encoder):
            parts = torch.arange(len(states)).split(64)
            return torch.cat([self.logits(states.rows(part)).argmax(-1) for part in parts])


Loss = Callable[[Tensor], Tensor]


def train_top(
    encoder: Encoder,
    extra: nn.Module,
    n: int,
    loss: Loss,
    *,
    epochs: int,
    batch_size: int = 16,
    lr: float = 3e-4,
    seed: int = 0,
) -> float:
    """:func:`bertology_utils.finetuning.train` over the trainable layers of a copy and ``extra``.

    In training mode, in place; what is dropped comes from a random stream of its own.

    Args:
        encoder: see :func:`tuned_copy`.
        extra: what reads the last layer.
        n: number of training items.
        loss: from item numbers [b] to the mean loss.
        epochs, batch_size, lr, seed: as usual.

    Returns:
        mean loss of the last epoch.

    Raises:
        ValueError: no items or epochs; a loss that is not finite.
    """
    parameters = [p for p in encoder.model.parameters() if p.requires_grad]
    recipe = Recipe(epochs=epochs, batch_size=batch_size, lr=lr, clip=1.0)
    with _own_random_stream(seed), _training(encoder):
        losses = train(
            [*parameters, *extra.parameters()], n, lambda chosen: loss(torch.tensor(chosen)),
            recipe, draw=torch.Generator().manual_seed(seed),
        )  # fmt: skip
    return float(np.mean(losses[-(len(losses) // epochs) :]))


def output_layer(encoder: Encoder, width: int, seed: int) -> nn.Linear:
    """A fresh linear layer from a hidden state to ``width`` numbers."""
    with _own_random_stream(seed):
        layer = nn.Linear(encoder.d_model, width)
        nn.init.normal_(layer.weight, std=0.02)
        nn.init.zeros_(layer.bias)
    return layer.to(encoder.device)


def fine_tune(
    encoder: Encoder,
    states: FrozenStates,
    labels: Sequence[int],
    *,
    classes: int = 2,
    epochs: int = 3,
    batch_size: int = 16,
    lr: float = 3e-4,
    seed: int = 0,
) -> TunedClassifier:
    """Train a classifier and the layers above ``states.layer`` of a copy of the encoder.

    Args:
        encoder: left as it is.
        states: of the training texts.
        labels: 0 .. classes - 1, one per text.
        classes, epochs, batch_size, lr: as usual.
        seed: of the new layer, the order of the texts, and dropout.

    Raises:
        ValueError: labels do not fit the texts, or are all the same.
    """
    if len(labels) != len(states):
        raise ValueError(f"{len(labels)} labels for {len(states)} texts")
    gold = torch.as_tensor(labels, device=encoder.device)
    if not 0 <= int(gold.min()) <= int(gold.max()) < classes:
        raise ValueError(f"labels run from {int(gold.min())} to {int(gold.max())}")
    if len(gold.unique()) < 2:
        raise ValueError(f"all labels are {int(gold[0])}")
    made = tuned_copy(encoder, states.layer)
    head = output_layer(encoder, classes, seed)
    found = TunedClassifier(made, head, states.layer)
    train_top(
        made, head, len(states),
        lambda batch: nn.functional.cross_entropy(found.logits(states.rows(batch)), gold[batch]),
        epochs=epochs, batch_size=batch_size, lr=lr, seed=seed,
    )  # fmt: skip
    return found


@contextmanager
def _own_random_stream(seed: int) -> Iterator[None]:
    """Draw from a seed of one's own and leave torch's global stream as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


@contextmanager
def _training(encoder: Encoder) -> Iterator[None]:
    """Training mode, undone after."""
    was = encoder.model.training
    encoder.model.train()
    try:
        yield
    finally:
        encoder.model.train(was)
