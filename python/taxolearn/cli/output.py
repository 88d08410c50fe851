"""What commands print: a table for people, or one JSON object for machines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from taxolearn.cli.errors import SYSTEM, USAGE, CommandError

__all__ = ["Page", "check_output", "figure", "size_text"]


def figure(value: Any, form: str = ",.4g") -> str:
    """Format a number for people; a dash stands for None."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else format(value, form)


class Page:
    """Prints results to the standard output, and what is going on to the standard error."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._out = Console()
        self._err = Console(stderr=True)
        encoding = self._out.encoding.lower()
        self.plain = not (self._out.is_terminal and encoding.startswith("utf"))

    @contextmanager
    def stage(self, what: str) -> Iterator[Callable[[int], None]]:
        """Say on a terminal what is going on and, by the function that it yields, how many rows are done."""
        if self._as_json or not self._err.is_terminal:
            yield lambda rows: None
            return
        begin, done = time.perf_counter(), 0
        with self._err.status(f"{what} ...") as status:

            def count(rows: int) -> None:
                nonlocal done
                done += rows
                speed = done / max(time.perf_counter() - begin, 1e-9)
                status.update(f"{what}: {done:,} rows, {speed:,.0f} per second")

            yield count

    def result(
        self, figures: dict[str, Any], *, title: str, rows: list[tuple[str, str]], remarks: list[str] | None = None
    ) -> None:
        """Print the outcome: figures as JSON, or rows of a table."""
        if self._as_json:
            print(json.dumps(figures, indent=2))
            return
        self._out.print(Text(self._shown(title), style="bold"))
        lines = box.Box(str(box.SIMPLE).replace("─", "-"), ascii=True) if self.plain else box.SIMPLE
        table = Table(box=lines, show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(justify="right")
        for name, value in rows:
            table.add_row(self._shown(name), self._shown(value))
        self._out.print(table)
        for remark in remarks or []:
            print(f"note: {remark}", file=sys.stderr)

    def _shown(self, text: str) -> str:
        return text.encode("ascii", "replace").decode() if self.plain else text


def check_output(path: str, *inputs: str) -> None:
    """Check before hours of work, not after, that a file can be written and is none of the inputs."""
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise CommandError(f"{path}: there is no folder {folder.name!r} to write to", SYSTEM)
    if Path(path).is_dir():
        raise CommandError(f"{path}: is a folder, expected the name of a file to write", SYSTEM)
    for each in inputs:
        if Path(path).is_file() and Path(each).is_file() and Path(path).samefile(each):
            raise CommandError(f"{path}: is read by this command, and would be replaced; write to another file", USAGE)


def size_text(size: int) -> str:
    """Format a number of bytes for people."""
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.1f} kB"
