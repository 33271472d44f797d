"""Finished runs by their settings: each is computed once, kept, and found again.

A run is anything that a frozen dataclass fixes completely. What
came of it is a record: a mapping of names to numbers, texts, and lists of them.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from .writing import NotWrittenError, write_whole

Record = dict[str, Any]
#: says a line to the user
Report = Callable[[str], None]


def one_by_one(configs: list[Any]) -> list[list[Any]]:
    """Every run is a batch of its own."""
    return [[config] for config in configs]


class RunStore:
    """Records of finished runs, in a folder or, without one, in memory.

    A record is kept under a digest of the run's settings and of what they were run with. Files are
    written whole, so a sweep that is killed loses at most the runs that were being computed. A
    file that is damaged, or belongs to another run than its name says, is reported and not used:
    the run is computed again. So is a folder that takes no more files: what is computed then is
    given all the same, and kept in memory only.

    Args:
        folder: where records are kept; made when the first one is.
        made_with: what else the outcome depends on, such as digests of the model and the package.
        report: called with one line for every file that cannot be used, and once for each reason
            why files cannot be written; a warning by default.
    """

    def __init__(
        self, folder: str | Path | None = None, *, made_with: str = "",
        report: Report = warnings.warn,
    ) -> None:  # fmt: skip
        self.folder = None if folder is None else Path(folder)
        self.made_with, self.report = made_with, report
        self._known: dict[str, Record] = {}
        self._refused: set[str] = set()

    def digest(self, config: Any) -> str:
        """Names a run: equal for equal settings and surroundings, on any machine.

        Raises:
            TypeError: not a dataclass, or a setting that JSON cannot hold.
        """
        text = json.dumps(self._key(config), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def find(self, config: Any) -> Record | None:
        """The record of a finished run, or None."""
        digest = self.digest(config)
        if digest not in self._known and self.folder is not None:
            record = self._read(digest, self._key(config))
            if record is not None:
                self._known[digest] = record
        return self._known.get(digest)

    def keep(self, config: Any, record: Record) -> None:
        """Keep what came of a run.

        Raises:
            TypeError: a value that JSON cannot hold.
        """
        digest, text = self.digest(config), json.dumps(record, sort_keys=True)
        # As it will come back from a file, so that a run looks the same now and later.
        self._known[digest] = json.loads(text)
        if self.folder is not None:
            whole = {**self._key(config), "record": self._known[digest], "sum": _sum(text)}
            try:
                write_whole(self._path(digest), json.dumps(whole, sort_keys=True) + "\n")
            except NotWrittenError as error:  # hours of computing must not be lost with a file
                reason = str(error).rpartition(": ")[2]
                if reason not in self._refused:
                    self._refused.add(reason)
                    self.report(f"finished runs are not kept in {self.folder}: {reason}")

    def run(
        self, configs: Iterable[Any], compute: Callable[[list[Any]], Sequence[Record]], *,
        batches: Callable[[list[Any]], Iterable[list[Any]]] = one_by_one,
        done: Callable[[Any, Record], None] = lambda config, record: None,
    ) -> list[Record]:  # fmt: skip
        """Records of all runs in the order given; those not found are computed first.

        Args:
            configs: settings of the runs.
            compute: the settings of a batch -> its records.
            batches: deals runs that are not finished into batches; one each by default.
            done: called with every run that has just been computed and kept.

        Raises:
            ValueError: ``compute`` gave another number of records than it was asked for.
        """
        configs = list(configs)
        for batch in batches(self.missing(configs)):
            records = compute(batch)
            if len(records) != len(batch):
                raise ValueError(f"{len(records)} records for {len(batch)} runs")
            for config, record in zip(batch, records, strict=True):
                self.keep(config, record)
                done(config, record)
        return [self._known[self.digest(config)] for config in configs]

    def missing(self, configs: Iterable[Any]) -> list[Any]:
        """Those not finished, without repetitions, in the order given."""
        first: dict[str, Any] = {}
        for config in configs:
            first.setdefault(self.digest(config), config)
        return [config for config in first.values() if self.find(config) is None]

    def _path(self, digest: str) -> Path:
        return self.folder / f"{digest}.json"

    def _key(self, config: Any) -> dict[str, Any]:
        kind = type(config)
        return {
            "run": f"{kind.__module__}.{kind.__qualname__}",
            "settings": settings_of(config),
            "made_with": self.made_with,
        }

    def _read(self, digest: str, key: dict[str, Any]) -> Record | None:
        path = self._path(digest)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.report(f"{path.name} cannot be read ({error}); the run is computed again")
            return None
        try:
            found = json.loads(text)
            record, kept_sum = found["record"], found["sum"]
            own = {name: found[name] for name in key}
        except (ValueError, KeyError, TypeError):
            self.report(f"{path.name} is damaged; the run is computed again")
            return None
        if own != json.loads(json.dumps(key)):
            self.report(f"{path.name} belongs to another run; this one is computed again")
            return None
        if kept_sum != _sum(json.dumps(record, sort_keys=True)):
            self.report(f"{path.name} was changed after it was written; the run is computed again")
            return None
        return record


def settings_of(config: Any) -> Any:
    """A dataclass, and all dataclasses in it, as JSON's types; each names its class.

    Raises:
        TypeError: something that neither JSON nor a dataclass can hold.
    """
    if is_dataclass(config) and not isinstance(config, type):
        values = {field.name: settings_of(getattr(config, field.name)) for field in fields(config)}
        return {"kind": type(config).__qualname__, **values}
    if isinstance(config, (list, tuple)):
        return [settings_of(value) for value in config]
    if config is None or isinstance(config, (bool, int, float, str)):
        return config
    raise TypeError(f"a setting of type {type(config).__name__} cannot be written down")


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
