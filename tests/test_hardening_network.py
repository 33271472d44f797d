"""The network: absent, slow, cutting lines, serving garbage. A server on this machine plays hub."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from hostile import within
from hub_server import Hub
from huggingface_hub import constants
from tiny import tiny_encoder

from bertology_utils.encoder import UnknownModelError, hub, load_encoder, save_encoder

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A folder with a tiny model, as the hub would hold it."""
    return save_encoder(tiny_encoder("bert", n_layers=1), tmp_path_factory.mktemp("hub") / "bert")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty cache, and the hub's client switched on; returns ``use(address, patience)``.

    Patience is short only where a hub does not answer: one on a busy machine may be slow.
    """
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    slept = time.sleep  # the client waits for half a minute in all, and so do we
    monkeypatch.setattr(time, "sleep", lambda seconds: slept(min(seconds, 0.01)))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)

    def use(address: str, patience: float = 60) -> Path:
        for name in ("HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT"):
            monkeypatch.setattr(constants, name, patience)
        monkeypatch.setattr(hub, "PATIENCE", patience)
        monkeypatch.setattr(hub, "ENDPOINT", address)
        return tmp_path / "cache"

    return use


ODD_NAMES = ("..", "a/..", "a--b/c", "x" * 300, "a\x00b", "\ud800", "a b", "a/b/c",
             "http://127.0.0.1/x", "\u202eabc")  # fmt: skip


def refused(name: str = "tiny/bert") -> str:
    """The one line that says why a model cannot be had."""
    with within(300), pytest.raises(UnknownModelError) as caught:
        load_encoder(name, device="cpu")
    said = str(caught.value)
    assert "\n" not in said and repr(name) in said and len(said) < 400
    return said


def test_a_model_is_fetched_once_and_then_read_from_here(here, model):
    with Hub(model) as server:
        here(server.address)
        first = load_encoder("tiny/bert", device="cpu")
        assert first.name == "tiny/bert"
        asked = sum(server.requests.values())
        again = load_encoder("tiny/bert", device="cpu")
        assert sum(server.requests.values()) == asked  # nobody was asked again
    plain = load_encoder(model, device="cpu")
    for fetched in (first, again, load_encoder("tiny/bert", device="cpu")):  # the hub is gone
        for name, value in plain.model.state_dict().items():
            assert torch.equal(fetched.model.state_dict()[name], value)


def test_an_absent_hub_is_said_in_one_line_and_at_once(here):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        here(f"http://127.0.0.1:{closed.getsockname()[1]}")
        start = time.monotonic()
        assert "offline" in refused()
        assert time.monotonic() - start < 50  # less than the patience with one who is silent


def test_a_silent_hub_is_not_waited_for(here, model):
    with Hub(model, {"HEAD /": ["always", "stall"]}) as server:
        here(server.address, patience=3)
        assert "offline" in refused()
        assert server.requests["HEAD /"] == 1


@pytest.mark.parametrize(
    "faults",
    [
        {"HEAD /": ["reset"], "GET /api/": ["reset", 503]},
        {"GET /api/": ["html", 429, "cut"]},
        {"model.safetensors": ["reset", "reset"]},
        {"GET /tiny/bert/resolve/": ["reset", 500]},
        {"GET /tiny": ["stall"]},
    ],
)
def test_a_flaky_hub_is_asked_again(here, model, faults):
    with Hub(model, faults) as server, within(300):
        here(server.address, patience=3 if ["stall"] in faults.values() else 60)
        encoder = load_encoder("tiny/bert", device="cpu")
        assert encoder.has_mlm and not any(server.faults.values())


def test_a_file_that_broke_off_goes_on_where_it_stopped(here, model, monkeypatch):
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 4096)  # ten megabytes else
    size = (model / "model.safetensors").stat().st_size
    with Hub(model, {f"GET /tiny/bert/resolve/{'a' * 40}/model": ["cut"]}) as server:
        here(server.address)
        load_encoder("tiny/bert", device="cpu")
        (asked,) = server.ranges
        assert size // 4 < int(asked.removeprefix("bytes=").rstrip("-")) <= size // 2


def test_files_that_arrived_are_not_fetched_again(here, model):
    with Hub(model, {"GET /tiny/bert/resolve/" + "a" * 40 + "/model": ["always", 500]}) as server:
        here(server.address)
        refused()
        before = server.requests[f"GET /tiny/bert/resolve/{'a' * 40}/tokenizer.json"]
        server.faults.clear()
        load_encoder("tiny/bert", device="cpu")
        assert server.requests[f"GET /tiny/bert/resolve/{'a' * 40}/tokenizer.json"] == before == 1


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
def test_a_file_that_arrives_damaged_is_fetched_again(here, model, name):
    with Hub(model, {f"GET /tiny/bert/resolve/{'a' * 40}/{name}": ["garbage"]}) as server:
        here(server.address)
        assert load_encoder("tiny/bert", device="cpu").has_mlm
        assert server.requests[f"GET /tiny/bert/resolve/{'a' * 40}/{name}"] == 2


def test_a_file_that_is_damaged_each_time_is_refused_and_not_kept(here, model):
    part = f"GET /tiny/bert/resolve/{'a' * 40}/model"
    with Hub(model, {part: ["always", "garbage"]}) as server:
        cache = here(server.address)
        assert "model.safetensors arrived damaged" in refused()
        assert not list(cache.rglob("model.safetensors"))
        assert server.requests[f"{part}.safetensors"] == 3
        server.faults.clear()
        assert load_encoder("tiny/bert", device="cpu").has_mlm


@pytest.mark.parametrize("fault", ["html", "reset", 500, 429, 403, "garbage"])
def test_garbage_without_end_is_one_clear_line(here, model, fault):
    with Hub(model, {"/api/": ["always", fault], "/resolve/": ["always", fault]}) as server:
        here(server.address)
        said = refused()
        assert "the hub says" in said and "hf_secret" not in said


def test_a_name_the_hub_does_not_know_is_not_asked_for_again(here, model):
    with Hub(model) as server:
        here(server.address)
        refused("tiny/unknown")
        assert sum(n for r, n in server.requests.items() if "/api/" in r) == 1


@pytest.mark.parametrize("name", ODD_NAMES)
def test_no_odd_name_reaches_the_hub(here, model, name):
    with Hub(model) as server:
        here(server.address)
        with pytest.raises(UnknownModelError):
            load_encoder(name, device="cpu")
        assert not server.requests


def test_weights_in_other_formats_are_never_fetched(here, model, tmp_path):
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    for path in model.iterdir():
        if path.suffix != ".safetensors":
            (pickled / path.name).write_bytes(path.read_bytes())
    (pickled / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    (pickled / "modeling_evil.py").write_text("raise SystemExit")
    with Hub(pickled) as server:
        cache = here(server.address)
        assert "no safetensors weights" in refused()
        assert not [r for r in server.requests if ".bin" in r or ".py" in r]
        assert not list(cache.rglob("*.bin")) and not list(cache.rglob("*.py"))


def test_secrets_are_not_repeated(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "plain-secret")
    error = OSError("GET http://me:password@proxy/x: plain-secret, hf_abcdefghijkl\nmore")
    assert hub.first_line(error) == "GET http://***@proxy/x: ***, ***"


def test_the_default_never_asks_the_network():
    """Any connection or look-up of a name ends this process."""
    code = (
        "import sys\n"
        "def hook(event, arguments):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo', 'socket.gethostbyname'):\n"
        "        sys.stderr.write(f'{event} {arguments}\\n'); sys.stderr.flush()\n"
        "        import os; os._exit(3)\n"
        "sys.addaudithook(hook)\n"
        "from bertology_utils import load_encoder, run_with_cache\n"
        "cache = run_with_cache(load_encoder(device='cpu'), ['A test.'])\n"
        "assert cache['hidden_states'].isfinite().all()\n"
    )
    environ = {k: v for k, v in os.environ.items() if "OFFLINE" not in k and k != "BERTOLOGY_MODEL"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environ, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
