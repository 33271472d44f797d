"""Fine-tuning on data in which a property never varies, and what can still be read of it.

Ravichander et al. 2021 (doi:10.18653/v1/2021.eacl-main.295): an encoder holds properties on which
its task cannot depend.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from ..activations import collect
from ..encoder import Encoder, evaluating
from ..probes import Split, probe_layers
from ..probes.results import ProbeResult
from ..stimuli import Sentence
from ..words import Text, WordList, make_batch

NUMBERS = ("sing", "plur")
#: of probes of whole sentences; on standardised vectors
PENALTY = 0.1


@dataclass(frozen=True, eq=False)
class Tuned:
    """A fine-tuned copy.

    Attributes:
        encoder: the copy; losses: of every step, in nats.
        accuracy: on held-out texts of the task.
    """

    encoder: Encoder
    losses: tuple[float, ...]
    accuracy: float


def texts_of(sentences: Sequence[Sentence]) -> list[WordList]:
    """Sentences as texts whose words are known."""
    return [WordList(s.words, s.text) for s in sentences]


def subject_numbers(sentences: Sequence[Sentence]) -> list[int]:
    """0 for a singular subject of the main clause, 1 for a plural one.

    Raises:
        ValueError: a sentence that did not come from the grammar.
    """
    if odd := next((s for s in sentences if s.gold is None), None):
        raise ValueError(f"no gold analysis of {odd.text!r}")
    return [NUMBERS.index(s.gold.subject_number) for s in sentences]


def fine_tune(
    encoder: Encoder,
    train: Sequence[Text],
    labels: Sequence[int],
    held_out: Sequence[Text],
    held_labels: Sequence[int],
    *,
    epochs: int = 2,
    batch_size: int = 16,
    lr: float = 2e-4,
    seed: int = 0,
) -> Tuned:
    """Train a copy and a linear classifier on [CLS]; ``encoder`` stays as it is. Dropout is off.

    Raises:
        ValueError: labels that do not fit the texts, or all the same.
    """
    if len(labels) != len(train) or len(held_labels) != len(held_out):
        raise ValueError("one label per text is needed")
    classes = len(set(labels))
    if classes < 2:
        raise ValueError("all labels are the same")
    own = replace(
        encoder, model=copy.deepcopy(encoder.model).eval(), name=f"{encoder.name} (fine-tuned)"
    )
    draw = torch.Generator().manual_seed(seed)
    head = nn.Linear(encoder.d_model, classes)
    with torch.no_grad():
        head.weight.copy_(0.02 * torch.randn(head.weight.shape, generator=draw))
        head.bias.zero_()
    head.to(encoder.device)
    adam = torch.optim.AdamW([*own.base.parameters(), *head.parameters()], lr=lr)
    steps = epochs * math.ceil(len(train) / batch_size)
    slope = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: 1 - step / steps)
    gold, losses = torch.tensor(labels, device=encoder.device), []
    for _ in range(epochs):
        for chosen in torch.randperm(len(train), generator=draw).split(batch_size):
            batch = make_batch(own, [train[i] for i in chosen.tolist()])
            loss = nn.functional.cross_entropy(head(own.encode(batch)[:, 0]), gold[chosen])
            adam.zero_grad()
            loss.backward()
            adam.step()
            slope.step()
            losses.append(loss.item())
    with evaluating(own):
        said = head(own.encode(make_batch(own, held_out))[:, 0]).argmax(1).cpu().numpy()
    return Tuned(own, tuple(losses), float((said == np.array(held_labels)).mean()))


def probe_first_piece(
    encoder: Encoder,
    train: Sequence[Sentence],
    test: Sequence[Sentence],
    labels: tuple[Sequence[str], Sequence[str]],
    *,
    seed: int = 0,
) -> list[ProbeResult]:
    """A linear probe on [CLS] of every layer, with a penalty fixed beforehand.

    Some hundred sentences are too few to spare any for choosing one.

    Raises:
        As :func:`bertology_utils.probes.probe_layers`.
    """
    texts = texts_of([*train, *test])
    vectors = collect(encoder, texts, reduce="text_first").arrays["hidden_states"]
    split = Split(range(len(train)), [], range(len(train), len(texts)), seed)
    return probe_layers(
        vectors, [*labels[0], *labels[1]], split, seed=seed, model=encoder.name, l2=PENALTY
    )
