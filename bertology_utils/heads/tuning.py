"""Fine-tuned copies of an encoder whose attention can be compared with the original's.

All weights are trained (of the token table, the rows that occur) with a new linear layer on top
(Devlin et al. 2019); dropout is off, since runs are short and attention before and after should
differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from ..encoder import Encoder, evaluating, first_states
from ..finetuning import (
    Method,
    Recipe,
    embed,
    first_state,
    new_head,
    occurring_rows,
    prepare,
    train,
)
from ..stimuli import Sentence
from ..words import Batch, Text, make_batch
from .pairs import words_of

#: label of pieces that are not asked about
IGNORED = -100


@dataclass(frozen=True, eq=False)
class TunedEncoder:
    """A fine-tuned copy.

    Attributes:
        encoder: the copy; every method that takes an encoder takes it.
        head: the linear layer, D -> classes.
        losses: training loss of every step, in nats.
        seed: of the new layer and of the order of the texts.
    """

    encoder: Encoder
    head: nn.Linear = field(repr=False)
    losses: tuple[float, ...] = field(repr=False)
    seed: int

    def predict(self, encoder: Encoder, batch: Batch) -> Tensor:
        """Class probabilities [B, C] from the first piece, as ``attention.Predict`` wants them."""
        return self.head(first_states(encoder, batch)).softmax(-1)

    def right(self, texts: Sequence[Text], labels: Sequence[int]) -> np.ndarray:
        """[N] True where the most probable class is the label."""
        with evaluating(self.encoder):
            guess = self.predict(self.encoder, make_batch(self.encoder, texts)).argmax(-1)
        return guess.cpu().numpy() == np.asarray(labels)


def tune_classifier(
    encoder: Encoder, texts: Sequence[Text], labels: Sequence[int], *, seed: int = 0, **recipe
) -> TunedEncoder:
    """Fine-tune to classify texts or pairs of texts by the first piece.

    Args:
        encoder: stays as it is.
        texts, labels: of the training set; labels count from 0.
        seed: of the new layer and the order.
        recipe: ``epochs``, ``batch_size``, ``lr``.

    Raises:
        ValueError: texts and labels do not fit, or there is one label only.
    """
    if len(texts) != len(labels) or len(set(labels)) < 2:
        raise ValueError(f"{len(texts)} texts with {len(labels)} labels, {len(set(labels))} kinds")

    def logits(own: Encoder, head: nn.Linear, chosen: list[int]) -> tuple[Tensor, Tensor]:
        batch = make_batch(own, [texts[i] for i in chosen])
        first = first_state(own, embed(own, batch), batch.attention_mask, 0)
        return head(first), torch.tensor([labels[i] for i in chosen])

    return _train(encoder, logits, texts, max(labels) + 1, seed, **recipe)


def tune_tagger(
    encoder: Encoder,
    sentences: Sequence[Sentence],
    labels: Sequence[Sequence[int]],
    *,
    seed: int = 0,
    **recipe,
) -> TunedEncoder:
    """Fine-tune to label every word, by its first piece; arguments as :func:`tune_classifier`.

    Raises:
        ValueError: a sentence without as many labels as words.
    """
    for sentence, row in zip(sentences, labels, strict=True):
        if len(sentence) != len(row):
            raise ValueError(f"{len(row)} labels for {len(sentence)} words of {sentence.text!r}")
    texts = [words_of(sentence) for sentence in sentences]

    def logits(own: Encoder, head: nn.Linear, chosen: list[int]) -> tuple[Tensor, Tensor]:
        batch = make_batch(own, [texts[i] for i in chosen])
        gold = torch.full(batch.input_ids.shape, IGNORED)
        for b, i in enumerate(chosen):
            for word, (start, _) in enumerate(batch.rows[b].spans):
                gold[b, start] = labels[i][word]
        return head(own.encode(batch)).flatten(0, 1), gold.flatten()

    classes = 1 + max(max(row) for row in labels)
    return _train(encoder, logits, texts, classes, seed, **recipe)


def scope_labels(sentences: Sequence[Sentence]) -> list[list[int]]:
    """1 for words in the scope of a negation, else 0."""
    found = []
    for sentence in sentences:
        negations = sentence.gold.negations if sentence.gold else ()
        inside = {word for negation in negations for word in negation.scope}
        found.append([int(word in inside) for word in range(len(sentence))])
    return found


def control_labels(
    sentences: Sequence[Sentence], labels: Sequence[Sequence[int]], *, seed: int = 0
) -> list[list[int]]:
    """A control task (Hewitt and Liang 2019): each word type has a label drawn once, at the rate
    of 1 in ``labels``, whatever its place in the sentence."""
    rate = np.mean([value for row in labels for value in row])
    types = sorted({word.lower() for sentence in sentences for word in sentence.words})
    drawn = np.random.default_rng(seed).uniform(size=len(types)) < rate
    label = dict(zip(types, drawn.astype(int).tolist(), strict=True))
    return [[label[word.lower()] for word in sentence.words] for sentence in sentences]


def _train(
    encoder: Encoder,
    logits: Callable[[Encoder, nn.Linear, list[int]], tuple[Tensor, Tensor]],
    texts: Sequence[Text],
    classes: int,
    seed: int,
    *,
    epochs: int = 3,
    batch_size: int = 16,
    lr: float = 3e-4,
) -> TunedEncoder:
    prepared = prepare(encoder, Method("all"))
    own, head = prepared.encoder, new_head(encoder, classes, seed)

    def loss(chosen: list[int]) -> Tensor:
        scores, gold = logits(own, head, chosen)
        return nn.functional.cross_entropy(scores, gold.to(scores.device), ignore_index=IGNORED)

    with occurring_rows(own, make_batch(own, texts).input_ids) as rows:
        groups = [{"params": [*prepared.parameters, *head.parameters()]}, rows]
        draw = torch.Generator().manual_seed(seed)
        losses = train(groups, len(texts), loss, Recipe(epochs, batch_size, lr), draw=draw)
    return TunedEncoder(own, head, losses, seed)
