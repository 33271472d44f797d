"""Fine-tuning a copy on labels, on another model's answers, or on pointing at a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from ..cloze import wilson_interval
from ..encoder import Encoder, evaluating, pieces_at_once
from ..finetuning import Method, Recipe, embed, first_state, new_head, prepare, train
from ..heads import TunedEncoder
from ..resampling import Estimate, percentile_interval, resampled_means
from ..words import Batch, Text, in_order, make_batch, token_batches
from .reading import Question


def learn(
    encoder: Encoder,
    texts: Sequence[Text],
    targets: Sequence[int] | np.ndarray,
    *,
    epochs: int = 3,
    batch_size: int = 16,
    lr: float = 3e-4,
    frozen: int = 0,
    seed: int = 0,
) -> TunedEncoder:
    """Fine-tune the layers of a copy, with a new linear layer on the first piece.

    The embeddings stay as they are: most of their rows never occur in a small training set.

    Args:
        encoder: left as it is.
        texts: of the training set.
        targets: [N] classes counted from 0, or [N, C] probabilities to imitate.
        epochs, batch_size, lr: see ``finetuning.Recipe``. Dropout is off.
        frozen: number of lowest layers that stay as they are, to save time.
        seed: of the new layer and the order of the texts.

    Raises:
        ValueError: targets do not fit the texts, or ask for one class only; no layer to train.
    """
    wanted = torch.as_tensor(np.asarray(targets))
    if len(wanted) != len(texts) or wanted.ndim not in (1, 2):
        raise ValueError(f"{len(texts)} texts, but targets of shape {tuple(wanted.shape)}")
    classes = wanted.shape[1] if wanted.ndim == 2 else int(wanted.max()) + 1
    if classes < 2 or (wanted.ndim == 1 and len(wanted.unique()) < 2):
        raise ValueError(f"all {len(texts)} targets are of one class")
    wanted = wanted.float() if wanted.ndim == 2 else wanted.long()
    prepared = prepare(encoder, Method("top", encoder.n_layers - frozen))
    own, head = prepared.encoder, new_head(encoder, classes, seed)

    def loss(chosen: list[int]) -> Tensor:
        batch = make_batch(own, [texts[i] for i in chosen])
        said = head(first_state(own, embed(own, batch), batch.attention_mask, 0))
        return nn.functional.cross_entropy(said, wanted[chosen].to(said.device))

    losses = train(
        [*prepared.parameters, *head.parameters()], len(texts), loss,
        Recipe(epochs=epochs, batch_size=batch_size, lr=lr, clip=1.0),
        draw=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return TunedEncoder(own, head, losses, seed)


def probabilities(
    tuned: TunedEncoder, texts: Sequence[Text], *, max_tokens: int = 4096
) -> np.ndarray:
    """[N, C] what the classifier says, in the order of the texts.

    Raises:
        ValueError: no texts.
    """
    if not texts:
        raise ValueError("no texts to classify")
    at_once = pieces_at_once(tuned.encoder, max_tokens)
    with evaluating(tuned.encoder):
        rows = in_order(
            (batch, list(tuned.predict(tuned.encoder, batch).cpu().numpy()))
            for batch in token_batches(tuned.encoder, list(texts), max_tokens=at_once)
        )
    return np.array(rows)


def right(tuned: TunedEncoder, texts: Sequence[Text], labels: Sequence[int]) -> np.ndarray:
    """[N] True where the most probable class is the label.

    Raises:
        ValueError: no texts, or labels that do not fit them.
    """
    if len(texts) != len(labels):
        raise ValueError(f"{len(labels)} labels for {len(texts)} texts")
    return probabilities(tuned, texts).argmax(1) == np.asarray(labels)


def learned(hits: Sequence[float] | np.ndarray, chance: float = 0.5) -> bool:
    """Whether a share of right answers lies above chance, its 95 % interval included.

    What a model loses without a part, or to an attack, says nothing about one that has not learned.
    """
    values = np.asarray(hits, float)
    return wilson_interval(float(values.sum()), len(values))[0] > chance


def share(
    hits: Sequence[float] | np.ndarray,
    model: str,
    *,
    groups: Sequence[int] | np.ndarray | None = None,
    seed: int = 0,
    unit: str = "share",
) -> Estimate:
    """The mean of one number an item, with a bootstrap interval over items or groups of them.

    Args:
        hits: [N] 0 or 1, or differences of such.
        model: whose they are.
        groups: [N] numbers of groups that rise and fall together.
        seed: of the bootstrap.
        unit: of the mean.
    """
    values = np.asarray(hits, float)
    codes = np.arange(len(values)) if groups is None else np.unique(groups, return_inverse=True)[1]
    sums, counts = np.bincount(codes, weights=values), np.bincount(codes)
    mean = float(values.mean())
    return Estimate(
        value=mean, unit=unit, n=len(values), model=model, seed=seed,
        interval=percentile_interval(resampled_means(sums, counts, seed=seed), mean),
    )  # fmt: skip


def ratio(part: np.ndarray, whole: np.ndarray, model: str, *, seed: int = 0) -> Estimate:
    """Mean of one number an item over the mean of another of the same items, paired bootstrap.

    Raises:
        ValueError: different numbers of items, or a mean of 0 to divide by.
    """
    above, below = np.asarray(part, float), np.asarray(whole, float)
    if len(above) != len(below) or below.sum() == 0:
        raise ValueError(f"{len(above)} over {len(below)} items that sum to {below.sum():g}")
    value = float(above.sum() / below.sum())
    return Estimate(
        value=value, unit="ratio", n=len(above), model=model, seed=seed,
        interval=percentile_interval(resampled_means(above, below, seed=seed), value),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Pointer:
    """A fine-tuned copy that points at the word of a passage that answers a question.

    Attributes:
        encoder: the copy.
        head: D -> 1, the score of a piece.
    """

    encoder: Encoder
    head: nn.Linear = field(repr=False)

    def scores(self, last: Tensor, batch: Batch, questions: Sequence[Question]) -> Tensor:
        """[B, W] score of each word of the passage; minus infinity beyond its last word.

        Args:
            last: [B, T, D] last hidden states of the batch.
            batch: of the questions' pairs.
            questions: the B questions.
        """
        every = self.head(last)[..., 0]
        out = every.new_full((len(questions), max(len(q.words) for q in questions)), -torch.inf)
        for row, question in enumerate(questions):
            starts = [start for start, _ in batch.rows[row].spans[: len(question.words)]]
            out[row, : len(starts)] = every[row, starts]
        return out

    def right(self, questions: Sequence[Question]) -> np.ndarray:
        """[N] True where the word pointed at is the answer."""
        found = []
        with evaluating(self.encoder):
            for start in range(0, len(questions), 64):
                part = questions[start : start + 64]
                batch = make_batch(self.encoder, [q.pair for q in part])
                said = self.scores(self.encoder.encode(batch), batch, part)
                found += [q.words[i] == q.answer for q, i in zip(part, said.argmax(1), strict=True)]
        return np.array(found)


def learn_to_point(
    encoder: Encoder,
    questions: Sequence[Question],
    *,
    epochs: int = 3,
    batch_size: int = 16,
    lr: float = 3e-4,
    frozen: int = 0,
    seed: int = 0,
) -> Pointer:
    """Fine-tune the layers of a copy to point at answers; arguments as :func:`learn`.

    Raises:
        ValueError: no questions.
    """
    prepared = prepare(encoder, Method("top", encoder.n_layers - frozen))
    own = prepared.encoder
    pointer = Pointer(own, new_head(encoder, 1, seed))

    def loss(chosen: list[int]) -> Tensor:
        part = [questions[i] for i in chosen]
        batch = make_batch(own, [q.pair for q in part])
        last = own.encode_from(embed(own, batch), batch.attention_mask, 0)
        said = pointer.scores(last, batch, part)
        gold = torch.tensor([q.words.index(q.answer) for q in part], device=said.device)
        return nn.functional.cross_entropy(said, gold)

    train(
        [*prepared.parameters, *pointer.head.parameters()], len(questions), loss,
        Recipe(epochs=epochs, batch_size=batch_size, lr=lr, clip=1.0),
        draw=torch.Generator().manual_seed(seed),
    )  # fmt: skip
    return pointer
