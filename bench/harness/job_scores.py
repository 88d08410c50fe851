"""Scores of the probabilities that different libraries give for the test rows of a job."""

from typing import Any

import numpy as np
import numpy.typing as npt

from bench.problems.jobs import Job
from taxolearn import metrics

Floats = npt.NDArray[np.float64]

COLUMNS = {"log_loss": "log loss", "accuracy": "acc %", "macro_f1": "macro-F1 %", "calibration": "ECE %"}
NOTE = (
    "Log loss: probabilities that do not sum to one are divided by their sum. Where a model gives some class of some "
    "row exactly zero, all its probabilities are mixed with the uniform distribution, whose share is 1 / (n + C) for n "
    "training rows and C classes among them (column zeros: the share of such entries). A test row whose class has no "
    "training row is a wrong answer, and costs every model the same log loss, ln(n + C). Macro-F1 is over the classes "
    "of the test set. ECE: expected calibration error of the most probable class, ten bins."
)


def log_probabilities(proba: Any, n_rows: int) -> tuple[Floats, float]:
    """Finite logarithms of probabilities (m x C) of a model fitted to ``n_rows`` rows, and the share of zeros."""
    found = np.asarray(proba, dtype=np.float64)
    n_classes = found.shape[1]
    sums = found.sum(axis=1, keepdims=True)
    found = np.where(sums > 0, found / np.where(sums > 0, sums, 1.0), 1.0 / n_classes)
    zeros = float(np.mean(found == 0))
    if zeros > 0:
        share = 1.0 / (n_rows + n_classes)
        found = (1 - share) * found + share / n_classes
    logs: Floats = np.log(found)
    return logs, zeros


def columns_of(labels: Any, classes: Any) -> npt.NDArray[np.int64]:
    """The column of each label, -1 for those without one."""
    place = {name: k for k, name in enumerate(np.asarray(classes).tolist())}
    return np.array([place.get(name, -1) for name in np.asarray(labels).tolist()], dtype=np.int64)


def mean_loss(log_proba: Floats, columns: npt.NDArray[np.int64]) -> float:
    """Mean log loss of rows whose true classes all have columns."""
    return -float(np.mean(log_proba[np.arange(len(columns)), columns]))


def job_scores(job: Job, log_proba: Floats, classes: Any) -> dict[str, float]:
    """All scores by their keys in ``COLUMNS``, and the number of test rows whose class has no training row."""
    seen = np.unique(job.y)
    truth = columns_of(job.y_test, classes)
    known = (columns_of(job.y_test, seen) >= 0) & (truth >= 0)
    losses = np.full(len(truth), np.log(len(job.y) + len(seen)))
    losses[known] = -log_proba[known, truth[known]]
    answers = log_proba.argmax(axis=1)
    is_right = known & (answers == truth)
    sure = np.exp(log_proba[np.arange(len(truth)), answers])
    given = np.asarray(classes)[answers]
    return {
        "log_loss": float(losses.mean()),
        "accuracy": 100 * float(is_right.mean()),
        "macro_f1": 100 * metrics.f1(job.y_test, given, average="macro", labels=np.unique(job.y_test)),
        "calibration": 100 * metrics.reliability_of_answers(sure, is_right).calibration_error,
        "unseen": int((~known).sum()),
    }
