"""The :class:`Encoder`: a BERT-like model and its tokenizer behind one set of names."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .errors import HeadIndexError, LayerIndexError, MissingHeadError
from .families import (
    EmbeddingParts,
    Family,
    LayerParts,
    additive_mask,
    embedding_parts,
    family_of,
)


class TokenBatch(Protocol):
    """What the encoder reads of a batch: three [B, T] integer tensors."""

    input_ids: Tensor
    attention_mask: Tensor
    token_type_ids: Tensor


@dataclass(frozen=True)
class Encoder:
    """A bidirectional Transformer encoder, its output heads and its tokenizer.

    Shapes: B texts, T pieces, D = ``d_model``, H = ``n_heads``, K = ``d_head``, V = vocabulary.
    The dataclass is frozen; the weights inside the model are not.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    device: torch.device
    name: str
    #: output heads whose weights came with the checkpoint: "mlm", "nsp", "rtd"
    trained_heads: frozenset[str] = field(default_factory=frozenset)

    @property
    def config(self):
        """The transformers configuration of the model."""
        return self.model.config

    @cached_property
    def family(self) -> Family:
        return family_of(self.config.model_type)

    @property
    def base(self) -> PreTrainedModel:
        """The encoder trunk: embeddings and layers, without output heads."""
        return self.model.base_model

    @property
    def layers(self) -> list[LayerParts]:
        """The layers from the input upwards, each opened into its named parts."""
        return [self.family.layer(block) for block in self.family.blocks(self.base)]

    @property
    def embeddings(self) -> EmbeddingParts:
        """Token, position and segment tables and what follows them."""
        return embedding_parts(self.base)

    @property
    def n_layers(self) -> int:
        return len(self.family.blocks(self.base))

    @property
    def n_heads(self) -> int:
        """Heads per layer by the configuration; see :attr:`heads_per_layer` for pruned models."""
        return self.config.num_attention_heads

    @property
    def heads_per_layer(self) -> tuple[int, ...]:
        """Heads that each layer really has."""
        return tuple(layer.n_heads for layer in self.layers)

    @property
    def d_model(self) -> int:
        return self.config.hidden_size

    @property
    def d_head(self) -> int:
        return self.d_model // self.n_heads

    @property
    def n_segments(self) -> int:
        """Rows of the segment table; 0 where the family has none."""
        segment = self.embeddings.segment
        return 0 if segment is None else segment.num_embeddings

    @property
    def max_length(self) -> int:
        """Longest input in pieces, special tokens included."""
        position = self.embeddings.position
        # RoBERTa numbers positions from padding_idx + 1, so that many rows carry no position.
        reserved = 0 if position.padding_idx is None else position.padding_idx + 1
        return min(position.num_embeddings - reserved, self.tokenizer.model_max_length)

    @property
    def n_parameters(self) -> int:
        """Number of weights, tied ones counted once."""
        return sum(p.numel() for p in self.model.parameters())

    @property
    def has_mlm(self) -> bool:
        """True if a trained masked-language-model head came with the checkpoint."""
        return "mlm" in self.trained_heads

    @property
    def has_nsp(self) -> bool:
        """True if a trained next-sentence head came with the checkpoint."""
        return "nsp" in self.trained_heads

    @property
    def has_rtd(self) -> bool:
        """True if a trained replaced-token-detection head (ELECTRA) came with the checkpoint."""
        return "rtd" in self.trained_heads

    def inputs(self, batch: TokenBatch) -> dict[str, Tensor]:
        """The batch as keyword arguments of the model, on the model's device."""
        inputs = {"input_ids": batch.input_ids, "attention_mask": batch.attention_mask}
        if self.n_segments > 1:
            inputs["token_type_ids"] = batch.token_type_ids
        return {name: tensor.to(self.device) for name, tensor in inputs.items()}

    def encode(self, batch: TokenBatch) -> Tensor:
        """Last hidden states [B, T, D]. Rows of padding hold no meaning.

        Keeps the model's mode and builds a graph; wrap in :func:`evaluating` to only measure.
        """
        return self.base(**self.inputs(batch)).last_hidden_state

    def encode_from(self, hidden: Tensor, attention_mask: Tensor, layer: int) -> Tensor:
        """Run only layers ``layer`` .. L-1 on ``hidden`` [B, T, D] (= hidden state ``layer``).

        ``attention_mask`` is the batch's [B, T]. ``layer == n_layers`` returns ``hidden``.

        Raises:
            LayerIndexError: ``layer`` is not in 0 .. n_layers.
        """
        self.check_layer(layer, last=self.n_layers)
        mask = additive_mask(attention_mask.to(hidden.device), hidden.dtype)
        for block in self.family.blocks(self.base)[layer:]:
            hidden = block(hidden, mask)
        return hidden

    def mlm_logits(self, hidden: Tensor) -> Tensor:
        """Vocabulary logits [..., V] of last hidden states [..., D].

        The head costs D * V multiplications a position: gather the positions of interest first.

        Raises:
            MissingHeadError: the checkpoint has no trained masked-language-model head.
        """
        self._require("mlm")
        return self.family.mlm(self.model, hidden)

    def nsp_logits(self, hidden: Tensor) -> Tensor:
        """Next-sentence logits [B, 2] of last hidden states [B, T, D]; index 0 is "follows".

        Raises:
            MissingHeadError: the checkpoint has no trained next-sentence head.
        """
        self._require("nsp")
        return self.family.nsp(self.model, hidden)

    def rtd_logits(self, hidden: Tensor) -> Tensor:
        """ELECTRA's logit [...] that a token was replaced, from last hidden states [..., D].

        Raises:
            MissingHeadError: the checkpoint has no trained discriminator head.
        """
        self._require("rtd")
        return self.family.rtd(self.model, hidden)

    def check_layer(self, layer: int, *, last: int | None = None) -> int:
        """Return ``layer`` if it is in 0 .. ``last`` (default: the last layer), else raise.

        Raises:
            LayerIndexError: not an integer, or outside the range.
        """
        last = self.n_layers - 1 if last is None else last
        if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer <= last:
            raise LayerIndexError(f"layer {layer!r} is not in 0..{last} of {self.name!r}")
        return layer

    def check_heads(self, heads: Mapping[int, object]) -> dict[int, tuple[int, ...]]:
        """Validate ``{layer: [heads]}``; sort the heads and drop repetitions.

        Raises:
            LayerIndexError, HeadIndexError: naming the first index outside the model.
        """
        per_layer = self.heads_per_layer
        checked = {}
        for layer, chosen in heads.items():
            self.check_layer(layer)
            for head in chosen:
                whole = isinstance(head, int) and not isinstance(head, bool)
                if not whole or not 0 <= head < per_layer[layer]:
                    raise HeadIndexError(
                        f"head {head!r} is not in 0..{per_layer[layer] - 1} "
                        f"of layer {layer} of {self.name!r}"
                    )
            checked[layer] = tuple(sorted(set(chosen)))
        return checked

    def _require(self, head: str) -> None:
        if head not in self.trained_heads:
            have = ", ".join(sorted(self.trained_heads)) or "none"
            raise MissingHeadError(f"{self.name!r} has no trained {head!r} head (it has: {have})")


@contextmanager
def evaluating(encoder: Encoder | nn.Module) -> Iterator[None]:
    """Measure without changing anything: dropout off, no gradients, every mode put back after.

    The mode of each submodule is restored by itself, since a model under training may hold frozen
    parts in evaluation mode.
    """
    model = encoder.model if isinstance(encoder, Encoder) else encoder
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
