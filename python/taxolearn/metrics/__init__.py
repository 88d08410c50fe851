"""Metrics for classes that form a taxonomy, as plain functions.

These parameters mean the same in all of them; the functions describe only what is special:

- ``y_true``, ``y_pred``: true and predicted labels, array-likes of shape (n,) with one label per item. Where items may
  have several, they are lists of labels, with a list, tuple or set of names for each item, or indicator matrices of
  shape (n, n_labels), which may be data frames or sparse; sparse ones are never made dense. Lists of the same length,
  two or more, that have nothing but 0 and 1 are the rows of an indicator matrix.
- ``taxonomy``: the tree that has the labels as nodes. Indicator matrices then have a column for each class or for each
  node. Labels and indicators of classes stand for the paths to them; indicators of nodes are taken as they stand, since
  predictions made node by node may contradict the tree. The root does not count.
- ``proba``: scores of all classes, array-like of shape (n, n_classes). ``y_true`` may be an indicator matrix of this
  shape. Metrics of rankings and :func:`precision_recall_area` also take the best classes of each item, so that nothing
  of shape (n, n_classes) is needed: a sparse matrix, or a pair (columns, scores) of arrays of shape (n, best) with -1
  for places that are not taken. All classes that are not stored come after those that are.
- ``classes``: names of the columns of ``proba``, array-like of shape (n_classes,). Where it is optional, only an
  indicator matrix does without it.
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
from taxolearn.metrics.labels import accuracy, f1, hamming_loss, precision_recall_f, zero_one_loss
from taxolearn.metrics.precision_recall import precision_recall_area
from taxolearn.metrics.probability import log_loss, log_losses
from taxolearn.metrics.propensity import (
    label_propensities,
    propensity_scored_ndcg_at_k,
    propensity_scored_precision_at_k,
)
from taxolearn.metrics.ranking import (
    coverage_error,
    label_ranking_average_precision,
    label_ranking_loss,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
)
from taxolearn.metrics.siblings import sibling_fraction

__all__ = [
    "ErrorRejectCurve",
    "LevelScores",
    "PrecisionRecallF",
    "ReliabilityCurve",
    "accuracy",
    "coverage_error",
    "error_reject_curve",
    "expected_calibration_error",
    "f1",
    "h_loss",
    "hamming_loss",
    "hierarchical_precision_recall_f",
    "label_propensities",
    "label_ranking_average_precision",
    "label_ranking_loss",
    "level_precision_recall_f",
    "log_loss",
    "log_losses",
    "ndcg_at_k",
    "parent_accuracy",
    "precision_at_k",
    "precision_recall_area",
    "precision_recall_f",
    "propensity_scored_ndcg_at_k",
    "propensity_scored_precision_at_k",
    "recall_at_k",
    "reciprocal_rank",
    "reliability_curve",
    "reliability_of_answers",
    "sibling_fraction",
    "symmetric_difference_loss",
    "taxo_loss",
    "zero_one_loss",
]
