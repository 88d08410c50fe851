"""Cases of a long suite, each in a process of its own and kept at once, so that a suite continues where it stopped."""

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.harness.isolated import address, isolated


class Cases:
    """Answers by function and arguments, kept in a file with one JSON object per line.

    A case that the file has is not run again, so results of parts add up; ``fresh`` forgets it. Cases that failed are
    not kept. The file is not a result: it can be deleted when the suite is done.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        if fresh:
            path.unlink(missing_ok=True)
        elif path.exists():
            for line in path.read_text().splitlines():
                try:
                    entry = json.loads(line)
                except json.JSONDecodeError:  # cut off when the run was killed
                    continue
                self._known[_key(entry["function"], entry["arguments"])] = entry["answer"]

    def run(
        self,
        title: str,
        function: Callable[..., dict[str, Any]],
        arguments: dict[str, Any],
        n_threads: int,
        limit: float | None = None,
        python: str | Path = sys.executable,
        **more: Any,
    ) -> dict[str, Any]:
        """Return the answer of a function, called with keyword arguments and ``n_threads``; see ``isolated``.

        ``more`` arguments do not distinguish cases.
        """
        arguments = arguments | {"n_threads": n_threads}
        work = partial(isolated, function, arguments | more, n_threads, limit, python)
        return self.keep(title, address(function), arguments, work)

    def forget(self, function: Callable[..., Any], **arguments: Any) -> None:
        """Drop what is known for this function and these arguments, whatever its others were."""
        kept = [
            {"function": name, "arguments": given, "answer": self._known[key]}
            for key in self._known
            for name, given in [json.loads(key)]
            if name != address(function) or not arguments.items() <= given.items()
        ]
        self._known = {_key(entry["function"], entry["arguments"]): entry["answer"] for entry in kept}
        if self._path.exists():
            self._path.write_text("\n".join(map(json.dumps, kept)))

    def known(self, function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer that is known for this function and these arguments, if there is one."""
        return self._known.get(_key(address(function), arguments))

    def keep(
        self, title: str, function: str, arguments: dict[str, Any], work: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return the answer that is known for this function and these arguments, else that of ``work``."""
        key = _key(function, arguments)
        if key in self._known:
            print(f"  {title}: known", flush=True)
            return self._known[key]
        begin = time.perf_counter()
        answer = work()
        print(f"  {title}, {time.perf_counter() - begin:.1f} s in all: {_short(answer)}", flush=True)
        if not str(answer.get("status")).startswith("failed"):
            self._known[key] = answer
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                entry = {"function": function, "arguments": arguments, "answer": answer}
                file.write("\n" + json.dumps(entry))  # after a line that was cut off comes a new one
        return answer


def _key(function: str, arguments: dict[str, Any]) -> str:
    return json.dumps([function, arguments], sort_keys=True)


def _short(answer: dict[str, Any]) -> dict[str, Any]:
    """Leave out lists and dictionaries."""
    return {key: value for key, value in answer.items() if not isinstance(value, (dict, list))}
