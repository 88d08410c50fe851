"""Classifiers with scikit-learn's interface."""

from taxolearn.estimators.explain import NodeExplanation
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.estimators.prune import prune

__all__ = [
    "KernelLogisticClassifier",
    "NodeExplanation",
    "prune",
]
