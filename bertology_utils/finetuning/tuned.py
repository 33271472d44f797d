"""A copy of an encoder with a new linear layer on it, and the texts it reads.

What lies below the lowest trained layer never changes, so its output is computed once; and since
the classifier reads the first piece only, the last layer is computed for that piece alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from ..activations import stream
from ..encoder import Encoder, LayerParts, Packing, additive_mask, evaluating
from ..words import Batch, Text, make_batch
from .tasks import Part


@dataclass(frozen=True, eq=False)
class Examples:
    """N labelled texts, encoded up to a layer.

    Attributes:
        ids: the texts as pieces.
        labels: [N].
        hidden: [N, T, D] states at ``layer``; None if they change while training.
        layer: 0 is the embedding output.
        trim: cut every batch to its longest text.
    """

    ids: Batch
    labels: Tensor
    hidden: Tensor | None
    layer: int
    trim: bool = True

    def __len__(self) -> int:
        return len(self.labels)

    def width(self, index: Tensor) -> int:
        """Pieces that a batch of these texts is cut to."""
        mask = self.ids.attention_mask
        return int(mask[index].sum(1).max()) if self.trim else mask.shape[1]


def examples(encoder: Encoder, part: Part, layer: int | None) -> Examples:
    """Encode a part up to ``layer``; None where even the embeddings will be trained.

    Raises:
        LayerIndexError: no such layer.
    """
    batch = make_batch(encoder, part.texts)
    labels = torch.tensor(part.labels, device=encoder.device)
    if layer is None:
        return Examples(batch, labels, None, 0)
    encoder.check_layer(layer, last=encoder.n_layers)
    return Examples(batch, labels, states(encoder, part.texts, (layer,))[0], layer)


def states(encoder: Encoder, texts: Sequence[Text], layers: Sequence[int]) -> Tensor:
    """[len(layers), N, T, D] hidden states of padded texts, with zeros at padding."""
    rows: list[Tensor | None] = [None] * len(texts)
    for cache in stream(encoder, texts, ["hidden_states"], max_tokens=2048):
        lengths = cache.batch.attention_mask.sum(1).tolist()
        kept = cache["hidden_states"][list(layers)]
        for place, number in enumerate(cache.batch.index):
            rows[number] = kept[:, place, : lengths[place]].transpose(0, 1).clone()
    padded = nn.utils.rnn.pad_sequence([r for r in rows if r is not None], batch_first=True)
    return padded.permute(2, 0, 1, 3).contiguous()


def embed(encoder: Encoder, batch: Batch) -> Tensor:
    """[B, T, D] the output of the embeddings, with its graph."""
    inputs = encoder.inputs(batch)
    inputs.pop("attention_mask")
    parts = encoder.embeddings
    hidden = parts.module(**inputs)
    return hidden if parts.projection is None else parts.projection(hidden)


def first_state(encoder: Encoder, hidden: Tensor, mask: Tensor, layer: int) -> Tensor:
    """[B, D] last hidden state of the first piece, from the states [B, T, D] at ``layer``.

    The same as ``encoder.encode_from(...)[:, 0]`` in evaluation mode, with its graph, for less
    work: nothing is computed for padding, and of the last layer only what the first piece needs.
    """
    if layer == encoder.n_layers:
        return hidden[:, 0]
    mask = mask.to(hidden.device)
    packing = Packing.of(mask.bool(), additive_mask(mask, hidden.dtype))
    rows = packing.pack(hidden)
    for parts in encoder.layers[layer:-1]:
        rows = _layer(parts, packing, rows, rows)
    return _layer(encoder.layers[-1], packing, rows, packing.first(rows)[:, None])[:, 0]


def _layer(parts: LayerParts, packing: Packing, rows: Tensor, asking: Tensor) -> Tensor:
    """A layer's output where it is asked for: at all pieces [R, D], or at some [B, Q, D]."""

    def heads(states: Tensor, part: nn.Module) -> Tensor:
        flat = part(states)
        flat = packing.spread(flat) if flat.ndim == 2 else flat
        return flat.unflatten(-1, (parts.n_heads, parts.d_head)).transpose(1, 2)

    queries, keys = heads(asking, parts.query), heads(rows, parts.key)
    scores = queries @ keys.transpose(-1, -2) / math.sqrt(parts.d_head)
    z = ((scores + packing.mask).softmax(-1) @ heads(rows, parts.value)).transpose(1, 2).flatten(2)
    middle = parts.attn_norm(parts.output(packing.pack(z) if asking.ndim == 2 else z) + asking)
    return parts.ffn_norm(parts.ffn_out(parts.act(parts.ffn_in(middle))) + middle)


@dataclass(frozen=True, eq=False)
class Tuned:
    """A fine-tuned encoder.

    Attributes:
        encoder: the copy; every method that takes an encoder takes it.
        head: the new layer, D -> classes.
        layer: everything below it is frozen; None if the embeddings are trained, too.
        losses: of every training step, in nats.
        n_trained: numbers that were trained, those of the new layer left out.
        watched: epochs done -> [N] True where a text of the watched part was judged rightly.
    """

    encoder: Encoder
    head: nn.Linear = field(repr=False)
    layer: int | None
    losses: tuple[float, ...] = field(default=(), repr=False)
    n_trained: int = 0
    watched: dict[int, np.ndarray] = field(default_factory=dict, repr=False)

    def inputs(self, given: Examples, index: Sequence[int]) -> tuple[Tensor, Tensor]:
        """(states [B, T, D], mask [B, T]) of some texts, where training begins."""
        where = torch.as_tensor(index, dtype=torch.long)
        width = given.width(where)
        mask = given.ids.attention_mask[where, :width]
        if given.hidden is not None:
            return given.hidden[where.to(given.hidden.device), :width], mask
        rows = [given.ids.rows[i] for i in where.tolist()]
        cut = Batch(
            rows=tuple(rows),
            index=tuple(where.tolist()),
            input_ids=given.ids.input_ids[where, :width],
            attention_mask=mask,
            token_type_ids=given.ids.token_type_ids[where, :width],
        )
        return embed(self.encoder, cut), mask

    def score(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """[B, classes] logits from states and mask of :meth:`inputs`."""
        return self.head(first_state(self.encoder, hidden, mask, self.layer or 0))

    def logits(self, given: Examples, size: int = 64) -> Tensor:
        """[N, classes] of all texts, without a graph.

        Raises:
            ValueError: the texts were encoded up to another layer.
        """
        if given.layer != (self.layer or 0):
            raise ValueError(f"states of layer {given.layer}, but {self.layer or 0} is asked for")
        with evaluating(self.encoder):
            # By length, so that little is computed for padding.
            order = torch.argsort(given.ids.attention_mask.sum(1), stable=True)
            parts = [self.score(*self.inputs(given, part.tolist())) for part in order.split(size)]
            return torch.cat(parts)[torch.argsort(order)]

    def right(self, given: Examples) -> np.ndarray:
        """[N] True where the most probable class is the label."""
        return (self.logits(given).argmax(-1) == given.labels).cpu().numpy()

    def predict(self, encoder: Encoder, batch: Batch) -> Tensor:
        """Class probabilities [B, C], as ``attention.Predict`` and head importance want them."""
        return self.head(encoder.encode(batch)[:, 0]).softmax(-1)


def new_head(encoder: Encoder, classes: int, seed: int) -> nn.Linear:
    """A linear layer with weights drawn from a normal distribution of spread 0.02."""
    head = nn.Linear(encoder.d_model, classes, device=encoder.device)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        head.weight.copy_(0.02 * torch.randn(head.weight.shape, generator=draw))
        head.bias.zero_()
    return head


@contextmanager
def occurring_rows(encoder: Encoder, ids: Tensor) -> Iterator[dict]:
    """Train only the rows of the token table that occur; they are written back at the end.

    Inside, they are a group of parameters for AdamW.

    A row that never occurs has no gradient, so without weight decay on the table Adam leaves it
    alone: the result is that of training the whole table, for a fraction of the time.
    """
    table = encoder.embeddings.token
    used = ids.unique().to(encoder.device)
    rows = nn.Parameter(table.weight[used].detach().clone())
    place = torch.full((table.num_embeddings,), -1, device=encoder.device)
    place[used] = torch.arange(len(used), device=encoder.device)

    def replace(_module: nn.Module, args: tuple, output: Tensor) -> Tensor:
        at = place[args[0]]
        return torch.where((at >= 0)[..., None], rows[at.clamp(min=0)], output)

    frozen = table.weight.requires_grad
    table.weight.requires_grad_(False)
    hook = table.register_forward_hook(replace, prepend=True)
    try:
        yield {"params": [rows], "weight_decay": 0.0}
    finally:
        hook.remove()
        with torch.no_grad():
            table.weight[used] = rows
        table.weight.requires_grad_(frozen)
