"""The two processes that are compared, and the environment of the peers."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS_ENVIRONMENT = Path(__file__).resolve().parent / ".venv"
REQUIREMENTS = Path(__file__).resolve().parent / "requirements.txt"


class SideError(RuntimeError):
    """A task that failed, or a process that ended."""


def peers_python(given: str | None) -> str:
    """The interpreter of the peers' environment, made on first use."""
    if given is not None:
        return given
    python = PEERS_ENVIRONMENT / "bin" / "python"
    wanted = REQUIREMENTS.read_text(encoding="utf-8")
    stamp = PEERS_ENVIRONMENT / "installed.txt"
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", PEERS_ENVIRONMENT], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "-r", str(REQUIREMENTS)], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return str(python)


@dataclass(frozen=True)
class Task:
    """What one side does: a module of this package, a function in it, and its arguments."""

    side: str
    function: str
    arguments: Mapping[str, object]


class Side:
    """A worker process; use it as a context manager."""

    def __init__(self, python: str, side: str, threads: int):
        self.name = side
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", side],
            cwd=ROOT,
            env={
                **os.environ,
                "OMP_NUM_THREADS": str(threads),
                "MKL_NUM_THREADS": str(threads),
                "OPENBLAS_NUM_THREADS": str(threads),
                "TOKENIZERS_PARALLELISM": "false",
                "HF_HUB_OFFLINE": "1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Side":
        return self

    def __exit__(self, *_exception) -> None:
        self.process.stdin.close()
        self.process.wait()

    @property
    def alive(self) -> bool:
        """True while the process can be asked."""
        return self.process.poll() is None

    def run(self, task: Task, out: Path | None = None) -> dict:
        """Seconds, processor seconds and peak memory of one run.

        Raises:
            SideError: the task failed or the process ended.
        """
        return self._ask(task, out=None if out is None else str(out))

    def count(self, task: Task) -> int:
        """Floating-point operations of the matrix products of one run.

        Raises:
            SideError: the task failed or the process ended.
        """
        return self._ask(task, count=True)["operations"]

    def _ask(self, task: Task, **more: object) -> dict:
        request = {"task": task.function, "arguments": dict(task.arguments), **more}
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # reading finds the end as well, and says so
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise SideError(f"the process of {self.name!r} ended during {task.function}")
        reply = json.loads(line)
        if "error" in reply:
            raise SideError(f"{task.function}: {reply['error']}")
        return reply
