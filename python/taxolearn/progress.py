"""Progress of a long fit or search: a bar on a terminal, nothing elsewhere."""

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.text import Text

__all__ = [
    "LearningCallback",
    "ProgressCallback",
    "Stages",
    "fit_progress",
    "learning_progress",
    "round_progress",
    "stage_progress",
    "without_bars",
]

ProgressCallback = Callable[[int, int, float, float, float], None]
# Number of the evaluation, its mean log loss (NaN if it failed), the best one, the gradient norm there, seconds.
LearningCallback = Callable[[int, float, float, float, float], None]

_PATIENCE_SECONDS = 2.0  # a fit that takes longer than this shows its bar unasked
_has_stages = threading.Event()  # set while the parts of a larger work have one bar together


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
            # The gap falls about exponentially, so its logarithm shows how far the fit has come.
            span = math.log(self._first_gap / self._tol) if self._first_gap > self._tol else 1.0
            done = math.log(self._first_gap / gap) / span if gap > 0 else 1.0
            self._progress.update(self._task, completed=min(max(done, 0.0), 1.0), iteration=iteration, gap=gap)

    def close(self) -> None:
        if self._shown:
            self._progress.stop()


@contextmanager
def fit_progress(verbose: int, tol: float) -> Iterator[ProgressCallback | None]:
    """Yield a callback for the core, or None where nothing is to be shown.

    On a terminal a bar appears when the fit turns out to be long (``verbose=0``) or at once (``verbose=1``). From
    ``verbose=2`` on, every iteration prints a line, on a terminal or not.
    """
    if verbose >= 2:
        yield _print_line
        return
    console = Console(file=sys.stderr)
    if not console.is_terminal or _has_stages.is_set():
        yield None
        return
    bar = _Bar(console, tol, 0.0 if verbose else _PATIENCE_SECONDS)
    try:
        yield lambda iteration, products, objective, gap, seconds: bar.update(iteration, gap)
    finally:
        bar.close()


@contextmanager
def round_progress(
    verbose: int, title: str = "expectations", changes: str = "bound"
) -> Iterator[Callable[[int, int, float, float], None] | None]:
    """Yield a callback for the rounds of ``fit_expectation`` or others, shown as in ``fit_progress``."""
    if verbose >= 2:
        yield _print_round
        return
    console = Console(file=sys.stderr)
    if not console.is_terminal or _has_stages.is_set():
        yield None
        return
    begin = time.perf_counter()
    delay = 0.0 if verbose else _PATIENCE_SECONDS
    shown = False

    def show(number: int, products: int, bound: float, change: float) -> None:
        nonlocal shown
        if time.perf_counter() - begin >= delay:
            shown = True
            console.print(f"{title}: round {number}, change of {changes} {change:.1e}", end="\r", highlight=False)

    try:
        yield show
    finally:
        if shown:
            console.print()


def _print_round(number: int, products: int, bound: float, change: float) -> None:
    print(f"round {number:4d}  products {products:4d}  bound {bound:.10g}  change {change:.2e}", file=sys.stderr)


def _print_line(iteration: int, products: int, objective: float, gap: float, seconds: float) -> None:
    print(
        f"iteration {iteration:4d}  products {products:4d}  objective {objective:.10g}  "
        f"relative gap {gap:.2e}  {seconds:.2f} s",
        file=sys.stderr,
    )


class _Budget:
    """Estimates how long a search will take, from how it went so far."""

    def __init__(self, tol: float, max_evaluations: int, time_limit: float | None) -> None:
        self._tol = tol
        self._max_evaluations = max_evaluations
        self._time_limit = math.inf if time_limit is None else time_limit
        self._first: tuple[int, float, float] | None = None

    def seconds_left(self, evaluation: int, norm: float, seconds: float) -> float:
        """Estimate the seconds until the gradient is small or the search is stopped; infinite if nobody knows yet."""
        if self._first is None:
            self._first = evaluation, norm, seconds
        first_evaluation, first_norm, first_seconds = self._first
        spent, steps = seconds - first_seconds, evaluation - first_evaluation
        left = self._time_limit - seconds
        if steps > 0:
            left = min(left, spent / steps * (self._max_evaluations - evaluation))
            # The gradient falls about exponentially.
            if self._tol < norm < first_norm:
                left = min(left, spent * math.log(norm / self._tol) / math.log(first_norm / norm))
        return max(left, 0.0)


class _LearningBar:
    """Draws the bar of a search, from the moment it is due, however long the first evaluation takes."""

    def __init__(self, console: Console, budget: _Budget, delay: float) -> None:
        self._budget = budget
        self._progress = Progress(
            TextColumn("learning"),
            BarColumn(),
            TextColumn("{task.fields[place]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("learn", total=1.0, place="first evaluation", left="")
        self._start = threading.Timer(delay, self._progress.start)
        self._start.start()

    def update(self, evaluation: int, value: float, best: float, norm: float, seconds: float) -> None:
        left = self._budget.seconds_left(evaluation, norm, seconds)
        done = seconds / (seconds + left) if seconds > 0 else 0.0
        place = f"evaluation {evaluation + 1}, mean log loss {best:.5f}"
        text = f"about {_duration(left)} left" if math.isfinite(left) else ""
        self._progress.update(self._task, completed=done, place=place, left=text)

    def close(self) -> None:
        self._start.cancel()
        self._start.join()
        self._progress.stop()


@contextmanager
def learning_progress(
    verbose: int, tol: float, max_evaluations: int, time_limit: float | None
) -> Iterator[LearningCallback | None]:
    """Yield a callback for :func:`taxolearn.tuning.search.learn`, or None where nothing is to be shown.

    It is shown as in :func:`fit_progress`, with an evaluation in place of an iteration.
    """
    if verbose >= 2:
        yield _print_evaluation
        return
    console = Console(file=sys.stderr)
    if not console.is_terminal or _has_stages.is_set():
        yield None
        return
    bar = _LearningBar(console, _Budget(tol, max_evaluations, time_limit), 0.0 if verbose else _PATIENCE_SECONDS)
    try:
        yield bar.update
    finally:
        bar.close()


class _LeftColumn(ProgressColumn):
    """The time that is left, which goes on falling between two estimates."""

    def render(self, task: Task) -> Text:
        left = task.fields["until"] - time.perf_counter()
        if not math.isfinite(left):
            return Text("")
        if left < 1.0:
            return Text("more than 1 s left" if task.fields["is_least"] else "nearly done")
        return Text(f"{'more than' if task.fields['is_least'] else 'about'} {_duration(left)} left")


class Stages:
    """Says what is being done in a work of several parts: on a bar, in lines, or not at all.

    Parameters
    ----------
    console : Console or None
        Where the bar is, from the moment it is due; None for no bar.
    has_lines : bool
        Whether lines are printed.
    delay : float
        Seconds until the bar is due.
    """

    def __init__(self, console: Console | None, has_lines: bool, delay: float) -> None:
        self._console = console
        self._has_lines = has_lines
        self._begin = time.perf_counter()
        self._progress: Progress | None = None
        if console is None:
            return
        columns = (TextColumn("{task.fields[place]}"), BarColumn(), TimeElapsedColumn(), _LeftColumn())
        self._progress = Progress(*columns, console=console, transient=True)
        self._task = self._progress.add_task("", total=1.0, place="", until=math.nan, is_least=True)
        self._start = threading.Timer(delay, self._progress.start)
        self._start.start()

    def line(self, text: str) -> None:
        """What is over, and how it went."""
        if self._has_lines and self._console is not None:
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)
        elif self._has_lines:
            print(text, file=sys.stderr, flush=True)

    def update(self, place: str, left: float, is_least: bool) -> None:
        """What is being done, and how many seconds are left (NaN if nobody knows), or at least these."""
        if self._progress is None:
            return
        now = time.perf_counter()
        done = 0.0 if math.isnan(left) else (now - self._begin) / max(now - self._begin + left, 1e-9)
        self._progress.update(self._task, completed=done, place=place, until=now + left, is_least=is_least)

    def close(self) -> None:
        if self._progress is not None:
            self._start.cancel()
            self._start.join()
            self._progress.stop()


@contextmanager
def stage_progress(verbose: int) -> Iterator[Stages]:
    """Yield what shows the progress of a work of several parts, whose own bars are not shown meanwhile.

    On a terminal a bar appears when the work turns out to be long (``verbose=0``) or at once. From ``verbose=1`` on,
    lines are printed, on a terminal or not.
    """
    console = Console(file=sys.stderr)
    is_first = not _has_stages.is_set()
    stages = Stages(
        console if console.is_terminal and is_first else None, verbose > 0, 0.0 if verbose else _PATIENCE_SECONDS
    )
    if is_first:
        _has_stages.set()
    try:
        yield stages
    finally:
        if is_first:
            _has_stages.clear()
        stages.close()


@contextmanager
def without_bars() -> Iterator[None]:
    """Show no bar of a part, since something else says what is going on."""
    is_first = not _has_stages.is_set()
    _has_stages.set()
    try:
        yield
    finally:
        if is_first:
            _has_stages.clear()


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _print_evaluation(evaluation: int, value: float, best: float, norm: float, seconds: float) -> None:
    shown = "    failed" if math.isnan(value) else f"{value:10.6f}"
    slope = "" if math.isnan(norm) else f"  gradient {norm:.2e}"
    print(
        f"evaluation {evaluation:4d}  mean log loss {shown}  best {best:.6f}{slope}  {seconds:.2f} s", file=sys.stderr
    )
