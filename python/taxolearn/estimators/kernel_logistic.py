"""Kernel logistic regression: the estimator."""

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from taxolearn import _core
from taxolearn.couplings.coupling import as_coupling, make_coupling
from taxolearn.couplings.factors import ClassFactors
from taxolearn.estimators.base import TaxonomyClassifier
from taxolearn.estimators.extend import extend_functions
from taxolearn.fitting.expectation import ExpectationResult, fit_expectation
from taxolearn.fitting.fit import Problem, Solver, as_solver, chosen_space, fit_functions
from taxolearn.fitting.functions import ClassFunctions, LinearFunctions
from taxolearn.fitting.warm_start import SolverPoint, transfer
from taxolearn.kernels.argument import assign_kernels, reads_kernel_values, start_kernels
from taxolearn.kernels.base import with_params
from taxolearn.progress import fit_progress, round_progress
from taxolearn.targets import FOR_SEVERAL, PartialLabels, Targets, as_labels, label_targets, read_targets, row_weights
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.cross_validation import CrossValidation, as_tuning
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.tuning.learn import Learned, learn_hyperparameters
from taxolearn.tuning.search import LearningResult
from taxolearn.validation import check_choice, check_inputs, check_number, check_threads

__all__ = [
    "KernelLogisticClassifier",
    "check_arguments",
    "class_functions",
    "fit_targets",
    "set_class_functions",
    "tune",
    "unconverged",
    "with_hyperparameters",
]

_LINKS = {"softmax": "softmax", "independent": "one_of"}  # losses, and how their predictors become probabilities


class KernelLogisticClassifier(TaxonomyClassifier):
    """Multinomial kernel logistic regression with a certificate of its accuracy.

    Minimizes ``sum_i w_i (logsumexp(u_i) - u_i[y_i]) + |f|^2 / 2``, where the class functions
    ``u_c(x) = f_c(x) + b_c`` have a Gaussian process prior: ``f_c`` with the kernel's covariance and the intercepts
    ``b_c`` with variance ``intercept_variance``. All classes are fitted together, so probabilities are those of one
    model. The fit stops when the duality gap, which bounds the distance to the minimum, is proven to be small (Seeger,
    JMLR 9, 2008). Probabilities are those of ``softmax(u(x) / temperature)``. With ``loss="independent"`` each class
    has a logistic loss of its own against all others, and probabilities are proportional to
    ``sigmoid(u(x)) ** (1 / temperature)``.

    With a ``taxonomy`` the functions of related classes go together: ``f_c`` is the sum of independent functions of
    the nodes on the path from the root to the class, each with the kernel's covariance times the variance of its
    node. So classes with few examples, or none, learn from their relatives.

    The hyperparameters, be they three or hundreds, are learned: by gradient descent on the cross-validated log
    likelihood, which takes one more linear system per fold than the fits themselves. The values that are given are
    those it starts from.

    Pipelines, ``clone`` and searches work as with any estimator, parameters of parts by names like
    ``kernel__length_scale``, ``coupling__tying`` or ``tuning__folds``. Tools of scikit-learn that replace labels by
    numbers, such as ``StackingClassifier``, need a tree of these: ``tree, codes = taxonomy.encode(y)``.

    Parameters
    ----------
    kernel : str, Kernel, callable, mapping, list, PerClass, PerNode or PerGroup, default="linear"
        The covariance function, one of ``taxolearn.kernels`` or any callable ``k(X, Y)``. A name, alone or in place of
        any kernel, stands for a kernel whose values suit the data, whether these are learned from there or used as they
        are: "linear", "rbf", "matern", "rational_quadratic", "cosine" or "polynomial". One kernel is shared by all
        classes. ``PerClass``, and under a tree ``PerNode`` and ``PerGroup``, give kernels of their own; so does a
        mapping from labels (or names of nodes or groups) to kernels or, for flat models, a list in the order of
        ``classes_``. For ``Blocks``, a mapping from their names gives every block its kernel, and any other kernel
        is that of each block.
    loss : {"softmax", "independent"}, default="softmax"
        Of all classes together, or of each against the rest. Rows that allow several classes need "softmax".
    taxonomy : Taxonomy, default=None
        The tree of classes. All its leaves are classes of the model, seen in ``y`` or not.
    coupling : {"auto", "tree", "independent"}, Tree, Independent, LearnedCoupling or Graph, default="auto"
        How the taxonomy enters the prior: "tree" as described above, which "auto" means where there is a taxonomy;
        "independent" keeps the functions of the classes independent, a flat model, and uses the taxonomy for its
        classes, node probabilities and decisions only. ``Tree(tying="subtree")`` says which nodes share a variance.
        A ``LearnedCoupling`` learns which classes go together; a ``Graph`` has it from a ``ClassGraph``.
    intercept_variance : float, default=1.0
        Prior variance of the intercepts; 0 leaves them out.
    temperature : float, default=1.0
        What divides predictors before they become probabilities: above 1 for less sure ones. ``tuning`` learns it. The
        prior shrinks predictors, so that probabilities of a well regularized fit are not sure enough; without a
        temperature only variances far too large would mend that.
    tuning : "cv", CrossValidation or None, default="cv"
        "cv" learns the parameters of the kernels that are not fixed, the variances of groups of nodes and
        ``intercept_variance`` on the training data before the model is fitted to all of it. ``CrossValidation`` says
        how. Rows that allow several classes have no part in that; of rows with probabilities one label each is drawn
        for it. None uses the values that are given.
    labels : {"below", "own"} or PartialLabels, default="below"
        What the name of an inner node means as a label: "below" that the class is one of those below the node, nobody
        knows which; "own" a class of its own, for which a leaf is added below the node (``Taxonomy.with_classes``).
        ``PartialLabels`` also says how accurately rows that allow several classes are fitted.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied into ``sample_weight``. A row that allows several classes has the mean of
        their weights, one with probabilities the mean by these; "balanced" counts rows in the same way.
    tol : float, default=1e-6
        Certified duality gap at which to stop, relative to the objective.
    max_iter : int, default=1000
        Largest number of iterations. If it is reached, the model is usable and a ``ConvergenceWarning`` says how far
        the fit came.
    solver : {"auto", "lbfgs", "ncg", "newton", "exact"} or Solver, default="auto"
        How the fit is computed: a method, or a ``Solver`` that also says in which space, in which precision, by which
        products with kernel matrices, and in how much memory.
    warm_start : bool, default=False
        Start from the last fit, if it had the same features. Rows and classes may have come to it, or gone: what the
        last fit knew of the others is carried over, and a new leaf of a tree starts from the function of its parent.
        Learning begins with the hyperparameters that the last fit has learned, except for loadings of a
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
    hyperparameters_ : Hyperparameters
        Those of the fitted model: ``kernel`` (or ``kernels`` by name, where they differ), ``intercept_variance``, under
        a coupling ``variances`` by the name of the group, under a ``LearnedCoupling`` its ``loadings``, and under a
        ``Graph`` its ``ridge``.
    coupling_ : ClassFactors
        Loadings ``B`` and similarities of the classes, under a ``LearnedCoupling`` only.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights of the linear model; there is one row per class, also for two classes. Only for the linear kernel.
        Those of ``Blocks`` are side by side. Sparse after ``taxolearn.prune``.
    expansions_ : list of Expansion
        For other kernels and products, one per kernel: the kernel, the rows it is compared with (``basis``), the
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
        last round is the fit that ``result_`` describes.
    n_iter_ : int
        Iterations of the solver.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where the input had names.
    blocks_in_ : dict
        Where the input was ``Blocks``, the number of features of each by name.

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
        kernel: Any = "linear",
        *,
        loss: str = "softmax",
        taxonomy: Taxonomy | None = None,
        coupling: Any = "auto",
        intercept_variance: float = 1.0,
        temperature: float = 1.0,
        tuning: Any = "cv",
        labels: Any = "below",
        class_weight: Mapping[Any, float] | str | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        solver: Any = "auto",
        warm_start: bool = False,
        n_threads: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.loss = loss
        self.taxonomy = taxonomy
        self.coupling = coupling
        self.intercept_variance = intercept_variance
        self.temperature = temperature
        self.tuning = tuning
        self.labels = labels
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.warm_start = warm_start
        self.n_threads = n_threads
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        is_pairwise = reads_kernel_values(self.kernel)
        tags.input_tags.sparse = not is_pairwise
        tags.input_tags.pairwise = is_pairwise
        return tags

    def _expand(self, name: str, value: Any) -> Any:
        if name == "coupling" and isinstance(value, str):
            return as_coupling(value, self.taxonomy)
        expand: dict[str, Callable[[Any], Any]] = {"tuning": as_tuning, "labels": as_labels, "solver": as_solver}
        return expand.get(name, lambda same: same)(value)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "KernelLogisticClassifier":
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Blocks of shape (n_samples, n_features)
            Inputs. Sparse matrices of any format; CSR with sorted indices is used without a copy.
        y : array or list of shape (n_samples,), or array or data frame of shape (n_samples, n_classes)
            Labels: numbers or strings; with a taxonomy, names of its nodes (see ``labels``). An entry may also be
            a set, list or tuple of labels, one of which is right, or missing (None, NaN, pandas.NA): any class. Two
            dimensions mean probabilities of the classes: in the order of ``predict_proba``, which is that of the
            sorted leaves, or without a taxonomy of the labels 0, 1, 2 and so on; the columns of a data frame name them.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the rows; an integer weight acts like a repetition, but under "low_rank", which sees rows only.

        Returns
        -------
        self
        """
        arguments = check_arguments(self)
        targets = read_targets(y, self.taxonomy, arguments.labels.inner)
        # A stand-in of the same length lets scikit-learn check the rest.
        labelled = y if targets is None else np.zeros(len(targets.labels))
        X, y = check_inputs(self, X, labelled, reset=True, blocks=True)
        targets = label_targets(y, self.taxonomy, arguments.labels.inner) if targets is None else targets
        if self.loss != "softmax" and (targets.allowed is not None or targets.soft is not None):
            raise ValueError(
                f"y has rows without just one class (a set, an inner node, nothing, probabilities); loss={self.loss!r} "
                f'cannot use them: leave them out, or choose loss="softmax". {FOR_SEVERAL}'
            )
        if alike := targets.exchangeable():
            warnings.warn(undecided(alike), UserWarning, stacklevel=2)
        fit_targets(self, arguments, X, targets, sample_weight)
        for message in unconverged(self):
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def tuned(self, X: Any, y: Any, sample_weight: Any = None, folds: Any = None) -> "KernelLogisticClassifier":
        """Learn the hyperparameters only: an unfitted copy that has them as its arguments, and ``tuning=None``.

        With ``tuning=None`` to begin with, there is nothing to learn. Ctrl-C ends it without a result.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``; labels that allow several classes have no part in it.
        folds : as in CrossValidation, optional
            In place of those of ``tuning``.
        """
        return tune(self, X, y, sample_weight, folds)[0]

    def _learned_arguments(self) -> dict[str, Any]:
        return _as_arguments(self, self.hyperparameters_)

    def _adopt(self, again: Any) -> None:
        known, now = self.hyperparameters_, again.hyperparameters_
        is_same = known.loadings is None or np.array_equal(self.classes_, again.classes_)
        if not is_same or list(known.variances) != list(now.variances):
            raise ValueError(
                "refit: y has other classes, and variances or loadings were learned that belong to single classes; "
                "learn those of the new ones with fit"
            )
        learned = {name: getattr(self, name, None) for name in ("cv_result_", "_learned")}
        super()._adopt(again)
        self.__dict__.update(learned)

    @property
    def coupling_(self) -> ClassFactors:
        check_is_fitted(self)
        loadings = self.hyperparameters_.loadings
        if loadings is None:
            raise AttributeError("coupling_ is what a LearnedCoupling found; this model has another coupling")
        return ClassFactors(loadings, self.classes_)

    def _start(self, classes: npt.NDArray[Any], n_features: int) -> ClassFunctions | None:
        """Return the functions of the last fit, if they suit the new problem."""
        if not hasattr(self, "classes_") or not np.array_equal(self.classes_, classes):
            return None
        functions = class_functions(self)
        return functions if functions.n_features == n_features else None

    def _point(
        self, problem: Problem, settings: _core.FitSettings, products: _core.KernelSettings
    ) -> npt.NDArray[np.float64] | None:
        """Find where to begin after an earlier fit of mostly the same rows."""
        last = getattr(self, "_last_point", None)
        return None if last is None else transfer(last, problem, chosen_space(problem, settings, products))

    def _output(self, X: Any, output: str) -> npt.NDArray[np.float64]:
        return class_functions(self).output(X, output, check_threads(self.n_threads))

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
        if self.loss != "softmax":
            raise ValueError(f'with_taxonomy needs loss="softmax", got {self.loss!r}: fit again with the larger tree')
        functions, classes = extend_functions(self, class_functions(self), taxonomy)
        grown = copy.copy(self)
        grown.classes_ = classes
        grown.taxonomy = grown.taxonomy_ = taxonomy
        set_class_functions(grown, functions)
        return grown


@dataclass(frozen=True)
class Arguments:
    """Checked arguments of a model, with names replaced by the values they stand for."""

    solver: Solver
    tuning: CrossValidation | None
    labels: PartialLabels
    intercept_variance: float
    temperature: float
    tol: float
    max_iter: int
    n_threads: int
    verbose: int


def check_arguments(model: KernelLogisticClassifier) -> Arguments:
    """Raise an error for arguments that no data could make right."""
    if not (model.taxonomy is None or isinstance(model.taxonomy, Taxonomy)):
        raise TypeError(f"taxonomy must be a taxolearn.Taxonomy or None, got {type(model.taxonomy).__name__}")
    check_choice("loss", model.loss, tuple(_LINKS))
    verbose = int(model.verbose) if isinstance(model.verbose, bool) else model.verbose
    return Arguments(
        solver=as_solver(model.solver),
        tuning=as_tuning(model.tuning),
        labels=as_labels(model.labels),
        intercept_variance=check_number("intercept_variance", model.intercept_variance, least=0),
        temperature=check_number("temperature", model.temperature, least=0, strict=True),
        tol=check_number("tol", model.tol, least=0, strict=True),
        max_iter=check_number("max_iter", model.max_iter, least=0, integer=True),
        n_threads=check_threads(model.n_threads),
        verbose=check_number("verbose", verbose, least=0, integer=True),
    )


def fit_targets(
    model: KernelLogisticClassifier, arguments: Arguments, X: Any, targets: Targets, sample_weight: Any
) -> Learned | None:
    """Learn hyperparameters and fit to checked inputs: sets all that ``fit`` sets; returns what was learned."""
    tuning, verbose = arguments.tuning, arguments.verbose
    settings = arguments.solver.fit_settings(arguments.tol, arguments.max_iter, keep_point=bool(model.warm_start))
    products = arguments.solver.kernel_settings()
    taxonomy, classes = targets.taxonomy, targets.classes
    weights = row_weights(targets, sample_weight, model.class_weight, X)
    # The core numbers classes as the taxonomy does; everything here is in sorted order.
    in_core_order = targets.in_core_order
    learned: Learned | None = None
    if tuning is None:
        intercept_variance = arguments.intercept_variance
        coupling = make_coupling(taxonomy, model.coupling, in_core_order)
        class_kernels = assign_kernels(start_kernels(model.kernel, X), taxonomy, in_core_order, coupling)
        hyperparameters = Hyperparameters.of(class_kernels.described, intercept_variance, coupling, targets.order)
        hyperparameters = replace(hyperparameters, temperature=arguments.temperature)
    else:
        earlier = getattr(model, "_learned", None) if model.warm_start else None
        learned = learn_hyperparameters(model, tuning, X, targets, sample_weight, earlier=earlier, verbose=verbose)
        class_kernels, hyperparameters = learned.point.class_kernels, learned.hyperparameters
        intercept_variance = hyperparameters.intercept_variance
    problem = Problem(
        X,
        targets.first(),
        weights,
        class_kernels,
        intercept_variance,
        targets.order,
        classes,
        class_kernels.coupling.function_names(taxonomy, in_core_order),
        model.loss,
    )
    start = model._start(classes, X.shape[1]) if model.warm_start else None
    point = model._point(problem, settings, products) if model.warm_start else None
    expectation: ExpectationResult | None = None
    with fit_progress(verbose, arguments.tol) as progress, round_progress(verbose) as round_callback:
        begin: dict[str, Any] = {"start": start, "point": point, "n_threads": arguments.n_threads, "progress": progress}
        if targets.allowed is None:
            fit = fit_functions(problem, settings, products, **begin)
        else:
            fit, expectation = fit_expectation(
                problem,
                targets,
                settings,
                products,
                tol=arguments.labels.tol,
                max_rounds=arguments.labels.max_rounds,
                round_progress=round_callback,
                **begin,
            )
    model.classes_ = classes
    model.taxonomy_ = taxonomy
    model.hyperparameters_ = hyperparameters
    set_class_functions(model, fit.functions)
    model.result_ = fit.result
    model.cv_result_ = None if learned is None else learned.result
    model.em_result_ = expectation
    model._learned = None if learned is None else (learned.identity, learned.result)
    if fit.point is not None:
        model._last_point = SolverPoint.of(problem, fit.result.space, fit.point)
    model.n_iter_ = fit.result.iterations
    return learned


def tune(
    model: KernelLogisticClassifier, X: Any, y: Any, sample_weight: Any = None, folds: Any = None
) -> tuple[KernelLogisticClassifier, LearningResult | None]:
    """What ``tuned`` returns, and how learning went; None where there was nothing to learn."""
    if model.tuning is None:
        return clone(model), None
    tuning = clone(as_tuning(model.tuning))
    if folds is not None:
        tuning.folds = folds
    labels = as_labels(model.labels)
    targets = read_targets(y, model.taxonomy, labels.inner)
    scratch = clone(model)
    labelled = y if targets is None else np.zeros(len(targets.labels))
    X, y = check_inputs(scratch, X, labelled, reset=True, blocks=True)
    targets = label_targets(y, model.taxonomy, labels.inner) if targets is None else targets
    found = learn_hyperparameters(scratch, tuning, X, targets, sample_weight, earlier=None, verbose=int(model.verbose))
    if found.result.status == "interrupted":  # learning is a part of something else here, which ends as a whole
        raise KeyboardInterrupt
    return with_hyperparameters(model, found.hyperparameters), found.result


def with_hyperparameters(model: KernelLogisticClassifier, table: Hyperparameters) -> KernelLogisticClassifier:
    """An unfitted copy that has these hyperparameters as its arguments, and ``tuning=None``."""
    out: KernelLogisticClassifier = clone(model).set_params(**_as_arguments(model, table))
    return out


def _as_arguments(model: KernelLogisticClassifier, table: Hyperparameters) -> dict[str, Any]:
    """The arguments by which a model has these hyperparameters."""
    arguments = {
        "kernel": table.kernels or table.kernel,
        "intercept_variance": table.intercept_variance,
        "temperature": table.temperature,
        "tuning": None,
    }
    coupling: Any = as_coupling(model.coupling, model.taxonomy)
    parts: dict[str, Any]
    if table.loadings is not None:
        base = None if coupling.base is None else as_coupling(coupling.base, model.taxonomy)
        parts = {"B": table.loadings, "base": base and with_params(base, _variances(base, table), "base")}
    else:
        parts = _variances(coupling, table) if table.ridge is None else {"ridge": table.ridge}
    if parts:
        arguments["coupling"] = with_params(coupling, parts, "coupling")
    return arguments


def _variances(coupling: Any, table: Hyperparameters) -> dict[str, Any]:
    """The arguments by which a tree, or independent classes, have these variances; that of the root comes last."""
    values = np.array(list(table.variances.values()))
    if getattr(coupling, "root_variance", None) not in (None, "shared"):
        return {"variances": values[:-1], "root_variance": float(values[-1])}
    return {"variances": values} if len(values) > 0 else {}


def set_class_functions(model: Any, functions: ClassFunctions) -> None:
    """Make fitted functions attributes of the model, in place of those that it had."""
    for name in ("coef_", "expansions_", "_kernel_functions"):
        model.__dict__.pop(name, None)
    model.intercept_ = functions.intercept
    if isinstance(functions, LinearFunctions):
        model.coef_ = functions.coef
    else:
        model.expansions_ = functions.expansions
        model._kernel_functions = functions


def class_functions(model: Any) -> ClassFunctions:
    """Collect the functions of a fitted model from its attributes, which users may have changed."""
    link, temperature = _LINKS[model.loss], model.hyperparameters_.temperature
    if hasattr(model, "coef_"):
        return LinearFunctions(model.coef_, model.intercept_, link, temperature)
    functions: ClassFunctions = model._kernel_functions.with_intercept(model.intercept_).with_link(link, temperature)
    return functions


def undecided(classes: list[Any]) -> str:
    """Word the warning about classes that no row tells apart."""
    listed = ", ".join(map(repr, classes[:3])) + (", ..." if len(classes) > 3 else "")
    return (
        f"y: rows allow {listed} together only, never one of them alone, so the model cannot tell these classes apart. "
        'If an inner node that y names is to be a class of its own, choose labels="own".'
    )


def unconverged(model: Any) -> Iterator[str]:
    """Say what a fitted model fell short of, and what to do about it."""
    if model.em_result_ is not None and model.em_result_.status == "max_rounds":
        labels = as_labels(model.labels)
        yield (
            f"Expectation maximization stopped after max_rounds={labels.max_rounds} rounds. Raise "
            f"PartialLabels(max_rounds=...), or its tol (now {labels.tol:g}) if this accuracy is enough."
        )
    result = model.result_
    reached = f"certified relative gap {result.relative_gap:.1e}, tol={model.tol:g}"
    if result.status == "max_iter":
        yield (
            f"The fit stopped after {result.iterations} iterations ({reached}). Raise max_iter (now {model.max_iter}), "
            "or tol if this accuracy is enough."
        )
    elif result.status != "converged":
        if as_solver(model.solver).precision == "single":
            advice = 'Raise tol, or use Solver(precision="auto").'
        elif hasattr(model, "coef_"):
            advice = "Raise tol, or scale the features."
        else:
            advice = "Raise tol, or lower the variance of the kernel or intercept_variance."
        yield f"The fit cannot get closer to the minimum in this arithmetic ({reached}). {advice}"
