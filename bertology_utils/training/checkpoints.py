"""Training checkpoints without pickle: weights and Adam moments as safetensors, rest as JSON."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

#: Settings that may differ on resuming, as long as the decay has not begun.
ADJUSTABLE = ("steps", "decay_steps")
KEPT = 2


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
    """Write ``out/step-N``: all of it or nothing, then drop all but the newest two."""
    target, temporary = out / f"step-{step}", out / f".tmp-{step}-{os.getpid()}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    save_file(
        {k: v.contiguous() for k, v in _tensors(model).items()}, temporary / "model.safetensors"
    )
    moments = {}
    for index, state in optimizer.state_dict()["state"].items():
        for key, value in state.items():
            moments[f"{index}.{key}"] = torch.as_tensor(value).detach().contiguous()
    save_file(moments, temporary / "optimizer.safetensors")
    (temporary / "state.json").write_text(json.dumps({"step": step, "config": config}, indent=1))
    shutil.rmtree(target, ignore_errors=True)
    temporary.rename(target)
    for old in list_steps(out)[:-KEPT]:
        shutil.rmtree(out / f"step-{old}")
    return target


def resume(out: Path, model: torch.nn.Module, optimizer, config: dict) -> int:
    """Load the newest checkpoint of ``out`` into model and optimiser; returns its step or 0.

    Raises
    ------
    CheckpointError
        When settings differ, parameters are missing, or the decay began under another plan.
    """
    steps = list_steps(out)
    if not steps:
        return 0
    folder = out / f"step-{steps[-1]}"
    saved = json.loads((folder / "state.json").read_text())
    differing = sorted(k for k in config if config[k] != saved["config"].get(k))
    decaying = saved["step"] > saved["config"]["steps"] - saved["config"]["decay_steps"]
    forbidden = differing if decaying else [k for k in differing if k not in ADJUSTABLE]
    if forbidden:
        raise CheckpointError(
            f"{folder.name} was made with other settings: "
            + ", ".join(f"{k}={saved['config'].get(k)!r} (now {config[k]!r})" for k in forbidden)
        )
    load_weights(folder, model)
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in load_file(folder / "optimizer.safetensors").items():
        index, key = name.split(".", 1)
        moments.setdefault(int(index), {})[key] = tensor
    plan = optimizer.state_dict()
    optimizer.load_state_dict({"state": moments, "param_groups": plan["param_groups"]})
    return int(saved["step"])


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
