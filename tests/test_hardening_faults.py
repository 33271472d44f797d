"""Killed at any moment, on a full or read-only disk, twice at once, with a clock set back:
everything the package keeps on disk stays whole, is made again, or is refused in one line."""

import ast
import errno
import json
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from faults import Disk, at_change, die, die_when_a_file_reaches, in_child, on_a_small_disk
from safetensors.torch import load_file
from tiny import TEXTS, tiny_encoder, wordpiece_tokenizer
from torch import nn

from bertology_utils import compression, ledger, playground
from bertology_utils.__main__ import main
from bertology_utils.activations import CollectedError, collect, open_collected
from bertology_utils.encoder import load_encoder, save_encoder
from bertology_utils.lab import Grid, LabConfig, LabRun, RunFileError, read_run, write_run
from bertology_utils.lab import grid as grid_module
from bertology_utils.ledger import Measurement, load_claims
from bertology_utils.reproduce.chapters import environment_digest
from bertology_utils.reproduce.errors import ReproduceError
from bertology_utils.reproduce.plan import Manifest
from bertology_utils.reproduce.run import reproduce
from bertology_utils.run_store import RunStore
from bertology_utils.sweeps import Sweep, SweepError, run_sweep
from bertology_utils.training import checkpoints, text
from bertology_utils.training.card import read_log
from bertology_utils.training.checkpoints import CheckpointError
from bertology_utils.training.export import TOKENIZER_FILES, export_model
from bertology_utils.training.pretrain import PretrainConfig, initial_model, pretrain
from bertology_utils.writing import (
    NotWrittenError,
    locked,
    remove_leftovers,
    whole_file,
    whole_folder,
    write_whole,
)
from tools.catalogues import update
from tools.grading import scores

ROOT = Path(__file__).resolve().parent.parent
TOKENIZER = wordpiece_tokenizer()
ENCODER = tiny_encoder("bert", n_layers=1)
FULL = "No space left on device|File too large"
FROZEN = "Read-only file system|Permission denied"


# -- everything that is kept on disk ---------------------------------------------------------------


@dataclass(frozen=True)
class Kept:
    """A thing on disk: how version 1 or 2 of it is written, and how to tell which is there.

    ``read`` gives None where nothing is kept, and raises where something is wrong.
    """

    write: Callable[[Path, int], Any]
    read: Callable[[Path], int | None]
    replaces: bool = True


@dataclass(frozen=True)
class Setting:
    seed: int = 0


def keep_record(folder: Path, version: int) -> None:
    RunStore(folder, report=pytest.fail).keep(Setting(), {"version": version})


def read_record(folder: Path) -> int | None:
    found = RunStore(folder, report=pytest.fail).find(Setting())
    return None if found is None else found["version"]


def measured(version: int) -> Measurement:
    measure = load_claims()["SYN-13"].measure
    return Measurement(value=0.1 * version, unit=measure.unit, n=500, model="m",
                       baselines=dict.fromkeys(measure.baselines, 0.25))  # fmt: skip


def read_result(folder: Path) -> int | None:
    found = ledger.result("SYN-13", "m", folder)
    ledger.models(folder)  # a scratch that was left must not be taken for a result
    return None if found is None else round(10 * found.measurement.value)


CHOICE = SimpleNamespace(name="m")


def add_notes(folder: Path, version: int) -> None:
    Manifest(folder).add(SimpleNamespace(model=CHOICE, fingerprint=f"{version:099d}"), ["SYN-13"])


def read_notes(folder: Path) -> int | None:
    found = Manifest(folder).fingerprint(CHOICE, "SYN-13")
    return None if found is None else int(found)


TRAINED = LabConfig(steps=1, batch=2, width=16, sentences=20)


def lab_run(version: int) -> LabRun:
    weights, early = ({"words": torch.full((1, 4, 2), float(version))} for _ in range(2))
    return LabRun(TRAINED, (0, 1), (2.5,), {"loss": (float(version), 1 / 3)}, 0.1, weights, early)


def read_lab_run(folder: Path) -> int | None:
    found = read_run(TRAINED, folder)
    if found is None:
        return None
    assert found.weights["words"][0, 0, 0] == found.curves["loss"][0]
    return int(found.curves["loss"][0])


def trained_model(version: int = 0) -> tuple[nn.Linear, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    with torch.no_grad():
        model.weight.fill_(version)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    if version:
        optimizer.step()
        optimizer.state[model.weight]["exp_avg"].fill_(version)
        with torch.no_grad():
            model.weight.fill_(version)
    return model, optimizer


PLAN = {"steps": 9, "decay_steps": 0}


def save_checkpoint(folder: Path, version: int) -> None:
    checkpoints.save(folder, version, *trained_model(version), PLAN)


def read_checkpoint(folder: Path) -> int | None:
    model, optimizer = trained_model()
    step = checkpoints.resume(folder, model, optimizer, PLAN, report=pytest.fail)
    if step:
        assert model.weight[0, 0] == optimizer.state[model.weight]["exp_avg"][0, 0] == step
    return step or None


def write_text(folder: Path, version: int) -> tuple:
    source = folder.parent / f"{folder.name}-text"
    source.mkdir(exist_ok=True)
    (source / "a.b.txt").write_text(f"the cat sat on mat {version}.\nthe dogs bark.\n" * 60)
    return text.load_corpus(source, TOKENIZER, cache=folder)


def read_text(folder: Path) -> int | None:
    entries = [path for path in folder.glob("*") if path.suffix == ".npz"]
    for path in entries:
        with np.load(path) as arrays:
            for name in arrays:
                assert arrays[name].size
    return len(entries) or None


def write_activations(folder: Path, version: int) -> None:
    collect(ENCODER, TEXTS, ["hidden_states", "pattern"], out=folder / "rows")


def read_activations(folder: Path) -> int | None:
    if not (folder / "rows").exists():
        return None
    found = open_collected(folder / "rows")
    assert np.array_equal(found.arrays["hidden_states"], collect(ENCODER, TEXTS).arrays[
        "hidden_states"]) and len(found.patterns) == len(TEXTS)  # fmt: skip
    return 2


def read_model(folder: Path) -> int | None:
    if not (folder / "model").exists():
        return None
    found = load_encoder(folder / "model", device="cpu")
    assert torch.equal(found.model.get_input_embeddings().weight,
                       ENCODER.model.get_input_embeddings().weight)  # fmt: skip
    return 2


def write_compact(folder: Path, version: int) -> None:
    compression.save(compression.compact(ENCODER, 2), folder / "small.safetensors")


def read_compact(folder: Path) -> int | None:
    if not (folder / "small.safetensors").exists():
        return None
    compression.load(folder / "small.safetensors")
    return 2


def bert(version: int):
    model = initial_model(None, ENCODER.model.config, seed=version)
    with torch.no_grad():
        model.cls.seq_relationship.bias.fill_(version)
    return model


def read_export(folder: Path) -> int | None:
    if not (folder / "out" / "model.safetensors").exists():
        return None
    for name in ("config.json", *TOKENIZER_FILES):
        assert json.loads((folder / "out" / name).read_text())
    weights = load_file(folder / "out" / "model.safetensors")
    return int(weights["cls.seq_relationship.bias"][0])


def write_catalogue(folder: Path, version: int) -> None:
    from babel.messages.catalog import Catalog

    template = Catalog()
    for number in range(version):
        template.add(f"text {number} " * 20)
    update(folder, "zh_CN", {"page": template})


def read_catalogue(folder: Path) -> int | None:
    path = folder / "locale" / "zh_CN" / "LC_MESSAGES" / "page.po"
    return path.read_text().count("\nmsgid") if path.exists() else None


def write_scores(folder: Path, version: int) -> None:
    rows = {f"{n}": {"file": f"{n}", "note": "x" * 50} for n in range(version)}
    scores._write_table(folder / "scores.csv", ["file", "note"], rows)


def read_scores(folder: Path) -> int | None:
    table = folder / "scores.csv"
    if not table.exists():
        return None
    assert table.stat().st_mode & 0o077 == 0, "grades can be read by anybody"
    return len(scores._read_table(table, ["file", "note"]))


KEPT = {
    "record of a run": Kept(keep_record, read_record),
    "result": Kept(lambda f, v: ledger.record("SYN-13", measured(v), root=f), read_result),
    "notes of a reproduction": Kept(add_notes, read_notes),
    "run of the lab": Kept(lambda f, v: write_run(lab_run(v), f), read_lab_run),
    "checkpoint": Kept(save_checkpoint, read_checkpoint),
    "tokenised text": Kept(write_text, read_text),
    "activations": Kept(write_activations, read_activations, replaces=False),
    "model": Kept(lambda f, v: save_encoder(ENCODER, f / "model"), read_model, replaces=False),
    "compressed model": Kept(write_compact, read_compact, replaces=False),
    "exported model": Kept(lambda f, v: export_model(bert(v), TOKENIZER, f / "out"), read_export),
    "catalogue": Kept(write_catalogue, read_catalogue),
    "scores": Kept(write_scores, read_scores),
}


#: where two files belong together, neither may be there for a moment
BETWEEN = {"run of the lab": (1, None, 2)}


def shown(folder: Path) -> dict[str, bytes]:
    """All files below a folder that a reader would see, with their contents."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and not any(part.startswith(".") for part in
                                          path.relative_to(folder).parts)}  # fmt: skip


# -- killed at any moment --------------------------------------------------------------------------


def moments(kept: Kept, folder: Path) -> list[int]:
    """Numbers of changes that writing version 2 makes: of many the first, the last, and some."""
    folder.mkdir()
    if kept.replaces:
        kept.write(folder, 1)

    def counted() -> int:
        seen: list[int] = []
        for number in range(1, 200):
            at_change(number, folder, lambda: seen.append(1))
        kept.write(folder, 2)
        return len(seen)

    total = in_child(counted).value
    assert total >= 3
    return [n for n in range(1, total + 1) if n == 1 or n > total - 5 or n % 5 == 0]


def at_all_moments(kept: Kept, place: Path) -> Iterator[tuple[int, Path]]:
    """Every moment worth a fault, and for each a folder with what was kept before."""
    for number in moments(kept, place / "counted"):
        folder = place / f"moment-{number}"
        folder.mkdir()
        if kept.replaces:
            kept.write(folder, 1)
            assert kept.read(folder) == 1
        yield number, folder


@pytest.mark.parametrize("name", KEPT)
def test_killed_before_any_change_of_the_disk(name, tmp_path):
    kept = KEPT[name]
    for number, folder in at_all_moments(kept, tmp_path):

        def write(folder=folder, number=number):
            at_change(number, folder, die)
            kept.write(folder, 2)

        end = in_child(write)
        assert end.killed
        found = kept.read(folder)
        assert found in BETWEEN.get(name, (1, 2) if kept.replaces else (None, 2))
        if found != 2 or kept.replaces:
            kept.write(folder, 2)
        assert kept.read(folder) == 2


@pytest.mark.parametrize("name", KEPT)
def test_killed_in_the_middle_of_writing(name, tmp_path):
    kept = KEPT[name]
    for size in (0, 9, 90):
        folder = tmp_path / f"killed-{size}"
        folder.mkdir()
        if kept.replaces:
            kept.write(folder, 1)

        def write(folder=folder, size=size):
            die_when_a_file_reaches(size)
            kept.write(folder, 2)

        before = shown(folder)
        end = in_child(write)
        assert end.killed and shown(folder) == before
        kept.write(folder, 2)
        assert kept.read(folder) == 2


# -- full and read-only disks ----------------------------------------------------------------------


def refused(call: Callable[[], Any], reason: str) -> None:
    with pytest.raises(NotWrittenError, match=f"cannot be written: ({reason})") as caught:
        call()
    assert str(caught.value).count("\n") == 0


#: what only saves time: the answer comes all the same
CACHES = {"record of a run", "tokenised text"}


@pytest.mark.parametrize("fault", ["full", "read-only"])
@pytest.mark.parametrize("name", KEPT)
def test_a_disk_that_takes_nothing(name, fault):
    kept = KEPT[name]

    def scenario(disk: Disk) -> None:
        folder = disk.root / "kept"
        folder.mkdir()
        if kept.replaces:
            kept.write(folder, 1)
        if name == "tokenised text":  # its source lies on the same disk
            write_text(disk.root / "other", 2)
        before = files_of(folder)
        (disk.fill if fault == "full" else disk.freeze)()
        try:
            if name in CACHES:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    compute_with_cache(name, disk.root, folder)
                (warning,) = {str(w.message) for w in told}
                assert "not kept" in warning and warning.count("\n") == 0
            else:
                refused(lambda: kept.write(folder, 2), FULL if fault == "full" else FROZEN)
            assert files_of(folder) == before
            assert kept.read(folder) == (1 if kept.replaces else None)
        finally:
            (disk.free if fault == "full" else disk.thaw)()
        kept.write(folder, 2)
        assert kept.read(folder) == 2

    on_a_small_disk(scenario)


def files_of(folder: Path) -> dict[str, bytes]:
    """Hidden ones too: nothing may be left behind."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def compute_with_cache(name: str, root: Path, folder: Path) -> None:
    if name == "record of a run":
        store = RunStore(folder)
        found = store.run([Setting(7), Setting(8)], lambda batch: [{"n": c.seed} for c in batch])
        assert found == [{"n": 7}, {"n": 8}] and store.find(Setting(8)) == {"n": 8}
    else:
        source = root / "other-text"
        (train, *_), _ = text.load_corpus(source, TOKENIZER, cache=folder)
        (again, *_), _ = text.load_corpus(source, TOKENIZER, cache=root / "other")
        assert np.array_equal(train.ids, again.ids)


def test_a_run_that_cannot_be_kept_is_given_all_the_same(monkeypatch):
    monkeypatch.setattr(grid_module, "train", lambda family: [lab_run(1)])

    def scenario(disk: Disk) -> None:
        disk.fill()
        grid = Grid(disk.root / "runs")
        with pytest.warns(UserWarning, match=f"in memory only: .*({FULL})"):
            (run,) = grid.run([TRAINED])
        assert run.losses == (2.5,) and grid.find(TRAINED) is run
        assert not list(disk.root.rglob("*.json"))

    on_a_small_disk(scenario)


def sweep_of(values: tuple[int, ...]) -> Sweep:
    return Sweep("toy", "00", "a toy", {"seed": values}, lambda encoder, seed: Setting(seed),
                 lambda encoder: lambda batch: [{"values": {"height": c.seed}} for c in batch],
                 {"height": "m"}, uses_model=False)  # fmt: skip


def test_a_sweep_whose_disk_fills_up_still_has_its_numbers():
    def scenario(disk: Disk) -> None:
        run_sweep(sweep_of((1,)), None, disk.root / "runs")
        disk.fill()
        lines: list[str] = []
        result = run_sweep(sweep_of((1, 2, 3)), None, disk.root / "runs", say=lines.append)
        assert [row["height"] for row in result.rows] == [1, 2, 3] and result.found == 1
        assert sum("not kept" in line for line in lines) == 1
        disk.free()
        assert run_sweep(sweep_of((1, 2, 3)), None, disk.root / "runs").computed == 2

    on_a_small_disk(scenario)


def book_without_chapters(folder: Path) -> Path:
    (folder / "_config.yml").write_text(
        "parse: {myst_enable_extensions: []}\nexecute: {timeout: 9}\n")  # fmt: skip
    (folder / "_toc.yml").write_text("format: jb-book\nroot: intro\n")
    (folder / "intro.md").write_text("# Welcome\n")
    return folder


def test_commands_refuse_a_read_only_folder_in_one_line(tmp_path, capfd):
    def scenario(disk: Disk) -> None:
        disk.freeze()
        place = str(disk.root / "new")
        assert main(["sweep", "pretraining", "--out", place, "--seeds", "1"]) == 2
        options = ["--claims", "SYN-13", "--book", str(book_without_chapters(tmp_path))]
        assert main(["reproduce", "--results", place, *options]) == 2

    on_a_small_disk(scenario)
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 2, said
    for line in said:
        assert line.startswith("error: ") and "cannot be written: " in line


def test_a_playground_that_cannot_be_written_has_no_record(tmp_path, monkeypatch):
    from bertology_utils.playground import exporting

    graph = SimpleNamespace(SerializeToString=lambda deterministic: b"x" * 5000)
    monkeypatch.setattr(exporting, "build_graph", lambda encoder, moments: graph)
    monkeypatch.setattr(exporting, "input_moments", lambda encoder, texts: None)

    def scenario(disk: Disk) -> None:
        disk.fill()
        refused(lambda: playground.export(ENCODER, disk.root / "p"), FULL)
        assert not list((disk.root / "p").iterdir())
        disk.free()
        playground.export(ENCODER, disk.root / "p")
        assert (disk.root / "p" / exporting.RECORD_FILE).is_file()

    on_a_small_disk(scenario)


# -- damaged and foreign files ---------------------------------------------------------------------

DAMAGES = {
    "cut off": lambda content: content[: len(content) * 2 // 3],
    "empty": lambda content: b"",
    "one bit": lambda content: content[:-30] + bytes([content[-30] ^ 1]) + content[-29:],
    "foreign": lambda content: b"{}",
}


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_of_the_lab_is_made_again(tmp_path, monkeypatch, damage, suffix):
    monkeypatch.setattr(grid_module, "train", lambda family: [lab_run(1)])
    (path,) = [write_run(lab_run(1), tmp_path).with_suffix(suffix)]
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with pytest.raises(RunFileError):
        read_run(TRAINED, tmp_path)
    with pytest.warns(UserWarning, match="computed again"):
        (run,) = Grid(tmp_path).run([TRAINED])
    assert run.losses == read_run(TRAINED, tmp_path).losses == (2.5,)


def test_weights_of_another_run_are_noticed(tmp_path):
    path = write_run(lab_run(1), tmp_path / "one")
    other = write_run(lab_run(2), tmp_path / "two")
    other.with_suffix(".safetensors").replace(path.with_suffix(".safetensors"))
    with pytest.raises(RunFileError, match="changed after"):
        read_run(TRAINED, tmp_path / "one")


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_training_goes_on_from_the_checkpoint_before_a_damaged_one(tmp_path, name, damage):
    for version in (1, 2):
        save_checkpoint(tmp_path, version)
    path = tmp_path / "step-2" / name
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    model, optimizer = trained_model()
    lines: list[str] = []
    if damage == "one bit" and name == "state.json":  # a digit or a name: either may be noticed
        path.write_bytes(b'{"step": 2, "config": []}')
    assert checkpoints.resume(tmp_path, model, optimizer, PLAN, lines.append) == 1
    assert model.weight[0, 0] == optimizer.state[model.weight]["exp_avg"][0, 0] == 1
    (line,) = lines
    assert line.startswith("step-2 is damaged") and "\n" not in line
    save_checkpoint(tmp_path, 2)  # what comes of it when training gets there again
    assert read_checkpoint(tmp_path) == 2


def test_training_does_not_silently_begin_again(tmp_path):
    save_checkpoint(tmp_path, 1)
    (tmp_path / "step-1" / "model.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match="all checkpoints .* are damaged"):
        checkpoints.resume(tmp_path, *trained_model(), PLAN, report=lambda line: None)


def test_a_log_goes_on_after_its_last_whole_line(tmp_path, tiny_corpus):
    train_a_little(tiny_corpus, tmp_path, steps=1)
    log = tmp_path / "log.jsonl"
    whole = read_log(tmp_path)
    log.write_bytes(log.read_bytes() + b'{"step": 1, "mlm_lo')
    assert read_log(tmp_path) == whole
    train_a_little(tiny_corpus, tmp_path, steps=2)
    steps = [json.loads(line)["step"] for line in log.read_text().splitlines()]
    assert sorted(set(steps)) == [1, 2]
    assert [entry["step"] for entry in read_log(tmp_path)][-1] == 2


def test_tokenised_text_belongs_to_its_file_whatever_its_name(tmp_path):
    source, cache = tmp_path / "text", tmp_path / "cache"
    source.mkdir()
    for name, line in (("wiki.en", "the cat sat on the mat."), ("wiki.fr", "paris is in france.")):
        (source / f"{name}.txt").write_text(f"{line}\n" * 200)

    def ids() -> dict[str, list[int]]:
        return {s.name: s.ids[:8].tolist()
                for s in text.load_corpus(source, TOKENIZER, cache=cache)[0]}  # fmt: skip

    fresh = ids()
    assert fresh["wiki.en"] != fresh["wiki.fr"] and ids() == fresh
    one, other = sorted(cache.glob("*.npz"))
    other.write_bytes(one.read_bytes())  # another file's text under this one's name
    assert ids() == fresh
    (source / "wiki.en.txt").write_text("dogs bark.\n" * 200)
    assert ids()["wiki.en"] != fresh["wiki.en"]


@pytest.mark.parametrize("name", ["hidden_states.npy", "about.json", "position.npy", "pattern.npy"])
@pytest.mark.parametrize("damage", ["cut off", "empty", "foreign"])
def test_damaged_activations_are_refused_by_name(tmp_path, name, damage):
    write_activations(tmp_path, 2)
    path = tmp_path / "rows" / name
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with pytest.raises(CollectedError, match="no collection of activations in 'rows'"):
        open_collected(tmp_path / "rows")


@pytest.mark.parametrize("damage", ["cut off", "empty", "foreign"])
def test_a_damaged_compressed_model_is_refused(tmp_path, damage):
    write_compact(tmp_path, 2)
    path = tmp_path / "small.safetensors"
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with pytest.raises(compression.CompressionError, match="small.safetensors"):
        compression.load(path)


# -- twice at once ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KEPT)
def test_somebody_else_writes_the_same_in_any_moment(name, tmp_path):
    kept = KEPT[name]
    for number, folder in at_all_moments(kept, tmp_path):

        def write(folder=folder, number=number) -> None:
            at_change(number, folder, lambda: kept.write(folder, 2))
            kept.write(folder, 2)

        end = in_child(write)
        if kept.replaces:
            assert end.error is None, end.error
        elif end.error is not None:  # the slower of the two is told, and spoils nothing
            assert isinstance(end.error, FileExistsError) and "exists already" in str(end.error)
        assert kept.read(folder) == 2
        assert files_of(folder).keys() == {str(p) for p in folder.rglob("*")
                                           if p.is_file() and p.suffix != ".new"}  # fmt: skip


def hold(path: Path, held: Path):
    """Take a lock and never give it back."""
    with locked(path, AssertionError("held already")):
        held.touch()
        signal.pause()


@pytest.fixture(scope="module")
def tiny_corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_text("the cat sat on the mat. dogs bark.\nshe was good.\n" * 200)
    return text.load_corpus(folder, TOKENIZER)


def train_a_little(corpus, out: Path, steps: int = 1) -> None:
    config = PretrainConfig(steps=steps, batch_tokens=64, max_length=16, warmup_steps=1,
                            decay_steps=0)  # fmt: skip
    pretrain(initial_model(None, ENCODER.model.config, 0), TOKENIZER, *corpus, out, config,
             cpu=True, progress=False, held_out_rows=2, log_every=1)  # fmt: skip


def test_one_at_a_time_and_a_dead_process_blocks_nobody(tmp_path, tiny_corpus):
    book = book_without_chapters(tmp_path)
    calls = {
        "train/.lock": (lambda: train_a_little(tiny_corpus, tmp_path / "train"), CheckpointError,
                        "another training run is using"),
        "sweep/.lock": (lambda: run_sweep(sweep_of((1,)), None, tmp_path / "sweep"), SweepError,
                        "another sweep is using"),
        "results/.reproduce.lock": (
            lambda: reproduce(["SYN-13"], root=tmp_path / "results", book=book, quiet=True),
            ReproduceError, "another reproduction is using"),
    }  # fmt: skip
    for number, (name, (call, error, words)) in enumerate(calls.items()):
        held = tmp_path / f"held-{number}"
        child = os.fork()
        if child == 0:
            try:
                hold(tmp_path / name, held)
            finally:
                os._exit(1)
        while not held.exists():
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
        before = files_of((tmp_path / name).parent)
        with pytest.raises(error, match=words):
            call()
        assert files_of((tmp_path / name).parent) == before
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert (tmp_path / name).exists()
        call()
        with locked(tmp_path / name, AssertionError("a dead process holds it")):
            pass
    assert checkpoints.list_steps(tmp_path / "train") == [1]


# -- writing itself --------------------------------------------------------------------------------


def test_a_new_file_can_be_read_by_those_who_could_read_any_other(tmp_path):
    write_whole(tmp_path / "new" / "ours", "text")
    (tmp_path / "theirs").write_text("text")
    assert (tmp_path / "new" / "ours").stat().st_mode == (tmp_path / "theirs").stat().st_mode


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path):
    write_whole(tmp_path / "there" / "file", "one")
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    write_whole(tmp_path / "link", "two")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_text() == "two"
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    write_whole(tmp_path / "fifo", "three")
    assert os.read(reader, 9) == b"three" and not (tmp_path / "fifo").is_file()
    os.close(reader)


def test_a_folder_that_cannot_be_replaced_is_there_as_before(tmp_path, monkeypatch):
    write_whole(tmp_path / "f" / "one", "1")
    rename = os.rename

    def failing(source, target):
        if Path(target) == tmp_path / "f" and Path(source).name.endswith(".new"):
            raise OSError(errno.EIO, "Input/output error", str(source))
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)  # a disk that breaks at this very moment
    with pytest.raises(NotWrittenError, match="Input/output error"):
        with whole_folder(tmp_path / "f", replace=True) as scratch:
            (scratch / "two").write_text("2")
    assert files_of(tmp_path) == {str(tmp_path / "f" / "one"): b"1"}


def test_an_error_of_the_callers_own_stays_what_it_is(tmp_path):
    write_whole(tmp_path / "kept", "before")
    for error in (FileNotFoundError(2, "No such file", "elsewhere"), ValueError("no"),
                  KeyboardInterrupt()):  # fmt: skip
        with pytest.raises(type(error)) as caught, whole_folder(tmp_path / "new") as scratch:
            (scratch / "part").write_text("part")
            raise error
        assert caught.value is error
    assert list(tmp_path.iterdir()) == [tmp_path / "kept"]
    refused(lambda: write_whole(tmp_path / "kept" / "below", "x"), "Not a directory|File exists")
    refused(lambda: write_whole(tmp_path, "x"), "Is a directory|.*")


def killed_while_writing(folder: Path) -> set[Path]:
    """Leave behind what one process leaves that is killed in the middle; return that."""
    before = set(folder.iterdir())

    def write() -> None:
        with whole_folder(folder / "step-1", replace=True) as scratch:
            (scratch / "part").write_text("part")
            with whole_file(folder / "log") as file:
                file.write_text("part")
                die()

    assert in_child(write).killed
    left = set(folder.iterdir()) - before
    assert len(left) == 3 and all(path.name.startswith(".") for path in left)
    return left


def test_leftovers_of_the_killed_are_removed_and_nothing_else_is(tmp_path):
    assert remove_leftovers(tmp_path / "nowhere") == 0
    below = tmp_path / "below"
    for name in ("step-1/.kept", "below/kept", ".a.new", "a.0123456789ab.new", ".0123456789ab.new",
                 ".a.0123456789ab.newer", ".a.0123456789AB.new"):  # fmt: skip
        write_whole(tmp_path / name, "ours")
    own = files_of(tmp_path)
    killed_while_writing(below)  # not straight in the folder
    deeper = files_of(below)
    killed_while_writing(tmp_path)
    (tmp_path / ".link.0123456789ab.new").symlink_to(below)  # leads elsewhere: only the link goes
    assert remove_leftovers(tmp_path) == 4
    assert files_of(tmp_path) == own | deeper
    assert remove_leftovers(below) == 3 and remove_leftovers(below) == 0
    assert files_of(tmp_path) == own


def test_the_next_training_run_clears_up_after_one_that_was_killed(tmp_path, tiny_corpus):
    train_a_little(tiny_corpus, tmp_path)
    left = killed_while_writing(tmp_path)
    with locked(tmp_path / ".lock", AssertionError("held already")):
        with pytest.raises(CheckpointError, match="another training run"):
            train_a_little(tiny_corpus, tmp_path, steps=2)
    assert all(path.exists() for path in left)  # they might be those of the run at work
    train_a_little(tiny_corpus, tmp_path)
    assert not any(path.exists() for path in left)
    assert checkpoints.list_steps(tmp_path) == [1]


def test_a_folder_is_replaced_whole(tmp_path):
    for content in ("one", "two"):
        with whole_folder(tmp_path / "f", replace=True) as scratch:
            (scratch / content).write_text(content)
    assert files_of(tmp_path) == {str(tmp_path / "f" / "two"): b"two"}
    with pytest.raises(FileExistsError, match="'f' exists already"), whole_folder(tmp_path / "f"):
        pytest.fail("began to write")


# -- clocks ----------------------------------------------------------------------------------------


def test_a_model_trained_further_is_noticed_whatever_the_clock_says(tmp_path):
    (tmp_path / "bertology_utils").mkdir()
    (tmp_path / "requirements.txt").touch()
    weights = tmp_path / "model" / "model.safetensors"
    write_whole(weights, b"before")
    surroundings = {"BERTOLOGY_MODEL": str(weights.parent)}
    first = environment_digest(tmp_path, surroundings)
    os.utime(weights, (2**31, 2**31))
    assert environment_digest(tmp_path, surroundings) == first, "touching a file trains nothing"
    write_whole(weights, b"behind")
    os.utime(weights, (2**31, 2**31))
    assert environment_digest(tmp_path, surroundings) != first


def test_no_code_goes_by_the_wall_clock():
    """Durations come from a clock that cannot be set, and order from what is written down."""
    for path in (*(ROOT / "bertology_utils").rglob("*.py"), *(ROOT / "tools").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source if "time" in source else "")):
            name = node.attr if isinstance(node, ast.Attribute) else ""
            if name in ("st_mtime", "st_mtime_ns", "st_ctime", "getmtime", "getctime", "utime"):
                pytest.fail(f"{path.name}:{node.lineno} goes by times of files")
            if name in ("time", "time_ns") and getattr(node.value, "id", "") == "time":
                pytest.fail(f"{path.name}:{node.lineno} goes by the wall clock")
