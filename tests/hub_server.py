"""A stand-in for the Hugging Face hub on this machine, which can be slow, cut lines, and lie."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

COMMIT = "a" * 40


class Hub(ThreadingHTTPServer):
    """Serves the files of ``folder`` as the model ``tiny/bert``.

    ``faults`` holds what goes wrong, first come first served: a mapping from a part of a request
    ("HEAD /", "GET model.safetensors", "GET /api/") to a list of faults: ``"reset"``, ``"stall"``
    (no answer), ``"cut"`` (half of the body), ``"garbage"`` (right length, wrong bytes), ``"html"``
    (a page of some portal), or a status such as 503. ``"always"`` before the last repeats it.
    """

    daemon_threads = True

    def __init__(self, folder: Path, faults: dict[str, list] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder, self.faults = folder, {k: list(v) for k, v in (faults or {}).items()}
        self.requests: Counter[str] = Counter()
        self.ranges: list[str] = []
        self.over = threading.Event()

    def __enter__(self) -> Hub:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.over.set()
        self.shutdown()
        self.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def fault(self, request: str):
        for part, listed in self.faults.items():
            if part in request and listed:
                if listed[0] == "always":
                    return listed[1]
                return listed.pop(0)
        return None

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are part of the play."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, *arguments: object) -> None:
        """Nothing: pytest shows what matters."""

    def do_HEAD(self) -> None:
        self._answer("HEAD")

    def do_GET(self) -> None:
        self._answer("GET")

    def _answer(self, method: str) -> None:
        path = urlsplit(self.path).path
        request = f"{method} {path}"
        self.server.requests[request] += 1
        fault = self.server.fault(request)
        if fault == "stall":
            self.server.over.wait(20)
            self.close_connection = True
        elif fault == "reset":
            self._reset()
        elif fault == "html":
            self._send(method, b"<html>Please log in</html>", {"Content-Type": "text/html"})
        elif isinstance(fault, int):
            self._send(method, b"no", {"X-Error-Message": "nothing for hf_secrettoken123"}, fault)
        elif path == "/":
            self._send(method, b"hello")
        elif path.startswith("/api/models/tiny/bert/tree/"):
            self._send(method, json.dumps([self._entry(p) for p in self._files()]).encode())
        elif path.startswith("/api/models/tiny/bert"):
            info = {"_id": "1", "id": "tiny/bert", "modelId": "tiny/bert", "sha": COMMIT,
                    "private": False, "siblings": [{"rfilename": p.name} for p in self._files()],
                    "tags": [], "downloads": 0, "likes": 0}  # fmt: skip
            self._send(method, json.dumps(info).encode())
        elif found := re.fullmatch(r"/tiny/bert/resolve/\w+/([\w.-]+)", path):
            self._file(method, self.server.folder / found[1], fault)
        else:
            self._send(method, b"{}", {"X-Error-Code": "RepoNotFound"}, 404)

    def _files(self) -> list[Path]:
        return sorted(p for p in self.server.folder.iterdir() if p.is_file())

    def _entry(self, path: Path) -> dict:
        content = path.read_bytes()
        entry = {"type": "file", "path": path.name, "size": len(content), "oid": _git(content)}
        if path.suffix == ".safetensors":
            entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content),
                            "pointerSize": 130}  # fmt: skip
        return entry

    def _file(self, method: str, path: Path, fault: object) -> None:
        if not path.is_file():
            self._send(method, b"", {"X-Error-Code": "EntryNotFound"}, 404)
            return
        content = path.read_bytes()
        weights = path.suffix == ".safetensors"
        etag = hashlib.sha256(content).hexdigest() if weights else _git(content)
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        headers["X-Linked-Size"], headers["X-Linked-Etag"] = str(len(content)), f'"{etag}"'
        if fault == "garbage":
            content = bytes(len(content))
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        status = 200
        if wanted and method == "GET":
            start = int(wanted[1])
            self.server.ranges.append(self.headers["Range"])
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            content, status = content[start:], 206
        self._send(method, content, headers, status, cut=fault == "cut", drip=fault == "slow")

    def _send(self, method, content, headers=None, status=200, cut=False, drip=False) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if method == "HEAD":
            return
        if cut:
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif drip:
            for start in range(0, len(content), 1 << 16):
                self.wfile.write(content[start : start + (1 << 16)])
                time.sleep(0.05)
        else:
            self.wfile.write(content)

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


def _git(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
