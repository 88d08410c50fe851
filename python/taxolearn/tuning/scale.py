"""The cheapest way to good hyperparameters: one factor of all variances, tried in steps, each with its temperature.

A temperature makes up for most of what a wrong variance does to probabilities, so the loss is flat in the variance, and
a few values are enough. They are compared without gradients, by fits that stop early, and what the best of them says
about the held-out rows is kept.
"""

import time
from collections.abc import Callable
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
    """

    theta: Floats
    temperature: float
    loss: float
    predictors: Floats
    evaluations: tuple[Evaluation, ...]

    def as_learning(self, objective: Any) -> LearningResult:
        """The same as a search by gradients tells how it went."""
        best = next(k for k, each in enumerate(self.evaluations) if each.theta is self.theta)
        return LearningResult(
            status="converged" if self.evaluations[best].converged else "failed",
            message=f"variances were tried in steps of a factor of {_FACTOR:g}, {len(self.evaluations)} in all",
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
    max_evaluations: int = 6,
    deadline: float = np.inf,
    progress: Callable[..., None] | None = None,
) -> ScaleResult:
    """Go down from the start values as long as the loss falls, or else up, unless fits take too many iterations.

    Parameters
    ----------
    objective : CrossValidationObjective
        All its parameters that are variances of kernels, functions or groups of these are multiplied by one factor; the
        others, length scales and the variance of intercepts among them, stay.
    max_evaluations : int, default=6
        Most values to try.
    deadline : float, optional
        ``time.perf_counter()`` after which no other value is tried.
    progress : callable, optional
        As in ``CrossValidationObjective.evaluate``; what it raises ends the search.

    Returns
    -------
    ScaleResult
    """
    affordable = _MOST_PRODUCTS * sum(len(np.unique(folds[folds >= 0])) for folds in objective.partitions)
    moved = np.array([_is_variance(name) for name in objective.names], dtype=bool)
    done: list[Evaluation] = []
    best: tuple[Evaluation, Floats] | None = None

    def try_step(step: int) -> bool:
        nonlocal best
        theta = np.clip(objective.theta + step * np.log(_FACTOR) * moved, *objective.bounds.T)
        found, predictors = objective.evaluate_held_out(theta, _TOLERANCE, progress)
        found = replace(found, tolerance=_TOLERANCE)
        done.append(found)
        is_usable = _succeeded(found) and found.products <= affordable
        is_better = best is None or (is_usable and not _succeeded(best[0]))
        if best is not None and is_usable and not is_better:
            factor = 1 - _LEAST_GAIN if best[0].products <= affordable else 1 + _LARGEST_LOSS
            is_better = bool(found.value < factor * best[0].value)
        if is_better:
            best = found, predictors
            objective.accept()
        return is_better

    try_step(0)
    for direction in (-1, 1):
        step = direction
        while moved.any() and len(done) < max_evaluations and time.perf_counter() < deadline and try_step(step):
            step += direction
        if step != direction:
            break
    assert best is not None
    found, predictors = best
    return ScaleResult(found.theta, found.temperature, found.value / objective.n_held_out, predictors, tuple(done))


def _succeeded(evaluation: Evaluation) -> bool:
    return evaluation.converged and bool(np.isfinite(evaluation.value))


def _is_variance(name: str) -> bool:
    return name.startswith("variances[") or (name.endswith("variance") and name != "intercept_variance")
