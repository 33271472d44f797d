"""Training of runs that share their shapes, side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from . import model as net
from .config import ConfigError, LabConfig
from .documents import CLASSES, fact_corpus, sentence_pairs
from .gaps import make_gaps
from .language import MASK, PAIR_LENGTH, Text, frequencies, plain, training_sentences, vocabulary
from .looks import Looks
from .runs import LabRun

#: looks at a run on the way, besides the one before the first step: short runs and long ones
MOMENTS, LONG_MOMENTS, LONG = 1, 9, 400
CLIP = 1.0
#: weight of the replaced-token loss beside the generator's, as in ELECTRA
RTD_WEIGHT = 50.0


def corpus_of(config: LabConfig) -> tuple[Text, int]:
    """The training text of a run, and the size of its vocabulary."""
    if config.corpus == "facts":
        text, questions = fact_corpus()
        return text, len(questions.words)
    if config.corpus == "pairs":
        return sentence_pairs(config.sentence_task, config.sentences, False), len(vocabulary())
    return plain(training_sentences()[: config.sentences]), len(vocabulary())


class _Family:
    """Weights, data and optimiser of the members of one family."""

    def __init__(self, configs: Sequence[LabConfig]) -> None:
        self.configs, self.shape = list(configs), configs[0]
        self.texts, sizes = zip(*(corpus_of(config) for config in configs), strict=True)
        self.vocabulary = sizes[0]
        self.frequencies = frequencies() if any(c.subsample for c in configs) else None
        self.length = self.texts[0].ids.shape[1]
        half = self.shape.order[: len(self.shape.order) // 2]
        self.order = half if self.shape.stack_after else self.shape.order
        seeds = [config.seed for config in configs]
        size = {"vocabulary": self.vocabulary, "length": PAIR_LENGTH}
        self.weights = net.initial_weights(
            seeds, order=self.order, width=self.shape.width,
            classes=CLASSES[self.shape.sentence_task], **size,
        )  # fmt: skip
        self.generator = None
        if self.shape.objective == "rtd":
            self.generator = net.initial_weights(
                [500 + seed for seed in seeds], order="af", width=self.shape.width // 2,
                classes=2, **size,
            )  # fmt: skip
        rate = self.shape.mask_rate
        self.n_gaps = self.shape.batch * math.ceil(rate * (self.length - 2)) + 16
        self.rates = torch.tensor([config.learning_rate for config in configs])
        self.prepare()

    def prepare(self) -> None:
        """A new optimiser for the present weights."""
        own = [*self.weights.values(), *(self.generator or {}).values()]
        for value in own:
            value.requires_grad_(True)
        self.parameters = own
        self.optimiser = torch.optim.AdamW(
            own, lr=self.shape.learning_rate, weight_decay=0.0, fused=True, betas=(0.9, 0.98)
        )

    def rows(self, member: int, step: int) -> np.ndarray:
        """The rows that a member reads at a step: its text in a new order every round."""
        config, n = self.configs[member], len(self.texts[member])
        places = np.arange(step * config.batch, (step + 1) * config.batch)
        rounds = sorted(set(places // n))
        orders = {r: np.random.default_rng([config.seed, 3, r]).permutation(n) for r in rounds}
        return np.array([orders[place // n][place % n] for place in places])

    def batch(self, step: int):
        """Tensors of a step: shown and gold [M, B, T], segments, labels, places and weights."""
        shown, gold, segments, labels, places, weights = [], [], [], [], [], []
        for number, (config, text) in enumerate(zip(self.configs, self.texts, strict=True)):
            rows = self.rows(number, step)
            seen, chosen = make_gaps(
                text, rows, config, step, vocabulary=self.vocabulary, weights=self.frequencies
            )
            flat = np.flatnonzero(chosen)[: self.n_gaps]
            place, weight = np.zeros(self.n_gaps, int), np.zeros(self.n_gaps, np.float32)
            place[: len(flat)], weight[: len(flat)] = flat, 1 / len(flat)
            for target, value in zip(
                (shown, gold, segments, labels, places, weights),
                (seen, text.ids[rows], text.segments[rows], text.labels[rows], place, weight),
                strict=True,
            ):
                target.append(value)
        return [torch.from_numpy(np.stack(part)) for part in
                (shown, gold, segments, labels, places, weights)]  # fmt: skip

    def step(self, step: int) -> Tensor:
        """One update of every member; the losses [M] of its prediction task, in nats."""
        shown, gold, segments, labels, places, weights = self.batch(step)
        asked = gold.flatten(1).gather(1, places)
        if self.generator is not None:
            losses, total = self._replaced(shown, gold, asked, places, weights, step)
        else:
            outputs = [] if self.shape.disagreement else None
            paired = segments if self.shape.corpus == "pairs" else None
            paired_task = self.shape.sentence_task != "none"
            at = torch.cat([places, net.first_pieces(shown)], 1) if paired_task else places
            x = net.forward(self.weights, shown, order=self.order, heads=self.shape.heads,
                            segments=paired, outputs=outputs, at=at)  # fmt: skip
            n_gaps = places.shape[1]
            logits = net.word_logits(self.weights, x[:, :n_gaps])
            losses = _cross_entropy(logits, asked, weights)
            total = losses
            if paired_task:
                scores = net.class_logits(self.weights, x[:, n_gaps:])
                judged = F.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none")
                total = total + judged.view(labels.shape).mean(1)
            if outputs is not None:
                penalty = _agreement_of_heads(outputs, len(self.configs))
                strength = torch.tensor([c.disagreement for c in self.configs])
                total = total + strength * penalty
        self._update(total.sum(), step)
        return losses.detach()

    def _replaced(self, shown, gold, asked, places, weights, step: int):
        """ELECTRA's two losses; the generator's words are drawn, not its best guesses."""
        x = net.forward(self.generator, shown, order="af", heads=1, at=places)
        logits = net.word_logits(self.generator, x)
        filled = _cross_entropy(logits, asked, weights)
        draw = torch.from_numpy(np.stack([
            np.random.default_rng([config.seed, 11, step]).random(logits.shape[1:], np.float32)
            for config in self.configs
        ]))  # fmt: skip
        guess = (logits.detach() - (-draw.clamp(1e-9, 1 - 1e-7).log()).log()).argmax(-1)
        fake = gold.flatten(1).clone()
        used = weights > 0
        for row, place, word, keep in zip(fake, places, guess, used, strict=True):
            row[place[keep]] = word[keep]
        target = (fake != gold.flatten(1)).float()
        x = net.forward(self.weights, fake.view(gold.shape), order=self.order,
                        heads=self.shape.heads)  # fmt: skip
        free = (gold.flatten(1) > MASK).float()
        found = F.binary_cross_entropy_with_logits(
            net.replaced_logits(self.weights, x), target, reduction="none"
        )
        losses = (found * free).sum(1) / free.sum(1)
        return losses, filled + RTD_WEIGHT * losses

    def _update(self, loss: Tensor, step: int) -> None:
        self.optimiser.zero_grad()
        loss.backward()
        # Members are clipped apart: one member's norm must not touch another's step.
        grads = [p.grad for p in self.parameters if p.grad is not None]
        norms = torch.stack([grad.flatten(1).pow(2).sum(1) for grad in grads]).sum(0).sqrt()
        factors = (CLIP / (norms + 1e-6)).clamp(max=1.0)
        if bool((factors < 1).any()):
            for grad in grads:
                grad.mul_(factors.view(-1, *[1] * (grad.ndim - 1)))
        warm = max(1, self.shape.steps // 10)
        left = (self.shape.steps - step) / (self.shape.steps - warm + 1)
        for group in self.optimiser.param_groups:
            group["lr"] = self.shape.learning_rate * min((step + 1) / warm, left)
        self.optimiser.step()

    def stack(self) -> None:
        """Put a copy of the layers on top."""
        self.weights = net.stacked(
            {name: value.detach() for name, value in self.weights.items()}, self.order
        )
        self.order = self.shape.order
        self.prepare()

    def snapshot(self) -> net.Weights:
        return {name: value.detach().clone() for name, value in self.weights.items()}


def _cross_entropy(logits: Tensor, asked: Tensor, shares: Tensor) -> Tensor:
    losses = F.cross_entropy(logits.flatten(0, 1), asked.flatten(), reduction="none")
    return (losses.view(asked.shape) * shares).sum(1)


def _agreement_of_heads(outputs: Sequence[Tensor], members: int) -> Tensor:
    """[M] mean cosine between the outputs of two heads of a layer (Li et al. 2018)."""
    total = 0.0
    for mixed in outputs:
        unit = F.normalize(mixed, dim=-1)
        heads = unit.shape[1]
        cosines = torch.einsum("bhtd,bgtd->bhg", unit, unit).sum((1, 2)) / unit.shape[2]
        own = (cosines - heads) / max(1, heads * (heads - 1))
        total = total + own.view(members, -1).mean(1)
    return total / len(outputs)


def train(configs: Sequence[LabConfig]) -> list[LabRun]:
    """Train runs of one family side by side, each as if it were alone.

    Raises:
        ConfigError: no runs, or runs whose shapes differ (see :attr:`LabConfig.family`).
    """
    if not configs:
        raise ConfigError("no runs to train")
    if len({(config.family, config.learning_rate) for config in configs}) > 1:
        raise ConfigError("runs of one call must be of one family and have one learning rate")
    began = time.perf_counter()
    family, shape = _Family(configs), configs[0]
    looks = Looks(configs)
    parts = LONG_MOMENTS if shape.steps >= LONG else MOMENTS
    moments = sorted({round(shape.steps * k / parts) for k in range(parts + 1)})
    early_step = max(1, shape.steps // 10)
    curves = [looks.look(family.weights, family.order)]
    losses, early = [], family.snapshot()
    for step in range(shape.steps):
        if step and step == shape.stack_after:
            family.stack()
        losses.append(family.step(step))
        if step + 1 == early_step:
            early = family.snapshot()
        if step + 1 in moments:
            curves.append(looks.look(family.weights, family.order))
    final = family.snapshot()
    seconds = (time.perf_counter() - began) / len(configs)
    loss = torch.stack(losses, 1).tolist()
    return [
        LabRun(
            config, tuple(moments), tuple(loss[m]),
            {name: tuple(float(look[name][m]) for look in curves) for name in curves[0]},
            seconds, net.member(final, m), net.member(early, m),
        )
        for m, config in enumerate(configs)
    ]  # fmt: skip
