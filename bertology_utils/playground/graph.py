"""BERT with its masked-language-model head as an ONNX graph, its matrices rounded to int8.

Built operator by operator from the weights, so that the piece table is stored once although both
ends of the model read it, and so that one run gives a page everything it draws. It takes one
text, without padding; T pieces, L layers, H heads, V vocabulary.

Inputs (int64):
    ``input_ids`` [T];
    ``places`` [M, 2]: layer (0 = input embeddings) and position of the hidden states that the
    masked-language-model head reads;
    ``alike`` [K]: pieces to compare with the whole vocabulary.
Outputs (float32):
    ``logits`` [M, V];
    ``attentions`` [L, H, T, T], rows attend to columns;
    ``cosines`` [K, V] between rows of the piece table, that is without context.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from ..encoder import Encoder, UnsupportedModelError
from .rounding import Rounded, round_matrix

OPSET = 21  # the first in which parts of a row have scales of their own
IR_VERSION = 10
#: neighbouring weights that share a scale
BLOCK = 32


def build_graph(
    encoder: Encoder,
    moments: Mapping[nn.Linear, np.ndarray] | None = None,
    block: int = BLOCK,
) -> onnx.ModelProto:
    """Return the ONNX model of a whole BERT with its masked-language-model head.

    Args:
        encoder: the model; it is only read.
        moments: what :func:`~bertology_utils.playground.calibration.input_moments` saw of the
            inputs of the linear layers; with it they are rounded so that their outputs change
            least, without it each weight to the nearest.
        block: neighbouring weights that share a scale; must divide the width.

    Raises:
        UnsupportedModelError: not such a model, or one with heads cut out.
    """
    _check(encoder)
    model, config = encoder.model, encoder.config
    graph = _Graph(block, moments or {})
    trunk, head = model.bert, model.cls.predictions
    table = _Table(graph, head.decoder)
    state = _embed(graph, trunk.embeddings, table)
    states, attentions = [state], []
    for layer in trunk.encoder.layer:
        state, attention = _layer(graph, layer, state, config.num_attention_heads)
        states.append(state)
        attentions.append(attention)
    graph.add("Concat", [graph.raised(part) for part in attentions], "attentions", axis=0)

    stack = graph.add("Concat", [graph.raised(part) for part in states], axis=0)
    read = graph.add("GatherND", [stack, "places"])
    read = graph.add("Gelu", [graph.linear(read, head.transform.dense)])
    read = graph.norm(read, head.transform.LayerNorm)
    compared = graph.add("LpNormalization", [table.rows("alike")], axis=1, p=2)
    # One product answers both questions, since the table unfolds to four times its size.
    asked = graph.add("Concat", [read, compared], axis=0)
    both = graph.add("Gemm", [asked, table.whole()], transB=1)
    n_read = graph.add("Gather", [graph.add("Shape", ["places"]), graph.integers([0])])
    sizes = graph.add("Concat", [n_read, graph.add("Shape", ["alike"])], axis=0)
    logits, products = graph.add_several("Split", [both, sizes], 2, axis=0)
    graph.add("Add", [logits, graph.constant(head.bias)], "logits")
    graph.add("Mul", [products, graph.constant(table.inverse_lengths())], "cosines")
    return graph.finished(config)


def _check(encoder: Encoder) -> None:
    """Refuse what the graph would compute wrongly."""
    config = encoder.config
    if config.model_type != "bert" or not encoder.has_mlm:
        raise UnsupportedModelError(f"{encoder.name!r} is no BERT with a trained MLM head")
    if config.hidden_act != "gelu":
        raise UnsupportedModelError(f"{encoder.name!r} uses {config.hidden_act}, not exact gelu")
    if set(encoder.heads_per_layer) != {encoder.n_heads}:
        raise UnsupportedModelError(f"{encoder.name!r} has heads cut out")
    decoder = encoder.model.cls.predictions.decoder.weight
    if decoder is not encoder.model.bert.embeddings.word_embeddings.weight:
        raise UnsupportedModelError(f"{encoder.name!r} reads and writes with two different tables")


def _embed(graph: _Graph, embeddings: nn.Module, table: _Table) -> str:
    # All positions belong to the first segment, so its vector is added to theirs beforehand.
    segment = embeddings.token_type_embeddings.weight[0]
    positions = graph.matrix(embeddings.position_embeddings.weight + segment)
    length = graph.add("Shape", ["input_ids"])
    here = graph.add("Slice", [positions, graph.integers([0]), length])
    return graph.norm(graph.add("Add", [table.rows("input_ids"), here]), embeddings.LayerNorm)


def _layer(graph: _Graph, layer: nn.Module, state: str, n_heads: int) -> tuple[str, str]:
    """One encoder layer: state [T, D] -> new state [T, D], attention [H, T, T]."""
    attention = layer.attention
    heads = {
        name: graph.add(
            "Reshape",
            [graph.linear(state, getattr(attention.self, name)), graph.integers([0, n_heads, -1])],
        )
        for name in ("query", "key", "value")
    }
    width = attention.self.query.out_features // n_heads
    queries = graph.add("Transpose", [heads["query"]], perm=[1, 0, 2])
    keys = graph.add("Transpose", [heads["key"]], perm=[1, 2, 0])
    values = graph.add("Transpose", [heads["value"]], perm=[1, 0, 2])
    scale = graph.constant(np.float32(width**-0.5))
    scores = graph.add("Mul", [graph.add("MatMul", [queries, keys]), scale])
    weights = graph.add("Softmax", [scores], axis=-1)
    mixed = graph.add("Transpose", [graph.add("MatMul", [weights, values])], perm=[1, 0, 2])
    mixed = graph.add("Reshape", [mixed, graph.integers([0, -1])])
    mixed = graph.linear(mixed, attention.output.dense)
    state = graph.norm(graph.add("Add", [mixed, state]), attention.output.LayerNorm)
    inner = graph.add("Gelu", [graph.linear(state, layer.intermediate.dense)])
    inner = graph.linear(inner, layer.output.dense)
    return graph.norm(graph.add("Add", [inner, state]), layer.output.LayerNorm), weights


class _Graph:
    """An ONNX graph that grows node by node; every value is named by its number."""

    def __init__(self, block: int, moments: Mapping[nn.Linear, np.ndarray]) -> None:
        self._block = block
        self.moments = moments
        self._nodes: list[onnx.NodeProto] = []
        self._stored: list[onnx.TensorProto] = []

    def add(self, operator: str, inputs: Sequence[str], output: str = "", **attributes) -> str:
        """Add a node and return the name of its output."""
        output = output or f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def add_several(self, operator: str, inputs: Sequence[str], n: int, **attributes) -> list[str]:
        """Add a node with ``n`` outputs and return their names."""
        outputs = [f"v{len(self._nodes)}_{i}" for i in range(n)]
        self._nodes.append(helper.make_node(operator, list(inputs), outputs, **attributes))
        return outputs

    def constant(self, values: np.ndarray | np.float32 | Tensor) -> str:
        """Store values as they are."""
        array = _array(values) if isinstance(values, Tensor) else np.asarray(values)
        name = f"c{len(self._stored)}"
        self._stored.append(numpy_helper.from_array(array, name))
        return name

    def integers(self, values: Sequence[int]) -> str:
        return self.constant(np.array(values, np.int64))

    def rounded(
        self, weights: Tensor, moment: np.ndarray | None = None
    ) -> tuple[Rounded, str, str]:
        """Store a matrix in int8; return it and the names of its integers and scales."""
        made = round_matrix(_array(weights), self._block, moment)
        return made, self.constant(made.integers), self.constant(made.scales)

    def unfolded(self, integers: str, scales: str) -> str:
        """Rounded rows as float32."""
        wide = self.add("Cast", [scales], to=TensorProto.FLOAT)
        return self.add("DequantizeLinear", [integers, wide], axis=1, block_size=self._block)

    def matrix(self, weights: Tensor, moment: np.ndarray | None = None) -> str:
        """Store a matrix in int8 and use it in float32."""
        _, integers, scales = self.rounded(weights, moment)
        return self.unfolded(integers, scales)

    def linear(self, value: str, layer: nn.Linear) -> str:
        """``layer`` applied to ``value`` [N, in]."""
        weights = self.matrix(layer.weight, self.moments.get(layer))
        return self.add("Gemm", [value, weights, self.constant(layer.bias)], transB=1)

    def norm(self, value: str, layer: nn.LayerNorm) -> str:
        gain, bias = self.constant(layer.weight), self.constant(layer.bias)
        return self.add("LayerNormalization", [value, gain, bias], axis=-1, epsilon=layer.eps)

    def raised(self, value: str) -> str:
        """``value`` with a new first axis."""
        return self.add("Unsqueeze", [value, self.integers([0])])

    def finished(self, config) -> onnx.ModelProto:
        """The checked model."""
        n_layers, n_heads = config.num_hidden_layers, config.num_attention_heads
        whole, real = TensorProto.INT64, TensorProto.FLOAT
        graph = helper.make_graph(
            self._nodes,
            "bert-mlm-int8",
            [
                helper.make_tensor_value_info("input_ids", whole, ["T"]),
                helper.make_tensor_value_info("places", whole, ["M", 2]),
                helper.make_tensor_value_info("alike", whole, ["K"]),
            ],
            [
                helper.make_tensor_value_info("logits", real, ["M", config.vocab_size]),
                helper.make_tensor_value_info("attentions", real, [n_layers, n_heads, "T", "T"]),
                helper.make_tensor_value_info("cosines", real, ["K", config.vocab_size]),
            ],
            initializer=self._stored,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="bertology_utils",
        )
        onnx.checker.check_model(model)
        return model


class _Table:
    """The piece table [V, D], stored once."""

    def __init__(self, graph: _Graph, decoder: nn.Linear) -> None:
        self._graph = graph
        # Rounded for the output's sake: an error there reaches every answer, at the input only
        # one token. Rows stay within a step or so of where they were.
        self._made, self._integers, self._scales = graph.rounded(
            decoder.weight, graph.moments.get(decoder)
        )

    def rows(self, ids: str) -> str:
        """The rows of some pieces, [N, D]; only they are unfolded."""
        add = self._graph.add
        return self._graph.unfolded(
            add("Gather", [self._integers, ids]), add("Gather", [self._scales, ids])
        )

    def whole(self) -> str:
        return self._graph.unfolded(self._integers, self._scales)

    def inverse_lengths(self) -> np.ndarray:
        """1 / length of each row, [V]; 0 for a row of zeros, which is like nothing."""
        lengths = np.linalg.norm(self._made.restored(), axis=1)
        return np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 1e-6)


def _array(weights: Tensor) -> np.ndarray:
    return weights.detach().to("cpu").float().numpy()
