"""Learning in steps: one factor of all variances, and from there, if that is asked for, every hyperparameter."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn.progress import LearningCallback
from taxolearn.tuning.cross_validation import CrossValidation
from taxolearn.tuning.scale import search_scale
from taxolearn.tuning.search import Evaluation, LearningResult
from taxolearn.tuning.sign_steps import step_by_signs

__all__ = ["learn_in_steps"]

Floats = npt.NDArray[np.float64]

_FIRST_STEP = float(np.log(4.0))  # as long as those of the factor
_MOST_STEPS = 4
_LEAST_PROMISE = 1e-3  # of the loss, relative, of independent parameters together
_MOST_PRODUCTS = 600  # of a fold with its derivatives, from which on fits are too slow
_MESSAGES = {
    "converged": "a factor of all variances was tried, then steps of all hyperparameters, {} evaluations in all",
    "max_evaluations": "stopped after max_evaluations={}",
    "time_limit": "stopped by the time limit after {} evaluations",
    "interrupted": "stopped by Ctrl-C after {} evaluations",
}


def learn_in_steps(
    objective: Any, start: Floats, tuning: CrossValidation, progress: LearningCallback | None
) -> LearningResult:
    """Learn by ``search_scale``, and with ``search="steps"`` go on by ``step_by_signs``.

    Parameters
    ----------
    objective : CrossValidationObjective
        What is to fall.
    start : array of shape (m,)
        Logarithms of the hyperparameters to begin with.
    tuning : CrossValidation
        With ``search`` "scale" or "steps"; its limits are those of both together.
    progress : callable or None
        Called after each evaluation, as by ``learn``.

    Returns
    -------
    LearningResult
    """
    begin = time.perf_counter()
    deadline = np.inf if tuning.time_limit is None else begin + tuning.time_limit

    def report(number: int, value: float, best: float) -> None:
        if progress is not None:
            progress(number, value, best, np.nan, time.perf_counter() - begin)

    scale = search_scale(
        objective, start=start, max_evaluations=tuning.max_evaluations, deadline=deadline, report=report
    ).as_learning(objective)
    before = len(scale.evaluations)
    left = tuning.max_evaluations - before
    if tuning.search == "scale" or scale.status != "converged":
        return scale
    if left < 1 or time.perf_counter() >= deadline:
        return _ended(scale, "max_evaluations" if left < 1 else "time_limit")
    made: list[Evaluation] = []

    def tell(found: Evaluation, least: float) -> None:
        made.append(found)
        report(before + len(made), found.value / objective.n_held_out, least / objective.n_held_out)

    try:
        steps = step_by_signs(
            objective,
            start=scale.theta,
            first_step=_FIRST_STEP,
            max_evaluations=min(left, 1 + _MOST_STEPS),
            least_promise=_LEAST_PROMISE / np.sqrt(max(1, len(start))),
            most_products=_MOST_PRODUCTS * sum(len(np.unique(folds[folds >= 0])) for folds in objective.partitions),
            deadline=deadline,
            report=tell,
        )
    except KeyboardInterrupt:
        return _ended(scale, "interrupted")
    scale = replace(scale, evaluations=(*scale.evaluations, *steps.evaluations))
    if steps.status == "failed":
        return _ended(scale, "converged")
    is_all = steps.status == "max_evaluations" and left > _MOST_STEPS
    return _ended(replace(scale, best=before + steps.best), "converged" if is_all else steps.status)


def _ended(result: LearningResult, status: str) -> LearningResult:
    return replace(result, status=status, message=_MESSAGES[status].format(len(result.evaluations)))
