"""Smaller models: weights of features that hardly matter are left out."""

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from taxolearn.estimators.centroid import CentroidClassifier
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.estimators.naive_bayes import NaiveBayesClassifier
from taxolearn.estimators.pool import PoolClassifier
from taxolearn.estimators.recursive import RecursiveRegularizationClassifier
from taxolearn.estimators.top_down import TopDownClassifier, node_weights, set_node_weights
from taxolearn.estimators.top_down_nodes import NodeWeights
from taxolearn.fitting.functions import LinearFunctions
from taxolearn.fitting.node_functions import NodeFunctions
from taxolearn.validation import check_number

__all__ = ["is_linear", "prune"]

_KINDS = (
    KernelLogisticClassifier,
    RecursiveRegularizationClassifier,
    TopDownClassifier,
    NaiveBayesClassifier,
    CentroidClassifier,
    PoolClassifier,
)


def prune(model: Any, share: float) -> Any:
    """A copy of a linear model without its smallest weights; of a pool, one in which linear experts lack theirs.

    Probabilities of a softmax do not change if a number is added to the weights of a feature, the same for all classes.
    So the median over the classes is subtracted first: most classes have no opinion on most features, and theirs become
    small.

    Parameters
    ----------
    model : classifier of this package, or Pipeline that ends in one
        Fitted, and with weights of features.
    share : float
        Share of the weights to leave out, between 0 and 1. A model in a file gets smaller where it is above a half,
        since every weight that stays is stored with its place.

    Returns
    -------
    model : as given
        Its weights are a sparse matrix. How much worse it is depends on the data: compare log losses on rows that were
        not trained on, as ``taxolearn prune`` does.

    Examples
    --------
    >>> import numpy as np
    >>> import taxolearn
    >>> X, y = np.eye(6)[[0, 1, 2, 3, 4, 5] * 5], np.array(["a", "b", "c"] * 10)
    >>> model = taxolearn.KernelLogisticClassifier(tuning=None).fit(X, y)
    >>> small = taxolearn.prune(model, 0.6)
    >>> small.coef_.nnz, model.coef_.size
    (6, 18)
    >>> bool(np.allclose(small.predict_proba(X), model.predict_proba(X)))
    True
    """
    share = check_number("share", share, least=0.0)
    if share >= 1:
        raise ValueError(f"share must be below 1, got {share:g}")
    if isinstance(model, Pipeline):
        *steps, (name, classifier) = model.steps
        return Pipeline([*steps, (name, prune(classifier, share))])
    if not isinstance(model, _KINDS):
        *first, last = (kind.__name__ for kind in _KINDS)
        raise TypeError(
            f"prune: model must be a {', '.join(first)} or {last}, or a Pipeline that ends in one, got "
            f"{type(model).__name__}"
        )
    check_is_fitted(model)
    if not is_linear(model):
        raise ValueError(
            "prune: the model is not linear, so it has no weights of features to leave out, but coefficients of "
            "training rows"
        )
    pruned: Any = copy(model)
    if isinstance(model, PoolClassifier):
        pruned.experts_ = {
            name: prune(expert, share) if is_linear(expert) else expert for name, expert in model.experts_.items()
        }
    elif isinstance(model, TopDownClassifier):
        functions = node_weights(model)
        set_node_weights(pruned, NodeWeights(_without_smallest(functions.weights, share), functions.intercepts))
    elif isinstance(model, NaiveBayesClassifier):
        pruned.log_ratios_ = _without_smallest(model.log_ratios_, share)
    elif isinstance(model, RecursiveRegularizationClassifier):
        pruned._functions = _prune_functions(model._functions, share)
    elif isinstance(model, CentroidClassifier):
        pruned.centroids_ = _without_smallest(model.centroids_, share)
    else:
        by_feature = model.coef_.T
        if model.loss == "softmax" and not sp.issparse(by_feature):
            by_feature = by_feature - np.median(by_feature, axis=1, keepdims=True)
        pruned.coef_ = _without_smallest(by_feature, share).T
    return pruned


def is_linear(model: Any) -> bool:
    """Whether a fitted classifier has weights of features; for a pool, whether some expert has."""
    if isinstance(model, PoolClassifier):
        return any(is_linear(expert) for expert in model.experts_.values())
    always = (TopDownClassifier, NaiveBayesClassifier, CentroidClassifier)
    by_kernel = (KernelLogisticClassifier, RecursiveRegularizationClassifier)
    return isinstance(model, always) or (isinstance(model, by_kernel) and hasattr(model, "coef_"))


def _prune_functions(functions: Any, share: float) -> LinearFunctions | NodeFunctions:
    """Of each label against the rest; where these are sums over a tree, of what the nodes add."""
    if isinstance(functions, NodeFunctions):
        return replace(functions, weights=_without_smallest(functions.weights, share))
    assert isinstance(functions, LinearFunctions)
    return replace(functions, coef=_without_smallest(functions.coef.T, share).T)


def _without_smallest(weights: Any, share: float) -> Any:
    """A CSR matrix that lacks this share of the weights; what is not stored is left out already."""
    weights = sp.csr_matrix(weights, copy=True)
    weights.eliminate_zeros()
    count = int(share * weights.shape[0] * weights.shape[1]) - (weights.shape[0] * weights.shape[1] - weights.nnz)
    if count > 0:
        # What is as small as the largest that is to go goes too: equal ones would otherwise stay in part.
        sizes = np.abs(weights.data)
        weights.data[sizes <= np.partition(sizes, count - 1)[count - 1]] = 0
        weights.eliminate_zeros()
    return weights
