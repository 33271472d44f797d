"""The machinery under every intervention: edits that are always undone.

One hook per place runs a list of edits in the order in which they were made, so that inner
contexts act on what outer ones left. The hook is put in front of all others: transformers
installs its own recording hooks on the first use of ``output_hidden_states`` and keeps them, and
they, like our readings, must see the edited values.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

from ..encoder import BertologyError, Encoder, LayerParts


class NoEffectError(BertologyError):
    """An intervention that no forward pass reached, or that changed nothing."""


#: (value, positional arguments of the module) -> new value
Function = Callable[[Any, tuple], Any]


@dataclass(frozen=True, eq=False)
class Edit:
    """Replace what flows into (``"in"``) or out of (``"out"``) a module."""

    module: nn.Module
    side: str
    function: Function


@dataclass(frozen=True, eq=False)
class PatternEdit:
    """Replace the attention pattern [B, H, T, T] of a layer between softmax and values."""

    layer: LayerParts
    function: Callable[[Tensor], Tensor]


class _Stack:
    """The edits now active at one place, and the handles of the hooks that serve them."""

    def __init__(self, install: Callable[["_Stack"], list]):
        self.functions: list[Callable] = []
        self.handles = install(self)

    def remove(self, function: Callable) -> bool:
        """Take one edit away; True once the place is back to normal."""
        # By identity, and the latest first: the same function may have been put in twice.
        last = max(i for i, f in enumerate(self.functions) if f is function)
        del self.functions[last]
        if not self.functions:
            for handle in self.handles:
                handle.remove()
        return not self.functions


#: configuration field that names the attention function
_ATTENTION = "_attn_implementation"

_ACTIVE: WeakKeyDictionary[nn.Module, dict[str, _Stack]] = WeakKeyDictionary()


@contextmanager
def editing(encoder: Encoder, edits: Sequence[Edit | PatternEdit]) -> Iterator[None]:
    """Apply edits to every forward pass inside the block, and undo them whatever happens.

    Raises:
        NoEffectError: the block ended well without a forward pass reaching any of the edits.
    """
    reached = False

    def counted(function: Callable) -> Callable:
        def wrapper(*args):
            nonlocal reached
            reached = True
            return function(*args)

        return wrapper

    with ExitStack() as stack:
        if any(isinstance(edit, PatternEdit) for edit in edits):
            stack.callback(setattr, encoder.config, _ATTENTION, getattr(encoder.config, _ATTENTION))
            setattr(encoder.config, _ATTENTION, _EDITED)
        for edit in edits:
            _put(edit, counted(edit.function), stack)
        yield
    if edits and not reached:
        raise NoEffectError(f"no forward pass of {encoder.name!r} reached the intervention")


def is_edited(encoder: Encoder) -> bool:
    """True while an intervention is active on the encoder."""
    return any(_ACTIVE.get(module) for module in encoder.model.modules())


def _put(edit: Edit | PatternEdit, function: Callable, stack: ExitStack) -> None:
    if isinstance(edit, Edit):
        module, kind = edit.module, edit.side
        install = _before if edit.side == "in" else _after
    else:
        module, kind = edit.layer.attention, "pattern"
        install = _inside
    places = _ACTIVE.setdefault(module, {})
    if kind not in places:
        places[kind] = _Stack(lambda active: install(module, active))
    places[kind].functions.append(function)

    def undo() -> None:
        if places[kind].remove(function):
            del places[kind]

    stack.callback(undo)


def _before(module: nn.Module, active: _Stack) -> list:
    def hook(_module, args):
        value = args[0]
        for function in active.functions:
            value = function(value, args)
        return (value, *args[1:])

    return [module.register_forward_pre_hook(hook, prepend=True)]


def _after(module: nn.Module, active: _Stack) -> list:
    def hook(_module, args, output):
        for function in active.functions:
            output = function(output, args)
        return output

    return [module.register_forward_hook(hook, prepend=True)]


def _inside(_module: nn.Module, _active: _Stack) -> list:
    return []  # _edited_attention looks the functions up; nothing to hook


def _edited_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **_,
) -> tuple[Tensor, Tensor]:
    """Eager attention with the active edits between softmax and values.

    The pattern lives inside one function call of transformers, out of reach of hooks; its
    registry of attention functions is the one way in.
    """
    scores = query @ key.transpose(-1, -2) * (scaling or query.shape[-1] ** -0.5)
    pattern = torch.softmax(scores if attention_mask is None else scores + attention_mask, dim=-1)
    active = _ACTIVE.get(module, {}).get("pattern")
    for function in active.functions if active else ():
        pattern = function(pattern)
    pattern = nn.functional.dropout(pattern, p=dropout, training=module.training)
    return (pattern @ value).transpose(1, 2).contiguous(), pattern


_EDITED = "bertology_edited"
AttentionInterface.register(_EDITED, _edited_attention)
AttentionMaskInterface.register(_EDITED, eager_mask)
