"""The trunk of an encoder as plain arithmetic on its parts, for measuring it many times.

Masked scores and sweeps over heads run the same layers thousands of times and need little of what
comes out: the last layer at one piece a text, or everything above one changed layer. The model's
own forward pass cannot leave anything out. The operations here are those of the model in the same
order, so that the numbers agree to the last bit wherever a matrix library treats rows alike.
"""

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from transformers.models.bert.modeling_bert import BertLayer
from transformers.models.camembert.modeling_camembert import CamembertLayer
from transformers.models.distilbert.modeling_distilbert import TransformerBlock
from transformers.models.electra.modeling_electra import ElectraLayer
from transformers.models.roberta.modeling_roberta import RobertaLayer
from transformers.models.xlm_roberta.modeling_xlm_roberta import XLMRobertaLayer

from .families import LayerParts, additive_mask
from .model import Encoder, TokenBatch

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

#: matrix libraries multiply fewer rows than this in other orders, and so to other last bits
_FEW = 16
#: the same for the queries of one head
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

    Raises:
        ValueError: the encoder is not plain (see :func:`is_plain`).
    """

    def __init__(self, encoder: Encoder):
        if not is_plain(encoder):
            raise ValueError(f"{encoder.name!r} is more than its layers: use its own forward pass")
        self.encoder = encoder
        self.layers: list[LayerParts] = encoder.layers

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

    def attend(self, layer: int, hidden: Tensor, mask: Tensor | None) -> Tensor:
        """z [B, T, H * K], the heads side by side, of the layer's input [B, T, D]."""
        return self._attend(layer, hidden, hidden, mask)[0]

    def finish(self, layer: int, z: Tensor, hidden: Tensor) -> Tensor:
        """The layer's output from z [..., H * K] and the layer's input [..., D]."""
        parts = self.layers[layer]
        middle = parts.output(z)
        middle += hidden
        middle = parts.attn_norm(middle)
        out = parts.ffn_out(parts.act(parts.ffn_in(middle)))
        out += middle
        return parts.ffn_norm(out)

    def layer(self, layer: int, hidden: Tensor, mask: Tensor | None) -> Tensor:
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

    def layer_at(self, layer: int, hidden: Tensor, mask: Tensor | None, places: Tensor) -> Tensor:
        """The layer's output [B, D] at one piece ``places`` [B] of every text.

        Keys and values are needed of all pieces, the rest of the layer at one.
        """
        own = hidden[torch.arange(len(hidden), device=hidden.device), places]
        return self.finish_few(layer, self.attend_at(layer, hidden, mask, places), own)

    def attend_at(self, layer: int, hidden: Tensor, mask: Tensor | None, places: Tensor) -> Tensor:
        """z [B, H * K] at one piece ``places`` [B] of every text, of the input [B, T, D]."""
        own = hidden[torch.arange(len(hidden), device=hidden.device), places]
        return self._attend(layer, own[:, None], hidden, mask)[0][:, 0]

    def finish_few(self, layer: int, z: Tensor, hidden: Tensor) -> Tensor:
        """As :meth:`finish` for few rows, z [B, H * K] and hidden [B, D], with the bits of many."""
        return self.finish(layer, _tall(z), _tall(hidden))[: len(z)]

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
        self, layer: int, asking: Tensor, hidden: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """z [B, Q, H * K] and the pattern of the asking pieces [B, Q, D]."""
        parts = self.layers[layer]

        def heads(flat: Tensor) -> Tensor:
            return flat.unflatten(-1, (-1, parts.d_head)).transpose(1, 2)

        if asking.shape[1] > 1:
            queries = heads(parts.query(asking))
        else:
            queries = heads(parts.query(_tall(asking)))[: len(asking)].expand(-1, -1, _QUERIES, -1)
        pattern = self.pattern_of(layer, queries, heads(parts.key(hidden)), mask)
        z = (pattern @ heads(parts.value(hidden))).transpose(1, 2).flatten(2)
        return z[:, : asking.shape[1]], pattern[:, :, : asking.shape[1]]


def first_states(encoder: Encoder, batch: TokenBatch) -> Tensor:
    """Last hidden states [B, D] of the first piece of every text.

    A plain encoder computes nothing of the last layer that the other pieces alone would need.
    """
    if not is_plain(encoder):
        return encoder.encode(batch)[:, 0]
    places = torch.zeros(len(batch.input_ids), dtype=torch.long)
    return Trunk(encoder).encode_at(batch, places)


def _tall(rows: Tensor) -> Tensor:
    """At least :data:`_FEW` rows, rows of zeros below the given ones."""
    lacking = _FEW - len(rows)
    return rows if lacking <= 0 else torch.cat([rows, rows.new_zeros(lacking, *rows.shape[1:])])
