"""Serves a folder on the loopback address the way static hosts do: below a path, compressed."""

from __future__ import annotations

import gzip
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread

PREFIX = "/some/place/"
#: What static hosts compress before they send it.
COMPRESSED = (".html", ".css", ".js", ".json", ".svg", ".inv")


@cache
def _compressed(path: Path, changed: int) -> bytes:
    return gzip.compress(path.read_bytes(), compresslevel=6)


class _Handler(SimpleHTTPRequestHandler):
    def translate_path(self, path: str) -> str:
        # A link that starts at the host's root leads out of the book, and must fail.
        if not path.startswith(PREFIX):
            return str(Path(self.directory) / "outside-of-the-book")
        return super().translate_path(path[len(PREFIX) - 1 :])

    def send_head(self):
        path = Path(self.translate_path(self.path.split("?")[0]))
        if path.suffix not in COMPRESSED or not path.is_file():
            return super().send_head()
        body = _compressed(path, path.stat().st_mtime_ns)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(path)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return BytesIO(body)

    def log_message(self, format: str, *args) -> None:
        """Keep test output readable."""


class _Http(ThreadingHTTPServer):
    # A browser asks for a page's files all at once; who finds the queue full asks again a second
    # later, then three.
    request_queue_size = 128


class Server:
    """``with Server(folder) as server``: the folder's files are at ``server.url + name``."""

    def __init__(self, folder: Path) -> None:
        self._http = _Http(("127.0.0.1", 0), partial(_Handler, directory=str(folder)))
        self.host = f"127.0.0.1:{self._http.server_port}"
        self.url = f"http://{self.host}{PREFIX}"

    def __enter__(self) -> Server:
        Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception) -> None:
        self._http.shutdown()
        self._http.server_close()
