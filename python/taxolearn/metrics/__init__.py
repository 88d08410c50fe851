"""Metrics for classes that form a taxonomy, as plain functions.

These parameters mean the same in all of them; the functions describe only what is special:

- ``y_true``, ``y_pred``: true and predicted labels, array-likes of shape (n,) with one label per item. Where items may
  have several, they are indicator matrices of shape (n, n_labels); sparse ones are never made dense. Lists of labels
  become an indicator matrix by ``sklearn.preprocessing.MultiLabelBinarizer(classes=..., sparse_output=True)``.
- ``taxonomy``: the tree that has the labels as nodes. Indicator matrices then have a column for each class or for each
  node. Labels and indicators of classes stand for the paths to them; indicators of nodes are taken as they stand, since
  predictions made node by node may contradict the tree. The root does not count.
- ``proba``: scores of all classes, array-like of shape (n, n_classes). ``y_true`` may be an indicator matrix of this
  shape.
- ``classes``: names of the columns of ``proba``, array-like of shape (n_classes,).
- ``sample_weight``: weights of the items, array-like of shape (n,). None weighs all of them alike.
"""

from taxolearn.metrics.confidence import (
    ErrorRejectCurve,
    ReliabilityCurve,
    error_reject_curve,
    expected_calibration_error,
    reliability_curve,
    reliability_of_answers,
)
from taxolearn.metrics.hierarchy import (
    LevelScores,
    PrecisionRecallF,
    h_loss,
    hierarchical_precision_recall_f,
    level_precision_recall_f,
    parent_accuracy,
    symmetric_difference_loss,
    taxo_loss,
)
from taxolearn.metrics.labels import accuracy, f1, zero_one_loss
from taxolearn.metrics.probability import log_loss, log_losses, precision_at_k, reciprocal_rank

__all__ = [
    "ErrorRejectCurve",
    "LevelScores",
    "PrecisionRecallF",
    "ReliabilityCurve",
    "accuracy",
    "error_reject_curve",
    "expected_calibration_error",
    "f1",
    "h_loss",
    "hierarchical_precision_recall_f",
    "level_precision_recall_f",
    "log_loss",
    "log_losses",
    "parent_accuracy",
    "precision_at_k",
    "reciprocal_rank",
    "reliability_curve",
    "reliability_of_answers",
    "symmetric_difference_loss",
    "taxo_loss",
    "zero_one_loss",
]
