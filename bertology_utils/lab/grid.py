"""Many runs, each computed once: finished ones are kept in a folder and found again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ..writing import NotWrittenError
from .config import LabConfig
from .runs import LabRun, RunFileError, read_run, write_run
from .train import train

#: runs trained side by side at most
SIDE_BY_SIDE = 6


class Grid:
    """Runs by their settings.

    >>> grid = Grid(folder)
    >>> runs = grid.run(LabConfig(depth).seeds(3) ...)

    A run is kept under the digest of its settings as soon as it is finished. Killed and started
    again, a grid repeats at most the runs that were being computed. Without a folder, runs are
    kept in memory. A warning tells of files that are damaged, whose runs are computed again, and
    of a folder that takes no files; the runs are then kept in memory, too.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = None if folder is None else Path(folder)
        self._known: dict[str, LabRun] = {}

    def find(self, config: LabConfig) -> LabRun | None:
        """The finished run, or None: not finished, or its files are damaged."""
        if config.digest not in self._known and self.folder is not None:
            try:
                run = read_run(config, self.folder)
            except RunFileError as error:
                warnings.warn(f"{error}; the run is computed again", stacklevel=2)
                run = None
            if run is not None:
                self._known[config.digest] = run
        return self._known.get(config.digest)

    def missing(self, configs: Iterable[LabConfig]) -> list[LabConfig]:
        """Those not finished, without repetitions, in the order given."""
        return [c for c in dict.fromkeys(configs) if self.find(c) is None]

    def run(
        self, configs: Iterable[LabConfig], *, done: Callable[[LabRun], None] | None = None
    ) -> list[LabRun]:
        """All runs, in the order given; those not finished are trained first.

        ``done`` is called with every run that has just been finished and kept.
        """
        configs = list(configs)
        for family in families(self.missing(configs)):
            for run in train(family):
                self._known[run.config.digest] = run
                if self.folder is not None:
                    self._keep(run)
                if done is not None:
                    done(run)
        return [self._known[config.digest] for config in configs]

    def _keep(self, run: LabRun) -> None:
        try:
            write_run(run, self.folder)
        except NotWrittenError as error:
            # Minutes of training must not be lost with a file.
            warnings.warn(f"a finished run is kept in memory only: {error}", stacklevel=3)


def families(configs: Iterable[LabConfig]) -> Iterator[list[LabConfig]]:
    """Groups that can be trained side by side, of at most :data:`SIDE_BY_SIDE` runs."""
    groups: dict[tuple, list[LabConfig]] = {}
    for config in configs:
        groups.setdefault((config.family, config.learning_rate), []).append(config)
    for group in groups.values():
        for start in range(0, len(group), SIDE_BY_SIDE):
            yield group[start : start + SIDE_BY_SIDE]


class Study(Mapping[str, list[LabRun]]):
    """Named runs with several seeds each, trained when they are first asked for.

    >>> runs = Study(grid, plan(), seeds=3)
    >>> runs["base"]      # three runs; the second time, the same ones
    """

    def __init__(self, grid: Grid, named: Mapping[str, LabConfig], *, seeds: int) -> None:
        if seeds < 1:
            raise ValueError(f"seeds is {seeds}, must be at least 1")
        self.grid, self.named, self.seeds = grid, dict(named), seeds

    def __getitem__(self, name: str) -> list[LabRun]:
        if name not in self.named:
            raise KeyError(f"no run {name!r}; there are: {', '.join(self.named)}")
        return self.grid.run(self.named[name].seeds(self.seeds))

    def __iter__(self) -> Iterator[str]:
        return iter(self.named)

    def __len__(self) -> int:
        return len(self.named)
