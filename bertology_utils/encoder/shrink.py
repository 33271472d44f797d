"""Cut attention heads out of a model: smaller q, k, v and output matrices, not masks.

transformers 5 removed its own head pruning; this replaces it, and records the survivors in the
configuration so that the smaller model can be saved and loaded again.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from .families import family_of, owner_of

#: configuration field: {"layer": [original numbers of the heads kept]}
KEPT_HEADS = "bertology_kept_heads"


class NoHeads(nn.Module):
    """Stands where all heads of a layer are gone: what is left of attention is the output bias."""

    def __init__(self, attention: nn.Module, returns_projected: bool):
        super().__init__()
        self.attention_head_size = attention.attention_head_size
        self.returns_projected = returns_projected
        for name, child in attention.named_children():
            self.add_module(name, child)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None, **_):
        """[B, T, D] -> (z [B, T, 0] or the projected bias [B, T, D], pattern [B, 0, T, T])."""
        batch, length, _width = hidden_states.shape
        z = hidden_states.new_zeros(batch, length, 0)
        pattern = hidden_states.new_zeros(batch, 0, length, length)
        return (self.out_lin(z) if self.returns_projected else z), pattern


def _cut(linear: nn.Linear, keep: Tensor, dim: int) -> nn.Linear:
    """A new linear map with only the rows (dim 0) or columns (dim 1) in ``keep``."""
    weight = linear.weight.index_select(dim, keep)
    # Made of one element and filled after: torch warns when it initialises a matrix of none.
    new = nn.Linear(1, 1, bias=linear.bias is not None)
    new.out_features, new.in_features = weight.shape
    new.weight = nn.Parameter(weight.detach().clone(), linear.weight.requires_grad)
    if linear.bias is not None:
        bias = linear.bias.index_select(0, keep) if dim == 0 else linear.bias
        new.bias = nn.Parameter(bias.detach().clone(), linear.bias.requires_grad)
    return new.train(linear.training)


def kept_heads(model: PreTrainedModel) -> dict[int, list[int]]:
    """Original numbers of the surviving heads, for the layers that lost any."""
    return {
        int(layer): list(heads) for layer, heads in getattr(model.config, KEPT_HEADS, {}).items()
    }


def shrink_heads(model: PreTrainedModel, keep: Mapping[int, Sequence[int]]) -> None:
    """Keep only the given heads (positions in the model as it is now), in place.

    Args:
        model: changed in place; its configuration records which original heads survive.
        keep: {layer: positions of the heads to keep}; layers not named keep all.
    """
    family = family_of(model.config.model_type)
    record = kept_heads(model)
    for layer, positions in keep.items():
        block = family.blocks(model.base_model)[layer]
        parts = family.layer(block)
        d_head, n_now = parts.d_head, parts.n_heads
        originals = record.get(layer, list(range(n_now)))
        rows = [head * d_head + i for head in positions for i in range(d_head)]
        index = torch.tensor(rows, dtype=torch.long, device=parts.query.weight.device)
        for role, dim in (("query", 0), ("key", 0), ("value", 0), ("output", 1)):
            path, attribute = family.paths[role]
            owner = owner_of(block, path)
            setattr(owner, attribute, _cut(getattr(owner, attribute), index, dim))
        if not positions:
            path, attribute = family.paths["attention"]
            owner = owner_of(block, path)
            attention = getattr(owner, attribute)
            inside = family.paths["output"][0] == family.paths["query"][0]
            setattr(owner, attribute, NoHeads(attention, inside).train(attention.training))
        record[layer] = [originals[position] for position in positions]
    # JSON turns integer keys into strings, so they are strings from the start.
    setattr(model.config, KEPT_HEADS, {str(layer): heads for layer, heads in record.items()})
