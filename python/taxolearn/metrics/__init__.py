"""Metrics for classes that form a taxonomy, as plain functions.

Labels are names of nodes, one per item, or indicator matrices (sparse ones are never made dense) where items may have
several. Metrics of probabilities take ``classes``, the names of the columns. All take ``sample_weight``.
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
