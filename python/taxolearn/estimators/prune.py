"""Smaller linear models: weights that hardly matter are left out."""

from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.validation import check_number

__all__ = ["prune"]


def prune(model: Any, share: float) -> Any:
    """A copy of a linear model without its smallest weights.

    Probabilities do not change if a number is added to the weights of a feature, the same for all classes. So the
    median over the classes is subtracted first: most classes have no opinion on most features, and theirs become small.

    Parameters
    ----------
    model : KernelLogisticClassifier, or Pipeline that ends in one
        A fitted model with ``coef_``.
    share : float
        Share of the weights to leave out, between 0 and 1. A model in a file gets smaller where it is above a half,
        since every weight that stays is stored with its place.

    Returns
    -------
    model : as given
        Its ``coef_`` is a sparse matrix. How much worse it is depends on the data: compare log losses on rows that were
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
    if not isinstance(model, KernelLogisticClassifier):
        raise TypeError(
            "prune: model must be a KernelLogisticClassifier or a Pipeline that ends in one, got "
            f"{type(model).__name__}"
        )
    check_is_fitted(model)
    if not hasattr(model, "coef_"):
        raise ValueError("prune: the model is not linear, so it has no weights to leave out")
    pruned = copy(model)
    pruned.coef_ = _without_smallest(model.coef_, share)
    return pruned


def _without_smallest(coef: Any, share: float) -> Any:
    """Subtract the median of each feature from its weights, and leave the smallest out."""
    weights = coef.T.toarray() if sp.issparse(coef) else np.array(coef.T)
    if not sp.issparse(coef):
        weights -= np.median(weights, axis=1, keepdims=True)
    sizes = np.abs(weights).ravel()
    count = int(share * sizes.size)
    if count > 0:
        # What is as small as the largest that is to go goes too: zeros would otherwise stay in part.
        weights[np.abs(weights) <= np.partition(sizes, count - 1)[count - 1]] = 0
    return sp.csr_matrix(weights).T
