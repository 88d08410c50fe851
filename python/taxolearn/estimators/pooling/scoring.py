"""The experts of a pool are tried: hyperparameters, and scores of rows that they were not fitted to."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier, with_hyperparameters
from taxolearn.estimators.pooling.choice import mean_loss
from taxolearn.estimators.pooling.experts import HeldOut, OutOfFold, out_of_fold
from taxolearn.estimators.pooling.inputs import Inputs
from taxolearn.estimators.pooling.logistic import OutOfTimeError, best_of, score_logistic
from taxolearn.estimators.pooling.schedule import Schedule
from taxolearn.estimators.pooling.weights import fit_temperature
from taxolearn.estimators.top_down import TopDownClassifier
from taxolearn.tuning.cross_validation import CrossValidation

__all__ = ["Scored", "score_experts"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_RESERVE = 1.5  # times the seconds of the last fits, as far as they are known
_SHARE_OF_TUNING = 0.2  # of the time that is left
_SHARE_OF_CHOICE = 0.75  # of the work on an expert, that of choosing among candidates


@dataclass(frozen=True)
class Scored:
    """An expert whose out-of-fold scores are known, at its temperature."""

    name: str
    estimator: Any
    found: OutOfFold
    temperature: float
    loss: float
    seconds: float


def score_experts(
    experts: list[tuple[str, Any]],
    inputs: Inputs,
    numbers: Integers,
    classes: npt.NDArray[Any],
    weights: Floats | None,
    held_out: HeldOut,
    *,
    earlier: Mapping[str, Any],
    deadline: float,
    schedule: Schedule,
) -> list[Scored]:
    """Choose hyperparameters of the experts and find their scores, as long as there is time.

    Parameters
    ----------
    experts : list of (name, estimator)
        In the order in which they are tried; a list of estimators means the best of these.
    inputs, numbers, weights
        Of all rows; ``numbers`` are places in ``classes``.
    held_out : HeldOut
        The rows to score.
    earlier : mapping
        Fitted experts by name, whose hyperparameters are those to begin with.
    deadline : float
        ``time.perf_counter()`` until which the last fits should be over, too.
    schedule : Schedule
        Is told what is done.
    """
    labels, rows = numbers[held_out.rows], held_out.rows
    scored: list[Scored] = []
    for name, estimator in experts:
        start = time.perf_counter()
        reserved = _RESERVE * sum(each.found.fit_seconds for each in scored)  # the last fits need time as well
        schedule.begin(name)
        if scored and start + reserved >= deadline:
            schedule.line(f"{name}: skipped, no time is left")
            continue
        until = deadline - reserved if scored else np.inf
        first = 0.0
        if isinstance(estimator, list):
            first = _SHARE_OF_CHOICE
            given = inputs.given_to(name, estimator[0])
            estimator = best_of(estimator, given, classes[numbers], weights, deadline=until)
            schedule.advance(first, 0.0, np.inf)
        X = inputs.given_to(name, estimator)
        if isinstance(estimator, KernelLogisticClassifier):
            try:
                logistic = score_logistic(
                    _begun(estimator, earlier.get(name)),
                    X,
                    classes[numbers],
                    classes,
                    weights,
                    held_out.folds,
                    rows,
                    deadline=until,
                    report=partial(schedule.advance, first),
                )
            except OutOfTimeError:
                schedule.line(f"{name}: given up, no time is left")
                continue
            estimator = logistic.estimator
            found = OutOfFold(logistic.scores.astype(np.float32), 0.0, logistic.fit_seconds)
        else:
            if isinstance(estimator, TopDownClassifier) and estimator.tuning == "cv" and deadline < np.inf:
                limit = max(0.0, _SHARE_OF_TUNING * (deadline - start))
                estimator = clone(estimator).set_params(tuning=CrossValidation(3, time_limit=limit))
            if hasattr(estimator, "tuned"):
                estimator = estimator.tuned(X, classes[numbers], weights, held_out.folds)
            found = out_of_fold(estimator, X, numbers, classes, weights, held_out)
        temperature = fit_temperature(found.scores, labels, held_out.weights)
        found = replace(found, scores=found.scores / np.float32(temperature))
        loss = mean_loss(found.scores, labels, held_out.weights)
        seconds = time.perf_counter() - start
        scored.append(Scored(name, estimator, found, temperature, loss, seconds))
        schedule.finish(loss, found.fit_seconds)
        schedule.line(f"{name}: log loss {loss:.4f}, temperature {temperature:.3g}, {seconds:.2f} s")
    return scored


def _begun(estimator: KernelLogisticClassifier, earlier: Any) -> KernelLogisticClassifier:
    """The estimator with hyperparameters that an earlier one has learned, to begin with."""
    if estimator.tuning is None or not isinstance(earlier, KernelLogisticClassifier):
        return estimator
    begun: KernelLogisticClassifier = with_hyperparameters(estimator, earlier.hyperparameters_)
    begun.tuning = estimator.tuning
    return begun
