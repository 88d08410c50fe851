"""Hierarchical Bayesian logistic regression: weights lean on those of parents, and how much is inferred."""

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from taxolearn.couplings.coupling import ClassCoupling
from taxolearn.estimators.label_sets import LabelSetClassifier
from taxolearn.fitting.bayes import (
    BayesFit,
    BayesState,
    GammaValues,
    NodePrecisions,
    canonical,
    fit_map,
    fitted_prior,
    proportions_prior,
    start_variance,
)
from taxolearn.fitting.fit import Problem, as_solver
from taxolearn.fitting.functions import LinearFunctions, linked
from taxolearn.fitting.variational import fit_variational
from taxolearn.kernels import Linear
from taxolearn.kernels.argument import ClassKernels
from taxolearn.progress import fit_progress, round_progress
from taxolearn.targets import (
    LabelForm,
    Targets,
    is_label_sets,
    label_targets,
    read_label_sets,
    read_targets,
    row_weights,
    set_targets,
)
from taxolearn.taxonomy.tree import Taxonomy
from taxolearn.tuning.checkpoint import fingerprint, read_checkpoint, write_checkpoint
from taxolearn.tuning.hyperparameters import Hyperparameters
from taxolearn.validation import check_choice, check_inputs, check_number, check_threads

__all__ = ["HierarchicalBayesClassifier"]

Floats = npt.NDArray[np.float64]

_VARIANTS = ("M1", "M2", "M3")
_INFERENCES = {"map": 100, "variational": 1000}  # with most rounds, unless max_rounds says so
_LIKELIHOODS = ("softmax", "independent")
_PRIORS = ("proportions", "fitted")
_RECORD = np.dtype([("change", np.float64)])


class HierarchicalBayesClassifier(LabelSetClassifier):
    """Logistic regression over a tree of classes whose prior variances are inferred, without cross-validation.

    Weights of a node are Gaussian around those of its parent, ``w_n ~ N(w_parent(n), I / alpha)``, the labels of rows
    are drawn from the leaves, and the precisions ``alpha`` have Gamma priors that come from the data (Gopal, Yang,
    TKDD 9, 2015, section 3). Inference alternates the most probable weights at given variances, a certified fit, with
    the posterior of the precisions given the weights. The docs page "Hierarchical Bayes" derives all of it.

    Parameters
    ----------
    taxonomy : Taxonomy, default=None
        The tree of classes. Without one the weights of all classes lean on zero: a flat model.
    variant : {"M1", "M2", "M3"}, default="M3"
        What has a precision of its own: the children of a node together; these for each feature, by variational
        inference only; or each node.
    inference : {"map", "variational"}, default="map"
        "map" takes the most probable weights, around which their posterior is a Gaussian with the diagonal of the
        Hessian. "variational" finds the Gaussian of all weights together that makes a lower bound of the likelihood
        largest, for up to a few hundred features, which it takes as a dense array.
    likelihood : {"softmax", "independent"}, default="softmax"
        Of all classes together, or of each against the rest, which any number of labels per row need.
    prior : {"proportions", "fitted"}, default="proportions"
        Where the priors of the precisions come from: the observed information at the shares of the classes, or at the
        probabilities of a flat fit of each class against the rest.
    average : {"probit"}, int or None, default=None
        How probabilities are computed: None takes the most probable weights; "probit" averages over the posterior of
        the weights by MacKay's formula; a number averages over so many samples of it, drawn with ``random_state``.
        Averaged ones are less sure, most of all far from the rows of ``fit``.
    intercept_variance : float, default=1.0
        Prior variance of the intercepts of the classes; 0 leaves them out. They do not lean on those of parents.
    variances : array of shape (n_groups,) or (n_features, n_groups), default=None
        Prior variances to begin from, one per name of ``posterior_.precisions``; with ``max_rounds=0`` those of the
        model. None stands for values that suit the scale of the data.
    round_tol : float, default=0.02
        Rounds end when the logarithm of no variance changes by more than this.
    max_rounds : int, default=None
        Largest number of rounds; None stands for 100, or 1000 of variational inference. If it is reached, the model is
        usable, and a ``ConvergenceWarning`` says so.
    checkpoint : str or path, default=None
        File that holds the state after every round of ``inference="map"``. A fit of the same problem goes on from
        there.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied into ``sample_weight``.
    tol : float, default=1e-6
        Certified duality gap of the last fit, relative to the objective; rounds before it are content with less. Of
        variational inference, the rise of the bound in a round, relative to its size, at which it ends.
    max_iter : int, default=1000
        Largest number of iterations of each fit.
    solver : {"auto", "lbfgs", "ncg"} or Solver, default="auto"
        How fits are computed, as in ``KernelLogisticClassifier``.
    warm_start : bool, default=False
        Begin with the variances of the last fit, if it had the same groups of nodes.
    n_threads : int or None, default=None
        Number of threads; None takes all that the process may use.
    random_state : int, RandomState instance or None, default=0
        Of the samples by which probabilities are averaged.
    verbose : int, default=0
        0 shows progress for long fits on a terminal, 1 at once, 2 prints a line per iteration and round.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted: with a taxonomy all its leaves, and for several labels per row all its nodes but the root.
    taxonomy_ : Taxonomy or None
        The taxonomy; for one label per row, with a leaf for every label.
    posterior_ : WeightPosterior
        Variances of weights and intercepts (``coef_variances``, ``intercept_variances``), and the Gamma distributions
        of precisions before and after the data (``prior``, ``precisions``), whose ``names`` are those of the groups.
    coef_ : ndarray of shape (n_classes, n_features)
        The most probable weights, which are the means of their posterior.
    intercept_ : ndarray of shape (n_classes,)
        Intercepts.
    hyperparameters_ : Hyperparameters
        Inferred variances of the groups by their names, for "M2" means over the features, and what was given.
    bayes_result_ : BayesResult
        How inference went: status, rounds, changes of variances or values of the bound.
    result_ : FitResult or None
        How the last fit went, with its certified gap; None for variational inference.
    is_multilabel_ : bool
        Whether ``y`` had any number of labels per row.
    label_form_ : LabelForm or None
        How these were written.
    n_iter_ : int
        Iterations of the solver in all rounds; rounds of variational inference.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where the input had names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from taxolearn import HierarchicalBayesClassifier, Taxonomy
    >>> X, y = load_iris(return_X_y=True)
    >>> labels = [["setosa", "others/versicolor", "others/virginica"][k] for k in y]
    >>> model = HierarchicalBayesClassifier(Taxonomy.from_labels(labels)).fit(X, labels)
    >>> model.predict(X[:1]).tolist()
    ['setosa']
    >>> model.posterior_.precisions.names
    ('others', 'setosa', 'others/versicolor', 'others/virginica')
    """

    _gives_thresholds = "another classifier, such as RecursiveRegularizationClassifier"
    offset_ = 0.0
    thresholds_ = None

    def __init__(
        self,
        taxonomy: Taxonomy | None = None,
        *,
        variant: str = "M3",
        inference: str = "map",
        likelihood: str = "softmax",
        prior: str = "proportions",
        average: str | int | None = None,
        intercept_variance: float = 1.0,
        variances: Any = None,
        round_tol: float = 0.02,
        max_rounds: int | None = None,
        checkpoint: Any = None,
        class_weight: Mapping[Any, float] | str | None = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        solver: Any = "auto",
        warm_start: bool = False,
        n_threads: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.taxonomy = taxonomy
        self.variant = variant
        self.inference = inference
        self.likelihood = likelihood
        self.prior = prior
        self.average = average
        self.intercept_variance = intercept_variance
        self.variances = variances
        self.round_tol = round_tol
        self.max_rounds = max_rounds
        self.checkpoint = checkpoint
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
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = self.likelihood == "independent"
        return tags

    def _expand(self, name: str, value: Any) -> Any:
        return as_solver(value) if name == "solver" else value

    # -- Fitting ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "HierarchicalBayesClassifier":
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            Inputs. Sparse matrices of any format; CSR with sorted indices is used without a copy.
        y : array, sparse matrix, data frame, list or series
            One label per row: numbers or strings; with a taxonomy names of its nodes, where an inner one means a class
            of its own. With ``likelihood="independent"`` also any number of labels per row, in the forms that
            ``RecursiveRegularizationClassifier`` takes.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the rows; an integer weight acts like a repetition.

        Returns
        -------
        self
        """
        self._check_arguments()
        taxonomy, form = self.taxonomy, None
        if is_label_sets(y):
            X, targets, form = self._read_sets(X, y)
        else:
            if read_targets(y, taxonomy, "own") is not None:
                raise ValueError(
                    "y has rows without just one class (a set, nothing, probabilities); leave them out, or give any "
                    'number of labels per row, as an indicator or lists, with likelihood="independent"'
                )
            X, y = check_inputs(self, X, y, reset=True)
            targets = label_targets(y, taxonomy, "own")
        problem, nodes = self._problem(X, targets, sample_weight)
        fitted = self._inferred(problem, nodes, self._prior(problem, nodes), self._start(problem, nodes))
        self.classes_, self.label_form_ = targets.classes, form
        self.taxonomy_ = targets.taxonomy if form is None else taxonomy
        self.coef_, self.intercept_ = fitted.functions.coef, fitted.functions.intercept
        self.posterior_, self.result_, self.bayes_result_ = fitted.posterior, fitted.result, fitted.bayes
        self.n_iter_ = fitted.bayes.iterations if self.inference == "map" else fitted.bayes.rounds
        self._state = (nodes.names, fitted.state.variances)
        by_group = fitted.state.variances.mean(axis=0)
        self.hyperparameters_ = Hyperparameters(
            kernel=Linear(1.0),
            intercept_variance=problem.intercept_variance,
            variances={str(name): float(value) for name, value in zip(nodes.names, by_group, strict=True)},
        )
        for message in self._unconverged():
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def _inferred(self, problem: Problem, nodes: NodePrecisions, prior: GammaValues, start: BayesState) -> BayesFit:
        solver, verbose = as_solver(self.solver), int(self.verbose)
        common: dict[str, Any] = {"tol": self.tol, "n_threads": check_threads(self.n_threads)}
        common["max_rounds"] = _INFERENCES[self.inference] if self.max_rounds is None else self.max_rounds
        if self.inference == "variational":
            limit = solver.kernel_settings().memory_limit
            with fit_progress(verbose, self.tol) as progress:
                return fit_variational(
                    problem, nodes, prior, start=start, memory_limit=limit, progress=progress, **common
                )
        with fit_progress(verbose, self.tol) as progress, round_progress(verbose, "inference", "variances") as rounds:
            return fit_map(
                problem,
                nodes,
                prior,
                start=self._resumed(problem, nodes, start),
                max_iter=self.max_iter,
                round_tol=self.round_tol,
                solver=solver,
                progress=progress,
                round_progress=rounds,
                after_round=None if self.checkpoint is None else lambda state: self._write_state(problem, nodes, state),
                **common,
            )

    def _check_arguments(self) -> None:
        if not (self.taxonomy is None or isinstance(self.taxonomy, Taxonomy)):
            raise TypeError(f"taxonomy must be a taxolearn.Taxonomy or None, got {type(self.taxonomy).__name__}")
        check_choice("variant", self.variant, _VARIANTS)
        check_choice("inference", self.inference, tuple(_INFERENCES))
        check_choice("likelihood", self.likelihood, _LIKELIHOODS)
        check_choice("prior", self.prior, _PRIORS)
        self._samples()
        check_number("intercept_variance", self.intercept_variance, least=0)
        check_number("round_tol", self.round_tol, least=0, strict=True)
        is_map = self.inference == "map"
        if self.max_rounds is not None:
            check_number("max_rounds", self.max_rounds, least=0 if is_map else 1, integer=True)
        if not (is_map or self.checkpoint is None):
            raise ValueError('checkpoint is for inference="map"; leave it out')
        check_number("tol", self.tol, least=0, strict=True)
        check_number("max_iter", self.max_iter, least=0, integer=True)
        check_number("verbose", int(self.verbose), least=0, integer=True)
        solver = as_solver(self.solver)
        if solver.products != "auto" or solver.rank is not None or solver.rank_tolerance is not None:
            raise ValueError("solver: products of kernel matrices are not for this linear model; leave them out")
        if self.variant == "M2" and is_map:
            raise ValueError('variant="M2" has variances of features, which need inference="variational"; got "map"')

    def _read_sets(self, X: Any, y: Any) -> tuple[Any, Targets, LabelForm]:
        sets, classes, form = read_label_sets(y, self.taxonomy)
        if self.likelihood != "independent":
            raise ValueError(
                f"y has any number of labels per row, which likelihood={self.likelihood!r} cannot use: choose "
                'likelihood="independent"'
            )
        X, _ = check_inputs(self, X, np.zeros(len(sets)), reset=True)
        return X, set_targets(sets, classes, self.taxonomy), form

    def _problem(self, X: Any, targets: Targets, sample_weight: Any) -> tuple[Problem, NodePrecisions]:
        with_root = self.likelihood == "independent" and targets.taxonomy is not None
        nodes = NodePrecisions.of(targets, self.variant, with_root=with_root)
        problem = Problem(
            X=canonical(X),
            targets=targets.first(),
            sample_weight=row_weights(targets, sample_weight, self.class_weight, X),
            class_kernels=ClassKernels([Linear(1.0)], [], ClassCoupling(), Linear(1.0)),
            intercept_variance=float(self.intercept_variance),
            order=targets.order,
            classes=targets.classes,
            function_names=list(nodes.function_names),
            loss=self.likelihood,
        )
        return problem, nodes

    def _prior(self, problem: Problem, nodes: NodePrecisions) -> GammaValues:
        if self.prior == "proportions":
            return proportions_prior(nodes, problem)
        variance, n_threads = start_variance(problem), check_threads(self.n_threads)
        return fitted_prior(nodes, problem, variance, as_solver(self.solver), n_threads)

    def _start(self, problem: Problem, nodes: NodePrecisions) -> BayesState:
        """Variances to begin from: given, those of the last fit, or such as suit the scale of the data."""
        shape = (problem.X.shape[1] if nodes.by_feature else 1, len(nodes.names))
        variances = np.full(shape, start_variance(problem))
        last_names, last = getattr(self, "_state", (None, None))
        if self.variances is not None:
            variances = self._given(shape)
        elif self.warm_start and last_names == nodes.names and last is not None and last.shape == shape:
            variances = last
        return BayesState(variances, (), 0, 0, None, "")

    def _given(self, shape: tuple[int, int]) -> Floats:
        try:
            values = np.array(self.variances, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"variances is {self.variances!r}, expected an array of shape {shape}") from None
        if values.shape not in (shape, shape[1:] if shape[0] == 1 else shape):
            raise ValueError(f"variances has shape {values.shape}, expected {shape}")
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise ValueError("variances must be positive and finite")
        return np.ascontiguousarray(values.reshape(shape))

    # -- Checkpoints --------------------------------------------------------------------------------------------------

    def _identity(self, problem: Problem) -> str:
        arguments = {
            name: value
            for name, value in self.get_params(deep=False).items()
            if name not in ("checkpoint", "average", "max_rounds", "n_threads", "random_state", "verbose", "warm_start")
        }
        arguments["taxonomy"] = None if self.taxonomy is None else [self.taxonomy.names, self.taxonomy.parents]
        labels = problem.targets
        labels = labels if isinstance(labels, np.ndarray) else [labels.labels, labels.offsets]
        return fingerprint("hierarchical Bayes", arguments, problem.X, labels, problem.sample_weight)

    def _write_state(self, problem: Problem, nodes: NodePrecisions, state: BayesState) -> None:
        arrays = {"variances": state.variances, "counts": np.array([state.iterations, state.products])}
        if state.point is not None:
            arrays |= {"point": state.point, "is_dual": np.array([state.space == "coefficients"])}
        records = np.array([(change,) for change in state.changes], dtype=_RECORD)
        names = tuple(map(str, nodes.names))
        try:
            write_checkpoint(Path(self.checkpoint), self._identity(problem), names, records, arrays)
        except OSError as error:
            warnings.warn(f"checkpoint: cannot write {self.checkpoint}: {error.strerror or error}", stacklevel=4)

    def _resumed(self, problem: Problem, nodes: NodePrecisions, start: BayesState) -> BayesState:
        """The state of the checkpoint, if there is one."""
        if self.checkpoint is None:
            return start
        names = tuple(map(str, nodes.names))
        found = read_checkpoint(Path(self.checkpoint), self._identity(problem), names, _RECORD)
        if found is None:
            return start
        records, arrays = found
        variances = arrays["variances"]
        if variances.shape != start.variances.shape:
            raise ValueError(f"checkpoint: cannot use {self.checkpoint}: it belongs to another problem")
        iterations, products = arrays["counts"].tolist()
        space = "coefficients" if "is_dual" in arrays and arrays["is_dual"][0] else "weights"
        changes = tuple(records["change"].tolist())
        return BayesState(variances, changes, iterations, products, arrays.get("point"), space)

    def _unconverged(self) -> Iterator[str]:
        inferred, fit = self.bayes_result_, self.result_
        if fit is None and inferred.status == "max_rounds":
            yield (
                f"The bound was still rising in round {inferred.rounds}. Raise max_rounds, or tol (now {self.tol:g}) "
                "if this accuracy is enough."
            )
        elif inferred.status == "max_rounds":
            yield (
                f"Variances still changed by {inferred.changes[-1]:.1e} in round {inferred.rounds}. Raise max_rounds, "
                f"or round_tol (now {self.round_tol:g}) if this accuracy is enough."
            )
        if fit is not None and fit.status != "converged":
            yield (
                f"The last fit stopped after {fit.iterations} iterations (certified relative gap "
                f"{fit.relative_gap:.1e}, tol={self.tol:g}). Raise max_iter (now {self.max_iter}), or tol if "
                "this accuracy is enough."
            )

    def _learned_arguments(self) -> dict[str, Any]:
        if self.inference == "variational":  # which has no weights without precisions
            return {}
        return {"variances": self._state[1], "max_rounds": 0, "checkpoint": None}

    def _adopt(self, again: Any) -> None:
        kept = {} if self.inference == "variational" else {"bayes_result_": self.bayes_result_}
        super()._adopt(again)
        self.__dict__.update(kept)

    # -- Predicting ---------------------------------------------------------------------------------------------------

    @property
    def variances_(self) -> Floats:
        """Inferred prior variances, in the order of ``posterior_.precisions.names``; for "M2" a row per feature."""
        check_is_fitted(self)
        values = self._state[1]
        return values if self.variant == "M2" else values[0]

    @property
    def _link(self) -> str:
        if self.likelihood == "softmax":
            return "softmax"
        return "logistic" if self.is_multilabel_ else "one_of"

    def _samples(self) -> int | None:
        """How many samples probabilities are averaged over, if they are."""
        if self.average is None or self.average == "probit":
            return None
        if isinstance(self.average, str):
            raise ValueError(f"average is {self.average!r}, expected 'probit', a number of samples or None")
        return int(check_number("average", self.average, least=1, integer=True))

    def _output(self, X: Any, output: str) -> Floats:
        functions = LinearFunctions(self.coef_, self.intercept_, self._link)
        if self.average is None:
            values = functions.output(X, output, check_threads(self.n_threads))
        else:
            u = functions.output(X, "predictor", check_threads(self.n_threads))
            values = self._averaged(u, self.posterior_.predictor_variances(X), output)
        return self._consistent(values) if self.is_multilabel_ else values

    def _averaged(self, u: Floats, variances: Floats, output: str) -> Floats:
        """The output averaged over the posterior of the predictors, whose classes are independent there."""
        count = self._samples()
        if count is None:
            return linked(u / np.sqrt(1.0 + np.pi / 8.0 * variances), output, self._link, 1.0)
        random = check_random_state(self.random_state)
        deviations, mean = np.sqrt(variances), np.zeros_like(u)
        for _ in range(count):
            mean += linked(u + deviations * random.standard_normal(u.shape), "probability", self._link, 1.0)
        mean = np.clip(mean / count, np.finfo(np.float64).tiny, 1.0)
        if output == "probability":
            return mean
        if output == "log_probability" or self._link != "logistic":
            return np.log(mean)
        values: Floats = logit(np.minimum(mean, 1.0 - np.finfo(np.float64).eps))
        return values
