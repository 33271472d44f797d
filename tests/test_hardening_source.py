"""What the source may not do, read from its syntax: run strangers' code, or leave a folder."""

import ast
import json
import re
from pathlib import Path

import pytest
from hostile import files_below, fuzz, json_values, texts, tried
from hypothesis import given
from hypothesis import strategies as st
from tiny import tiny_encoder

from bertology_utils.encoder import UnknownModelError, load_encoder, save_encoder
from tools.grading.assignment import SETUP_TAG
from tools.grading.codec import CodecError, dumps, loads
from tools.grading.judge import Verdict
from tools.grading.scores import (
    Row,
    ScoresError,
    _cell,
    _write_table,
    as_record,
    code_cells,
    submissions,
)

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path for folder in ("bertology_utils", "tools", "assignments")
    for path in (ROOT / folder).rglob("*.py")
)  # fmt: skip

#: modules that run code from data, and where that is the purpose: a submission's own process
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
FORBIDDEN_CALLS = {
    "eval", "exec", "__import__", "torch.load", "torch.jit.load", "os.system",
    "os.popen", "yaml.unsafe_load", "yaml.full_load", "tarfile.open", "zipfile.ZipFile",
    "shutil.unpack_archive", "pandas.read_pickle", "torch.hub.load",
}  # fmt: skip
#: (file, call): why it is there
ALLOWED = {
    ("tools/grading/worker.py", "exec"): "the submission, in its own shut-off process",
    ("tools/grading/judge.py", "exec"): "the given cells of our own masters",
    ("tools/sphinx_playground.py", "tarfile.open"): "of a pinned digest; single files, by name",
}


def calls(tree: ast.AST):
    """(call, its node) with the names of imported modules spelled out."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {a.asname: a.name for a in node.names if a.asname}
        elif isinstance(node, ast.ImportFrom):
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            parts, place = [], node.func
            while isinstance(place, ast.Attribute):
                parts.append(place.attr)
                place = place.value
            head = names.get(place.id, place.id) if isinstance(place, ast.Name) else "..."
            yield ".".join([head, *reversed(parts)]), node


def keyword(node: ast.Call, name: str):
    found = next((k.value for k in node.keywords if k.arg == name), None)
    return found.value if isinstance(found, ast.Constant) else found


def offences(path: Path, text: str) -> list[str]:
    """What a file does that it may not do."""
    tree, found = ast.parse(text), []
    for node in ast.walk(tree):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        bad = {module.split(".")[0] for module in modules} & FORBIDDEN_MODULES
        found += [f"{path}:{node.lineno}: imports {name}" for name in sorted(bad)]
    for call, node in calls(tree):
        wrong = (
            call in FORBIDDEN_CALLS and (path.as_posix(), call) not in ALLOWED,
            call == "numpy.load" and keyword(node, "allow_pickle") is not False,
            call == "yaml.load" and not re.search("Safe|loader", ast.unparse(node)),
            call.endswith(".from_pretrained") and "Model" in call
            and keyword(node, "use_safetensors") is not True,
            keyword(node, "shell") is True,
            keyword(node, "trust_remote_code") not in (None, False),
            keyword(node, "verify") is False,
            keyword(node, "weights_only") not in (None, True),
        )  # fmt: skip
        if any(wrong):
            found.append(f"{path}:{node.lineno}: {call}")
    return found


def test_no_code_is_run_from_data():
    found = []
    for path in SOURCES:
        found += offences(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "eval('1')", "import pickle", "from torch import load as l; l('x')", "torch.load('x')",
        "import numpy as np; np.load('x')", "import yaml; yaml.load(x, Loader=yaml.Loader)",
        "import os; os.system('x')", "run('x', shell=True)",
        "from transformers import AutoModel; AutoModel.from_pretrained('x')",
        "f(trust_remote_code=True)", "exec(compile('', '', 'exec'))",
    ],
)  # fmt: skip
def test_the_check_notices(line):
    assert offences(Path("x.py"), line)


@pytest.mark.parametrize("where", ["config.json", "tokenizer_config.json"])
def test_code_that_comes_with_a_model_is_not_run(tmp_path, where):
    folder = save_encoder(tiny_encoder("bert", n_layers=1), tmp_path / "bert")
    ran = tmp_path / "ran"
    (folder / "evil.py").write_text(f"open({str(ran)!r}, 'w')\nclass Evil: pass\n")
    settings = json.loads((folder / where).read_text())
    names = ("AutoConfig", "AutoModel", "AutoModelForPreTraining", "AutoTokenizer")
    settings["auto_map"] = dict.fromkeys(names, "evil.Evil")
    (folder / where).write_text(json.dumps(settings))
    assert load_encoder(folder, device="cpu").name == "bert"
    if where == "config.json":
        (folder / where).write_text(json.dumps({**settings, "model_type": "evil"}))
        with pytest.raises(UnknownModelError, match="'bert'"):
            load_encoder(folder, device="cpu")
    assert not ran.exists()


DAMAGED = (b"", b"{}", b"\xff" * 64, (1 << 62).to_bytes(8, "little") + b"{}", b"\x80\x04\x95.")


@pytest.mark.parametrize("content", DAMAGED)
def test_damaged_weights_are_one_clear_line(tmp_path, content):
    folder = save_encoder(tiny_encoder("bert", n_layers=1), tmp_path / "bert")
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(UnknownModelError, match="'bert'") as caught:
        load_encoder(folder, device="cpu")
    assert "\n" not in str(caught.value) and str(tmp_path) not in str(caught.value)


# -- submissions ---------------------------------------------------------------------------------


@fuzz
@given(st.binary(max_size=60) | json_values.map(lambda v: json.dumps(v).encode())
       | json_values.map(lambda v: json.dumps({"cells": v}).encode())
       | st.lists(st.dictionaries(st.sampled_from(["cell_type", "source", "metadata"]),
                                  json_values | texts | st.just("code"), max_size=3),
                  max_size=3).map(lambda v: json.dumps({"cells": v}).encode())
       | st.just(b"[" * 100_000))  # fmt: skip
def test_notebooks_of_anything(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("notebooks") / "x.ipynb"
    path.write_bytes(content)
    cells, _ = tried(lambda: code_cells(path), ScoresError)
    assert cells is None or all(isinstance(cell, str) for cell in cells)


def test_links_in_a_folder_of_submissions_are_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.ipynb").write_text("{}")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "own.ipynb").write_text("{}")
    (folder / "link.ipynb").symlink_to(outside / "secret.ipynb")
    (folder / "linked").symlink_to(outside)
    (folder / "dangling.ipynb").symlink_to("nowhere")
    assert [path.name for path in submissions(folder)] == ["own.ipynb"]


class _Assignment:
    points, questions, written = 1.0, (), {}


@fuzz
@given(texts, texts, st.lists(texts, max_size=3))
def test_a_table_of_scores_takes_any_name_and_reason(tmp_path_factory, file, student, reasons):
    folder = tmp_path_factory.mktemp("scores")
    table = folder / "scores.csv"
    row = Row(_cell(file), student, Verdict("graded", {}, tuple(reasons)), "d", "limits")
    record = as_record(row, _Assignment)
    _write_table(table, list(record), {row.file: record})
    assert list(files_below(folder)) == ["scores.csv"]
    for value in record.values():
        assert not re.match(r"[=+\-@]", value) and not re.search(r"[\x00-\x1f]", value)


@fuzz
@given(json_values | st.recursive(st.integers() | texts, lambda inner: st.lists(inner, max_size=2)
                                  | st.tuples(inner), max_leaves=5))  # fmt: skip
def test_plain_data_crosses_unchanged(value):
    line, error = tried(lambda: dumps(value), CodecError)
    if error is None and value == value and "nan" not in repr(value):
        assert loads(line) == value


@fuzz
@given(texts | json_values.map(json.dumps)
       | st.dictionaries(st.sampled_from(["\0kind", "items", "pairs", "dtype", "shape", "data",
                                          "name"]),
                         json_values | st.sampled_from(["array", "tensor", "set", "dict", "shared",
                                                        "O", "V8", "<f8", "AAAA"]),
                         max_size=5).map(json.dumps))  # fmt: skip
def test_lines_of_anything_are_read_or_refused(line):
    tried(lambda: loads(line), CodecError)


def test_the_set_up_cell_is_left_out(tmp_path):
    path = tmp_path / "x.ipynb"
    cells = [{"cell_type": "code", "source": ["a\n", "b"]},
             {"cell_type": "code", "source": "c", "metadata": {"tags": [SETUP_TAG]}}]  # fmt: skip
    path.write_text(json.dumps({"cells": cells}))
    assert code_cells(path) == ["a\nb"]
