"""Objects that live in processes of their own and take turns: each sleeps, blocked on a pipe, until it is asked.

``python -m bench.harness.workers module:function arguments`` makes the object, and for each line of its input, a
method's name and keyword arguments in JSON, prints the answer on one line.
"""

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.harness.isolated import ROOT, address, call, environment


class LateError(Exception):
    """A worker took longer than it was given, and was stopped."""


class FailedError(Exception):
    """A worker ended by itself; the text is the last line that it wrote."""


class Worker:
    """What a class or function of a module makes of the arguments, in a new process of the interpreter ``python``."""

    def __init__(
        self,
        maker: Callable[..., Any],
        arguments: dict[str, Any],
        n_threads: int,
        python: str | Path = sys.executable,
    ) -> None:
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - open as long as the process
        self._process = subprocess.Popen(
            [str(python), "-m", __name__, address(maker), json.dumps(arguments)],
            cwd=ROOT,
            env=environment(n_threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def ask(self, method: str, limit: float | None = None, **arguments: Any) -> Any:
        """Return the answer of a method; after ``limit`` seconds, end the process and raise ``LateError``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps([method, arguments]) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise FailedError(self._last_words()) from None
        if not select.select([self._process.stdout], [], [], limit)[0]:
            self.stop()
            raise LateError
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise FailedError(self._last_words())
        return json.loads(line)

    def _last_words(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        return (self._errors.read().strip().splitlines() or [f"exit code {code}"])[-1]

    def stop(self) -> None:
        """End the process, if it still runs."""
        if self._errors.closed:
            return
        self._process.kill()
        self._process.communicate()
        self._errors.close()


def main() -> None:
    """Answer until the input ends."""
    with contextlib.suppress(OSError):  # if memory gets short, this process is the one to go
        Path("/proc/self/oom_score_adj").write_text("1000")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print goes elsewhere
    made = call(sys.argv[1:])
    for line in sys.stdin:
        method, arguments = json.loads(line)
        answers.write(json.dumps(getattr(made, method)(**arguments)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
