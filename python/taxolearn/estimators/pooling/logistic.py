"""Logistic experts of a pool: hyperparameters by a few loose fits, which give the scores of held-out rows, too."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_expit, log_softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from taxolearn.blocks import n_stored
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier, tune, with_hyperparameters
from taxolearn.tuning.cross_validation import CrossValidation, as_tuning, some_rows
from taxolearn.tuning.learn import CrossValidationObjective
from taxolearn.tuning.scale import ScaleResult, search_scale
from taxolearn.tuning.search import LearningResult

__all__ = ["LogisticScores", "OutOfTimeError", "best_of", "score_logistic"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_WORK = 3e7  # multiplications of a product, with so many rows as hyperparameters are chosen by
_LEAST_ROWS = 3000
_LARGEST_PART = 0.5  # of all rows, above which all are used
_CANDIDATES = 4
_USUAL = 3  # of these
_NATS = 2.0  # by which a hyperparameter has to lower the loss of all rows, for a candidate that has more of them
_FINAL_FITS = 1.5  # seconds of the last fit, as a multiple of those of a fold


class OutOfTimeError(Exception):
    """The time is up."""


@dataclass(frozen=True)
class LogisticScores:
    """A tuned expert, and what it says about held-out rows.

    Attributes
    ----------
    estimator : KernelLogisticClassifier
        Not fitted; its hyperparameters are arguments.
    scores : float64 array of shape (n_rows, n_classes)
        Log probabilities.
    fit_seconds : float
        How long the last fit may take.
    """

    estimator: KernelLogisticClassifier
    scores: Floats
    fit_seconds: float


def score_logistic(
    estimator: KernelLogisticClassifier,
    X: Any,
    y: npt.NDArray[Any],
    classes: npt.NDArray[Any],
    weights: Floats | None,
    folds: npt.NDArray[np.int32],
    rows: Integers,
    *,
    deadline: float = np.inf,
    report: Callable[[float, float], None] = lambda share, loss: None,
) -> LogisticScores:
    """Tune an expert and score held-out rows.

    Parameters
    ----------
    estimator : KernelLogisticClassifier
        The expert. With ``tuning=None`` it keeps its hyperparameters.
    X, y, weights
        Inputs, labels and weights of all rows.
    classes : array of shape (n_classes,)
        The labels, sorted.
    folds : array of int of shape (n_samples,)
        The fold of each row, -1 for never held out.
    rows : array of int
        The rows to score.
    deadline : float
        ``time.perf_counter()`` after which the work is given up.
    report : callable, optional
        Is told which share of the work is done, and the log loss.

    Raises
    ------
    OutOfTimeError
        At the deadline.
    """

    tuning = as_tuning(estimator.tuning)

    def watch(*_: object) -> None:
        if time.perf_counter() > deadline:
            raise OutOfTimeError

    def objective(model: KernelLogisticClassifier, part: Any = None) -> CrossValidationObjective:
        model = clone(model).set_params(
            tuning=CrossValidation(
                folds if part is None else folds[part],
                learn_intercept_variance=False,
                learn_temperature=tuning is not None,
            )
        )
        given = (X, y, weights) if part is None else (X[part], y[part], None if weights is None else weights[part])
        return CrossValidationObjective(model, *given, classes=None if model.taxonomy is not None else classes)

    def seen(first: float, last: float) -> Callable[[int, float, float], None]:
        def tell(count: int, _: float, best: float) -> None:
            report(first + (last - first) * count / max(_USUAL, count + 1), best)

        return tell

    subset, before = None, 0.0
    if tuning is not None and tuning.search == "scale":
        subset = _subset(X, y, folds, len(classes))
        if subset is not None:
            before = len(subset) / (len(subset) + len(y))
            sought = objective(estimator, subset)
            found = search_scale(sought, deadline=deadline, progress=watch, report=seen(0.0, before))
            estimator = _tuned(estimator, sought, found)
    elif tuning is not None:
        estimator = _learn(estimator, tuning, X, y, weights, folds, deadline)[0]
    full = objective(estimator)
    begin = time.perf_counter()
    most = 2 if subset is not None else 1 if estimator.tuning is None else _CANDIDATES
    found = search_scale(
        full,
        is_near=subset is not None,
        max_evaluations=most,
        deadline=deadline,
        progress=watch,
        report=seen(before, 1.0) if most > 1 else None,
    )
    seconds = (time.perf_counter() - begin) / len(found.evaluations) / max(1, len(np.unique(folds[folds >= 0])))
    tuned = _tuned(estimator, full, found)
    return LogisticScores(tuned, _log_scores(tuned, found, full, rows), _FINAL_FITS * seconds)


def best_of(
    candidates: Sequence[KernelLogisticClassifier],
    X: Any,
    y: npt.NDArray[Any],
    weights: Floats | None,
    *,
    deadline: float = np.inf,
) -> KernelLogisticClassifier:
    """The candidate of the least cross-validated loss, tuned."""
    best: tuple[KernelLogisticClassifier, float] | None = None
    for candidate in candidates:
        if best is not None and time.perf_counter() > deadline:
            break
        tuning = as_tuning(candidate.tuning)
        assert tuning is not None
        tuned, result = _learn(candidate, tuning, X, y, weights, None, deadline)
        loss = np.inf
        if result is not None and result.best is not None:
            # What is learned from rows makes their loss too small.
            loss = float(result.values[result.best] + _NATS * len(result.names) / result.n_held_out)
        if best is None or loss < best[1]:
            best = tuned, loss
    assert best is not None
    return best[0]


def _learn(
    estimator: KernelLogisticClassifier,
    tuning: CrossValidation,
    X: Any,
    y: npt.NDArray[Any],
    weights: Floats | None,
    folds: npt.NDArray[np.int32] | None,
    deadline: float,
) -> tuple[KernelLogisticClassifier, LearningResult | None]:
    """Learn hyperparameters as the estimator says, in the time that is left."""
    limit = min(np.inf if tuning.time_limit is None else tuning.time_limit, deadline - time.perf_counter())
    tuning = clone(tuning).set_params(time_limit=None if limit == np.inf else max(0.0, limit))
    with warnings.catch_warnings():  # few evaluations are meant
        warnings.filterwarnings("ignore", "Learning hyperparameters: stopped", ConvergenceWarning)
        return tune(clone(estimator).set_params(tuning=tuning), X, y, weights, folds)


def _subset(X: Any, y: npt.NDArray[Any], folds: npt.NDArray[np.int32], n_classes: int) -> Integers | None:
    """Rows to choose hyperparameters by; None for all of them."""
    per_row = n_stored(X) / max(1, X.shape[0]) * n_classes
    count = max(_LEAST_ROWS, int(_WORK / max(1.0, per_row)))
    if count > _LARGEST_PART * X.shape[0]:
        return None
    rows = some_rows(y, count, np.random.RandomState(0))
    held_out = folds[rows] >= 0
    return rows.astype(np.int64) if held_out.any() and not held_out.all() else None


def _tuned(
    estimator: KernelLogisticClassifier, objective: CrossValidationObjective, found: ScaleResult
) -> KernelLogisticClassifier:
    if found.status == "interrupted":
        raise KeyboardInterrupt
    table = replace(objective.parameters.table(found.theta), temperature=found.temperature)
    return with_hyperparameters(estimator, table)


def _log_scores(
    tuned: KernelLogisticClassifier, found: ScaleResult, objective: CrossValidationObjective, rows: Integers
) -> Floats:
    """Log probabilities at the temperature, with classes sorted."""
    u = found.predictors[rows][:, np.argsort(objective.classes, kind="stable")]
    u = (log_expit(u) if tuned.loss == "independent" else u) / found.temperature
    out: Floats = log_softmax(u, axis=1)
    return out
