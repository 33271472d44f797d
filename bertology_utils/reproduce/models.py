"""Which models to reproduce claims on: the embedded one, any folder or hub id, random weights."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..defaults import DEFAULT_MODEL, MODEL_VARIABLE
from .errors import ReproduceError

#: Stands for the model that is used when none is named.
EMBEDDED = ""
_RANDOM = re.compile(r"random(?::(?P<seed>[0-9]+))?")


@dataclass(frozen=True)
class ModelChoice:
    """A model as asked for.

    Attributes:
        source: value of BERTOLOGY_MODEL; empty for the embedded model and for random weights.
        name: the name under which results are kept.
        random_seed: seed of fresh weights for the architecture of ``source``; None: its own.
    """

    source: str
    name: str
    random_seed: int | None = None


def choose(names: Sequence[str]) -> tuple[ModelChoice, ...]:
    """Read the names of a command line; no name means the default model.

    ``random`` or ``random:SEED`` is the embedded model's architecture with fresh weights.

    Raises:
        ReproduceError: two models would share one name, or a name is empty.
    """
    chosen: dict[str, ModelChoice] = {}
    for name in names or [os.environ.get(MODEL_VARIABLE) or DEFAULT_MODEL]:
        if not name.strip():
            raise ReproduceError("a model's name is empty")
        choice = _read(name, DEFAULT_MODEL)
        if choice.name in chosen:
            same = (
                "the model {!r} is named twice"
                if chosen[choice.name] == choice
                else ("two different models are called {!r}; rename a folder")
            )
            raise ReproduceError(same.format(choice.name))
        chosen[choice.name] = choice
    return tuple(chosen.values())


def _read(name: str, embedded: str) -> ModelChoice:
    random = _RANDOM.fullmatch(name)
    if random:
        digits = random["seed"] or "0"
        if len(digits) > 9:
            raise ReproduceError(f"the seed of {name[:20]!r}... has more than nine digits")
        seed = int(digits)
        return ModelChoice(EMBEDDED, f"{embedded}-random-{seed}", seed)
    if not name.isprintable():
        raise ReproduceError(f"{name[:40]!r} is no name of a model")
    try:
        is_folder = (Path(name) / "config.json").is_file()
    except OSError:
        raise ReproduceError(f"{name[:40]!r}... is too long for the name of a model") from None
    if is_folder:
        folder = Path(name).resolve()  # the cells run in a folder of their own
        return ModelChoice(str(folder), folder.name)
    return ModelChoice(EMBEDDED if name == embedded else name, name)
