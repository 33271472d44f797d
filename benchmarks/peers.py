"""What others would run, each as its documentation shows; needs the peers' own environment.

Every function prepares (loads models, reads inputs) and returns a function without arguments to be
timed, which returns arrays. Nothing of this repository is imported here but inputs from files.
"""

import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, BertModel


def _texts(path: str):
    return json.loads(Path(path).read_text(encoding="utf-8"))


def _cut(items: list, size: int) -> list[list]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _scorer(folder: str, device: str):
    from minicons import scorer

    # Older than transformers 5, minicons still finds batch_encode_plus here.
    return scorer.MaskedLMScorer(folder, device, torch_dtype=torch.float32)


def pll_minicons(folder: str, texts: str, batch: int, device: str = "cpu"):
    """Total pseudo-log-likelihoods, ``batch`` sentences a call."""
    scorer, parts = _scorer(folder, device), _cut(_texts(texts), batch)

    def run():
        totals = []
        for part in parts:
            totals += scorer.sequence_score(part, reduction=lambda x: x.sum(0).item())
        return {"totals": np.array(totals)}

    return run


def pairs_minicons(folder: str, pairs: str, batch: int, device: str = "cpu"):
    """Good minus bad total of every pair."""
    scorer, parts = _scorer(folder, device), _cut(_texts(pairs), batch)

    def run():
        margins = []
        for part in parts:
            good, bad = (
                scorer.sequence_score([p[i] for p in part], reduction=lambda x: x.sum(0).item())
                for i in (0, 1)
            )
            margins += [g - b for g, b in zip(good, bad, strict=True)]
        return {"margins": np.array(margins)}

    return run


def hooked_encoder(folder: str, device: str):
    """The same weights as a HookedEncoder. Its loader takes no folder, so the
    configuration is written out and its own conversion of weights is called."""
    from transformer_lens import HookedEncoder
    from transformer_lens.config.HookedTransformerConfig import HookedTransformerConfig
    from transformer_lens.pretrained.weight_conversions import convert_bert_weights

    config = BertConfig.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    cfg = HookedTransformerConfig(
        d_model=config.hidden_size,
        d_head=config.hidden_size // config.num_attention_heads,
        n_heads=config.num_attention_heads,
        d_mlp=config.intermediate_size,
        n_layers=config.num_hidden_layers,
        n_ctx=config.max_position_embeddings,
        eps=config.layer_norm_eps,
        d_vocab=config.vocab_size,
        act_fn="gelu",
        attention_dir="bidirectional",
        device=device,
    )
    model = HookedEncoder(cfg, tokenizer)
    source = BertForMaskedLM.from_pretrained(folder, torch_dtype=torch.float32)
    if source.bert.pooler is None:  # the conversion reads a pooler that no masked model has
        source.bert.pooler = BertModel(config).pooler
    if not hasattr(source.cls, "seq_relationship"):
        source.cls.seq_relationship = torch.nn.Linear(config.hidden_size, 2)
    model.load_state_dict(convert_bert_weights(source, cfg), strict=False)
    return model.to(device).eval(), tokenizer


def _batches(tokenizer, texts: list[str], batch: int, by_length: bool, device: str):
    """(numbers of texts, tensors on the device) in the given order, or sorted by length first."""
    order = list(range(len(texts)))
    if by_length:
        order.sort(key=lambda i: len(tokenizer(texts[i])["input_ids"]))
    for part in _cut(order, batch):
        inputs = tokenizer([texts[i] for i in part], padding=True, return_tensors="pt")
        yield part, inputs.to(device)


def _fold(found: dict, part, hidden, patterns, mask) -> None:
    """Reduce activations to a few numbers a text, so that nothing piles up on either side."""
    for layer, states in enumerate(hidden):
        squares = (states.square().mean(-1) * mask).sum(1) / mask.sum(1)
        found["hidden"][layer, part] = squares.cpu().numpy()
    for layer, pattern in enumerate(patterns):
        found["pattern"][layer, :, part] = pattern[:, :, 0, 0].cpu().numpy()


def _empty(n_layers: int, n_heads: int, n: int) -> dict:
    return {"hidden": np.empty((n_layers + 1, n)), "pattern": np.empty((n_layers, n_heads, n))}


def collect_transformer_lens(
    folder: str, texts: str, batch: int, by_length: bool, logits: bool, device: str = "cpu"
):
    """All hidden states and patterns; ``logits=False`` leaves the vocabulary out by hand."""
    model, tokenizer = hooked_encoder(folder, device)
    listed = _texts(texts)
    n_layers = model.cfg.n_layers
    hidden = ["hook_full_embed"]
    hidden += [f"blocks.{i}.hook_normalized_resid_post" for i in range(n_layers)]
    patterns = [f"blocks.{i}.attn.hook_pattern" for i in range(n_layers)]
    wanted = {*hidden, *patterns}

    @torch.no_grad()
    def run():
        found = _empty(n_layers, model.cfg.n_heads, len(listed))
        for part, inputs in _batches(tokenizer, listed, batch, by_length, device):
            mask = inputs["attention_mask"]
            if logits:
                _, cache = model.run_with_cache(
                    inputs["input_ids"],
                    token_type_ids=inputs["token_type_ids"],
                    one_zero_attention_mask=mask,
                    names_filter=lambda name: name in wanted,
                )
            else:
                cache = {}

                def keep(value, hook, cache=cache):
                    cache[hook.name] = value

                with model.hooks(fwd_hooks=[(name, keep) for name in wanted]):
                    model.encoder_output(inputs["input_ids"], inputs["token_type_ids"], mask)
            _fold(found, part, [cache[n] for n in hidden], [cache[n] for n in patterns], mask)
        return found

    return run


def collect_nnsight(folder: str, texts: str, batch: int, by_length: bool, device: str = "cpu"):
    """All hidden states and patterns of the encoder alone (no vocabulary logits)."""
    from nnsight import NNsight

    bert = BertModel.from_pretrained(
        folder, torch_dtype=torch.float32, attn_implementation="eager", add_pooling_layer=False
    )
    bert = bert.to(device).eval()
    tokenizer, listed = AutoTokenizer.from_pretrained(folder), _texts(texts)
    model = NNsight(bert)
    config = bert.config

    @torch.no_grad()
    def run():
        found = _empty(config.num_hidden_layers, config.num_attention_heads, len(listed))
        for part, inputs in _batches(tokenizer, listed, batch, by_length, device):
            with model.trace(**inputs, output_attentions=True):
                hidden = [model.embeddings.output.save()]
                patterns = []
                for layer in model.encoder.layer:
                    patterns.append(layer.attention.self.output[1].save())
                    hidden.append(layer.output[0].save())
                hidden, patterns = hidden.save(), patterns.save()
            _fold(found, part, hidden, patterns, inputs["attention_mask"])
        return found

    return run


def sweep_transformer_lens(
    folder: str, texts: str, direction: str, logits: bool, device: str = "cpu"
):
    """Each head's z set to zero in turn, read at the mask. texts: [text, ...], one batch."""
    model, tokenizer = hooked_encoder(folder, device)
    inputs = tokenizer(_texts(texts), padding=True, return_tensors="pt").to(device)
    ids, types, mask = (inputs[k] for k in ("input_ids", "token_type_ids", "attention_mask"))
    places = (ids == tokenizer.mask_token_id).int().argmax(1)
    rows = torch.arange(len(ids), device=device)
    vector = torch.from_numpy(np.load(direction)).to(device)

    @contextmanager
    def without(layer: int, head: int):
        def off(z, hook):
            z[:, :, head] = 0
            return z

        with model.hooks(fwd_hooks=[(f"blocks.{layer}.attn.hook_z", off)]):
            yield

    @torch.no_grad()
    def run():
        seen = {}

        def keep(value, hook):
            seen["last"] = value

        last = f"blocks.{model.cfg.n_layers - 1}.hook_normalized_resid_post"
        values = np.empty((model.cfg.n_layers, model.cfg.n_heads, len(ids)))
        for layer in range(model.cfg.n_layers):
            for head in range(model.cfg.n_heads):
                with without(layer, head), model.hooks(fwd_hooks=[(last, keep)]):
                    if logits:
                        model(ids, token_type_ids=types, one_zero_attention_mask=mask)
                    else:
                        model.encoder_output(ids, types, mask)
                values[layer, head] = (seen["last"][rows, places] @ vector).cpu().numpy()
        return {"values": values}

    return run
