"""Claims measured outside the book: resumed, parallel, on a cluster, and never in error."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from distributed import LocalCluster
from safetensors.torch import load_file, save_file
from tiny import tiny_encoder

from bertology_utils import ledger
from bertology_utils.__main__ import main
from bertology_utils.encoder import save_encoder
from bertology_utils.reproduce.errors import ReproduceError
from bertology_utils.reproduce.jobs import Job
from bertology_utils.reproduce.models import choose
from bertology_utils.reproduce.plan import Manifest, select_claims
from bertology_utils.reproduce.run import reproduce

ROOT = Path(__file__).resolve().parent.parent
CHAPTER = """---
file_format: mystnb
kernelspec:
  name: python3
---

# {name}

"""
#: Measures something that depends on the model, and cheaply.
OPENING = """
from bertology_utils import ledger
from bertology_utils.encoder import load_encoder
encoder = load_encoder()
size = float(encoder.embeddings.token.weight.std())

def record(claim):
    measure = ledger.load_claims()[claim].measure
    ledger.record(claim, ledger.Measurement(
        value=size, unit=measure.unit, n=10, model=encoder.name,
        baselines=dict.fromkeys(measure.baselines, size / 2), interval=(size / 2, size)))
"""


class Shelf:
    """A book of a few cells, a tiny model, and a folder of results."""

    def __init__(self, folder: Path) -> None:
        self.book, self.results = folder / "book", folder / "results"
        (self.book / "chapters").mkdir(parents=True)
        (self.book / "_config.yml").write_text(
            "parse: {myst_enable_extensions: []}\nexecute: {timeout: 60}\n"
        )
        (self.book / "intro.md").write_text("# Welcome\n")
        self.model = str(save_encoder(tiny_encoder("bert"), folder / "tiny-bert"))

    def write(self, name: str, *cells: str) -> None:
        text = CHAPTER.format(name=name)
        text += "\n\n".join(f"```{{code-cell}} ipython3\n{cell}\n```" for cell in cells)
        (self.book / "chapters" / f"{name}.md").write_text(text + "\n")
        names = sorted(path.stem for path in (self.book / "chapters").glob("*.md"))
        toc = ["format: jb-book", "root: intro", "chapters:"]
        toc += [f"  - file: chapters/{name}" for name in names]
        (self.book / "_toc.yml").write_text("\n".join(toc) + "\n")

    def reproduce(self, *claims: str, models: tuple[str, ...] = (), **options):
        return reproduce(
            claims,
            models or (self.model,),
            root=self.results,
            book=self.book,
            quiet=True,
            **options,
        )

    def numbers(self, name: str = "tiny-bert") -> dict[str, float]:
        found = ledger.results(name, self.results)
        return {claim: entry.measurement.value for claim, entry in found.items()}


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    shelf = Shelf(tmp_path)
    shelf.write("02_syntax", OPENING, "record('SYN-01')", "record('SYN-02')", "1 / 0")
    shelf.write("03_semantics", OPENING, "record('SEM-01')")
    return shelf


def test_two_processes_and_a_cluster_give_the_numbers_of_one_process(shelf):
    asked = ("SYN-01", "SYN-02", "SEM-01")
    report = shelf.reproduce(*asked, jobs=1)
    assert (report.ran, report.kept, report.failures) == (3, 0, {})  # the last cell never runs
    one = shelf.numbers()
    assert set(one) == set(asked)
    assert shelf.reproduce(*asked, jobs=2, again=True).ran == 3
    assert shelf.numbers() == one
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        report = shelf.reproduce(*asked, dask=cluster.scheduler_address, again=True)
    assert (report.ran, report.failures) == (3, {})
    assert shelf.numbers() == one


def test_what_is_done_is_kept_until_code_or_model_change(shelf):
    shelf.reproduce("SYN-01", "SEM-01")
    assert (shelf.reproduce("SYN-01", "SEM-01").ran, shelf.reproduce("SYN-01").kept) == (0, 1)
    shelf.write("03_semantics", OPENING, "size = size / 2\nrecord('SEM-01')")
    before = shelf.numbers()
    report = shelf.reproduce("SYN-01", "SEM-01")
    assert (report.ran, report.kept) == (1, 1)
    assert shelf.numbers() == before | {"SEM-01": before["SEM-01"] / 2}
    (shelf.results / "tiny-bert" / "SYN-01.json").unlink()
    assert shelf.reproduce("SYN-01", "SEM-01").ran == 1
    assert set(shelf.numbers()) == {"SYN-01", "SEM-01"}
    file = Path(shelf.model, "model.safetensors")
    os.utime(file, (1, 1))
    assert shelf.reproduce("SEM-01").kept == 1
    weights = load_file(file)
    weights["bert.embeddings.LayerNorm.bias"] += 1
    save_file(weights, file, metadata={"format": "pt"})
    os.utime(file, (1, 1))
    assert shelf.reproduce("SEM-01").ran == 1


def test_a_model_without_a_head_is_not_tested_on_it_and_on_the_rest_it_is(shelf):
    shelf.write(
        "02_syntax",
        OPENING,
        "from bertology_utils.cloze import fill_mask\n"
        "guesses = fill_mask(encoder, ['The cat [MASK].'])\nrecord('SYN-13')",
        "first = guesses[0]",
        "print(first)\nrecord('SYN-14')",
        "record('SYN-01')",
        "record('SYN-02', mistake)",
    )
    headless = tiny_encoder("bert", n_layers=2)
    headless = replace(headless, trained_heads=frozenset())
    folder = save_encoder(headless, shelf.results.parent / "headless")
    report = shelf.reproduce("SYN-01", "SYN-02", "SYN-13", "SYN-14", models=(str(folder),))
    found = ledger.results("headless", shelf.results)
    assert set(found) == {"SYN-01", "SYN-13", "SYN-14"}
    for claim in ("SYN-13", "SYN-14"):
        assert found[claim].verdict.word == ledger.NOT_TESTABLE
        assert "no trained 'mlm' head" in found[claim].verdict.because
    assert found["SYN-01"].measurement is not None
    assert list(report.failures) == ["SYN-02 on headless"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_continues(shelf, tmp_path, how):
    gate = tmp_path / "gate"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(.05)"
    shelf.write("03_semantics", OPENING, wait, "record('SEM-01')")
    command = [sys.executable, "-c", (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from bertology_utils.__main__ import main; sys.exit(main(sys.argv[1:]))"
    ), "reproduce", "--claims", "SYN-01", "SEM-01", "--model", shelf.model]  # fmt: skip
    command += ["--results", str(shelf.results), "--book", str(shelf.book), "--jobs", "2"]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    manifest = shelf.results / "reproduced.json"
    deadline = time.monotonic() + 900
    while not manifest.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    first = (shelf.results / "tiny-bert" / "SYN-01.json").read_bytes()
    if how is signal.SIGKILL:
        os.killpg(process.pid, how)
    else:
        process.send_signal(how)
    process.communicate(timeout=300)
    assert process.returncode == (130 if how is signal.SIGINT else -how)
    assert set(shelf.numbers()) == {"SYN-01"}

    gate.touch()
    report = shelf.reproduce("SYN-01", "SEM-01")
    assert (report.ran, report.kept, report.failures) == (1, 1, {})
    assert (shelf.results / "tiny-bert" / "SYN-01.json").read_bytes() == first
    assert set(shelf.numbers()) == {"SYN-01", "SEM-01"}


def test_a_broken_model_becomes_does_not_and_no_error(shelf, tmp_path):
    broken = tiny_encoder("bert")
    with torch.no_grad():
        next(iter(broken.model.parameters()))[:] = float("nan")
    folder = str(save_encoder(broken, tmp_path / "broken"))
    report = shelf.reproduce("SYN-01", "SYN-02", models=(folder,))
    assert report.failures == {}
    for (row,) in report.comparison.rows.values():
        assert row.status == ledger.DOES_NOT
        assert "not finite" in row.record.outcome.reason


def test_a_cell_that_raises_costs_its_own_claims_only(shelf, capsys):
    shelf.write(
        "02_syntax",
        OPENING,
        "raise RuntimeError('the cable is loose')\nrecord('SYN-01')",
        "record('SYN-02')",
    )
    options = ["--results", str(shelf.results), "--book", str(shelf.book), "--jobs", "1"]
    status = main(
        ["reproduce", "--claims", "SYN-0[1-3]", "LAY-01", "--model", shelf.model, *options]
    )
    out, err = capsys.readouterr()
    assert status == 1
    assert set(shelf.numbers()) == {"SYN-02"}
    assert "SYN-01 on tiny-bert: RuntimeError: the cable is loose" in err
    assert "SYN-03 on tiny-bert" in err
    assert "no chapter yet for LAY-01" in out
    assert "| SYN-02 | " in out and "| SYN-01 | not run |" in out


def test_a_process_that_dies_is_reported(shelf):
    shelf.write("03_semantics", OPENING, "import os; os._exit(3)", "record('SEM-01')")
    report = shelf.reproduce("SEM-01")
    assert report.ran == 0
    assert "status 3" in report.failures["SEM-01 on tiny-bert"]


def test_random_weights_are_a_model_of_their_own(shelf):
    report = shelf.reproduce("SEM-01", models=("random:1", "random:2"))
    assert report.failures == {}
    one, two = (shelf.numbers(f"bertology-mini-uncased-random-{seed}")["SEM-01"] for seed in (1, 2))
    assert one != two


def test_requests_that_cannot_be_met_say_why(shelf, tmp_path):
    with pytest.raises(ReproduceError, match="no claim matches 'XYZ"):
        select_claims(["XYZ-*"])
    discussed = next(c.id for c in ledger.load_claims().values() if c.rule is None)
    with pytest.raises(ReproduceError, match="discussed"):
        select_claims([discussed])
    assert select_claims(["syn-02", "SYN-01"]) == ("SYN-01", "SYN-02")
    with pytest.raises(ReproduceError, match="named twice"):
        choose(["random", "random:0"])
    other = save_encoder(tiny_encoder("bert"), tmp_path / "elsewhere" / "tiny-bert")
    with pytest.raises(ReproduceError, match="two different models are called 'tiny-bert'"):
        choose([shelf.model, str(other)])
    with pytest.raises(ReproduceError, match="holds no book"):
        reproduce(["SYN-01"], root=shelf.results, book=tmp_path, quiet=True)
    with pytest.raises(ReproduceError, match="at least 1"):
        shelf.reproduce("SYN-01", jobs=0)


def test_the_default_is_the_model_the_book_would_take(shelf, monkeypatch):
    assert [m.name for m in choose([])] == [ledger.default_model()] == ["bertology-mini-uncased"]
    monkeypatch.setenv("BERTOLOGY_MODEL", shelf.model)
    assert choose([])[0].source == str(Path(shelf.model).resolve())


def test_lost_notes_are_no_error(tmp_path):
    (tmp_path / "reproduced.json").write_text("{ not json")
    (model,) = choose(["random"])
    notes = Manifest(tmp_path)
    assert notes.fingerprint(model, "SEM-01") is None
    notes.add(Job("chapters/03_semantics", (), model, ("SEM-01",), "abc"), ["SEM-01"])
    assert Manifest(tmp_path).fingerprint(model, "SEM-01") == "abc"
