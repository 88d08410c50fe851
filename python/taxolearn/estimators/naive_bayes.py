"""Multinomial naive Bayes that stays sparse: the cheapest expert for texts and other counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from taxolearn.estimators.base import TaxonomyClassifier
from taxolearn.estimators.explain import NodeExplanation, explain_rows
from taxolearn.estimators.pooling.weights import PoolObjective, fit_temperature
from taxolearn.targets import Targets, label_targets, read_targets, row_weights
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.cross_validation import make_folds
from taxolearn.validation import check_inputs, check_number, check_threads

__all__ = ["NaiveBayesClassifier", "certain_targets", "class_numbers"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_GRID = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_START = 4  # in the grid
_HELD_OUT = 10_000  # rows that smoothing is chosen by, at most
_ENTRIES = 5_000_000  # scores of these rows
_BATCH = 2**22  # scores that are computed together
_FOLDS = 3


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
                folds = make_folds(numbers, targets.n_classes, _FOLDS, self.random_state)
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
        given = _FOLDS if folds is None else np.asarray(folds)
        folds = make_folds(numbers, targets.n_classes, given, self.random_state, argument="folds")
        smoothing, temperature = copy._choose(X, numbers, targets.n_classes, weights, folds)
        tuned: NaiveBayesClassifier = clone(self).set_params(smoothing=smoothing, temperature=temperature)
        return tuned

    def _learned_arguments(self) -> dict[str, Any]:
        return {"smoothing": self.smoothing_, "temperature": self.temperature_}

    def _given(self) -> tuple[float | None, float | None]:
        """The checked parameters."""
        smoothing, temperature = (
            None if value is None else check_number(name, value, least=0, strict=True)
            for name, value in (("smoothing", self.smoothing), ("temperature", self.temperature))
        )
        return smoothing, temperature

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Targets, Floats]:
        check_threads(self.n_threads)
        self._given()
        targets = certain_targets(y, self.taxonomy, type(self).__name__)
        X, y = check_inputs(self, X, y, reset=True)
        targets = label_targets(y, self.taxonomy, "below") if targets is None else targets
        check_not_negative(X)
        weights = row_weights(targets, sample_weight, None, X)
        return X, targets, np.ones(X.shape[0]) if weights is None else weights

    def _choose(
        self, X: Any, numbers: Integers, n_classes: int, weights: Floats, folds: npt.NDArray[np.int32]
    ) -> tuple[float, float]:
        """Smoothing of the least log loss at its best temperature, and that temperature."""
        random = np.random.default_rng(0)
        held = np.flatnonzero((folds >= 0) & (weights > 0))
        limit = min(_HELD_OUT, max(100, _ENTRIES // n_classes))
        if len(held) > limit:
            held = np.sort(random.choice(held, limit, replace=False))
        if len(held) == 0:
            return _GRID[_START], 1.0
        parts = []
        for fold in np.unique(folds[held]):
            train = np.flatnonzero(folds != fold)
            rows = held[folds[held] == fold]
            parts.append((_Counts.of(X[train], numbers[train], weights[train], n_classes), X[rows], rows))
        rows = np.concatenate([each[2] for each in parts])
        tried: dict[int, tuple[float, float]] = {}

        def loss(k: int) -> float:
            if k not in tried:
                u = np.concatenate([counts.functions(_GRID[k]).predict(inputs) for counts, inputs, _ in parts])
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
        if output == "predictor":
            return u
        out: Floats = (softmax if output == "probability" else log_softmax)(u, axis=1)
        return out

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
        out = np.empty((X.shape[0], len(self.intercept)))
        by_feature = self.ratios.T.tocsr()
        if not sp.issparse(X):
            by_feature = by_feature.toarray()
        for rows in gen_batches(X.shape[0], max(1, _BATCH // len(self.intercept))):
            part = X[rows]
            product = part @ by_feature
            out[rows] = product.toarray() if sp.issparse(product) else product
            out[rows] += np.outer(np.asarray(part.sum(axis=1), dtype=np.float64).ravel(), self.length_coef)
        out += self.intercept
        return out


@dataclass(frozen=True)
class _Counts:
    """Sums of features by class, and rows by class."""

    features: Any
    rows: Floats

    @classmethod
    def of(cls, X: Any, numbers: Integers, weights: Floats, n_classes: int) -> _Counts:
        n = len(numbers)
        members = sp.csr_matrix((weights, (numbers, np.arange(n))), shape=(n_classes, n))
        features = sp.csr_matrix(members @ X, dtype=np.float64)
        features.eliminate_zeros()
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


def certain_targets(y: Any, taxonomy: Any, model: str) -> Targets | None:
    """Targets if ``y`` names inner nodes that are one class, None for plain labels; an error if rows are uncertain."""
    if not (taxonomy is None or isinstance(taxonomy, Taxonomy)):
        raise TypeError(f"taxonomy must be a taxolearn.Taxonomy or None, got {type(taxonomy).__name__}")
    targets = read_targets(y, taxonomy, "below")
    if targets is not None and not targets.is_certain:
        raise ValueError(
            f"y has rows without just one class (a set, an inner node, nothing, probabilities), which {model} cannot "
            "use; leave them out, or use KernelLogisticClassifier"
        )
    return targets


def class_numbers(targets: Targets) -> Integers:
    """The place of each row's class in ``classes_``."""
    places = np.empty(targets.n_classes, dtype=np.int64)
    places[targets.order] = np.arange(targets.n_classes)
    numbers: Integers = places[targets.labels]
    return numbers
