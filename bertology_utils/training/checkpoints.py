"""Training checkpoints without pickle: weights and Adam moments as safetensors, rest as JSON."""

from __future__ import annotations

import hashlib
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from ..writing import whole_folder

#: Settings that may differ on resuming, as long as the decay has not begun.
ADJUSTABLE = ("steps", "decay_steps")
KEPT = 2
_FILES = ("model.safetensors", "optimizer.safetensors")
_DAMAGED = (OSError, ValueError, LookupError, TypeError)


class CheckpointError(ValueError):
    """A checkpoint that does not fit the run it should continue."""


def list_steps(out: Path) -> list[int]:
    """Steps of the complete checkpoints in a run folder, ascending."""
    if not out.is_dir():
        return []
    return sorted(int(p.name[5:]) for p in out.glob("step-*") if p.name[5:].isdigit())


def _tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    # Tied tensors are stored once: named_parameters yields each object a single time.
    return {name: p.detach() for name, p in model.named_parameters()}


def save(out: Path, step: int, model: torch.nn.Module, optimizer, config: dict) -> Path:
    """Write ``out/step-N``: all of it or nothing, then drop all but the newest two.

    Raises
    ------
    NotWrittenError
        When the disk is full or the folder takes nothing; earlier checkpoints stay.
    """
    target = out / f"step-{step}"
    moments = {}
    for index, state in optimizer.state_dict()["state"].items():
        for key, value in state.items():
            moments[f"{index}.{key}"] = torch.as_tensor(value).detach().contiguous()
    with whole_folder(target, replace=True) as folder:
        save_file(
            {k: v.contiguous() for k, v in _tensors(model).items()}, folder / "model.safetensors"
        )
        save_file(moments, folder / "optimizer.safetensors")
        sums = {name: _sum(folder / name) for name in _FILES}
        state = {"step": step, "config": config, "sums": sums}
        (folder / "state.json").write_text(json.dumps(state, indent=1))
    for old in list_steps(out)[:-KEPT]:
        shutil.rmtree(out / f"step-{old}")
    return target


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def resume(
    out: Path, model: torch.nn.Module, optimizer, config: dict,
    report: Callable[[str], None] = warnings.warn,
) -> int:  # fmt: skip
    """Load the newest sound checkpoint of ``out`` into model and optimiser; its step, or 0.

    ``report`` is told of damaged ones, which are passed over.

    Raises
    ------
    CheckpointError
        When settings differ, parameters are missing, the decay began under another plan, or all
        checkpoints are damaged.
    """
    steps = list_steps(out)
    for step in reversed(steps):
        folder = out / f"step-{step}"
        try:
            saved = _read_state(folder)
        except _DAMAGED as error:
            report(f"{folder.name} is damaged ({error}); going on from the one before")
        else:
            _check_settings(folder, saved, config)
            load_weights(folder, model)
            _load_moments(folder, optimizer)
            return int(saved["step"])
    if steps:
        raise CheckpointError(f"all checkpoints in {out} are damaged; delete them to start again")
    return 0


def read_config(folder: Path) -> dict:
    """The run's settings as a checkpoint keeps them.

    Raises
    ------
    FileNotFoundError
        When there is no such checkpoint.
    ValueError
        When its files are not as they were written.
    """
    return _read_state(folder)["config"]


def _read_state(folder: Path) -> dict:
    """The settings of a checkpoint whose files are as they were written."""
    saved = json.loads((folder / "state.json").read_text())
    if not isinstance(saved["config"], dict) or not isinstance(saved["step"], int):
        raise ValueError("state.json is none of ours")
    for name, kept in saved.get("sums", {}).items():
        if name in _FILES and _sum(folder / name) != kept:
            raise ValueError(f"{name} was changed after it was written")
    return saved


def _check_settings(folder: Path, saved: dict, config: dict) -> None:
    differing = sorted(k for k in config if config[k] != saved["config"].get(k))
    decaying = saved["step"] > saved["config"]["steps"] - saved["config"]["decay_steps"]
    forbidden = differing if decaying else [k for k in differing if k not in ADJUSTABLE]
    if forbidden:
        raise CheckpointError(
            f"{folder.name} was made with other settings: "
            + ", ".join(f"{k}={saved['config'].get(k)!r} (now {config[k]!r})" for k in forbidden)
        )


def _load_moments(folder: Path, optimizer) -> None:
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in load_file(folder / "optimizer.safetensors").items():
        index, key = name.split(".", 1)
        moments.setdefault(int(index), {})[key] = tensor
    plan = optimizer.state_dict()
    optimizer.load_state_dict({"state": moments, "param_groups": plan["param_groups"]})


def load_weights(folder: Path, model: torch.nn.Module) -> None:
    """Copy a checkpoint's weights into ``model``; every parameter must be there.

    Raises
    ------
    CheckpointError
        When a parameter is missing or has another shape.
    """
    stored = load_file(folder / "model.safetensors")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name not in stored or stored[name].shape != parameter.shape:
                raise CheckpointError(f"{folder.name}: no fitting tensor for {name!r}")
            parameter.copy_(stored[name])
