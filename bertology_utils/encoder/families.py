"""Where each BERT-like architecture keeps its parts.

Four families differ in the names of their submodules, not in their arithmetic (Devlin et al. 2019;
Liu et al. 2019; Sanh et al. 2019; Clark et al. 2020). Everything above this module speaks of
``query``, ``output`` or ``ffn_norm`` and never of an architecture.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .errors import UnsupportedModelError


@dataclass(frozen=True)
class LayerParts:
    """The submodules of one Transformer layer. D = d_model, H = heads, K = d_head, F = FFN width.

    With x the layer's input, the layer computes, in evaluation mode::

        z = softmax(query(x) key(x)^T / sqrt(K)) value(x)     per head
        m = attn_norm(output(z) + x)
        y = ffn_norm(ffn_out(act(ffn_in(m))) + m)
    """

    block: nn.Module  #: whole layer, [B, T, D] -> [B, T, D]
    attention: nn.Module  #: returns (something, pattern [B, H, T, T])
    query: nn.Linear  #: [.., D] -> [.., H * K]
    key: nn.Linear  #: [.., D] -> [.., H * K]
    value: nn.Linear  #: [.., D] -> [.., H * K]
    output: nn.Linear  #: W_O: [.., H * K] -> [.., D]
    attn_norm: nn.LayerNorm  #: over attention output + residual
    ffn_in: nn.Linear  #: [.., D] -> [.., F]
    ffn_out: nn.Linear  #: [.., F] -> [.., D]
    ffn_norm: nn.LayerNorm  #: over FFN output + residual
    act: Callable[[Tensor], Tensor]  #: between the two maps of the FFN

    @property
    def d_head(self) -> int:
        return self.attention.attention_head_size

    @property
    def n_heads(self) -> int:
        """Heads that this layer has now; fewer than the configuration says once pruned."""
        return self.query.out_features // self.d_head


@dataclass(frozen=True)
class EmbeddingParts:
    """The input sum: ``norm(token + position + segment)``, then ELECTRA's projection if any."""

    module: nn.Module
    token: nn.Embedding
    position: nn.Embedding
    segment: nn.Embedding | None  #: None in DistilBERT, which has no segments
    norm: nn.LayerNorm
    projection: nn.Linear | None  #: ELECTRA's embedding_size -> d_model, None elsewhere


@dataclass(frozen=True)
class Family:
    """How to find the parts of one architecture."""

    name: str
    blocks: Callable[[nn.Module], nn.ModuleList]  #: encoder trunk -> its layers
    layer: Callable[[nn.Module], LayerParts]  #: one layer -> its parts
    #: path of the linear maps inside a layer, for surgery: role -> (owner path, attribute)
    paths: dict[str, tuple[str, str]]
    #: head name -> prefixes of its parameters; a head is trained if the file held all of them
    heads: dict[str, tuple[str, ...]]
    mlm: Callable[[nn.Module, Tensor], Tensor] | None
    nsp: Callable[[nn.Module, Tensor], Tensor] | None = None
    rtd: Callable[[nn.Module, Tensor], Tensor] | None = None


def _bert_layer(block: nn.Module) -> LayerParts:
    attention = block.attention
    return LayerParts(
        block=block,
        attention=attention.self,
        query=attention.self.query,
        key=attention.self.key,
        value=attention.self.value,
        output=attention.output.dense,
        attn_norm=attention.output.LayerNorm,
        ffn_in=block.intermediate.dense,
        ffn_out=block.output.dense,
        ffn_norm=block.output.LayerNorm,
        act=block.intermediate.intermediate_act_fn,
    )


def _distilbert_layer(block: nn.Module) -> LayerParts:
    return LayerParts(
        block=block,
        attention=block.attention,
        query=block.attention.q_lin,
        key=block.attention.k_lin,
        value=block.attention.v_lin,
        output=block.attention.out_lin,
        attn_norm=block.sa_layer_norm,
        ffn_in=block.ffn.lin1,
        ffn_out=block.ffn.lin2,
        ffn_norm=block.output_layer_norm,
        act=block.ffn.activation,
    )


def _bert_blocks(base: nn.Module) -> nn.ModuleList:
    return base.encoder.layer


def _distilbert_blocks(base: nn.Module) -> nn.ModuleList:
    return base.transformer.layer


def _bert_nsp(model: nn.Module, hidden: Tensor) -> Tensor:
    return model.cls.seq_relationship(model.base_model.pooler(hidden))


def _distilbert_mlm(model: nn.Module, hidden: Tensor) -> Tensor:
    transformed = model.activation(model.vocab_transform(hidden))
    return model.vocab_projector(model.vocab_layer_norm(transformed))


def _electra_mlm(model: nn.Module, hidden: Tensor) -> Tensor:
    return model.generator_lm_head(model.generator_predictions(hidden))


_BERT_PATHS = {
    "attention": ("attention", "self"),
    "query": ("attention.self", "query"),
    "key": ("attention.self", "key"),
    "value": ("attention.self", "value"),
    "output": ("attention.output", "dense"),
}
_DISTILBERT_PATHS = {
    "attention": ("", "attention"),
    "query": ("attention", "q_lin"),
    "key": ("attention", "k_lin"),
    "value": ("attention", "v_lin"),
    "output": ("attention", "out_lin"),
}

_ROBERTA = Family(
    name="roberta",
    blocks=_bert_blocks,
    layer=_bert_layer,
    paths=_BERT_PATHS,
    heads={"mlm": ("lm_head.",)},
    mlm=lambda model, hidden: model.lm_head(hidden),
)

FAMILIES: dict[str, Family] = {
    "bert": Family(
        name="bert",
        blocks=_bert_blocks,
        layer=_bert_layer,
        paths=_BERT_PATHS,
        heads={
            "mlm": ("cls.predictions.",),
            "nsp": ("cls.seq_relationship.", "bert.pooler."),
        },
        mlm=lambda model, hidden: model.cls.predictions(hidden),
        nsp=_bert_nsp,
    ),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "distilbert": Family(
        name="distilbert",
        blocks=_distilbert_blocks,
        layer=_distilbert_layer,
        paths=_DISTILBERT_PATHS,
        heads={"mlm": ("vocab_transform.", "vocab_layer_norm.", "vocab_projector.")},
        mlm=_distilbert_mlm,
    ),
    # ELECTRA ships as two models: a generator with an MLM head and a discriminator with a
    # replaced-token-detection head; the checkpoint's own parameters say which one it is.
    "electra": Family(
        name="electra",
        blocks=_bert_blocks,
        layer=_bert_layer,
        paths=_BERT_PATHS,
        heads={
            "mlm": ("generator_predictions.", "generator_lm_head."),
            "rtd": ("discriminator_predictions.",),
        },
        mlm=_electra_mlm,
        rtd=lambda model, hidden: model.discriminator_predictions(hidden),
    ),
}


def family_of(model_type: str) -> Family:
    """The family of a transformers ``config.model_type``.

    Raises:
        UnsupportedModelError: the architecture is not one of the BERT-like families.
    """
    if model_type not in FAMILIES:
        raise UnsupportedModelError(
            f"model type {model_type!r} is not supported; supported: {', '.join(sorted(FAMILIES))}"
        )
    return FAMILIES[model_type]


def embedding_parts(base: nn.Module) -> EmbeddingParts:
    """The embedding tables of an encoder trunk."""
    module = base.embeddings
    return EmbeddingParts(
        module=module,
        token=module.word_embeddings,
        position=module.position_embeddings,
        segment=getattr(module, "token_type_embeddings", None),
        norm=module.LayerNorm,
        projection=getattr(base, "embeddings_project", None),
    )


def owner_of(block: nn.Module, path: str) -> nn.Module:
    """The submodule at a dotted path; the block itself for the empty path."""
    return block.get_submodule(path) if path else block


def additive_mask(attention_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """[B, T] of ones and zeros -> [B, 1, 1, T] of 0 and the lowest number, added to the scores."""
    low = torch.finfo(dtype).min
    return (1.0 - attention_mask[:, None, None, :].to(dtype)) * low
