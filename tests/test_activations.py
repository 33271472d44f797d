"""The cache against plain transformers and against formulas written out by hand."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import tiny_encoder

from bertology_utils.activations import (
    ROWS,
    SITES,
    CollectedError,
    MissingLayerError,
    UnknownSiteError,
    capture,
    collect,
    open_collected,
    run_with_cache,
    stream,
)
from bertology_utils.encoder import evaluating
from bertology_utils.words import EmptyTextError, TextTooLongError, TextTypeError, make_batch

ALL = tuple(SITES)


def n_hooks(encoder) -> int:
    return sum(
        len(module._forward_hooks) + len(module._forward_pre_hooks)
        for module in encoder.model.modules()
    )


def test_shapes_are_as_documented(any_encoder, texts):
    cache = run_with_cache(any_encoder, texts, ALL)
    b, t = cache.batch.input_ids.shape
    sizes = {"B": b, "T": t, "D": 32, "H": 4, "K": 8, "F": 64}
    assert tuple(cache) == ALL
    for name, site in SITES.items():
        entries = 4 if name == "hidden_states" else 3
        shape = tuple(sizes[letter] for letter in site.shape.strip("[]").split(", "))
        assert tuple(cache[name].shape) == (entries, *shape), name
        assert not cache[name].requires_grad


def test_equals_plain_transformers(any_encoder, texts):
    cache = run_with_cache(any_encoder, texts)
    with evaluating(any_encoder):
        plain = any_encoder.base(
            **any_encoder.inputs(cache.batch), output_hidden_states=True, output_attentions=True
        )
    assert torch.equal(cache["hidden_states"], torch.stack(plain.hidden_states))
    assert torch.equal(cache["pattern"], torch.stack(plain.attentions))


def test_one_head_by_hand(any_encoder, texts):
    """softmax(q k^T / sqrt(K)) is the pattern, pattern v is z; q itself comes from the weights."""
    cache = run_with_cache(any_encoder, texts, ["hidden_states", "q", "k", "v", "pattern", "z"])
    layer, head, d = 1, 2, 8
    weight = any_encoder.layers[layer].query.weight[head * d : (head + 1) * d]
    bias = any_encoder.layers[layer].query.bias[head * d : (head + 1) * d]
    x = cache["hidden_states"][layer]
    assert torch.allclose(cache["q"][layer, :, head], x @ weight.T + bias, atol=1e-5)
    q, k, v = (cache[name][layer, :, head] for name in "qkv")
    scores = q @ k.transpose(1, 2) / d**0.5
    hidden = cache.batch.attention_mask[:, None, :] == 0
    pattern = torch.softmax(scores.masked_fill(hidden, -torch.inf), dim=-1)
    assert torch.allclose(pattern, cache["pattern"][layer, :, head], atol=1e-5)
    assert torch.allclose(pattern @ v, cache["z"][layer, :, head], atol=1e-5)
    assert (cache["pattern"].std(-1) > 1e-3).any(), "uniform attention would prove little"


def test_the_layer_is_the_sum_of_its_parts(any_encoder, texts):
    cache = run_with_cache(any_encoder, texts, ALL)
    close = lambda a, b: torch.allclose(a, b, atol=1e-5)  # noqa: E731
    for i, layer in enumerate(any_encoder.layers):
        x = cache["hidden_states"][i]
        heads = torch.stack(
            [cache["z"][i, :, h] @ layer.output.weight[:, h * 8 : (h + 1) * 8].T for h in range(4)]
        )
        assert close(heads.sum(0) + layer.output.bias, cache["attn_out"][i])
        assert close(cache["attn_out"][i] + x, cache["resid_mid_sum"][i])
        assert close(layer.attn_norm(cache["resid_mid_sum"][i]), cache["resid_mid"][i])
        inner = torch.nn.functional.gelu(layer.ffn_in(cache["resid_mid"][i]))
        assert close(inner, cache["mlp_act"][i])
        assert close(layer.ffn_out(cache["mlp_act"][i]), cache["mlp_out"][i])
        assert close(cache["mlp_out"][i] + cache["resid_mid"][i], cache["resid_post_sum"][i])
        assert close(layer.ffn_norm(cache["resid_post_sum"][i]), cache["hidden_states"][i + 1])


def test_patterns_are_distributions_over_real_pieces(any_encoder, texts):
    cache = run_with_cache(any_encoder, texts, ["pattern"])
    assert torch.allclose(cache["pattern"].sum(-1), torch.ones(()), atol=1e-5)
    padding = (cache.batch.attention_mask == 0)[None, :, None, None, :]
    assert cache["pattern"].masked_select(padding).abs().max() < 1e-6


@pytest.mark.parametrize("name", ALL)
def test_alone_equals_padded_batch(any_encoder, texts, name):
    together = run_with_cache(any_encoder, texts, [name])
    for i, text in enumerate(texts):
        alone = run_with_cache(any_encoder, text, [name])[name][:, 0]
        n = alone.shape[-2]
        padded = together[name][:, i]
        padded = padded[..., :n, :n] if name == "pattern" else padded[..., :n, :]
        assert torch.allclose(padded, alone, atol=1e-5)


def test_mode_and_hooks_are_restored(texts):
    encoder = tiny_encoder("bert")
    encoder.model.train()
    before = n_hooks(encoder)
    first = run_with_cache(encoder, texts)["hidden_states"]
    assert torch.equal(first, run_with_cache(encoder, texts)["hidden_states"]), "dropout was on"
    assert encoder.model.training and n_hooks(encoder) == before
    with pytest.raises(EmptyTextError):
        run_with_cache(encoder, "")
    with pytest.raises(RuntimeError, match="stop"), capture(encoder):
        raise RuntimeError("stop")
    assert encoder.model.training and n_hooks(encoder) == before


def test_capture_keeps_gradients(tiny_bert, texts):
    batch = make_batch(tiny_bert, texts)
    with capture(tiny_bert, ["pattern"]) as cache:
        hidden = tiny_bert.encode(batch)
    (gradient,) = torch.autograd.grad(hidden[:, 0].sum(), [cache.layers["pattern"][0]])
    assert gradient.shape == cache["pattern"][0].shape and gradient.abs().sum() > 0


def test_capture_wants_exactly_one_complete_pass(tiny_bert, texts):
    batch = make_batch(tiny_bert, texts)
    with pytest.raises(MissingLayerError, match=r"no 'pattern' from layers \[0, 1, 2\]"):
        with capture(tiny_bert, "pattern"):
            pass
    with evaluating(tiny_bert):
        hidden = tiny_bert.encode(batch)
        with pytest.raises(MissingLayerError, match=r"from layers \[0\]"):
            with capture(tiny_bert, ["pattern"]):
                tiny_bert.encode_from(hidden, batch.attention_mask, 1)
        with pytest.raises(MissingLayerError, match="came twice"):
            with capture(tiny_bert, ["pattern"]):
                tiny_bert.encode(batch)
                tiny_bert.encode(batch)
        with capture(tiny_bert, ["pattern"]) as cache:
            with pytest.raises(MissingLayerError, match="no forward pass"):
                _ = cache["pattern"]
            tiny_bert.encode(batch)


def test_sdpa_hides_the_pattern_and_we_say_so(texts):
    """Under sdpa transformers returns no patterns, and without this check nobody would know."""
    encoder = tiny_encoder("bert")
    encoder.model.set_attn_implementation("sdpa")
    with pytest.raises(MissingLayerError, match="no attention pattern"):
        run_with_cache(encoder, texts, ["pattern"])
    assert n_hooks(encoder) == 0


def test_unknown_names(tiny_bert, texts):
    with pytest.raises(UnknownSiteError, match="unknown activation 'attentions'; known: hidden"):
        run_with_cache(tiny_bert, texts, ["attentions"])
    with pytest.raises(UnknownSiteError, match="'q' was not captured; captured: pattern"):
        _ = run_with_cache(tiny_bert, texts, ["pattern"])["q"]
    with pytest.raises(UnknownSiteError):
        stream(tiny_bert, texts, ["nothing"])
    assert isinstance(UnknownSiteError("x"), KeyError)


def test_stream_covers_all_texts(tiny_bert, texts):
    many = texts * 5
    seen = {}
    for cache in stream(tiny_bert, many, ["hidden_states"], max_tokens=64):
        for row, i in enumerate(cache.batch.index):
            seen[i] = cache["hidden_states"][:, row, 0]
    assert sorted(seen) == list(range(20))
    for i, text in enumerate(many):
        alone = run_with_cache(tiny_bert, text, ["hidden_states"])["hidden_states"][:, 0, 0]
        assert torch.allclose(seen[i], alone, atol=1e-5)


@pytest.mark.parametrize("rows", ROWS)
def test_collect_rows_by_hand(any_encoder, texts, rows):
    got = collect(any_encoder, texts, ["hidden_states", "z"], reduce=rows, max_tokens=32)
    assert got.rows == rows and got.model == any_encoder.name
    for i, text in enumerate(texts):
        cache = run_with_cache(any_encoder, text, ["hidden_states", "z"])
        hidden = cache["hidden_states"][:, 0]
        z = cache["z"][:, 0].transpose(1, 2).flatten(-2)
        spans = cache.batch.spans[0]
        for name, value in (("hidden_states", hidden), ("z", z)):
            expected = {
                "word_mean": lambda v: torch.stack([v[:, s:e].mean(1) for s, e in spans], 1),  # noqa: B023
                "word_first": lambda v: torch.stack([v[:, s] for s, e in spans], 1),  # noqa: B023
                "word_last": lambda v: torch.stack([v[:, e - 1] for s, e in spans], 1),  # noqa: B023
                "piece": lambda v: v,
                "text_first": lambda v: v[:, :1],
                "text_mean": lambda v: v[:, 1:-1].mean(1, keepdim=True),
            }[rows](value)
            ours = torch.from_numpy(got.arrays[name][:, got.rows_of(i)])
            assert torch.allclose(ours, expected, atol=1e-5), name
            n = expected.shape[1]
        assert got.position[got.rows_of(i)].tolist() == list(range(n))
    with pytest.raises(IndexError, match="no rows for text 4"):
        got.rows_of(4)


def test_collect_to_disk_equals_memory(tiny_bert, texts, tmp_path):
    names = ["hidden_states", "mlp_act", "q"]
    many = texts * 7
    memory = collect(tiny_bert, many, names, max_tokens=100)
    disk = collect(tiny_bert, many, names, max_tokens=100, out=tmp_path / "run")
    again = open_collected(tmp_path / "run")
    assert isinstance(again.arrays["q"], np.memmap)
    for other in (disk, again):
        assert len(other) == len(memory) and other.model == "tiny-bert"
        assert np.array_equal(other.text_index, memory.text_index)
        assert np.array_equal(other.position, memory.position)
        for name in names:
            assert np.array_equal(other.arrays[name], memory.arrays[name]), name
    half = collect(tiny_bert, many, ["q"], dtype="float16", out=tmp_path / "half")
    assert half.arrays["q"].dtype == np.float16
    assert np.allclose(half.arrays["q"], memory.arrays["q"], atol=1e-2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["half", "run"]


_MEMORY = """
import resource, sys
from tiny import TEXTS, tiny_encoder
from bertology_utils.activations import collect
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
encoder, names = tiny_encoder("bert"), ["hidden_states", "pattern", "mlp_act", "q", "k", "v", "z"]
run = lambda n, out: collect(
    encoder, list(TEXTS) * n, names, reduce="piece", out=out, max_tokens=1024, window=64
)
run(60, sys.argv[1] + "/small")
before = peak()
big = run(300, sys.argv[1] + "/big")
print(peak() - before, sum(array.nbytes for array in big.arrays.values()))
"""


def test_collect_keeps_whole_patterns_on_disk(tiny_bert, texts, tmp_path):
    names = ["hidden_states", "pattern"]
    found = collect(tiny_bert, texts, names, reduce="piece", out=tmp_path / "run", max_tokens=40)
    assert list(found.arrays) == ["hidden_states"] and len(found.patterns) == len(texts)
    for i, text in enumerate(texts):
        cache = run_with_cache(tiny_bert, text)
        assert np.allclose(found.patterns[i], cache["pattern"][:, 0], atol=1e-5)
        hidden = found.arrays["hidden_states"][:, found.rows_of(i)]
        assert np.allclose(hidden, cache["hidden_states"][:, 0], atol=1e-5)
    alone = collect(tiny_bert, texts, "pattern", out=tmp_path / "half", dtype="float16")
    assert alone.arrays == {} and alone.patterns.values.dtype == np.float16
    assert np.allclose(alone.patterns[2], found.patterns[2], atol=1e-3)
    with pytest.raises(IndexError, match="text 4 is not in 0..3"):
        found.patterns[4]
    file = tmp_path / "run" / "pattern.npy"
    file.write_bytes(file.read_bytes()[:-400])
    with pytest.raises(CollectedError, match="no collection"):
        open_collected(tmp_path / "run")


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read the Unix way")
def test_collect_writes_more_than_it_holds(tmp_path):
    """Five times the texts: hardly more memory, though the rows would fill far more."""
    pytest.importorskip("resource")
    tests = Path(__file__).parent
    paths = os.pathsep.join([str(tests), str(tests.parent)])
    out = subprocess.run(
        [sys.executable, "-c", _MEMORY, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    growth, written = map(int, out.stdout.split())
    assert written > 30e6 and growth < written / 2, (growth, written)


def test_collect_is_complete_or_absent(tiny_bert, texts, tmp_path, monkeypatch):
    # The function shadows its module's name in the package, hence the look into sys.modules.
    module = sys.modules["bertology_utils.activations.collect"]
    reduce, calls = module._reduce, []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return reduce(*args)

    monkeypatch.setattr(module, "_reduce", interrupted)
    with pytest.raises(KeyboardInterrupt):
        collect(tiny_bert, texts, max_tokens=16, out=tmp_path / "run")
    assert len(calls) == 2 and list(tmp_path.iterdir()) == []


def test_collect_refuses_before_computing(tiny_bert, texts, tmp_path):
    with pytest.raises(TextTooLongError):
        collect(tiny_bert, [*texts, "cat " * 100], out=tmp_path / "run")
    with pytest.raises(ValueError, match="'pattern' has no vector per position"):
        collect(tiny_bert, texts, ["pattern"])
    with pytest.raises(ValueError, match="reduce is 'max'"):
        collect(tiny_bert, texts, reduce="max")
    with pytest.raises(ValueError, match="dtype is 'int8'"):
        collect(tiny_bert, texts, dtype="int8")
    with pytest.raises(ValueError, match="no names"):
        collect(tiny_bert, texts, [])
    with pytest.raises(TextTypeError, match="read twice: pass a list, not a generator"):
        collect(tiny_bert, (t for t in texts))
    (tmp_path / "old").mkdir()
    with pytest.raises(FileExistsError, match="'old' exists"):
        collect(tiny_bert, texts, out=tmp_path / "old")
    assert [p.name for p in tmp_path.iterdir()] == ["old"]


def test_open_collected_refuses_other_folders(tiny_bert, texts, tmp_path):
    with pytest.raises(CollectedError, match="no collection of activations in 'nothing'"):
        open_collected(tmp_path / "nothing")
    collect(tiny_bert, texts, out=tmp_path / "torn")
    (tmp_path / "torn" / "position.npy").unlink()
    with pytest.raises(CollectedError, match="'torn'"):
        open_collected(tmp_path / "torn")
    (tmp_path / "torn" / "about.json").write_text(json.dumps({"names": []}))
    with pytest.raises(CollectedError):
        open_collected(tmp_path / "torn")


def test_identities_on_the_embedded_model(embedded, texts):
    cache = run_with_cache(embedded, texts, ALL)
    with evaluating(embedded):
        plain = embedded.base(
            **embedded.inputs(cache.batch), output_hidden_states=True, output_attentions=True
        )
    assert torch.equal(cache["hidden_states"], torch.stack(plain.hidden_states))
    assert torch.equal(cache["pattern"], torch.stack(plain.attentions))
    for i, layer in enumerate(embedded.layers):
        q, k, v = (cache[name][i] for name in "qkv")
        scores = q @ k.transpose(-1, -2) / embedded.d_head**0.5
        padding = (cache.batch.attention_mask == 0)[:, None, None, :]
        pattern = torch.softmax(scores.masked_fill(padding, -torch.inf), -1)
        assert torch.allclose(pattern, cache["pattern"][i], atol=1e-5)
        assert torch.allclose(pattern @ v, cache["z"][i], atol=1e-5)
        total = cache["attn_out"][i] + cache["hidden_states"][i]
        assert torch.allclose(layer.attn_norm(total), cache["resid_mid"][i], atol=1e-5)
        total = cache["mlp_out"][i] + cache["resid_mid"][i]
        assert torch.allclose(layer.ffn_norm(total), cache["hidden_states"][i + 1], atol=1e-5)
    for i, text in enumerate(texts):
        alone = run_with_cache(embedded, text, ["hidden_states"])["hidden_states"][:, 0]
        both = cache["hidden_states"][:, i, : alone.shape[1]]
        assert torch.allclose(both, alone, atol=1e-5)
