"""Work in a process of its own, which shares neither memory nor threads.

``python -m bench.harness.isolated module:function arguments`` is how ``isolated`` runs a function: arguments and the
answer, the last line that it prints, are JSON.
"""

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Threads that wait for work sleep. By default they spin for a while, and where a library has two pools of them, as
# scikit-learn has (OpenMP and OpenBLAS), one takes the cores from the other: a fit can take ten times as long.
_WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_THREAD_TIMEOUT": "4"}
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def environment(n_threads: int) -> dict[str, str]:
    """Variables of a process whose libraries use at most ``n_threads`` threads each, which sleep when they wait."""
    return os.environ | _WAITING | dict.fromkeys(_THREADS, str(n_threads))


def address(function: Callable[..., Any]) -> str:
    """``module:function``, by which another process finds it."""
    return f"{function.__module__}:{function.__qualname__}"


def call(command_line: list[str]) -> Any:
    """Call the function of an address with keyword arguments in JSON."""
    module, _, function = command_line[0].partition(":")
    return getattr(importlib.import_module(module), function)(**json.loads(command_line[1]))


def _processor_seconds() -> float:
    """Of all processes that this one has started and that have ended; 0 where the system does not tell."""
    used = os.times()
    return used.children_user + used.children_system


def isolated(
    function: Callable[..., dict[str, Any]],
    arguments: dict[str, Any],
    n_threads: int,
    limit: float | None = None,
    python: str | Path = sys.executable,
) -> dict[str, Any]:
    """Call a function of a module with keyword arguments in a new process; its answer is a dictionary.

    When it takes longer than ``limit`` seconds it is stopped, and the answer only says so under ``status``, as it does
    when the process fails, and how many ``processor_seconds`` it had until then. ``python`` is the interpreter, by
    default this one.
    """
    command = [str(python), "-m", __name__, address(function), json.dumps(arguments)]
    start, processor = time.perf_counter(), _processor_seconds()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment(n_threads), capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        status = f"gave up after {time.perf_counter() - start:.0f} s"
        return {"status": status, "processor_seconds": _processor_seconds() - processor}
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return {"status": f"failed: {said[0]}"}
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


if __name__ == "__main__":
    print(json.dumps(call(sys.argv[1:])))
