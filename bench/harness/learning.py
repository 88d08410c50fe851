"""What benchmarks say about hyperparameters that were learned."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bench.problems.data import Floats
from taxolearn import CrossValidation, metrics
from taxolearn.tuning.cross_validation import make_folds

REJECTED = np.linspace(0.0, 0.5, 201)  # where error-reject curves are kept


def tuning(quick: bool, **options: Any) -> CrossValidation:
    """How all benchmarks learn: for as long as it takes, and everything but the variance of the intercepts."""
    return CrossValidation(learn_intercept_variance=False, max_evaluations=6 if quick else 100, **options)


def learning_facts(model: Any) -> dict[str, Any]:
    """Effort and outcome of learning, and of the final fit."""
    trace, result = model.cv_result_, model.result_
    return {
        "parameters": len(trace.names),
        "evaluations": len(trace.evaluations),
        "failures": int(np.count_nonzero(~trace.converged)),
        "learning_seconds": float(trace.seconds.sum()),
        "learning_products": int(trace.products.sum()),
        "cv_loss": None if trace.best is None else float(trace.values[trace.best]),
        "learning_status": trace.status,
        "learned": {name: float(value) for name, value in zip(trace.names, _plain(trace), strict=True)},
        "values": trace.values.tolist(),
        "gradient_norms": trace.gradient_norms.tolist(),
        "final_seconds": result.timings["total"],
        "products": result.products,
        "gap": result.relative_gap,
        "status": result.status,
    }


def _plain(trace: Any) -> Floats:
    """The parameters themselves, not their logarithms."""
    is_log = np.ones(len(trace.names), dtype=bool) if trace.is_log is None else trace.is_log
    values: Floats = np.where(is_log, np.exp(trace.theta), trace.theta)
    return values


def partition(y: npt.NDArray[Any], seed: int, n_folds: int = 5) -> npt.NDArray[np.int32]:
    """The fold of every row, as the estimator would choose it: the same for all that are compared.

    The only row of a class is never held out: its fold is -1.
    """
    classes, indices = np.unique(y, return_inverse=True)
    return make_folds(indices, len(classes), n_folds, seed)


def scores_on_test(
    truth: npt.NDArray[Any], classes: npt.NDArray[Any], proba: Floats, log_proba: Floats
) -> dict[str, Any]:
    """Error in percent, log loss, the error-reject curve at the shares ``REJECTED``, and the area below it.

    The rows of ``proba`` need not sum to one: the largest entry is the answer and its confidence.
    """
    answer = classes[proba.argmax(axis=1)]
    curve = metrics.error_reject_curve(truth, answer, proba.max(axis=1))
    steps = np.searchsorted(curve.rejected, REJECTED + 1e-12, side="right") - 1  # an error holds until the next point
    return {
        "error": 100 * metrics.zero_one_loss(truth, answer),
        "log_loss": metrics.log_loss(truth, log_proba=log_proba, classes=classes),
        "area": curve.area,
        "curve": [round(value, 7) for value in curve.error[steps].tolist()],
    }
