"""The fresh process of one submission: runs its cells, then answers the judge's questions.

Reads requests from one pipe and answers on another, one line of JSON each:

``{"run": [source, ...], "first": number}``
    run the cells in order, go on after errors; answers with one line of text per error. The first
    one has the given number, by default 1
``{"kinds": [name, ...]}``
    which names are there: "function", "value" or "missing"
``{"value": name}``
    the value under a name
``{"call": name, "arguments": line, "options": line}``
    what a function returns (arguments as :mod:`tools.grading.codec` writes them)
"""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import json
import os
import sys
import traceback
import types
from typing import Any

from . import codec, guard

_MAGIC = ("%", "!", "?")


def main() -> int:
    """Serve one submission until the judge closes the pipe."""
    start = json.loads(sys.argv[1])
    requests = os.fdopen(start["requests"], "r", encoding="utf-8")
    replies = os.fdopen(start["replies"], "w", encoding="utf-8")
    # The package comes from here where it is not installed; last, so that it hides nothing.
    sys.path[:] = [path for path in sys.path if path not in ("", start["root"])] + [start["root"]]
    sys.setrecursionlimit(2000)
    for name in start["preload"]:
        _preload(name)
    refused: list[str] = []
    guard.install(os.getcwd(), start["hidden"], refused.append)
    session = Session(refused)
    for line in requests:
        request = json.loads(line)
        answer = session.answer(request) | {"id": request["id"]}
        replies.write(json.dumps(answer) + "\n")
        replies.flush()
    return 0


class Session:
    """The names of one submission, and what can be asked about them."""

    def __init__(self, refused: list[str]):
        self.names: dict[str, Any] = {"__name__": "__main__", "__builtins__": builtins}
        self._refused = refused
        sys.modules["otter"] = otter = _otter_without_tests()
        self.names["grader"] = otter.Notebook()
        builtins.display = lambda *things, **options: None

    def answer(self, request: dict) -> dict:
        """The answer to one request, ready for JSON."""
        before = len(self._refused)
        try:
            if "run" in request:
                reply = {"errors": self._run(request["run"], request.get("first", 1))}
            elif "kinds" in request:
                reply = {"kinds": [self._kind(name) for name in request["kinds"]]}
            elif "value" in request:
                reply = {"value": codec.dumps(self.names[request["value"]])}
            else:
                reply = {"value": self._call(request)}
        except BaseException as error:  # a submission may raise anything, SystemExit included
            reply = {"error": type(error).__name__, "message": _short(error)}
            reply["memory"] = _is_memory(error)
        return reply | {"refused": self._refused[before:]}

    def _kind(self, name: str) -> str:
        if name not in self.names:
            return "missing"
        value = self.names[name]
        return "function" if callable(value) and not isinstance(value, type) else "value"

    def _call(self, request: dict) -> str:
        arguments = codec.loads(request["arguments"], self.names)
        options = codec.loads(request["options"], self.names)
        return codec.dumps(self.names[request["call"]](*arguments, **options))

    def _run(self, cells: list[str], first: int) -> list[dict]:
        errors = []
        for number, source in enumerate(cells, first):
            try:
                exec(compile(without_magics(source), f"<cell {number}>", "exec"), self.names)
            except BaseException as error:
                errors.append({
                    "cell": number,
                    "line": f"{type(error).__name__}: {_short(error)}",
                    "memory": _is_memory(error),
                })
                traceback.clear_frames(error.__traceback__)  # lets go of what it had filled
        return errors


def without_magics(source: str) -> str:
    """The cell without lines for IPython alone (``%matplotlib inline``, ``!ls``), if it has any."""
    try:
        compile(source, "<cell>", "exec")
        return source
    except (SyntaxError, ValueError):
        lines = source.splitlines()
        return "\n".join("" if line.lstrip().startswith(_MAGIC) else line for line in lines)


def _preload(name: str) -> None:
    try:
        importlib.import_module(name)
    except ImportError:
        return  # the submission's own cell will say so
    if name.partition(".")[0] == "sklearn":
        # Finds its thread pools by foreign functions once, which the guard would refuse later.
        from sklearn.utils.parallel import _get_threadpool_controller

        _get_threadpool_controller().info()


def _otter_without_tests() -> types.ModuleType:
    """A module for the notebook's ``import otter``: its checks do nothing, as the judge checks."""

    class Notebook:
        def __init__(self, *arguments, **options):
            pass

        def check(self, *arguments, **options):
            return None

        check_all = export = check

    module = types.ModuleType("otter")
    module.__spec__ = importlib.machinery.ModuleSpec("otter", None)
    module.Notebook = Notebook
    return module


def _is_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error)


def _short(error: BaseException) -> str:
    try:
        return str(error)[:500]
    except Exception:
        return "an error whose text cannot be made"


if __name__ == "__main__":
    sys.exit(main())
