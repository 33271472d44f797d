"""The check of links to other hosts, tried on a host of our own."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tools import linkcheck
from tools.linkcheck import Settings, check, collect, question

PATIENT = Settings(linkcheck_timeout=60.0, linkcheck_retries=1)


class _Host(BaseHTTPRequestHandler):
    """Answers by path: /404 with 404, /301 by sending on to /good, and so on."""

    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(f"{self.command} {self.path}")
        name = self.path.strip("/")
        if name == "get-only":
            status = 405 if self.command == "HEAD" else 200
        else:
            status = int(name) if name.isdigit() else 200
        if name == "silent":
            self.close_connection = True
            return
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "/good")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Keep test output readable."""


@pytest.fixture
def host():
    _Host.asked.clear()
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Host)
    Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()


def book(folder, links: dict[str, str]):
    """A built book of one page with these links, behind an entrance."""
    (folder / "chapters").mkdir()
    (folder / "index.html").write_text('<a href="chapters/one.html">Open</a>')
    anchors = "".join(f'<a class="x" href="{url}">{text}</a>' for text, url in links.items())
    (folder / "chapters" / "one.html").write_text(
        f'<link href="https://not-followed.example/">{anchors}<a href="#here">here</a>'
    )
    return folder


def test_good_moved_refused_and_dead_links_are_told_apart(tmp_path, host):
    names = ("good", "301", "308", "302", "404", "410", "403", "429x", "503", "get-only", "silent")
    links = {name: f"{host}/{name}" for name in names}
    found = {f.url: f for f in check(collect(book(tmp_path, links)), PATIENT)}
    assert {name: found[url].state for name, url in links.items()} == {
        "good": "good", "301": "moved", "308": "moved", "302": "good", "404": "dead",
        "410": "dead", "403": "refused", "429x": "good", "503": "refused", "get-only": "good",
        "silent": "dead",
    }  # fmt: skip
    assert found[links["301"]].detail == f"{host}/good"
    assert "404" in found[links["404"]].detail
    assert found[links["404"]].pages == ("chapters/one",)
    assert "HEAD /get-only" in _Host.asked and "GET /get-only" in _Host.asked


def test_only_links_out_of_the_book_are_asked_and_each_once(tmp_path):
    links = {"one": "https://a.example/x?a=1&amp;b=2#part", "two": "https://a.example/x?a=1&amp;b=2"}
    assert collect(book(tmp_path, links)) == {"https://a.example/x?a=1&b=2": ("chapters/one",)}


def test_a_doi_is_asked_of_its_register():
    assert question("https://doi.org/10.1162/tacl_a_00349") == (
        "https://doi.org/api/handles/10.1162/tacl_a_00349"
    )
    assert question("https://arxiv.org/abs/2002.12327") == "https://arxiv.org/abs/2002.12327"


@pytest.mark.parametrize(("name", "status"), [("good", 0), ("301", 0), ("404", 1)])
def test_the_command_fails_on_dead_links_only(tmp_path, host, monkeypatch, capsys, name, status):
    folder = book(tmp_path, {"link": f"{host}/{name}"})
    monkeypatch.setattr("sys.argv", ["linkcheck", "--pages", str(folder)])
    assert linkcheck.main() == status
    told = capsys.readouterr().out
    assert "Asking about 1 links" in told
    assert (f"{host}/{name}" in told) == (name != "good")


def test_without_a_book_the_command_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["linkcheck", "--pages", str(tmp_path)])
    assert linkcheck.main() == 1
    assert "make book" in capsys.readouterr().err
