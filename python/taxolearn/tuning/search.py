"""Learning hyperparameters: a quasi-Newton search around an objective whose values take long and may fail."""

import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from taxolearn.progress import LearningCallback, ProgressCallback
from taxolearn.tuning.checkpoint import read_checkpoint, record_type, write_checkpoint
from taxolearn.validation import check_number

__all__ = ["Array", "Evaluation", "LearningResult", "Objective", "learn", "projected_step"]

_LOOSE = 1e-3  # tolerance of the fits inside an evaluation, far from the minimum
_TIGHT = 3e-5  # and near it
_NOISE = 1e-5  # of the criterion, relative: differences below it mean nothing
_LEAST_DECREASE = 1e-4  # of the criterion, relative, in a step of the search: far below what other folds would change
_LONGEST_STEP = 3.0  # of any parameter in one step of the search, on log scale: a factor of 20
_LINE_STEPS = 10  # of a line search, at most
_LINE_FAILURES = 5  # that end it: then steps a thousandth as long do not succeed
_UNLIMITED = 10**9
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """One evaluation of an objective.

    Attributes
    ----------
    theta : float64 array of shape (m,)
        Logarithms of the hyperparameters.
    value : float
        The criterion: a sum over the held-out rows.
    gradient : float64 array of shape (m,) or None
        Its derivatives by ``theta``.
    converged : bool
        Whether the fits inside reached their tolerance; if not, the evaluation failed.
    gap : float
        Largest certified relative gap of these fits.
    products : int
        Kernel products they took.
    seconds : float
        Time they took.
    tolerance : float
        The tolerance they were asked for; written by the learner.
    temperature : float
        That of the held-out rows: given, or the best one at ``theta``.
    """

    theta: Array
    value: float
    gradient: Array | None
    converged: bool
    gap: float
    products: int
    seconds: float
    tolerance: float = np.nan
    temperature: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class LearningResult:
    """How the hyperparameters were learned.

    Attributes
    ----------
    status : str
        "converged", "max_evaluations", "time_limit", "interrupted" (Ctrl-C), "stalled" (no lower value was found along
        the last direction), "failed" (not even the start could be evaluated) or "no_parameters".
    message : str
        The same in a sentence.
    names : tuple of str
        Names of the hyperparameters.
    start : float64 array of shape (m,)
        Logarithms of the start values.
    bounds : float64 array of shape (m, 2)
        Logarithms of the bounds.
    n_held_out : float
        Number of held-out rows, weights counted: what sums are divided by to give means.
    evaluations : tuple of Evaluation
        All evaluations in their order.
    best : int or None
        Index of the one with the lowest value, None if there is none.
    is_log : bool array of shape (m,) or None
        Which parameters are on log scale, None for all. Others, the loadings of a ``LearnedCoupling``, stand for
        themselves wherever this says logarithms.
    """

    status: str
    message: str
    names: tuple[str, ...]
    start: Array
    bounds: Array
    n_held_out: float
    evaluations: tuple[Evaluation, ...]
    best: int | None
    is_log: NDArray[np.bool_] | None = None

    @property
    def theta(self) -> Array:
        """Logarithms of the best hyperparameters; without any evaluation, of the start values."""
        return self.start if self.best is None else self.evaluations[self.best].theta

    @property
    def temperature(self) -> float | None:
        """The temperature that goes with the best hyperparameters; None without any evaluation."""
        return None if self.best is None else self.evaluations[self.best].temperature

    @property
    def at_bounds(self) -> tuple[str, ...]:
        """Names of the best hyperparameters that a bound keeps from going on."""
        if self.best is None:
            return ()
        low, high = self.bounds.T
        held = (self.theta <= low) | (self.theta >= high)
        return tuple(name for name, at_bound, free in zip(self.names, held, low < high, strict=True) if at_bound & free)

    @property
    def values(self) -> Array:
        """Mean log loss of each evaluation, shape (k,). Those of failed ones mean nothing."""
        means: Array = self._column("value") / self.n_held_out
        return means

    @property
    def thetas(self) -> Array:
        """Logarithms of the hyperparameters of each evaluation, shape (k, m)."""
        return self._column("theta").reshape(len(self.evaluations), len(self.names))

    @property
    def gradient_norms(self) -> Array:
        """Largest derivative of the mean log loss at each evaluation, shape (k,); NaN where there is no gradient.

        A derivative that leads to a bound counts no more than the distance to it.
        """
        unknown = np.full(len(self.names), np.nan)
        known = [unknown if each.gradient is None else each.gradient for each in self.evaluations]
        gradients = np.array(known, dtype=np.float64).reshape(self.thetas.shape) / self.n_held_out
        norms: Array = np.abs(projected_step(self.thetas, gradients, self.bounds)).max(axis=1, initial=0.0)
        return norms

    @property
    def converged(self) -> NDArray[np.bool_]:
        """Whether each evaluation succeeded, shape (k,)."""
        return np.array([evaluation.converged for evaluation in self.evaluations], dtype=bool)

    @property
    def gaps(self) -> Array:
        """Largest relative gap of the fits of each evaluation, shape (k,)."""
        return self._column("gap")

    @property
    def products(self) -> NDArray[np.int64]:
        """Kernel products of each evaluation, shape (k,)."""
        return self._column("products").astype(np.int64)

    @property
    def seconds(self) -> Array:
        """Time of each evaluation, shape (k,)."""
        return self._column("seconds")

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, strings and lists."""
        columns = ("values", "thetas", "gradient_norms", "converged", "gaps", "products", "seconds")
        return {
            "status": self.status,
            "message": self.message,
            "names": list(self.names),
            "start": self.start.tolist(),
            "bounds": self.bounds.tolist(),
            "n_held_out": self.n_held_out,
            "best": self.best,
            **{name: getattr(self, name).tolist() for name in columns},
        }

    def __repr__(self) -> str:
        failures = np.count_nonzero(~self.converged)
        effort = f"{len(self.evaluations)} evaluations ({failures} failed), {self.seconds.sum():.1f} s"
        lines = [f"LearningResult: {self.status}, {effort}", self.message]
        if self.best is not None:
            ends = [int(np.argmax(self.converged)), self.best]
            lines.append(f"{'':<32} {'start':>12} {'best':>12}")
            rows = [("mean log loss", *self.values[ends])]
            if not np.isnan(self.gradient_norms[ends]).all():  # a search by gradients
                rows.append(("gradient", *self.gradient_norms[ends]))
            is_log = np.True_ if self.is_log is None else self.is_log
            shown = [np.where(is_log, np.exp(theta), theta) for theta in (self.start, self.theta)]
            if self.temperature != 1.0:
                rows.append(("temperature", *(self.evaluations[k].temperature for k in ends)))
            rows += zip(self.names, *shown, strict=True)
            lines += [f"{name:<32} {before:>12.6g} {after:>12.6g}" for name, before, after in rows[:12]]
            if len(rows) > 12:
                lines.append(f"and {len(rows) - 12} parameters more")
        if self.at_bounds:
            lines.append(f"at a bound: {', '.join(self.at_bounds)}")
        return "\n".join(lines)

    def _column(self, name: str) -> Array:
        return np.array([getattr(evaluation, name) for evaluation in self.evaluations], dtype=np.float64)


def projected_step(theta: Array, gradient: Array, bounds: Array) -> Array:
    """The step along the negative gradient, cut off at the bounds."""
    return np.clip(theta - gradient, *bounds.T) - theta


class Objective(Protocol):
    """What can be learned from: a criterion with a gradient, computed from an inner state that warms its start.

    An evaluation starts at the accepted state and does not change it; the same state, parameters and tolerance give
    the same numbers, bit by bit. :meth:`accept` makes the state that the last evaluation reached the accepted one.
    """

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def theta(self) -> Array: ...
    @property
    def bounds(self) -> Array: ...
    @property
    def n_held_out(self) -> float: ...
    def evaluate(self, theta: Array, tol: float, progress: ProgressCallback | None = None) -> Evaluation: ...
    def accept(self) -> None: ...
    def state(self) -> Mapping[str, NDArray[Any]] | None: ...
    def set_state(self, state: dict[str, NDArray[Any]]) -> None: ...


def learn(
    objective: Objective,
    *,
    tol: float = 1e-4,
    max_evaluations: int = 100,
    time_limit: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: LearningCallback | None = None,
    fingerprint: str = "",
    start: Array | None = None,
) -> LearningResult:
    """Minimize an objective over all of its parameters by L-BFGS-B.

    The fits inside an evaluation get more accurate as the gradient falls. A failed evaluation bounds the step of the
    line search and leaves no trace in the inner state (Seeger 2008, section 4). No parameter changes by more than a
    factor of 20 in one step: far away fits take long and say little.

    Parameters
    ----------
    objective : Objective
    tol : float, default=1e-4
        Stop when no derivative of the mean log loss is above this.
    max_evaluations : int, default=100
        Stop after so many evaluations, those of earlier runs from a checkpoint included.
    time_limit : float, default=None
        Stop after so many seconds of this run; what earlier runs took does not count.
    checkpoint : path, default=None
        A file that is written after each evaluation. If it is there already, the search continues where it was, to the
        same result as if it had never stopped.
    progress : callable, default=None
        Called after each evaluation with its number, its mean log loss (NaN if it failed), the best one so far, the
        gradient norm there and the seconds of this run.
    fingerprint : str, default=""
        Tells the problem from others, so that it never continues from the checkpoint of another one.
    start : array of shape (m,), default=None
        Where to begin; None means the objective's ``theta``.

    Returns
    -------
    LearningResult

    Raises
    ------
    ValueError
        The checkpoint is damaged or belongs to another problem.
    KeyboardInterrupt
        Ctrl-C came before the first evaluation was done. Later it gives a result.
    """
    check_number("tol", tol, least=0.0)
    check_number("max_evaluations", max_evaluations, least=1, integer=True)
    if time_limit is not None:
        check_number("time_limit", time_limit, least=0.0)
    if not (checkpoint is None or isinstance(checkpoint, (str, os.PathLike))):
        raise TypeError(f"checkpoint must be a path or None, got {checkpoint!r} of type {type(checkpoint).__name__}")
    search = _Search(objective, tol, max_evaluations, time_limit, progress, start)
    try:
        if checkpoint is not None:
            search.open_checkpoint(Path(checkpoint), fingerprint)
        search.run()
    except _Stop as stop:
        status, message = stop.args
    except KeyboardInterrupt:
        if not search.done:
            raise
        status, message = "interrupted", "stopped by Ctrl-C"
    return search.result(status, message)


class _Stop(Exception):  # noqa: N818
    """The search is over; the arguments are status and message."""


class _Restart(Exception):  # noqa: N818
    """The optimizer has to begin anew at the best point."""


@dataclass(frozen=True, eq=False)
class _Point:
    """An evaluation that succeeded, in means over the held-out rows."""

    index: int
    theta: Array
    value: float
    gradient: Array
    norm: float  # of the projected gradient


class _Search:
    """The evaluations that the optimizer asks for, and what follows from each of them.

    Evaluations that a checkpoint recorded are answered from there. As the optimizer is deterministic, it asks for the
    same ones again, and is then where it was.
    """

    def __init__(
        self,
        objective: Objective,
        tol: float,
        max_evaluations: int,
        time_limit: float | None,
        progress: LearningCallback | None,
        start: Array | None,
    ) -> None:
        self._objective = objective
        self._tol = tol
        self._max_evaluations = max_evaluations
        self._time_limit = time_limit
        self._progress = progress
        self._bounds = np.array(objective.bounds, dtype=np.float64).reshape(-1, 2)
        start = objective.theta if start is None else start
        self._start = np.clip(np.asarray(start, dtype=np.float64), *self._bounds.T)
        self._all_bounds = self._bounds
        is_log = getattr(objective, "is_log", None)
        if is_log is not None and is_log.any() and not is_log.all():
            # Loadings are many. They stay until the rest, above all their variance, is right for where they start.
            self._bounds = np.where(is_log[:, None], self._bounds, self._start[:, None])
        self._begin = time.perf_counter()
        self._save: Callable[[], None] = lambda: None
        self._recorded: deque[Evaluation] = deque()  # of an earlier run, not yet asked for again
        self.done: list[Evaluation] = []
        self._best: _Point | None = None
        self._first_norm = np.nan
        self._loose, self._tight = _LOOSE, _TIGHT
        self._remark = ""
        self._pass_start: _Point | None = None  # where the optimizer began

    def open_checkpoint(self, path: Path, fingerprint: str) -> None:
        """Take over what the file recorded, and write it from now on."""
        if len(self._start) == 0:
            return
        names = tuple(self._objective.names)
        kind = record_type(len(names))
        content = read_checkpoint(path, fingerprint, names, kind)
        if content is not None:
            records, state = content
            # Arrays stay, numbers become those of Python.
            self._recorded.extend(Evaluation(*(part if part.ndim else part.item() for part in row)) for row in records)
            if state:
                self._objective.set_state(state)

        def save() -> None:
            records = np.array([tuple(vars(evaluation).values()) for evaluation in self.done], kind)
            write_checkpoint(path, fingerprint, names, records, self._objective.state() or {})

        self._save = save
        if content is None:
            save()  # if it cannot be written, better to know now

    def run(self) -> NoReturn:
        """Search until there is a reason to stop, which is raised."""
        if len(self._start) == 0:
            raise _Stop("no_parameters", "nothing to learn: no hyperparameter is free")
        if self._bounds is not self._all_bounds:
            try:
                self._search()
            except _Stop as stop:
                if self._best is None or stop.args[0] not in ("converged", "stalled"):
                    raise
                self._free(self._best)
        self._search()

    def _search(self) -> NoReturn:
        """Passes of the optimizer, each from the best point so far."""
        while True:
            with suppress(_Restart):
                self._pass_start = self._best or self._evaluate_start()
                self._minimize(self._pass_start)
            if self._best is not None and self._best is self._pass_start:
                reason = "no lower value was found" if self.done[-1].converged else "evaluations failed"
                raise _Stop("stalled", f"{reason} along the last direction, down to short steps")

    def _free(self, best: _Point) -> None:
        """Let go of the parameters that were held."""
        self._bounds = self._all_bounds
        norm = float(np.abs(projected_step(best.theta, best.gradient, self._bounds)).max())
        self._best = replace(best, norm=norm)
        self._first_norm = max(self._first_norm, norm)

    def _evaluate_start(self) -> _Point:
        point = self._evaluate(self._start)
        if point is None:
            self._loose *= 10
            point = self._evaluate(self._start)
        if point is None:
            raise _Stop("failed", "the start values could not be evaluated: choose others, or raise max_iter")
        return point

    def _minimize(self, start: _Point) -> None:
        """Run the optimizer from a point, which is not evaluated again."""
        self._check_gradient(start)
        # The first step is the negative gradient. Scaled like this, its length is one.
        scale = 1 / float(np.linalg.norm(projected_step(start.theta, start.gradient, self._bounds)))
        origin, failures = start, 0  # of the line search
        point: _Point | None = start  # where the optimizer is

        def value_and_gradient(theta: Array) -> tuple[float, Array]:
            nonlocal point, failures
            point = None
            if _is_same(theta, start.theta):
                point = start
            elif np.abs(theta - origin.theta).max() <= _LONGEST_STEP:
                point = self._evaluate(theta)
                failures += point is None
            if point is None:
                if failures == _LINE_FAILURES:
                    raise _Restart
                value, gradient = _wall(origin, theta)  # steps that are too long are not even tried
            else:
                value, gradient = point.value, point.gradient
            return scale * value, scale * gradient

        def end_line_search(_: Array) -> None:
            nonlocal origin, failures
            # Values that do not fit together can make the optimizer take such a step.
            if point is None or point.value > origin.value + _NOISE * abs(origin.value):
                raise _Restart
            self._check_gradient(point)
            if point.value >= origin.value - _LEAST_DECREASE * abs(origin.value):
                if failures > 0:
                    raise _Stop("stalled", "evaluations failed along the last direction, down to short steps")
                raise _Stop("converged", f"the last step lowered the criterion by less than {_LEAST_DECREASE:g} of it")
            origin, failures = point, 0

        minimize(
            value_and_gradient,
            start.theta,
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds,
            callback=end_line_search,
            options={"ftol": 0.0, "gtol": 0.0, "maxls": _LINE_STEPS, "maxiter": _UNLIMITED, "maxfun": _UNLIMITED},
        )

    def _check_gradient(self, point: _Point) -> None:
        if point.norm <= self._tol:
            raise _Stop("converged", f"no derivative of the mean log loss is above tol={self._tol:g}")

    def _evaluate(self, theta: Array) -> _Point | None:
        """The next evaluation, recorded or new; None if it failed."""
        if len(self.done) >= self._max_evaluations:
            raise _Stop("max_evaluations", f"stopped after max_evaluations={self._max_evaluations}")
        if self._recorded:
            if _is_same(theta, self._recorded[0].theta):
                return self._add(self._recorded.popleft())
            self._remark = "; the checkpoint was of another version of scipy, the search continued from its best point"
            while self._recorded:
                self._add(self._recorded.popleft())
            self._pass_start = None
            raise _Restart
        self._check_time()
        watch = None if self._time_limit is None else self._check_time
        tolerance = self._tolerance()
        found = self._objective.evaluate(theta.copy(), tolerance, progress=watch)
        gradient = np.full(len(theta), np.nan)
        if found.gradient is not None:
            gradient[:] = found.gradient
        succeeded = bool(found.converged and np.isfinite(found.value) and np.isfinite(gradient).all())
        point = self._add(replace(found, gradient=gradient, converged=succeeded, tolerance=tolerance))
        if point is not None and point is self._best:
            self._objective.accept()
        self._save()
        if self._progress is not None:
            value = np.nan if point is None else point.value
            best, norm = (np.nan, np.nan) if self._best is None else (self._best.value, self._best.norm)
            self._progress(len(self.done), value, best, norm, time.perf_counter() - self._begin)
        return point

    def _add(self, evaluation: Evaluation) -> _Point | None:
        """Count an evaluation; None if it failed."""
        self.done.append(evaluation)
        if not evaluation.converged:
            # Fits that just miss their tolerance would miss it again.
            if evaluation.gap <= 10 * evaluation.tolerance:
                self._tight = min(10 * evaluation.tolerance, self._loose)
            return None
        mean = self._objective.n_held_out
        gradient = np.asarray(evaluation.gradient) / mean
        norm = float(np.abs(projected_step(evaluation.theta, gradient, self._bounds)).max())
        point = _Point(len(self.done) - 1, evaluation.theta, evaluation.value / mean, gradient, norm)
        if self._best is None:
            self._first_norm = norm
        if self._best is None or point.value < self._best.value:
            self._best = point
        return point

    def _tolerance(self) -> float:
        """Of the next evaluation: it falls with the gradient."""
        if self._best is None:
            return self._loose
        return min(max(self._loose * self._best.norm / self._first_norm, self._tight), self._loose)

    def _check_time(self, *_: object) -> None:
        if self._time_limit is not None and time.perf_counter() - self._begin >= self._time_limit:
            raise _Stop("time_limit", f"stopped after time_limit={self._time_limit:g} s")

    def result(self, status: str, message: str) -> LearningResult:
        """What there is so far."""
        return LearningResult(
            status=status,
            message=message + self._remark,
            names=tuple(self._objective.names),
            start=self._start,
            bounds=self._all_bounds,
            n_held_out=float(self._objective.n_held_out),
            evaluations=tuple(self.done),
            best=None if self._best is None else self._best.index,
            is_log=getattr(self._objective, "is_log", None),
        )


def _wall(origin: _Point, theta: Array) -> tuple[float, Array]:
    """Value and gradient for a failed evaluation: of a parabola with its minimum a quarter of the way there.

    Its value and slope where the line search began are the true ones.
    """
    step = theta - origin.theta
    fall = max(-float(origin.gradient @ step), _NOISE * abs(origin.value))
    return origin.value + fall, 3 * fall / (step @ step) * step


def _is_same(first: Array, second: Array) -> bool:
    """Bit by bit."""
    return first.tobytes() == second.tobytes()
