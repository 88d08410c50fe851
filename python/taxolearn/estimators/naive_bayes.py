"""Multinomial naive Bayes that stays sparse: the cheapest expert for texts and other counts."""

from __future__ import annotations

from dataclasses import dataclass
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
from taxolearn.estimators.pooling.weights import PoolObjective, fit_temperature
from taxolearn.targets import Targets
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_inputs

__all__ = ["NaiveBayesClassifier"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_GRID = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_START = 4  # in the grid


class NaiveBayesClassifier(TaxonomyClassifier):
    """Multinomial naive Bayes for features that are not negative, such as counts of words or tf-idf weights.

    The model is that of scikit-learn's ``MultinomialNB``, but only logarithms of features that a class has are kept:
    a thousand classes of a hundred thousand features cost as much as the features that occur. Its probabilities are
    tempered: ``p ~ exp(u / temperature)``, since features that are not independent make it far too sure.

    Parameters
    ----------
    smoothing : float, default=None
        What is added to the count of every feature in every class. None chooses it by the log loss of rows that were
        held out.
    temperature : float, default=None
        What class functions are divided by. None chooses it with the smoothing; where that is given, it is 1.
    taxonomy : Taxonomy, default=None
        A tree whose leaves are the classes. It does not change the fit; nodes then have probabilities.
    n_threads : int or None, default=None
        Number of threads for decisions on the tree; None takes all that the process may use.
    random_state : int, RandomState instance or None, default=0
        Of the folds that smoothing is chosen by.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; with a taxonomy all its leaves.
    taxonomy_ : Taxonomy or None
        The taxonomy.
    smoothing_, temperature_ : float
        Those of the fitted model.
    log_ratios_ : sparse matrix of shape (n_classes, n_features)
        ``log((N_cj + smoothing) / smoothing)``, where ``N_cj`` is the sum of feature j in class c.
    length_coef_ : ndarray of shape (n_classes,)
        What the sum of a row's features is multiplied by.
    intercept_ : ndarray of shape (n_classes,)
        Logarithms of the shares of the classes. If a class has no rows, half a row is added to each.
    n_features_in_ : int
        Number of features seen in ``fit``.

    Examples
    --------
    >>> from taxolearn import NaiveBayesClassifier
    >>> X, y = [[2, 0, 1], [3, 0, 0], [0, 2, 1], [0, 1, 2]], ["a", "a", "b", "b"]
    >>> NaiveBayesClassifier(smoothing=1.0).fit(X, y).predict([[1, 0, 0]])
    array(['a'], dtype='<U1')
    """

    def __init__(
        self,
        smoothing: float | None = None,
        *,
        temperature: float | None = None,
        taxonomy: Taxonomy | None = None,
        n_threads: int | None = None,
        random_state: Any = 0,
    ) -> None:
        self.smoothing = smoothing
        self.temperature = temperature
        self.taxonomy = taxonomy
        self.n_threads = n_threads
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True  # on clouds of points, which are no counts
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NaiveBayesClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs, none negative.
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
        smoothing, temperature = self._given()
        if smoothing is None:
            # Every class may have one row; then nothing can be held out, and nothing chosen.
            if np.bincount(numbers).max() > 1:
                folds = few_folds(numbers, targets.n_classes, None, self.random_state)
                smoothing, chosen = self._choose(X, numbers, targets.n_classes, weights, folds)
            else:
                smoothing, chosen = _GRID[_START], 1.0
            temperature = chosen if temperature is None else temperature
        functions = _Counts.of(X, numbers, weights, targets.n_classes).functions(smoothing)
        self.classes_ = targets.classes
        self.taxonomy_ = targets.taxonomy
        self.smoothing_ = smoothing
        self.temperature_ = 1.0 if temperature is None else temperature
        self.log_ratios_ = functions.ratios
        self.length_coef_ = functions.length_coef
        self.intercept_ = functions.intercept
        return self

    def tuned(self, X: Any, y: Any, sample_weight: Any = None, folds: Any = None) -> NaiveBayesClassifier:
        """An unfitted copy whose smoothing and temperature are those of the least log loss of rows held out.

        Parameters
        ----------
        X, y, sample_weight
            As for ``fit``.
        folds : array of int of shape (n_samples,), optional
            The fold in which each row is held out, -1 for never; by default three folds are made.
        """
        copy = clone(self)
        X, targets, weights = copy._read(X, y, sample_weight)
        numbers = class_numbers(targets)
        folds = few_folds(numbers, targets.n_classes, folds, self.random_state)
        smoothing, temperature = copy._choose(X, numbers, targets.n_classes, weights, folds)
        tuned: NaiveBayesClassifier = clone(self).set_params(smoothing=smoothing, temperature=temperature)
        return tuned

    def _learned_arguments(self) -> dict[str, Any]:
        return {"smoothing": self.smoothing_, "temperature": self.temperature_}

    def _given(self) -> tuple[float | None, float | None]:
        """The checked parameters."""
        return number_or_none("smoothing", self.smoothing), number_or_none("temperature", self.temperature)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Targets, Floats]:
        self._given()
        X, targets, weights = read_rows(self, X, y, sample_weight)
        check_not_negative(X)
        return X, targets, weights

    def _choose(
        self, X: Any, numbers: Integers, n_classes: int, weights: Floats, folds: npt.NDArray[np.int32]
    ) -> tuple[float, float]:
        """Smoothing of the least log loss at its best temperature, and that temperature."""
        held_out = held_out_parts(folds, weights, n_classes)
        if not held_out:
            return _GRID[_START], 1.0
        parts = [(_Counts.of(X[train], numbers[train], weights[train], n_classes), X[held]) for train, held in held_out]
        rows = np.concatenate([held for _, held in held_out])
        tried: dict[int, tuple[float, float]] = {}

        def loss(k: int) -> float:
            if k not in tried:
                u = np.concatenate([counts.functions(_GRID[k]).predict(inputs) for counts, inputs in parts])
                u -= u.max(axis=1, keepdims=True)
                temperature = fit_temperature(u, numbers[rows], weights[rows], tol=1e-3)
                objective = PoolObjective([u], numbers[rows], weights[rows])
                tried[k] = objective.loss(np.array([1.0 / temperature])), temperature
            return tried[k][0]

        best = _START if self.smoothing is None else int(np.argmin(np.abs(np.log(_GRID) - np.log(self.smoothing))))
        for direction in (-1, 1):  # the loss falls to one side only
            while 0 <= best + direction < len(_GRID) and loss(best + direction) < loss(best):
                best += direction
        loss(best)
        return _GRID[best], tried[best][1]

    def _output(self, X: Any, output: str) -> Floats:
        functions = _Functions(self.log_ratios_, self.length_coef_, self.intercept_)
        u = functions.predict(X)
        u /= self.temperature_
        return to_output(u, output)

    def explain(
        self, X: Any, node: Any = None, *, top: int = 10, feature_names: Any = None
    ) -> list[list[NodeExplanation]]:
        """The features that speak for and against each node on the path to an answer.

        Parameters and result are those of ``KernelLogisticClassifier.explain``.
        """
        check_is_fitted(self)
        X = check_inputs(self, X, reset=False)
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        coef = _Columns(self.log_ratios_.tocsc(), self.length_coef_, self.temperature_)
        u = self._output(X, "predictor")
        return explain_rows(X, coef, u, self.classes_, self.taxonomy_, node, top=top, feature_names=names)


@dataclass(frozen=True)
class _Functions:
    """``u(x) = ratios x + length_coef |x|_1 + intercept``."""

    ratios: Any
    length_coef: Floats
    intercept: Floats

    def predict(self, X: Any) -> Floats:
        out = class_products(X, self.ratios)
        lengths = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
        for rows in row_batches(*out.shape):
            out[rows] += np.outer(lengths[rows], self.length_coef)
        out += self.intercept
        return out


@dataclass(frozen=True)
class _Counts:
    """Sums of features by class, and rows by class."""

    features: Any
    rows: Floats

    @classmethod
    def of(cls, X: Any, numbers: Integers, weights: Floats, n_classes: int) -> _Counts:
        features = sp.csr_matrix(sums_by_class(X, numbers, weights, n_classes))
        return cls(features, np.bincount(numbers, weights=weights, minlength=n_classes).astype(np.float64))

    def functions(self, smoothing: float) -> _Functions:
        ratios = self.features.copy()
        ratios.data = np.log1p(ratios.data / smoothing)
        totals = np.asarray(self.features.sum(axis=1)).ravel()
        length_coef = np.log(smoothing) - np.log(totals + smoothing * self.features.shape[1])
        rows = self.rows + 0.5 if (self.rows == 0).any() else self.rows
        return _Functions(ratios, length_coef, np.log(rows) - np.log(rows.sum()))


@dataclass(frozen=True)
class _Columns:
    """The weights of features as a matrix of which some columns are asked for."""

    ratios: Any
    length_coef: Floats
    temperature: float

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.ratios.shape
        return int(rows), int(columns)

    def __getitem__(self, key: tuple[slice, npt.NDArray[np.intp]]) -> Floats:
        part: Floats = (self.ratios[:, key[1]].toarray() + self.length_coef[:, None]) / self.temperature
        return part


def check_not_negative(X: Any) -> None:
    """Raise an error for inputs that no counts can be."""
    values = X.data if sp.issparse(X) else X
    if values.size and values.min() < 0:
        raise ValueError(
            f"Negative values in data: X has the value {values.min():.6g}, and naive Bayes counts features; expected "
            "none below 0"
        )
