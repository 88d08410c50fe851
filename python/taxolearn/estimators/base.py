"""What all classifiers here share: parameters, probabilities of nodes, decisions, explanations, accuracy."""

import copy
from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, column_or_1d

from taxolearn import decisions
from taxolearn.estimators.explain import NodeExplanation, explain_rows
from taxolearn.kernels.base import with_params
from taxolearn.targets import read_targets
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.validation import check_inputs

__all__ = ["NOT_LINEAR", "TaxonomyClassifier"]

NOT_LINEAR = "explain needs a linear model, since it shows weights of features; the kernel of this one is not linear"

_BATCH = 2**24  # elements of a block of probabilities


class TaxonomyClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of probabilities whose classes may be the leaves of a tree.

    A subclass sets ``classes_`` and ``taxonomy_`` in ``fit``, and says what its output is.
    """

    classes_: npt.NDArray[Any]
    taxonomy_: Taxonomy | None
    n_threads: int | None

    @abstractmethod
    def _output(self, X: Any, output: str) -> npt.NDArray[np.float64]:
        """The "predictor", "probability" or "log_probability" of every class, for checked inputs."""

    def _expand(self, name: str, value: Any) -> Any:
        """The value that an argument given by its short name stands for."""
        return value

    def _learned_arguments(self) -> dict[str, Any]:
        """Arguments by which ``fit`` takes what this fitted model has learned, instead of learning it."""
        return {}

    def refit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit to other rows, such as all of them, and keep all that was learned and chosen.

        Hyperparameters, temperatures and what tells how they were found stay those of ``fit``, so this takes one fit.
        If it fails, the model is what it was.

        Parameters
        ----------
        X, y, sample_weight
            As for ``fit``. Classes and features may be others, unless hyperparameters belong to single ones of them.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        again = copy.copy(self).set_params(**self._learned_arguments())
        again.fit(X, y, sample_weight)
        self._adopt(again)
        return self

    def _adopt(self, again: Any) -> None:
        """Become the model that ``refit`` has fitted; arguments stay."""
        self.__dict__ = vars(again) | self.get_params(deep=False)

    def set_params(self, **params: Any) -> Any:
        """Set parameters of the model; those of its parts as ``kernel__variance`` or ``tuning__folds``.

        A part is replaced by one with the new parameters, so that models never share what is changed. A part that is
        given by its short name, like ``tuning="cv"``, becomes the value that this means.
        """
        nested: dict[str, dict[str, Any]] = {}
        plain = {}
        for key, value in params.items():
            name, inside, rest = key.partition("__")
            if inside and name in self.get_params(deep=False):
                nested.setdefault(name, {})[rest] = value
            else:
                plain[key] = value
        super().set_params(**plain)
        for name, inner in nested.items():
            setattr(self, name, with_params(self._expand(name, getattr(self, name)), inner, name))
        return self

    def _predict(self, X: Any, output: str) -> npt.NDArray[np.float64]:
        check_is_fitted(self)
        return self._output(check_inputs(self, X, reset=False), output)

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Class functions ``u(x)``: shape (n_samples, n_classes); for two classes their difference, (n_samples,)."""
        u = self._predict(X, "predictor")
        return u[:, 1] - u[:, 0] if len(self.classes_) == 2 else u

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probabilities of the classes, in the order of ``classes_``."""
        return self._predict(X, "probability")

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Logarithms of the probabilities, exact also where these underflow."""
        return self._predict(X, "log_probability")

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        best = self._predict(X, "predictor").argmax(axis=1)
        labels: npt.NDArray[Any] = self.classes_[best]
        return labels

    def predict_node_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Probability of every node of the tree: shape (n_samples, n_nodes), in the order of ``taxonomy_.names``.

        The first node is the root, with probability 1. The probability of a node is that of all classes below it, so
        it is meaningful under any coupling.
        """
        check_is_fitted(self)
        if self.taxonomy_ is None:
            raise ValueError("the model was fitted without a taxonomy, so there are no nodes; use predict_proba")
        return decisions.node_proba(
            self.predict_proba(X), classes=self.classes_, taxonomy=self.taxonomy_, n_threads=self.n_threads
        )

    def decide(
        self, X: Any, loss: Any = "zero-one", *, stop_cost: Any = None, confidence: float | None = None
    ) -> npt.NDArray[Any]:
        """The answer of least expected loss for each row.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        loss : {"zero-one", "taxo", "parent"} or array of shape (n_classes, n_classes), default="zero-one"
            What a wrong answer costs: 1; half the length of the path in the tree to the truth; 1 unless the parent is
            right; or the entry (truth, answer) of the array, in the order of ``classes_``.
        stop_cost : float or array of shape (n_nodes,), optional
            Allows inner nodes as answers, at this extra cost for every level left open, or at the cost of each node.
        confidence : float, optional
            Answers with the deepest node that has at least this probability.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels, or with ``stop_cost`` or ``confidence`` names of nodes. ``taxolearn.decisions.decide`` says more and
            works on the probabilities of any classifier.
        """
        check_is_fitted(self)
        X = check_inputs(self, X, reset=False)
        options = {
            "classes": self.classes_,
            "taxonomy": self.taxonomy_,
            "loss": loss,
            "stop_cost": stop_cost,
            "confidence": confidence,
            "n_threads": self.n_threads,
        }
        rows = gen_batches(X.shape[0], max(1, _BATCH // len(self.classes_)))
        return np.concatenate([decisions.decide(self._output(X[part], "probability"), **options) for part in rows])

    def explain(
        self, X: Any, node: Any = None, *, top: int = 10, feature_names: Any = None
    ) -> list[list[NodeExplanation]]:
        """The features that speak for and against each node on the path to an answer. For linear models.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Blocks of shape (n_samples, n_features)
            Inputs.
        node : name of a node or class, or one for each row, optional
            Where the path leads to; by default the most probable class.
        top : int, default=10
            How many features to name, those with the largest part first.
        feature_names : sequence of length n_features, or mapping from names of blocks to these, optional
            Names of the features; by default those of the data frame in ``fit``, or numbers. Features of ``Blocks``
            are pairs of their block and their name.

        Returns
        -------
        list of lists of NodeExplanation
            For each row, the nodes on the path from below the root; without a taxonomy the class alone.
        """
        check_is_fitted(self)
        coef = getattr(self, "coef_", None)
        if coef is None:
            raise ValueError(NOT_LINEAR)
        X = check_inputs(self, X, reset=False)
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        u = self._output(X, "predictor")
        return explain_rows(X, coef, u, self.classes_, self.taxonomy_, node, top=top, feature_names=names)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on labelled data.

        Labels that ``fit`` never saw raise a ``ValueError``: the model gives them no probability, so a score would say
        little. ``sklearn.metrics.accuracy_score(y, model.predict(X))``, or ``scoring="accuracy"`` in a search, counts
        such rows as errors instead.
        """
        check_is_fitted(self)
        if read_targets(y, self.taxonomy_, "below") is not None:
            raise ValueError(
                "y has rows without just one class (a set, an inner node, nothing, probabilities), so nobody knows "
                "what is right; leave them out"
            )
        labels = column_or_1d(y)
        unseen = sorted(set(np.unique(labels).tolist()) - set(self.classes_.tolist()), key=str)
        if unseen:
            raise ValueError(
                f"y has labels that fit never saw: {unseen[:5]}{' ...' if len(unseen) > 5 else ''}. Leave these rows "
                "out, or count them as errors with sklearn.metrics.accuracy_score(y, model.predict(X))."
            )
        return float(super().score(X, y, sample_weight))
