"""One side of a comparison: a process that keeps its models loaded and answers one task a line.

Usage (by ``python -m benchmarks``): ``python -m benchmarks.worker MODULE``. Each
line in is JSON: task, its arguments, and a file for its results; each line out is JSON with
seconds on the clock, seconds of the processor, and the peak memory so far.
"""

import importlib
import json
import os
import resource
import sys
import time
import traceback


def peak_mb() -> float:
    """Largest resident size of this process so far, in 10^6 bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def answer(tasks, prepared: dict, request: dict) -> dict:
    """Prepare a task once, outside the clock; then run it and say what it took."""
    import numpy as np

    from .arithmetic import Arithmetic, finish_device

    key = json.dumps([request["task"], request["arguments"]], sort_keys=True)
    if key not in prepared:
        # The two tasks of a comparison may share a process; earlier ones must not fill it.
        while len(prepared) > 1:
            del prepared[next(iter(prepared))]
        prepared[key] = getattr(tasks, request["task"])(**request["arguments"])
    if request.get("count"):
        with Arithmetic() as counted:
            prepared[key]()
        return {"operations": counted.operations}
    before = peak_mb()
    finish_device()
    clock, processor = time.perf_counter(), time.process_time()
    result = prepared[key]()
    finish_device()
    seconds, processor = time.perf_counter() - clock, time.process_time() - processor
    if request.get("out"):
        np.savez(request["out"], **result)
    return {"seconds": seconds, "processor": processor, "peak_mb": peak_mb(), "before_mb": before}


def main(side: str) -> None:
    """Answer until standard input ends."""
    # Libraries print; only answers may go to the pipe that is read.
    pipe = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    tasks = importlib.import_module(f"benchmarks.{side}")
    prepared: dict = {}
    for line in sys.stdin:
        try:
            reply = answer(tasks, prepared, json.loads(line))
        except Exception as error:  # the other side goes on; the table names what failed
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        print(json.dumps(reply), file=pipe, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
