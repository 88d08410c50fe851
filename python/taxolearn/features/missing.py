"""Missing numbers of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = ["ColumnMeans", "has_missing"]


def has_missing(X: Any) -> bool:
    """Whether some number of a dense or sparse matrix is NaN."""
    return bool(np.isnan(X.data if sp.issparse(X) else X).any())


class ColumnMeans(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Puts the mean of its column in the place of every missing number, NaN.

    In a sparse matrix, what is not stored is 0, not missing.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the numbers that are there, 0 where none is.
    n_features_in_ : int
        Number of features seen in ``fit``.
    """

    mean_: NDArray[np.float64]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any = None) -> ColumnMeans:
        """Find the means; ``y`` has no part in it."""
        X = self._checked(X, reset=True)
        columns = X.indices if sp.issparse(X) else np.tile(np.arange(X.shape[1]), X.shape[0])
        values = X.data if sp.issparse(X) else X.ravel()
        missing = np.isnan(values)
        known = X.shape[0] - np.bincount(columns[missing], minlength=X.shape[1])
        sums = np.bincount(columns[~missing], weights=values[~missing], minlength=X.shape[1])
        self.mean_ = sums / np.maximum(known, 1)
        return self

    def transform(self, X: Any) -> Any:
        """The matrix without missing numbers."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        if sp.issparse(X):
            missing = np.flatnonzero(np.isnan(X.data))
            X = X.copy()
            X.data[missing] = self.mean_[X.indices[missing]]
            return X
        return np.where(np.isnan(X), self.mean_, X)

    def _checked(self, X: Any, *, reset: bool) -> Any:
        return validate_data(
            self,
            X,
            accept_sparse="csr",
            ensure_all_finite="allow-nan",
            dtype=(np.float64, np.float32),
            reset=reset,
        )
