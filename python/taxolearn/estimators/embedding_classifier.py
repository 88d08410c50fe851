"""Classification by an embedding of the labels: few numbers per row, and a model of the classes given these."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from taxolearn.blocks import Blocks
from taxolearn.estimators.base import TaxonomyClassifier
from taxolearn.estimators.embedding_decoders import EmbeddedRows, fit_decoder, held_out_rows, unfitted_decoder
from taxolearn.estimators.kernel_logistic import KernelLogisticClassifier
from taxolearn.estimators.label_embedding import LabelEmbedding, read_any_labels
from taxolearn.estimators.random_features import RandomFeatures, best_bandwidth, check_random_features
from taxolearn.estimators.top_down import TopDownClassifier
from taxolearn.targets import LabelForm, is_label_sets
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_inputs, check_number

__all__ = ["LabelEmbeddingClassifier"]

Floats = npt.NDArray[np.float64]

_BATCH = 2**24  # elements of a block of probabilities, or of features


class LabelEmbeddingClassifier(TaxonomyClassifier):
    """Embeds the labels, regresses the embedding, and decodes it (Mineiro, Karampatziakis 2015, algorithm 3).

    A row becomes k numbers by ``LabelEmbedding``, maybe random features of these, and a logistic model tells the
    classes by them. So the model has k (classes + features) numbers in place of classes times features, and where these
    are many, it often errs less. The decoder's fit has a certificate, and its variance and temperature are learned.

    Parameters
    ----------
    embedding : LabelEmbedding, default=None
        How labels are embedded, not fitted; None stands for ``LabelEmbedding()``.
    decoder : {"auto", "softmax", "independent", "top-down"} or classifier, default="auto"
        The model of the classes: one softmax, for one label per row; each label by itself; a softmax at every inner
        node of the taxonomy, or where there is none of a balanced tree of the embedded classes. "auto" takes the second
        for several labels per row; for one label the first, or the last from 2^28 rows times classes on. A
        ``KernelLogisticClassifier``, ``RecursiveRegularizationClassifier`` or ``TopDownClassifier`` has all choices of
        its own; then ``taxonomy``, ``class_weight``, ``tuning``, ``tol`` and ``max_iter`` of this model do not matter
        for it.
    random_features : pair or None, default=None
        ("gaussian", m) or ("cauchy", m) puts m random cosines between embedding and decoder, for the Gaussian or the
        Laplacian kernel.
    bandwidth : float, default=None
        Of the random features. None chooses it by leaving rows out, one at a time, in a kernel ridge regression of a
        sample of rows.
    taxonomy : Taxonomy, default=None
        A tree of the labels, which is the decoder's as well.
    class_weight : dict, "balanced" or None, default=None
        Weights of labels for the decoder.
    tuning : "cv", CrossValidation or None, default="cv"
        How the decoder's hyperparameters are learned. "cv" holds out a fifth of the rows, embeds all rows by a
        regression that has not seen these, so that they lie where new rows do, and compares a few values of one
        variance, or follows the gradient under a tree. With many rows and classes it takes some classes, for several
        labels per row some rows. A ``CrossValidation`` is that of the decoder alone, given the embedding.
    tol : float, default=1e-5
        Certified duality gap of the decoder, relative to its objective.
    max_iter : int, default=1000
        Largest number of its iterations. Nothing else stops a fit before it has the certificate.
    n_threads : int or None, default=None
        Number of threads; None takes all that the process may use.
    random_state : int, RandomState instance or None, default=0
        Of the random features, the rows their bandwidth is chosen by, and folds.
    verbose : int, default=0
        0 shows a progress bar for long fits on a terminal, 1 at once, 2 prints a line per iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted.
    taxonomy_ : Taxonomy or None
        The taxonomy, with a leaf for each class; for several labels per row as given. Of a top-down decoder without
        one, the tree of clusters.
    is_multilabel_ : bool
        Whether ``y`` had any number of labels per row.
    embedding_ : LabelEmbedding
        Fitted: its ``nearest_classes`` and ``class_similarity`` tell which classes are alike.
    decoder_ : KernelLogisticClassifier, RecursiveRegularizationClassifier or TopDownClassifier
        Fitted to embedded rows.
    random_features_ : RandomFeatures or None
        Frequencies, and the bandwidth that was given or chosen.
    n_iter_ : int
        Iterations of the decoder's fit.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where the input had names.

    Examples
    --------
    >>> from taxolearn import LabelEmbedding, LabelEmbeddingClassifier
    >>> X = [[2, 0, 1], [3, 0, 0], [2, 1, 0], [0, 2, 1], [0, 1, 2], [0, 0, 3]]
    >>> y = ["cat", "cat", "dog", "dog", "car", "car"]
    >>> model = LabelEmbeddingClassifier(LabelEmbedding(2, ridge=0.1), tuning=None).fit(X, y)
    >>> model.predict([[3, 0, 0]])
    array(['cat'], dtype='<U3')
    """

    def __init__(
        self,
        embedding: LabelEmbedding | None = None,
        decoder: Any = "auto",
        *,
        random_features: tuple[str, int] | None = None,
        bandwidth: float | None = None,
        taxonomy: Taxonomy | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        tuning: Any = "cv",
        tol: float = 1e-5,
        max_iter: int = 1000,
        n_threads: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.embedding = embedding
        self.decoder = decoder
        self.random_features = random_features
        self.bandwidth = bandwidth
        self.taxonomy = taxonomy
        self.class_weight = class_weight
        self.tuning = tuning
        self.tol = tol
        self.max_iter = max_iter
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = not isinstance(self.decoder, KernelLogisticClassifier | TopDownClassifier)
        return tags

    # -- Fitting ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LabelEmbeddingClassifier:
        """Fit the embedding, then the decoder.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Blocks of shape (n_samples, n_features)
            Inputs.
        y : array, sparse matrix, data frame, list or series
            One label per row, or any number of them, as in ``RecursiveRegularizationClassifier.fit``.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self
        """
        if not (self.embedding is None or isinstance(self.embedding, LabelEmbedding)):
            raise TypeError(f"embedding must be a LabelEmbedding or None, got {type(self.embedding).__name__}")
        kind = check_random_features(self.random_features)
        if self.bandwidth is not None:
            check_number("bandwidth", self.bandwidth, least=0, strict=True)
        X, classes, form, sets, weights = read_any_labels(self, X, y, sample_weight)
        decoder = unfitted_decoder(self, form is not None, X.shape[0], len(classes))
        embedding = LabelEmbedding(verbose=self.verbose) if self.embedding is None else clone(self.embedding)
        embedding.set_params(taxonomy=self.taxonomy, n_threads=self.n_threads)
        embedding.fit(X, y, sample_weight)
        Z = embed_rows(embedding, X)
        features = None
        if kind is not None:
            random = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
            bandwidth = self.bandwidth
            if bandwidth is None:
                rarest = sets.rarest()
                labelled = np.flatnonzero(rarest >= 0)
                bandwidth = best_bandwidth(kind[0], Z[labelled], rarest[labelled], random)
            features = RandomFeatures.draw(*kind, Z.shape[1], bandwidth, random)
        honest = None
        if isinstance(self.decoder, str) and isinstance(self.tuning, str):
            held = held_out_rows(sets, self.random_state)
            other = self._embedding_without(held, embedding, X, y, sample_weight)
            honest = other if features is None else features.transform(other), held
        rows = EmbeddedRows(Z if features is None else features.transform(Z), y, weights, classes, form, sets)
        decoder = fit_decoder(decoder, embedding, rows, honest)
        self.embedding_, self.random_features_, self.decoder_ = embedding, features, decoder
        self.classes_, self.taxonomy_ = decoder.classes_, decoder.taxonomy_
        return self

    def _embedding_without(
        self, held: npt.NDArray[np.bool_], embedding: LabelEmbedding, X: Any, y: Any, sample_weight: Any
    ) -> npt.NDArray[Any]:
        """Embeddings by a regression that has not seen some rows, so that these lie where new rows do."""
        weights = np.ones(len(held)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        other = clone(embedding).set_params(ridge=embedding.ridge_, verbose=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            Z = embed_rows(other.fit(X, y, np.where(held, 0.0, weights)), X)
        missing = embedding.coef_.shape[0] - Z.shape[1]
        return np.pad(Z, ((0, 0), (0, missing))) if missing > 0 else Z

    def _learned_arguments(self) -> dict[str, Any]:
        decoder = clone(self.decoder_).set_params(**self.decoder_._learned_arguments())
        features = self.random_features_
        return {
            "embedding": clone(self.embedding_).set_params(ridge=self.embedding_.ridge_),
            "decoder": decoder,
            "bandwidth": None if features is None else features.bandwidth,
        }

    # -- Predicting ---------------------------------------------------------------------------------------------------

    @property
    def is_multilabel_(self) -> bool:
        check_is_fitted(self)
        return self.label_form_ is not None

    @property
    def label_form_(self) -> LabelForm | None:
        """How sets of labels were written; None for one label per row."""
        check_is_fitted(self)
        return getattr(self.decoder_, "label_form_", None)

    @property
    def n_iter_(self) -> int:
        check_is_fitted(self)
        return int(self.decoder_.n_iter_)

    def _mapped(self, X: Any) -> Any:
        """What the decoder sees of checked inputs."""
        Z = embed_rows(self.embedding_, X)
        return Z if self.random_features_ is None else self.random_features_.transform(Z)

    def _output(self, X: Any, output: str) -> Floats:
        return self.decoder_._output(self._mapped(X), output)

    def _blocks(self, X: Any) -> Iterator[Any]:
        """What the decoder sees of some rows after the other."""
        check_is_fitted(self)
        X = check_inputs(self, X, reset=False)
        width = max(len(self.classes_), self.decoder_.n_features_in_)
        for rows in gen_batches(X.shape[0], max(1, _BATCH // width)):
            yield self._mapped(X[rows])

    def decision_function(self, X: Any) -> Floats:
        """Predictors of all classes, as the decoder's: shape (n_samples, n_classes), for two classes (n_samples,)."""
        return np.concatenate([self.decoder_.decision_function(Z) for Z in self._blocks(X)])

    def predict_node_proba(self, X: Any) -> Floats:
        """Probability of every node of the tree: shape (n_samples, n_nodes), in the order of ``taxonomy_.names``."""
        return np.concatenate([self.decoder_.predict_node_proba(Z) for Z in self._blocks(X)])

    def predict(self, X: Any) -> Any:
        """The best class of each row, or all labels that are more probable than not, in the form that ``y`` had."""
        return _joined([self.decoder_.predict(Z) for Z in self._blocks(X)])

    def decide(self, X: Any, *arguments: Any, **options: Any) -> Any:
        """The answer of least expected loss for each row; arguments and result those of the decoder's ``decide``."""
        return _joined([self.decoder_.decide(Z, *arguments, **options) for Z in self._blocks(X)])

    def top_classes(self, X: Any, k: int = 5) -> tuple[npt.NDArray[Any], Floats]:
        """The most probable labels of each row and their probabilities, the largest first.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        k : int, default=5
            How many labels; at most all.

        Returns
        -------
        labels, probabilities : ndarray of shape (n_samples, k)
            Nothing of the size of all rows times classes is made.
        """
        k = check_number("k", k, least=1, integer=True)
        parts = [self._best(Z, k) for Z in self._blocks(X)]
        return np.concatenate([labels for labels, _ in parts]), np.concatenate([values for _, values in parts])

    def _best(self, Z: Any, k: int) -> tuple[npt.NDArray[Any], Floats]:
        if not isinstance(self.decoder_, KernelLogisticClassifier):
            return self.decoder_.top_classes(Z, k)
        p = self.decoder_.predict_proba(Z)
        k = min(k, p.shape[1])
        best = np.argpartition(-p, k - 1, axis=1)[:, :k]
        values = np.take_along_axis(p, best, axis=1)
        order = np.lexsort((best, -values), axis=1)
        best = np.take_along_axis(best, order, axis=1)
        return self.classes_[best], np.take_along_axis(values, order, axis=1)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on labelled data; for several labels per row the share of rows whose labels are all right."""
        if not self.is_multilabel_:
            return super().score(X, y, sample_weight)
        if not is_label_sets(y):
            raise ValueError("y has one label per row, but the model has any number; give sets or an indicator")
        return self.decoder_.score(self._mapped(check_inputs(self, X, reset=False)), y, sample_weight)


def embed_rows(embedding: LabelEmbedding, X: Any) -> npt.NDArray[Any]:
    """Embeddings of rows for a decoder, in the precision of the inputs; some rows after the other."""
    dtype = np.result_type(*(part.dtype for part in X.matrices)) if isinstance(X, Blocks) else X.dtype
    out = np.empty((X.shape[0], embedding.coef_.shape[0]), dtype=dtype)
    for rows in gen_batches(X.shape[0], max(1, _BATCH // out.shape[1])):
        out[rows] = embedding.transform(X[rows])
    return out


def _joined(parts: list[Any]) -> Any:
    """Answers for some rows after the other, in the form they have."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], list):
        return [answer for part in parts for answer in part]
    if sp.issparse(parts[0]):
        return sp.vstack(parts, format="csr")
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    if hasattr(parts[0], "vstack"):  # polars
        return type(parts[0])({name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns})
    import pandas as pd

    return pd.concat(parts, ignore_index=True)
