"""A plain encoder with a classifier that can be cut, shared, quantised and saved piece by piece.

``transformers`` rebuilds a model from one configuration, which cannot say that layer 2 has five
heads or that all layers are one. A :class:`Compact` is built from its parts instead. With all its
parts in place it computes what the encoder computes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers.activations import ACT2FN

from ..encoder import Encoder, Packing, additive_mask
from .errors import CompressionError

#: a model, or its forward pass: ids [B, T] and mask [B, T] -> logits
Answering = Callable[[Tensor, Tensor], Tensor]
#: where a classifier reads: the first piece (a label per text) or all (a label per piece)
READS = ("first", "all")
#: the linear maps of a layer, by the names of :class:`~bertology_utils.encoder.LayerParts`
MAPS = ("query", "key", "value", "output", "ffn_in", "ffn_out")
NORMS = ("attn_norm", "ffn_norm")


@dataclass(frozen=True, eq=False)
class Trace:
    """What happened in a forward pass. B texts, T pieces, D wide, H heads of K numbers.

    Attributes:
        hidden: L + 1 tensors [B, T, D]; the first is the embedding output.
        patterns: L tensors [B, H, T, T], rows sum to 1.
        values: L tensors [B, H, T, K].
        logits: [B, C], or [B, T, C] where every piece gets a label.
    """

    hidden: tuple[Tensor, ...]
    patterns: tuple[Tensor, ...]
    values: tuple[Tensor, ...]
    logits: Tensor


class Layer(nn.Module):
    """One Transformer layer; heads and feed-forward units may be fewer than they once were.

    Attributes:
        d_head: numbers per head; the number of heads follows from the query map's size.
        act: name of the activation.
    """

    def __init__(self, parts: dict[str, nn.Module], d_head: int, act: str):
        super().__init__()
        for name in (*MAPS, *NORMS):
            self.add_module(name, parts[name])
        self.d_head, self.act = d_head, act

    @property
    def n_heads(self) -> int:
        return self.query.out_features // self.d_head

    @property
    def n_units(self) -> int:
        """Feed-forward units."""
        return self.ffn_in.out_features

    def attend(self, hidden: Tensor, mask: Tensor | Packing) -> tuple[Tensor, Tensor, Tensor]:
        """[B, T, D] -> the state after attention [B, T, D], pattern [B, H, T, T], values.

        With a :class:`Packing` in the place of the mask, states are [R, D].
        """
        return self._attend(hidden, hidden, mask)

    def _attend(
        self, reading: Tensor, hidden: Tensor, mask: Tensor | Packing
    ) -> tuple[Tensor, Tensor, Tensor]:
        """What some of the pieces, ``reading`` [B, Q, D], take from all of them."""

        def heads(name: str, states: Tensor) -> Tensor:
            flat = getattr(self, name)(states)
            flat = mask.spread(flat) if flat.ndim == 2 else flat
            return flat.view(*flat.shape[:2], -1, self.d_head).transpose(1, 2)

        query, key, value = heads("query", reading), heads("key", hidden), heads("value", hidden)
        scores = query @ key.transpose(-1, -2) * self.d_head**-0.5
        pattern = (scores + (mask.mask if isinstance(mask, Packing) else mask)).softmax(-1)
        z = (pattern @ value).transpose(1, 2).flatten(2)
        z = mask.pack(z) if reading.ndim == 2 else z
        return self.attn_norm(self.output(z) + reading), pattern, value

    def feed(self, middle: Tensor) -> Tensor:
        """The second half: [B, T, D] after attention -> [B, T, D]."""
        return self.ffn_norm(self.ffn_out(ACT2FN[self.act](self.ffn_in(middle))) + middle)

    def forward(self, hidden: Tensor, mask: Tensor | Packing) -> Tensor:
        """[B, T, D] and an additive mask [B, 1, 1, T] -> [B, T, D]; packed, [R, D] -> [R, D]."""
        return self.feed(self.attend(hidden, mask)[0])

    def first(self, rows: Tensor, packing: Packing) -> Tensor:
        """As :meth:`forward`, for the first piece alone: packed rows [R, D] -> [B, 1, D]."""
        return self.feed(self._attend(packing.first(rows)[:, None], rows, packing)[0])


class Compact(nn.Module):
    """An encoder of single texts with a linear classifier.

    Args:
        token: ids [B, T] -> vectors; an ``nn.Embedding`` or one of the smaller tables of this room.
        position: ``nn.Embedding``; the vector of the first segment is already added to its rows.
        norm: of the input sum.
        projection: from the width of the tables to D, or None.
        blocks: the layers that are stored.
        order: which block runs at which depth; a block that occurs twice is shared.
        head: D -> classes.
        reads: see :data:`READS`.

    Raises:
        CompressionError: ``order`` names a block that is not there, or ``reads`` is unknown.
    """

    def __init__(
        self,
        token: nn.Module,
        position: nn.Embedding,
        norm: nn.LayerNorm,
        projection: nn.Module | None,
        blocks: Sequence[Layer],
        order: Sequence[int],
        head: nn.Module,
        reads: str = "first",
    ):
        super().__init__()
        if reads not in READS:
            raise CompressionError(f"reads is {reads!r}, must be one of {', '.join(READS)}")
        if not order or not set(order) <= set(range(len(blocks))):
            raise CompressionError(f"order {tuple(order)} does not fit {len(blocks)} blocks")
        self.token, self.position, self.norm, self.projection = token, position, norm, projection
        self.blocks = nn.ModuleList(blocks)
        self.order = tuple(int(place) for place in order)
        self.head, self.reads = head, reads

    @property
    def layers(self) -> list[Layer]:
        """The layers as they run, from the input upwards; shared ones occur again."""
        return [self.blocks[place] for place in self.order]

    @property
    def n_layers(self) -> int:
        return len(self.order)

    @property
    def n_parameters(self) -> int:
        """Stored numbers, shared ones once."""
        return sum(p.numel() for p in (*self.parameters(), *self.buffers()))

    def embed(self, ids: Tensor) -> Tensor:
        """[B, T] -> the embedding output [B, T, D]."""
        places = torch.arange(ids.shape[1], device=ids.device)
        summed = self.norm(self.token(ids) + self.position(places))
        return summed if self.projection is None else self.projection(summed)

    def classify(self, hidden: Tensor) -> Tensor:
        """Last states [B, T, D] -> logits."""
        return self.head(hidden[:, 0] if self.reads == "first" else hidden)

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """[B, T] ids and their mask (1 at pieces) -> last states [B, T, D]."""
        hidden = self.embed(ids)
        added = additive_mask(mask, hidden.dtype)
        for layer in self.layers:
            hidden = layer(hidden, added)
        return hidden

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """[B, T] ids and their mask (1 at pieces) -> logits; every layer runs for every piece."""
        return self.classify(self.encode(ids, mask))

    def answer(self, ids: Tensor, mask: Tensor) -> Tensor:
        """As :meth:`forward`, but of the last layer only what the classifier reads."""
        if self.reads != "first":
            return self(ids, mask)
        hidden = self.embed(ids)
        return self.head(run_to_first(self.layers, hidden, mask)[:, 0])

    def __deepcopy__(self, memo: dict) -> Compact:
        """Weights of its own, but a full table of token vectors is shared: nothing here trains it
        (see ``training.trainable``), and it is most of a small model."""
        if isinstance(self.token, nn.Embedding):
            table = self.token.weight
            memo[id(table)] = nn.Parameter(table.detach(), requires_grad=table.requires_grad)
        made = self.__class__.__new__(self.__class__)
        memo[id(self)] = made
        made.__dict__.update({name: copy.deepcopy(value, memo)
                              for name, value in self.__dict__.items()})  # fmt: skip
        return made

    def trace(self, ids: Tensor, mask: Tensor) -> Trace:
        """As :meth:`forward`, with everything that distillation may copy."""
        hidden = [self.embed(ids)]
        added = additive_mask(mask, hidden[0].dtype)
        patterns, values = [], []
        for layer in self.layers:
            middle, pattern, value = layer.attend(hidden[-1], added)
            hidden.append(layer.feed(middle))
            patterns.append(pattern)
            values.append(value)
        return Trace(tuple(hidden), tuple(patterns), tuple(values), self.classify(hidden[-1]))


def run_to_first(layers: Sequence[Layer], hidden: Tensor, mask: Tensor) -> Tensor:
    """[B, T, D] through some layers -> [B, 1, D] of the first piece alone.

    Nothing is computed for padding.
    """
    packing = Packing.of(mask.bool(), additive_mask(mask, hidden.dtype))
    rows = packing.pack(hidden)
    for layer in layers[:-1]:
        rows = layer(rows, packing)
    return layers[-1].first(rows, packing)


def answer(model: Answering, ids: Tensor, mask: Tensor) -> Tensor:
    """Logits, for training and judging: the cheapest way that a model has to them."""
    return getattr(model, "answer", model)(ids, mask)


def compact(
    encoder: Encoder, n_classes: int, *, layers: Sequence[int] | None = None,
    reads: str = "first", seed: int = 0,
) -> Compact:  # fmt: skip
    """A copy of an encoder, or of some of its layers, with a new classifier.

    The table of token vectors is the encoder's own, which must not be changed in place.

    Args:
        encoder: any encoder of ours, pruned ones included; stays as it is.
        n_classes: 2 or more.
        layers: the layers to copy, in order; all by default.
        reads: see :data:`READS`.
        seed: of the classifier's weights.

    Raises:
        CompressionError: fewer than two classes, no layers, an unknown ``reads``.
        LayerIndexError: no such layer.
    """
    if n_classes < 2:
        raise CompressionError(f"{n_classes} classes cannot be told apart")
    chosen = range(encoder.n_layers) if layers is None else layers
    places = [encoder.check_layer(int(layer)) for layer in chosen]
    config = encoder.config
    act = getattr(config, "hidden_act", None) or config.activation
    blocks = []
    for place in places:
        parts = encoder.layers[place]
        copies = {name: copy.deepcopy(getattr(parts, name)) for name in (*MAPS, *NORMS)}
        blocks.append(Layer(copies, parts.d_head, act))
    tables = encoder.embeddings
    position = nn.Embedding.from_pretrained(_positions(tables), freeze=False)
    token = nn.Embedding.from_pretrained(tables.token.weight.detach(), freeze=False)
    return Compact(
        token, position, copy.deepcopy(tables.norm), copy.deepcopy(tables.projection), blocks,
        range(len(blocks)), new_head(encoder.d_model, n_classes, seed), reads,
    ).to(encoder.device).eval()  # fmt: skip


def _positions(tables) -> Tensor:
    """[P, .] a row per place of a text, the first segment's vector added."""
    padding = tables.position.padding_idx
    rows = tables.position.weight.detach()[0 if padding is None else padding + 1 :].clone()
    return rows if tables.segment is None else rows + tables.segment.weight.detach()[0]


def new_head(width: int, n_classes: int, seed: int) -> nn.Linear:
    """A linear classifier with small random weights and biases of 0."""
    head = nn.Linear(width, n_classes)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        head.weight.copy_(0.02 * torch.randn(head.weight.shape, generator=draw))
        head.bias.zero_()
    return head


def linear_maps(model: nn.Module) -> dict[str, nn.Linear]:
    """Name -> every dense linear map inside the layers of a model, shared ones once."""
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and name.rsplit(".", 1)[-1] in MAPS
    }


def is_dense(model: nn.Module) -> bool:
    """Whether a model is a :class:`Compact` whose matrices are plain, ready to be multiplied."""
    return isinstance(model, Compact) and all(
        type(getattr(block, name)) is nn.Linear for block in model.blocks for name in MAPS
    )


def replaced(model: nn.Module, name: str, new: nn.Module) -> None:
    """Put ``new`` in the place of the submodule at a dotted name."""
    owner, _, attribute = name.rpartition(".")
    setattr(model.get_submodule(owner) if owner else model, attribute, new)
