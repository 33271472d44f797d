"""What is trained: all weights, the upper layers, biases, adapters, or the new layer alone."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from ..encoder import Encoder, LayerParts

METHODS = ("all", "top", "biases", "bottleneck", "low_rank", "none")


@dataclass(frozen=True)
class Method:
    """What is trained beside the new layer.

    * ``all``: every weight; * ``top``: the upper ``size`` layers; * ``biases``: the biases of all
      layers and norms (Ben Zaken et al. 2022); * ``bottleneck``: two adapters of width ``size`` a
      layer, and the norms behind them (Houlsby et al. 2019); * ``low_rank``: updates of rank
      ``size`` of query and value matrices (Hu et al. 2022), by the package peft; * ``none``.

    Raises:
        ValueError: no such method, or a size where none is meant, or none where one is.
    """

    name: str = "all"
    size: int = 0

    def __post_init__(self) -> None:
        if self.name not in METHODS:
            raise ValueError(f"no method {self.name!r}; known: {', '.join(METHODS)}")
        if (self.size > 0) != (self.name in ("top", "bottleneck", "low_rank")):
            raise ValueError(f"method {self.name!r} with size {self.size}")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A copy of an encoder ready for training.

    Attributes:
        encoder: the copy; parameters that are not trained need no gradients.
        parameters: what is trained, the token table left out.
        layer: lowest trained layer; None if the embeddings are trained.
    """

    encoder: Encoder
    parameters: tuple[nn.Parameter, ...] = field(repr=False)
    layer: int | None

    @property
    def n_trained(self) -> int:
        """Numbers that are trained."""
        own = sum(p.numel() for p in self.parameters)
        return own + (self.encoder.embeddings.token.weight.numel() if self.layer is None else 0)


def prepare(encoder: Encoder, method: Method, *, seed: int = 0) -> Prepared:
    """Copy an encoder and set it up; ``encoder`` stays as it is.

    Args:
        encoder: any encoder.
        method: what will be trained.
        seed: of the first weights of adapters.

    Raises:
        LayerIndexError: more upper layers than there are.
    """
    blocks = encoder.family.blocks(encoder.base)
    if method.name == "all":
        left_out = _pooler(encoder)
        own = _copy(encoder, [p for p in encoder.base.parameters() if id(p) not in left_out])
        left_out = _pooler(own) | {id(own.embeddings.token.weight)}
        return _ready(own, [p for p in own.base.parameters() if id(p) not in left_out], None)
    if method.name == "top":
        layer = encoder.check_layer(encoder.n_layers - method.size)
        own = _copy(encoder, [p for block in blocks[layer:] for p in block.parameters()])
        blocks = own.family.blocks(own.base)[layer:]
        return _ready(own, [p for block in blocks for p in block.parameters()], layer)
    if method.name == "biases":
        own = _copy(encoder, [p for block in blocks for p in _biases(block)])
        return _ready(own, [p for b in own.family.blocks(own.base) for p in _biases(b)], 0)
    if method.name == "bottleneck":
        own = _copy(encoder, [p for layer in encoder.layers for p in _norms(layer)])
        return _ready(own, _add_bottlenecks(own, method.size, seed), 0)
    if method.name == "low_rank":
        return with_low_rank(encoder, ("task",), method.size, seed=seed)["task"]
    return _ready(_copy(encoder, []), [], encoder.n_layers)


def _copy(encoder: Encoder, trained: Sequence[nn.Parameter]) -> Encoder:
    """A copy in evaluation mode, with weights of its own only where they will be trained.

    The others share their memory with the original, so that many fine-tuned copies stay small.
    """
    own = {id(p) for p in trained}
    shared = {
        id(p): nn.Parameter(p.detach(), requires_grad=False)
        for p in encoder.model.parameters()
        if id(p) not in own
    }
    model = copy.deepcopy(encoder.model, shared).eval().requires_grad_(False)
    return replace(encoder, model=model)


def _ready(own: Encoder, parameters: Sequence[nn.Parameter], layer: int | None) -> Prepared:
    for parameter in parameters:
        parameter.requires_grad_(True)
    return Prepared(own, tuple(parameters), layer)


def draw_layers_anew(prepared: Prepared, layers: Sequence[int], *, seed: int = 0) -> None:
    """Give some layers of a prepared copy BERT's first weights, in place.

    The upper layers of a pre-trained model may be bound to what they were pre-trained for; on few
    examples Zhang et al. (2021, arXiv 2006.05987) drew them anew. Matrices come from a normal
    distribution with the model's own initial spread, biases and shifts are 0, gains are 1.

    Args:
        prepared: whose layers change.
        layers: counted from 0.
        seed: of the new weights.

    Raises:
        LayerIndexError: no such layer.
        ValueError: a layer that will not be trained, and so would stay as drawn.
    """
    own = prepared.encoder
    trained = {id(p) for p in prepared.parameters}
    blocks = own.family.blocks(own.base)
    spread = getattr(own.config, "initializer_range", 0.02)
    draw = torch.Generator().manual_seed(seed)
    for layer in layers:
        block = blocks[own.check_layer(layer)]
        if any(id(p) not in trained for p in block.parameters()):
            raise ValueError(f"layer {layer} is drawn anew, but not all of it is trained")
        gains = {id(m.weight) for m in block.modules() if isinstance(m, nn.LayerNorm)}
        with torch.no_grad():
            for weight in block.parameters():
                if weight.ndim == 2:
                    weight.copy_(spread * torch.randn(weight.shape, generator=draw))
                else:
                    weight.fill_(float(id(weight) in gains))


def _pooler(encoder: Encoder) -> set[int]:
    """The pooler is not on the way to the classifier."""
    pooler = getattr(encoder.base, "pooler", None)
    return set() if pooler is None else {id(p) for p in pooler.parameters()}


def _biases(block: nn.Module) -> list[nn.Parameter]:
    return [p for name, p in block.named_parameters() if name.endswith("bias")]


def _norms(layer: LayerParts) -> list[nn.Parameter]:
    return [*layer.attn_norm.parameters(), *layer.ffn_norm.parameters()]


class Bottleneck(nn.Module):
    """x + up(gelu(down(x))), [..., D] -> [..., D]; at first the identity.

    Args:
        d_model: D; width: of the layer between; seed: of the first weights of ``down``.
    """

    def __init__(self, d_model: int, width: int, seed: int):
        super().__init__()
        self.down, self.up = nn.Linear(d_model, width), nn.Linear(width, d_model)
        draw = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self.down.weight.copy_(torch.randn(width, d_model, generator=draw) / d_model**0.5)
            self.down.bias.zero_()
            self.up.weight.zero_()
            self.up.bias.zero_()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.up(nn.functional.gelu(self.down(x)))


def _add_bottlenecks(own: Encoder, width: int, seed: int) -> list[nn.Parameter]:
    """Adapters behind both output matrices of every layer; their and the norms' parameters."""
    found: list[nn.Parameter] = []
    for number, layer in enumerate(own.layers):
        for place, module in enumerate((layer.output, layer.ffn_out)):
            adapter = Bottleneck(own.d_model, width, seed * 1000 + 2 * number + place)
            # A child of the matrix, so that copies of the model take their own adapter along.
            module.add_module("adapter", adapter.to(own.device))
            module.register_forward_hook(_through_adapter, prepend=True)
            found += adapter.parameters()
        found += _norms(layer)
    return found


def _through_adapter(module: nn.Module, _args: tuple, output: Tensor) -> Tensor:
    return module.adapter(output)


def with_low_rank(
    encoder: Encoder, names: Sequence[str], rank: int, *, seed: int = 0
) -> dict[str, Prepared]:
    """One copy of an encoder with several low-rank adapters, of which one is on at a time.

    Before training or judging with one of them, enter :func:`using`.

    Raises:
        ValueError: no names, or one twice.
    """
    # Imported here: it takes half a second, which no other method needs.
    from peft import LoraConfig, inject_adapter_in_model

    if not names or len(set(names)) != len(names):
        raise ValueError(f"adapters need different names, got {list(names)}")
    own = _copy(encoder, [])
    paths = own.family.paths
    targets = [f"{path}.{last}" for path, last in (paths["query"], paths["value"])]
    config = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=targets)
    with torch.random.fork_rng(), warnings.catch_warnings():
        # Several adapters in one model are what is wanted here.
        warnings.filterwarnings("ignore", message="Already found a `peft_config`")
        torch.manual_seed(seed)
        for name in names:
            inject_adapter_in_model(config, own.base, adapter_name=name)
    own.model.requires_grad_(False)
    found = {}
    for name in names:
        parts = [p for key, p in own.base.named_parameters() if f".{name}." in key]
        found[name] = _ready(own, parts, 0)
    return found


@contextmanager
def using(encoder: Encoder, name: str) -> Iterator[None]:
    """Switch the low-rank adapter called ``name`` on, and all others off.

    Raises:
        KeyError: the encoder has no adapter of that name.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer, set_adapter

    layers = [m for m in encoder.base.modules() if isinstance(m, BaseTunerLayer)]
    have = {adapter for layer in layers for adapter in layer.lora_A}
    if name not in have:
        raise KeyError(f"no adapter {name!r}; there are {', '.join(sorted(have)) or 'none'}")
    before = layers[0].active_adapters
    set_adapter(encoder.base, name)
    try:
        yield
    finally:
        set_adapter(encoder.base, before)
