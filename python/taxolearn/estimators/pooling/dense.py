"""Dense inputs of a pool: the scale of their columns, and radial kernels for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.fitting.fit import Solver
from taxolearn.kernels.stationary import RBF
from taxolearn.tuning.cross_validation import CrossValidation, choose_rows
from taxolearn.tuning.learn import CrossValidationObjective

__all__ = ["choose_scaling", "radial_experts"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_ROWS = 1000  # that scales are compared on
_FOLDS = 3
_TOLERANCE = 1e-3  # of the fits
_LEAST_GAIN = 0.05  # of the loss, relative, for which columns keep their relative scales
_SAME_SCALE = 3.0  # ratio of standard deviations up to which it makes no difference
_MOST_FEATURES = 1000  # of radial kernels
_MOST_ROWS = 25_000  # whose kernel matrix is stored
_WORK = 2e10  # multiplications of a product, at most
_RANKS = {100_000: 1000, 300_000: 400}  # of approximate ones, by the most rows that have them
_MOST_LENGTH_SCALES = 60
_LEAST_ROWS = 1000  # to learn so many
_SUBSET, _EVALUATIONS = 3000, 20  # to learn the parameters of kernels


def choose_scaling(
    X: npt.NDArray[Any], y: npt.NDArray[Any], weights: Floats | None, *, n_threads: int | None, random_state: int
) -> tuple[Floats, Floats]:
    """Means of the columns, and what to divide them by: their standard deviations, or one number for all.

    Columns in different units need scales of their own. In others, such as the pixels of an image, small columns mean
    little, and should stay small. So both are tried, by the log loss of a radial kernel on at most 1,000 rows.
    """
    size = np.abs(X).max(axis=0, initial=0.0).astype(np.float64)  # squares of huge values overflow
    size[size == 0] = 1.0
    unit = X / size
    mean = np.average(unit, axis=0, weights=weights).astype(np.float64)
    deviation = size * np.sqrt(np.average((unit - mean) ** 2, axis=0, weights=weights))
    mean *= size
    is_constant = (deviation <= 1e-7 * np.abs(mean)) | (deviation == 0)
    deviation[is_constant] = 1.0
    varying = deviation[~is_constant]
    if len(varying) < 2 or varying.max() <= _SAME_SCALE * varying.min() or X.shape[1] > _MOST_FEATURES:
        return mean, deviation
    largest = varying.max()
    common = np.where(is_constant, 1.0, largest * np.sqrt(np.mean((varying / largest) ** 2)))
    rows = _sample(y, weights, random_state)
    if rows is None:
        return mean, deviation
    given = None if weights is None else weights[rows]
    losses = []
    for scale in (deviation, common):
        model = KernelLogisticClassifier(
            "rbf", tuning=CrossValidation(_FOLDS), n_threads=n_threads, random_state=random_state
        )
        part = np.ascontiguousarray((X[rows] - mean) / scale, dtype=X.dtype)
        objective = CrossValidationObjective(model, part, y[rows], given)
        losses.append(objective.evaluate_held_out(objective.theta, _TOLERANCE)[0].value)
    return mean, common if losses[1] < (1 - _LEAST_GAIN) * losses[0] else deviation


def _sample(y: npt.NDArray[Any], weights: Floats | None, random_state: int) -> Integers | None:
    """Rows of classes that have several of them; None if there are too few."""
    usable = np.ones(len(y), dtype=bool) if weights is None else weights > 0
    codes, counts = np.unique(y[usable], return_inverse=True, return_counts=True)[1:]
    rows = np.flatnonzero(usable)[counts[codes] >= _FOLDS]
    if len(rows) < 10 * _FOLDS or len(np.unique(y[rows])) < 2:
        return None
    if len(rows) > _ROWS:
        # Classes with many rows first, so that each that is there can be held out.
        most = np.argsort(-counts, kind="stable")[: max(2, _ROWS // (2 * _FOLDS))]
        rows = np.flatnonzero(usable)[np.isin(codes, most) & (counts[codes] >= _FOLDS)]
        chosen = choose_rows(y[rows], min(_ROWS, len(rows)), np.random.RandomState(random_state))
        rows = rows if chosen is None else rows[chosen]
    return rows.astype(np.int64)


def radial_experts(X: npt.NDArray[Any], n_classes: int, **arguments: Any) -> list[KernelLogisticClassifier]:
    """Candidates for a radial kernel of scaled inputs: one length scale, or one per feature where these are few."""
    n = X.shape[0]
    if X.shape[1] > _MOST_FEATURES or n > max(_RANKS):
        return []
    rank = next(rank for rows, rank in _RANKS.items() if n <= rows)
    if n * n_classes * (n if n <= _MOST_ROWS else rank) > _WORK:
        return []
    if n > _MOST_ROWS:
        arguments = arguments | {"solver": Solver(products="low_rank", rank=rank)}
    tuning = CrossValidation(_FOLDS, subset=_SUBSET, max_evaluations=_EVALUATIONS, learn_intercept_variance=False)
    candidates = [KernelLogisticClassifier("rbf", tuning=tuning, **arguments)]
    if 2 <= X.shape[1] <= _MOST_LENGTH_SCALES and X.shape[0] >= _LEAST_ROWS:
        length = max(1e-6, float(np.sqrt(np.var(X, axis=0, dtype=np.float64).sum())))
        own = RBF(np.full(X.shape[1], length), 10.0)
        candidates.append(KernelLogisticClassifier(own, tuning=tuning, **arguments))
    return candidates
