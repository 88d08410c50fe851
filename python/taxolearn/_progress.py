"""Progress of a long fit: a bar on a terminal, nothing elsewhere."""

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["ProgressCallback", "fit_progress"]

ProgressCallback = Callable[[int, int, float, float, float], None]

_PATIENCE_SECONDS = 2.0  # a fit that takes longer than this shows its bar unasked


class _Bar:
    """Draws the bar, from the moment it is due."""

    def __init__(self, console: Console, tol: float, delay: float) -> None:
        self._tol = tol
        self._delay = delay
        self._start = time.perf_counter()
        self._first_gap: float | None = None
        self._shown = False
        self._progress = Progress(
            TextColumn("fitting"),
            BarColumn(),
            TextColumn("iteration {task.fields[iteration]}, relative gap {task.fields[gap]:.1e}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("fit", total=1.0, iteration=0, gap=math.nan)

    def update(self, iteration: int, gap: float) -> None:
        if self._first_gap is None:
            self._first_gap = gap
        if not self._shown and time.perf_counter() - self._start >= self._delay:
            self._progress.start()
            self._shown = True
        if self._shown:
            # The gap falls about exponentially, so its logarithm tells how far the fit has come.
            span = math.log(self._first_gap / self._tol) if self._first_gap > self._tol else 1.0
            done = math.log(self._first_gap / gap) / span if gap > 0 else 1.0
            self._progress.update(self._task, completed=min(max(done, 0.0), 1.0), iteration=iteration, gap=gap)

    def close(self) -> None:
        if self._shown:
            self._progress.stop()


@contextmanager
def fit_progress(verbose: int, tol: float) -> Iterator[ProgressCallback | None]:
    """A callback for the core, or None where nothing is to be shown.

    On a terminal a bar appears when the fit turns out to be long (``verbose=0``) or at once (``verbose=1``). From
    ``verbose=2`` on, every iteration prints a line, on a terminal or not.
    """
    if verbose >= 2:
        yield _print_line
        return
    console = Console(file=sys.stderr)
    if not console.is_terminal:
        yield None
        return
    bar = _Bar(console, tol, 0.0 if verbose else _PATIENCE_SECONDS)
    try:
        yield lambda iteration, products, objective, gap, seconds: bar.update(iteration, gap)
    finally:
        bar.close()


def _print_line(iteration: int, products: int, objective: float, gap: float, seconds: float) -> None:
    print(
        f"iteration {iteration:4d}  products {products:4d}  objective {objective:.10g}  "
        f"relative gap {gap:.2e}  {seconds:.2f} s",
        file=sys.stderr,
    )
