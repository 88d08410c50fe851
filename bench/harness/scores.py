"""Scores of the papers about hierarchies, on the test set."""

from typing import Any

import numpy as np

from bench.problems.trees import TreeData
from taxolearn import decisions, metrics

COLUMNS = {
    "accuracy": "acc %",
    "prec": "prec %",
    "taxo": "taxo",
    "taxo_argmax": "taxo [0-1]",
    "parent": "pacc %",
    "parent_argmax": "pacc [0-1] %",
    "micro_f1": "micro-F1 %",
    "macro_f1": "macro-F1 %",
    "log_loss": "log loss",
}
NOTE = (
    "acc, prec (mean reciprocal rank of the truth), micro- and macro-F1 (over the classes of the test set) are those "
    "of the most probable class. taxo (half the path to the truth) and pacc (the parent is right) are those of the "
    "decision of least expected loss; [0-1] marks the most probable class instead. ECE: expected calibration error."
)


def scores(data: TreeData, model: Any) -> dict[str, float]:
    """Compute all scores, by their keys in ``COLUMNS``, and the calibration error."""
    truth, tree = data.y_test, model.taxonomy_
    log_proba = model.predict_log_proba(data.X_test)
    proba = np.exp(log_proba)
    top = model.classes_[proba.argmax(axis=1)]
    by_loss = {
        loss: decisions.decide(proba, classes=model.classes_, taxonomy=tree, loss=loss) for loss in ("taxo", "parent")
    }
    return {
        "accuracy": 100 * metrics.accuracy(truth, top),
        "prec": 100 * metrics.reciprocal_rank(truth, proba, classes=model.classes_),
        "taxo": metrics.taxo_loss(truth, by_loss["taxo"], taxonomy=tree),
        "taxo_argmax": metrics.taxo_loss(truth, top, taxonomy=tree),
        "parent": 100 * metrics.parent_accuracy(truth, by_loss["parent"], taxonomy=tree),
        "parent_argmax": 100 * metrics.parent_accuracy(truth, top, taxonomy=tree),
        "micro_f1": 100 * metrics.f1(truth, top, average="micro"),
        "macro_f1": 100 * metrics.f1(truth, top, average="macro", labels=np.unique(truth)),
        "log_loss": metrics.log_loss(truth, log_proba=log_proba, classes=model.classes_),
        "calibration": 100 * metrics.expected_calibration_error(truth, proba, classes=model.classes_),
    }
