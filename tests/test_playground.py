"""The model for browsers: its rounding, its graph, its files, and how they get beside the pages."""

import copy
import hashlib
import io
import json
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
import torch
from tiny import TEXTS, tiny_encoder

from bertology_utils import playground
from bertology_utils.encoder import (
    DEFAULT_MODEL,
    Encoder,
    HeadIndexError,
    UnsupportedModelError,
)
from bertology_utils.playground.vocabulary import character_classes, steps
from bertology_utils.stimuli import passages
from tools import sphinx_playground


# --- rounding ---------------------------------------------------------------------------------
def random_matrix(rows: int, columns: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)


def test_no_weight_moves_further_than_half_a_step():
    matrix = random_matrix(20, 64)
    made = playground.round_matrix(matrix, 16)
    assert made.integers.dtype == np.int8 and made.scales.dtype == np.float16
    assert made.scales.shape == (20, 4) and np.abs(made.integers).max() == 127
    step = np.repeat(made.scales.astype(np.float32), 16, axis=1)
    # Half a step, and the little by which a scale in half precision misses the largest weight.
    assert (np.abs(made.restored() - matrix) <= 0.5 * step + 127 * step * 2.0**-11).all()


def test_a_block_of_zeros_stays_zero_and_an_outlier_spoils_its_own_block_only():
    matrix = random_matrix(1, 64) * 0.01
    matrix[0, :16] = 0
    matrix[0, 20] = 50
    made = playground.round_matrix(matrix, 16).restored()
    assert (made[0, :16] == 0).all()
    assert abs(made[0, 20] - 50) < 0.05
    np.testing.assert_allclose(made[0, 32:], matrix[0, 32:], atol=2e-4)


def test_knowing_the_inputs_makes_the_outputs_better():
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(500, 8)) @ rng.normal(size=(8, 64)) + 0.1 * rng.normal(size=(500, 64))
    matrix = random_matrix(30, 64)
    nearest = playground.round_matrix(matrix, 32).restored()
    made_up = playground.round_matrix(matrix, 32, inputs.T @ inputs / len(inputs)).restored()
    error = {
        name: np.square(inputs @ (found - matrix).T).mean()
        for name, found in (("nearest", nearest), ("made up", made_up))
    }
    assert error["made up"] < 0.3 * error["nearest"]
    assert np.abs(made_up - matrix).mean() > np.abs(nearest - matrix).mean()


@pytest.mark.parametrize(
    ("matrix", "block", "moment", "message"),
    [
        (np.zeros(4), 2, None, "expected a matrix"),
        (np.zeros((2, 6)), 4, None, "do not divide"),
        (np.array([[0.0, np.nan]]), 2, None, "not a finite number"),
        (np.zeros((2, 4)), 2, np.eye(3), "second moment of shape"),
    ],
)
def test_what_cannot_be_rounded_is_refused(matrix, block, moment, message):
    with pytest.raises(ValueError, match=message):
        playground.round_matrix(matrix, block, moment)


# --- the graph --------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def tiny() -> Encoder:
    return tiny_encoder("bert")


def with_rounded_weights(encoder: Encoder, block: int) -> Encoder:
    """The same model with every matrix rounded, the way the graph stores it."""
    rounded = copy.deepcopy(encoder)
    trunk = rounded.model.bert
    with torch.no_grad():
        positions = trunk.embeddings.position_embeddings.weight
        segments = trunk.embeddings.token_type_embeddings.weight
        positions += segments[0]
        segments.zero_()
        for name, parameter in rounded.model.named_parameters():
            if parameter.ndim == 2 and "token_type" not in name:
                restored = playground.round_matrix(parameter.numpy(), block).restored()
                parameter.copy_(torch.from_numpy(restored))
    return rounded


@pytest.fixture(scope="module")
def tiny_small(tiny, tmp_path_factory) -> playground.SmallModel:
    folder = tmp_path_factory.mktemp("tiny")
    onnx.save(playground.build_graph(tiny, block=16), folder / "model.onnx")
    return playground.SmallModel(folder)


@pytest.mark.parametrize("text", TEXTS)
def test_the_graph_computes_what_pytorch_computes_with_the_rounded_weights(tiny, tiny_small, text):
    rounded = with_rounded_weights(tiny, 16)
    ids = tiny.tokenizer(text)["input_ids"]
    places = [(layer, i) for layer in range(tiny.n_layers + 1) for i in (0, len(ids) // 2)]
    found = tiny_small.run(ids, places, [ids[1], ids[2]])
    with torch.no_grad():
        whole = rounded.base(
            torch.tensor([ids]), output_hidden_states=True, output_attentions=True
        )
        read = torch.stack([whole.hidden_states[layer][0, i] for layer, i in places])
        logits = rounded.mlm_logits(read).numpy()
        table = rounded.embeddings.token.weight
        unit = torch.nn.functional.normalize(table, dim=1)  # [PAD] stays a row of zeros
    np.testing.assert_allclose(found.logits, logits, atol=1e-4)
    attentions = torch.stack([layer[0] for layer in whole.attentions]).numpy()
    assert found.attentions.shape == (tiny.n_layers, tiny.n_heads, len(ids), len(ids))
    np.testing.assert_allclose(found.attentions, attentions, atol=1e-5)
    np.testing.assert_allclose(found.cosines, (unit[ids[1:3]] @ unit.T).numpy(), atol=1e-5)


def test_any_of_the_questions_may_be_left_out(tiny_small):
    found = tiny_small.run([2, 7, 3])
    assert found.logits.shape[0] == found.cosines.shape[0] == 0
    assert found.attentions.shape[2:] == (3, 3)
    assert tiny_small.run([2, 7, 3], [(1, 1)]).logits.shape[0] == 1
    assert tiny_small.run([2, 7, 3], alike=[7]).cosines.argmax() == 7


def test_the_piece_table_is_stored_once(tiny):
    graph = playground.build_graph(tiny, block=16).graph
    rows = len(tiny.tokenizer)
    stored = [t for t in graph.initializer if list(t.dims) == [rows, tiny.d_model]]
    assert [t.data_type for t in stored] == [onnx.TensorProto.INT8]


def test_models_that_the_graph_would_compute_wrongly_are_refused(tiny):
    for family in ("distilbert", "roberta", "electra"):
        with pytest.raises(UnsupportedModelError, match=family):
            playground.build_graph(tiny_encoder(family))
    headless = Encoder(tiny.model, tiny.tokenizer, tiny.device, "headless", frozenset({"nsp"}))
    with pytest.raises(UnsupportedModelError, match="headless"):
        playground.build_graph(headless)
    relu = tiny_encoder("bert", seed=5)
    relu.config.hidden_act = "relu"
    with pytest.raises(UnsupportedModelError, match="relu"):
        playground.build_graph(relu)


def test_watching_the_inputs_sees_every_layer_and_leaves_no_hook(tiny):
    moments = playground.input_moments(tiny, TEXTS)
    linear = [m for m in tiny.model.modules() if isinstance(m, torch.nn.Linear)]
    assert not any(module._forward_pre_hooks for module in linear)
    first = tiny.model.bert.encoder.layer[0]
    assert moments[first.attention.self.query].shape == (32, 32)
    assert moments[first.output.dense].shape == (64, 64)
    np.testing.assert_array_equal(
        moments[first.attention.self.query], moments[first.attention.self.key]
    )
    assert tiny.model.cls.predictions.decoder in moments
    assert (np.linalg.eigvalsh(moments[first.output.dense]) > -1e-6).all()
    with pytest.raises(ValueError, match="no texts"):
        playground.input_moments(tiny, [])


# --- the embedded model -----------------------------------------------------------------------
@pytest.fixture(scope="module")
def exported(embedded, tmp_path_factory) -> tuple[Path, playground.Exported]:
    folder = tmp_path_factory.mktemp("embedded")
    return folder, playground.export(embedded, folder)


def test_the_embedded_model_fits_into_what_a_reader_waits_for(exported):
    folder, made = exported
    size = (folder / "model.onnx").stat().st_size
    assert size == made.n_bytes <= playground.LARGEST_MODEL == 25_000_000
    assert json.loads((folder / "exported.txt").read_text())["sha256"] == made.sha256
    assert (made.model, made.n_layers, made.n_heads) == (DEFAULT_MODEL, 6, 12)


def test_the_five_best_pieces_are_pytorchs_in_nineteen_of_twenty_cases(embedded, exported):
    sentences = [sentence for passage in passages() for sentence in passage.sentences]
    assert not set(sentences) & set(playground.calibration_texts())
    cases = playground.mask_cases(embedded, sentences)
    small = playground.SmallModel(exported[0])
    agreement = playground.compare(
        DEFAULT_MODEL,
        playground.best_pieces(embedded, cases),
        playground.small_best_pieces(small, cases, embedded.n_layers),
    )
    assert agreement.n > 400 and agreement.k == 5
    assert agreement.same >= 0.95, agreement
    assert agreement.same_first >= 0.97, agreement
    assert agreement.probability_gap < 0.005, agreement


def test_attention_is_hardly_changed_by_the_rounding(embedded, exported):
    ids = embedded.tokenizer("The old man told us a story about the sea.")["input_ids"]
    found = playground.SmallModel(exported[0]).run(ids).attentions
    with torch.no_grad():
        whole = embedded.base(torch.tensor([ids]), output_attentions=True).attentions
    assert np.abs(found - torch.stack([layer[0] for layer in whole]).numpy()).max() < 0.05


def test_a_model_too_large_for_a_page_is_not_written(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("bertology_utils.playground.exporting.LARGEST_MODEL", 1000)
    with pytest.raises(playground.ModelTooLargeError, match="tiny-bert"):
        playground.export(tiny, tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_the_same_model_gives_the_same_file(tiny):
    moments = playground.input_moments(tiny, TEXTS)
    one, two = (playground.build_graph(tiny, moments) for _ in range(2))
    assert one.SerializeToString(deterministic=True) == two.SerializeToString(deterministic=True)
    other = playground.build_graph(tiny_encoder("bert", seed=3))
    assert other.SerializeToString() != one.SerializeToString()


# --- agreement --------------------------------------------------------------------------------
def test_agreement_counts_sets_orders_and_first_pieces():
    whole = [{1: 0.5, 2: 0.3}, {1: 0.5, 2: 0.3}, {1: 0.5, 2: 0.3}, {1: 0.5, 2: 0.3}]
    small = [{1: 0.4, 2: 0.3}, {2: 0.4, 1: 0.3}, {1: 0.5, 3: 0.3}, {4: 0.5, 3: 0.3}]
    found = playground.compare("m", whole, small)
    assert (found.n, found.k) == (4, 2)
    assert (found.same, found.same_order, found.same_first) == (0.5, 0.25, 0.5)
    assert found.interval[0] < 0.5 < found.interval[1]
    assert found.probability_gap == pytest.approx((0.1 + 0 + 0.2 + 0.1 + 0) / 5)
    for answers in ([], small[:1]):
        with pytest.raises(ValueError, match="cannot compare"):
            playground.compare("m", whole, answers)


def test_mask_cases_hide_one_piece_each(tiny):
    cases = playground.mask_cases(tiny, TEXTS, per_text=2)
    mask = tiny.tokenizer.mask_token_id
    for case in cases:
        assert case.input_ids.count(mask) == 1 and case.input_ids[case.place] == mask
        assert 0 < case.place < len(case.input_ids) - 1
    assert len(cases) == 2 * len(TEXTS) and len(set(cases)) == len(cases)
    assert playground.mask_cases(tiny, [""]) == []
    with pytest.raises(ValueError, match="per_text"):
        playground.mask_cases(tiny, TEXTS, per_text=0)


# --- the vocabulary ---------------------------------------------------------------------------
def test_character_classes_are_those_of_the_tokenizer(embedded):
    classes = {
        name: set(points)
        for name, points in character_classes(embedded.tokenizer.backend_tokenizer).items()
    }
    assert {0, 0xFFFD, 0x200B, 0x301} <= classes["removed"]
    assert {ord(c) for c in " \t\n\u00a0\u3000"} <= classes["blank"]
    assert {ord(c) for c in "!$`~«。"} <= classes["alone"]
    assert {0x4E00, 0x20000} <= classes["ideograph"]
    letters = {ord(c) for c in "azAZ09éßЖあ한😀€"}
    assert not any(letters & points for points in classes.values())


def test_steps_say_where_runs_begin_and_end():
    assert steps([3, 4, 5, 9]) == [3, 3, 3, 1]
    assert steps([]) == [] and steps([0]) == [0, 1]


def test_the_vocabulary_is_one_assignment_of_plain_ascii(embedded):
    script = playground.vocabulary_script(embedded)
    assert script.isascii() and script.count("\n") == 1
    content = json.loads(script.partition(".vocabulary=")[2].removesuffix(";\n"))
    assert content["pieces"][103] == "[MASK]" and len(content["pieces"]) == 30522
    assert content["special"]["[SEP]"] == 102
    with pytest.raises(UnsupportedModelError, match="roberta"):
        playground.vocabulary_script(tiny_encoder("roberta"))


# --- the panel --------------------------------------------------------------------------------
def test_the_panel_shows_an_example_and_escapes_everything(tiny, tiny_small, tmp_path):
    made = playground.Exported("m", 1, 2, "d", tiny.n_layers, tiny.n_heads)
    text = "the </script><img src=x> [MASK] sat."
    shown = playground.example(tiny, tiny_small, text, "sat")
    assert shown.attentions.shape[0] == tiny.n_layers and len(shown.near) == len(shown.tokens)
    assert len(shown.fills) == 1 and len(shown.fills[0][1]) == 8
    html = playground.panel(tiny, made, shown, ["<b>", text], layer=1, head=2)._repr_html_()
    assert "<img" not in html and "<b>" not in html and html.count("</script>") == 1
    data = html.partition('<script type="application/json">')[2].partition("</script>")[0]
    content = json.loads(data)
    assert content["text"] == text
    n = len(shown.tokens)
    assert len(content["attentions"]) == tiny.n_layers * tiny.n_heads * n * n
    # Without scripts: the answers are on the page as tables.
    best = tiny.tokenizer.convert_ids_to_tokens(shown.fills[0][1][0][0])
    assert best in html.partition("Fill the mask")[2].partition("Attention")[0]
    with pytest.raises(ValueError, match="no piece"):
        playground.example(tiny, tiny_small, text, "dog")
    with pytest.raises(HeadIndexError):
        playground.panel(tiny, made, shown, layer=0, head=99)


# --- beside the pages -------------------------------------------------------------------------
def package_with(folder: Path, files: dict[str, bytes]) -> Path:
    path = folder / "onnxruntime-web-0.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def test_a_package_that_is_not_the_pinned_one_is_refused(tmp_path):
    package = package_with(tmp_path, dict.fromkeys(sphinx_playground.RUNTIME_FILES, b"evil"))
    with pytest.raises(sphinx_playground.RuntimeUnavailableError, match="not the pinned one"):
        sphinx_playground.unpack(package, tmp_path / "runtime")
    assert not (tmp_path / "runtime").exists()


def test_a_runtime_that_was_fetched_needs_no_network(tmp_path, monkeypatch):
    folder = tmp_path / "kept"
    folder.mkdir()
    for name in sphinx_playground.RUNTIME_FILES.values():
        (folder / name).write_bytes(b"x")
        digest = hashlib.sha256(b"x").hexdigest()
        monkeypatch.setitem(sphinx_playground.DIGESTS, name, digest)
    monkeypatch.setenv("PATH", "")
    assert sphinx_playground.fetch_runtime(folder) == folder


def no_registry(monkeypatch, tmp_path: Path) -> None:
    """Neither npm nor a package index: what a machine without a connection has."""
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")


def test_without_registries_the_reason_is_one_line(tmp_path, monkeypatch):
    no_registry(monkeypatch, tmp_path)
    with pytest.raises(sphinx_playground.RuntimeUnavailableError, match="no npm here") as raised:
        sphinx_playground.fetch_runtime(tmp_path / "kept")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "kept").exists()


def test_an_npm_that_finds_nothing_is_told_apart(tmp_path, monkeypatch):
    (tmp_path / "npm").write_text(f"#!{sys.executable}\nraise SystemExit(1)\n")
    (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(sphinx_playground.RuntimeUnavailableError, match="cannot reach a registry"):
        sphinx_playground.fetch_runtime(tmp_path / "kept")


def test_pages_without_the_runtime_are_made_and_say_so(tmp_path, monkeypatch, capsys):
    no_registry(monkeypatch, tmp_path)
    monkeypatch.setattr(sphinx_playground, "runtime_folder", lambda: tmp_path / "kept")
    results = tmp_path / "results" / "chapters--playground" / "playground"
    results.mkdir(parents=True)
    for name in ("model.onnx", "vocabulary.js", "exported.txt"):
        (results / name).write_text(name)
    app = SimpleNamespace(
        builder=SimpleNamespace(format="html"),
        outdir=tmp_path / "html",
        confdir=tmp_path,
        config=SimpleNamespace(
            nb_execution_cache_path=str(tmp_path / "jupyter_cache"), mathjax_path="mathjax/x.js"
        ),
    )
    env = SimpleNamespace(found_docs={"chapters/playground"})
    sphinx_playground.place_files(app, env, [])
    target = tmp_path / "html" / "_static" / "playground"
    assert '{"runtime": null, "model": true}' in (target / "build.js").read_text()
    assert (target / "model.onnx").read_text() == "model.onnx"
    assert {*sphinx_playground.SCRIPTS, sphinx_playground.STYLE, "worker.js"} <= {
        path.name for path in target.iterdir()
    }
    assert "goes without onnxruntime-web" in capsys.readouterr().out
    # An edition in another language uses these files; one without the page needs none.
    for mathjax, found in (("../../_static/x.js", env.found_docs), ("mathjax/x.js", set())):
        app.config.mathjax_path, app.outdir = mathjax, tmp_path / "other"
        sphinx_playground.place_files(app, SimpleNamespace(found_docs=found), [])
        assert not (tmp_path / "other").exists()
