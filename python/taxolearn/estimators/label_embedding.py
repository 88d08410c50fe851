"""Embeddings of labels in few dimensions, which a linear function of the inputs predicts well."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from taxolearn import _core
from taxolearn.couplings.factors import ClassFactors
from taxolearn.estimators.class_sums import class_numbers, row_batches
from taxolearn.fitting.embedding import EMBEDDING_METHODS, fit_embedding
from taxolearn.progress import fit_progress
from taxolearn.targets import (
    LabelForm,
    LabelSets,
    is_label_sets,
    label_targets,
    read_label_sets,
    read_targets,
    row_weights,
    set_targets,
)
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_choice, check_inputs, check_number, check_threads

__all__ = ["LabelEmbedding", "read_any_labels", "unit_rows"]

Floats = npt.NDArray[np.float64]

_MOST_SIMILAR = 20_000  # classes in a table of all pairs
_NEGLIGIBLE = 1e-10  # share of the largest variance below which a direction is rounding


class LabelEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Gives each class a few numbers that the inputs tell, and each row those of its classes.

    "rembrandt" finds the best least squares prediction of the label indicators Y that is linear in the inputs and has
    rank k, ``min |Y - X W V'|^2 + ridge |W|^2``, by randomized subspace iteration (Mineiro, Karampatziakis 2015). It
    needs a few dozen products with the inputs; nothing it keeps has the size of classes times features, or of either
    squared. Classes that the inputs confuse lie close together. Rows are embedded as predicted by their inputs.

    Parameters
    ----------
    n_components : int, default=50
        The dimension k. It becomes smaller where there are not so many directions, such as one less than classes.
    method : {"rembrandt", "plst", "random", "pca"}, default="rembrandt"
        Whose principal directions are taken: of predictions of the labels; of the labels (principal label space
        transformation); random ones (compressed sensing); or of the inputs, where a class lies at the mean of its rows.
    oversampling : int, default=20
        Random vectors beside the k, which make these more accurate.
    rounds : int, default=1
        Rounds of subspace iteration before the last one; more are needed where the spectrum decays slowly.
    ridge : float or "auto", default="auto"
        Penalty of the regression, in units of the mean of the features' sums of squares. "auto" takes the largest of a
        path from 1e-6 to 100 whose error on rows left out is within a thousandth of the best.
    center : bool, default=True
        Whether means are taken off inputs and labels, so that there is an intercept. Sparse inputs stay sparse.
    whiten : bool, default=True
        Whether embeddings of rows are rotated and scaled to have the identity as their covariance over training rows.
    taxonomy : Taxonomy, default=None
        A tree whose leaves are the classes, for several labels per row its nodes. It gives a place to classes without
        rows.
    tol : float, default=1e-4
        Largest residual of the normal equations, relative to their right-hand sides.
    max_iter : int, default=1000
        Largest number of iterations of conjugate gradients for one block of columns.
    n_threads : int or None, default=None
        Number of threads; None takes all that the process may use.
    random_state : int, RandomState instance or None, default=0
        Of the random vectors and the rows left out.
    verbose : int, default=0
        0 shows a progress bar for long fits on a terminal, 1 at once, 2 prints a line per iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; with a taxonomy all its leaves, and for several labels per row all its nodes but the root.
    taxonomy_ : Taxonomy or None
        The taxonomy.
    components_ : ndarray of shape (n_classes, k)
        The embeddings of the classes, not whitened: orthonormal columns V, or for "pca" means of rows. Classes without
        rows have zeros.
    singular_values_ : ndarray of shape (k,)
        Singular values of what is predicted, decomposed or projected.
    coef_, intercept_ : ndarray of shape (k, n_features), (k,)
        The regression: rows before they are whitened are at ``X @ coef_.T + intercept_``.
    mean_, whitening_ : ndarray of shape (k,), (k, k)
        What is taken off an embedding, and multiplied to it, last; without ``whiten`` zeros and the identity.
    ridge_ : float
        Given or chosen.
    class_counts_ : ndarray of shape (n_classes,)
        Sums of the rows' weights.
    result_ : EmbeddingFit
        How the fit went: residuals, certified gap, the path of ridges.
    n_iter_ : int
        Products with the normal matrix, at least 1.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where the input had names.

    Examples
    --------
    >>> from taxolearn import LabelEmbedding
    >>> X = [[2, 0, 1], [3, 0, 0], [2, 1, 0], [0, 2, 1], [0, 1, 2], [0, 0, 3]]
    >>> y = ["cat", "cat", "dog", "dog", "car", "car"]
    >>> LabelEmbedding(2, ridge=0.1).fit(X, y).transform(X).shape
    (6, 2)
    """

    def __init__(
        self,
        n_components: int = 50,
        method: str = "rembrandt",
        *,
        oversampling: int = 20,
        rounds: int = 1,
        ridge: float | str = "auto",
        center: bool = True,
        whiten: bool = True,
        taxonomy: Taxonomy | None = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        n_threads: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.oversampling = oversampling
        self.rounds = rounds
        self.ridge = ridge
        self.center = center
        self.whiten = whiten
        self.taxonomy = taxonomy
        self.tol = tol
        self.max_iter = max_iter
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.coef_.shape[0])

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LabelEmbedding:
        """Embed the labels and regress the embedding.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Blocks of shape (n_samples, n_features)
            Inputs.
        y : array, sparse matrix, data frame, list or series
            One label per row, or any number of them: an indicator matrix or lists of labels, as in
            ``RecursiveRegularizationClassifier.fit``.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the rows; an integer weight acts like a repetition.

        Returns
        -------
        self
        """
        choices = self._check()
        X, classes, form, sets, weights = read_any_labels(self, X, y, sample_weight)
        with fit_progress(self.verbose, self.tol) as progress:
            fitted = fit_embedding(
                X,
                sets.offsets,
                sets.labels,
                len(classes),
                **choices,
                sample_weight=weights,
                single_precision=bool(_value_type(X) == np.float32 and self.tol >= 1e-5),
                random_state=int(check_random_state(self.random_state).randint(2**31 - 1)),
                progress=progress,
            )
        self.classes_, self.taxonomy_, self.label_form_ = classes, self.taxonomy, form
        self.result_ = fitted
        self.ridge_ = fitted.ridge
        self.n_iter_ = max(fitted.iterations, 1)
        self.singular_values_ = np.sqrt(fitted.values)
        self.coef_, self.intercept_ = fitted.weights.T, fitted.intercepts
        k = len(self.intercept_)
        self.mean_, self.whitening_ = np.zeros(k), np.eye(k)
        if self.whiten:
            self.mean_, self.whitening_ = fitted.mean, whitening_of(fitted.moments)
        membership = sets.matrix().astype(np.float64)
        if weights is not None:
            membership = sp.csr_array(sp.diags_array(weights) @ membership)
        self.class_counts_ = np.asarray(membership.sum(axis=0)).ravel()
        self.components_ = fitted.components
        if self.method == "pca":
            self.components_ = self._class_means(X, membership)
        if not fitted.is_converged:
            warnings.warn(
                f"the regression of the embedding stopped after max_iter={self.max_iter} iterations at a relative "
                f"residual of {fitted.residuals.max(initial=0.0):.1e}, tol is {self.tol:g}; raise max_iter or ridge",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _check(self) -> dict[str, Any]:
        """Checked arguments of the fit."""
        ridge: float | None = None
        if not (isinstance(self.ridge, str) and self.ridge == "auto"):
            ridge = check_number("ridge", self.ridge, least=0)
        return {
            "method": check_choice("method", self.method, EMBEDDING_METHODS),
            "n_components": check_number("n_components", self.n_components, least=1, integer=True),
            "oversampling": check_number("oversampling", self.oversampling, least=0, integer=True),
            "rounds": check_number("rounds", self.rounds, least=0, integer=True),
            "ridge": ridge,
            "center": bool(self.center),
            "tol": check_number("tol", self.tol, least=0, strict=True),
            "max_iter": check_number("max_iter", self.max_iter, least=1, integer=True),
            "n_threads": check_threads(self.n_threads),
        }

    def _class_means(self, X: Any, membership: Any) -> Floats:
        sums = np.zeros((membership.shape[1], len(self.intercept_)))
        for rows in row_batches(X.shape[0], len(self.intercept_)):
            sums += membership[rows].T @ self._predicted(X[rows])
        return np.asarray(sums / np.maximum(self.class_counts_, np.finfo(np.float64).tiny)[:, None])

    def transform(self, X: Any) -> Floats:
        """Embeddings of rows, as predicted by their inputs: shape (n_samples, k)."""
        check_is_fitted(self)
        return self._whitened(self._predicted(check_inputs(self, X, reset=False)))

    def _predicted(self, X: Any) -> Floats:
        """Embeddings of checked inputs before they are whitened."""
        return _core.predict_linear(
            X=X,
            weights=np.ascontiguousarray(self.coef_.T),  # they lie in this order after a fit, and in files
            intercepts=self.intercept_,
            link=_core.Link.none,
            output=_core.Output.predictor,
            n_threads=check_threads(self.n_threads),
        )

    def transform_labels(self, y: Any) -> Floats:
        """Embeddings of labels, the sums of those of a row's labels: shape (n_samples, k)."""
        check_is_fitted(self)
        if is_label_sets(y):
            columns = None if self.label_form_ is None else self.label_form_.columns
            sets, _, _ = read_label_sets(y, self.taxonomy_, self.classes_, columns=columns)
            return self._whitened(np.asarray(sets.matrix() @ self.components_))
        return self._whitened(self.components_[self._places(list(y))])

    def _whitened(self, Z: Floats) -> Floats:
        return np.asarray((Z - self.mean_) @ self.whitening_)

    def _places(self, names: Sequence[Any]) -> npt.NDArray[np.intp]:
        places = {name: k for k, name in enumerate(self.classes_.tolist())}
        try:
            return np.array([places[getattr(name, "item", lambda name=name: name)()] for name in names], dtype=np.intp)
        except (KeyError, TypeError):
            unknown = [name for name in names if name not in places]
            raise ValueError(f"y has labels that fit never saw: {unknown[:5]}; leave them out") from None

    # -- Classes ------------------------------------------------------------------------------------------------------

    def class_points(self) -> Floats:
        """The classes as points, whose products are the covariance of their predictions: shape (n_classes, k).

        For "random" and "pca" these are ``components_``. A class without rows lies at the mean of the directions of its
        nearest relatives in the tree that have rows; without a tree, at zero.
        """
        check_is_fitted(self)
        points = self.components_
        if self.method not in ("random", "pca"):
            points = points * self.singular_values_
        elif self.method == "pca":
            points = points - np.average(points, axis=0, weights=np.maximum(self.class_counts_, 1e-300))
        if self.taxonomy_ is not None:
            points = self._with_relatives(points)
        return points

    def _with_relatives(self, points: Floats) -> Floats:
        missing = np.flatnonzero(self.class_counts_ == 0)
        if len(missing) == 0:
            return points
        assert self.taxonomy_ is not None
        tree, points = self.taxonomy_, points.copy()
        nodes = np.asarray(tree.index(self.classes_.tolist()))
        sums = np.zeros((tree.n_nodes, points.shape[1]))
        np.add.at(sums, nodes, unit_rows(points) * (self.class_counts_ > 0)[:, None])
        n_below = np.bincount(nodes[self.class_counts_ > 0], minlength=tree.n_nodes)
        for node in range(tree.n_nodes - 1, 0, -1):  # children come after their parents
            sums[tree.parents[node]] += sums[node]
            n_below[tree.parents[node]] += n_below[node]
        for k in missing:
            node = nodes[k]
            while n_below[node] == 0 and node != 0:
                node = tree.parents[node]
            points[k] = sums[node] / max(n_below[node], 1)
        return points

    def nearest_classes(self, name: Any, k: int = 5) -> list[tuple[Any, float]]:
        """The classes that are most like one of them, by the cosine of ``class_points``.

        Parameters
        ----------
        name : label or name of a node
            A class, with a taxonomy also one without rows, or an inner node, which is the mean of the classes below.
        k : int, default=5
            How many classes.

        Returns
        -------
        list of (class, cosine)
            The most similar first.
        """
        k = check_number("k", k, least=1, integer=True)
        units = unit_rows(self.class_points())
        own = np.flatnonzero(self.classes_ == name)
        if len(own) == 0 and self.taxonomy_ is not None:
            own = np.flatnonzero(np.isin(self.classes_, self.taxonomy_.leaves(name)))
        if len(own) == 0:
            raise ValueError(f"name is {name!r}, which is no class; classes_ has those that fit saw")
        cosines = units @ unit_rows(units[own].mean(axis=0, keepdims=True))[0]
        cosines[own] = -np.inf
        best = np.lexsort((np.arange(len(cosines)), -cosines))[: min(k, len(cosines) - len(own))]
        return list(zip(self.classes_[best].tolist(), cosines[best].tolist(), strict=True))

    def class_similarity(self, classes: Sequence[Any] | None = None) -> Any:
        """Cosines of ``class_points`` between all classes, or those given, with their labels.

        Returns
        -------
        pandas DataFrame or SimilarityTable
            The latter, with ``classes`` and ``values``, where pandas is not installed.
        """
        points = self.class_points()
        places = np.arange(len(points)) if classes is None else self._places(classes)
        if len(places) > _MOST_SIMILAR:
            raise ValueError(
                f"class_similarity would make a table of {len(places)} x {len(places)} classes; name at most "
                f"{_MOST_SIMILAR} of them, or use nearest_classes"
            )
        return ClassFactors(points[places], self.classes_[places]).class_similarity()


def read_any_labels(
    model: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[Any, npt.NDArray[Any], LabelForm | None, LabelSets, Floats | None]:
    """Checked inputs, classes, how sets of labels were written, the classes of each row, and weights."""
    taxonomy = model.taxonomy
    if not (taxonomy is None or isinstance(taxonomy, Taxonomy)):
        raise TypeError(f"taxonomy must be a taxolearn.Taxonomy or None, got {type(taxonomy).__name__}")
    if is_label_sets(y):
        sets, classes, form = read_label_sets(y, taxonomy)
        X, _ = check_inputs(model, X, np.zeros(len(sets)), reset=True, blocks=True)  # a stand-in of the same length
        targets = None
    else:
        if read_targets(y, taxonomy, "own") is not None:
            raise ValueError(
                "y has rows without just one label (a set, nothing, probabilities); leave them out. For any number of "
                "labels per row, give a list of them for each row, empty where there is none"
            )
        X, y = check_inputs(model, X, y, reset=True, blocks=True)
        targets = label_targets(y, taxonomy, "own")
        numbers, classes, form = class_numbers(targets).astype(np.int32), targets.classes, None
        sets = LabelSets(numbers, np.arange(len(numbers) + 1, dtype=np.int64), len(classes))
    weights = None
    if sample_weight is not None:
        if targets is None:
            targets = set_targets(sets, classes, taxonomy)
        weights = row_weights(targets, sample_weight, None, X)
    return X, classes, form, sets, weights


def whitening_of(covariance: Floats) -> Floats:
    """The symmetric inverse square root, which turns points as little as possible; rounding goes to zero."""
    values, vectors = np.linalg.eigh(covariance)
    inverse = np.zeros_like(values)
    is_real = values > _NEGLIGIBLE * max(values.max(initial=0.0), np.finfo(np.float64).tiny)
    inverse[is_real] = 1.0 / np.sqrt(values[is_real])
    return np.asarray((vectors * inverse) @ vectors.T)


def unit_rows(points: Floats) -> Floats:
    """Rows at length 1; those of zeros stay zero."""
    lengths = np.linalg.norm(points, axis=1)
    return points / np.where(lengths > 0, lengths, 1.0)[:, None]


def _value_type(X: Any) -> Any:
    parts = getattr(X, "matrices", None)
    return X.dtype if parts is None else np.result_type(*(each.dtype for each in parts))
