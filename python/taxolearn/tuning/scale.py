"""The cheapest way to good hyperparameters: one factor of all variances, tried in steps, each with its temperature.

A temperature makes up for most of what a wrong variance does to probabilities, so the loss is flat in the variance, and
a few values are enough. They are compared without gradients, by fits that stop early, and what the best of them says
about the held-out rows is kept.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn.tuning.search import Evaluation, LearningResult

__all__ = ["ScaleResult", "search_scale"]

Floats = npt.NDArray[np.float64]

_FACTOR = 4.0  # from one value to the next
_TOLERANCE = 1e-3  # relative gap of the fits
_LEAST_GAIN = 1e-3  # of the loss, relative, for which a step is worth its time
_MOST_PRODUCTS = 400  # of a fold, from which on fits are too slow
_LARGEST_LOSS = 0.02  # relative, that a step away from such fits may bring
_TOO_SURE = 1.1  # temperature of predictors that are too large
_MESSAGES = {
    "converged": f"variances were tried in steps of a factor of {_FACTOR:g}, {{}} in all",
    "max_evaluations": "stopped after max_evaluations={}",
    "time_limit": "stopped by the time limit after {} evaluations",
    "interrupted": "stopped by Ctrl-C after {} evaluations",
    "failed": "the start values could not be evaluated: choose others, or raise max_iter",
}


@dataclass(frozen=True, eq=False)
class ScaleResult:
    """What was found.

    Attributes
    ----------
    theta : float64 array of shape (m,)
        Logarithms of the hyperparameters.
    temperature : float
        The best one there.
    loss : float
        Mean log loss of the held-out rows.
    predictors : float64 array of shape (n_samples, n_classes)
        Of the held-out rows, in the core's order of classes; zero for others.
    evaluations : tuple of Evaluation
        All that were made.
    status : str
        "converged", "max_evaluations", "time_limit", "interrupted" (Ctrl-C) or "failed", as in ``LearningResult``.
    """

    theta: Floats
    temperature: float
    loss: float
    predictors: Floats
    evaluations: tuple[Evaluation, ...]
    status: str

    def as_learning(self, objective: Any) -> LearningResult:
        """The same as a search by gradients tells how it went."""
        best = next(k for k, each in enumerate(self.evaluations) if each.theta is self.theta)
        return LearningResult(
            status=self.status,
            message=_MESSAGES[self.status].format(len(self.evaluations)),
            names=tuple(objective.names),
            start=np.asarray(objective.theta),
            bounds=np.asarray(objective.bounds),
            n_held_out=float(objective.n_held_out),
            evaluations=self.evaluations,
            best=best,
            is_log=objective.is_log,
        )


def search_scale(
    objective: Any,
    *,
    start: Floats | None = None,
    is_near: bool = False,
    max_evaluations: int = 6,
    deadline: float = np.inf,
    progress: Callable[..., None] | None = None,
    report: Callable[[int, float, float], None] | None = None,
) -> ScaleResult:
    """Go down from the start values as long as the loss falls, or else up, unless fits take too many iterations.

    Parameters
    ----------
    objective : CrossValidationObjective
        Variances of groups of functions are multiplied by one factor, or if there are none, those of kernels; the
        others, length scales and the variance of intercepts among them, stay.
    start : array of shape (m,), optional
        Logarithms of the hyperparameters to begin with, by default those of the objective.
    is_near : bool, default=False
        Whether the start was found by fewer rows of the same kind. Then it is left only for a lower value, if the
        temperature tells that predictors are too large.
    max_evaluations : int, default=6
        Most values to try.
    deadline : float, optional
        ``time.perf_counter()`` after which no other value is tried.
    progress : callable, optional
        As in ``CrossValidationObjective.evaluate``; what it raises ends the search.
    report : callable, optional
        Called after each evaluation, with their number, its mean loss and the best one.

    Returns
    -------
    ScaleResult

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C, during the first evaluation. Later it ends the search.
    """
    first = objective.theta if start is None else start
    affordable = _MOST_PRODUCTS * sum(len(np.unique(folds[folds >= 0])) for folds in objective.partitions)
    moved = _variances(objective.names)
    done: list[Evaluation] = []
    best: tuple[Evaluation, Floats] | None = None

    def try_step(step: int) -> bool:
        nonlocal best
        theta = np.clip(first + step * np.log(_FACTOR) * moved, *objective.bounds.T)
        found, predictors = objective.evaluate_held_out(theta, _TOLERANCE, progress)
        found = replace(found, tolerance=_TOLERANCE)
        done.append(found)
        is_usable = _succeeded(found) and found.products <= affordable
        is_better = best is None or (is_usable and not _succeeded(best[0]))
        if best is not None and is_usable and not is_better:
            factor = 1 - _LEAST_GAIN if best[0].products <= affordable else 1 + _LARGEST_LOSS
            is_better = bool(found.value < factor * best[0].value)
        if best is None or is_better:
            best = found, predictors
            objective.accept()
        if report is not None:
            report(len(done), found.value / objective.n_held_out, best[0].value / objective.n_held_out)
        return is_better

    def search() -> str:
        try_step(0)
        assert best is not None
        directions = (-1, 1) if not is_near else (-1,) if best[0].temperature > _TOO_SURE else ()
        for direction in directions:
            step, is_better = direction, bool(moved.any())
            while is_better:
                if len(done) >= max_evaluations:
                    return "max_evaluations"
                if time.perf_counter() >= deadline:
                    return "time_limit"
                is_better = try_step(step)
                step += direction if is_better else 0
            if step != direction:
                break
        return "converged"

    try:
        status = search()
    except KeyboardInterrupt:
        if best is None:
            raise
        status = "interrupted"
    assert best is not None
    found, predictors = best
    status = status if _succeeded(found) else "failed"
    loss = found.value / objective.n_held_out
    return ScaleResult(found.theta, found.temperature, loss, predictors, tuple(done), status)


def _succeeded(evaluation: Evaluation) -> bool:
    return evaluation.converged and bool(np.isfinite(evaluation.value))


def _variances(names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which parameters are multiplied: variances of groups of functions, to which others are relative, or all."""
    of_groups = np.array([name.startswith("variances[") for name in names], dtype=bool)
    return of_groups if of_groups.any() else np.array([_is_variance(name) for name in names], dtype=bool)


def _is_variance(name: str) -> bool:
    return name.endswith("variance") and name != "intercept_variance"
