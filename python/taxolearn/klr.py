"""Kernel logistic regression: the estimator."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, column_or_1d

from taxolearn import _core, decisions
from taxolearn._progress import fit_progress
from taxolearn._validation import (
    check_choice,
    check_inputs,
    check_labels,
    check_number,
    check_threads,
    check_weights,
)
from taxolearn.coupling import make_coupling
from taxolearn.kernels import Linear
from taxolearn.taxonomy import Taxonomy

__all__ = ["FitResult", "KernelLogisticClassifier"]

_METHODS = ("lbfgs", "ncg", "newton")
_STATES = ("auto", "coefficients", "weights")
_PRECISIONS = ("auto", "single", "double")
_BATCH = 2**24  # elements of a block of probabilities


@dataclass(frozen=True)
class FitResult:
    """How a fit went.

    Attributes
    ----------
    status : str
        "converged", "max_iter" (stopped early) or "stalled" (the limit of the arithmetic).
    iterations, products : int
        Iterations of the solver and products with the kernel matrix, those of the certificate included.
    objective : float
        Penalized negative log likelihood at the fitted model.
    gap, relative_gap : float
        Certified in double precision: the objective is above its minimum by at most ``gap``; relative means divided
        by the objective.
    algorithm : str
        How products were computed: "sparse", "dense" or "stored".
    state : str
        What the solver worked on: dual "coefficients" or primal "weights".
    precision : str
        Precision of the last products: "single" or "double".
    timings : dict
        Seconds by phase: setup, products, likelihood, vectors, certificate, total.
    """

    status: str
    iterations: int
    products: int
    objective: float
    gap: float
    relative_gap: float
    algorithm: str
    state: str
    precision: str
    timings: dict[str, float]


class KernelLogisticClassifier(ClassifierMixin, BaseEstimator):
    """Multinomial kernel logistic regression with a certificate of its accuracy.

    Minimizes ``sum_i w_i (logsumexp(u_i) - u_i[y_i]) + |f|^2 / 2``, where the class functions
    ``u_c(x) = f_c(x) + b_c`` have a Gaussian process prior: ``f_c`` with the kernel's covariance and the intercepts
    ``b_c`` with variance ``sigma2``. All classes are fitted together, so probabilities are those of one model. The fit
    stops when the duality gap, which bounds the distance to the minimum, is proven to be small (Seeger, JMLR 9, 2008).

    With a ``taxonomy`` the functions of related classes go together: ``f_c`` is the sum of independent functions of
    the nodes on the path from the root to the class, each with the kernel's covariance times the variance of its
    node. So classes with few examples, or none, learn from their relatives.

    Parameters
    ----------
    kernel : Linear, default=None
        The covariance function; None means ``Linear()``.
    taxonomy : Taxonomy, default=None
        The tree of classes. All its leaves are classes of the model, seen in ``y`` or not; labels that lie on inner
        nodes get leaves of their own (``Taxonomy.with_classes``).
    coupling : {"auto", "tree", "identity"}, default="auto"
        How the taxonomy enters the prior: "tree" as described above, which "auto" means where there is a taxonomy;
        "identity" keeps the functions of the classes independent, a flat model, and uses the taxonomy for its
        classes, node probabilities and decisions only.
    tying : {"shared", "level", "subtree", "node"} or array of int, default="level"
        Which nodes share a variance: all; those of the same depth; those below the same child of the root; none. Or
        the group of every node (see ``Taxonomy.groups``).
    variances : float or array of shape (n_groups,), default=None
        Variances of the groups of nodes, relative to the kernel's; None means 1. ``Taxonomy.groups`` tells their order:
        for "level", from below the root downwards. 0 switches a group off. A flat model has only the groups
        that hold classes.
    sigma2 : float, default=1.0
        Prior variance of the intercepts; 0 leaves them out.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied into ``sample_weight``.
    tol : float, default=1e-6
        Certified duality gap at which to stop, relative to the objective.
    max_iter : int, default=1000
        Largest number of iterations. If it is reached, the model is usable and a ``ConvergenceWarning`` says how far
        the fit came.
    method : {"lbfgs", "ncg", "newton"}, default="lbfgs"
        Limited-memory BFGS; nonlinear conjugate gradients, which needs the least memory; or Newton steps by linear
        conjugate gradients, slower, as a cross-check.
    state : {"auto", "coefficients", "weights"}, default="auto"
        Work on dual coefficients (one per row and class) or on primal weights (one per feature and class, or node);
        "auto" takes the smaller. Both give the same model.
    precision : {"auto", "single", "double"}, default="auto"
        Precision of the products with the inputs. "auto" uses single precision for large problems and changes to double
        when the certificate asks for it. The certificate is always in double precision.
    warm_start : bool, default=False
        Start from the last fit, if it had the same classes and number of features.
    n_threads : int or None, default=None
        Number of threads; None takes all that the process may use.
    random_state : int, RandomState instance or None, default=None
        Not used by a fit with given hyperparameters: it is deterministic.
    verbose : int, default=0
        0 shows a progress bar for long fits on a terminal, 1 at once, 2 prints a line per iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; with a taxonomy all its leaves.
    taxonomy_ : Taxonomy or None
        The taxonomy, with a leaf for every label.
    hyperparameters_ : dict
        Those of the fitted model: "variance", "sigma2" and, under a coupling, "variances" by the name of the group.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights of the linear model; there is one row per class, also for two classes.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts.
    result_ : FitResult
        How the fit went: status, certified gap, counts, timings.
    n_iter_ : int
        Iterations of the solver.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where the input had names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from taxolearn import KernelLogisticClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelLogisticClassifier().fit(X, y)
    >>> model.predict(X[:1])
    array([0])
    >>> model.result_.status
    'converged'
    """

    def __init__(
        self,
        kernel: Linear | None = None,
        *,
        taxonomy: Taxonomy | None = None,
        coupling: str = "auto",
        tying: Any = "level",
        variances: Any = None,
        sigma2: float = 1.0,
        class_weight: Mapping[Any, float] | str | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        method: str = "lbfgs",
        state: str = "auto",
        precision: str = "auto",
        warm_start: bool = False,
        n_threads: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.taxonomy = taxonomy
        self.coupling = coupling
        self.tying = tying
        self.variances = variances
        self.sigma2 = sigma2
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.method = method
        self.state = state
        self.precision = precision
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "KernelLogisticClassifier":
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs. Sparse matrices of any format; CSR with sorted indices is used without a copy.
        y : array of shape (n_samples,)
            Labels: numbers or strings; with a taxonomy, names of its nodes.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the rows; an integer weight acts like a repetition.

        Returns
        -------
        self
        """
        kernel = Linear() if self.kernel is None else self.kernel
        if not isinstance(kernel, Linear):
            raise TypeError(f"kernel must be a taxolearn.kernels.Linear or None, got {type(kernel).__name__}")
        if not (self.taxonomy is None or isinstance(self.taxonomy, Taxonomy)):
            raise TypeError(f"taxonomy must be a taxolearn.Taxonomy or None, got {type(self.taxonomy).__name__}")
        settings = {
            "sigma2": check_number("sigma2", self.sigma2, least=0),
            "tol": check_number("tol", self.tol, least=0, strict=True),
            "max_iter": check_number("max_iter", self.max_iter, least=0, integer=True),
            "method": check_choice("method", self.method, _METHODS),
            "state": check_choice("state", self.state, _STATES),
            "precision": check_choice("precision", self.precision, _PRECISIONS),
            "n_threads": check_threads(self.n_threads),
        }
        verbose = int(self.verbose) if isinstance(self.verbose, bool) else self.verbose
        verbose = check_number("verbose", verbose, least=0, integer=True)
        X, y = check_inputs(self, X, y, reset=True)
        seen, indices = check_labels(y, least=2 if self.taxonomy is None else 1)
        taxonomy = None if self.taxonomy is None else self.taxonomy.with_classes(seen, argument="y")
        unseen = () if taxonomy is None else taxonomy.classes.tolist()
        weights = check_weights(sample_weight, self.class_weight, X, seen, indices, unseen)
        coupling, variances = make_coupling(taxonomy, self.coupling, self.tying, self.variances)
        # The core numbers classes as the taxonomy does; everything here is in sorted order.
        classes, order = seen, np.arange(len(seen))
        if taxonomy is not None:
            order = np.argsort(taxonomy.classes, kind="stable")
            classes = taxonomy.classes[order]
            indices = taxonomy.leaf_index(seen)[indices].astype(np.int32)
        start = self._start_weights(classes, order, X.shape[1]) if self.warm_start else None

        with fit_progress(verbose, settings["tol"]) as progress:
            outcome = _core.fit_linear(
                X=X,
                targets=indices,
                n_classes=len(classes),
                sample_weight=weights,
                coupling=coupling,
                variance=kernel.variance,
                start_weights=start,
                progress=progress,
                **settings,
            )
        self.classes_ = classes
        self.taxonomy_ = taxonomy
        self.hyperparameters_ = {"variance": kernel.variance, "sigma2": settings["sigma2"]}
        if variances:
            self.hyperparameters_["variances"] = variances
        self.coef_ = outcome.pop("weights").T if taxonomy is None else outcome.pop("weights").take(order, axis=1).T
        self.intercept_ = outcome.pop("intercepts")[order]
        self.result_ = FitResult(**outcome)
        self.n_iter_ = self.result_.iterations
        self._warn_unless_converged()
        return self

    def _start_weights(
        self, classes: npt.NDArray[Any], order: npt.NDArray[np.intp], n_features: int
    ) -> npt.NDArray[np.float64] | None:
        """Weights of the last fit in the core's layout, if they fit the new problem."""
        if not hasattr(self, "coef_") or not np.array_equal(self.classes_, classes):
            return None
        if self.coef_.shape[1] != n_features:
            return None
        place = np.argsort(order)
        return np.concatenate([self.coef_.T[:, place].ravel(), self.intercept_[place]])

    def _warn_unless_converged(self) -> None:
        result = self.result_
        reached = f"certified relative gap {result.relative_gap:.1e}, tol={self.tol:g}"
        if result.status == "max_iter":
            advice = f"Raise max_iter (now {self.max_iter}), or tol if this accuracy is enough."
            what = f"The fit stopped after {result.iterations} iterations ({reached})."
        elif result.status == "stalled":
            what = f"The fit cannot get closer to the minimum in this arithmetic ({reached})."
            advice = "Raise tol" + (
                ', or use precision="auto".' if self.precision == "single" else ", or scale the features."
            )
        else:
            return
        warnings.warn(f"{what} {advice}", ConvergenceWarning, stacklevel=3)

    def _predict(self, X: Any, output: str) -> npt.NDArray[np.float64]:
        check_is_fitted(self)
        return self._output(check_inputs(self, X, reset=False), output)

    def _output(self, X: Any, output: str) -> npt.NDArray[np.float64]:
        """What the model says of checked inputs."""
        out: npt.NDArray[np.float64] = _core.predict_linear(
            X=X,
            weights=np.ascontiguousarray(self.coef_.T),
            intercepts=self.intercept_,
            output=output,
            n_threads=check_threads(self.n_threads),
        )
        return out

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

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on labelled data.

        Labels that ``fit`` never saw raise a ``ValueError``: the model gives them no probability, so a score would say
        little. ``sklearn.metrics.accuracy_score(y, model.predict(X))``, or ``scoring="accuracy"`` in a search, counts
        such rows as errors instead.
        """
        check_is_fitted(self)
        labels = column_or_1d(y)
        unseen = sorted(set(np.unique(labels).tolist()) - set(self.classes_.tolist()), key=str)
        if unseen:
            raise ValueError(
                f"y has labels that fit never saw: {unseen[:5]}{' ...' if len(unseen) > 5 else ''}. Leave these rows "
                "out, or count them as errors with sklearn.metrics.accuracy_score(y, model.predict(X))."
            )
        return float(super().score(X, y, sample_weight))
