"""Fits of models with an RBF kernel, each in a process of its own: what suites about kernels have in common."""

import time
from dataclasses import asdict
from typing import Any

import numpy as np

from bench.harness.isolated import isolated
from bench.harness.memory import growth, megabytes, reset_peak
from bench.libraries import RBF_MODELS
from bench.problems.rbf import Values, load

COLUMNS = {
    "library": "model",
    "error": "test error %",
    "log_loss": "test log loss",
    "seconds": "fit s",
    "predict_seconds": "predict s",
    "megabytes": "peak MB",
    "kernel_megabytes": "kernel MB",
    "products": "products",
    "gap": "certified gap",
    "precision": "precision",
    "status": "status",
}


def measure(
    data: str, quick: bool, part: str | int, model: str, values: dict[str, Any], n_threads: int, options: dict[str, Any]
) -> dict[str, Any]:
    """Fit and predict in this process: scores, seconds, memory."""
    problem = load(data, quick, part)
    fit = RBF_MODELS[model](problem, Values(**values), n_threads, **options)
    before = reset_peak()
    start = time.perf_counter()
    fitted = fit()
    fitted_at = time.perf_counter()
    log_proba = fitted.log_proba(problem.X_test)
    end = time.perf_counter()
    bytes_ = growth(before)
    columns = np.searchsorted(fitted.classes, problem.y_test)
    return fitted.facts | {
        "error": 100 * float(np.mean(fitted.classes[log_proba.argmax(axis=1)] != problem.y_test)),
        "log_loss": -float(np.mean(log_proba[np.arange(len(columns)), columns])),
        "seconds": fitted_at - start,
        "predict_seconds": end - fitted_at,
        "all_seconds": end - start,
        "megabytes": megabytes(bytes_),
    }


def run_alone(
    data: str,
    model: str,
    values: Values,
    n_threads: int,
    options: dict[str, Any] | None = None,
    *,
    quick: bool = False,
    part: str | int = "all",
    limit: float | None = None,
) -> dict[str, Any]:
    """``measure`` in a process of its own."""
    arguments = {"data": data, "quick": quick, "part": part, "model": model, "values": asdict(values)}
    return isolated(measure, arguments | {"n_threads": n_threads, "options": options or {}}, n_threads, limit)
