"""From a name to an :class:`~bertology_utils.encoder.Encoder`, and back to a folder."""

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from huggingface_hub.utils import logging as hub_logging
from safetensors.torch import load_file
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as hf_logging

from ..defaults import DEFAULT_MODEL, MODEL_VARIABLE
from ..writing import whole_folder
from .errors import DeviceUnavailableError, UnknownModelError, UnsupportedModelError
from .families import family_of
from .hub import first_line, model_folder
from .model import Encoder
from .shrink import KEPT_HEADS, shrink_heads

MODELS_FOLDER = Path(__file__).resolve().parent.parent / "models"
#: configuration field: output heads with trained weights
TRAINED_HEADS = "bertology_trained_heads"
WEIGHTS_FILE = "model.safetensors"


def load_encoder(name: str | os.PathLike | None = None, *, device: str | None = None) -> Encoder:
    """Load a BERT-like encoder in float32 and evaluation mode, from safetensors only.

    Args:
        name: an embedded model, a local folder or a hub id, looked for in this order. By default
            the environment variable ``BERTOLOGY_MODEL``, else ``"bertology-mini-uncased"``.
        device: such as ``"cpu"`` or ``"cuda"``; by default CUDA where present, else the CPU.

    Raises:
        UnknownModelError: no such model, or it has no safetensors weights.
        UnsupportedModelError: not a BERT, RoBERTa, DistilBERT or ELECTRA encoder.
        DeviceUnavailableError: CUDA asked for and not there.
    """
    if name is None:
        name = os.environ.get(MODEL_VARIABLE) or DEFAULT_MODEL
    chosen = os.fspath(name)
    place = _device(device)
    with _quiet():
        source, shown = _locate(chosen)
        config = _read(AutoConfig, source, shown)
        family_of(config.model_type)
        if getattr(config, "is_decoder", False):
            raise UnsupportedModelError(f"{shown!r} is a decoder; an encoder is needed")
        tokenizer = _read(AutoTokenizer, source, shown)
        if not tokenizer.is_fast:
            raise UnsupportedModelError(f"{shown!r} has no fast tokenizer, so no character offsets")
        load = _load_shrunk if getattr(config, KEPT_HEADS, None) else _load_whole
        model, missing = load(config, source, shown)
    heads = _trained_heads(model, missing, shown)
    return Encoder(model.to(place).eval(), tokenizer, place, shown, heads)


def new_encoder(
    config: PretrainedConfig,
    tokenizer: PreTrainedTokenizerBase,
    *,
    seed: int = 0,
    name: str = "new",
    device: str | None = None,
) -> Encoder:
    """A freshly initialised encoder of the given configuration, in evaluation mode.

    Its output heads are as random as its layers and count as present. The global random state is
    left as it was.

    Raises:
        UnsupportedModelError, DeviceUnavailableError: as for :func:`load_encoder`.
    """
    model = _fresh(_model_class(config), config, seed)
    place = _device(device)
    heads = frozenset(_heads_in(model))
    return Encoder(model.to(place).eval(), tokenizer, place, name, heads)


def random_encoder(like: Encoder, seed: int = 0) -> Encoder:
    """The control: the architecture and tokenizer of ``like`` with fresh random weights."""
    model = _fresh(type(like.model), like.config, seed)
    name = f"{like.name} (random, seed {seed})"
    return Encoder(
        model.to(like.device).eval(), like.tokenizer, like.device, name, like.trained_heads
    )


def save_encoder(encoder: Encoder, folder: str | os.PathLike) -> Path:
    """Write model and tokenizer to a new folder that :func:`load_encoder` reads back.

    Pruned models are written with their small matrices. The folder appears complete or not at all.

    Raises:
        FileExistsError: ``folder`` exists already.
        NotWrittenError: a full disk, or a folder that takes nothing.
    """
    target = Path(folder)
    if target.exists():
        raise FileExistsError(f"{target.name!r} exists already; choose another folder")
    before = getattr(encoder.config, TRAINED_HEADS, None)
    try:
        setattr(encoder.config, TRAINED_HEADS, sorted(encoder.trained_heads))
        with whole_folder(target) as scratch:
            with _quiet():
                # Under the names that the modules have now: older releases of transformers would
                # otherwise write those of the first BERTs, which only they themselves translate.
                encoder.model.save_pretrained(
                    scratch, max_shard_size="1TB", save_original_format=False
                )
            encoder.tokenizer.save_pretrained(scratch)
    finally:
        if before is None:
            delattr(encoder.config, TRAINED_HEADS)
        else:
            setattr(encoder.config, TRAINED_HEADS, before)
    return target


def _device(device: str | None) -> torch.device:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise DeviceUnavailableError(f"{device!r} is not the name of a device") from error
    if place.type == "cuda":
        count = torch.cuda.device_count()
        if not torch.cuda.is_available() or (place.index or 0) >= count:
            raise DeviceUnavailableError(
                f"device {device!r} was asked for, but PyTorch sees {count} CUDA devices here"
            )
    return place


def _locate(name: str) -> tuple[str, str]:
    """The folder to load from, and the name to show (never a path of this machine)."""
    if name == Path(name).name and _is_model(MODELS_FOLDER / name):
        return str(MODELS_FOLDER / name), name
    if _is_model(Path(name)):
        return name, Path(name).resolve().name
    if name == DEFAULT_MODEL:
        raise UnknownModelError(f"the embedded model {name!r} is missing from this installation")
    if Path(name).is_absolute() or name.startswith(".") or name.count("/") > 1 or not name.strip():
        raise UnknownModelError(f"no model folder {name[:200]!r} (a config.json is expected in it)")
    return str(model_folder(name)), name


def _is_model(folder: Path) -> bool:
    try:
        return (folder / "config.json").is_file()
    except (OSError, ValueError):
        return False  # a name that no file system takes


def _read(auto, source: str, shown: str, **options):
    """``auto.from_pretrained`` from a folder; code that comes with a model is never run."""
    try:
        return auto.from_pretrained(
            source, local_files_only=True, trust_remote_code=False, **options
        )
    except UnsupportedModelError:
        raise
    except Exception as failure:  # damaged files make the libraries raise nearly anything
        # The libraries name the folder, which is this machine's business only.
        reason = first_line(failure).replace(source, shown)
        raise UnknownModelError(
            f"cannot load the model {shown!r} (its files cannot be read: {reason})"
        ) from failure


def _auto_class(config: PretrainedConfig):
    generator = "ElectraForMaskedLM" in (config.architectures or ())
    return AutoModelForMaskedLM if generator else AutoModelForPreTraining


def _model_class(config: PretrainedConfig) -> type[PreTrainedModel]:
    family_of(config.model_type)
    return _auto_class(config)._model_mapping[type(config)]


def _load_whole(config, source: str, shown: str) -> tuple[PreTrainedModel, set[str]]:
    model, info = _read(
        _auto_class(config),
        source,
        shown,
        config=config,
        dtype=torch.float32,
        attn_implementation="eager",
        use_safetensors=True,
        output_loading_info=True,
    )
    return model, set(info["missing_keys"])


def _load_shrunk(config, source: str, shown: str) -> tuple[PreTrainedModel, set[str]]:
    """Models with heads cut out have matrices that the configuration alone does not describe."""
    weights = Path(source) / WEIGHTS_FILE
    if not weights.is_file():
        raise UnknownModelError(f"{shown!r} has no {WEIGHTS_FILE}")
    model = _fresh(_model_class(config), config, seed=0)
    state = {key: value.float() for key, value in load_file(weights).items()}
    missing = set(model.load_state_dict(state, strict=False).missing_keys)
    model.tie_weights()
    tied = {key for key in missing if key in (getattr(model, "all_tied_weights_keys", None) or {})}
    return model, missing - tied


def _fresh(model_class: type[PreTrainedModel], config: PretrainedConfig, seed: int):
    """A new model with its own random stream; heads that ``config`` records as cut stay cut."""
    config = copy.deepcopy(config)
    kept = getattr(config, KEPT_HEADS, None) or {}
    setattr(config, KEPT_HEADS, {})
    with torch.random.fork_rng(devices=[]), _quiet():
        torch.manual_seed(seed)
        model = model_class._from_config(config, attn_implementation="eager", dtype=torch.float32)
    if kept:
        shrink_heads(model, {int(layer): heads for layer, heads in kept.items()})
    return model


def _heads_in(model: PreTrainedModel) -> Iterator[str]:
    """Output heads whose modules this model class has."""
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    for head, prefixes in family_of(model.config.model_type).heads.items():
        if all(any(name.startswith(prefix) for name in names) for prefix in prefixes):
            yield head


def _trained_heads(model: PreTrainedModel, missing: set[str], shown: str) -> frozenset[str]:
    """Heads that came from the file; a head that transformers made up does not count."""
    family = family_of(model.config.model_type)
    prefixes = tuple(prefix for group in family.heads.values() for prefix in group)
    lost = sorted(key for key in missing if not key.startswith(prefixes))
    lost = [key for key in lost if ".pooler." not in key]
    if lost:
        raise UnknownModelError(
            f"the weights of {shown!r} lack {len(lost)} encoder parameters, first {lost[0]!r}"
        )
    found = {
        head
        for head in _heads_in(model)
        if not any(key.startswith(family.heads[head]) for key in missing)
    }
    recorded = getattr(model.config, TRAINED_HEADS, None)
    return frozenset(found if recorded is None else found & set(recorded))


@contextmanager
def _quiet() -> Iterator[None]:
    """Hold back transformers' progress bars and load reports; problems are raised instead."""
    verbosity, bars = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    hub_verbosity = hub_logging.get_verbosity()
    hub_logging.set_verbosity_error()
    hf_logging.set_verbosity_error()
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        hub_logging.set_verbosity(hub_verbosity)
        hf_logging.set_verbosity(verbosity)
        if bars:
            hf_logging.enable_progress_bar()
