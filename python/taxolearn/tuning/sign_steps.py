"""Steps of all hyperparameters at once, each against the sign of its derivative: few evaluations for many of them.

The loss is flat in the logarithms of variances, so that a factor of two is near enough, and the derivatives of
different variances may differ by orders of magnitude: their signs say where to go, their sizes little about how far.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn.tuning.search import Evaluation

__all__ = ["SignSteps", "step_by_signs"]

Floats = npt.NDArray[np.float64]

_LAST_STEP = np.log(1.5)
_SHRINKING, _GROWTH = 0.4, 1.5  # of steps
_LEAST_GAIN = 1e-3  # of the loss, relative, for which another step is worth its time
_TOLERANCE = 1e-3  # relative gap of the fits


@dataclass(frozen=True, eq=False)
class SignSteps:
    """What was found.

    Attributes
    ----------
    best : int
        Which of the evaluations has the least value; the first, unless a later one is usable.
    evaluations : tuple of Evaluation
        All that were made.
    status : str
        "converged" if no step was worth its time, else "max_evaluations", "time_limit", "interrupted" (Ctrl-C) or, if
        already the first could not be used, "failed".
    """

    best: int
    evaluations: tuple[Evaluation, ...]
    status: str

    @property
    def theta(self) -> Floats:
        """Logarithms of the best hyperparameters."""
        return self.evaluations[self.best].theta


def step_by_signs(
    objective: Any,
    *,
    start: Floats | None = None,
    first_step: float,
    max_evaluations: int,
    least_promise: float = 0.0,
    most_products: float = np.inf,
    deadline: float = np.inf,
    report: Callable[[Evaluation, float], None] | None = None,
) -> SignSteps:
    """Move the logarithms of all hyperparameters, each with a length of its own, as long as the loss falls.

    A length shrinks when the sign of its derivative changes, and grows while it stays, but not above ``first_step``.

    Parameters
    ----------
    objective : CrossValidationObjective
        What is to fall.
    start : array of shape (m,), optional
        Where to begin, by default at the values of the objective.
    first_step : float
        Length of the first step, by which every parameter is moved.
    max_evaluations : int
        Most of them, at least 1.
    least_promise : float, default=0.0
        Share of the loss that the derivative of a parameter must promise for its step, or it stays where it is.
    most_products : float, optional
        Points whose evaluation takes more are left, as fits there are too slow.
    deadline : float, optional
        ``time.perf_counter()`` after which no other point is tried.
    report : callable, optional
        Called after each evaluation with this and the least value so far.

    Returns
    -------
    SignSteps

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C, during the first evaluation. Later it ends the search.
    """
    done: list[Evaluation] = []

    def evaluate(theta: Floats, least: float) -> Evaluation:
        found: Evaluation = replace(objective.evaluate(theta, _TOLERANCE), tolerance=_TOLERANCE)
        done.append(found)
        if report is not None:
            report(found, min(least, found.value if _is_usable(found) else least))
        return found

    best = evaluate(objective.theta if start is None else start, np.inf)
    number = 0
    steps = np.full(len(best.theta), first_step)
    status = "converged" if _is_usable(best) else "failed"
    try:
        while status == "converged":
            slopes = np.asarray(best.gradient)
            moves = steps * np.sign(slopes) * (steps * np.abs(slopes) >= least_promise * best.value)
            if np.where(moves == 0, 0, steps).max(initial=0.0) < _LAST_STEP:
                break
            if len(done) >= max_evaluations:
                status = "max_evaluations"
                break
            if time.perf_counter() > deadline:
                status = "time_limit"
                break
            found = evaluate(np.clip(best.theta - moves, *objective.bounds.T), best.value)
            if _is_usable(found) and found.products <= most_products and found.value < best.value:
                is_done = found.value > (1 - _LEAST_GAIN) * best.value
                is_same = np.sign(np.asarray(found.gradient)) == np.sign(slopes)
                factors = np.where(moves == 0, 1.0, np.where(is_same, _GROWTH, _SHRINKING))
                steps = np.minimum(steps * factors, first_step)
                objective.accept()
                best, number = found, len(done) - 1
                if is_done:
                    break
            else:
                steps *= _SHRINKING
    except KeyboardInterrupt:
        status = "interrupted"
    return SignSteps(number, tuple(done), status)


def _is_usable(evaluation: Evaluation) -> bool:
    return (
        evaluation.converged
        and evaluation.gradient is not None
        and bool(np.isfinite(evaluation.value) and np.isfinite(evaluation.gradient).all())
    )
