"""What a run is asked on the way: gaps in other sentences, agreement, what heads have found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional as F

from . import model as net
from .config import LabConfig
from .documents import fact_corpus, sentence_pairs
from .language import (
    KINDS,
    MASK,
    UNK,
    agreement_pairs,
    encode,
    held_out_sentences,
    plain,
    vocabulary,
)

N_SENTENCES, N_HEADS = 240, 100
#: share of tokens hidden when runs are compared, whatever they were trained with
RATE = 0.15
RELATIONS = ("det", "nsubj", "obj")


class Looks:
    """The same questions for every run of a family."""

    def __init__(self, configs: Sequence[LabConfig]) -> None:
        self.configs, self.shape = configs, configs[0]
        self.symbols = [MASK if config.gap == "[MASK]" else UNK for config in configs]
        if self.shape.corpus == "facts":
            questions = fact_corpus()[1]
            self.gold, self.gaps = questions.text.ids, questions.gaps
            return
        sentences = held_out_sentences()
        self.gold = plain(sentences[:N_SENTENCES]).ids
        self.gaps = np.zeros(self.gold.shape, bool)
        free = np.flatnonzero(self.gold > MASK)
        draw = np.random.default_rng(15)
        self.gaps.ravel()[draw.choice(free, round(RATE * len(free)), replace=False)] = True
        self.parsed = sentences[N_SENTENCES : N_SENTENCES + N_HEADS]
        self.trees = plain(self.parsed).ids
        self.agreement = {kind: _questions(kind) for kind in KINDS}

    def look(self, weights: net.Weights, order: str) -> dict[str, list[float]]:
        """Name of a curve -> value of every member."""
        with torch.no_grad():
            if self.shape.corpus == "facts":
                return self._facts(weights, order)
            found = {}
            if self.shape.objective == "mlm":
                found |= self._gaps(weights, order) | self._agreement(weights, order)
            else:
                found |= self._replaced(weights, order)
            if self.shape.sentence_task != "none":
                found |= self._sentences(weights, order)
            return found | self._heads(weights, order)

    def hidden(self, gold: np.ndarray, gaps: np.ndarray) -> torch.Tensor:
        """[M, B, T] with every member's own symbol in the gaps."""
        return torch.from_numpy(np.stack([np.where(gaps, symbol, gold) for symbol in self.symbols]))

    def logits(self, weights, order: str, gold: np.ndarray, gaps: np.ndarray) -> torch.Tensor:
        """[M, K, V] at the gaps, in reading order."""
        places = torch.from_numpy(np.flatnonzero(gaps)).expand(len(self.symbols), -1)
        x = net.forward(weights, self.hidden(gold, gaps), order=order, heads=self.shape.heads,
                        at=places)  # fmt: skip
        return net.word_logits(weights, x)

    def _gaps(self, weights, order) -> dict[str, list[float]]:
        logits = self.logits(weights, order, self.gold, self.gaps)
        asked = torch.from_numpy(self.gold[self.gaps]).expand(len(logits), -1)
        losses = F.cross_entropy(logits.flatten(0, 1), asked.flatten(), reduction="none")
        right = (logits.argmax(-1) == asked).float()
        return {"loss": losses.view(asked.shape).mean(1).tolist(),
                "accuracy": right.mean(1).tolist()}  # fmt: skip

    def _agreement(self, weights, order) -> dict[str, list[float]]:
        found = {}
        for kind, (ids, gaps, good, bad) in self.agreement.items():
            logits = self.logits(weights, order, ids, gaps)
            rows = torch.arange(len(good))
            won = logits[:, rows, good] > logits[:, rows, bad]
            found[f"agreement:{kind}"] = won.float().mean(1).tolist()
        return found

    def _heads(self, weights, order) -> dict[str, list[float]]:
        """Best head of each relation: share of words whose most attended word is their governor,
        or the other way round. Chosen and scored on the same sentences: the look at step 0, on
        random weights, is as lucky and is what to compare with."""
        patterns: list[torch.Tensor] = []
        ids = torch.from_numpy(self.trees).expand(len(self.configs), -1, -1)
        net.forward(weights, ids, order=order, heads=self.shape.heads, patterns=patterns)
        tops = torch.stack(patterns, 1)[..., 1:-1].clone()  # [M, L, B, H, T, T]
        inside = torch.from_numpy(self.trees[:, 1:-1] > MASK)
        tops.masked_fill_(~inside[None, None, :, None, None, :], -1.0)
        tops = tops.argmax(-1).numpy() + 1
        found = {}
        for relation in RELATIONS:
            rows, word, governor = _edges(self.parsed, relation)
            up = (tops[:, :, rows, :, word] == governor[:, None, None, None]).mean(0)
            down = (tops[:, :, rows, :, governor] == word[:, None, None, None]).mean(0)
            found[f"head:{relation}"] = np.maximum(up, down).max((1, 2)).tolist()
        return found

    def _sentences(self, weights, order) -> dict[str, list[float]]:
        text = sentence_pairs(self.shape.sentence_task, 240, True)
        members = len(self.configs)
        ids, segments = (torch.from_numpy(part).expand(members, -1, -1)
                         for part in (text.ids, text.segments))  # fmt: skip
        x = net.forward(weights, ids, order=order, heads=self.shape.heads, segments=segments,
                        at=net.first_pieces(ids))  # fmt: skip
        guess = net.class_logits(weights, x).argmax(-1)
        return {"pair": (guess == torch.from_numpy(text.labels)).float().mean(1).tolist()}

    def _replaced(self, weights, order) -> dict[str, list[float]]:
        """Balanced accuracy at words replaced by others drawn by frequency."""
        draw = np.random.default_rng(16)
        words = draw.permutation(self.gold[self.gold > MASK])
        fake = self.gold.copy()
        fake[self.gaps] = words[: self.gaps.sum()]
        changed, free = fake != self.gold, self.gold > MASK
        ids = torch.from_numpy(fake).expand(len(self.configs), -1, -1)
        x = net.forward(weights, ids, order=order, heads=self.shape.heads)
        said = (net.replaced_logits(weights, x) > 0).numpy().reshape(-1, *fake.shape)
        right = [(own[changed].mean() + (~own)[free & ~changed].mean()) / 2 for own in said]
        return {"replaced": right}

    def _facts(self, weights, order) -> dict[str, list[float]]:
        logits = self.logits(weights, order, self.gold, self.gaps)
        asked = torch.from_numpy(self.gold[self.gaps]).expand(len(logits), -1)
        losses = F.cross_entropy(logits.flatten(0, 1), asked.flatten(), reduction="none")
        pieces = (logits.argmax(-1) == asked).view(len(logits), -1, 2)
        return {"loss": losses.view(asked.shape).mean(1).tolist(),
                "facts": pieces.all(-1).float().mean(1).tolist()}  # fmt: skip


def _questions(kind: str):
    pairs = agreement_pairs(kind)
    ids = encode([pair.words for pair in pairs])
    gaps = np.zeros(ids.shape, bool)
    gaps[np.arange(len(pairs)), [pair.place + 1 for pair in pairs]] = True
    known = vocabulary()
    good, bad = (torch.tensor([known[word] for word in words]) for words in
                 ([p.good for p in pairs], [p.bad for p in pairs]))  # fmt: skip
    return ids, gaps, good, bad


def _edges(sentences, relation: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row, place of the word, place of its governor), places counting [CLS]."""
    found = [
        (row, word + 1, head)
        for row, sentence in enumerate(sentences)
        for word, (head, deprel) in enumerate(
            zip(sentence.heads, sentence.deprels, strict=True)
        )
        if deprel.split(":")[0] == relation and head
    ]
    return tuple(np.array(column) for column in zip(*found, strict=True))
