"""One file per model: safetensors, with a plan of the model in its header.

Matrices that hold many zeros are written as a bit per weight and the weights that are left.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialised
from safetensors.torch import save_file
from torch import Tensor, nn

from ..writing import whole_file
from .elimination import Eliminating
from .errors import CompressionError
from .model import MAPS, NORMS, Compact, Layer
from .quantise import Int8Linear, PackedEmbedding, PackedLinear, PackedMatrix
from .students import Recurrent
from .tables import FactorisedEmbedding, TrimmedEmbedding

PLAN = "bertology_compact"
#: endings of the two parts of a matrix with many zeros
_BITS, _VALUES = "!bits", "!values"
#: a bit per weight pays from this share of zeros on
_WORTH = 1 / 16


def save(model: nn.Module, path: str | os.PathLike) -> Path:
    """Write a model of this room into one file, complete or not at all.

    Raises:
        CompressionError: a module that has no plan.
        FileExistsError: there is such a file already.
        NotWrittenError: the folder takes no file.
    """
    target = Path(path)
    if target.exists():
        raise FileExistsError(f"{target.name!r} exists already; choose another name")
    tensors, header = _content(model)
    with whole_file(target) as scratch:
        save_file(tensors, scratch, metadata=header)
    return target


def _content(model: nn.Module) -> tuple[dict[str, Tensor], dict[str, str]]:
    """What a model's file holds: its tensors, and its plan for the header."""
    plan = describe(model)
    tensors: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        tensors |= _shortened(name, tensor.detach().cpu().contiguous(), plan)
    return tensors, {PLAN: json.dumps(plan)}


def load(path: str | os.PathLike) -> nn.Module:
    """Read a model back, in evaluation mode.

    Raises:
        CompressionError: the file is none of ours, or its tensors do not fit its plan.
    """
    source = Path(path)
    try:
        with safe_open(source, framework="pt") as file:
            header = (file.metadata() or {}).get(PLAN)
            stored = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError) as error:
        raise CompressionError(f"{source.name!r} cannot be read: {error}") from error
    if header is None:
        raise CompressionError(f"{source.name!r} holds no plan of a compressed model")
    plan = json.loads(header)
    sparse = plan.pop("sparse", {})
    model = build(plan)
    try:
        state = {name: tensor for name, tensor in stored.items() if "!" not in name}
        for name, shape in sparse.items():
            state[name] = _full(stored[name + _BITS], stored[name + _VALUES], shape)
        model.load_state_dict(state)
    except (KeyError, RuntimeError) as error:
        raise CompressionError(f"{source.name!r} does not fit its plan: {error}") from error
    for module in model.modules():
        if isinstance(module, TrimmedEmbedding):
            module.renumber()
    return model.eval()


def file_bytes(model: nn.Module) -> int:
    """Size of the file that :func:`save` writes; all of it is made, but not put on a disk."""
    tensors, header = _content(model)
    return len(serialised(tensors, metadata=header))


def reloaded(model: nn.Module) -> nn.Module:
    """The model as it comes back from its file."""
    with tempfile.TemporaryDirectory() as folder:
        return load(save(model, Path(folder) / "model.safetensors"))


def _shortened(name: str, tensor: Tensor, plan: dict) -> dict[str, Tensor]:
    zeros = 1 - int(torch.count_nonzero(tensor)) / max(1, tensor.numel())
    if tensor.dtype != torch.float32 or tensor.ndim != 2 or zeros < _WORTH:
        return {name: tensor}
    there = tensor.flatten() != 0
    plan.setdefault("sparse", {})[name] = list(tensor.shape)
    bits = torch.from_numpy(np.packbits(there.numpy()))
    return {name + _BITS: bits, name + _VALUES: tensor.flatten()[there]}


def _full(bits: Tensor, values: Tensor, shape: list[int]) -> Tensor:
    count = int(np.prod(shape))
    flat = torch.zeros(count)
    flat[torch.from_numpy(np.unpackbits(bits.numpy(), count=count).astype(bool))] = values
    return flat.view(shape)


def describe(module: nn.Module | None) -> dict:
    """What has to be built before weights can be filled in, as plain JSON.

    Raises:
        CompressionError: a kind of module that this room does not write.
    """
    kind = type(module).__name__
    match module:
        case None:
            return {"kind": "none"}
        case Compact():
            names = ("token", "position", "norm", "projection", "head")
            parts = {name: describe(getattr(module, name)) for name in names}
            blocks = [describe(block) for block in module.blocks]
            return {"kind": kind, "parts": parts, "blocks": blocks,
                    "order": list(module.order), "reads": module.reads}  # fmt: skip
        case Layer():
            parts = {name: describe(getattr(module, name)) for name in (*MAPS, *NORMS)}
            return {"kind": kind, "parts": parts, "d_head": module.d_head, "act": module.act}
        case Eliminating():
            return {"kind": kind, "model": describe(module.model), "keep": list(module.keep),
                    "choice": module.choice, "seed": module.seed}  # fmt: skip
        case Recurrent():
            return {"kind": kind, "token": describe(module.token), "width": module.width,
                    "size": module.size, "classes": module.head.out_features}  # fmt: skip
        case nn.Linear():
            return {"kind": kind, "in": module.in_features, "out": module.out_features,
                    "bias": module.bias is not None}  # fmt: skip
        case nn.Embedding():
            return {"kind": kind, "rows": module.num_embeddings, "width": module.embedding_dim}
        case nn.LayerNorm():
            return {"kind": kind, "shape": list(module.normalized_shape), "eps": module.eps}
        case FactorisedEmbedding():
            return {"kind": kind, "table": describe(module.table), "up": describe(module.up)}
        case TrimmedEmbedding():
            return {"kind": kind, "inner": describe(module.inner), "kept": len(module.kept),
                    "vocabulary": module.vocabulary, "unknown": module.unknown}  # fmt: skip
        case Int8Linear():
            return {"kind": kind, "in": module.in_features, "out": module.out_features}
        case PackedLinear() | PackedEmbedding():
            return {"kind": kind, "matrix": describe(module.matrix)}
        case PackedMatrix():
            return {"kind": kind, "rows": module.rows, "columns": module.columns,
                    "bits": module.bits, "centres": module.centres,
                    "outliers": module.outliers}  # fmt: skip
    raise CompressionError(f"a {kind} cannot be written to a file")


def build(plan: dict) -> nn.Module | None:
    """A module as :func:`describe` tells it, with weights still to be filled in.

    Raises:
        CompressionError: an unknown kind of module, or a plan that lacks something.
    """
    try:
        return _BUILDERS[plan["kind"]](plan)
    except KeyError as error:
        raise CompressionError(f"the plan of a model is unknown or lacks {error}") from error


def _compact(plan: dict) -> Compact:
    part = {name: build(inner) for name, inner in plan["parts"].items()}
    blocks = [build(block) for block in plan["blocks"]]
    return Compact(part["token"], part["position"], part["norm"], part["projection"], blocks,
                   plan["order"], part["head"], plan["reads"])  # fmt: skip


def _linear(plan: dict) -> nn.Linear:
    return nn.Linear(plan["in"], plan["out"], bias=plan["bias"])


def _trimmed(plan: dict) -> TrimmedEmbedding:
    # Numbers that load() overwrites; they only have to name the unknown piece once.
    count, unknown = plan["kept"], plan["unknown"]
    spare = [n for n in range(count) if n != unknown][: count - 1]
    kept = torch.tensor(sorted([*spare, unknown]))
    return TrimmedEmbedding(build(plan["inner"]), kept, plan["vocabulary"], unknown)


_BUILDERS: dict[str, Callable[[dict], nn.Module | None]] = {
    "none": lambda plan: None,
    "Compact": _compact,
    "Layer": lambda plan: Layer(
        {name: build(inner) for name, inner in plan["parts"].items()}, plan["d_head"], plan["act"]
    ),
    "Eliminating": lambda plan: Eliminating(
        build(plan["model"]), plan["keep"], plan["choice"], plan["seed"]
    ),
    "Recurrent": lambda plan: Recurrent(
        build(plan["token"]), plan["width"], plan["size"], plan["classes"]
    ),
    "Linear": _linear,
    "Embedding": lambda plan: nn.Embedding(plan["rows"], plan["width"]),
    "LayerNorm": lambda plan: nn.LayerNorm(plan["shape"], eps=plan["eps"]),
    "FactorisedEmbedding": lambda plan: FactorisedEmbedding(
        build(plan["table"]), build(plan["up"])
    ),
    "TrimmedEmbedding": _trimmed,
    "Int8Linear": lambda plan: Int8Linear(plan["in"], plan["out"]),
    "PackedLinear": lambda plan: PackedLinear(
        build(plan["matrix"]), torch.zeros(plan["matrix"]["rows"])
    ),
    "PackedEmbedding": lambda plan: PackedEmbedding(build(plan["matrix"])),
    "PackedMatrix": lambda plan: PackedMatrix(
        plan["rows"], plan["columns"], plan["bits"], centres=plan["centres"],
        outliers=plan["outliers"],
    ),
}  # fmt: skip
