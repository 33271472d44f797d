"""The trunk of an encoder as plain arithmetic on its parts, for measuring it many times.

Masked scores and sweeps over heads run the same layers thousands of times and need little of what
comes out: the last layer at one piece a text, or everything above one changed layer. The model's
own forward pass cannot leave anything out. The operations here are those of the model in the same
order, so that the numbers agree to the last bit wherever a matrix library treats rows alike.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from transformers.activations import GELUActivation
from transformers.models.bert.modeling_bert import BertLayer
from transformers.models.camembert.modeling_camembert import CamembertLayer
from transformers.models.distilbert.modeling_distilbert import TransformerBlock
from transformers.models.electra.modeling_electra import ElectraLayer
from transformers.models.roberta.modeling_roberta import RobertaLayer
from transformers.models.xlm_roberta.modeling_xlm_roberta import XLMRobertaLayer

from .families import LayerParts, additive_mask
from .model import Encoder, TokenBatch
from .packing import FEW, Packing

_BLOCKS = (
    BertLayer,
    CamembertLayer,
    ElectraLayer,
    RobertaLayer,
    TransformerBlock,
    XLMRobertaLayer,
)

#: hooks of all modules, in the tables that PyTorch has had since before 2.6
_GLOBAL_HOOKS = (
    torch_module._global_forward_pre_hooks,
    torch_module._global_forward_hooks,
    torch_module._global_backward_pre_hooks,
    torch_module._global_backward_hooks,
)

#: pieces that take about as long as what a pass costs besides its pieces
CPU_PASS = 32
_RECORDERS = "transformers.utils.output_capturing"

#: pieces that one pass on a CPU works on: what a layer makes of them stays in the caches
CPU_PIECES = 1024

#: rows of queries of one head, fewer of which have other last bits
_QUERIES = 4


def pieces_at_once(encoder: Encoder, budget: int) -> int:
    """Padded pieces for one pass on the encoder's device, at most ``budget``.

    A processor is fastest on what fits its caches, an accelerator on as much as it can hold.
    """
    return min(budget, CPU_PIECES) if encoder.device.type == "cpu" else budget


def pass_cost(encoder: Encoder) -> int | None:
    """What one more pass costs on the encoder's device, in padded pieces of the same time.

    None on an accelerator, where starting a pass costs as much as thousands of pieces.
    """
    return CPU_PASS if encoder.device.type == "cpu" else None


def is_plain(encoder: Encoder) -> bool:
    """True if the layers do what their parts say and nothing else, and no gradient is wanted.

    Hooks, dropout, replaced modules and replaced forward functions all make a layer more than its
    parts, and an encoder may have a way of its own to encode, so that only the model's own forward
    pass is right.
    """
    if torch.is_grad_enabled() or any(_GLOBAL_HOOKS):
        return False
    if type(encoder).encode is not Encoder.encode:
        return False
    config, base = encoder.config, encoder.base
    if config._attn_implementation != "eager" or getattr(config, "is_decoder", False):
        return False
    if getattr(config, "chunk_size_feed_forward", 0) or not all(encoder.heads_per_layer):
        return False
    blocks = encoder.family.blocks(base)
    return all(type(block) in _BLOCKS for block in blocks) and all(map(_untouched, base.modules()))


def _untouched(module: nn.Module) -> bool:
    if module.training or module._forward_pre_hooks:
        return False
    # The recorders that transformers leaves behind after output_attentions change nothing.
    hooks = module._forward_hooks.values()
    if any(getattr(hook, "__module__", None) != _RECORDERS for hook in hooks):
        return False
    kind = type(module)
    if "forward" in vars(module) or not kind.__module__.startswith(("torch.nn.", "transformers.")):
        return False
    # Parametrised and quantised maps are subclasses.
    return not isinstance(module, (nn.Linear, nn.LayerNorm)) or kind in (nn.Linear, nn.LayerNorm)


class Trunk:
    """The layers of a plain encoder. B texts, T pieces, D = d_model, H heads, K = d_head.

    Make it inside ``evaluating``, use it there, and let it go: it does not see later changes.

    A mask is [B, 1, 1, T], None where no text is padded, or a :class:`Packing`; with that, what is
    said to be [B, T, D] is [R, D].

    Args:
        encoder: a plain encoder.
        together: None where a batch is multiplied as a whole. A number where it stands for several
            smaller ones of so many texts each, which keep the bits that they have by themselves:
            every one is multiplied by itself, but all in one call, which fetches a weight once.

    Raises:
        ValueError: the encoder is not plain (see :func:`is_plain`).
    """

    def __init__(self, encoder: Encoder, together: int | None = None):
        if not is_plain(encoder):
            raise ValueError(f"{encoder.name!r} is more than its layers: use its own forward pass")
        self.encoder = encoder
        self.together = together
        self.layers: list[LayerParts] = encoder.layers
        self._acts = [_in_place(parts.act) for parts in self.layers]

    def stacked(self, texts: int, pieces: int) -> "Trunk":
        """For several batches of so many texts and padded pieces in one pass, each with the bits
        that it has by itself."""
        few = self.encoder.device.type == "cpu" and texts * pieces < FEW
        return Trunk(self.encoder, texts) if few else self

    def embed(self, batch: TokenBatch) -> tuple[Tensor, Tensor | None]:
        """What enters the first layer [B, T, D], and the mask [B, 1, 1, T] added to the scores.

        The mask is None where no text is padded.
        """
        inputs = self.encoder.inputs(batch)
        mask = inputs.pop("attention_mask")
        parts = self.encoder.embeddings
        hidden = parts.module(**inputs)
        if parts.projection is not None:
            hidden = parts.projection(hidden)
        return hidden, None if mask.all() else additive_mask(mask, hidden.dtype)

    def pattern_of(self, layer: int, queries: Tensor, keys: Tensor, mask: Tensor | None) -> Tensor:
        """Attention pattern [B, H, Q, T] of queries [B, H, Q, K] and keys [B, H, T, K]."""
        scores = queries @ keys.transpose(-1, -2)
        scores *= self.layers[layer].d_head ** -0.5
        if mask is not None:
            scores += mask
        return torch.softmax(scores, dim=-1)

    def attend(self, layer: int, hidden: Tensor, mask: Tensor | Packing | None) -> Tensor:
        """z [B, T, H * K], the heads side by side, of the layer's input [B, T, D]."""
        return self._attend(layer, hidden, hidden, mask)[0]

    def finish(self, layer: int, z: Tensor, hidden: Tensor) -> Tensor:
        """The layer's output from z [..., H * K] and the layer's input [..., D]."""
        parts = self.layers[layer]
        middle = self._map(parts.output, z)
        middle += hidden
        middle = parts.attn_norm(middle)
        out = self._map(parts.ffn_out, self._acts[layer](self._map(parts.ffn_in, middle)))
        out += middle
        return parts.ffn_norm(out)

    def layer(self, layer: int, hidden: Tensor, mask: Tensor | Packing | None) -> Tensor:
        """The layer's output [B, T, D] of its input [B, T, D]."""
        return self.finish(layer, self.attend(layer, hidden, mask), hidden)

    def read(self, batch: TokenBatch) -> tuple[list[Tensor], list[Tensor]]:
        """All L + 1 hidden states [B, T, D] and all L patterns [B, H, T, T]."""
        hidden, mask = self.embed(batch)
        states, patterns = [hidden], []
        for layer in range(len(self.layers)):
            z, pattern = self._attend(layer, states[-1], states[-1], mask)
            patterns.append(pattern)
            states.append(self.finish(layer, z, states[-1]))
        return states, patterns

    def layer_at(
        self, layer: int, hidden: Tensor, mask: Tensor | Packing | None, places: Tensor
    ) -> Tensor:
        """The layer's output [B, D] at one piece ``places`` [B] of every text.

        Keys and values are needed of all pieces, the rest of the layer at one.
        """
        own = pick(hidden, places, mask)
        z = self._attend(layer, own[:, None], hidden, mask)[0][:, 0]
        return self.finish_few(layer, z, own)

    def attend_at(self, layer: int, hidden: Tensor, mask: Tensor | None, places: Tensor) -> Tensor:
        """z [B, H * K] at one piece ``places`` [B] of every text, of the input [B, T, D]."""
        return self._attend(layer, pick(hidden, places)[:, None], hidden, mask)[0][:, 0]

    def finish_few(self, layer: int, z: Tensor, hidden: Tensor) -> Tensor:
        """As :meth:`finish` for few rows, z [B, H * K] and hidden [B, D], with the bits of many."""
        return self._few(lambda z, hidden: self.finish(layer, z, hidden), z, hidden)

    def encode(self, batch: TokenBatch) -> Tensor:
        """Last hidden states [B, T, D]."""
        hidden, mask = self.embed(batch)
        for layer in range(len(self.layers)):
            hidden = self.layer(layer, hidden, mask)
        return hidden

    def encode_at(self, batch: TokenBatch, places: Tensor) -> Tensor:
        """Last hidden states [B, D] at one piece of every text."""
        hidden, mask = self.embed(batch)
        last = len(self.layers) - 1
        for layer in range(last):
            hidden = self.layer(layer, hidden, mask)
        return self.layer_at(last, hidden, mask, places.to(hidden.device))

    def _attend(
        self, layer: int, asking: Tensor, hidden: Tensor, mask: Tensor | Packing | None
    ) -> tuple[Tensor, Tensor]:
        """z [B, Q, H * K] and the pattern of the asking pieces [B, Q, D]."""
        parts = self.layers[layer]
        packing = mask if isinstance(mask, Packing) else None
        everywhere = asking is hidden

        def heads(flat: Tensor) -> Tensor:
            flat = flat if packing is None or flat.ndim == 3 else packing.spread(flat)
            return flat.unflatten(-1, (-1, parts.d_head)).transpose(1, 2)

        if everywhere or asking.shape[1] > 1:
            queries = heads(self._map(parts.query, asking))
        else:
            # Written out: rows that share their memory would be multiplied text by text.
            own = self._few(parts.query, asking[:, 0])[:, None]
            queries = heads(own).repeat(1, 1, _QUERIES, 1)
        keys, values = (heads(self._map(part, hidden)) for part in (parts.key, parts.value))
        pattern = self.pattern_of(layer, queries, keys, packing.mask if packing else mask)
        z = (pattern @ values).transpose(1, 2).flatten(2)
        if packing is not None and everywhere:
            return packing.pack(z), pattern
        return z[:, : asking.shape[1]], pattern[:, :, : asking.shape[1]]

    def _map(self, part: nn.Linear, rows: Tensor) -> Tensor:
        """[.., D] through a linear map, with the bits that ``together`` asks for."""
        if self.together is None or rows.ndim == 2 or part.bias is None:
            return part(rows)
        batches = rows.reshape(-1, self.together * rows.shape[1], rows.shape[2])
        weight = part.weight.t().expand(len(batches), -1, -1)
        return torch.baddbmm(part.bias, batches, weight).view(*rows.shape[:2], -1)

    def _few(self, function: Callable[..., Tensor], *rows: Tensor) -> Tensor:
        """A function of few rows [B, ..] with the bits of as many as a batch has."""
        count = len(rows[0])
        if self.together is None:
            return function(*(_at_least(FEW, part) for part in rows))[:count]
        parts = zip(*(r.tensor_split(math.ceil(count / (FEW - 1))) for r in rows), strict=True)
        return torch.cat([function(*(_at_least(2, p) for p in part)) for part in parts])[:count]


def first_states(encoder: Encoder, batch: TokenBatch) -> Tensor:
    """Last hidden states [B, D] of the first piece of every text.

    A plain encoder computes nothing of the last layer that the other pieces alone would need.
    """
    if not is_plain(encoder):
        return encoder.encode(batch)[:, 0]
    places = torch.zeros(len(batch.input_ids), dtype=torch.long)
    return Trunk(encoder).encode_at(batch, places)


def pick(hidden: Tensor, places: Tensor, mask: Tensor | Packing | None = None) -> Tensor:
    """[B, D] one piece a text, of hidden states [B, T, D] and places [B]."""
    if isinstance(mask, Packing):
        return mask.at(hidden, places)
    return hidden[torch.arange(len(hidden), device=hidden.device), places]


def _at_least(n: int, rows: Tensor) -> Tensor:
    """``n`` rows at least, rows of zeros below the given ones."""
    lacking = n - len(rows)
    return rows if lacking <= 0 else torch.cat([rows, rows.new_zeros(lacking, *rows.shape[1:])])


def _in_place(act: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The activation; GELU writes over what it is given, which nobody else holds."""
    exact = type(act) is GELUActivation and act.act is nn.functional.gelu
    return torch.ops.aten.gelu_ if exact else act
