"""A stage of supervised parsing between pre-training and the task.

After Glavaš and Vulić 2021 (doi:10.18653/v1/2021.eacl-main.270): the model first learns to point
every word at its head, with a biaffine scorer (Dozat and Manning 2017, arXiv 1611.01734), and is
then fine-tuned on a task; the same task is also learned without that stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..encoder import Encoder, evaluating
from ..resampling import Estimate, student_reach
from ..stimuli import Sentence
from ..words import WordList, align_all
from .tuning import FrozenStates, fine_tune, frozen_states, train_top, tuned_copy

WIDTH = 64


class HeadScorer(nn.Module):
    """Biaffine scores of every piece as the head of every other; [CLS] stands for the root."""

    def __init__(self, d_model: int, width: int = WIDTH):
        super().__init__()
        self.dependent = nn.Linear(d_model, width)
        self.head = nn.Linear(d_model, width)
        self.middle = nn.Parameter(torch.empty(width + 1, width))
        nn.init.normal_(self.middle, std=width**-0.5)

    def forward(self, hidden: Tensor) -> Tensor:
        """[B, T, D] -> [B, T, T] scores of column as head of row."""
        dependent = torch.relu(self.dependent(hidden))
        ones = dependent.new_ones(*dependent.shape[:-1], 1)
        head = torch.relu(self.head(hidden))
        return torch.cat([dependent, ones], -1) @ self.middle @ head.transpose(-1, -2)


@dataclass(frozen=True, eq=False)
class ParsedEncoder:
    """A copy of an encoder after the parsing stage.

    Attributes:
        encoder: the copy; only layers above the frozen one differ from the original.
        uas: share of held-out words pointed at their head, punctuation left out.
        n_words: held-out words.
    """

    encoder: Encoder
    uas: float
    n_words: int


def parsing_stage(
    encoder: Encoder,
    train: Sequence[Sentence],
    held_out: Sequence[Sentence],
    *,
    layer: int | None = None,
    epochs: int = 2,
    batch_size: int = 32,
    seed: int = 0,
) -> ParsedEncoder:
    """Train the upper layers of a copy to select heads.

    A word of several pieces is represented by its first.

    Args:
        encoder: left as it is.
        train, held_out: sentences with trees.
        layer: highest frozen hidden state; by default two layers are trained.
        epochs, batch_size, seed: as usual.

    Raises:
        ValueError: no sentences in one of the parts.
    """
    if not train or not held_out:
        raise ValueError("the parsing stage takes sentences to learn from and to score")
    layer = max(0, encoder.n_layers - 2) if layer is None else layer
    made = tuned_copy(encoder, layer)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        scorer = HeadScorer(encoder.d_model).to(encoder.device)
    states, heads = _with_heads(encoder, train, layer)

    def loss(batch: Tensor) -> Tensor:
        part = states.rows(batch)
        scores = _scores(made, scorer, part)
        gold = heads[batch.to(heads.device), : scores.shape[1]]
        return nn.functional.cross_entropy(scores.flatten(0, 1), gold.flatten(), ignore_index=-1)

    train_top(made, scorer, len(states), loss, epochs=epochs, batch_size=batch_size, seed=seed)
    states, heads = _with_heads(encoder, held_out, layer, punctuation=False)
    with evaluating(made):
        said = _scores(made, scorer, states).argmax(-1)
    counted = heads >= 0
    right = int((said == heads)[counted].sum())
    return ParsedEncoder(made, right / int(counted.sum()), int(counted.sum()))


def _scores(encoder: Encoder, scorer: HeadScorer, states: FrozenStates) -> Tensor:
    """[B, T, T]; padding is nobody's head."""
    hidden = encoder.encode_from(states.hidden, states.mask, states.layer)
    return scorer(hidden).masked_fill(states.mask[:, None] == 0, -1e9)


def _with_heads(
    encoder: Encoder, sentences: Sequence[Sentence], layer: int, *, punctuation: bool = True
) -> tuple[FrozenStates, Tensor]:
    """States, and [N, T] piece of the head of each word's first piece; 0 = [CLS]; -1 elsewhere."""
    texts = [WordList(s.words, s.text) for s in sentences]
    states = frozen_states(encoder, texts, layer)
    gold = np.full(states.mask.shape, -1)
    rows = align_all(encoder, texts)
    for number, (row, sentence) in enumerate(zip(rows, sentences, strict=True)):
        for word, (first, _) in enumerate(row.spans):
            if punctuation or sentence.upos[word] != "PUNCT":
                head = sentence.head_of(word)
                gold[number, first] = 0 if head is None else row.spans[head][0]
    return states, torch.from_numpy(gold).to(encoder.device)


@dataclass(frozen=True, eq=False)
class StageComparison:
    """The same task with and without the parsing stage, seed by seed.

    Attributes:
        with_stage, without: [seeds] accuracies on the same test texts.
        n_test: test texts.
        uas: of the parser after its stage.
        model: name of the encoder.
        seeds: of the fine-tunings.
    """

    with_stage: np.ndarray
    without: np.ndarray
    n_test: int
    uas: float
    model: str
    seeds: tuple[int, ...]

    @property
    def gain(self) -> Estimate:
        """Mean accuracy with the stage minus without; Student's t interval over seeds."""
        gaps = self.with_stage - self.without
        value, n = float(gaps.mean()), len(gaps)
        interval = None
        if n > 1:
            half = student_reach(gaps)
            interval = (max(-1.0, value - half), min(1.0, value + half))
        return Estimate(
            value=value, unit="share difference", n=n, model=self.model, seed=self.seeds[0],
            interval=interval,
        )  # fmt: skip


def compare_stage(
    encoder: Encoder,
    parsed: ParsedEncoder,
    train: tuple[FrozenStates, Sequence[int]],
    test: tuple[FrozenStates, Sequence[int]],
    *,
    seeds: Sequence[int] = (0, 1, 2),
    epochs: int = 3,
) -> StageComparison:
    """Fine-tune with and without the parsing stage, on the same data and seeds.

    Args:
        encoder: without; parsed: with the stage. Both share the frozen layers, hence the states.
        train, test: (states, labels).
        seeds, epochs: of the fine-tunings.

    Raises:
        ValueError: no seeds.
    """
    if not seeds:
        raise ValueError("a comparison takes at least one seed")
    gold = torch.as_tensor(test[1])
    shares = [
        [
            float(
                (fine_tune(start, *train, epochs=epochs, batch_size=32, seed=seed)
                 .predict(test[0]).cpu() == gold).float().mean()
            )
            for seed in seeds
        ]
        for start in (parsed.encoder, encoder)
    ]  # fmt: skip
    return StageComparison(
        np.array(shares[0]), np.array(shares[1]), len(gold), parsed.uas, encoder.name, tuple(seeds)
    )
