"""This package's side, and plain implementations that share its environment.

Every function prepares and returns a function without arguments to be timed, which returns arrays.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import BertConfig

from bertology_utils.activations import collect, stream
from bertology_utils.cloze import compare_sentences, pll
from bertology_utils.encoder import (
    Encoder,
    evaluating,
    in_bfloat16,
    load_encoder,
    new_encoder,
    pass_cost,
    pieces_at_once,
)
from bertology_utils.interventions import ablate_heads, sweep_heads
from bertology_utils.words import align_all, token_batches

from .arithmetic import product_rate


def _texts(path: str):
    return json.loads(Path(path).read_text(encoding="utf-8"))


def _encoder(folder: str, device: str, precision: str) -> Encoder:
    encoder = load_encoder(folder, device=device)
    return encoder if precision == "float32" else in_bfloat16(encoder)


class _Pair:
    def __init__(self, good: str, bad: str):
        self.good, self.bad = good, bad


def pll_ours(folder: str, texts: str, device: str = "cpu", precision: str = "float32"):
    """Total pseudo-log-likelihoods of all texts in one call."""
    encoder, listed = _encoder(folder, device, precision), _texts(texts)
    return lambda: {"totals": np.array([score.total for score in pll(encoder, listed)])}


def pll_plain(folder: str, texts: str, device: str = "cpu"):
    """Plain transformers: all copies of a sentence through the whole model, sentence by sentence.

    A sentence alone needs no padding, which makes this faster than padded batches.
    """
    encoder, listed = load_encoder(folder, device=device), _texts(texts)
    tokenizer, model = encoder.tokenizer, encoder.model.eval()

    @torch.no_grad()
    def run():
        totals = []
        for text in listed:
            ids = tokenizer(text, return_tensors="pt")["input_ids"][0].to(device)
            inner = torch.arange(1, len(ids) - 1, device=device)
            copies = ids.repeat(len(inner), 1)
            rows = torch.arange(len(inner), device=device)
            copies[rows, inner] = tokenizer.mask_token_id
            logits = model(input_ids=copies).prediction_logits
            scores = logits[rows, inner].log_softmax(-1)
            totals.append(scores[rows, ids[inner]].sum().item())
        return {"totals": np.array(totals)}

    return run


def pairs_ours(folder: str, pairs: str, device: str = "cpu"):
    """Good minus bad total of every pair."""
    encoder = load_encoder(folder, device=device)
    listed = [_Pair(*pair) for pair in _texts(pairs)]
    return lambda: {"margins": np.array(compare_sentences(encoder, listed).margins)}


def collect_ours(folder: str, texts: str, device: str = "cpu", precision: str = "float32"):
    """All hidden states and patterns, reduced to a few numbers a text."""
    encoder, listed = _encoder(folder, device, precision), _texts(texts)

    def run():
        n_layers, n_heads, n = encoder.n_layers, encoder.n_heads, len(listed)
        hidden = np.empty((n_layers + 1, n))
        pattern = np.empty((n_layers, n_heads, n))
        for cache in stream(encoder, listed, ["hidden_states", "pattern"]):
            index = list(cache.batch.index)
            mask = cache.batch.attention_mask.to(device)
            for layer, states in enumerate(cache.layers["hidden_states"]):
                means = (states.square().mean(-1) * mask).sum(1) / mask.sum(1)
                hidden[layer, index] = means.cpu().float().numpy()
            for layer, patterns in enumerate(cache.layers["pattern"]):
                pattern[layer, :, index] = patterns[:, :, 0, 0].cpu().float().numpy()
        return {"hidden": hidden, "pattern": pattern}

    return run


def nothing_kept(folder: str, texts: str, device: str = "cpu"):
    """Batches read by name, with no name given."""
    encoder, listed = load_encoder(folder, device=device), _texts(texts)

    def run():
        n = sum(len(cache.batch) for cache in stream(encoder, listed, []))
        return {"n": np.array([n])}

    return run


def bare_forward(folder: str, texts: str, device: str = "cpu"):
    """The same batches through the model's own forward pass and nothing else."""
    encoder, listed = load_encoder(folder, device=device), _texts(texts)
    budget = {"max_tokens": pieces_at_once(encoder, 4096), "pass_cost": pass_cost(encoder)}

    def run():
        n = 0
        for batch in token_batches(encoder, listed, **budget):
            with evaluating(encoder):
                encoder.encode(batch)
            n += len(batch)
        return {"n": np.array([n])}

    return run


def to_disk(folder: str, texts: str, device: str = "cpu"):
    """Every hidden state and pattern of every piece into a folder, in float16."""
    encoder, listed = load_encoder(folder, device=device), _texts(texts)

    def run():
        with tempfile.TemporaryDirectory() as place:
            names = ["hidden_states", "pattern"]
            found = collect(
                encoder, listed, names, reduce="piece", out=Path(place) / "run", dtype="float16"
            )
            size = found.arrays["hidden_states"].nbytes + found.patterns.values.nbytes
        return {"bytes": np.array([size])}

    return run


def _deep(folder: str, n_layers: int | None, device: str) -> Encoder:
    """The model; or a fresh one of the same width with other depth."""
    encoder = load_encoder(folder, device=device)
    if n_layers is None:
        return encoder
    config = BertConfig(**{**encoder.config.to_dict(), "num_hidden_layers": n_layers})
    name = f"{n_layers} layers"
    return new_encoder(config, encoder.tokenizer, seed=0, name=name, device=device)


def _sweep(folder: str, texts: str, n_layers: int | None, device: str):
    encoder, listed = _deep(folder, n_layers, device), _texts(texts)
    mask = encoder.tokenizer.mask_token_id
    return encoder, listed, [row.input_ids.index(mask) for row in align_all(encoder, listed)]


def sweep_ours(
    folder: str, texts: str, direction: str, n_layers: int | None = None, device: str = "cpu"
):
    """Every head silenced, read at the mask along a direction of the last layer."""
    encoder, listed, places = _sweep(folder, texts, n_layers, device)
    vector = torch.from_numpy(np.load(direction)).to(encoder.device)

    def run():
        found = sweep_heads(encoder, listed, lambda hidden, _batch: hidden @ vector, places=places)
        return {"values": found.values}

    return run


def sweep_naive(
    folder: str, texts: str, direction: str, n_layers: int | None = None, device: str = "cpu"
):
    """One run of the encoder a head, with this package's own hooks and batches, made once."""
    encoder, listed, places = _sweep(folder, texts, n_layers, device)
    vector = torch.from_numpy(np.load(direction)).to(encoder.device)

    def run():
        values = np.empty((encoder.n_layers, encoder.n_heads, len(listed)))
        batches = list(token_batches(encoder, listed))
        for layer in range(encoder.n_layers):
            for head in range(encoder.n_heads):
                for batch in batches:
                    index = list(batch.index)
                    with evaluating(encoder), ablate_heads(encoder, {layer: [head]}):
                        hidden = encoder.encode(batch)
                        own = hidden[range(len(index)), [places[i] for i in index]]
                        values[layer, head, index] = (own @ vector).cpu().numpy()
        return {"values": values}

    return run


#: vocabulary numbers of the two words whose logits are compared at the mask
WORDS = (2000, 3000)


def sweep_ours_words(folder: str, texts: str, n_layers: int | None = None, device: str = "cpu"):
    """Every head silenced: by how much one word is preferred to another at the mask."""
    encoder, listed, places = _sweep(folder, texts, n_layers, device)
    head = encoder.model.cls.predictions
    with torch.no_grad():
        vector = head.decoder.weight[WORDS[0]] - head.decoder.weight[WORDS[1]]
        offset = head.decoder.bias[WORDS[0]] - head.decoder.bias[WORDS[1]]

    def run():
        found = sweep_heads(
            encoder,
            listed,
            lambda hidden, _batch: head.transform(hidden) @ vector + offset,
            places=places,
        )
        return {"values": found.values}

    return run


def sweep_plain(folder: str, texts: str, n_layers: int | None = None, device: str = "cpu"):
    """Plain transformers: a hook silences one head, the whole model runs on all texts in one batch,
    and two of its logits are read at the mask."""
    encoder, listed, _ = _sweep(folder, texts, n_layers, device)
    model, width = encoder.model.eval(), encoder.d_head
    inputs = encoder.tokenizer(listed, padding=True, return_tensors="pt").to(device)
    places = (inputs["input_ids"] == encoder.tokenizer.mask_token_id).int().argmax(1)
    rows = torch.arange(len(listed), device=device)

    @torch.no_grad()
    def run():
        values = np.empty((encoder.n_layers, encoder.n_heads, len(listed)))
        for layer, block in enumerate(model.bert.encoder.layer):
            for head in range(encoder.n_heads):

                def off(_module, args, first=head * width):
                    z = args[0].clone()
                    z[..., first : first + width] = 0
                    return (z,)

                handle = block.attention.output.dense.register_forward_pre_hook(off)
                logits = model(**inputs).prediction_logits[rows, places]
                handle.remove()
                values[layer, head] = (logits[:, WORDS[0]] - logits[:, WORDS[1]]).cpu().numpy()
        return {"values": values}

    return run


def peak(device: str, precision: str):
    """Operations a second that large products reach."""
    return lambda: {"rate": np.array(product_rate(device, getattr(torch, precision)))}


def mask_direction(encoder: Encoder) -> Tensor:
    """[D] a fixed direction of unit length, the difference of two rows of the vocabulary."""
    table = encoder.embeddings.token.weight.detach()
    vector = table[2000] - table[3000]
    return vector / vector.norm()
