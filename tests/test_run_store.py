"""Finished runs are found again; damaged, foreign or half-written ones are computed again."""

import json
import math
from dataclasses import dataclass, field

import pytest

from bertology_utils.run_store import RunStore, settings_of
from bertology_utils.writing import write_whole


@dataclass(frozen=True)
class Inner:
    rate: float = 0.1


@dataclass(frozen=True)
class Config:
    name: str = "a"
    seed: int = 0
    parts: tuple[Inner, ...] = (Inner(),)


@dataclass(frozen=True)
class Other:
    name: str = "a"
    seed: int = 0
    parts: tuple[Inner, ...] = (Inner(),)


@dataclass(frozen=True)
class Loose:
    thing: object = field(default_factory=object)


def seconds(batch):
    seconds.calls += [config.seed for config in batch]
    return [{"value": config.seed / 3, "list": [1, 2.5]} for config in batch]


@pytest.fixture(autouse=True)
def counted():
    seconds.calls = []


CONFIGS = [Config(seed=seed) for seed in (2, 0, 2, 1)]


@pytest.mark.parametrize("kept", ("memory", "folder"))
def test_each_run_is_computed_once_and_given_in_order(tmp_path, kept):
    folder = tmp_path / "new" if kept == "folder" else None
    store, told = RunStore(folder), []
    found = store.run(CONFIGS, seconds, done=lambda config, record: told.append(config.seed))
    assert [record["value"] for record in found] == [2 / 3, 0, 2 / 3, 1 / 3]
    assert seconds.calls == told == [2, 0, 1]
    assert store.run(CONFIGS, seconds) == found and seconds.calls == [2, 0, 1]
    if folder is not None:
        assert RunStore(folder).run(CONFIGS, seconds) == found and seconds.calls == [2, 0, 1]
        assert not [path for path in folder.iterdir() if path.suffix != ".json"]


def test_a_digest_tells_settings_kinds_and_surroundings_apart():
    store = RunStore()
    names = [store.digest(config) for config in (
        Config(), Config(seed=1), Config(parts=(Inner(0.2),)), Config(parts=()), Other())]
    names.append(RunStore(made_with="another package").digest(Config()))
    assert len(set(names)) == len(names)
    assert store.digest(Config("a", 0)) == names[0]
    assert settings_of(Config())["parts"] == [{"kind": "Inner", "rate": 0.1}]
    with pytest.raises(TypeError, match="object"):
        store.digest(Loose())


def test_batches_are_dealt_among_missing_runs_only(tmp_path):
    store, seen = RunStore(tmp_path), []

    def pairs(configs):
        seen.append(len(configs))
        return [configs[i : i + 2] for i in range(0, len(configs), 2)]

    store.keep(Config(seed=1), {"value": 5})
    found = store.run([Config(seed=s) for s in range(4)], seconds, batches=pairs)
    assert seen == [3] and seconds.calls == [0, 2, 3] and found[1] == {"value": 5}
    with pytest.raises(ValueError, match="0 records for 1 runs"):
        store.run([Config(seed=9)], lambda batch: [])


def spoil_bytes(path):
    path.write_bytes(b"\xff\xfe not json")


def spoil_tail(path):
    path.write_text(path.read_text()[:-20])


def spoil_number(path):
    whole = json.loads(path.read_text())
    whole["record"]["value"] = 0.9
    path.write_text(json.dumps(whole))


def spoil_owner(path):
    whole = json.loads(path.read_text())
    whole["settings"]["seed"] = 77
    path.write_text(json.dumps(whole))


def spoil_package(path):
    whole = json.loads(path.read_text())
    whole["made_with"] = "an older package"
    path.write_text(json.dumps(whole))


def spoil_shape(path):
    path.write_text("[1, 2]")


@pytest.mark.parametrize(("spoil", "word"), [
    (spoil_bytes, "cannot be read"), (spoil_tail, "damaged"), (spoil_shape, "damaged"),
    (spoil_number, "changed after"), (spoil_owner, "another run"), (spoil_package, "another run"),
])
def test_what_cannot_be_trusted_is_said_and_computed_again(tmp_path, spoil, word):
    RunStore(tmp_path).run(CONFIGS, seconds)
    path = tmp_path / f"{RunStore().digest(Config(seed=1))}.json"
    spoil(path)
    seconds.calls, lines = [], []
    store = RunStore(tmp_path, report=lines.append)
    found = store.run(CONFIGS, seconds)
    assert seconds.calls == [1] and found[-1]["value"] == 1 / 3
    assert len(lines) == 1 and path.name in lines[0] and word in lines[0]
    assert "again" in lines[0]
    assert RunStore(tmp_path, report=lines.append).run(CONFIGS, seconds) == found
    assert len(lines) == 1 and seconds.calls == [1]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    target = tmp_path / "a.json"
    write_whole(target, "old")

    def full(*args):
        raise OSError("disk full")

    monkeypatch.setattr("bertology_utils.writing.os.replace", full)
    with pytest.raises(OSError, match="disk full"):
        write_whole(target, "new")
    assert target.read_text() == "old" and list(tmp_path.iterdir()) == [target]


def test_a_record_reads_the_same_now_and_later(tmp_path):
    store = RunStore(tmp_path)
    store.keep(Config(), {"tuple": (1, 2), "third": 1 / 3, "low": -math.inf})
    assert store.find(Config()) == RunStore(tmp_path).find(Config())
    assert store.find(Config())["tuple"] == [1, 2]
    with pytest.raises(TypeError):
        store.keep(Config(seed=1), {"bad": object()})
    assert store.find(Config(seed=1)) is None
