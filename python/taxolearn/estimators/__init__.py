"""Classifiers with scikit-learn's interface."""

from taxolearn.estimators.centroid import CentroidClassifier
from taxolearn.estimators.embedding_classifier import LabelEmbeddingClassifier
from taxolearn.estimators.explain import NodeExplanation
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.estimators.label_embedding import LabelEmbedding
from taxolearn.estimators.margin import MaxMarginTreeClassifier
from taxolearn.estimators.naive_bayes import NaiveBayesClassifier
from taxolearn.estimators.pool import PoolClassifier, PoolRow, PoolTable
from taxolearn.estimators.pooling.weights import PoolResult, fit_pool_weights, fit_temperature
from taxolearn.estimators.prune import prune
from taxolearn.estimators.recursive import RecursiveRegularizationClassifier
from taxolearn.estimators.top_down import TopDownClassifier

__all__ = [
    "CentroidClassifier",
    "KernelLogisticClassifier",
    "LabelEmbedding",
    "LabelEmbeddingClassifier",
    "MaxMarginTreeClassifier",
    "NaiveBayesClassifier",
    "NodeExplanation",
    "PoolClassifier",
    "PoolResult",
    "PoolRow",
    "PoolTable",
    "RecursiveRegularizationClassifier",
    "TopDownClassifier",
    "fit_pool_weights",
    "fit_temperature",
    "prune",
]
