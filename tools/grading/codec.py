"""Plain data as one line of JSON, and back: what may cross from a submission to the judge.

Nothing that runs code when read (no pickle): numbers, text, None, lists, tuples, sets,
dictionaries, NumPy arrays and torch tensors of numbers or truth values. An object that both sides
hold under the same name, such as the encoder, is passed by that name.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from typing import Any

#: kinds of NumPy arrays that are plain numbers: truth values, whole, real and complex numbers
_KINDS = "biufc"
_TAG = "\0kind"


class CodecError(ValueError):
    """Something that is not plain data, or text that does not describe any."""


def dumps(value: Any, shared: Mapping[str, Any] | None = None) -> str:
    """One line of JSON for ``value``; objects in ``shared`` (by identity) go by their name.

    Raises:
        CodecError: something else than plain data, or data inside of itself.
    """
    names = {id(thing): name for name, thing in (shared or {}).items()}
    try:
        return json.dumps(_pack(value, names))
    except RecursionError:
        raise CodecError("the data is nested too deeply") from None


def loads(text: str, shared: Mapping[str, Any] | None = None) -> Any:
    """The value that ``dumps`` wrote; names are looked up in ``shared``.

    Raises:
        CodecError: the text does not come from ``dumps``, or a name is not there.
    """
    try:
        return _unpack(json.loads(text), shared or {})
    except CodecError:
        raise
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CodecError(f"not readable: {type(error).__name__}") from None


def _pack(value: Any, names: dict[int, str]) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    # Types are asked for exactly: a subclass may carry behaviour that is not data.
    if type(value) in (int, float):
        return value
    if id(value) in names:
        return {_TAG: "shared", "name": names[id(value)]}
    if isinstance(value, list):
        return [_pack(item, names) for item in value]
    if isinstance(value, (tuple, set, frozenset)):
        kind = "tuple" if isinstance(value, tuple) else "set"
        return {_TAG: kind, "items": [_pack(item, names) for item in value]}
    if isinstance(value, dict):
        pairs = [[_pack(key, names), _pack(item, names)] for key, item in value.items()]
        return {_TAG: "dict", "pairs": pairs}
    return _pack_numbers(value)


def _pack_numbers(value: Any) -> Any:
    # Looked up, not imported: a value of a library exists only where it has been imported.
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        array = value.detach().cpu().numpy()
        return _pack_array(array, "tensor")
    if numpy is not None and isinstance(value, numpy.generic):
        return _pack_array(numpy.asarray(value), "scalar")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _pack_array(value, "array")
    raise CodecError(f"a value of type {type(value).__name__} cannot be handed over")


def _pack_array(array: Any, kind: str) -> dict:
    if array.dtype.kind == "U":
        return {_TAG: "text", "shape": list(array.shape), "items": array.ravel().tolist()}
    if array.dtype.kind not in _KINDS:
        raise CodecError(f"an array of {array.dtype} cannot be handed over")
    data = base64.b64encode(array.tobytes()).decode("ascii")
    return {_TAG: kind, "dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def _unpack(value: Any, shared: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_unpack(item, shared) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(_TAG)
    if kind == "shared":
        if value["name"] not in shared:
            raise CodecError(f"there is nothing named {value['name']!r}")
        return shared[value["name"]]
    if kind in ("tuple", "set"):
        items = [_unpack(item, shared) for item in value["items"]]
        return tuple(items) if kind == "tuple" else set(items)
    if kind == "dict":
        return {_unpack(key, shared): _unpack(item, shared) for key, item in value["pairs"]}
    if kind in ("array", "scalar", "tensor", "text"):
        return _unpack_array(value, kind)
    raise CodecError("data of an unknown kind")


def _unpack_array(value: dict, kind: str) -> Any:
    import numpy

    if kind == "text":
        items = value["items"]
        if not all(isinstance(item, str) for item in items):
            raise CodecError("an array of text holds something else")
        return numpy.array(items, dtype=str).reshape(value["shape"])
    dtype = numpy.dtype(value["dtype"])
    if dtype.kind not in _KINDS:
        raise CodecError(f"an array of {dtype} is not plain numbers")
    flat = numpy.frombuffer(base64.b64decode(value["data"], validate=True), dtype=dtype)
    array = flat.reshape(value["shape"]).copy()
    if kind == "tensor":
        import torch

        return torch.from_numpy(array)
    return array[()] if kind == "scalar" else array
