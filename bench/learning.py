"""What benchmarks say about hyperparameters that were learned."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from taxolearn.tuning.folds import make_folds
from taxolearn.tuning.learn import _choose_rows


def learning_facts(model: Any) -> dict[str, Any]:
    """Effort and outcome of ``hyperparameters="cv"``, and of the final fit."""
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


def learning_rows(y: npt.NDArray[Any], samples: int | None, seed: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The rows and their folds that an estimator with ``cv_samples`` and ``random_state`` learns from."""
    random = check_random_state(seed)
    chosen = _choose_rows(y, samples, random)
    rows = np.arange(len(y)) if chosen is None else chosen
    classes, indices = np.unique(y[rows], return_inverse=True)
    return rows, make_folds(indices, len(classes), 5, random, argument="cv")
