"""Universal triggers: a few words that derail a classifier on every sentence they stand before.

Wallace et al. 2019 (arXiv 1908.07125). HotFlip: the gradient of the loss at a trigger word's input
vector says, to first order, which vocabulary entry would raise the loss most; the best few are
tried for real and the worst for the model is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..encoder import Encoder, evaluating
from ..resampling import Estimate, percentile_interval, resampled_means
from ..words import make_batch
from .tuning import TunedClassifier

START = "the"


@dataclass(frozen=True)
class Trigger:
    """Words that stand before a text, and what they do.

    Attributes:
        words: the trigger.
        target: the class whose texts it was searched on.
        loss: mean loss of those texts with the trigger; start_loss: without any.
    """

    words: tuple[str, ...]
    target: int
    loss: float
    start_loss: float


def neutral_words(encoder: Encoder, texts: Sequence[str], limit: int = 3000) -> list[str]:
    """Whole words of the vocabulary that occur in none of the texts, the most frequent first.

    Vocabularies are roughly sorted by frequency. Words of the task are left out, so that a trigger
    cannot simply say "terrible".

    Raises:
        ValueError: no such word.
    """
    tokenizer = encoder.tokenizer
    used = {word for text in texts for word in tokenizer.tokenize(text)}
    ordered = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    plain = [
        word for piece, _ in ordered
        if piece not in used and (word := piece.lstrip("Ġ▁")).isascii() and word.isalpha()
        and word.islower() and len(word) > 2 and tokenizer.tokenize(f" {word}") == [piece]
    ]  # fmt: skip
    if not plain:
        raise ValueError(f"{encoder.name!r} has no whole word outside the texts")
    return plain[:limit]


class _Prepended:
    """Texts of one class behind a trigger, run from their input vectors."""

    def __init__(self, tuned: TunedClassifier, texts: Sequence[str], width: int, target: int):
        self.tuned, self.width, self.target = tuned, width, target
        encoder = tuned.encoder
        placed = [" ".join([START] * width + [text]) for text in texts]
        self.batch = make_batch(encoder, placed)
        self.start = encoder.tokenizer.convert_tokens_to_ids(encoder.tokenizer.tokenize(START))
        if len(self.start) != 1:
            raise ValueError(f"{START!r} is not one piece for {encoder.name!r}")

    def loss(self, trigger: Tensor, *, gradient: bool = False) -> tuple[float, Tensor | None]:
        """(mean loss, its gradient [k, D] at the trigger's input vectors)."""
        encoder = self.tuned.encoder
        ids = self.batch.input_ids.clone()
        ids[:, 1 : 1 + self.width] = trigger
        batch = self.batch.with_ids(ids)
        table = encoder.embeddings.token
        kept: list[Tensor] = []

        def watch(_module, _args, output: Tensor) -> Tensor:
            leaf = output.detach().requires_grad_(gradient)
            kept.append(leaf)
            return leaf

        handle = table.register_forward_hook(watch)
        try:
            with torch.set_grad_enabled(gradient):
                logits = self.tuned.head(encoder.encode(batch)[:, 0])
                gold = torch.full((len(ids),), self.target, device=logits.device)
                value = torch.nn.functional.cross_entropy(logits, gold)
                if not gradient:
                    return value.item(), None
                (slope,) = torch.autograd.grad(value, kept[0])
        finally:
            handle.remove()
        return value.item(), slope[:, 1 : 1 + self.width].sum(0)


def find_trigger(
    tuned: TunedClassifier,
    texts: Sequence[str],
    target: int,
    candidates: Sequence[str],
    *,
    width: int = 3,
    rounds: int = 1,
    tries: int = 6,
) -> Trigger:
    """Search the words that raise the loss of texts of one class most.

    Args:
        tuned: the classifier.
        texts: of class ``target``.
        target: their class.
        candidates: words that may be used, one piece each.
        width: words in the trigger; rounds: passes over them; tries: words tried for each.

    Raises:
        ValueError: no texts or candidates, or a width below 1.
    """
    if not texts or not candidates or width < 1:
        raise ValueError("a trigger takes texts, candidates and at least one word")
    encoder = tuned.encoder
    ids = torch.tensor([encoder.tokenizer.convert_tokens_to_ids(
        encoder.tokenizer.tokenize(f" {word}"))[0] for word in candidates])  # fmt: skip
    name = dict(zip(ids.tolist(), candidates, strict=True))
    vectors = encoder.embeddings.token.weight.detach()[ids.to(encoder.device)]
    with _evaluation(encoder):
        problem = _Prepended(tuned, texts, width, target)
        trigger = torch.tensor(problem.start * width)
        lowest, _ = problem.loss(trigger)
        start = best = lowest
        for _ in range(rounds):
            for place in range(width):
                _, slope = problem.loss(trigger, gradient=True)
                gain = vectors @ slope[place]
                for k in gain.topk(min(tries, len(ids))).indices.cpu().tolist():
                    tried = trigger.clone()
                    tried[place] = ids[k]
                    value, _ = problem.loss(tried)
                    if value > best:
                        best, trigger = value, tried
    words = tuple(name.get(i, START) for i in trigger.tolist())
    return Trigger(words, target, best, start)


@contextmanager
def _evaluation(encoder: Encoder) -> Iterator[None]:
    """Evaluation mode with gradients still allowed, undone after."""
    was = encoder.model.training
    encoder.model.eval()
    try:
        yield
    finally:
        encoder.model.train(was)


@dataclass(frozen=True, eq=False)
class TriggerEffect:
    """Accuracy on N texts without a trigger, with the found ones, with random words.

    Attributes:
        clean, triggered: [N] True where the classifier is right.
        random: [R, N] the same behind R random triggers of equal length.
        model: name of the encoder; seed: of random triggers and bootstrap.
    """

    clean: np.ndarray
    triggered: np.ndarray
    random: np.ndarray
    model: str
    seed: int

    @property
    def lost(self) -> Estimate:
        """Accuracy lost to the triggers, beside the accuracy lost to random words."""
        lost = self.clean.astype(float) - self.triggered
        value = float(lost.mean())
        draws = resampled_means(lost, np.ones(len(lost)), seed=self.seed)
        return Estimate(
            value=value, unit="share difference", n=len(lost), model=self.model, seed=self.seed,
            interval=percentile_interval(draws, value),
            baselines={"random_trigger": float(self.clean.mean() - self.random.mean())},
        )  # fmt: skip


def trigger_effect(
    tuned: TunedClassifier,
    texts: Sequence[str],
    labels: Sequence[int],
    triggers: dict[int, Trigger],
    candidates: Sequence[str],
    *,
    controls: int = 4,
    seed: int = 0,
) -> TriggerEffect:
    """Put each class's trigger before fresh texts of that class.

    Args:
        texts, labels: none of them used in the search.
        triggers: class -> its trigger.
        candidates: words that random triggers are drawn from.
        controls: number of random triggers.

    Raises:
        KeyError: a class without a trigger.
    """
    gold = np.asarray(labels)
    rng = np.random.default_rng(seed)
    width = len(next(iter(triggers.values())).words)
    chosen = [" ".join((*triggers[label].words, text))
              for text, label in zip(texts, labels, strict=True)]  # fmt: skip
    drawn = [[" ".join((*rng.choice(candidates, width), text)) for text in texts]
             for _ in range(controls)]  # fmt: skip
    return TriggerEffect(
        _answers(tuned, texts) == gold,
        _answers(tuned, chosen) == gold,
        np.stack([_answers(tuned, placed) == gold for placed in drawn]),
        tuned.encoder.name,
        seed,
    )


def _answers(tuned: TunedClassifier, texts: Sequence[str]) -> np.ndarray:
    with evaluating(tuned.encoder):
        parts = []
        for start in range(0, len(texts), 64):
            hidden = tuned.encoder.encode(make_batch(tuned.encoder, texts[start : start + 64]))
            parts.append(tuned.head(hidden[:, 0]).argmax(-1).cpu().numpy())
    return np.concatenate(parts)
