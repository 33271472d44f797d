"""Teaching a small model with a large one: scores, hidden states, attention, value relations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ..encoder import evaluating
from .data import AT_ONCE, IGNORED, Labelled
from .errors import CompressionError
from .model import Compact, Trace, answer
from .training import Loss, Recipe, train, trainable

#: softens the teacher's probabilities (Hinton et al. 2015)
TEMPERATURE = 2.0


@dataclass(frozen=True, eq=False)
class Lessons:
    """All that a teacher says about N texts, computed once.

    Attributes:
        data: the texts; their labels only say which pieces are asked about, if pieces are.
        logits: [N, C] or [N, T, C].
        hidden: L + 1 tensors [N, T, D].
        patterns: L tensors [N, H, T, T].
        last_values: [N, H, T, K] values of the last layer.
    """

    data: Labelled
    logits: Tensor = field(repr=False)
    hidden: tuple[Tensor, ...] = field(repr=False)
    patterns: tuple[Tensor, ...] = field(repr=False)
    last_values: Tensor = field(repr=False)

    @property
    def n_layers(self) -> int:
        return len(self.patterns)


def lessons(teacher: Compact, data: Labelled) -> Lessons:
    """Ask the teacher about every text of ``data``."""
    n, width = data.ids.shape
    kept: dict[str, list[Tensor]] = {}

    def keep(name: str, rows: Tensor, value: Tensor, dims: Sequence[int]) -> None:
        if name not in kept:
            shape = [n, *value.shape[1:]]
            for dim in dims:
                shape[dim] = width
            kept[name] = [torch.zeros(shape)]
        target = kept[name][0]
        for dim in dims:
            target = target.narrow(dim, 0, value.shape[dim])
        target[rows] = value

    with evaluating(teacher):
        for rows in data.mask.sum(1).argsort(stable=True).split(AT_ONCE):
            part = data.rows(rows)
            seen = teacher.trace(part.ids, part.mask)
            keep("logits", rows, seen.logits, [1] if seen.logits.ndim == 3 else [])
            keep("values", rows, seen.values[-1], [2])
            for layer, hidden in enumerate(seen.hidden):
                keep(f"hidden {layer}", rows, hidden, [1])
            for layer, pattern in enumerate(seen.patterns):
                keep(f"pattern {layer}", rows, pattern, [2, 3])
    depth = len(seen.patterns)
    return Lessons(
        data, kept["logits"][0],
        tuple(kept[f"hidden {layer}"][0] for layer in range(depth + 1)),
        tuple(kept[f"pattern {layer}"][0] for layer in range(depth)),
        kept["values"][0],
    )  # fmt: skip


@dataclass(frozen=True)
class Copying:
    """Which parts of a teacher a student copies; the numbers are weights of the losses.

    Attributes:
        scores: Kullback-Leibler divergence of softened class probabilities (Hinton et al. 2015;
            DistilBERT, Sanh et al. 2019).
        hidden: squared distance of states (TinyBERT, Jiao et al. 2020; of normalised states of
            the first piece in Sun et al. 2019, here of all pieces, normalised).
        embeddings: the same of the embedding output.
        attention: divergence of attention patterns, layer by layer (Aguilar et al. 2020).
        last_attention: the same, last layer only (MiniLM, Wang et al. 2020).
        value_relations: divergence of the relations among values, last layer only (MiniLM).
        temperature: of ``scores``.
    """

    scores: float = 1.0
    hidden: float = 0.0
    embeddings: float = 0.0
    attention: float = 0.0
    last_attention: float = 0.0
    value_relations: float = 0.0
    temperature: float = TEMPERATURE

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise CompressionError(f"the temperature is {self.temperature}; it must be positive")
        weights = (self.scores, self.hidden, self.embeddings, self.attention,
                   self.last_attention, self.value_relations)  # fmt: skip
        if min(weights) < 0 or not any(weights):
            raise CompressionError("a student must copy something, and no weight is negative")

    @property
    def inside(self) -> bool:
        """Whether anything but scores is copied."""
        return bool(self.hidden or self.embeddings or self.attention or self.last_attention
                    or self.value_relations)  # fmt: skip


def soft_target_loss(logits: Tensor, target: Tensor, temperature: float) -> Tensor:
    """T^2 times the divergence of softened probabilities, in nats (Hinton et al. 2015).

    Args:
        logits, target: [..., C] of student and teacher.
        temperature: T, above 0.
    """
    told = (target / temperature).softmax(-1)
    said = (logits / temperature).log_softmax(-1)
    return temperature**2 * (told * (told.clamp_min(1e-12).log() - said)).sum(-1).mean()


def copied_layers(n_student: int, n_teacher: int) -> list[int]:
    """The teacher's layer whose output each student layer copies: evenly spaced, the last last."""
    return [round((place + 1) * n_teacher / n_student) for place in range(n_student)]


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of [B, T] or [B, H, T] over real pieces."""
    real = mask if values.ndim == 2 else mask[:, None].expand(values.shape)
    return (values * real).sum() / real.sum()


def _pattern_loss(said: Tensor, told: Tensor, mask: Tensor) -> Tensor:
    """Divergence of rows of attention [B, H, T, T], mean over real rows, in nats.

    Heads are averaged first where student and teacher differ in their number.
    """
    if said.shape[1] != told.shape[1]:
        said, told = said.mean(1, keepdim=True), told.mean(1, keepdim=True)
    gap = told * (told.clamp_min(1e-9).log() - said.clamp_min(1e-9).log())
    return _mean(gap.sum(-1), mask)


def _relations(values: Tensor, mask: Tensor) -> Tensor:
    """Softmax of scaled dot products among values of all heads together [B, 1, T, T]."""
    flat = values.transpose(1, 2).flatten(2)
    scores = flat @ flat.transpose(1, 2) / flat.shape[-1] ** 0.5
    return scores.masked_fill(mask[:, None, :] == 0, -1e9).softmax(-1)[:, None]


def inside_loss(
    seen: Trace, taught: Lessons, numbers: Tensor, mask: Tensor, copying: Copying,
    widen: nn.Linear | None,
) -> Tensor:  # fmt: skip
    """The part of the loss that looks inside both models, in nats or squared units.

    Args:
        seen: the student's pass over a batch.
        taught: the teacher's lessons; ``numbers`` [B] says which of its texts these are.
        mask: [B, T] of the batch.
        copying: the weights.
        widen: from the student's width to the teacher's where they differ.
    """
    width = mask.shape[1]
    total = seen.hidden[0].new_zeros(())
    pairs = copied_layers(len(seen.patterns), taught.n_layers)

    def apart(mine: Tensor, theirs: Tensor) -> Tensor:
        mine = mine if widen is None else widen(mine)
        theirs = theirs[numbers, :width]
        gap = nn.functional.normalize(mine, dim=-1) - nn.functional.normalize(theirs, dim=-1)
        return _mean(gap.pow(2).sum(-1), mask)

    def pattern(layer: int) -> Tensor:
        return taught.patterns[layer][numbers, :, :width, :width]

    if copying.hidden:
        gaps = [apart(seen.hidden[i + 1], taught.hidden[k]) for i, k in enumerate(pairs)]
        total = total + copying.hidden * torch.stack(gaps).mean()
    if copying.embeddings:
        total = total + copying.embeddings * apart(seen.hidden[0], taught.hidden[0])
    if copying.attention:
        gaps = [_pattern_loss(seen.patterns[i], pattern(k - 1), mask) for i, k in enumerate(pairs)]
        total = total + copying.attention * torch.stack(gaps).mean()
    if copying.last_attention:
        gap = _pattern_loss(seen.patterns[-1], pattern(taught.n_layers - 1), mask)
        total = total + copying.last_attention * gap
    if copying.value_relations:
        mine = _relations(seen.values[-1], mask)
        theirs = _relations(taught.last_values[numbers, :, :width], mask)
        total = total + copying.value_relations * _pattern_loss(mine, theirs, mask)
    return total


def score_loss(taught: Lessons, temperature: float = TEMPERATURE) -> Loss:
    """The loss of a model that should give a teacher's scores, for any training of this room.

    It has to be trained on the texts of the lessons, ``taught.data``.
    """

    def loss(model: nn.Module, batch: Labelled, numbers: Tensor) -> Tensor:
        return soft_target_loss(
            answer(model, batch.ids, batch.mask), taught.logits[numbers], temperature
        )

    return loss


def distil(
    student: nn.Module, taught: Lessons, recipe: Recipe, copying: Copying | None = None
) -> list[float]:
    """Teach a student in place; labels are never looked at.

    Args:
        student: a :class:`Compact`, or any module with the same inputs if only scores are copied.
        taught: see :func:`lessons`.
        recipe: how long and how fast.
        copying: what is copied; the scores alone by default.

    Returns:
        the loss of every step.

    Raises:
        CompressionError: the student has no inside to compare, or more layers than the teacher.
    """
    copying = copying or Copying()
    widen = None
    if copying.inside:
        if not isinstance(student, Compact):
            raise CompressionError(f"a {type(student).__name__} has no layers that could copy")
        if student.n_layers > taught.n_layers:
            raise CompressionError(f"{student.n_layers} layers cannot copy {taught.n_layers}")
        mine, theirs = student.head.in_features, taught.hidden[0].shape[-1]
        if mine != theirs and (copying.hidden or copying.embeddings):
            widen = nn.Linear(mine, theirs, bias=False)
            draw = torch.Generator().manual_seed(recipe.seed)
            with torch.no_grad():
                widen.weight.copy_(torch.randn(widen.weight.shape, generator=draw) / mine**0.5)

    def loss(model: nn.Module, batch: Labelled, numbers: Tensor) -> Tensor:
        seen = model.trace(batch.ids, batch.mask) if copying.inside else None
        logits = answer(model, batch.ids, batch.mask) if seen is None else seen.logits
        told = taught.logits[numbers]
        if told.ndim == 3:
            asked = batch.labels != IGNORED
            logits, told = logits[asked], told[:, : batch.mask.shape[1]][asked]
        total = copying.scores * soft_target_loss(logits, told, copying.temperature)
        if seen is not None:
            total = total + inside_loss(seen, taught, numbers, batch.mask, copying, widen)
        return total

    parameters = trainable(student) + ([] if widen is None else list(widen.parameters()))
    return train(student, taught.data, recipe, loss=loss, parameters=parameters)
