"""What a model is tried on while parts are taken away: a loss and a verdict for every text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ..activations import capture
from ..encoder import Encoder, evaluating
from ..finetuning.tuned import states
from ..heads import TunedEncoder
from ..words import Text, make_batch

#: last hidden states [b, T, D], numbers of the texts [b] -> (loss [b] in nats, share right [b])
Score = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class Trial:
    """N texts, encoded once up to every layer, and what is asked of the last one.

    Attributes:
        encoder: the model tried.
        name: of the task.
        hidden: L + 1 tensors [N, T, D] of the whole model.
        mask: [N, T] 1 at pieces, 0 at padding.
        score: see :data:`Score`.
        reads: pieces that ``score`` looks at, ``"first"`` or ``"all"``.
    """

    encoder: Encoder
    name: str
    hidden: tuple[Tensor, ...] = field(repr=False)
    mask: Tensor = field(repr=False)
    score: Score = field(repr=False)
    reads: str = "all"

    def __len__(self) -> int:
        return len(self.mask)

    def select(self, rows: Sequence[int] | np.ndarray) -> Trial:
        """The trial on some of its texts.

        Raises:
            ValueError: none of them.
        """
        if not len(rows):
            raise ValueError(f"no texts left of the trial {self.name!r}")
        where = torch.as_tensor(np.asarray(rows), dtype=torch.long)
        score = self.score
        width = int(self.mask[where].sum(1).max())
        return Trial(
            self.encoder,
            self.name,
            tuple(h[where, :width] for h in self.hidden),
            self.mask[where, :width],
            lambda last, index: score(last, where[index]),
            self.reads,
        )

    def run(self, layer: int = 0, copies: int = 1) -> tuple[Tensor, Tensor]:
        """(loss, right), each [copies, N], running the layers from ``layer`` on.

        Interventions that are active now act on these layers; below, the states are those of the
        whole model.
        """
        index = torch.arange(len(self)).repeat(copies)
        hidden = self.hidden[layer].repeat(copies, 1, 1)
        last = self.encoder.encode_from(hidden, self.mask.repeat(copies, 1), layer)
        loss, right = self.score(last, index)
        return loss.reshape(copies, -1), right.reshape(copies, -1)

    def whole(self) -> tuple[np.ndarray, np.ndarray]:
        """(loss [N], right [N]) of the model as it is."""
        with evaluating(self.encoder):
            loss, right = self.score(self.hidden[-1], torch.arange(len(self)))
        return loss.double().cpu().numpy(), right.double().cpu().numpy()


def classified(
    tuned: TunedEncoder, texts: Sequence[Text], labels: Sequence[int], name: str = "classification"
) -> Trial:
    """A fine-tuned classifier on labelled texts.

    Raises:
        ValueError: no texts, or labels that do not fit.
    """
    if not len(texts) or len(texts) != len(labels):
        raise ValueError(f"{len(labels)} labels for {len(texts)} texts")
    gold = torch.as_tensor(list(labels), device=tuned.encoder.device)

    def score(last: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        logits, wanted = tuned.head(last[:, 0]), gold[index.to(gold.device)]
        loss = torch.nn.functional.cross_entropy(logits, wanted, reduction="none")
        return loss, (logits.argmax(-1) == wanted).float()

    encoder = tuned.encoder
    hidden = states(encoder, list(texts), range(encoder.n_layers + 1))
    mask = make_batch(encoder, list(texts)).attention_mask
    return Trial(encoder, name, tuple(hidden), mask, score, "first")


def masked_words(
    encoder: Encoder, texts: Sequence[Text], *, rate: float = 0.15, seed: int = 0
) -> Trial:
    """The model's own task: pieces hidden behind the mask token, at least one a text.

    Raises:
        ValueError: no texts, or a rate outside (0, 1].
        MissingHeadError: (when run) no trained MLM head.
    """
    if not len(texts) or not 0 < rate <= 1:
        raise ValueError(f"{len(texts)} texts, of which a share {rate} should be hidden")
    batch = make_batch(encoder, list(texts))
    ids, hidden = batch.input_ids.clone(), torch.zeros_like(batch.input_ids, dtype=torch.bool)
    draw = np.random.default_rng(seed)
    for b, row in enumerate(batch.rows):
        own = np.flatnonzero(~np.array(row.is_special))
        chosen = draw.choice(own, max(1, round(rate * len(own))), replace=False)
        hidden[b, torch.from_numpy(chosen)] = True
    ids[hidden] = encoder.tokenizer.mask_token_id
    gold = batch.input_ids

    def score(last: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
        where, wanted = hidden[index, : last.shape[1]], gold[index, : last.shape[1]]
        owner = where.nonzero()[:, 0].to(last.device)
        logits = encoder.mlm_logits(last[where.to(last.device)])
        target = wanted[where].to(last.device)
        each = torch.nn.functional.cross_entropy(logits, target, reduction="none")
        hit = (logits.argmax(-1) == target).float()
        counts = torch.bincount(owner, minlength=len(index))
        zero = each.new_zeros(len(index))
        return zero.index_add(0, owner, each) / counts, zero.index_add(0, owner, hit) / counts

    batch = batch.with_ids(ids)
    with evaluating(encoder), capture(encoder, ["hidden_states"]) as cache:
        encoder.encode(batch)
    states_of_all = tuple(state.detach() for state in cache.layers["hidden_states"])
    return Trial(encoder, "masked words", states_of_all, batch.attention_mask, score)
