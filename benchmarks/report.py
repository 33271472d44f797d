"""The table: Markdown for readers, JSON for the next run."""

import importlib.metadata
import json
import math
import platform
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch

from .book import Book

TITLES = {
    "scores": "Pseudo-log-likelihood and minimal pairs",
    "activations": "Collecting every layer and every attention pattern",
    "ablation": "Silencing every head in turn",
    "probes": "Probes of every layer",
}


def machine(threads: int, device: str = "cpu") -> str:
    """Processor, threads and GPU, without the machine's name."""
    model = platform.processor() or platform.machine()
    about = Path("/proc/cpuinfo")
    if about.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", about.read_text(), re.MULTILINE)
        model = found.group(1) if found else model
    if device != "cpu":
        model = f"{torch.cuda.get_device_name(device)}; {model}"
    return f"{model}, {threads} thread{'' if threads == 1 else 's'}, {platform.system()}"


def versions(requirements: Path) -> str:
    """What was compared, by version."""
    ours = ("torch", "transformers", "scikit-learn", "numpy")
    text = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ours)
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)$", requirements.read_text(), re.MULTILINE))
    theirs = ("minicons", "transformer-lens", "nnsight", "torch", "transformers")
    return f"{text}; peers: " + ", ".join(f"{name} {pins[name]}" for name in theirs)


def load(path: Path) -> dict:
    """Earlier results, so that groups can be measured one at a time."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def ratios(results: dict) -> dict[str, float]:
    """The measured ratios, by the name of their row."""
    rows = [row for group in TITLES for row in results.get(group, [])]
    return {row["name"]: row["ratio"] for row in rows if row["ratio"] is not None}


def as_json(value: Sequence | Book) -> object:
    """Dataclasses as JSON, numbers that are none as null."""
    if isinstance(value, Book):
        return asdict(value)
    return [{key: _number(v) for key, v in asdict(item).items()} for item in value]


def merged(earlier: list[dict], rows: list[dict]) -> list[dict]:
    """Rows measured before, those measured again in their places, and new ones behind."""
    new = {row["name"]: row for row in rows}
    return [new.pop(row["name"], row) for row in earlier] + list(new.values())


def _number(value: object) -> object:
    if isinstance(value, tuple):
        return [_number(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def markdown(results: dict) -> str:
    """The whole page."""
    parts = [
        "# Results",
        "Written by `python -m benchmarks`; see [README.md](README.md) for how, and for where the "
        "others win.",
        f"Machine: {results['machine']}. Versions: {results['versions']}. "
        f"Sizes: {results['sizes']}.",
        "Seconds are medians on the clock; a ratio is the peer's time over ours, the median over "
        "rounds in which both ran, with the lowest and the highest in parentheses. Results were "
        "checked to agree before anything was timed.",
    ]
    goals = [row for group in TITLES for row in results.get(group, []) if row["goal"] is not None]
    if goals:
        parts += ["## Goals", _goals(goals)]
    for group, title in TITLES.items():
        if results.get(group):
            parts += [f"## {title}", _comparisons(results[group])]
    if results.get("growth"):
        parts += ["## Growth", _growth(results["growth"])]
    if results.get("limits"):
        parts += ["## Share of the device's arithmetic", _limits(results["limits"])]
    if results.get("book"):
        parts += ["## The whole book", _book(results["book"])]
    return "\n\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _goals(rows: list[dict]) -> str:
    body = []
    for row in rows:
        met = not row["failed"] and row["ratio"] >= row["goal"]
        found = "" if row["failed"] else f"{row['ratio']:.2f}"
        body.append([row["name"], f"{row['goal']:g}", found, "met" if met else "**missed**"])
    return _table(["Against", "goal", "ratio", ""], body)


def _comparisons(rows: list[dict]) -> str:
    body = []
    for row in rows:
        if row["failed"]:
            body.append([row["name"], "", "", f"not measured: {row['failed']}", "", "", ""])
            continue
        low, high = row["spread"]
        goal = "" if row["goal"] is None else f"{row['goal']:g}"
        name = f"{row['name']} ({row['note']})" if row["note"] else row["name"]
        spread = f"{low:.2f} to {high:.2f}" if row["rounds"] > 1 else "one round"
        ratio = f"**{row['ratio']:.2f}** ({spread})"
        cells = [name, f"{row['ours']:.2f}", f"{row['theirs']:.2f}", ratio]
        body.append([*cells, f"{row['processor']:.2f}", goal, row["difference"]])
    head = ["Against", "ours, s", "theirs, s", "ratio", "of processor time", "goal",
            "results differ by"]  # fmt: skip
    return _table(head, body)


def _growth(rows: list[dict]) -> str:
    first: dict[str, dict] = {}
    body = []
    for row in rows:
        base = first.setdefault(row["name"], row)
        factor = row["n"] / base["n"]
        per = row["seconds"] / base["seconds"] / factor
        body.append(
            [
                row["name"],
                str(row["n"]),
                f"{row['seconds']:.2f}",
                f"{per:.2f}",
                f"{row['peak_mb']:.0f}",
                f"{row['peak_mb'] / base['peak_mb']:.2f}",
            ]
        )
    head = ["Task", "sentences", "s", "time a sentence, relative", "peak MB", "peak, relative"]
    return _table(head, body)


def _limits(rows: list[dict]) -> str:
    body = []
    for row in rows:
        rate = row["operations"] / row["seconds"]
        cells = [row["name"], row["precision"], f"{row['seconds']:.2f}"]
        cells += [f"{row['operations'] / 1e9:.0f}", f"{rate / 1e9:.0f}"]
        cells += [f"{row['peak'] / 1e9:.0f}", f"{rate / row['peak']:.0%}"]
        body.append([*cells, f"{row['difference']:.0e}" if row["difference"] else ""])
    head = ["Task", "precision", "s", "10^9 operations", "10^9 a second", "large products reach",
            "share", "differs from float32 by"]  # fmt: skip
    return _table(head, body)


def _book(book: dict) -> str:
    slow = sorted(book["chapters"].items(), key=lambda item: -item[1][0])
    again = ", ".join(book["ran_again"])
    at_once = "one at a time" if book["jobs"] == 1 else f"{book['jobs']} at a time"
    lines = [
        f"Chapters run {at_once}. Cold build {book['cold']:.0f} s, warm {book['warm']:.0f} s, "
        f"after a change in one chapter {book['edited']:.0f} s (ran again: {again}). Largest "
        f"process {book['peak_mb']:.0f} MB.",
        _table(
            ["Chapter", "s", "peak MB"],
            [[name, f"{seconds:.1f}", f"{peak:.0f}"] for name, (seconds, peak) in slow],
        ),
    ]
    return "\n\n".join(lines)
