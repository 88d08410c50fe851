"""Kernel logistic regression: the estimator."""

import copy
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, column_or_1d

from taxolearn import decisions
from taxolearn.couplings.base import make_coupling
from taxolearn.couplings.factors import ClassFactors
from taxolearn.estimators.convergence import unconverged, undecided
from taxolearn.estimators.explain import NodeExplanation, explain_rows
from taxolearn.estimators.extend import extend_functions
from taxolearn.fitting.expectation import ExpectationResult, fit_expectation
from taxolearn.fitting.functions import ClassFunctions, LinearFunctions
from taxolearn.fitting.run import FitResult, Problem, Products, check_products, choose_state, fit_functions
from taxolearn.fitting.warm_start import begin_at, keep_ending
from taxolearn.kernels.assignment import assign_kernels
from taxolearn.kernels.functions import Kernel, Linear
from taxolearn.kernels.initial import start_kernels
from taxolearn.progress import fit_progress, round_progress
from taxolearn.targets.read import INNER_LABELS, label_targets, read_targets
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.learn import learn_for
from taxolearn.tuning.search import LearningResult
from taxolearn.validation import (
    check_choice,
    check_inputs,
    check_number,
    check_threads,
)

__all__ = ["ExpectationResult", "FitResult", "KernelLogisticClassifier", "LearningResult"]

_HYPERPARAMETERS = ("cv", "fixed")
_METHODS = ("auto", "lbfgs", "ncg", "newton", "exact")
_STATES = ("auto", "coefficients", "weights")
_PRECISIONS = ("auto", "single", "double")
_BATCH = 2**24  # elements of a block of probabilities


class KernelLogisticClassifier(ClassifierMixin, BaseEstimator):
    """Multinomial kernel logistic regression with a certificate of its accuracy.

    Minimizes ``sum_i w_i (logsumexp(u_i) - u_i[y_i]) + |f|^2 / 2``, where the class functions
    ``u_c(x) = f_c(x) + b_c`` have a Gaussian process prior: ``f_c`` with the kernel's covariance and the intercepts
    ``b_c`` with variance ``sigma2``. All classes are fitted together, so probabilities are those of one model. The fit
    stops when the duality gap, which bounds the distance to the minimum, is proven to be small (Seeger, JMLR 9, 2008).

    With a ``taxonomy`` the functions of related classes go together: ``f_c`` is the sum of independent functions of
    the nodes on the path from the root to the class, each with the kernel's covariance times the variance of its
    node. So classes with few examples, or none, learn from their relatives.

    The hyperparameters, be they three or hundreds, are learned: by gradient descent on the cross-validated log
    likelihood, which takes one more linear system per fold than the fits themselves. The values that are given are
    those it starts from.

    Parameters
    ----------
    kernel : Kernel, callable, mapping, list, PerClass, PerNode or PerGroup, or str, default=None
        The covariance function, one of ``taxolearn.kernels`` or any callable ``k(X, Y)``. A name, alone or in place of
        any kernel, stands for one whose values suit the data: "linear" (which None means), "rbf", "matern",
        "rational_quadratic", "cosine" or "polynomial". One kernel is shared by all classes. ``PerClass``, and under a
        tree ``PerNode`` and ``PerGroup``, give kernels of their own; so does a mapping from labels (or names of nodes
        or groups) to kernels or, for flat models, a list in the order of ``classes_``.
    taxonomy : Taxonomy, default=None
        The tree of classes. All its leaves are classes of the model, seen in ``y`` or not.
    inner_labels : {"below", "own"}, default="below"
        What the name of an inner node means as a label: "below" that the class is one of those below the node, nobody
        knows which; "own" a class of its own, for which a leaf is added below the node (``Taxonomy.with_classes``).
    coupling : {"auto", "tree", "identity"} or LearnedCoupling, default="auto"
        How the taxonomy enters the prior: "tree" as described above, which "auto" means where there is a taxonomy;
        "identity" keeps the functions of the classes independent, a flat model, and uses the taxonomy for its
        classes, node probabilities and decisions only. A ``LearnedCoupling`` learns which classes go together.
    tying : {"shared", "level", "subtree", "node"} or array of int, default="level"
        Which nodes share a variance: all; those of the same depth; those below the same child of the root; none. Or
        the group of every node (see ``Taxonomy.groups``).
    variances : float or array of shape (n_groups,), default=None
        Variances of the groups of nodes, relative to the kernel's; None means 1. ``Taxonomy.groups`` tells their order:
        for "level", from below the root downwards. 0 switches a group off. A flat model has only the groups
        that hold classes.
    sigma2 : float, default=1.0
        Prior variance of the intercepts; 0 leaves them out.
    hyperparameters : {"cv", "fixed"}, default="cv"
        "cv" learns the parameters of the kernels that are not fixed, the variances of groups of nodes and ``sigma2``
        on the training data before the model is fitted to all of it. Rows that allow several classes have no part in
        that; of rows with probabilities one label each is drawn for it. "fixed" uses the values that are given (of the
        linear kernel 1, if none is given).
    cv : int, splitter of scikit-learn, iterable of pairs (train, test), or array of int, default=5
        Number of folds, stratified, or the folds themselves (see ``taxolearn.model_selection``).
    cv_partitions : int, default=1
        Partitions into folds over which the criterion is averaged.
    cv_samples : int or float, default=None
        Learn hyperparameters on a random subset of so many rows, or such a share of them.
    learn_sigma2 : bool, default=True
        Whether ``sigma2`` is learned.
    max_evaluations : int, default=100
        Largest number of evaluations of the criterion. They may also be ended by Ctrl-C: the model is then fitted with
        the best hyperparameters so far.
    time_limit : float, default=None
        Seconds that learning hyperparameters may take; the final fit comes after it.
    checkpoint : path, default=None
        A file that learning writes after each evaluation and goes on from if it is there already.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied into ``sample_weight``. A row that allows several classes has the mean of
        their weights, one with probabilities the mean by these; "balanced" counts rows in the same way.
    tol : float, default=1e-6
        Certified duality gap at which to stop, relative to the objective.
    max_iter : int, default=1000
        Largest number of iterations. If it is reached, the model is usable and a ``ConvergenceWarning`` says how far
        the fit came.
    em_tol : float, default=1e-4
        Where rows allow several classes: relative change of the marginal likelihood at which to stop.
    em_rounds : int, default=100
        Largest number of rounds there.
    method : {"auto", "lbfgs", "ncg", "newton", "exact"}, default="auto"
        Limited-memory BFGS; nonlinear conjugate gradients, which needs the least memory; Newton steps by linear
        conjugate gradients, slower, as a cross-check; or Newton steps by Cholesky factors, for flat models, in time
        O(n_classes n_samples^3). "auto" is "lbfgs" where its vectors fit into ``memory_limit``, else "ncg", and "exact"
        where these come to no end on a small flat problem. ``result_.reason`` says what was chosen and why.
    algorithm : {"auto", "gram", "tiled", "low_rank"}, default="auto"
        How to multiply with kernel matrices. "gram" stores them; "tiled" computes their entries anew for each product
        and needs next to no memory; "low_rank" approximates them by an incomplete Cholesky factorization. "auto" is
        "gram" where it fits into ``memory_limit``, else "tiled", and "low_rank" if a rank or its tolerance is given.
        For the linear kernel it uses the features themselves.
    rank : int, default=None
        Largest rank of the approximation by "low_rank".
    rank_tolerance : float, default=None
        Share of the trace of the kernel matrix at which to stop raising the rank; None means 0 where a rank is given,
        else 0.001.
    memory_limit : float or str, default=None
        Bytes, or a text like "8 GB", that kernel matrices may take; None means half of the machine's memory.
    state : {"auto", "coefficients", "weights"}, default="auto"
        Work on dual coefficients (one per row and class) or on primal weights (one per feature and class, or node);
        "auto" takes the smaller. Both give the same model. Weights exist for the linear kernel only.
    precision : {"auto", "single", "double"}, default="auto"
        Precision of the products with the inputs. "auto" uses single precision for large problems and changes to double
        when the certificate asks for it. The certificate is always in double precision.
    warm_start : bool, default=False
        Start from the last fit, if it had the same features. Rows and classes may have come to it, or gone: what the
        last fit knew of the others is carried over, and a new leaf of a tree starts from the function of its parent.
        Learning begins with the hyperparameters that the last fit has learned, but for loadings of a
        ``LearnedCoupling``. Keeps the solver's last point, of the size of the model or of one number per row and class.
    n_threads : int or None, default=None
        Number of threads; None takes all that the process may use.
    random_state : int, RandomState instance or None, default=0
        Of the folds and of the subset they are made from. A fit with given hyperparameters has nothing random.
    verbose : int, default=0
        0 shows a progress bar for long fits on a terminal, 1 at once, 2 prints a line per iteration.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted; with a taxonomy all its leaves.
    taxonomy_ : Taxonomy or None
        The taxonomy, with a leaf for every label.
    hyperparameters_ : dict
        Those of the fitted model: "kernel" (or "kernels" by name, where they differ), "sigma2" and, under a coupling,
        "variances" by the name of the group; for the linear kernel also its "variance"; under a ``LearnedCoupling``
        its loadings, "coupling".
    coupling_ : ClassFactors
        Loadings ``B`` and similarities of the classes, under a ``LearnedCoupling`` only.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights of the linear model; there is one row per class, also for two classes. Only for the linear kernel.
        Sparse after ``taxolearn.prune``.
    expansions_ : list of Expansion
        For other kernels and algorithms, one per kernel: the kernel, the rows it is compared with (``basis``), the
        ``coefficients``, and the ``functions`` (classes or nodes) that their columns belong to.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts.
    result_ : FitResult
        How the fit went: status, certified gap, counts, timings.
    cv_result_ : LearningResult or None
        How the hyperparameters were learned: every evaluation of the criterion with its parameters, gradient and time.
        ``taxolearn.plotting.learning_trace`` draws it.
    em_result_ : ExpectationResult or None
        How rows that allow several classes were dealt with: the bound after each round, rounds and products in all. The
        last round is the fit that ``result_`` tells of.
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
        kernel: Any = None,
        *,
        taxonomy: Taxonomy | None = None,
        inner_labels: str = "below",
        coupling: Any = "auto",
        tying: Any = "level",
        variances: Any = None,
        sigma2: float = 1.0,
        hyperparameters: str = "cv",
        cv: Any = 5,
        cv_partitions: int = 1,
        cv_samples: float | None = None,
        learn_sigma2: bool = True,
        max_evaluations: int = 100,
        time_limit: float | None = None,
        checkpoint: Any = None,
        class_weight: Mapping[Any, float] | str | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        em_tol: float = 1e-4,
        em_rounds: int = 100,
        method: str = "auto",
        algorithm: str = "auto",
        rank: int | None = None,
        rank_tolerance: float | None = None,
        memory_limit: float | str | None = None,
        state: str = "auto",
        precision: str = "auto",
        warm_start: bool = False,
        n_threads: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.taxonomy = taxonomy
        self.inner_labels = inner_labels
        self.coupling = coupling
        self.tying = tying
        self.variances = variances
        self.sigma2 = sigma2
        self.hyperparameters = hyperparameters
        self.cv = cv
        self.cv_partitions = cv_partitions
        self.cv_samples = cv_samples
        self.learn_sigma2 = learn_sigma2
        self.max_evaluations = max_evaluations
        self.time_limit = time_limit
        self.checkpoint = checkpoint
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.em_tol = em_tol
        self.em_rounds = em_rounds
        self.method = method
        self.algorithm = algorithm
        self.rank = rank
        self.rank_tolerance = rank_tolerance
        self.memory_limit = memory_limit
        self.state = state
        self.precision = precision
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._reads_kernel_values()
        tags.input_tags.pairwise = self._reads_kernel_values()
        return tags

    def _reads_kernel_values(self) -> bool:
        """Whether X holds kernel values instead of features."""
        kernels = getattr(self.kernel, "kernel", self.kernel)  # of PerClass and its like
        if isinstance(kernels, Mapping):
            kernels = list(kernels.values())
        each = kernels if isinstance(kernels, (list, tuple)) else [kernels]
        return any(isinstance(kernel, Kernel) and kernel.is_precomputed for kernel in each)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "KernelLogisticClassifier":
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs. Sparse matrices of any format; CSR with sorted indices is used without a copy.
        y : array or list of shape (n_samples,), or array or data frame of shape (n_samples, n_classes)
            Labels: numbers or strings; with a taxonomy, names of its nodes (see ``inner_labels``). An entry may also be
            a set, list or tuple of labels, one of which is right, or missing (None, NaN, pandas.NA): any class. Two
            dimensions mean probabilities of the classes: in the order of ``predict_proba``, which is that of the
            sorted leaves, or without a taxonomy of the labels 0, 1, 2 and so on; the columns of a data frame name them.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the rows; an integer weight acts like a repetition, but under "low_rank", which sees rows only.

        Returns
        -------
        self
        """
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
        products = check_products(self.algorithm, self.memory_limit, self.rank, self.rank_tolerance)
        inner_labels = check_choice("inner_labels", self.inner_labels, INNER_LABELS)
        rounds = {
            "tol": check_number("em_tol", self.em_tol, least=0),
            "max_rounds": check_number("em_rounds", self.em_rounds, least=1, integer=True),
        }
        targets = read_targets(y, self.taxonomy, inner_labels)
        # A stand-in of the same length lets scikit-learn check the rest.
        X, y = check_inputs(self, X, y if targets is None else np.zeros(len(targets.labels)), reset=True)
        targets = label_targets(y, self.taxonomy, inner_labels) if targets is None else targets
        if alike := targets.exchangeable():
            warnings.warn(undecided(alike), UserWarning, stacklevel=2)
        taxonomy, classes = targets.taxonomy, targets.classes
        weights = targets.weights(sample_weight, self.class_weight, X)
        # The core numbers classes as the taxonomy does; everything here is in sorted order.
        in_core_order = targets.in_core_order
        learned: LearningResult | None = None
        if check_choice("hyperparameters", self.hyperparameters, _HYPERPARAMETERS) == "cv":
            setting, described, learned = learn_for(
                self, X, targets, sample_weight, settings, is_pairwise=self._reads_kernel_values(), verbose=verbose
            )
            class_kernels, settings["sigma2"] = setting.class_kernels, setting.sigma2
        else:
            kernel = None if self.kernel is None else start_kernels(self.kernel, X)
            given = make_coupling(taxonomy, self.coupling, self.tying, self.variances, in_core_order)
            class_kernels = assign_kernels(kernel, taxonomy, in_core_order, given, self.tying)
            described = self._describe(class_kernels.described, settings["sigma2"], given.by_name)
            described |= {} if given.loadings is None else {"coupling": given.loadings[targets.order]}
        coupling = class_kernels.coupling
        names = taxonomy.names[1:] if taxonomy is not None and coupling.parents is not None else in_core_order.tolist()
        problem = Problem(X, targets.first(), len(classes), weights, class_kernels, targets.order, classes, list(names))
        start, settings["keep_point"] = None, bool(self.warm_start)
        if self.warm_start:
            start = self._start(classes, X.shape[1])
            problem = self._begin(problem, products, settings)
        expectation: ExpectationResult | None = None
        with fit_progress(verbose, settings["tol"]) as progress:
            settings["progress"] = progress
            if targets.allowed is None:
                functions, result, point = fit_functions(problem, products, start, settings)
            else:
                with round_progress(verbose) as told:
                    functions, result, point, expectation = fit_expectation(
                        problem, targets, products, start, settings, progress=told, **rounds
                    )
        self.classes_ = classes
        self.taxonomy_ = taxonomy
        self.hyperparameters_ = described
        self._keep(functions)
        self.result_ = result
        self.cv_result_ = learned
        self.em_result_ = expectation
        if self.warm_start:
            self._ending = keep_ending(problem, result.state, point, settings["sigma2"])
        self.n_iter_ = result.iterations
        for message in unconverged(self):
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    @staticmethod
    def _describe(kernels: Any, sigma2: float, variances: dict[str, float]) -> dict[str, Any]:
        out: dict[str, Any] = {"kernels" if isinstance(kernels, dict) else "kernel": kernels, "sigma2": sigma2}
        if isinstance(kernels, Linear):
            out["variance"] = kernels.variance
        return out | ({"variances": variances} if variances else {})

    @property
    def coupling_(self) -> ClassFactors:
        check_is_fitted(self)
        if "coupling" not in self.hyperparameters_:
            raise AttributeError("coupling_ is what a LearnedCoupling found; this model has another coupling")
        return ClassFactors(self.hyperparameters_["coupling"], self.classes_)

    def _keep(self, functions: ClassFunctions) -> None:
        """Make the fitted functions attributes."""
        for name in ("coef_", "expansions_", "_kernel_functions"):
            self.__dict__.pop(name, None)
        self.intercept_ = functions.intercept
        if isinstance(functions, LinearFunctions):
            self.coef_ = functions.coef
        else:
            self.expansions_ = functions.expansions
            self._kernel_functions = functions

    def _functions(self) -> ClassFunctions:
        """The fitted functions, from the attributes."""
        if hasattr(self, "coef_"):
            return LinearFunctions(self.coef_, self.intercept_)
        return self._kernel_functions.with_intercept(self.intercept_)

    def _start(self, classes: npt.NDArray[Any], n_features: int) -> ClassFunctions | None:
        """Functions of the last fit, if they fit the new problem."""
        if not hasattr(self, "classes_") or not np.array_equal(self.classes_, classes):
            return None
        functions = self._functions()
        return functions if functions.n_features == n_features else None

    def _begin(self, problem: Problem, products: Products, settings: dict[str, Any]) -> Problem:
        """The problem, to begin where the last fit of mostly the same rows ended."""
        ending = getattr(self, "_ending", None)
        if ending is None:
            return problem
        state = choose_state(problem, products, settings)
        return replace(problem, start_point=begin_at(ending, problem, state, settings["sigma2"]))

    def _predict(self, X: Any, output: str) -> npt.NDArray[np.float64]:
        check_is_fitted(self)
        return self._output(check_inputs(self, X, reset=False), output)

    def _output(self, X: Any, output: str) -> npt.NDArray[np.float64]:
        """What the model says of checked inputs."""
        return self._functions().output(X, output, check_threads(self.n_threads))

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

    def with_taxonomy(self, taxonomy: Taxonomy) -> "KernelLogisticClassifier":
        """A copy of the fitted model whose classes are the leaves of a larger tree, without a fit.

        A new leaf has the function of the lowest node above it that the model knows, so it gets the share of a child of
        which nothing else is known, and no intercept, the mean of all classes. Leaves below what was a class share its
        probability evenly. The probabilities of other classes keep their ratios. A fit to rows of the new classes, with
        ``warm_start`` from here on, tells them apart.

        Parameters
        ----------
        taxonomy : Taxonomy
            The tree of the model, ``taxonomy_``, with more nodes:
            ``Taxonomy.from_edges([*model.taxonomy_.to_edges(), ("animal", "animal/otter")])``.
        """
        check_is_fitted(self)
        functions, classes = extend_functions(self, self._functions(), taxonomy)
        grown = copy.copy(self)
        grown.classes_ = classes
        grown.taxonomy = grown.taxonomy_ = taxonomy
        grown._keep(functions)
        return grown

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
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs.
        node : name of a node or class, or one for each row, optional
            Where the path leads to; by default the most probable class.
        top : int, default=10
            How many features to name, those with the largest part first.
        feature_names : sequence of length n_features, optional
            Names of the features; by default those of the data frame in ``fit``, or numbers.

        Returns
        -------
        list of lists of NodeExplanation
            For each row, the nodes on the path from below the root; without a taxonomy the class alone.
        """
        check_is_fitted(self)
        if not hasattr(self, "coef_"):
            raise ValueError("explain needs a linear model: weights of features are what it tells")
        X = check_inputs(self, X, reset=False)
        names = getattr(self, "feature_names_in_", None) if feature_names is None else feature_names
        u = self._output(X, "predictor")
        return explain_rows(X, self.coef_, u, self.classes_, self.taxonomy_, node, top=top, feature_names=names)

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
