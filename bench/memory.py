"""Resident memory of this process, where the system tells it, and work in a process of its own.

``python -m bench.memory module:function arguments`` is how ``isolated`` runs a function: arguments and the answer,
the last line that it prints, are JSON.
"""

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Threads that wait for work sleep. By default they spin for a while, and where a library has two pools of them, as
# scikit-learn has (OpenMP and OpenBLAS), one takes the cores from the other: a fit can take ten times as long.
_WAITING = {"OMP_WAIT_POLICY": "PASSIVE", "OPENBLAS_THREAD_TIMEOUT": "4"}
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")


def reset_peak() -> float | None:
    """Make the peak of the resident memory start anew; return what is resident now, in bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None  # no Linux, or not allowed: no figure rather than a wrong one
    return resident("VmRSS")


def resident(name: str) -> float | None:
    """``VmRSS``, what is resident, or ``VmHWM``, its peak, in bytes."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    values = [line.split()[1] for line in status.read_text().splitlines() if line.startswith(f"{name}:")]
    return 1024 * float(values[0]) if values else None


def environment(n_threads: int) -> dict[str, str]:
    """Variables of a process whose libraries may use so many threads each, which sleep when they wait."""
    return os.environ | _WAITING | dict.fromkeys(_THREADS, str(n_threads))


def isolated(
    function: str,
    arguments: dict[str, Any],
    n_threads: int,
    limit: float | None = None,
    python: str | Path = sys.executable,
) -> dict[str, Any]:
    """Call ``module:function`` with keyword arguments in a new process; its answer is a dictionary.

    When it takes longer than ``limit`` seconds it is stopped, and the answer only says so under ``status``; so it does
    when the process fails. ``python`` is the interpreter, by default this one.
    """
    command = [str(python), "-m", "bench.memory", function, json.dumps(arguments)]
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment(n_threads),
            capture_output=True,
            text=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return {"status": f"gave up after {time.perf_counter() - start:.0f} s"}
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return {"status": f"failed: {said[0]}"}
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def main() -> None:
    """Call the function that the command line names, and print its answer."""
    module, _, function = sys.argv[1].partition(":")
    answer = getattr(importlib.import_module(module), function)(**json.loads(sys.argv[2]))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
