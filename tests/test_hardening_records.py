"""Records, claims, settings and corpora from anywhere: kept whole, or refused by name."""

import json
import math
from dataclasses import asdict, fields

import numpy as np
import pytest
import yaml
from hostile import NASTY, files_below, fuzz, json_values, no_texts, texts, tried
from hypothesis import given
from hypothesis import strategies as st
from tiny import wordpiece_tokenizer

from bertology_utils.__main__ import main
from bertology_utils.lab.config import ConfigError, LabConfig
from bertology_utils.lab.grid import Grid
from bertology_utils.lab.runs import RunFileError, read_run
from bertology_utils.ledger import (
    BrokenModel,
    ClaimsFileError,
    Measurement,
    MeasurementError,
    NotTestable,
    ResultFileError,
    UnknownClaimError,
    WrongModeError,
    adopt,
    folder_name,
    load_claims,
    models,
    record,
    record_text,
    result,
    results,
)
from bertology_utils.ledger.claims import CLAIMS_FILE
from bertology_utils.reproduce.errors import ReproduceError
from bertology_utils.reproduce.models import choose
from bertology_utils.reproduce.plan import Manifest, select_claims
from bertology_utils.training.text import CorpusError, load_corpus, load_specs, read_lines

numbers = st.one_of(
    st.floats(), st.integers(-3, 3), st.just(10**400), st.booleans(), st.none(), st.text(max_size=3)
)
CLAIM = "SYN-13"


def measured(**changes) -> Measurement:
    claim = load_claims()[CLAIM]
    return Measurement(**{
        "value": 0.5, "unit": claim.measure.unit, "n": 500, "model": "m",
        "baselines": dict.fromkeys(claim.measure.baselines, 0.25), **changes,
    })  # fmt: skip


# -- the ledger ----------------------------------------------------------------------------------


@fuzz
@given(numbers, numbers, numbers, st.lists(numbers, max_size=3) | numbers,
       st.dictionaries(texts, numbers, max_size=2) | numbers, texts | no_texts)  # fmt: skip
def test_measurements_are_finite_or_refused(value, n, seed, interval, details, model):
    made, _ = tried(
        lambda: measured(value=value, n=n, seed=seed, interval=interval, details=details,
                         model=model),
        MeasurementError,
    )  # fmt: skip
    if made is not None:
        assert math.isfinite(made.value) and made.n >= 1
        json.dumps(asdict(made), allow_nan=False)


@fuzz
@given(texts)
def test_any_model_name_is_kept_under_its_own_folder(tmp_path_factory, name):
    root = tmp_path_factory.mktemp("results") / "root"
    _, error = tried(lambda: record(CLAIM, measured(model=name), root=root), MeasurementError)
    if error is not None:
        assert not root.exists()
        return
    (folder,) = root.iterdir()  # below the root, whatever the name says
    assert len(folder.name) <= 90
    assert result(CLAIM, name, root).model == name
    assert models(root) == (name,)


@fuzz
@given(texts, texts)
def test_folders_of_different_models_differ(one, other):
    assert (folder_name(one) == folder_name(other)) == (one == other)
    assert "/" not in folder_name(one) and folder_name(one) not in (".", "..", "")


@fuzz
@given(texts, st.sampled_from([NotTestable, BrokenModel]))
def test_reasons_of_anything(tmp_path_factory, text, kind):
    root = tmp_path_factory.mktemp("results") / "root"
    call = lambda: record(CLAIM, kind(model="m", reason=text), root=root)  # noqa: E731
    kept, error = tried(call, ValueError)
    if error is None:
        assert result(CLAIM, "m", root).outcome.reason == text
        assert "<script" not in kept._repr_html_()
    else:
        assert CLAIM in str(error) and not root.exists()


@fuzz
@given(texts | no_texts)
def test_unknown_claims_are_named(claim_id):
    ledger = load_claims()
    _, error = tried(lambda: ledger[claim_id], UnknownClaimError)
    assert error is not None
    tried(lambda: record(claim_id, measured()), UnknownClaimError, WrongModeError)


@fuzz
@given(json_values, st.binary(max_size=60), st.integers(0, 400), st.integers(0, 4))
def test_a_damaged_record_is_refused_and_left_alone(tmp_path_factory, value, content, cut, how):
    root = tmp_path_factory.mktemp("results")
    record(CLAIM, measured(), root=root)
    path = root / "m" / f"{CLAIM}.json"
    whole = path.read_bytes()
    raw = json.loads(whole)
    part = sorted(raw)[cut % len(raw)]
    path.write_bytes((
        content,
        whole[:cut],
        json.dumps(value).encode(),
        json.dumps({**raw, part: value}).encode(),
        json.dumps({**raw, "outcome": {**raw["outcome"], "value": value}}).encode(),
    )[how])  # fmt: skip
    before = files_below(root)
    tried(lambda: result(CLAIM, "m", root), ResultFileError)
    tried(lambda: models(root), ResultFileError)
    assert files_below(root) == before


@pytest.mark.parametrize("damage", [b"", b"\xff", b"[" * 100_000, b"9" * 5000, b"null"])
def test_what_json_trips_over_is_no_record(tmp_path, damage):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / f"{CLAIM}.json").write_bytes(damage)
    for call in (lambda: result(CLAIM, "m", tmp_path), lambda: results("m", tmp_path),
                 lambda: models(tmp_path)):  # fmt: skip
        with pytest.raises(ResultFileError, match=CLAIM):
            call()


@fuzz
@given(texts | json_values.map(json.dumps))
def test_adopting_anything_leaves_nothing_behind(tmp_path_factory, text):
    root = tmp_path_factory.mktemp("adopted")
    _, error = tried(lambda: adopt(text, root), ResultFileError)
    assert error is not None and files_below(root) == {}


def test_adopting_a_record_of_a_hostile_model_stays_below_the_root(tmp_path):
    record(CLAIM, measured(), root=tmp_path / "one")
    raw = json.loads(record_text(CLAIM, "m", tmp_path / "one"))
    raw["model"] = raw["outcome"]["model"] = "../../../escaped"
    adopt(json.dumps(raw), tmp_path / "deep" / "er" / "two")
    (folder,) = (tmp_path / "deep" / "er" / "two").iterdir()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["deep", "one"]
    raw["claim"] = "../../escaped"
    with pytest.raises(ResultFileError):
        adopt(json.dumps(raw), tmp_path / "two")
    assert not (tmp_path / "two").exists()


SHIPPED = yaml.load(CLAIMS_FILE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
SMALL = {**SHIPPED, "claims": [row for row in SHIPPED["claims"] if row["id"] == CLAIM]}


def test_the_small_claims_file_is_read(tmp_path):
    (tmp_path / "claims.yml").write_text(yaml.safe_dump(SMALL))
    assert list(load_claims(tmp_path / "claims.yml")) == [CLAIM]


@fuzz
@given(json_values, st.data())
def test_claims_of_anything(tmp_path_factory, value, data):
    path = tmp_path_factory.mktemp("claims") / "claims.yml"
    row = dict(SMALL["claims"][0])
    field = data.draw(st.sampled_from(sorted(row)))
    clause = data.draw(st.sampled_from(sorted(row["rule"])))
    part = data.draw(st.sampled_from(sorted(SMALL)))
    changed = data.draw(st.sampled_from([
        {**SMALL, part: value},
        {**SMALL, "claims": [{**row, field: value}]},
        {**SMALL, "claims": [{**row, "rule": {**row["rule"], clause: value}}]},
        {**SMALL, "claims": [{**row, "measure": {**row["measure"], "unit": value}}]},
        value,
    ]))  # fmt: skip
    path.write_text(yaml.safe_dump(changed))
    _, error = tried(lambda: load_claims(path), ClaimsFileError)
    assert error is None or CLAIM in str(error) or "claims.yml" in str(error)


@fuzz
@given(st.binary(max_size=80) | texts.map(lambda t: t.encode("utf-8", "surrogatepass"))
       | st.just(b"[" * 20_000))  # fmt: skip
def test_claims_files_of_any_bytes(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("claims") / "claims.yml"
    path.write_bytes(content)
    _, error = tried(lambda: load_claims(path), ClaimsFileError)
    assert error is not None and "claims.yml" in str(error)


# -- reproduce -----------------------------------------------------------------------------------


@fuzz
@given(st.lists(texts | st.sampled_from(["SYN-*", "*", "[", "[!", "KNO-0?"]), max_size=3))
def test_patterns_of_anything(patterns):
    found, error = tried(lambda: select_claims(patterns), ReproduceError)
    if error is None:
        assert set(found) <= set(load_claims())


@fuzz
@given(st.lists(texts | st.sampled_from(["random", "random:3", "random:" + "9" * 5000]),
                min_size=1, max_size=3))  # fmt: skip
def test_model_choices_of_anything(names):
    found, error = tried(lambda: choose(names), ReproduceError)
    if error is None:
        assert len({choice.name for choice in found}) == len(names)


@fuzz
@given(st.binary(max_size=60) | json_values.map(lambda v: json.dumps(v).encode())
       | st.just(b"[" * 100_000), texts)  # fmt: skip
def test_lost_notes_cost_time_only(tmp_path_factory, content, model):
    root = tmp_path_factory.mktemp("notes")
    (root / "reproduced.json").write_bytes(content)
    choices, _ = tried(lambda: choose([model]), ReproduceError)
    for choice in choices or ():
        assert Manifest(root).fingerprint(choice, CLAIM) is None


# -- settings of the lab -------------------------------------------------------------------------


@fuzz
@given(st.dictionaries(st.sampled_from([f.name for f in fields(LabConfig)]) | texts,
                       numbers | st.lists(numbers, max_size=1) | texts, max_size=3))  # fmt: skip
def test_lab_settings_of_anything(changes):
    config, _ = tried(lambda: LabConfig().but(**changes), ConfigError)
    if config is not None:
        assert len(config.digest) == 20
        hash(config.family)
        json.dumps(asdict(config), allow_nan=False)


@fuzz
@given(st.binary(max_size=40) | json_values.map(lambda v: json.dumps(v).encode())
       | st.just(b"[" * 100_000))  # fmt: skip
def test_a_damaged_run_of_the_lab_is_refused(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("runs")
    config = LabConfig()
    (folder / f"{config.digest}.json").write_bytes(content)
    (folder / f"{config.digest}.safetensors").write_bytes(content)
    _, error = tried(lambda: read_run(config, folder), RunFileError)
    assert error is not None
    with pytest.warns(UserWarning, match="computed again"):
        assert Grid(folder).find(config) is None


# -- text to train on ----------------------------------------------------------------------------

TOKENIZER = wordpiece_tokenizer()


@fuzz
@given(st.lists(texts, max_size=5), st.binary(max_size=30))
def test_corpora_of_anything(tmp_path_factory, lines, tail):
    folder = tmp_path_factory.mktemp("text")
    content = "\n".join(lines).encode("utf-8", "surrogatepass") + tail
    (folder / "a.txt").write_bytes(content)
    found, error = tried(
        lambda: load_corpus(folder, TOKENIZER, cache=folder / "cache"), CorpusError
    )
    if error is None:
        for source in found[0]:
            assert source.lines[-1] == len(source.ids) > 0
            assert np.all(np.diff(source.sentences) > 0)
    else:
        assert "a.txt" in str(error) or "a:" in str(error)
        assert not list(folder.glob("cache/*"))


@pytest.mark.parametrize("name", ["a.txt", "a.txt.xz"])
def test_a_file_of_another_encoding_is_named_with_its_line(tmp_path, name):
    import lzma

    content = b"a good line\n" * 3000 + "caf\u00e9\n".encode("latin-1")
    (tmp_path / name).write_bytes(lzma.compress(content) if name.endswith("xz") else content)
    with pytest.raises(CorpusError, match=rf"{name}:3001: not UTF-8"):
        read_lines(tmp_path / name)
    (tmp_path / name).write_bytes(b"\xfd7zXZ\x00" + content[:40])
    with pytest.raises(CorpusError, match=name):
        read_lines(tmp_path / name)


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04", b"\x93NUMPY", b"x" * 100])
def test_a_damaged_cache_of_a_corpus_is_made_again(tmp_path, damage):
    (tmp_path / "a.txt").write_text("the cat sat on the mat.\nthe dogs bark.\n" * 200)
    fresh = load_corpus(tmp_path, TOKENIZER, cache=tmp_path / "cache")
    (entry,) = (tmp_path / "cache").iterdir()
    entry.write_bytes(damage)
    again = load_corpus(tmp_path, TOKENIZER, cache=tmp_path / "cache")
    np.testing.assert_array_equal(again[0][0].ids, fresh[0][0].ids)
    assert entry.read_bytes() != damage


@fuzz
@given(
    json_values
    | st.dictionaries(
        texts,
        st.dictionaries(st.sampled_from(["weight", "ordered", "x"]), numbers, max_size=2),
        max_size=2,
    )
)
def test_specs_of_anything(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("specs") / "specs.json"
    path.write_text(json.dumps(value))
    specs, error = tried(lambda: load_specs(path), CorpusError)
    if error is None:
        assert all(math.isfinite(s.weight) and isinstance(s.ordered, bool) for s in specs.values())
    else:
        assert path.name in str(error)


# -- the command line ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", [n for n in NASTY if n.strip() and len(n) < 5000 and "\x00" not in n]
)
def test_the_command_line_refuses_in_one_line(capsys, tmp_path, name):
    assert main(["evaluate-model", "--", name]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and said.err.startswith("error: ")
    assert main(["reproduce", "--results", str(tmp_path / "r"), "--claims", name]) == 2
    assert not (tmp_path / "r").exists()
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a": {"b": 1}}'])
def test_settings_named_on_the_command_line(capsys, tmp_path, content):
    (tmp_path / "specs.json").write_bytes(content)
    out = tmp_path / "out.json"
    command = ["evaluate-model", "--sources", str(tmp_path / "specs.json"), "--json", str(out)]
    assert main(command) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ") and said.err.count("\n") == 1 and not out.exists()
