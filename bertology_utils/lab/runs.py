"""A finished run: its settings, curves and weights, in memory and on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load, save
from transformers import BertConfig

from ..encoder import Encoder, new_encoder
from ..writing import whole_file
from .config import VERSION, LabConfig
from .language import PAIR_LENGTH, vocabulary, word_tokenizer
from .model import EPSILON, Weights


class RunFileError(ValueError):
    """A file of a finished run is damaged or belongs to another run."""


@dataclass(frozen=True, eq=False)
class LabRun:
    """What a run left.

    Attributes:
        config: its settings.
        moments: steps at which it was looked at, 0 first.
        losses: training loss of every step, in nats.
        curves: name -> value at every moment: ``loss`` and ``accuracy`` at gaps in held-out
            sentences, shares of agreement pairs won (``agreement_simple``,
            ``agreement_attractors``), best head of a relation (``head:nsubj``...), ``pair``,
            ``replaced``, ``facts``.
        seconds: of computing; runs trained side by side share theirs evenly.
        weights, early: at the end, and after a tenth of the steps; a leading dimension of 1.
    """

    config: LabConfig
    moments: tuple[int, ...]
    losses: tuple[float, ...]
    curves: Mapping[str, tuple[float, ...]]
    seconds: float
    weights: Weights = field(repr=False)
    early: Weights = field(repr=False)

    def final(self, name: str) -> float:
        """The last value of a curve.

        Raises:
            KeyError: the run has no such curve.
        """
        if name not in self.curves:
            raise KeyError(f"no curve {name!r}; this run has {', '.join(self.curves)}")
        return self.curves[name][-1]

    def encoder(self) -> Encoder:
        """The trained model as an ordinary BERT that every other room takes.

        Raises:
            ValueError: its blocks do not alternate, or its words are not the grammar's.
        """
        config = self.config
        if config.blocks or config.corpus == "facts" or config.objective != "mlm":
            raise ValueError("only masked models of the usual order over the grammar's words")
        shape = BertConfig(
            vocab_size=len(vocabulary()), hidden_size=config.width,
            num_hidden_layers=config.layers, num_attention_heads=config.heads,
            intermediate_size=4 * config.width, max_position_embeddings=PAIR_LENGTH,
            hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, layer_norm_eps=EPSILON,
        )  # fmt: skip
        name = f"lab BERT {config.digest[:8]}"
        encoder = new_encoder(shape, word_tokenizer(), name=name, device="cpu")
        state = encoder.model.state_dict()
        state.update(_as_bert(self.weights, config.layers))
        encoder.model.load_state_dict(state)
        return encoder


def _as_bert(weights: Weights, layers: int) -> dict[str, torch.Tensor]:
    """Our names and [1, in, out] matrices as Hugging Face's names and [out, in]."""
    own = {name: value[0] for name, value in weights.items()}
    found: dict[str, torch.Tensor] = {}

    def put(target: str, name: str) -> None:
        found[f"{target}.weight"] = own[name].T
        found[f"{target}.bias"] = own[f"{name}.bias"][0]

    def norm(target: str, name: str) -> None:
        found[f"{target}.weight"] = own[f"{name}.gain"][0]
        found[f"{target}.bias"] = own[f"{name}.shift"][0]

    tables = "bert.embeddings."
    found[tables + "word_embeddings.weight"] = own["words"]
    found[tables + "position_embeddings.weight"] = own["positions"]
    found[tables + "token_type_embeddings.weight"] = own["segments"]
    norm(tables + "LayerNorm", "embedded")
    for layer in range(layers):
        base = f"bert.encoder.layer.{layer}."
        a, f = str(2 * layer), str(2 * layer + 1)
        parts = zip(("query", "key", "value"), own[f"{a}.in"].T.chunk(3),
                    own[f"{a}.in.bias"][0].chunk(3), strict=True)  # fmt: skip
        for part, matrix, bias in parts:
            found[f"{base}attention.self.{part}.weight"] = matrix
            found[f"{base}attention.self.{part}.bias"] = bias
        put(base + "attention.output.dense", f"{a}.out")
        norm(base + "attention.output.LayerNorm", a)
        put(base + "intermediate.dense", f"{f}.in")
        put(base + "output.dense", f"{f}.out")
        norm(base + "output.LayerNorm", f)
    head = "cls.predictions."
    put(head + "transform.dense", "transform")
    norm(head + "transform.LayerNorm", "transform")
    found[head + "bias"] = own["decoder.bias"][0]
    found[head + "decoder.bias"] = own["decoder.bias"][0]
    found[head + "decoder.weight"] = own["words"]
    return found


def write_run(run: LabRun, folder: Path) -> Path:
    """Write a run as ``DIGEST.safetensors`` and then ``DIGEST.json``, each complete or absent.

    The JSON file comes last, so that where it is, the run is finished; it holds digests of both.

    Raises:
        NotWrittenError: the folder takes no file.
    """
    tensors = {f"final.{name}": value.contiguous() for name, value in run.weights.items()}
    tensors |= {f"early.{name}": value.contiguous() for name, value in run.early.items()}
    target, weights = folder / f"{run.config.digest}.json", save(tensors)
    content = {
        "version": VERSION, "config": asdict(run.config), "moments": run.moments,
        "losses": run.losses, "curves": run.curves, "seconds": run.seconds,
        "weights": _sum(weights),
    }  # fmt: skip
    text = json.dumps({**content, "sum": _sum(json.dumps(content).encode())})
    with whole_file(target) as scratch:
        scratch.write_text(text, encoding="utf-8")
        with whole_file(target.with_suffix(".safetensors")) as other:
            other.write_bytes(weights)
            # All of it is on the disk. An earlier run's text must not go with these weights.
            target.unlink(missing_ok=True)
    return target


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def read_run(config: LabConfig, folder: Path) -> LabRun | None:
    """The finished run of these settings, or None where there is none.

    Raises:
        RunFileError: a file is damaged or belongs to other settings.
    """
    source = folder / f"{config.digest}.json"
    if not source.is_file():
        return None
    try:
        raw = json.loads(source.read_text(encoding="utf-8"))
        content = source.with_suffix(".safetensors").read_bytes()
        if raw["config"] != asdict(config):
            raise RunFileError(f"{source.name} holds another run than its name says")
        own = raw.pop("sum")
        if (own, raw["weights"]) != (_sum(json.dumps(raw).encode()), _sum(content)):
            raise RunFileError(f"{source.name} or its weights were changed after they were written")
        tensors = load(content)
        return LabRun(
            config, tuple(raw["moments"]), tuple(raw["losses"]),
            {name: tuple(values) for name, values in raw["curves"].items()}, raw["seconds"],
            *({n.split(".", 1)[1]: v for n, v in tensors.items() if n.startswith(part)}
              for part in ("final.", "early.")),
        )  # fmt: skip
    except RunFileError:
        raise
    except Exception as error:
        raise RunFileError(f"{source.name} cannot be read ({error})") from error
