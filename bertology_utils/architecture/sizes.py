"""Where the parameters are: counted on the meta device, which holds shapes and no numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from transformers import AutoModel, BertConfig, PretrainedConfig

from ..encoder import Encoder
from ..encoder.families import embedding_parts, family_of

PARTS = ("token table", "position and segment tables", "attention", "feed-forward", "other")

#: Devlin et al. 2019, section 3
PUBLISHED = {
    "BERT-base": BertConfig(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
    ),
    "BERT-large": BertConfig(
        vocab_size=30522,
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
    ),
}


@dataclass(frozen=True)
class Sizes:
    """Parameters of an encoder without output heads; the pooler counts, as in the paper.

    Attributes:
        n_layers, d_model, n_heads: the architecture.
        parts: name in :data:`PARTS` -> parameters; they sum to ``total``. "other" is layer norms,
            pooler, and ELECTRA's projection.
    """

    n_layers: int
    d_model: int
    n_heads: int
    parts: dict[str, int]

    @property
    def total(self) -> int:
        return sum(self.parts.values())


def count_parameters(config: PretrainedConfig | Encoder) -> Sizes:
    """Count by part, without downloading or allocating anything.

    Raises:
        UnsupportedModelError: not a BERT-like architecture.
        ValueError: transformers refuses the configuration.
    """
    if isinstance(config, Encoder):
        base, config = config.base, config.config
    else:
        base = trunk(config)
    family = family_of(config.model_type)
    tables = embedding_parts(base)
    layers = [family.layer(block) for block in family.blocks(base)]
    parts = {
        "token table": _size(tables.token),
        "position and segment tables": _size(tables.position, tables.segment),
        "attention": sum(_size(x.query, x.key, x.value, x.output) for x in layers),
        "feed-forward": sum(_size(x.ffn_in, x.ffn_out) for x in layers),
    }
    parts["other"] = _size(base) - sum(parts.values())
    return Sizes(len(layers), config.hidden_size, config.num_attention_heads, parts)


def trunk(config: PretrainedConfig) -> nn.Module:
    """An encoder without output heads on the meta device."""
    family_of(config.model_type)
    with torch.device("meta"):
        return AutoModel.from_config(config)


def _size(*modules: nn.Module | None) -> int:
    return sum(p.numel() for module in modules if module is not None for p in module.parameters())
