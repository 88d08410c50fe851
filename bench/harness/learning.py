"""What benchmarks say about hyperparameters that were learned."""

from typing import Any

import numpy as np
import numpy.typing as npt

from taxolearn import CrossValidation, metrics
from taxolearn.tuning.cross_validation import make_folds

REJECTED = np.linspace(0.0, 0.5, 201)  # where error-reject curves are kept


def tuning(quick: bool, **options: Any) -> CrossValidation:
    """How all benchmarks learn: for as long as it takes, the variance of the intercepts excepted."""
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


def _plain(trace: Any) -> npt.NDArray[np.float64]:
    """The parameters themselves, not their logarithms."""
    is_log = np.ones(len(trace.names), dtype=bool) if trace.is_log is None else trace.is_log
    values: npt.NDArray[np.float64] = np.where(is_log, np.exp(trace.theta), trace.theta)
    return values


def partition(y: npt.NDArray[Any], seed: int, n_folds: int = 5) -> npt.NDArray[np.int32]:
    """The fold of every row, those of the estimator: the same for everybody who is compared.

    The row of a class that has no other is never held out: its fold is -1.
    """
    classes, indices = np.unique(y, return_inverse=True)
    return make_folds(indices, len(classes), n_folds, seed)


def error_reject(
    truth: npt.NDArray[Any], answer: npt.NDArray[Any], confidence: npt.NDArray[np.float64]
) -> dict[str, Any]:
    """The error-reject curve at the shares ``REJECTED``, and the area below it."""
    curve = metrics.error_reject_curve(truth, answer, confidence)
    steps = np.searchsorted(curve.rejected, REJECTED + 1e-12, side="right") - 1  # an error holds until the next point
    return {"area": curve.area, "curve": [round(value, 7) for value in curve.error[steps].tolist()]}
