"""Loading, naming the parts, heads, controls, saving: against plain transformers."""

import subprocess
import sys
from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import FAMILIES, tiny_encoder
from transformers import (
    BertForPreTraining,
    BertModel,
    CamembertConfig,
    GPT2Config,
    XLMRobertaConfig,
)

from bertology_utils.encoder import (
    DeviceUnavailableError,
    HeadIndexError,
    LayerIndexError,
    MissingHeadError,
    UnknownModelError,
    UnsupportedModelError,
    evaluating,
    load_encoder,
    new_encoder,
    random_encoder,
    save_encoder,
)


def batch_of(encoder, texts):
    """A padded batch straight from the tokenizer, without any of our own code."""
    inputs = encoder.tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=True)
    return SimpleNamespace(**inputs)


def same_weights(a, b) -> bool:
    ours, theirs = a.model.state_dict(), b.model.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[k], theirs[k]) for k in ours)


def test_shape_properties(any_encoder):
    assert any_encoder.n_layers == len(any_encoder.layers) == 3
    assert any_encoder.n_heads == 4 and any_encoder.heads_per_layer == (4, 4, 4)
    assert any_encoder.d_model == 32 and any_encoder.d_head == 8
    assert any_encoder.max_length == 64
    with pytest.raises(FrozenInstanceError):
        any_encoder.name = "other"


def test_parts_are_the_layer(any_encoder, texts):
    """A layer put together by hand from the named parts equals the layer of transformers."""
    batch = batch_of(any_encoder, texts[:1])
    with evaluating(any_encoder):
        reference = any_encoder.base(**any_encoder.inputs(batch), output_hidden_states=True)
        for layer, x, y in zip(
            any_encoder.layers,
            reference.hidden_states[:-1],
            reference.hidden_states[1:],
            strict=True,
        ):
            split = lambda t: t.unflatten(-1, (4, 8)).transpose(1, 2)  # noqa: E731
            q, k, v = (split(part(x)) for part in (layer.query, layer.key, layer.value))
            pattern = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, dim=-1)
            z = (pattern @ v).transpose(1, 2).flatten(-2)
            middle = layer.attn_norm(layer.output(z) + x)
            ffn = torch.nn.functional.gelu(layer.ffn_in(middle))
            ours = layer.ffn_norm(layer.ffn_out(ffn) + middle)
            assert torch.allclose(ours, y, atol=1e-5)


def test_embedding_parts_are_the_input_sum(any_encoder, texts):
    batch = batch_of(any_encoder, texts[:1])
    parts = any_encoder.embeddings
    length = batch.input_ids.shape[1]
    start = 0 if parts.position.padding_idx is None else parts.position.padding_idx + 1
    with evaluating(any_encoder):
        total = parts.token(batch.input_ids) + parts.position(torch.arange(start, start + length))
        if parts.segment is not None:
            total = total + parts.segment(torch.zeros_like(batch.input_ids))
        hidden = parts.norm(total)
        if parts.projection is not None:
            hidden = parts.projection(hidden)
        reference = any_encoder.base(**any_encoder.inputs(batch), output_hidden_states=True)
    assert torch.allclose(hidden, reference.hidden_states[0], atol=1e-5)


def test_encode_and_heads_match_plain_transformers(any_encoder, texts):
    batch = batch_of(any_encoder, texts)
    with evaluating(any_encoder):
        hidden = any_encoder.encode(batch)
        reference = any_encoder.model(**any_encoder.inputs(batch))
        if any_encoder.has_mlm:
            logits = getattr(reference, "prediction_logits", None)
            logits = reference.logits if logits is None else logits
            assert torch.allclose(any_encoder.mlm_logits(hidden), logits, atol=1e-5)
            one = any_encoder.mlm_logits(hidden[1, 2])
            assert torch.allclose(one, logits[1, 2], atol=1e-5)
        if any_encoder.has_nsp:
            nsp = any_encoder.nsp_logits(hidden)
            assert torch.allclose(nsp, reference.seq_relationship_logits, atol=1e-5)
        if any_encoder.has_rtd:
            assert torch.allclose(any_encoder.rtd_logits(hidden), reference.logits, atol=1e-5)


def test_heads_of_each_family():
    heads = {family: tiny_encoder(family).trained_heads for family in FAMILIES}
    assert heads == {
        "bert": {"mlm", "nsp"},
        "roberta": {"mlm"},
        "distilbert": {"mlm"},
        "electra": {"rtd"},
        "electra-generator": {"mlm"},
    }


def test_missing_head_is_one_clear_error(texts):
    encoder = tiny_encoder("electra")
    with pytest.raises(MissingHeadError, match="tiny-electra.*'mlm'.*rtd"):
        encoder.mlm_logits(torch.zeros(1, 1, 32))


def test_encode_from_resumes_at_any_layer(any_encoder, texts):
    batch = batch_of(any_encoder, texts)
    with evaluating(any_encoder):
        reference = any_encoder.base(**any_encoder.inputs(batch), output_hidden_states=True)
        for layer in range(4):
            hidden = any_encoder.encode_from(
                reference.hidden_states[layer], batch.attention_mask, layer
            )
            assert torch.allclose(hidden, reference.last_hidden_state, atol=1e-5)
    with pytest.raises(LayerIndexError, match=r"layer 4 is not in 0\.\.3"):
        any_encoder.encode_from(hidden, batch.attention_mask, 4)


def test_alone_equals_padded_batch(any_encoder, texts):
    batch = batch_of(any_encoder, texts)
    with evaluating(any_encoder):
        together = any_encoder.encode(batch)
        for i, text in enumerate(texts):
            alone = any_encoder.encode(batch_of(any_encoder, [text]))
            assert torch.allclose(together[i, : alone.shape[1]], alone[0], atol=1e-5)


def test_evaluating_restores_every_mode_also_after_an_error():
    encoder = tiny_encoder("bert")
    encoder.model.train()
    frozen = encoder.layers[0].block
    frozen.eval()
    with pytest.raises(RuntimeError, match="stop"), evaluating(encoder):
        assert not encoder.model.training and not torch.is_grad_enabled()
        raise RuntimeError("stop")
    assert encoder.model.training and torch.is_grad_enabled()
    assert not frozen.training and encoder.layers[1].block.training


def test_check_heads_names_the_offender(tiny_bert):
    assert tiny_bert.check_heads({1: [3, 0, 3]}) == {1: (0, 3)}
    with pytest.raises(HeadIndexError, match=r"head 4 is not in 0\.\.3 of layer 1"):
        tiny_bert.check_heads({1: [4]})
    for bad in (-1, 3, True, 1.0, "1"):
        with pytest.raises(LayerIndexError, match="is not in"):
            tiny_bert.check_layer(bad)


def test_save_and_load_round_trip(any_encoder, tmp_path, texts):
    folder = save_encoder(any_encoder, tmp_path / "saved")
    again = load_encoder(folder, device="cpu")
    assert again.name == "saved"
    assert again.trained_heads == any_encoder.trained_heads
    assert same_weights(again, any_encoder)
    assert type(again.model) is type(any_encoder.model)
    assert not again.model.training and again.model.dtype == torch.float32
    batch = batch_of(any_encoder, texts)
    assert torch.equal(batch_of(again, texts).input_ids, batch.input_ids)
    with pytest.raises(FileExistsError, match="saved"):
        save_encoder(any_encoder, folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["saved"]


def test_failed_save_leaves_nothing(tiny_bert, tmp_path, monkeypatch):
    def fail(*_args, **_kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(tiny_bert.tokenizer, "save_pretrained", fail)
    with pytest.raises(OSError, match="disk full"):
        save_encoder(tiny_bert, tmp_path / "saved")
    assert list(tmp_path.iterdir()) == []


def test_half_precision_file_loads_as_float32(tmp_path):
    encoder = tiny_encoder("bert")
    folder = save_encoder(encoder, tmp_path / "half")
    weights = folder / "model.safetensors"
    save_file({k: v.half() for k, v in load_file(weights).items()}, weights, {"format": "pt"})
    again = load_encoder(folder, device="cpu")
    assert again.has_mlm and again.has_nsp
    for ours, theirs in zip(again.model.parameters(), encoder.model.parameters(), strict=True):
        assert ours.dtype == torch.float32
        assert torch.equal(ours, theirs.half().float())


def test_bare_encoder_has_no_heads(tmp_path, texts):
    """transformers would make up a random MLM head here without a word; we do not offer it."""
    encoder = tiny_encoder("bert")
    bare = BertModel(encoder.config)
    bare.load_state_dict(encoder.base.state_dict())
    bare.save_pretrained(tmp_path / "bare")
    encoder.tokenizer.save_pretrained(tmp_path / "bare")
    loaded = load_encoder(tmp_path / "bare", device="cpu")
    assert loaded.trained_heads == frozenset()
    with pytest.raises(MissingHeadError, match="has no trained 'nsp' head"):
        loaded.nsp_logits(torch.zeros(1, 1, 32))
    batch = batch_of(encoder, texts)
    with evaluating(loaded), evaluating(encoder):
        assert torch.allclose(loaded.encode(batch), encoder.encode(batch), atol=1e-6)


def test_incomplete_weights_are_refused(tmp_path):
    folder = save_encoder(tiny_encoder("bert"), tmp_path / "torn")
    weights = folder / "model.safetensors"
    state = load_file(weights)
    state.pop("bert.encoder.layer.1.output.dense.weight")
    save_file(state, weights, {"format": "pt"})
    with pytest.raises(UnknownModelError, match="'torn' lack 1 .*layer.1.output.dense.weight"):
        load_encoder(folder, device="cpu")


def test_pickled_weights_are_refused(tmp_path):
    encoder = tiny_encoder("bert")
    folder = save_encoder(encoder, tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    torch.save(encoder.model.state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(UnknownModelError, match="'pickled'"):
        load_encoder(folder, device="cpu")


@pytest.mark.parametrize("name", ["no-such-model", "nobody/no-such-model", "./nothing", " ", ""])
def test_unknown_model_is_one_clear_line(name, monkeypatch):
    monkeypatch.setattr("bertology_utils.encoder.hub.answers", lambda: False)
    with pytest.raises(UnknownModelError) as caught:
        load_encoder(name)
    assert repr(name) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("config_class", [CamembertConfig, XLMRobertaConfig])
def test_relatives_of_roberta(config_class, texts, tmp_path):
    roberta = tiny_encoder("roberta")
    settings = {k: v for k, v in roberta.config.to_dict().items() if k != "model_type"}
    other = new_encoder(config_class(**settings), roberta.tokenizer, name="relative")
    other.base.load_state_dict(roberta.base.state_dict())
    assert other.has_mlm
    again = load_encoder(save_encoder(other, tmp_path / "relative"), device="cpu")
    batch = batch_of(roberta, texts)
    with evaluating(again), evaluating(roberta):
        assert torch.allclose(again.encode(batch), roberta.encode(batch), atol=1e-6)


def test_unsupported_architecture(tmp_path):
    GPT2Config(n_layer=1, n_embd=8, n_head=1).save_pretrained(tmp_path)
    with pytest.raises(UnsupportedModelError, match="'gpt2'"):
        load_encoder(tmp_path)
    with pytest.raises(UnsupportedModelError, match="'gpt2'"):
        new_encoder(GPT2Config(), None)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_cuda_asked_for_and_absent(tmp_path):
    with pytest.raises(DeviceUnavailableError, match="'cuda' was asked for"):
        load_encoder(tmp_path, device="cuda")
    with pytest.raises(DeviceUnavailableError, match="'gpu0' is not the name"):
        load_encoder(tmp_path, device="gpu0")


def test_default_model_comes_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("BERTOLOGY_MODEL", str(save_encoder(tiny_encoder("bert"), tmp_path / "m")))
    assert load_encoder(device="cpu").name == "m"


def test_random_encoder_is_a_seeded_control(any_encoder):
    before = torch.get_rng_state()
    first, again = random_encoder(any_encoder, 1), random_encoder(any_encoder, 1)
    other = random_encoder(any_encoder, 2)
    assert torch.equal(before, torch.get_rng_state())
    assert same_weights(first, again) and not same_weights(first, other)
    assert not same_weights(first, any_encoder)
    assert first.n_parameters == any_encoder.n_parameters
    assert first.trained_heads == any_encoder.trained_heads
    assert first.name == f"{any_encoder.name} (random, seed 1)"


def test_embedded_model_agrees_with_plain_transformers(embedded, texts):
    assert embedded.has_mlm and embedded.has_nsp
    assert (embedded.n_layers, embedded.n_heads, embedded.d_model) == (6, 12, 384)
    from bertology_utils.encoder.loading import MODELS_FOLDER

    plain = BertForPreTraining.from_pretrained(
        MODELS_FOLDER / embedded.name, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    batch = batch_of(embedded, texts)
    with evaluating(embedded):
        reference = plain(**embedded.inputs(batch))
        hidden = embedded.encode(batch)
        assert torch.allclose(embedded.mlm_logits(hidden), reference.prediction_logits, atol=1e-4)
        assert torch.allclose(
            embedded.nsp_logits(hidden), reference.seq_relationship_logits, atol=1e-5
        )


def test_importing_the_package_stays_light():
    code = "import sys, bertology_utils; assert not {'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
