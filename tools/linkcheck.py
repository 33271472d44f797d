"""Ask every other host that the built pages link to whether the link still leads somewhere.

Links inside the book are checked with every build (``make check``); this needs a connection, and
what it finds depends on the day, so it is a command of its own. The asking is Sphinx's.
"""

from __future__ import annotations

import argparse
import html
import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from sphinx.builders.linkcheck import CheckResult, Hyperlink, HyperlinkAvailabilityChecker

ROOT = Path(__file__).resolve().parent.parent
_LINK = re.compile(r'<a\b[^>]*?\bhref="(https?://[^"]+)"')
_STATUS = re.compile(r"^(\d{3}) ")
#: What a host answers that does not like to be asked by a program, or not now.
_REFUSALS = {401, 403, 405, 406, 418, 429, 500, 502, 503, 504, 520, 999}
_DOI = re.compile(r"^https?://(?:dx\.)?doi\.org/(?=10\.)")
_PERMANENT = {301, 308}


@dataclass(frozen=True)
class Settings:
    """What Sphinx's checker reads from a configuration."""

    linkcheck_workers: int = 8
    linkcheck_timeout: float = 30.0
    linkcheck_retries: int = 2
    linkcheck_rate_limit_timeout: float = 120.0
    linkcheck_anchors: bool = False  # many sites make theirs by script
    linkcheck_allow_unauthorized: bool = False
    linkcheck_report_timeouts_as_broken: bool = False
    linkcheck_ignore: tuple[str, ...] = ()
    linkcheck_anchors_ignore: tuple[str, ...] = ()
    linkcheck_anchors_ignore_for_url: tuple[str, ...] = ()
    linkcheck_exclude_documents: tuple[str, ...] = ()
    linkcheck_auth: tuple[tuple[str, object], ...] = ()
    linkcheck_request_headers: dict[str, dict[str, str]] = field(default_factory=dict)
    linkcheck_allowed_redirects: dict[re.Pattern[str], re.Pattern[str]] = field(
        default_factory=dict
    )
    user_agent: str = ""
    tls_verify: bool = True
    tls_cacerts: str = ""


@dataclass(frozen=True)
class Finding:
    """What became of one link.

    Attributes:
        url: the link as the pages have it.
        state: ``good``, ``moved`` (for good, and ``detail`` says whereto), ``refused`` (the host
            did not want to tell, or took too long) or ``dead``.
        detail: what the host answered.
        pages: where the link stands.
    """

    url: str
    state: str
    detail: str
    pages: tuple[str, ...]


def collect(pages: Path) -> dict[str, tuple[str, ...]]:
    """Return every link out of the built book, with the pages that have it.

    Raises:
        FileNotFoundError: there is no built book.
    """
    if not (pages / "index.html").is_file():
        raise FileNotFoundError(f"there is no built book in {pages}; run: make book")
    found = defaultdict(set)
    for path in sorted(pages.rglob("*.html")):
        name = path.relative_to(pages)
        if name.parts[0] != "_static":
            for address in _LINK.findall(path.read_text(encoding="utf-8")):
                found[html.unescape(address).partition("#")[0]].add(name.with_suffix("").as_posix())
    return {url: tuple(sorted(names)) for url, names in sorted(found.items())}


def question(url: str) -> str:
    """Return what to ask about a link.

    A DOI is looked up in the register of DOIs: the publisher behind it may turn programs away.
    """
    return _DOI.sub("https://doi.org/api/handles/", url)


def check(links: dict[str, tuple[str, ...]], settings: Settings) -> Iterable[Finding]:
    """Ask about every link, several at a time; yield the findings as they come in."""
    asked = {question(url): url for url in links}
    queue = {uri: Hyperlink(uri, "", "", -1) for uri in asked}
    for result in HyperlinkAvailabilityChecker(settings).check(queue):
        url = asked[result.uri]
        state, detail = _judge(result)
        yield Finding(url, state, detail, links[url])


def _judge(result: CheckResult) -> tuple[str, str]:
    if result.status == "working":
        return "good", ""
    if result.status == "ignored":  # Sphinx's word for a host that is out of service just now
        return "refused", result.message
    if result.status == "redirected":
        return ("moved", result.message) if result.code in _PERMANENT else ("good", "")
    status = _STATUS.match(result.message)
    if result.status == "timeout" or (status and int(status[1]) in _REFUSALS):
        return "refused", result.message
    return "dead", result.message


def main() -> int:
    """Check the links of this checkout's built book; 1 if one of them is dead."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=Path, default=ROOT / "_build" / "html")
    arguments = parser.parse_args()
    try:
        links = collect(arguments.pages)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Asking about {len(links)} links ...", flush=True)
    counts = dict.fromkeys(("good", "moved", "refused", "dead"), 0)
    for finding in check(links, Settings()):
        counts[finding.state] += 1
        if finding.state != "good":
            print(f"{finding.state:8}{finding.url}", flush=True)
            print(f"{'':8}{finding.detail}; on {', '.join(finding.pages)}", flush=True)
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    return int(counts["dead"] > 0)


if __name__ == "__main__":
    sys.exit(main())
