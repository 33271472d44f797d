"""Floating-point operations of what runs, whatever it runs on."""

import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry


class Arithmetic(TorchDispatchMode):
    """Counts the operations of matrix products, a multiplication and an addition each.

    PyTorch's own counter hooks every module, and a hooked model takes no fast path.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if formula := flop_registry.get(function._overloadpacket):
            self.operations += formula(*args, **(kwargs or {}), out_val=result)
        return result


def finish_device() -> None:
    """Wait for what a GPU was told to do, which it does later; without one, nothing."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def product_rate(device: str, dtype: torch.dtype) -> float:
    """Operations a second in products of large square matrices: the best of ten."""
    width = 1024 if device == "cpu" else 8192
    one, other = (torch.randn(width, width, device=device).to(dtype) for _ in range(2))
    best = 0.0
    for _ in range(10):
        finish_device()
        start = time.perf_counter()
        one @ other
        finish_device()
        best = max(best, 2 * width**3 / (time.perf_counter() - start))
    return best
