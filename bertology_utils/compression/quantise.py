"""Fewer bits: eight-bit arithmetic, packed codes of two to eight bits, training with rounding.

Eight bits use whole-number matrix products, the kernel that torchao calls for dynamic int8, on
plain tensors: ``torch.ao.quantization`` and PyTorch's quantised data types are deprecated.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor, nn

from .data import Labelled
from .errors import CompressionError
from .model import Compact, linear_maps, replaced
from .training import Loss, Recipe, label_loss, train

#: weights that share a scale and a lowest level
GROUP = 128
#: weights of a matrix from which centres are computed, about
MOST = 1_000_000


class Int8Linear(nn.Module):
    """A linear map with 8-bit weights; inputs are rounded to 8 bits row by row while running.

    Args:
        size_in, size_out: of the map. Filled by :meth:`of` or from a file.
    """

    def __init__(self, size_in: int, size_out: int):
        super().__init__()
        self.in_features, self.out_features = size_in, size_out
        self.register_buffer("codes", torch.zeros(size_out, size_in, dtype=torch.int8))
        self.register_buffer("scale", torch.ones(size_out))
        self.register_buffer("bias", torch.zeros(size_out))

    @classmethod
    def of(cls, linear: nn.Linear) -> Int8Linear:
        """Round a dense map; every output has a scale of its own."""
        made = cls(linear.in_features, linear.out_features)
        weight = linear.weight.detach()
        made.scale = (weight.abs().amax(1) / 127).clamp_min(1e-12)
        made.codes = torch.round(weight / made.scale[:, None]).clamp(-127, 127).to(torch.int8)
        if linear.bias is not None:
            made.bias = linear.bias.detach().clone()
        return made

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        rows = x.reshape(-1, self.in_features)
        step = (rows.abs().amax(1, keepdim=True) / 127).clamp_min(1e-12)
        whole = torch.round(rows / step).to(torch.int8)
        product = torch._int_mm(whole, self.codes.T).to(x.dtype)
        return (product * step * self.scale + self.bias).view(*x.shape[:-1], self.out_features)


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Whole numbers below 2^bits as bytes without gaps, the lowest bits first."""
    # Eight codes fill `bits` bytes exactly, so eight at a time become one word.
    eights = np.pad(codes.reshape(-1), (0, -codes.size % 8)).reshape(-1, 8).astype(np.uint64)
    shifts = np.arange(8, dtype=np.uint64) * np.uint64(bits)
    words = (eights << shifts).sum(1, dtype=np.uint64)
    whole = words.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :bits]
    return np.ascontiguousarray(whole).reshape(-1)[: -(-codes.size * bits // 8)]


def unpack(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """The inverse of :func:`pack`, uint8 [count]."""
    words = np.zeros((-(-count // 8), 8), dtype=np.uint8)
    words[:, :bits] = np.pad(packed, (0, len(words) * bits - len(packed))).reshape(-1, bits)
    numbers = words.view("<u8").reshape(-1)
    mask = np.uint64(2**bits - 1)
    codes = np.empty((len(words), 8), dtype=np.uint8)
    for place in range(8):
        codes[:, place] = (numbers >> np.uint64(place * bits)) & mask
    return codes.reshape(-1)[:count]


def group_size(columns: int) -> int:
    """Weights per scale in rows of ``columns``: :data:`GROUP` where it fits, else a whole row."""
    return GROUP if columns % GROUP == 0 else columns


def levels(weight: Tensor, bits: int) -> tuple[Tensor, Tensor, Tensor]:
    """Round a matrix [R, C] to 2^bits even levels between the extremes of each group.

    Returns:
        codes [R, C], and scale and lowest level of each group [R, C / group], in 16 bits.

    Raises:
        CompressionError: bits outside 1..8.
    """
    if not 1 <= bits <= 8:
        raise CompressionError(f"{bits} bits; codes have 1 to 8")
    rows, columns = weight.shape
    groups = weight.detach().reshape(rows, -1, group_size(columns))
    low = groups.amin(-1).half()
    scale = ((groups.amax(-1) - low.float()) / (2**bits - 1)).clamp_min(1e-7).half()
    scale = scale.clamp_min(torch.finfo(torch.float16).tiny)
    codes = torch.round((groups - low.float()[..., None]) / scale.float()[..., None])
    return codes.clamp(0, 2**bits - 1).reshape(rows, columns), scale, low


def rounded(weight: Tensor, bits: int) -> Tensor:
    """The matrix as it comes back after :func:`levels`."""
    codes, scale, low = levels(weight, bits)
    rows, columns = weight.shape
    groups = codes.reshape(rows, -1, group_size(columns))
    return (groups * scale.float()[..., None] + low.float()[..., None]).reshape(rows, columns)


class PackedMatrix(nn.Module):
    """A matrix [R, C] stored in few bits and unpacked when it is needed.

    With ``centres``, codes point into one table of 2^bits values and ``outliers`` weights are kept
    in full (GOBO, Zadeh et al. 2020); without, codes are even levels by group.
    """

    def __init__(self, rows: int, columns: int, bits: int, *, centres: bool, outliers: int = 0):
        super().__init__()
        self.rows, self.columns, self.bits = rows, columns, bits
        self.centres, self.outliers = centres, outliers
        size = -(-rows * columns * bits // 8)
        self.register_buffer("packed", torch.zeros(size, dtype=torch.uint8))
        if centres:
            self.register_buffer("table", torch.zeros(2**bits))
            self.register_buffer("where", torch.zeros(outliers, dtype=torch.int32))
            self.register_buffer("what", torch.zeros(outliers))
        else:
            shape = (rows, columns // group_size(columns))
            self.register_buffer("scale", torch.ones(shape, dtype=torch.float16))
            self.register_buffer("low", torch.zeros(shape, dtype=torch.float16))

    @classmethod
    def even(cls, weight: Tensor, bits: int) -> PackedMatrix:
        """Even levels by group."""
        made = cls(*weight.shape, bits, centres=False)
        codes, made.scale, made.low = levels(weight, bits)
        made.packed = torch.from_numpy(pack(codes.numpy(), bits))
        return made

    @classmethod
    def clustered(cls, weight: Tensor, bits: int, *, share: float = 0.001) -> PackedMatrix:
        """2^bits centres by k-means, and a share of outliers in full.

        Outliers are the weights least likely under a normal distribution, that is, those furthest
        from the mean.
        """
        flat = weight.detach().flatten().numpy()
        distance = np.abs(flat - flat.mean())
        n_out = max(1, round(share * flat.size))
        border = np.partition(distance, flat.size - n_out)[flat.size - n_out]
        outside = np.flatnonzero(distance >= border)
        inside = flat[distance < border]
        # A million weights say as well as ten where the centres are.
        centres = _centres(np.sort(inside[:: max(1, inside.size // MOST)]), 2**bits)
        codes = np.searchsorted((centres[1:] + centres[:-1]) / 2, flat)
        made = cls(*weight.shape, bits, centres=True, outliers=len(outside))
        made.packed = torch.from_numpy(pack(codes, bits))
        made.table = torch.from_numpy(centres.astype(np.float32))
        made.where = torch.from_numpy(outside.astype(np.int32))
        made.what = torch.from_numpy(flat[outside])
        return made

    def dense(self) -> Tensor:
        """The matrix [R, C] in full, unpacked anew."""
        count = self.rows * self.columns
        codes = torch.from_numpy(unpack(self.packed.numpy(), self.bits, count))
        if self.centres:
            flat = self.table[codes.long()]
            flat[self.where.long()] = self.what
            return flat.view(self.rows, self.columns)
        groups = codes.float().view(self.rows, self.scale.shape[1], -1)
        full = groups * self.scale.float()[..., None] + self.low.float()[..., None]
        return full.view(self.rows, self.columns)


def _centres(values: np.ndarray, k: int, rounds: int = 12) -> np.ndarray:
    """k centres of sorted values: equal shares at first, then means of the nearest (k-means)."""
    totals = np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])
    edges = np.linspace(0, len(values), k + 1).astype(int)
    centres = np.empty(k)
    for _ in range(rounds):
        sizes = np.diff(edges)
        sums = np.diff(totals[edges])
        held = sizes > 0
        centres[held] = sums[held] / sizes[held]
        inner = np.searchsorted(values, (centres[1:] + centres[:-1]) / 2)
        edges = np.concatenate([[0], inner, [len(values)]])
    return np.sort(centres)


class PackedLinear(nn.Module):
    """A linear map whose matrix is unpacked at every call: small on disk, slow to run."""

    def __init__(self, matrix: PackedMatrix, bias: Tensor):
        super().__init__()
        self.matrix = matrix
        self.register_buffer("bias", bias)
        self.out_features, self.in_features = matrix.rows, matrix.columns

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        return nn.functional.linear(x, self.matrix.dense(), self.bias)


class PackedEmbedding(nn.Module):
    """A token table in few bits; unpacked once and kept, since a look-up needs few rows of it."""

    def __init__(self, matrix: PackedMatrix):
        super().__init__()
        self.matrix = matrix
        self._table: Tensor | None = None

    def forward(self, ids: Tensor) -> Tensor:
        """ids [B, T] -> [B, T, D]."""
        if self._table is None:
            self._table = self.matrix.dense()
        return nn.functional.embedding(ids, self._table)


def _with_maps(model: Compact, make) -> Compact:
    made = copy.deepcopy(model)
    for name, linear in linear_maps(made).items():
        replaced(made, name, make(name, linear))
    return made.eval()


def _bias(linear: nn.Linear) -> Tensor:
    return linear.bias.detach().clone()


#: (digest of a table, what makes a packed one, bits) -> the packed table, while a model has it
_TABLES: WeakValueDictionary[tuple, PackedEmbedding] = WeakValueDictionary()


def _packed_tokens(model: Compact, make: Callable[..., PackedMatrix], bits: int) -> nn.Module:
    """Models that were made of one encoder have one table: its numbers are shared packed, too."""
    if not isinstance(model.token, nn.Embedding):
        raise CompressionError(f"the token table is already a {type(model.token).__name__}")
    table = model.token.weight.detach()
    digest = hashlib.sha256(table.cpu().contiguous().numpy().data).hexdigest()
    key = (digest, tuple(table.shape), make.__name__, bits)
    found = _TABLES.get(key)
    if found is None:
        found = _TABLES[key] = PackedEmbedding(make(table, bits))
        return found
    # A module of its own, which may be moved without the others.
    shared = [t for t in (*found.buffers(), found._table) if t is not None]
    return copy.deepcopy(found, {id(tensor): tensor for tensor in shared})


def int8(model: Compact) -> Compact:
    """A copy that multiplies in 8 bits; its token table is packed to 8 bits, too."""
    made = _with_maps(model, lambda _, linear: Int8Linear.of(linear))
    made.token = _packed_tokens(model, PackedMatrix.even, 8)
    return made


def packed(model: Compact, bits: int | Mapping[int, int], *, token_bits: int = 8) -> Compact:
    """A copy whose matrices are stored in few bits, even levels by group.

    Args:
        model: stays as it is.
        bits: of every block, or {block: bits}.
        token_bits: of the token table.
    """
    given = bits if isinstance(bits, Mapping) else dict.fromkeys(range(len(model.blocks)), bits)
    made = _with_maps(model, lambda name, linear: PackedLinear(
        PackedMatrix.even(linear.weight, given[block_of(name)]), _bias(linear)))  # fmt: skip
    made.token = _packed_tokens(model, PackedMatrix.even, token_bits)
    return made


def gobo(model: Compact, bits: int = 3) -> Compact:
    """A copy with 2^bits centres per matrix and outliers in full, no training (Zadeh et al. 2020).

    The token table is treated alike.
    """
    made = _with_maps(model, lambda _, linear: PackedLinear(
        PackedMatrix.clustered(linear.weight, bits), _bias(linear)))  # fmt: skip
    made.token = _packed_tokens(model, PackedMatrix.clustered, bits)
    return made


def block_of(name: str) -> int:
    """Number of the block in the name of one of its maps, ``"blocks.3.query"``."""
    return int(name.split(".")[1])


def train_rounded(
    model: Compact, data: Labelled, recipe: Recipe, bits: int | Mapping[int, int], *,
    loss: Loss = label_loss,
) -> Compact:  # fmt: skip
    """Train a copy that feels the rounding (Zafrir et al. 2019; Jacob et al. 2018).

    Forward passes use rounded matrices, gradients pass through as if they were not (the
    straight-through estimator). The result is dense; :func:`int8` or :func:`packed` round it.

    Args:
        model: stays as it is.
        data, recipe, loss: as for :func:`train`.
        bits: of every block, or {block: bits}.
    """
    given = bits if isinstance(bits, Mapping) else dict.fromkeys(range(len(model.blocks)), bits)
    made = copy.deepcopy(model)
    felt = {}
    for name, linear in linear_maps(made).items():
        felt[name] = _Felt(linear, given[block_of(name)])
        replaced(made, name, felt[name])
    train(made, data, recipe, loss=loss)
    for name, module in felt.items():
        replaced(made, name, module.linear)
    return made


class _Felt(nn.Module):
    def __init__(self, linear: nn.Linear, bits: int):
        super().__init__()
        self.linear, self.bits = linear, bits

    def forward(self, x: Tensor) -> Tensor:
        weight = self.linear.weight
        if self.bits == 8:
            scale = (weight.detach().abs().amax(1, keepdim=True) / 127).clamp_min(1e-12)
            near = torch.round(weight.detach() / scale) * scale
        else:
            near = rounded(weight, self.bits)
        return nn.functional.linear(x, weight + (near - weight).detach(), self.linear.bias)
