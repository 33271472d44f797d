"""From a training checkpoint to a folder that plain transformers loads.

Command line::

    python -m bertology_utils.training.export RUN/step-N --init START --out FOLDER
"""

from __future__ import annotations

import argparse
import copy
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoTokenizer, BertForPreTraining, BertTokenizer

from ..writing import told
from . import checkpoints
from .pretrain import PretrainConfig, initial_model

#: files that a fast tokenizer needs; the vocabulary is inside tokenizer.json
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
DROPOUT = 0.1


def export_model(
    model: BertForPreTraining, tokenizer, out: str | Path, *, dtype: torch.dtype = torch.float16
) -> Path:
    """Write weights (safetensors, ``dtype``), configuration and tokenizer to a folder.

    Replaces those files of an existing folder and leaves others, such as a model card, alone.
    Dropout, off in pretraining, goes back to BERT's 0.1 for whoever fine-tunes. Tied matrices
    are stored once. Files appear complete or not at all, the weights last.

    Raises:
        ValueError: a weight that is not finite, or too large for ``dtype``.
        NotWrittenError: a full disk, or a folder that takes nothing.
    """
    out = Path(out)
    limit = torch.finfo(dtype).max
    for name, parameter in model.named_parameters():
        if not torch.isfinite(parameter).all() or parameter.abs().max() > limit:
            raise ValueError(f"weight {name!r} does not fit {dtype}")
    with told(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    hidden = {"dir": out.parent, "prefix": f".{out.name}.", "suffix": ".new"}
    with told(out), tempfile.TemporaryDirectory(**hidden) as scratch:
        # A copy, so that the model in hand keeps its precision and its dropout.
        small = BertForPreTraining(copy.deepcopy(model.config)).to(dtype)
        small.load_state_dict(model.state_dict())
        small.tie_weights()
        small.config.hidden_dropout_prob = small.config.attention_probs_dropout_prob = DROPOUT
        small.save_pretrained(scratch)
        plain_tokenizer(tokenizer, model.config.max_position_embeddings).save_pretrained(scratch)
        out.mkdir(exist_ok=True)
        for name in ("config.json", *TOKENIZER_FILES, "model.safetensors"):
            (Path(scratch) / name).chmod(0o644)
            os.replace(Path(scratch) / name, out / name)
    return out


def undo_favour(model: BertForPreTraining, tokenizer, config: PretrainConfig) -> None:
    """Take the favoured pieces' head start out of the output biases, in place.

    A piece that was hidden ``favoured_weight`` times as readily as others stood behind [MASK] that
    much more often than in text, and the head learned these odds. The correction for a changed
    prior (Saerens et al. 2002, doi 10.1162/089976602753284446) divides them by the weight.

    Raises:
        ValueError: a favoured piece is not in the vocabulary.
    """
    weights = config.piece_weights(tokenizer)
    if weights is not None:
        bias = model.cls.predictions.bias
        with torch.no_grad():
            bias -= torch.from_numpy(weights).log().to(bias)


def plain_tokenizer(tokenizer, max_length: int) -> BertTokenizer:
    """BERT's tokenizer over the same vocabulary, without the settings of another use.

    Sentence-embedding tokenizers come with truncation at 128 pieces and padding switched on.
    """
    lowercase = bool(tokenizer.init_kwargs.get("do_lower_case", True))
    return BertTokenizer(
        vocab=tokenizer.get_vocab(), do_lower_case=lowercase, model_max_length=max_length
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the module; see ``--help``."""
    parser = argparse.ArgumentParser(
        prog="python -m bertology_utils.training.export", description=__doc__.splitlines()[0]
    )
    parser.add_argument("checkpoint", type=Path, help="a step-N folder of a run")
    parser.add_argument("--init", required=True, help="folder the run started from")
    parser.add_argument("--out", required=True, type=Path)
    args = parser.parse_args(argv)
    tokenizer = AutoTokenizer.from_pretrained(args.init)
    model = initial_model(args.init, None, seed=0)
    checkpoints.load_weights(args.checkpoint, model)
    undo_favour(model, tokenizer, PretrainConfig(**checkpoints.read_config(args.checkpoint)))
    export_model(model, tokenizer, args.out)


if __name__ == "__main__":
    main()
