"""The nearest centre by the cosine: as cheap as naive Bayes, for features of any sign, and good with few rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from taxolearn.estimators.base import TaxonomyClassifier
from taxolearn.estimators.class_sums import (
    class_numbers,
    class_products,
    few_folds,
    held_out_parts,
    number_or_none,
    read_rows,
    row_batches,
    sums_by_class,
    to_output,
)
from taxolearn.estimators.explain import NodeExplanation, explain_rows
from taxolearn.estimators.pooling.weights import fit_temperature
from taxolearn.targets import Targets
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_inputs

__all__ = ["CentroidClassifier"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_USUAL = 0.05  # temperature


class CentroidClassifier(TaxonomyClassifier):
    """Compares a row with the centre of each class: ``p(c|x) ~ exp(cos(x, m_c) / temperature)``.

    The centre ``m_c`` is the sum of the rows of class c, all brought to length 1, so it does not matter how long a text
    is. A fit reads the rows a few times. Where classes have few rows of many features, such as words, this is hard to
    beat in so little time, and it errs differently from other models, so that a pool gains from it.

    Parameters
    ----------
    temperature : float, default=None
        What cosines are divided by. None chooses it by the log loss of rows that were held out; if there are few, it
        stays near 0.05.
    taxonomy : Taxonomy, default=None
        A tree whose leaves are the classes. It does not change the fit; nodes then have probabilities.
    n_threads : int or None, default=None
        Number of threads for decisions on the tree; None takes all that the process may use.
    random_state : int, RandomState instance or None, default=0
        Of the folds that the temperature is chosen by.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; with a taxonomy all its leaves.
    taxonomy_ : Taxonomy or None
        The taxonomy.
    temperature_ : float
        That of the fitted model.
    centroids_ : CSR matrix or, for dense inputs, ndarray of shape (n_classes, n_features)
        The centres, of length 1; zeros for a class without rows, whose cosine is 0, as is that of a row of zeros.
    n_features_in_ : int
        Number of features seen in ``fit``.

    Examples
    --------
    >>> from taxolearn import CentroidClassifier
    >>> X, y = [[2, 0, 1], [3, 0, 0], [0, 2, 1], [0, 1, 2]], ["a", "a", "b", "b"]
    >>> CentroidClassifier().fit(X, y).predict([[1, 0, 0]])
    array(['a'], dtype='<U1')
    """

    def __init__(
        self,
        temperature: float | None = None,
        *,
        taxonomy: Taxonomy | None = None,
        n_threads: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.temperature = temperature
        self.taxonomy = taxonomy
        self.n_threads = n_threads
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CentroidClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        y : array or list of shape (n_samples,)
            Labels; with a taxonomy, names of its leaves.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self
        """
        X, targets, weights = self._read(X, y, sample_weight)
        numbers = class_numbers(targets)
        lengths = row_lengths(X)
        temperature = self.temperature
        if temperature is None:
            temperature = _USUAL
            # Every class may have one row; then nothing can be held out.
            if np.bincount(numbers).max() > 1:
                folds = few_folds(numbers, targets.n_classes, None, self.random_state)
                temperature = _choose(X, lengths, numbers, targets.n_classes, weights, folds)
        self.classes_ = targets.classes
        self.taxonomy_ = targets.taxonomy
        self.temperature_ = float(temperature)
        self.centroids_ = _centroids(X, lengths, numbers, weights, targets.n_classes)
        return self

    def tuned(self, X: Any, y: Any, sample_weight: Any = None, folds: Any = None) -> CentroidClassifier:
        """An unfitted copy whose temperature is that of the least log loss of rows held out.

        Parameters
        ----------
        X, y, sample_weight
            As for ``fit``.
        folds : array of int of shape (n_samples,), optional
            The fold in which each row is held out, -1 for never; by default three folds are made.
        """
        X, targets, weights = clone(self)._read(X, y, sample_weight)
        numbers = class_numbers(targets)
        folds = few_folds(numbers, targets.n_classes, folds, self.random_state)
        temperature = _choose(X, row_lengths(X), numbers, targets.n_classes, weights, folds)
        tuned: CentroidClassifier = clone(self).set_params(temperature=temperature)
        return tuned

    def _learned_arguments(self) -> dict[str, Any]:
        return {"temperature": self.temperature_}

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Targets, Floats]:
        number_or_none("temperature", self.temperature)
        return read_rows(self, X, y, sample_weight)

    def _output(self, X: Any, output: str) -> Floats:
        u = _cosines(X, row_lengths(X), self.centroids_)
        u /= self.temperature_
        return to_output(u, output)

    def explain(
        self, X: Any, node: Any = None, *, top: int = 10, feature_names: Any = None
    ) -> list[list[NodeExplanation]]:
        """The features that speak for and against each node on the path to an answer.

        Rows have length 1 for that. Parameters and result are those of ``KernelLogisticClassifier.explain``.
        """
        check_is_fitted(self)
        X = check_inputs(self, X, reset=False)
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        centroids = self.centroids_.tocsc() if sp.issparse(self.centroids_) else self.centroids_
        u = self._output(X, "predictor")
        rows, coef = _scaled(X, _inverse(row_lengths(X))), centroids / self.temperature_
        return explain_rows(rows, coef, u, self.classes_, self.taxonomy_, node, top=top, feature_names=names)


def row_lengths(X: Any) -> Floats:
    """Euclidean lengths of the rows, right also where squares are too large or too small for a number."""
    if not sp.issparse(X):
        lengths = np.empty(X.shape[0])
        for rows in row_batches(*X.shape):
            largest = np.abs(X[rows]).max(axis=1).astype(np.float64)
            lengths[rows] = largest * np.sqrt(np.square(X[rows] * _inverse(largest)[:, None]).sum(axis=1))
        return lengths
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    sizes = abs(X)
    largest = sizes.max(axis=1).toarray().ravel().astype(np.float64)
    of = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    squares = np.square(sizes.data * _inverse(largest)[of])
    return np.asarray(largest * np.sqrt(np.bincount(of, weights=squares, minlength=X.shape[0])))


def _inverse(lengths: Floats) -> Floats:
    """What rows are multiplied by to have length 1; 0 for rows of zeros, and of numbers that are next to that."""
    smallest = np.finfo(np.float64).tiny
    inverse: Floats = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths >= smallest)
    return inverse


def _scaled(X: Any, factors: Floats) -> Any:
    return sp.csr_matrix(sp.diags(factors) @ X) if sp.issparse(X) else X * factors[:, None]


def _centroids(X: Any, lengths: Floats, numbers: Integers, weights: Floats, n_classes: int) -> Any:
    """The centres of the classes, of length 1."""
    sums = sums_by_class(X, numbers, weights * _inverse(lengths), n_classes)
    return _scaled(sums, _inverse(row_lengths(sums)))


def _cosines(X: Any, lengths: Floats, centroids: Any) -> Floats:
    cosines = class_products(X, centroids)
    cosines *= _inverse(lengths)[:, None]
    return cosines


def _choose(
    X: Any, lengths: Floats, numbers: Integers, n_classes: int, weights: Floats, folds: npt.NDArray[np.int32]
) -> float:
    """The temperature of the least log loss of rows held out."""
    held_out = held_out_parts(folds, weights, n_classes)
    if not held_out:
        return _USUAL
    parts = []
    for train, held in held_out:
        centroids = _centroids(X[train], lengths[train], numbers[train], weights[train], n_classes)
        parts.append(_cosines(X[held], lengths[held], centroids))
    rows = np.concatenate([held for _, held in held_out])
    return _USUAL * fit_temperature(np.concatenate(parts) / _USUAL, numbers[rows], weights[rows])
